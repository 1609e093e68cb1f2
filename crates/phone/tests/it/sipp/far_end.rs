//! SIPp dies in mid-call, or only looks as if it had: real processes, ports that are really closed, sound that really stops.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phone::call::CallRequest;
use phone::ending::Side;
use phone::leg_record::WhyHungUp;
use phone::media::stream::PlaybackItem;
use phone::signalling::{Direction, Resolver, Signalling, SignallingConfig, Trace, Transport};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::keys::{playing, speaking, tone};
use super::play::name;
use super::{Play, Sipp};
use crate::far_end::{LONG_QUIET, QUIET, is_billed_to_its_last_sign, long_message};
use crate::lab::{PATIENCE, Story, call_request, call_telling, caller, loopback, sound};

/// A SIPp that is asked whether it is there, and what we say to it.
struct Questioned {
    sipp: Sipp,
    trunk: Arc<Trunk>,
    sent: UnboundedReceiver<(String, Instant)>,
}

/// Its response to each question. It waits for the next one in the same step: what comes between two steps is not expected.
fn says(status: &str) -> String {
    format!(
        "  <send next=\"waits\">\n<![CDATA[\nSIP/2.0 {status}\n{{inside}}\n{{empty}}\n]]>\n</send>\n"
    )
}

/// Its response to the BYE.
fn ends(status: &str) -> String {
    says(status).replace(" next=\"waits\"", "")
}

const NOTHING: &str = "  <nop next=\"waits\"/>\n";

/// One key, with so many samples of silence before and after it.
const SILENCE: usize = 1600;
/// SIPp, that plays its key so many times (-1 is for ever).
fn speaker(times: i32) -> Play<'static> {
    Play::new("questioned")
        .key("sdp", speaking())
        .key("sound", playing(times))
        .file("sound", tone(770.0, 1336.0, SILENCE))
}

fn silent() -> Play<'static> {
    Play::new("questioned").key("sound", "")
}

impl Questioned {
    async fn new(play: Play<'_>, quiet_after: Duration) -> Self {
        let sipp = play.start().await;
        let (saw, sent) = unbounded_channel();
        let supervisor = Supervisor::new();
        let signalling = SignallingConfig {
            trace: Some(Trace::new(move |message| {
                if message.direction == Direction::Sent {
                    let _ = saw.send((name(&message.text), Instant::now()));
                }
            })),
            ..SignallingConfig::new(Transport::Udp, loopback())
        };
        let signalling = Signalling::start(&supervisor, &signalling, None);
        let mut config = SipTrunkConfig::new("test", sipp.address.into());
        config.media.quiet_after = Some(quiet_after);
        let trunk = Trunk::start(
            &supervisor,
            config,
            Arc::new(signalling.await.unwrap()),
            Resolver::default(),
        );
        Self { sipp, trunk, sent }
    }

    /// A call to it, and what is done meanwhile. The keys that are heard are told to that.
    async fn call<T>(
        &mut self,
        request: CallRequest,
        meanwhile: impl AsyncFnOnce(&mut Self, &mut UnboundedReceiver<String>) -> T,
    ) -> (Story, T) {
        let (trunk, phone) = (Arc::clone(&self.trunk), caller());
        let (heard, mut keys) = unbounded_channel();
        let never = CancellationToken::new();
        let calling = call_telling(&phone, &trunk, request, &never, |event| {
            if event.len() == 1 {
                let _ = heard.send(event.to_owned());
            }
        });
        let calling = tokio::time::timeout(2 * PATIENCE, calling);
        let (story, told) = tokio::join!(calling, meanwhile(self, &mut keys));
        (story.expect("the call ends in time"), told)
    }

    /// Our next message, and its moment.
    async fn sends(&mut self) -> (String, Instant) {
        let sent = tokio::time::timeout(PATIENCE, self.sent.recv()).await;
        sent.expect("we say something in time").unwrap()
    }

    /// Waits until it is asked whether it is there.
    async fn is_asked(&mut self) {
        while !self.sends().await.0.starts_with("OPTIONS") {}
    }

    /// It is hung up on, after so many questions in vain. When its answer was acknowledged, and when the first of these questions was asked. On
    /// a busy machine there may have been others before, in mid-speech.
    async fn is_given_up(&mut self, after: usize) -> (Instant, Instant) {
        let (mut acknowledged, mut questions) = (None, Vec::new());
        loop {
            let (name, at) = self.sends().await;
            match name.split(' ').next() {
                Some("ACK") => acknowledged = acknowledged.or(Some(at)),
                // Not its repetitions.
                Some("OPTIONS") if questions.last().is_none_or(|(last, _)| *last != name) => {
                    questions.push((name, at));
                }
                Some("BYE") => break,
                _ => {}
            }
        }
        let first = questions.len().checked_sub(after);
        let first = first.unwrap_or_else(|| panic!("it was asked {} times", questions.len()));
        (acknowledged.unwrap(), questions[first].1)
    }
}

/// It was there for more than that after the ACK, with which it began to speak; and the message was not played to its end. How long SIPp speaks is
/// no measure: on a busy machine it hurries.
fn was_there_for(story: &Story, least: Duration, acknowledged: Instant) {
    let time = story.legs.last().unwrap().ended_at - acknowledged;
    assert!(time > least, "{time:?}: {story:?}");
    assert!(story.stats.packets_sent < 3000, "{story:?}");
    println!(
        "it was there for {time:?}; heard {} packets, sent {} until it was known",
        story.stats.packets_received, story.stats.packets_sent
    );
}

/// All that is left of a far end that is gone is silence, so they are waited for together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sipp_that_dies_in_mid_call_was_there_until_its_last_sign_of_life() {
    tokio::join!(
        one_that_is_killed_while_it_speaks(),
        one_that_falls_silent_and_answers_nothing(),
        one_that_has_answered_before_is_asked_once_more(),
        one_that_never_spoke_and_has_closed_its_port(),
        of_one_that_never_spoke_and_answers_nothing_nobody_knows(),
    );
}

async fn one_that_is_killed_while_it_speaks() {
    let play = speaker(-1).key("response", NOTHING).key("last word", "");
    let mut far = Questioned::new(play, QUIET).await;
    let dies = async |far: &mut Questioned, keys: &mut UnboundedReceiver<String>| {
        // The second time that its key is heard it has spoken for a while.
        for _ in 0..2 {
            assert_eq!(keys.recv().await.unwrap(), "5");
        }
        far.sipp.kill().await;
        far.is_given_up(2).await
    };
    let (story, (acknowledged, asked)) = far.call(long_message(), dies).await;
    was_there_for(&story, Duration::ZERO, acknowledged);
    assert!(story.stats.packets_received > 25, "{story:?}");
    is_billed_to_its_last_sign(story, QUIET, asked);
}

async fn one_that_falls_silent_and_answers_nothing() {
    let play = speaker(1).key("response", NOTHING).key("last word", "");
    let mut far = Questioned::new(play, QUIET).await;
    let dies =
        async |far: &mut Questioned, _: &mut UnboundedReceiver<String>| far.is_given_up(2).await;
    let (story, (acknowledged, asked)) = far.call(long_message(), dies).await;
    was_there_for(&story, Duration::ZERO, acknowledged);
    assert_eq!(story.stats.packets_received, 25, "{story:?}");
    is_billed_to_its_last_sign(story, QUIET, asked);
    // It has got all of that.
    far.sipp.end_satisfied().await;
}

async fn one_that_has_answered_before_is_asked_once_more() {
    let mut far = Questioned::new(Play::new("leaves"), QUIET).await;
    let leaves =
        async |far: &mut Questioned, _: &mut UnboundedReceiver<String>| far.is_given_up(1).await;
    let (story, (acknowledged, asked)) = far.call(long_message(), leaves).await;
    // It was there when it was asked.
    was_there_for(&story, QUIET, acknowledged);
    is_billed_to_its_last_sign(story, QUIET, asked);
    far.sipp.end_satisfied().await;
}

async fn one_that_never_spoke_and_has_closed_its_port() {
    // Nobody listens where it wants its sound: what comes back is ICMP.
    let play = silent().key("response", NOTHING).key("last word", "");
    let mut far = Questioned::new(play, LONG_QUIET).await;
    let began = Instant::now();
    let dies =
        async |far: &mut Questioned, _: &mut UnboundedReceiver<String>| far.is_given_up(2).await;
    let (story, (acknowledged, asked)) = far.call(long_message(), dies).await;
    assert!(asked.duration_since(began) < LONG_QUIET / 2, "by ICMP");
    was_there_for(&story, Duration::ZERO, acknowledged);
    assert_eq!(story.stats.packets_received, 0);
    is_billed_to_its_last_sign(story, Duration::ZERO, asked);
    far.sipp.end_satisfied().await;
}

async fn of_one_that_never_spoke_and_answers_nothing_nobody_knows() {
    let listening = UdpSocket::bind(loopback()).unwrap();
    let play = silent()
        .key("rtp", listening.local_addr().unwrap().port())
        .key("response", NOTHING)
        .key("last word", ends("200 OK"));
    // Two questions take less than that, and are waited for in vain.
    is_not_cut(play, QUIET, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sipp_that_has_forgotten_the_call_is_gone_at_once() {
    let play = speaker(1)
        .key("response", says("481 Call/Transaction Does Not Exist"))
        .key("last word", ends("481 Call/Transaction Does Not Exist"));
    // Longer than a busy machine stops SIPp in mid-speech.
    let quiet = Duration::from_secs(1);
    let mut far = Questioned::new(play, quiet).await;
    let forgets =
        async |far: &mut Questioned, _: &mut UnboundedReceiver<String>| far.is_given_up(1).await;
    let (story, (acknowledged, asked)) = far.call(long_message(), forgets).await;
    was_there_for(&story, Duration::ZERO, acknowledged);
    is_billed_to_its_last_sign(story, quiet, asked);
    far.sipp.end_satisfied().await;
}

/// Nothing is cut of a call to a SIPp that only looks as if it were gone.
async fn is_not_cut(play: Play<'_>, quiet_after: Duration, frames: i32) {
    let mut far = Questioned::new(play, quiet_after).await;
    let asked = async |far: &mut Questioned, _: &mut UnboundedReceiver<String>| {
        far.is_asked().await;
    };
    let message = call_request(vec![PlaybackItem::Sound(sound(frames))]);
    let (story, ()) = far.call(message, asked).await;
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Played), "{story:?}");
    assert_eq!(story.stats.packets_sent, frames.cast_unsigned());
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    let whole = Duration::from_millis(20) * (frames.cast_unsigned() - 1);
    assert!(time > whole, "{time:?}");
    far.sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sipp_that_answers_is_there_whether_it_ever_speaks_or_not() {
    let listening = UdpSocket::bind(loopback()).unwrap();
    let port = listening.local_addr().unwrap().port();
    let answering = |play: Play<'static>, status: &str| {
        play.key("response", says(status))
            .key("last word", ends("200 OK"))
    };
    let listener = || silent().key("rtp", port);
    tokio::join!(
        // It never speaks.
        is_not_cut(answering(listener(), "200 OK"), QUIET, 150),
        // It speaks, and falls silent.
        is_not_cut(answering(speaker(1), "200 OK"), QUIET, 150),
        // It takes no sound at all.
        is_not_cut(answering(silent(), "200 OK"), LONG_QUIET, 150),
        // It does not like to be asked.
        is_not_cut(answering(listener(), "405 Method Not Allowed"), QUIET, 150),
    );
}
