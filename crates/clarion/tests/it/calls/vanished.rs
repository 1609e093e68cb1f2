//! Calls that we hang up because nobody listens any more: what is billed and reported of them.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clarion::domain::call::CallSid;
use clarion::domain::leg::HangUpReason;
use clarion::domain::outcome::Outcome;

use super::stage::{Stage, field};
use crate::support::sip_peer::SipPeer;

/// Longer than any of these calls lasts.
pub const LONG: &str = "\"mediaName\":\"ccp_marketingcall.wav\",\"playTimes\":\"3\"";

/// A telephone that answers, and its port for sound.
struct Callee {
    peer: SipPeer,
    _rtp: UdpSocket,
    /// From the ACK to our BYE.
    times: Arc<Mutex<Vec<Instant>>>,
}

impl Callee {
    /// `attribute` is said of its sound; the codes answer one question after the other.
    async fn start(attribute: &'static str, questions: &'static [u16]) -> Self {
        let rtp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = rtp.local_addr().unwrap().port();
        let times = Arc::new(Mutex::new(Vec::new()));
        let (seen, asked) = (Arc::clone(&times), AtomicUsize::new(0));
        let answer = move |method: &str| match method {
            "INVITE" => Some((200, description(port, attribute))),
            "OPTIONS" => {
                let place = asked
                    .fetch_add(1, Ordering::Relaxed)
                    .min(questions.len() - 1);
                Some((questions[place], String::new()))
            }
            "BYE" => {
                seen.lock().unwrap().push(Instant::now());
                Some((200, String::new()))
            }
            _ => {
                seen.lock().unwrap().push(Instant::now());
                None
            }
        };
        Self {
            peer: SipPeer::start(answer).await,
            _rtp: rtp,
            times,
        }
    }

    /// A server with a trunk that leads here.
    async fn stage(&self, more: &str) -> Stage {
        let trunk = format!(
            "[[trunk]]\nname = \"only\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"\"]\n{more}\n",
            self.peer.address
        );
        Stage::on(&trunk, "").await
    }

    /// How long the call was up, as it saw it.
    fn saw(&self) -> Duration {
        let times = self.times.lock().unwrap();
        *times.last().unwrap() - *times.first().unwrap()
    }
}

fn description(port: u16, attribute: &str) -> String {
    format!(
        "Content-Type: application/sdp\n\nv=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 8\r\n{attribute}"
    )
}

/// The seconds that the call is billed with, which are those that are reported.
pub async fn billed(stage: &Stage, sid: &CallSid, why: HangUpReason) -> Duration {
    let report = stage.report_of(sid).await;
    assert_eq!(field(&report, "state"), "0");
    assert_eq!(stage.outcome(sid).await, Some(Outcome::Talked));
    let legs = stage.legs(sid).await;
    assert_eq!(legs.len(), 1);
    assert_eq!(legs[0].hang_up_reason, Some(why));
    let line = stage.bill_line(sid).await;
    assert_eq!(field(&report, "duration"), line.seconds.to_string());
    Duration::from_secs(line.seconds.into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_that_vanished_is_billed_to_its_last_sign_of_life() {
    let callee = Callee::start("", &[200, 481]).await;
    let stage = callee.stage("quiet_seconds = 1").await;
    let sid = stage.call("13800000001", LONG).await;
    let billed = billed(&stage, &sid, HangUpReason::Vanished).await;
    // It answered after a second, and was asked again three seconds later.
    let (second, saw) = (Duration::from_secs(1), callee.saw());
    assert!(
        billed >= second && billed + second <= saw,
        "{billed:?} of {saw:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_that_held_for_too_long_is_billed_to_the_hang_up() {
    let callee = Callee::start("a=inactive\r\n", &[200]).await;
    let stage = callee.stage("hold_seconds = 2").await;
    let sid = stage.call("13800000001", LONG).await;
    let billed = billed(&stage, &sid, HangUpReason::HeldTooLong).await;
    // All of it was on hold. A second that has begun counts.
    let (second, saw) = (Duration::from_secs(1), callee.saw());
    assert!(
        billed >= 2 * second && billed <= saw + 2 * second,
        "{billed:?} of {saw:?}"
    );
}
