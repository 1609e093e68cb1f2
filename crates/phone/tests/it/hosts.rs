//! Trunks of several hosts, each with a health of its own.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use g711::Codec;
use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{Script, TestPhone};
use phone::trunk::{Health, SipTrunkConfig};
use supervisor::Supervisor;

use crate::lab::{call, call_request, callee_config, caller, loopback, sound, trunk};
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

async fn telephone(bind: SocketAddr) -> TestPhone {
    let mut config = callee_config(&Codec::ALL);
    config.sip.bind = bind;
    let supervisor = Supervisor::new();
    let started = TestPhone::start(&supervisor, &config, |_| Script::answer());
    started.await.unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_skips_a_host_that_is_down_until_it_is_back() {
    let silent = UdpSocket::bind(loopback()).unwrap();
    let address = silent.local_addr().unwrap();
    let second = telephone(loopback()).await;
    let trunk = trunk(asked(address, &[second.contact()])).await;
    let plan = || call_request(vec![PlaybackItem::Sound(sound(5))]);
    let both = [address, second.contact()];
    let one_is_left = async |left: &[SocketAddr]| {
        let deadline = tokio::time::Instant::now() + crate::lab::PATIENCE;
        while trunk.usable_addresses().await.unwrap() != left {
            assert!(tokio::time::Instant::now() < deadline, "{left:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    one_is_left(&both[1..]).await;
    // One host is enough for the trunk to be up.
    becomes(&mut trunk.health(), |health| *health == Health::Up).await;
    let story = call(&caller(), &trunk, plan()).await;
    assert_eq!(story.legs.len(), 1, "{story:?}");
    assert_eq!(story.legs[0].address, second.contact());
    assert_eq!(story.talked().1, Side::Us);
    drop(silent);
    let first = telephone(address).await;
    one_is_left(&both).await;
    let story = call(&caller(), &trunk, plan()).await;
    assert_eq!(story.legs[0].address, first.contact());
    trunk.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_down_when_all_of_its_hosts_are() {
    let silent = [(); 2].map(|()| UdpSocket::bind(loopback()).unwrap());
    let addresses = [0, 1].map(|place: usize| silent[place].local_addr().unwrap());
    let trunk = trunk(asked(addresses[0], &addresses[1..])).await;
    becomes(&mut trunk.health(), |health| !health.usable()).await;
    // Where nothing is there, everything is tried.
    assert_eq!(trunk.usable_addresses().await.unwrap(), addresses);
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
