//! Keys that SIPp tells by SIP INFO, and keys that it lets hear as tones.

use std::time::{Duration, Instant};

use phone::call::CallRequest;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use tokio_util::sync::CancellationToken;

use super::{Play, Sipp};
use crate::lab::{Story, call_request, call_telling, caller, sound, trunk_to};

/// Requests of SIPp, each with its type and its body. All of them must be answered with 200.
fn infos(bodies: &[(&str, &str)]) -> String {
    let requests = bodies.iter().zip(1..).map(|((kind, body), number)| {
        format!(
            "  <send retrans=\"500\">\n<![CDATA[\nINFO [$target] SIP/2.0\n{{dialog}}\nCSeq: {number} INFO\nContent-Type: {kind}\nContent-Length: [len]\n\n{body}\n]]>\n</send>\n\
             <recv response=\"200\"/>\n"
        )
    });
    requests.collect()
}

fn long_message() -> CallRequest {
    call_request(vec![PlaybackItem::Sound(sound(1500))])
}

/// A call that is up until SIPp has said its last word, and lets it begin after this event. With the moment of that.
async fn call_until_told(sipp: &Sipp, begins: &str, last: &str) -> (Story, Instant) {
    let trunk = trunk_to(sipp.address).await;
    let (phone, stop) = (caller(), CancellationToken::new());
    let (happened, mut first) = tokio::sync::mpsc::unbounded_channel();
    let calling = call_telling(&phone, &trunk, long_message(), &stop, |event| {
        if event == begins {
            let _ = happened.send(Instant::now());
        }
    });
    let telling = async {
        let began = first.recv().await.unwrap();
        // An answer is acknowledged after it was told.
        sipp.has("received ACK 1 ACK").await;
        sipp.go_on();
        sipp.has(last).await;
        stop.cancel();
        began
    };
    tokio::join!(calling, telling)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_heard_from_sipp_that_tells_them_by_info() {
    let told = [
        ("application/dtmf-relay", "Signal=5\nDuration=160"),
        ("application/dtmf-relay", "Signal= *\nDuration= 250"),
        ("application/dtmf-relay", "Signal=11\nDuration=100"),
        ("application/dtmf", "7"),
        ("application/dtmf", "Signal=0"),
        // The same key again is another press.
        ("application/dtmf", "0"),
        ("application/dtmf-relay", "Duration=160"),
        ("application/dtmf", "1234"),
        ("text/plain", "9"),
    ];
    let sipp = Play::new("keys")
        .key("sound", "")
        .key("infos", infos(&told))
        .start()
        .await;
    let (story, _) = call_until_told(&sipp, "answered", "received 200 9 INFO").await;
    let heard = ["dialling", "answered", "5", "*", "#", "7", "0", "0"];
    assert_eq!(story.events, heard);
    let leg = story.legs.last().unwrap();
    let kept: String = leg.keys.iter().map(|press| press.key).collect();
    assert_eq!(kept, "5*#700");
    let (answered, ended) = (leg.answered_at.unwrap(), leg.ended_at);
    assert!((leg.keys.iter()).all(|press| answered <= press.at && press.at <= ended));
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}

/// One key as a tone of 100 ms, as a file that SIPp plays, and silence around it.
pub fn tone(low: f64, high: f64, silence: usize) -> Vec<u8> {
    let sample = |index: i32| {
        let wave = |hertz: f64| (f64::from(index) * hertz * std::f64::consts::TAU / 8000.0).sin();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "two waves of 8000 are no more than 16000"
        )]
        let sample = (8000.0 * (wave(low) + wave(high))) as i16;
        g711::Codec::Pcma.encode(sample)
    };
    let silence = vec![g711::Codec::Pcma.silence(); silence];
    let tone: Vec<u8> = (0..800).map(sample).collect();
    [&silence[..], &tone, &silence].concat()
}

/// Plays the file `sound` so many times, or for ever (-1).
pub fn playing(times: i32) -> String {
    format!("<nop><action><exec rtp_stream=\"sound,{times},8\"/></action></nop>\n")
}

/// The description of a SIPp that plays, and does not take telephone-event.
pub fn speaking() -> String {
    super::description()
        .replace("{rtp}", "[rtpstream_audio_port]")
        .replace(" 101\na=rtpmap:101 telephone-event/8000", "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_sipp_lets_hear_and_tells_by_info_counts_once() {
    let told = [
        ("application/dtmf-relay", "Signal=5\nDuration=100"),
        ("application/dtmf-relay", "Signal=6\nDuration=100"),
    ];
    // A machine that is busy for more than a second in that moment makes two presses of it.
    for _ in 0..10 {
        let sipp = Play::new("keys")
            .key("sdp", speaking())
            .key("sound", playing(1))
            .file("sound", tone(770.0, 1336.0, 1600))
            .key("infos", infos(&told))
            .start()
            .await;
        let (story, began) = call_until_told(&sipp, "5", "received 200 2 INFO").await;
        let leg = story.legs.last().unwrap();
        let last = leg.keys.last().unwrap().at;
        assert!(story.stats.packets_received >= 5, "{story:?}");
        sipp.end_satisfied().await;
        if last.duration_since(began) < Duration::from_millis(500) {
            assert_eq!(story.events, ["dialling", "answered", "5", "6"]);
            return;
        }
    }
    panic!("the machine is too busy");
}
