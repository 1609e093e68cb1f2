//! What is played is heard, and every limit is kept.

use std::time::Duration;

use g711::Codec;
use phone::call::{CallRequest, MediaOptions};
use phone::ending::{Cause, Side};
use phone::media::engine::{Encryption, HeardKeys};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{KeyForm, Script};

use crate::lab::{Lab, call, call_request, sound};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_to_be_played_is_heard_to_the_last_sample() {
    for (codecs, codec) in [
        (&[Codec::Pcma][..], Codec::Pcma),
        (&[Codec::Pcmu], Codec::Pcmu),
    ] {
        let mut lab = Lab::new(codecs, Script::answer()).await;
        let sound = sound(50);
        let plan = vec![
            PlaybackItem::Silence { frames: 25 },
            PlaybackItem::Sound(sound.clone()),
            PlaybackItem::Silence { frames: 5 },
            PlaybackItem::Sound(sound.clone()),
        ];
        let story = lab.call(call_request(plan)).await;
        assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
        assert_eq!(
            (story.stats.packets_sent, story.stats.codec),
            (130, Some(codec))
        );
        let (time, side) = story.talked();
        assert_eq!(side, Side::Us);
        assert!(time >= Duration::from_millis(129 * 20 + 300), "{time:?}");
        let heard = lab.heard().await;
        assert_eq!(
            (heard.lost(), heard.packets.len(), heard.hung_up_by),
            (0, 130, Some(Side::Them))
        );
        let silence = |frames: usize| vec![codec.silence(); frames * 160];
        let bytes = sound.bytes(codec).to_vec();
        assert_eq!(
            heard.sound(),
            [silence(25), bytes.clone(), silence(5), bytes].concat()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_is_dialled_before_the_sound() {
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let plan = vec![
        PlaybackItem::Silence { frames: 5 },
        PlaybackItem::Keys("36*7".to_owned()),
        PlaybackItem::Sound(sound(5)),
    ];
    lab.call(call_request(plan)).await.talked();
    assert_eq!(lab.heard().await.keys, "36*7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_the_callee_are_heard() {
    let lab = Lab::new(&Codec::ALL, Script::press("12#")).await;
    let story = lab
        .call(call_request(vec![PlaybackItem::Silence { frames: 75 }]))
        .await;
    assert_eq!(
        story.course(),
        ["dialling", "ringing", "answered", "1", "2", "#"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_a_callee_without_telephone_event_are_heard_in_its_sound() {
    for (codec, key_form, heard) in [
        (Codec::Pcma, KeyForm::Tones, &["1", "1", "#"][..]),
        (Codec::Pcmu, KeyForm::Tones, &["1", "1", "#"]),
        // With packets agreed on, nobody listens.
        (Codec::Pcma, KeyForm::TonesAllTheSame, &[]),
    ] {
        let script = Script {
            key_form,
            ..Script::press("11#")
        };
        let lab = Lab::new(&[codec], script).await;
        let story = lab
            .call(call_request(vec![PlaybackItem::Sound(sound(75))]))
            .await;
        let expected = [&["dialling", "ringing", "answered"], heard].concat();
        assert_eq!(story.course(), expected, "{codec:?} {key_form:?}");
        assert!(story.stats.packets_received > 30, "{:?}", story.stats);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_in_the_sound_are_not_listened_to_where_the_trunk_does_not_want_it() {
    let script = Script {
        key_form: KeyForm::Tones,
        ..Script::press("12")
    };
    let lab = Lab::new(&Codec::ALL, script).await;
    let trunk = lab
        .trunk_with(MediaOptions {
            heard_keys: HeardKeys::Packets,
            ..MediaOptions::default()
        })
        .await;
    let plan = vec![PlaybackItem::Silence { frames: 60 }];
    let story = call(&lab.phone, &trunk, call_request(plan)).await;
    assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callee_hangs_up_in_the_middle() {
    let lab = Lab::new(
        &Codec::ALL,
        Script::hang_up_after(Duration::from_millis(300)),
    )
    .await;
    let story = lab
        .call(call_request(vec![PlaybackItem::Sound(sound(500))]))
        .await;
    assert!(story.stats.packets_sent < 500, "{story:?}");
    assert_eq!(story.talked().1, Side::Them);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_not_answered_in_time_is_given_up() {
    let lab = Lab::new(&Codec::ALL, Script::never_answer()).await;
    let story = lab
        .call(CallRequest {
            ring_time: Duration::from_secs(1),
            ..call_request(vec![])
        })
        .await;
    assert_eq!(story.course(), ["dialling", "ringing"]);
    let failure = story.failure();
    assert_eq!((failure.cause, failure.rang), (Cause::NoAnswer, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_talk_time_is_kept() {
    let lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let story = lab
        .call(CallRequest {
            talk_time: Duration::from_millis(200),
            ..call_request(vec![PlaybackItem::Sound(sound(500))])
        })
        .await;
    assert!(story.stats.packets_sent < 500, "{story:?}");
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    assert!(time >= Duration::from_millis(200), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_common_codec_the_call_is_refused_as_bad_media() {
    let lab = Lab::new(&[Codec::Pcmu], Script::answer()).await;
    let trunk = lab
        .trunk_with(MediaOptions {
            codecs: vec![Codec::Pcma],
            ..MediaOptions::default()
        })
        .await;
    let story = call(&lab.phone, &trunk, call_request(vec![])).await;
    assert_eq!(story.cause(), Cause::BadMedia);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_call_is_heard_to_the_last_sample() {
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let trunk = lab
        .trunk_with(MediaOptions {
            encryption: Encryption::Sdes,
            ..MediaOptions::default()
        })
        .await;
    let story = call(
        &lab.phone,
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(50))]),
    )
    .await;
    assert!(story.stats.encrypted);
    story.talked();
    assert_eq!(
        lab.heard().await.sound(),
        sound(50).bytes(Codec::Pcma).to_vec()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_media_is_listened_to_and_nothing_is_played_into_it() {
    let script = Script {
        early_media: Some(Script::ringing_tone()),
        ..Script::answer_after(Duration::from_millis(500))
    };
    let mut lab = Lab::new(&Codec::ALL, script).await;
    let story = lab
        .call(call_request(vec![PlaybackItem::Sound(sound(10))]))
        .await;
    assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
    story.talked();
    let heard = lab.heard().await;
    assert_eq!(heard.sound(), sound(10).bytes(Codec::Pcma).to_vec());
}
