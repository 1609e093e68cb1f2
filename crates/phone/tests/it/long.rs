//! One long message: exact to the last sample, on a clock that does not drift.

use std::time::Duration;

use g711::Codec;
use phone::call::CallRequest;
use phone::media::stream::PlaybackItem;
use phone::test_phone::Script;

use crate::lab::{Lab, call_request, sound};

/// `LONG_MINUTES` asks for a longer message than the quick run's ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_message_is_exact_and_does_not_drift() {
    let minutes: Option<u32> = std::env::var("LONG_MINUTES")
        .ok()
        .and_then(|minutes| minutes.parse().ok());
    let seconds = minutes.map_or(10, |minutes| minutes * 60);
    // A sound of ten seconds, time and again: every second of it differs from the others.
    let piece = sound(500);
    let plan = vec![PlaybackItem::Sound(piece.clone()); seconds as usize / 10];
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let request = CallRequest {
        talk_time: Duration::from_secs(u64::from(seconds) + 60),
        ..call_request(plan)
    };
    lab.call_within(Duration::from_secs(u64::from(seconds) + 60), request)
        .await
        .talked();
    let heard = lab.heard().await;
    let timing = heard.timing();
    println!("{timing:?}");
    assert_eq!(timing.lost, 0);
    let expected = piece.bytes(Codec::Pcma).repeat(seconds as usize / 10);
    assert!(heard.sound() == expected, "something else was heard");
    // A machine that is stopped for a while now and then makes the shortest runs inexact; the long one has minutes to level that.
    let allowed = if minutes.is_some() { 50.0 } else { 1000.0 };
    assert!(timing.drift_ppm.abs() < allowed, "{timing:?}");
}
