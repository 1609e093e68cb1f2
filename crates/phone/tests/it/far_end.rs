//! Far ends that die in mid-call, and far ends that only look as if they had.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phone::call::{CallRequest, MediaOptions};
use phone::ending::Side;
use phone::leg_record::WhyHungUp;
use phone::media::stream::PlaybackItem;
use phone::trunk::{SipTrunkConfig, Trunk};

use crate::lab::{Story, call, call_request, caller, loopback, sound, trunk};
use crate::puppet::{Puppet, header};

/// A packet of sound in PCMA.
pub fn packet(number: u16) -> Vec<u8> {
    let mut bytes = vec![0x80, 8];
    bytes.extend(number.to_be_bytes());
    bytes.extend((u32::from(number) * 160).to_be_bytes());
    bytes.extend([0, 0, 0, 7]);
    bytes.extend([0xd5; 160]);
    bytes
}

/// A callee of bare sockets.
struct FarEnd {
    puppet: Puppet,
    rtp: UdpSocket,
    invite: String,
}

impl FarEnd {
    async fn new() -> Self {
        Self {
            puppet: Puppet::new().await,
            rtp: UdpSocket::bind(loopback()).unwrap(),
            invite: String::new(),
        }
    }

    async fn trunk(&self, quiet_after: Duration) -> Arc<Trunk> {
        trunk(SipTrunkConfig {
            media: MediaOptions {
                quiet_after: Some(quiet_after),
                ..MediaOptions::default()
            },
            ..SipTrunkConfig::new("test", self.puppet.address().into())
        })
        .await
    }

    async fn answer(&mut self) {
        self.invite = self.puppet.request("INVITE").await;
        let body = self.description(1);
        let extra = format!("{}Content-Type: application/sdp\r\n", self.puppet.contact());
        let invite = self.invite.clone();
        self.puppet
            .respond_as("puppet", &invite, "200 OK", &extra, &body)
            .await;
        self.puppet.request("ACK").await;
    }

    /// Sends sound for a moment.
    fn speak(&self) {
        self.send_packets(0);
    }

    fn speak_again(&self) {
        self.send_packets(100);
    }

    /// It does not listen to sound any more.
    fn close_port(&mut self) {
        self.rtp = UdpSocket::bind(loopback()).unwrap();
    }

    fn send_packets(&self, first: u16) {
        let offer = self.invite.lines().find_map(|line| {
            let line = line.strip_prefix("m=audio ")?;
            line.split(' ').next()?.parse::<u16>().ok()
        });
        for number in first..first + 5 {
            let to = ("127.0.0.1", offer.unwrap());
            self.rtp.send_to(&packet(number), to).unwrap();
        }
    }

    /// Answers every question so, by the number of those before it, until it is hung up on. Returns how many there were.
    async fn answers_questions(&mut self, status: impl Fn(usize) -> &'static str) -> usize {
        let mut asked = 0;
        loop {
            let request = self.puppet.request("").await;
            let method = request.split(' ').next().unwrap_or_default();
            match method {
                "OPTIONS" => self.puppet.respond(&request, status(asked), "").await,
                "BYE" => {
                    self.puppet.respond(&request, "200 OK", "").await;
                    return asked;
                }
                _ => continue,
            }
            asked += 1;
        }
    }

    /// Changes the direction of the sound by a re-INVITE of this number.
    async fn changes(&mut self, number: u32, direction: &str) {
        let extra = format!("{}Content-Type: application/sdp\r\n", self.puppet.contact());
        let body = format!("{}a={direction}\r\n", self.description(number + 1));
        let invite = self.invite.clone();
        self.puppet
            .ask_with("INVITE", number, &invite, &extra, &body)
            .await;
        self.puppet.request("SIP/2.0 200").await;
        self.puppet.ask("ACK", number, &invite, "").await;
    }

    fn description(&self, version: u32) -> String {
        let port = self.rtp.local_addr().unwrap().port();
        format!(
            "v=0\r\no=- 1 {version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 8\r\n"
        )
    }

    async fn hang_up_is_answered(&mut self) {
        let bye = self.puppet.request("BYE").await;
        self.puppet.respond(&bye, "200 OK", "").await;
    }

    /// The next question, as it stands in the dialog.
    async fn question(&mut self) -> String {
        let options = self.puppet.request("OPTIONS").await;
        assert!(header(&options, "To").contains("tag=puppet"), "{options}");
        assert_eq!(header(&options, "Call-ID"), header(&self.invite, "Call-ID"));
        options
    }
}

/// Lets the clocks of the signalling leap. Sound and sockets go by real time.
pub async fn leap() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(9)).await;
    tokio::time::resume();
}

/// Longer than any of these calls lasts.
pub fn long_message() -> CallRequest {
    CallRequest {
        talk_time: Duration::from_secs(3600),
        ..call_request(vec![PlaybackItem::Silence { frames: 3000 }])
    }
}

fn short_message() -> CallRequest {
    CallRequest {
        talk_time: Duration::from_secs(3600),
        ..call_request(vec![PlaybackItem::Sound(sound(60))])
    }
}

pub const QUIET: Duration = Duration::from_millis(300);

/// It was there until this long before that moment, at most.
pub fn is_billed_to_its_last_sign(story: Story, before: Duration, moment: Instant) {
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Vanished), "{story:?}");
    let leg = story.legs.last().unwrap().clone();
    assert!(leg.ended_at + before <= moment, "{story:?}");
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    assert_eq!(leg.ended_at - leg.answered_at.unwrap(), time);
}

/// A call to a far end that behaves like this, and what that has to tell.
async fn call_to<T>(
    quiet_after: Duration,
    request: CallRequest,
    behaviour: impl AsyncFnOnce(&mut FarEnd) -> T,
) -> (Story, T) {
    let mut far = FarEnd::new().await;
    let trunk = far.trunk(quiet_after).await;
    let phone = caller();
    let behaving = async {
        far.answer().await;
        behaviour(&mut far).await
    };
    tokio::join!(call(&phone, &trunk, request), behaving)
}

/// It has heard everything, and nothing was cut.
fn is_whole(story: Story) {
    assert_eq!(story.stats.packets_sent, 60);
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Played), "{story:?}");
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    assert!(time > Duration::from_millis(59 * 20), "{time:?}");
}

#[tokio::test]
async fn a_far_end_that_has_forgotten_the_call_is_gone() {
    let (story, asked) = call_to(QUIET, long_message(), async |far| {
        far.speak();
        let options = far.question().await;
        let asked = Instant::now();
        let status = "481 Call/Transaction Does Not Exist";
        far.puppet.respond(&options, status, "").await;
        far.hang_up_is_answered().await;
        asked
    })
    .await;
    is_billed_to_its_last_sign(story, QUIET, asked);
}

#[tokio::test]
async fn a_far_end_that_spoke_and_says_nothing_any_more_is_gone() {
    let (story, asked) = call_to(QUIET, long_message(), async |far| {
        far.speak();
        let first = far.question().await;
        let asked = Instant::now();
        leap().await;
        // It may drop all questions: one is not enough.
        while header(&far.question().await, "CSeq") == header(&first, "CSeq") {}
        leap().await;
        far.puppet.request("BYE").await;
        leap().await;
        asked
    })
    .await;
    is_billed_to_its_last_sign(story, QUIET, asked);
}

#[tokio::test]
async fn a_far_end_that_speaks_again_is_there_whatever_became_of_the_question() {
    let (story, ()) = call_to(QUIET, short_message(), async |far| {
        far.speak();
        far.question().await;
        far.speak_again();
        leap().await;
        far.hang_up_is_answered().await;
    })
    .await;
    is_whole(story);
}

#[tokio::test]
async fn a_far_end_that_wants_a_password_for_an_answer_is_there() {
    let (story, ()) = call_to(QUIET, short_message(), async |far| {
        far.speak();
        let options = far.question().await;
        let challenge = "Proxy-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n";
        let status = "407 Proxy Authentication Required";
        far.puppet.respond(&options, status, challenge).await;
        far.hang_up_is_answered().await;
    })
    .await;
    is_whole(story);
}

/// A message in which a quiet far end is asked several times.
fn middling_message() -> CallRequest {
    CallRequest {
        talk_time: Duration::from_secs(3600),
        ..call_request(vec![PlaybackItem::Sound(sound(150))])
    }
}

#[tokio::test]
async fn a_far_end_that_answers_questions_by_refusals_of_its_own_is_there() {
    for status in [
        "500 Server Internal Error",
        "503 Service Unavailable",
        "488 Not Acceptable Here",
        "603 Decline",
    ] {
        let (story, asked) = call_to(QUIET, middling_message(), async |far| {
            far.speak();
            far.answers_questions(|_| status).await
        })
        .await;
        assert!(asked >= 2, "{status}: {asked}");
        assert_eq!(story.why_hung_up(), Some(WhyHungUp::Played), "{status}");
        assert_eq!(story.stats.packets_sent, 150, "{status}");
    }
}

#[tokio::test]
async fn a_trouble_on_the_way_that_passes_cuts_nobody() {
    let (story, (first, next)) = call_to(QUIET, middling_message(), async |far| {
        far.speak();
        let options = far.question().await;
        let first = Instant::now();
        far.puppet
            .respond(&options, "504 Server Time-out", "")
            .await;
        let options = far.question().await;
        let next = Instant::now();
        far.puppet.respond(&options, "200 OK", "").await;
        far.answers_questions(|_| "200 OK").await;
        (first, next)
    })
    .await;
    assert!(next - first >= QUIET, "{:?}", next - first);
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Played), "{story:?}");
    assert_eq!(story.stats.packets_sent, 150);
}

#[tokio::test]
async fn a_far_end_that_nobody_on_the_way_reaches_any_more_is_gone() {
    let (story, asked) = call_to(QUIET, long_message(), async |far| {
        far.speak();
        far.answers_questions(|_| "504 Server Time-out").await
    })
    .await;
    assert_eq!(asked, 2);
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Vanished), "{story:?}");
}

/// While it holds us it sends nothing, and what it says to questions is not that it is gone.
#[tokio::test]
async fn a_far_end_that_holds_is_there_whatever_it_says_to_questions() {
    for direction in ["inactive", "sendonly"] {
        for status in ["200 OK", "500 Server Internal Error", "503 Busy"] {
            let (story, asked) = call_to(QUIET, short_message(), async |far| {
                far.speak();
                far.changes(1, direction).await;
                for _ in 0..3 {
                    let options = far.question().await;
                    far.puppet.respond(&options, status, "").await;
                }
                far.changes(2, "sendrecv").await;
                3 + far.answers_questions(|_| status).await
            })
            .await;
            assert!(asked >= 3);
            assert_eq!(story.why_hung_up(), Some(WhyHungUp::Played), "{status}");
            assert_eq!(story.stats.packets_sent, 60, "{direction}: {status}");
        }
    }
}

#[tokio::test]
async fn a_far_end_that_does_not_answer_our_bye_was_gone_before() {
    let never = Duration::from_secs(60);
    let (story, hung_up) = call_to(never, short_message(), async |far| {
        far.speak();
        far.puppet.request("BYE").await;
        let hung_up = Instant::now();
        leap().await;
        hung_up
    })
    .await;
    is_billed_to_its_last_sign(story, Duration::ZERO, hung_up);
}

#[tokio::test]
async fn a_far_end_that_never_speaks_and_answers_is_there() {
    let (story, ()) = call_to(QUIET, short_message(), async |far| {
        let options = far.question().await;
        far.puppet.respond(&options, "200 OK", "").await;
        far.hang_up_is_answered().await;
    })
    .await;
    is_whole(story);
}

#[tokio::test]
async fn of_a_far_end_that_never_speaks_and_never_answers_nobody_knows() {
    let (story, ()) = call_to(QUIET, short_message(), async |far| {
        far.question().await;
        leap().await;
        far.puppet.request("BYE").await;
        leap().await;
    })
    .await;
    is_whole(story);
}

/// So that only the closed port makes anybody ask.
pub const LONG_QUIET: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_far_end_that_never_spoke_and_has_closed_its_port_is_gone() {
    let (story, (answered, asked)) = call_to(LONG_QUIET, long_message(), async |far| {
        let answered = Instant::now();
        far.close_port();
        let first = far.question().await;
        let asked = Instant::now();
        leap().await;
        while header(&far.question().await, "CSeq") == header(&first, "CSeq") {}
        leap().await;
        far.puppet.request("BYE").await;
        leap().await;
        (answered, asked)
    })
    .await;
    let ended_at = story.legs.last().unwrap().ended_at;
    assert!(ended_at > answered, "its port was open: {story:?}");
    is_billed_to_its_last_sign(story, Duration::ZERO, asked);
}

#[tokio::test]
async fn a_far_end_that_has_closed_its_port_and_answers_is_there() {
    let request = call_request(vec![PlaybackItem::Sound(sound(200))]);
    let (story, ()) = call_to(LONG_QUIET, request, async |far| {
        far.close_port();
        let options = far.question().await;
        far.puppet.respond(&options, "200 OK", "").await;
        far.hang_up_is_answered().await;
    })
    .await;
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Played), "{story:?}");
    assert_eq!(story.stats.packets_sent, 200);
}
