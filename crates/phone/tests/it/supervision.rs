//! Tasks and threads have names and are watched, and a panic costs no more than one packet, one request or one call.

use std::sync::Arc;
use std::time::Duration;

use g711::Codec;
use phone::call::{CallRequest, Phone};
use phone::ending::{Cause, Side};
#[cfg(debug_assertions)]
use phone::media::stream::PANIC_KEY;
use phone::media::stream::PlaybackItem;
use phone::signalling::{
    Direction, Resolver, Signalling, SignallingConfig, SipCredentials, Trace, Transport,
};
use phone::test_phone::{Script, TestPhone};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use crate::lab::{
    Lab, call, call_request, callee_config, caller, eventually, loopback, media, sound, trunk_to,
};
use crate::puppet::{Puppet, header};

fn names(supervisor: &Supervisor) -> Vec<String> {
    let tasks = supervisor.tasks().into_iter();
    tasks.map(|task| task.name).collect()
}

fn registering(puppet: &Puppet) -> SipTrunkConfig {
    SipTrunkConfig {
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: None,
            password: "secret".to_owned(),
        }),
        register: Some(Duration::from_secs(3600)),
        ..SipTrunkConfig::new("one", puppet.address().into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_lives_long_has_a_name_and_ends_with_its_owner() {
    let supervisor = Supervisor::new();
    let config = callee_config(&Codec::ALL);
    let (callee, _heard) = TestPhone::start(&supervisor, &config, |_| Script::answer())
        .await
        .unwrap();
    let sip = SignallingConfig::new(Transport::Udp, loopback());
    let signalling = Arc::new(Signalling::start(&supervisor, &sip, None).await.unwrap());
    let phone = Phone::start(&supervisor, &media(20_000..=29_999)).unwrap();
    let asked = SipTrunkConfig {
        ask_every: Some(Duration::from_secs(60)),
        ..SipTrunkConfig::new("two", callee.contact().into())
    };
    let puppet = Puppet::new().await;
    let start = |config| {
        let resolver = Resolver::default();
        Trunk::start(&supervisor, config, Arc::clone(&signalling), resolver)
    };
    let trunks = [start(registering(&puppet)), start(asked)];
    assert_eq!(
        names(&supervisor),
        [
            "pacer",
            "receiver",
            "registration:one",
            "sip-listener",
            "test-phone",
            "trunk-health:two"
        ]
    );
    let story = call(
        &phone,
        &trunks[1],
        call_request(vec![PlaybackItem::Sound(sound(5))]),
    )
    .await;
    assert_eq!(story.talked().1, Side::Us);
    eventually("all are up", || supervisor.down().is_empty()).await;
    for trunk in &trunks {
        trunk.stop();
    }
    drop((trunks, signalling, phone, callee));
    eventually("everything has ended", || names(&supervisor).is_empty()).await;
    let failed = tokio::time::timeout(Duration::ZERO, supervisor.failed()).await;
    assert!(failed.is_err(), "{failed:?}");
}

#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_panics_ends_its_own_call_and_no_other() {
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let broken = CallRequest {
        number: "13800000001".to_owned(),
        ..call_request(vec![
            PlaybackItem::Silence { frames: 5 },
            PlaybackItem::Keys(PANIC_KEY.into()),
            PlaybackItem::Silence { frames: 5000 },
        ])
    };
    let whole = call_request(vec![PlaybackItem::Sound(sound(50))]);
    let (broken, whole) = tokio::join!(lab.call(broken), lab.call(whole));
    assert_eq!(broken.stats.packets_sent, 5);
    assert_eq!(broken.talked().1, Side::Us);
    assert_eq!(whole.talked().1, Side::Us);
    for _ in 0..2 {
        let heard = lab.heard().await;
        let expected = if heard.number == "13800000001" {
            vec![Codec::Pcma.silence(); 5 * 160]
        } else {
            sound(50).bytes(Codec::Pcma).to_vec()
        };
        assert_eq!(heard.sound(), expected, "{}", heard.number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_or_a_request_whose_handling_panics_is_the_only_one_that_is_lost() {
    let supervisor = Supervisor::new();
    let mut config = callee_config(&Codec::ALL);
    config.sip.trace = Some(Trace::new(|message| {
        let direction = match message.direction {
            Direction::Received => "received",
            Direction::Sent => "sent",
        };
        assert_ne!(message.call_id, format!("panic-when-{direction}"));
    }));
    let (callee, mut heard) = TestPhone::start(&supervisor, &config, |number| {
        assert_ne!(number, "13800000666");
        Script::answer()
    })
    .await
    .unwrap();
    let (phone, trunk) = (caller(), trunk_to(callee.contact()).await);
    let with_id = |call_id: &str| CallRequest {
        call_id: call_id.to_owned(),
        ..call_request(vec![])
    };
    let to_number = |number: &str| CallRequest {
        number: number.to_owned(),
        ..call_request(vec![PlaybackItem::Sound(sound(10))])
    };
    let (received, sent, script, whole) = tokio::join!(
        call(&phone, &trunk, with_id("panic-when-received")),
        call(&phone, &trunk, with_id("panic-when-sent")),
        call(&phone, &trunk, to_number("13800000666")),
        call(&phone, &trunk, to_number("13800000000")),
    );
    assert_eq!(received.cause(), Cause::TimedOut);
    assert_eq!(sent.cause(), Cause::TimedOut);
    assert_eq!(script.cause(), Cause::NoAnswer, "a dropped call is refused");
    assert_eq!(whole.talked().1, Side::Us);
    let after = call(&phone, &trunk, to_number("13800000000")).await;
    assert_eq!(after.talked().1, Side::Us);
    let heard = heard.recv().await.unwrap();
    assert_eq!(heard.sound(), sound(10).bytes(Codec::Pcma).to_vec());
    eventually("all are up", || supervisor.down().is_empty()).await;
}

#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_that_panics_is_started_again_and_registers_anew() {
    let supervisor = Supervisor::new();
    let sip = SignallingConfig::new(Transport::Udp, loopback());
    let signalling = Signalling::start(&supervisor, &sip, None).await.unwrap();
    let mut puppet = Puppet::new().await;
    let trunk = Trunk::start(
        &supervisor,
        registering(&puppet),
        Arc::new(signalling),
        Resolver::default(),
    );
    assert!(supervisor.request_panic("registration:one"));
    let mut calls = Vec::new();
    while calls.len() < 2 {
        let register = puppet.request("REGISTER").await;
        let contact = header(&register, "Contact").to_owned();
        let granted = format!("Contact: {contact};expires=3600\r\nExpires: 3600\r\n");
        puppet.respond(&register, "200 OK", &granted).await;
        let call_id = header(&register, "Call-ID").to_owned();
        if calls.last() != Some(&call_id) {
            calls.push(call_id);
        }
    }
    eventually("it is up again", || supervisor.down().is_empty()).await;
    trunk.stop();
    let goodbye = loop {
        // The request before it may be repeated.
        let register = puppet.request("REGISTER").await;
        if header(&register, "Expires") == "0" {
            break register;
        }
    };
    puppet.respond(&goodbye, "200 OK", "").await;
    eventually("it has ended", || {
        !names(&supervisor).contains(&"registration:one".to_owned())
    })
    .await;
}

/// One whose registrar answers, and whose calls would get nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_registers_is_asked_too() {
    let supervisor = Supervisor::new();
    let sip = SignallingConfig::new(Transport::Udp, loopback());
    let signalling = Signalling::start(&supervisor, &sip, None).await.unwrap();
    let mut puppet = Puppet::new().await;
    let config = SipTrunkConfig {
        ask_every: Some(Duration::from_millis(100)),
        ..registering(&puppet)
    };
    let resolver = Resolver::default();
    let trunk = Trunk::start(&supervisor, config, Arc::new(signalling), resolver);
    let health = trunk.health();
    let mut asked = 0;
    while health.borrow().usable() {
        let request = puppet.request("").await;
        if request.starts_with("REGISTER") {
            let contact = header(&request, "Contact").to_owned();
            let granted = format!("Contact: {contact};expires=3600\r\nExpires: 3600\r\n");
            puppet.respond(&request, "200 OK", &granted).await;
        } else {
            assert!(request.starts_with("OPTIONS"), "{request}");
            asked += 1;
            let status = if asked < 3 { "200 OK" } else { "503 No Calls" };
            puppet.respond(&request, status, "").await;
        }
    }
    assert!(asked >= 4, "one refusal may be by chance");
}
