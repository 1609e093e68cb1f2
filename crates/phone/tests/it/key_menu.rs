//! What a callee chooses by keys: told once, confirmed only when it is recorded.

use std::time::Duration;

use g711::Codec;
use phone::call::{CallEvent, CallRequest, KeyChoice, KeyMenu};
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::test_phone::Script;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, call_request, next_event, sound};

const MESSAGE: i32 = 400;
const THANKS: i32 = 25;

/// A message of eight seconds after a moment, a question of one, and a wait of one.
fn asked() -> CallRequest {
    CallRequest {
        menu: Some(KeyMenu {
            question: vec![PlaybackItem::Sound(sound(50))],
            wait: Duration::from_secs(1),
            confirm: vec!['1'],
            replay: Some('*'),
            stop: Some('9'),
            thanks: vec![PlaybackItem::Sound(sound(THANKS))],
        }),
        opening: vec![PlaybackItem::Silence { frames: 1 }],
        ..call_request(vec![PlaybackItem::Sound(sound(MESSAGE))])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirming_key_stops_the_message_and_is_thanked_for() {
    let lab = Lab::new(&Codec::ALL, Script::press("1")).await;
    let story = lab.call(asked()).await;
    let course = story.course();
    assert!(
        course.iter().any(|event| event == "Confirmed('1')"),
        "{course:?}"
    );
    let played = story.stats.played;
    assert!(played < Duration::from_secs(7), "{played:?}");
    assert!(
        played >= Duration::from_millis(500),
        "the thanks: {played:?}"
    );
    assert_eq!(story.talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_thanked_for_what_could_not_be_recorded() {
    let lab = Lab::new(&Codec::ALL, Script::press("1")).await;
    let (events, mut happened) = unbounded_channel();
    let telling = tokio::spawn(async move {
        loop {
            if let CallEvent::Chosen(choice, recorded) = next_event(&mut happened).await {
                drop(recorded);
                return choice;
            }
        }
    });
    let never = CancellationToken::new();
    let placed = lab.phone.call(&lab.trunk, &asked(), &events, &never).await;
    assert_eq!(telling.await.unwrap(), KeyChoice::Confirmed('1'));
    let played = placed.media().played;
    let message = Duration::from_secs(8);
    assert!(played < message, "{played:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_presses_the_stop_key_twice_is_let_go() {
    let lab = Lab::new(&Codec::ALL, Script::press("99")).await;
    let story = lab.call(asked()).await;
    let course = story.course();
    assert!(course.iter().any(|event| event == "Stopped"), "{course:?}");
    assert!(story.stats.played < Duration::from_secs(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_played_again() {
    let short = CallRequest {
        plan: vec![PlaybackItem::Sound(sound(100))],
        opening: Vec::new(),
        ..asked()
    };
    let once = Lab::new(&Codec::ALL, Script::answer()).await;
    let once = once.call(short.clone()).await.stats.played;
    assert_eq!(once, Duration::from_secs(3), "message and question");
    let again = Lab::new(&Codec::ALL, Script::press("*")).await;
    let again = again.call(short).await.stats.played;
    assert!(again > once, "{again:?}");
}

/// Its message begins a second after the answer.
fn asked_after_an_opening() -> CallRequest {
    CallRequest {
        opening: vec![PlaybackItem::Silence { frames: 50 }],
        ..asked()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_before_the_message_is_heard_and_chooses_nothing() {
    let lab = Lab::new(&Codec::ALL, Script::press("1")).await;
    let story = lab
        .call(CallRequest {
            plan: vec![PlaybackItem::Sound(sound(50))],
            ..asked_after_an_opening()
        })
        .await;
    let course = story.course();
    assert_eq!(course.last().map(String::as_str), Some("1"), "{course:?}");
    let played = story.stats.played;
    assert!(
        played >= Duration::from_secs(2),
        "message and question: {played:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_count_from_the_first_sample_of_the_message_on() {
    // From the opening until well into the message.
    let lab = Lab::new(&Codec::ALL, Script::press(&"1".repeat(20))).await;
    let story = lab.call(asked_after_an_opening()).await;
    let course = story.course();
    let chosen = course.iter().position(|event| event == "Confirmed('1')");
    let chosen = chosen.unwrap_or_else(|| panic!("{course:?}"));
    let before = course[..chosen].iter().filter(|event| *event == "1");
    assert!(before.count() > 1, "the first do not count: {course:?}");
    assert!(story.stats.played < Duration::from_secs(8));
}
