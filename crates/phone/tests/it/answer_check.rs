//! Who answers, by what is heard on the line: a person, a machine, or the network.

use std::time::Duration;

use g711::Codec;
use phone::call::{CallRequest, MachineAction};
use phone::ending::{Cause, Side};
use phone::leg_record::HeardLine;
use phone::media::ears::{Answerer, LineTone};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{LineSound, Script};

use crate::lab::{Lab, Story, call_request, sound};

const MESSAGE: i32 = 50;
const OPENING: u32 = 25;

fn asking(machine: MachineAction) -> CallRequest {
    CallRequest {
        opening: vec![PlaybackItem::Silence { frames: OPENING }],
        machine: Some(machine),
        ..call_request(vec![PlaybackItem::Sound(sound(MESSAGE))])
    }
}

fn heard(story: &Story) -> HeardLine {
    let leg = story.legs.last().expect("a leg");
    leg.heard.expect("somebody has listened")
}

async fn told(machine: MachineAction, says: &LineSound) -> (Story, Vec<u8>) {
    let mut lab = Lab::new(&Codec::ALL, Script::say(says)).await;
    let story = lab.call(asking(machine)).await;
    let sound = lab.heard().await.sound();
    (story, sound)
}

fn has_message(heard: &[u8]) -> bool {
    let message = sound(MESSAGE);
    let message = message.bytes(Codec::Pcma);
    heard.windows(message.len()).any(|part| *part == **message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_hears_the_message_after_a_word() {
    for machine in [MachineAction::HangUp, MachineAction::SpeakAfterBeep] {
        let (story, sound) = told(machine, &LineSound::person()).await;
        let line = heard(&story);
        assert_eq!(line.answered_by, Some(Answerer::Human), "{machine:?}");
        assert_eq!(line.tone, None);
        assert!(line.after < Duration::from_secs(4), "{line:?}");
        assert!(has_message(&sound), "{machine:?}");
        assert_eq!(story.talked().1, Side::Us);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_says_nothing_counts_as_a_person_after_a_while() {
    let (story, sound) = told(MachineAction::HangUp, &LineSound::default().silence(20)).await;
    let line = heard(&story);
    assert_eq!(line.answered_by, Some(Answerer::Human));
    assert_eq!(line.after, Duration::from_secs(4));
    assert!(has_message(&sound));
    assert!(story.talked().0 >= Duration::from_secs(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_is_hung_up_on() {
    let (story, sound) = told(MachineAction::HangUp, &LineSound::machine()).await;
    assert_eq!(heard(&story).answered_by, Some(Answerer::Machine));
    assert!(!has_message(&sound));
    assert_eq!(story.stats.played, Duration::ZERO);
    assert_eq!(story.talked().1, Side::Us);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_gets_the_message_after_its_beep() {
    let (story, sound) = told(MachineAction::SpeakAfterBeep, &LineSound::machine()).await;
    assert_eq!(heard(&story).answered_by, Some(Answerer::Machine));
    assert!(has_message(&sound));
    // The greeting, the pause and the beep come first.
    assert!(story.talked().0 >= Duration::from_millis(300 + 5000 + 600 + 500));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_only_reported_hears_the_message_at_once() {
    let greeting = LineSound::machine();
    let mut lab = Lab::new(&Codec::ALL, Script::say(&greeting)).await;
    let request = CallRequest {
        plan: vec![PlaybackItem::Sound(sound(250))],
        ..asking(MachineAction::Report)
    };
    let story = lab.call(request).await;
    assert_eq!(heard(&story).answered_by, Some(Answerer::Machine));
    assert_eq!(story.stats.played, Duration::from_secs(5));
    let silence = OPENING as usize * g711::FRAME_BYTES;
    let heard = lab.heard().await.sound();
    assert_eq!(
        heard[silence..][..160],
        sound(250).bytes(Codec::Pcma)[..160]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_switchboard_says_before_the_keys_of_an_extension_does_not_count() {
    let switchboard = LineSound::default().voice(2800).silence(5000);
    let lab = Lab::new(&Codec::ALL, Script::say(&switchboard)).await;
    let story = lab.call(asking(MachineAction::HangUp)).await;
    assert_eq!(heard(&story).answered_by, Some(Answerer::Machine));
    let with_keys = CallRequest {
        opening: vec![
            PlaybackItem::Silence { frames: 60 },
            PlaybackItem::Keys("12".to_owned()),
            PlaybackItem::Silence { frames: 10 },
        ],
        ..asking(MachineAction::HangUp)
    };
    let story = lab.call(with_keys).await;
    assert_eq!(heard(&story).answered_by, Some(Answerer::Human));
    assert_eq!(story.stats.played, Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_over_before_anything_is_known_says_so() {
    let script = Script {
        then: phone::test_phone::Then::Answer {
            after: Duration::ZERO,
            hang_up: Some(Duration::from_millis(400)),
            keys: String::new(),
        },
        ..Script::say(&LineSound::person())
    };
    let lab = Lab::new(&Codec::ALL, script).await;
    let story = lab.call(asking(MachineAction::HangUp)).await;
    assert_eq!(heard(&story).answered_by, Some(Answerer::Unknown));
    assert_eq!(story.talked().1, Side::Them);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_tone_after_the_answer_ends_the_call_of_whoever_waits_for_somebody() {
    for machine in [MachineAction::SpeakAfterBeep, MachineAction::HangUp] {
        let lab = Lab::new(&Codec::ALL, Script::say(&LineSound::busy(30))).await;
        let request = CallRequest {
            plan: vec![PlaybackItem::Sound(sound(500))],
            ..asking(machine)
        };
        let story = lab.call(request).await;
        let line = heard(&story);
        assert_eq!(line.tone, Some(LineTone::Busy), "{machine:?}");
        assert_eq!(line.answered_by, Some(Answerer::Unknown));
        let (talked, by) = story.talked();
        assert!(talked < Duration::from_secs(8), "{talked:?}");
        assert_eq!(by, Side::Us);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_only_reported_a_tone_changes_nothing() {
    let lab = Lab::new(&Codec::ALL, Script::say(&LineSound::busy(30))).await;
    let request = CallRequest {
        plan: vec![PlaybackItem::Sound(sound(500))],
        ..asking(MachineAction::Report)
    };
    let story = lab.call(request).await;
    assert_eq!(heard(&story).tone, Some(LineTone::Busy));
    assert_eq!(story.stats.played, Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_tone_before_the_answer_is_not_listened_to_for_ever() {
    let lab = Lab::new(&Codec::ALL, Script::of_number("0017")).await;
    let story = lab.call(asking(MachineAction::Report)).await;
    assert_eq!(heard(&story).tone, Some(LineTone::Busy));
    assert_eq!(heard(&story).answered_by, None);
    assert_eq!(story.cause(), Cause::Busy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announcement_before_a_refusal_is_noted() {
    let lab = Lab::new(&Codec::ALL, Script::of_number("0018")).await;
    let story = lab.call(asking(MachineAction::Report)).await;
    assert_eq!(heard(&story).tone, Some(LineTone::Announcement));
    let failure = story.failure();
    assert_eq!(failure.response.map(|(code, _)| code), Some(480));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_listens_unless_it_was_asked_for() {
    let lab = Lab::new(&Codec::ALL, Script::say(&LineSound::busy(4))).await;
    let story = lab
        .call(call_request(vec![PlaybackItem::Sound(sound(MESSAGE))]))
        .await;
    assert_eq!(story.legs[0].heard, None);
}
