//! Calls to the softphone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use g711::{Codec, EncodedAudio};
use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::signalling::{Resolver, Signalling, SignallingConfig, TlsFiles, Transport};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use super::Softphone;
use crate::lab::{Story, call, call_request, caller, eventually, loopback, sound};
use crate::transports::Certificates;

async fn trunk(softphone: &Softphone, transport: Transport, tls: TlsFiles) -> Arc<Trunk> {
    let mut config = SignallingConfig::new(transport, loopback());
    config.tls = tls;
    let signalling = Arc::new(
        Signalling::start(&Supervisor::new(), &config, None)
            .await
            .unwrap(),
    );
    let address = match transport {
        Transport::Tls => softphone.tls,
        _ => softphone.plain,
    };
    let config = SipTrunkConfig::new("test", address.into());
    Trunk::start(&Supervisor::new(), config, signalling, Resolver::default())
}

/// A softphone with a certificate for `trunk.example`, and what it takes to believe that.
async fn softphone() -> (Softphone, TlsFiles) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = Certificates::for_name("trunk.example");
    let softphone = Softphone::start(&[made.certificate, made.key].concat(), "").await;
    let tls = TlsFiles {
        authorities: made.authority,
        peer_name: Some("trunk.example".to_owned()),
        own: None,
    };
    (softphone, tls)
}

async fn plain_call(softphone: &Softphone, plan: Vec<PlaybackItem>) -> Story {
    let trunk = trunk(softphone, Transport::Udp, TlsFiles::default()).await;
    call(&caller(), &trunk, call_request(plan)).await
}

/// How alike two sounds are at the place where they are most alike: that place, and 1.0 for the same.
fn likeness(heard: &[i16], played: &[i16]) -> (usize, f64) {
    let at = |place: usize, length: usize| {
        let (mut both, mut ours, mut theirs) = (0.0, 0.0, 0.0);
        for (heard, played) in heard[place..].iter().zip(&played[..length]) {
            let (heard, played) = (f64::from(*heard), f64::from(*played));
            both += heard * played;
            ours += played * played;
            theirs += heard * heard;
        }
        both / (ours * theirs).sqrt().max(1.0)
    };
    let room = heard.len().saturating_sub(played.len());
    let best = (0..=room)
        .max_by(|left, right| at(*left, 400).total_cmp(&at(*right, 400)))
        .unwrap();
    (best, at(best, played.len()))
}

fn samples(sound: &EncodedAudio) -> Vec<i16> {
    let bytes = sound.bytes(Codec::Pcma).iter();
    bytes.map(|byte| Codec::Pcma.decode(*byte)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_softphone_hears_what_was_played_over_every_transport() {
    for transport in Transport::ALL {
        let (softphone, tls) = softphone().await;
        let trunk = trunk(&softphone, transport, tls).await;
        // Its jitter buffer gives a packet out when another one comes: what is last in a call is not heard by it.
        let plan = vec![
            PlaybackItem::Silence { frames: 10 },
            PlaybackItem::Sound(sound(50)),
            PlaybackItem::Silence { frames: 15 },
        ];
        let story = call(&caller(), &trunk, call_request(plan)).await;
        assert_eq!(story.stats.packets_sent, 75, "{transport}: {story:?}");
        assert_eq!(story.talked().1, Side::Us);
        let heard = softphone.heard().await;
        let (place, alike) = likeness(&heard, &samples(&sound(50)));
        assert!(alike > 0.99, "{transport}: {alike}, from sample {place}");
        assert!(
            (60 * 160..=75 * 160).contains(&heard.len()),
            "{transport}: {} samples",
            heard.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_softphone_with_a_wrong_certificate_is_refused() {
    let (softphone, tls) = softphone().await;
    let stranger = Certificates::for_name("trunk.example").authority;
    let wrong_authority = TlsFiles {
        authorities: stranger,
        ..tls.clone()
    };
    let wrong_name = TlsFiles {
        peer_name: Some("other.example".to_owned()),
        ..tls
    };
    for tls in [wrong_authority, wrong_name] {
        let trunk = trunk(&softphone, Transport::Tls, tls).await;
        let story = call(&caller(), &trunk, call_request(vec![])).await;
        assert_eq!(story.cause(), Cause::TransportDown);
    }
    assert!(softphone.happened("CALL_INCOMING").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_softphone_hears_our_keys() {
    let (softphone, _) = softphone().await;
    let plan = vec![
        PlaybackItem::Silence { frames: 10 },
        PlaybackItem::Keys("36*7#0".to_owned()),
        PlaybackItem::Silence { frames: 10 },
    ];
    plain_call(&softphone, plan).await.talked();
    let keys = softphone.happened("CALL_DTMF_START");
    assert_eq!(keys.concat(), "36*7#0", "{}", softphone.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn we_hear_the_keys_of_the_softphone() {
    let (mut softphone, _) = softphone().await;
    let trunk = trunk(&softphone, Transport::Udp, TlsFiles::default()).await;
    let (phone, request) = (
        caller(),
        call_request(vec![PlaybackItem::Silence { frames: 150 }]),
    );
    let calling = async { call(&phone, &trunk, request).await };
    let pressing = async {
        softphone.wait_for("CALL_ESTABLISHED").await;
        softphone.command("sndcode", "12#").await;
    };
    let (story, ()) = tokio::join!(calling, pressing);
    assert_eq!(
        story.course().split_off(story.course().len() - 3),
        ["1", "2", "#"],
        "{story:?}\n{}",
        softphone.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_softphone_holds_and_resumes() {
    let (mut softphone, _) = softphone().await;
    let trunk = trunk(&softphone, Transport::Udp, TlsFiles::default()).await;
    let (phone, request) = (caller(), call_request(vec![PlaybackItem::Sound(sound(75))]));
    let calling = async { call(&phone, &trunk, request).await };
    let holding = async {
        softphone.wait_for("CALL_ESTABLISHED").await;
        softphone.command("hold", "").await;
        let held = Instant::now();
        eventually("a moment passes", || {
            held.elapsed() > Duration::from_secs(2)
        })
        .await;
        softphone.command("resume", "").await;
    };
    let (story, ()) = tokio::join!(calling, holding);
    assert_eq!(story.stats.packets_sent, 75, "{}", softphone.log());
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    assert!(time > Duration::from_millis(75 * 20 + 1200), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_softphone_hangs_up() {
    let (mut softphone, _) = softphone().await;
    let trunk = trunk(&softphone, Transport::Tcp, TlsFiles::default()).await;
    let (phone, request) = (
        caller(),
        call_request(vec![PlaybackItem::Sound(sound(1000))]),
    );
    let calling = async { call(&phone, &trunk, request).await };
    let hanging_up = async {
        softphone.wait_for("CALL_ESTABLISHED").await;
        softphone.command("hangup", "").await;
    };
    let (story, ()) = tokio::join!(calling, hanging_up);
    assert_eq!(story.talked().1, Side::Them);
}
