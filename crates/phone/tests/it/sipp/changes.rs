//! Sessions that change while they last.

use std::net::UdpSocket;
use std::time::Duration;

use phone::call::CallRequest;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::signalling::{Resolver, Signalling, SignallingConfig, Trace, Transport};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use super::Play;
use crate::lab::{PATIENCE, call, call_request, caller, loopback, sound, trunk_to, unseen_events};

/// Waits for so many packets of sound. Reports are between them.
fn arrivals(socket: &UdpSocket, count: usize) {
    let mut came = 0;
    let mut packet = [0; 2000];
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    while came < count {
        let length = socket.recv(&mut packet).expect("a packet in time");
        came += usize::from(length == 172);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_refreshes_the_session_gets_an_answer() {
    let sipp = Play::new("refresh").start().await;
    let trunk = trunk_to(sipp.address).await;
    let plan = vec![PlaybackItem::Sound(sound(50))];
    let story = call(&caller(), &trunk, call_request(plan)).await;
    assert_eq!(story.stats.packets_sent, 50);
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_our_offer_says_in_the_ack_where_its_sound_goes() {
    let before = UdpSocket::bind(loopback()).unwrap();
    let after = UdpSocket::bind(loopback()).unwrap();
    let sipp = Play::new("no_offer")
        .key("rtp", before.local_addr().unwrap().port())
        .key(
            "moved",
            super::described_at(after.local_addr().unwrap().port()),
        )
        .start()
        .await;
    let trunk = trunk_to(sipp.address).await;
    let plan = vec![PlaybackItem::Sound(sound(75))];
    let listening = tokio::task::spawn_blocking(move || arrivals(&after, 1));
    let story = call(&caller(), &trunk, call_request(plan)).await;
    assert_eq!(story.stats.packets_sent, 75);
    assert_eq!(story.talked().1, Side::Us);
    listening.await.unwrap();
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sound_goes_where_the_network_has_moved_it_before_the_answer() {
    // Some say nothing more in their answer, and some repeat what they said first.
    for body in ["{empty}", "{sdp}"] {
        let before = UdpSocket::bind(loopback()).unwrap();
        let after = UdpSocket::bind(loopback()).unwrap();
        let sipp = Play::new("early_update")
            .key("rtp", before.local_addr().unwrap().port())
            .key(
                "moved",
                super::described_at(after.local_addr().unwrap().port()),
            )
            .key("body", body)
            .start()
            .await;
        let trunk = trunk_to(sipp.address).await;
        let plan = vec![PlaybackItem::Sound(sound(25))];
        let listening = tokio::task::spawn_blocking(move || arrivals(&after, 25));
        let story = call(&caller(), &trunk, call_request(plan)).await;
        assert_eq!(story.stats.packets_sent, 25);
        assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
        story.talked();
        listening.await.unwrap();
        before.set_nonblocking(true).unwrap();
        assert!(before.recv(&mut [0; 2000]).is_err(), "{body}");
        sipp.end_satisfied().await;
    }
}

/// Calls, and lets time leap over a minute as soon as the call is up. Sockets and sound go by real time.
async fn call_and_leap(sipp: &super::Sipp, leap: Duration) -> crate::lab::Story {
    let acknowledged = std::sync::Arc::new(tokio::sync::Notify::new());
    let seen = std::sync::Arc::clone(&acknowledged);
    let config = SignallingConfig {
        trace: Some(Trace::new(move |message| {
            if message.text.starts_with("ACK") {
                seen.notify_one();
            }
        })),
        ..SignallingConfig::new(Transport::Udp, loopback())
    };
    let signalling = Signalling::start(&Supervisor::new(), &config, None)
        .await
        .unwrap();
    let trunk = SipTrunkConfig::new("test", sipp.address.into());
    let trunk = Trunk::start(
        &Supervisor::new(),
        trunk,
        signalling.into(),
        Resolver::default(),
    );
    let request = CallRequest {
        talk_time: Duration::from_secs(3600),
        ..call_request(vec![PlaybackItem::Sound(sound(150))])
    };
    let phone = caller();
    let events = unseen_events();
    let never = tokio_util::sync::CancellationToken::new();
    let leaping = async {
        acknowledged.notified().await;
        // One thread runs everything here: whatever follows the ACK has followed after a few turns.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(leap).await;
        tokio::time::resume();
    };
    let (placed, ()) = tokio::join!(phone.call(&trunk, &request, &events, &never), leaping);
    crate::lab::Story::new(placed, Vec::new())
}

#[tokio::test]
async fn a_session_that_is_ours_to_refresh_is_refreshed() {
    let body = "Content-Length: 0\n\n";
    let confirm = "<recv request=\"ACK\"/>";
    for (allow, method, body, confirm) in [
        ("INVITE, ACK, BYE, UPDATE", "UPDATE", body, ""),
        ("INVITE, ACK, BYE", "INVITE", "{sdp}", confirm),
    ] {
        let sipp = Play::new("refreshed_by_us")
            .key("allow", allow)
            .key("method", method)
            .key("body", body)
            .key("confirm", confirm)
            .start()
            .await;
        let story = call_and_leap(&sipp, Duration::from_secs(46)).await;
        assert_eq!(story.talked().1, Side::Us);
        sipp.end_satisfied().await;
    }
}

#[tokio::test]
async fn a_peer_that_does_not_refresh_as_promised_is_given_up() {
    let sipp = Play::new("never_refreshed").start().await;
    let story = call_and_leap(&sipp, Duration::from_secs(61)).await;
    assert!(story.stats.packets_sent < 150, "{story:?}");
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}
