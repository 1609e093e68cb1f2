//! What is kept of every leg.

use std::time::Duration;

use g711::Codec;
use phone::call::CallRequest;
use phone::ending::Side;
use phone::leg_record::LegRecord;
use phone::media::stream::PlaybackItem;
use phone::signalling::Transport;
use phone::test_phone::{Script, TestPhone};
use supervisor::Supervisor;

use crate::lab::{Lab, call, call_request, callee_config, caller, sound, trunk_of, trunk_to};
use crate::puppet::Puppet;

/// The times of a leg are in order.
fn in_order(leg: &LegRecord) {
    let times = [
        Some(leg.sent_at),
        leg.rang_at,
        leg.answered_at,
        Some(leg.ended_at),
    ];
    let times: Vec<_> = times.into_iter().flatten().collect();
    assert!(times.is_sorted(), "{leg:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leg_that_was_answered_is_kept_with_its_times_and_its_figures() {
    let lab = Lab::new(&[Codec::Pcmu], Script::answer()).await;
    let story = lab
        .call(call_request(vec![
            PlaybackItem::Silence { frames: 5 },
            PlaybackItem::Sound(sound(20)),
        ]))
        .await;
    let [leg] = <[LegRecord; 1]>::try_from(story.legs.clone()).expect("one leg");
    assert_eq!(leg.address, lab.callee.contact());
    assert_eq!((leg.transport, leg.code), (Transport::Udp, Some(200)));
    assert!(leg.rang_at.is_some() && leg.answered_at.is_some());
    in_order(&leg);
    assert_eq!(leg.hung_up_by, Some(Side::Us));
    assert_eq!(
        (leg.media.codec, leg.media.packets_sent),
        (Some(Codec::Pcmu), 25)
    );
    assert_eq!(leg.media.to_play, Duration::from_millis(400));
    assert_eq!(leg.media.played, leg.media.to_play);
    assert!(leg.keys.is_empty());
    let (time, _) = story.talked();
    assert_eq!(leg.ended_at - leg.answered_at.unwrap(), time);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_kept_with_their_times_and_a_message_as_far_as_it_was_played() {
    let lab = Lab::new(&Codec::ALL, Script::press("12#")).await;
    let request = CallRequest {
        talk_time: Duration::from_millis(1500),
        ..call_request(vec![
            PlaybackItem::Keys("5".to_owned()),
            PlaybackItem::Sound(sound(500)),
        ])
    };
    let story = lab.call(request).await;
    let leg = &story.legs[0];
    let keys: String = leg.keys.iter().map(|press| press.key).collect();
    assert_eq!(keys, "12#");
    let times = leg.keys.iter().map(|press| press.at);
    let times = leg.answered_at.into_iter().chain(times);
    assert!(times.collect::<Vec<_>>().is_sorted(), "{leg:?}");
    assert_eq!(leg.media.to_play, Duration::from_secs(10));
    assert!(
        leg.media.played > Duration::ZERO && leg.media.played < Duration::from_secs(5),
        "{leg:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_kept_in_the_words_of_the_network() {
    let mut puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(vec![])).await });
    let invite = puppet.request("INVITE").await;
    let reason = "Reason: SIP;cause=480, Q.850;cause=17;text=\"User \tbusy\"\r\n";
    puppet.respond(&invite, "480 Nobody There", reason).await;
    let story = calling.await.unwrap();
    let leg = &story.legs[0];
    assert_eq!((leg.code, leg.cause), (Some(480), Some(17)));
    assert_eq!(leg.phrase.as_deref(), Some("User busy"));
    assert_eq!(
        (leg.rang_at, leg.answered_at, leg.hung_up_by),
        (None, None, None)
    );
    in_order(leg);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leg_that_we_give_up_is_hung_up_by_us() {
    let lab = Lab::new(&Codec::ALL, Script::never_answer()).await;
    let request = CallRequest {
        ring_time: Duration::from_secs(1),
        ..call_request(vec![])
    };
    let story = lab.call(request).await;
    let leg = &story.legs[0];
    assert_eq!((leg.code, leg.hung_up_by), (Some(487), Some(Side::Us)));
    assert!(leg.rang_at.is_some() && leg.answered_at.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_that_was_tried_has_a_leg() {
    let mut first = Puppet::new().await;
    let (callee, _heard) =
        TestPhone::start(&Supervisor::new(), &callee_config(&Codec::ALL), |_| {
            Script::answer()
        })
        .await
        .unwrap();
    let addresses = [first.address(), callee.contact()];
    let trunk = trunk_of(addresses.to_vec()).await;
    let plan = vec![PlaybackItem::Sound(sound(5))];
    let calling = tokio::spawn(async move { call(&caller(), &trunk, call_request(plan)).await });
    let invite = first.request("INVITE").await;
    first.respond(&invite, "503 Service Unavailable", "").await;
    let story = calling.await.unwrap();
    let legs: Vec<_> = story
        .legs
        .iter()
        .map(|leg| (leg.address, leg.code))
        .collect();
    assert_eq!(legs, [(addresses[0], Some(503)), (addresses[1], Some(200))]);
    assert!(story.legs[0].ended_at <= story.legs[1].sent_at);
}
