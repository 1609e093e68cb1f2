//! What a trunk wants and how it fails: failover, authentication, health, orphans.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use g711::Codec;
use phone::call::{CallEvent, CallRequest};
use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::signalling::{Signalling, SignallingConfig, SipCredentials, Trace, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use phone::trunk::{Health, Identity, NumberForm, SipTrunkConfig};
use supervisor::Supervisor;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::lab::{
    Lab, PATIENCE, call, call_request, callee_config, caller, eventually, loopback, next_event,
    sound, trunk, trunk_of, trunk_to,
};
use crate::puppet::{Puppet, header};

fn credentials(password: &str) -> SipCredentials {
    SipCredentials {
        user: "customer".to_owned(),
        auth_user: None,
        password: password.to_owned(),
    }
}

/// A trunk that sees what is sent to it.
async fn seen(config: impl FnOnce(SocketAddr) -> SipTrunkConfig) -> String {
    let seen = Arc::new(Mutex::new(String::new()));
    let keep = Arc::clone(&seen);
    let mut theirs = callee_config(&Codec::ALL);
    theirs.sip.trace = Some(Trace::new(move |message| {
        if message.text.starts_with("INVITE") {
            message.text.clone_into(&mut keep.lock().unwrap());
        }
    }));
    let (callee, _heard) = TestPhone::start(&Supervisor::new(), &theirs, |_| Script::refuse(486))
        .await
        .unwrap();
    let trunk = trunk(config(callee.contact())).await;
    call(&caller(), &trunk, call_request(vec![])).await;
    std::mem::take(&mut *seen.lock().unwrap())
}

/// A telephone that is busy, and the INVITEs that reach it.
async fn invites() -> (TestPhone, UnboundedReceiver<String>) {
    let (keep, invites) = unbounded_channel();
    let mut theirs = callee_config(&Codec::ALL);
    theirs.sip.trace = Some(Trace::new(move |message| {
        if message.text.starts_with("INVITE") {
            let _ = keep.send(message.text.clone());
        }
    }));
    let supervisor = Supervisor::new();
    let started = TestPhone::start(&supervisor, &theirs, |_| Script::refuse(486));
    (started.await.unwrap().0, invites)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_is_shown_as_the_trunk_wants_it() {
    let plain = seen(|address| SipTrunkConfig::new("test", address.into())).await;
    assert!(
        plain.contains("From: <sip:4001234567@127.0.0.1>;"),
        "{plain}"
    );
    assert!(!plain.contains("P-Asserted-Identity"), "{plain}");
    let told = seen(|address| SipTrunkConfig {
        domain: Some("customer.example".to_owned()),
        identity: Identity {
            from_user: Some("customer".to_owned()),
            asserted: true,
            preferred: true,
            privacy: Some("id".to_owned()),
            diversion: Some("4000000000".to_owned()),
            display_name: Some("Clarion".to_owned()),
            from_domain: Some("from.example".to_owned()),
            contact_user: None,
            form: NumberForm::SipPhone,
        },
        headers: vec![("X-Customer".to_owned(), "42; a=b".to_owned())],
        session_interval: Some(Duration::from_secs(1800)),
        ..SipTrunkConfig::new("test", address.into())
    })
    .await;
    for part in [
        "INVITE sip:13800000000@customer.example;user=phone SIP/2.0",
        "sip:customer@from.example>",
        "Clarion",
        "P-Asserted-Identity: <sip:4001234567@customer.example;user=phone>",
        "P-Preferred-Identity: <sip:4001234567@customer.example;user=phone>",
        "Privacy: id",
        "Diversion: <sip:4000000000@customer.example;user=phone>",
        "X-Customer: 42; a=b",
        "Session-Expires: 1800",
    ] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_not_shown_is_not_asserted_either() {
    let (callee, mut invites) = invites().await;
    let trunk = trunk(SipTrunkConfig {
        identity: Identity {
            asserted: true,
            preferred: true,
            form: NumberForm::SipPhone,
            ..Identity::default()
        },
        ..SipTrunkConfig::new("test", callee.contact().into())
    })
    .await;
    for (caller_shown, asserts) in [("4001234567", true), ("anonymous", false)] {
        let request = CallRequest {
            caller: caller_shown.to_owned(),
            ..call_request(vec![])
        };
        call(&caller(), &trunk, request).await;
        let invite = invites.recv().await.unwrap();
        for name in ["P-Asserted-Identity", "P-Preferred-Identity"] {
            assert_eq!(invite.contains(name), asserts, "{invite}");
        }
        let from = header(&invite, "From");
        assert_eq!(from.contains("user=phone"), asserts, "{from}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_wants_a_password_gets_it() {
    let config = TestPhoneConfig {
        credentials: Some(credentials("secret")),
        ..callee_config(&Codec::ALL)
    };
    let lab = Lab::with(&config, Script::answer()).await;
    assert_eq!(
        lab.call(call_request(vec![])).await.cause(),
        Cause::Rejected
    );
    let other_name = SipCredentials {
        user: "line-7".to_owned(),
        auth_user: Some(credentials("").user),
        ..credentials("secret")
    };
    for (known, talks) in [
        (credentials("wrong"), false),
        (credentials("secret"), true),
        (other_name, true),
    ] {
        let trunk = trunk(SipTrunkConfig {
            credentials: Some(known),
            ..SipTrunkConfig::new("test", lab.callee.contact().into())
        })
        .await;
        let story = call(
            &lab.phone,
            &trunk,
            call_request(vec![PlaybackItem::Sound(sound(5))]),
        )
        .await;
        if talks {
            assert_eq!(story.talked().1, Side::Us);
        } else {
            assert_eq!(story.cause(), Cause::Rejected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_is_there_is_up_and_one_that_is_gone_is_down() {
    let silent = UdpSocket::bind(loopback()).unwrap();
    let asked = |address: SocketAddr| SipTrunkConfig {
        ask_every: Some(Duration::from_millis(100)),
        ..SipTrunkConfig::new("test", address.into())
    };
    let (callee, _heard) =
        TestPhone::start(&Supervisor::new(), &callee_config(&Codec::ALL), |_| {
            Script::answer()
        })
        .await
        .unwrap();
    let up = trunk(asked(callee.contact())).await;
    let mut health = up.health();
    tokio::time::timeout(PATIENCE, health.wait_for(|health| *health == Health::Up))
        .await
        .unwrap()
        .unwrap();
    let down = trunk(asked(silent.local_addr().unwrap())).await;
    let mut health = down.health();
    tokio::time::timeout(PATIENCE, health.wait_for(|health| !health.usable()))
        .await
        .unwrap()
        .unwrap();
    up.stop();
    down.stop();
}

/// A peer that takes every registration, and answers OPTIONS once.
async fn take_registrations(mut puppet: Puppet) {
    let mut has_answered = false;
    let mut buffer = vec![0; 65_536];
    loop {
        let (length, from) = puppet.socket.recv_from(&mut buffer).await.unwrap();
        puppet.peer = Some(from);
        let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if request.starts_with("REGISTER") {
            let contact = header(&request, "Contact");
            let taken = format!("Contact: {contact};expires=36000\r\n");
            puppet.respond(&request, "200 OK", &taken).await;
        } else if !std::mem::replace(&mut has_answered, true) {
            puppet.respond(&request, "200 OK", "").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_registers_and_does_not_answer_options_any_more_is_down() {
    let puppet = Puppet::new().await;
    let config = SipTrunkConfig {
        register: Some(Duration::from_secs(36_000)),
        ask_every: Some(Duration::from_millis(100)),
        credentials: Some(credentials("secret")),
        ..SipTrunkConfig::new("test", puppet.address().into())
    };
    let peer = tokio::spawn(take_registrations(puppet));
    let trunk = trunk(config).await;
    let mut health = trunk.health();
    eventually("both are answered", || {
        trunk.answers_options() && *health.borrow() == Health::Up
    })
    .await;
    let down = health.wait_for(|health| !health.usable());
    tokio::time::timeout(PATIENCE, down).await.unwrap().unwrap();
    let health = health.borrow().clone();
    let Health::Down { why } = health else {
        panic!("{health:?}");
    };
    assert!(why.ends_with("does not answer"), "{why}");
    trunk.stop();
    peer.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_says_trying_and_no_more_is_cancelled() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk(SipTrunkConfig {
        progress_time: Some(Duration::from_millis(200)),
        ..SipTrunkConfig::new("test", puppet.address().into())
    })
    .await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = puppet.request("INVITE").await;
    puppet.respond(&invite, "100 Trying", "").await;
    let cancel = puppet.request("CANCEL").await;
    puppet.respond(&cancel, "200 OK", "").await;
    puppet.respond(&invite, "487 Request Terminated", "").await;
    let failure = calling.await.unwrap().failure();
    assert_eq!((failure.cause, failure.rang), (Cause::TimedOut, false));
    assert!(failure.may_fail_over() && failure.has_response());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_dies_after_trying_does_not_keep_the_call_for_ever() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk(SipTrunkConfig {
        progress_time: Some(Duration::from_millis(200)),
        ..SipTrunkConfig::new("test", puppet.address().into())
    })
    .await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = puppet.request("INVITE").await;
    puppet.respond(&invite, "100 Trying", "").await;
    // It is not there any more: the CANCEL is never answered.
    puppet.request("CANCEL").await;
    let failure = calling.await.unwrap().failure();
    assert_eq!((failure.cause, failure.rang), (Cause::TimedOut, false));
    assert!(failure.has_response());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_goes_where_the_invite_went() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk(SipTrunkConfig {
        progress_time: Some(Duration::from_millis(200)),
        // Nobody is there: the name is only for From and To.
        domain: Some("127.0.0.9".to_owned()),
        ..SipTrunkConfig::new("test", puppet.address().into())
    })
    .await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = puppet.request("INVITE").await;
    assert!(invite.contains("@127.0.0.9"), "{invite}");
    puppet.respond(&invite, "100 Trying", "").await;
    let cancel = puppet.request("CANCEL").await;
    puppet.respond(&cancel, "200 OK", "").await;
    puppet.respond(&invite, "487 Request Terminated", "").await;
    assert_eq!(calling.await.unwrap().failure().cause, Cause::TimedOut);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_nobody_waits_for_is_acknowledged_and_ended() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    trunk.addresses().await.unwrap();
    puppet.peer = Some(trunk.signalling().contact());
    let us = trunk.signalling().contact();
    let invite = format!(
        "INVITE sip:1@x SIP/2.0\r\nVia: SIP/2.0/UDP {us};branch=z9hG4bKold\r\nFrom: <sip:2@{us}>;tag=ours\r\nTo: <sip:1@x>\r\nCall-ID: of-an-earlier-life\r\nCSeq: 7 INVITE\r\n\r\n"
    );
    puppet.respond(&invite, "200 OK", &puppet.contact()).await;
    let ack = puppet.request("ACK").await;
    assert!(ack.contains("CSeq: 7 ACK"), "{ack}");
    let bye = puppet.request("BYE").await;
    for part in [
        "CSeq: 1007 BYE",
        "Call-ID: of-an-earlier-life",
        "tag=ours",
        "tag=puppet",
    ] {
        assert!(bye.contains(part), "{part} is missing in\n{bye}");
    }
    puppet.respond(&bye, "200 OK", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_cannot_make_us_send_a_bye() {
    let mut stranger = Puppet::new().await;
    // Another address than the trunk's.
    stranger.socket = tokio::net::UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let mut puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    trunk.addresses().await.unwrap();
    let us = trunk.signalling().contact();
    let invite = format!(
        "INVITE sip:1@x SIP/2.0\r\nVia: SIP/2.0/UDP {us};branch=z9hG4bKx\r\nFrom: <sip:2@{us}>;tag=ours\r\nTo: <sip:1@x>\r\nCall-ID: injected\r\nCSeq: 7 INVITE\r\n\r\n"
    );
    stranger.peer = Some(us);
    stranger
        .respond(&invite, "200 OK", &stranger.contact())
        .await;
    // What the trunk asks after it is answered, so the stranger's message has been dropped.
    let options = format!(
        "OPTIONS sip:x@{us} SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bKo\r\nFrom: <sip:s@x>;tag=s\r\nTo: <sip:x@x>\r\nCall-ID: o\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n",
        puppet.address()
    );
    puppet.peer = Some(us);
    puppet.send(&options).await;
    let answer = puppet.request("").await;
    assert!(answer.starts_with("SIP/2.0 200"), "{answer}");
    let silence = stranger.socket.try_recv(&mut [0; 1000]);
    assert!(silence.is_err(), "{silence:?}");
}

/// Calls, gets as far as wanted and dies: on a runtime of one thread nothing runs any more once it is left, so nothing is cancelled and
/// nothing hung up. The address of the deceased, and the snapshot that it left.
fn die_in_a_call(callee: SocketAddr, ringing: bool) -> (SocketAddr, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let left = runtime.block_on(async {
        let (phone, trunk) = (caller(), trunk_to(callee).await);
        let (events, mut happened) = unbounded_channel();
        let never = CancellationToken::new();
        let request = call_request(vec![PlaybackItem::Silence { frames: 1000 }]);
        let call = phone.call(&trunk, &request, &events, &never);
        tokio::pin!(call);
        loop {
            let event = tokio::select! {
                event = next_event(&mut happened) => event,
                _ = &mut call => panic!("the call is over"),
            };
            let snapshot = match event {
                CallEvent::Ringing(snapshot) if ringing => snapshot,
                CallEvent::Answered(snapshot, _) => snapshot,
                _ => continue,
            };
            let text = serde_json::to_string(&snapshot).unwrap();
            return (trunk.signalling().contact(), text);
        }
    });
    runtime.shutdown_background();
    left
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leg_of_a_process_that_died_is_ended() {
    for ringing in [true, false] {
        let script = if ringing {
            Script::never_answer()
        } else {
            Script::answer()
        };
        let mut lab = Lab::new(&Codec::ALL, script).await;
        let callee = lab.callee.contact();
        let (address, snapshot) =
            tokio::task::spawn_blocking(move || die_in_a_call(callee, ringing))
                .await
                .unwrap();
        // The heir has the same address, as after a restart.
        let config = SignallingConfig::new(Transport::Udp, address);
        let heir = Signalling::start(&Supervisor::new(), &config, None)
            .await
            .unwrap();
        let snapshot = serde_json::from_str(&snapshot).unwrap();
        assert!(
            heir.end_orphan(&snapshot).await.unwrap(),
            "ringing: {ringing}"
        );
        let heard = lab.heard().await;
        assert_eq!(heard.answered, !ringing);
        assert_eq!(heard.hung_up_by, (!ringing).then_some(Side::Them));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_address_of_a_trunk_is_tried_where_the_first_is_silent() {
    let mut dead = Puppet::new().await;
    let (callee, _heard) =
        TestPhone::start(&Supervisor::new(), &callee_config(&Codec::ALL), |_| {
            Script::answer()
        })
        .await
        .unwrap();
    let trunk = trunk_of(vec![dead.address(), callee.contact()]).await;
    let calling = tokio::spawn(async move {
        call(
            &caller(),
            &trunk,
            call_request(vec![PlaybackItem::Sound(sound(5))]),
        )
        .await
    });
    let invite = dead.request("INVITE").await;
    dead.respond(&invite, "503 Service Unavailable", "").await;
    dead.request("ACK").await;
    let story = calling.await.unwrap();
    assert_eq!(
        story.course(),
        ["dialling", "dialling", "ringing", "answered"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_ringing_no_other_address_is_tried() {
    let mut first = Puppet::new().await;
    let second = UdpSocket::bind(loopback()).unwrap();
    second.set_nonblocking(true).unwrap();
    let trunk = trunk_of(vec![first.address(), second.local_addr().unwrap()]).await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = first.request("INVITE").await;
    first
        .respond(&invite, "180 Ringing", &first.contact())
        .await;
    first.respond(&invite, "503 Service Unavailable", "").await;
    let failure = calling.await.unwrap().failure();
    assert_eq!((failure.cause, failure.rang), (Cause::Unavailable, true));
    assert!(
        second.recv(&mut [0; 2000]).is_err(),
        "nothing was sent there"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_followed_only_where_that_is_allowed() {
    for allowed in [false, true] {
        let mut puppet = Puppet::new().await;
        let (callee, _heard) =
            TestPhone::start(&Supervisor::new(), &callee_config(&Codec::ALL), |_| {
                Script::answer()
            })
            .await
            .unwrap();
        let trunk = trunk(SipTrunkConfig {
            follow_redirects: allowed,
            ..SipTrunkConfig::new("test", puppet.address().into())
        })
        .await;
        let calling = tokio::spawn(async move {
            call(
                &caller(),
                &trunk,
                call_request(vec![PlaybackItem::Sound(sound(5))]),
            )
            .await
        });
        let invite = puppet.request("INVITE").await;
        let elsewhere = format!("Contact: <sip:1@{}>\r\n", callee.contact());
        puppet
            .respond(&invite, "302 Moved Temporarily", &elsewhere)
            .await;
        let story = calling.await.unwrap();
        if allowed {
            assert_eq!(story.talked().1, Side::Us);
        } else {
            assert_eq!(story.cause(), Cause::Rejected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_is_cancelled() {
    let mut lab = Lab::new(&Codec::ALL, Script::never_answer()).await;
    let (events, mut happened) = unbounded_channel();
    let never = CancellationToken::new();
    let request = CallRequest {
        ring_time: Duration::from_secs(20),
        ..call_request(vec![])
    };
    {
        let call = lab.phone.call(&lab.trunk, &request, &events, &never);
        tokio::pin!(call);
        loop {
            tokio::select! {
                event = next_event(&mut happened) => if let CallEvent::Ringing(_) = event { break },
                _ = &mut call => panic!("the call is over"),
            }
        }
    }
    assert!(!lab.heard().await.answered);
    eventually("nothing is left open", || {
        lab.trunk.signalling().open().0 == 0 && lab.callee.open().0 == 0
    })
    .await;
}
