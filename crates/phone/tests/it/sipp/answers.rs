//! Calls that SIPp answers.

use std::time::Duration;

use phone::call::CallRequest;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::signalling::{Resolver, Transport};
use phone::test_phone::{Script, TestPhone};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use super::Play;
use super::relay::{Relay, Weather};
use crate::lab::{call, call_request, callee_config, caller, signalling, sound, trunk, trunk_to};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_early_media_is_answered_and_hung_up_by_us() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let sipp = Play::new("answer").over(transport).start().await;
        let trunk = Trunk::start(
            &Supervisor::new(),
            SipTrunkConfig::new("test", sipp.address.into()),
            signalling(transport).await,
            Resolver::default(),
        );
        let story = call(
            &caller(),
            &trunk,
            call_request(vec![PlaybackItem::Sound(sound(10))]),
        )
        .await;
        assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
        assert_eq!(story.stats.packets_sent, 10);
        assert_eq!(story.talked().1, Side::Us);
        sipp.end_satisfied().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_hung_up_by_them() {
    // Over TCP it comes back on the connection that we have opened, between pings of ours.
    for transport in [Transport::Udp, Transport::Tcp] {
        let sipp = Play::new("hang_up").over(transport).start().await;
        let config = SipTrunkConfig {
            keep_alive: Some(Duration::from_millis(20)),
            ..SipTrunkConfig::new("test", sipp.address.into())
        };
        let trunk = Trunk::start(
            &Supervisor::new(),
            config,
            signalling(transport).await,
            Resolver::default(),
        );
        let story = call(
            &caller(),
            &trunk,
            call_request(vec![PlaybackItem::Sound(sound(500))]),
        )
        .await;
        assert!(story.stats.packets_sent < 500, "{story:?}");
        assert_eq!(story.talked().1, Side::Them);
        trunk.stop();
        sipp.end_satisfied().await;
    }
}

async fn through(weather: Weather) -> Relay {
    let mut relay = Relay::new().await;
    let sipp = Play::new("answer")
        .key("contact", relay.address)
        .key("linger", 3000)
        .start()
        .await;
    relay.carry(sipp.address, weather);
    let trunk = trunk_to(relay.address).await;
    // Long enough for the last ACK to be there before the first BYE, whatever is lost.
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(100))]),
    )
    .await;
    assert_eq!(story.stats.packets_sent, 100);
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
    relay
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_survives_that_every_message_is_lost_once() {
    let relay = through(Weather::LosesEveryMessageOnce).await;
    // Each 200 that got through was acknowledged.
    let answers = relay.count("200 1 INVITE") - 1;
    assert_eq!(relay.count("ACK 1 ACK"), answers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_survives_that_every_message_comes_twice() {
    let relay = through(Weather::DoublesEveryMessage).await;
    assert_eq!(
        relay.count("ACK 1 ACK"),
        2 * relay.count("200 1 INVITE"),
        "each answer is acknowledged"
    );
    assert_eq!(relay.count("BYE 2 BYE"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ringing_that_must_be_confirmed_is_confirmed() {
    let sipp = Play::new("reliable").start().await;
    let trunk = trunk_to(sipp.address).await;
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(10))]),
    )
    .await;
    assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_that_want_to_see_what_follows_are_passed_in_order() {
    let sipp = Play::new("two_proxies").start().await;
    let trunk = trunk_to(sipp.address).await;
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(10))]),
    )
    .await;
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_of_sipp_is_followed_where_that_is_allowed() {
    let (callee, _heard) = TestPhone::start(
        &Supervisor::new(),
        &callee_config(&g711::Codec::ALL),
        |_| Script::answer(),
    )
    .await
    .unwrap();
    let sipp = Play::new("refuse")
        .key("code", 302)
        .key("phrase", "Moved Temporarily")
        .key(
            "header",
            format!("Contact: <sip:1@{}>;q=0.5", callee.contact()),
        )
        .start()
        .await;
    let trunk = trunk(SipTrunkConfig {
        follow_redirects: true,
        ..SipTrunkConfig::new("test", sipp.address.into())
    })
    .await;
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(10))]),
    )
    .await;
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_longer_session_is_agreed_to() {
    let sipp = Play::new("longer_session").calls(2).start().await;
    let trunk = trunk(SipTrunkConfig {
        session_interval: Some(Duration::from_secs(120)),
        ..SipTrunkConfig::new("test", sipp.address.into())
    })
    .await;
    let story = call(
        &caller(),
        &trunk,
        CallRequest {
            ring_time: Duration::from_secs(5),
            ..call_request(vec![PlaybackItem::Sound(sound(10))])
        },
    )
    .await;
    assert_eq!(story.course(), ["dialling", "dialling", "answered"]);
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}
