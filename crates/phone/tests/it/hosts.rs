//! Trunks of several hosts, each with a health of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use g711::Codec;
use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{Script, TestPhone};
use phone::trunk::{Health, SipTrunkConfig};
use supervisor::Supervisor;

use crate::lab::{PATIENCE, call, call_request, callee_config, caller, sound, trunk};
use crate::puppet::{Puppet, header};
use crate::sipp::registrations::becomes;

/// A trunk of several hosts that is asked all the time.
fn asked(first: SocketAddr, more: &[SocketAddr]) -> SipTrunkConfig {
    SipTrunkConfig {
        more_hosts: more.iter().map(|address| (*address).into()).collect(),
        ask_every: Some(Duration::from_millis(100)),
        ..SipTrunkConfig::new("test", first.into())
    }
}

/// A host that is shut until it is opened, and then takes no call.
async fn shut() -> (SocketAddr, Arc<AtomicBool>) {
    let mut puppet = Puppet::new().await;
    let (address, open) = (puppet.address(), Arc::new(AtomicBool::new(false)));
    let opened = Arc::clone(&open);
    tokio::spawn(async move {
        loop {
            let request = puppet.request("").await;
            let status = match request.split(' ').next() {
                Some("INVITE") => "486 Busy Here",
                Some("OPTIONS") if opened.load(Ordering::Relaxed) => "200 OK",
                Some("OPTIONS") => "503 Service Unavailable",
                _ => continue,
            };
            puppet.respond(&request, status, "").await;
        }
    });
    (address, open)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_skips_a_host_that_is_down_until_it_is_back() {
    let (first, open) = shut().await;
    let (config, supervisor) = (callee_config(&Codec::ALL), Supervisor::new());
    let started = TestPhone::start(&supervisor, &config, |_| Script::answer());
    let (second, _heard) = started.await.unwrap();
    let trunk = trunk(asked(first, &[second.contact()])).await;
    let both = [first, second.contact()];
    let left = async |wanted: &[SocketAddr]| {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while trunk.usable_addresses().await.unwrap() != wanted {
            assert!(tokio::time::Instant::now() < deadline, "{wanted:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    left(&both[1..]).await;
    // One host is enough for the trunk to be up.
    becomes(&mut trunk.health(), |health| *health == Health::Up).await;
    let plan = vec![PlaybackItem::Sound(sound(5))];
    let story = call(&caller(), &trunk, call_request(plan)).await;
    assert_eq!(story.legs.len(), 1, "{story:?}");
    assert_eq!(story.legs[0].address, second.contact());
    assert_eq!(story.talked().1, Side::Us);
    open.store(true, Ordering::Relaxed);
    left(&both).await;
    let story = call(&caller(), &trunk, call_request(vec![])).await;
    assert_eq!(story.legs[0].address, first);
    trunk.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_down_when_all_of_its_hosts_are() {
    let ((first, _shut), (second, _too)) = (shut().await, shut().await);
    let trunk = trunk(asked(first, &[second])).await;
    becomes(&mut trunk.health(), |health| !health.usable()).await;
    // Where nothing is there, everything is tried.
    assert_eq!(trunk.usable_addresses().await.unwrap(), [first, second]);
    trunk.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_host_is_called_by_its_own_name() {
    let (mut first, mut second) = (Puppet::new().await, Puppet::new().await);
    let trunk = trunk(SipTrunkConfig {
        ask_every: None,
        ..asked(first.address(), &[second.address()])
    })
    .await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = first.request("INVITE").await;
    let target = format!("INVITE sip:13800000000@{} ", first.address());
    assert!(invite.starts_with(&target), "{invite}");
    first.respond(&invite, "503 Service Unavailable", "").await;
    let again = second.request("INVITE").await;
    let target = format!("INVITE sip:13800000000@{} ", second.address());
    assert!(again.starts_with(&target), "{again}");
    assert_eq!(header(&again, "To"), header(&invite, "To"));
    second.respond(&again, "486 Busy Here", "").await;
    assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
}
