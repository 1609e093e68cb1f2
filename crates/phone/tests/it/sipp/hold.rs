//! Callees that hold us, in every form: the message waits, and goes on where it has stopped; or we hang up.

use std::time::{Duration, Instant};

use g711::Codec;
use phone::ending::Side;
use phone::leg_record::WhyHungUp;
use phone::media::stream::PlaybackItem;
use phone::trunk::SipTrunkConfig;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Play, Sipp, description};
use crate::lab::{
    PATIENCE, Story, call, call_request, caller, loopback, sound, trunk, unseen_events,
};

/// One change of the session.
#[derive(Debug, Clone, Copy)]
struct Change {
    method: &'static str,
    /// What SIPp says of its side: a line of its description, and the address in it. In the request, or where that asks us for an offer in the
    /// ACK.
    says: (&'static str, &'static str),
    asks_for_offer: bool,
    /// What our response has to say.
    answer: &'static str,
}

const HERE: &str = "127.0.0.1";

impl Change {
    const fn by(method: &'static str, line: &'static str, answer: &'static str) -> Self {
        Self {
            method,
            says: (line, HERE),
            asks_for_offer: false,
            answer,
        }
    }

    /// By a re-INVITE without a description.
    const fn without_offer(line: &'static str, answer: &'static str) -> Self {
        Self {
            asks_for_offer: true,
            ..Self::by("INVITE", line, answer)
        }
    }

    /// Its keys in the scenario, as the request of this number. Each description of SIPp has a higher version than the one before.
    fn play<'a>(self, play: Play<'a>, names: [&'a str; 4], number: u32) -> Play<'a> {
        let (line, address) = self.says;
        let connection = format!("c=IN IP4 {address}");
        let description = description()
            .replace("c=IN IP4 127.0.0.1", &connection)
            .replace("o=- 1 1", &format!("o=- 1 {}", number + 1));
        let description = format!("{description}\n{line}");
        let (offer, in_ack) = if self.asks_for_offer {
            ("{empty}".to_owned(), description)
        } else {
            (description, "{empty}".to_owned())
        };
        let ack = format!(
            "  <send>\n<![CDATA[\nACK [$target] SIP/2.0\n{{dialog}}\nCSeq: {number} ACK\n{in_ack}\n]]>\n</send>\n"
        );
        let confirm = if self.method == "INVITE" {
            ack
        } else {
            String::new()
        };
        let [method, offered, answer, confirmed] = names;
        play.key(confirmed, confirm)
            .key(offered, offer)
            .key(method, self.method)
            .key(answer, self.answer)
    }

    /// The last message of it, as SIPp sees it.
    fn last_message(self, number: u32) -> String {
        match self.method {
            "INVITE" => format!("sent ACK {number} ACK"),
            method => format!("received 200 {number} {method}"),
        }
    }
}

/// How callees hold, and how they resume. The version of our description is higher each time that it says something else (RFC 3264 section 8).
const FORMS: [(&str, Change, Change); 6] = [
    (
        "one that plays music",
        Change::by("INVITE", "a=sendonly", "o=- [0-9]+ 2 IN.*a=recvonly"),
        Change::by("INVITE", "a=sendrecv", "o=- [0-9]+ 3 IN.*a=sendrecv"),
    ),
    (
        "neither direction",
        Change::by("INVITE", "a=inactive", "o=- [0-9]+ 2 IN.*a=inactive"),
        Change::by("INVITE", "a=ptime:20", "o=- [0-9]+ 3 IN.*a=sendrecv"),
    ),
    (
        "the old way, without an address",
        Change {
            says: ("a=sendrecv", "0.0.0.0"),
            ..Change::by("INVITE", "", "o=- [0-9]+ 2 IN.*a=sendrecv")
        },
        Change::by("INVITE", "a=sendrecv", "o=- [0-9]+ 2 IN.*a=sendrecv"),
    ),
    (
        "by UPDATE",
        Change::by("UPDATE", "a=inactive", "o=- [0-9]+ 2 IN.*a=inactive"),
        Change::by("UPDATE", "a=sendrecv", "o=- [0-9]+ 3 IN.*a=sendrecv"),
    ),
    (
        "in the ACK",
        Change::without_offer("a=inactive", "o=- [0-9]+ 2 IN.*m=audio.*a=sendrecv"),
        Change::without_offer("a=sendrecv", "o=- [0-9]+ 2 IN.*m=audio.*a=sendrecv"),
    ),
    (
        "each in its own way",
        Change::without_offer("a=sendonly", "o=- [0-9]+ 2 IN.*m=audio.*a=sendrecv"),
        // Only our offers have a line for RTCP on the same port.
        Change::by("UPDATE", "a=sendrecv", "o=- [0-9]+ 3 IN.*a=sendrecv"),
    ),
];

/// A call to a SIPp that holds, and where its sound goes.
struct Held {
    sipp: Sipp,
    rtp: UdpSocket,
    /// All sound that has come.
    heard: Vec<u8>,
}

impl Held {
    async fn new(hold: Change, resume: Change) -> Self {
        let rtp = UdpSocket::bind(loopback()).await.unwrap();
        let play = Play::new("hold").key("rtp", rtp.local_addr().unwrap().port());
        let names = ["hold method", "hold offer", "hold answer", "hold confirm"];
        let play = hold.play(play, names, 1);
        let names = [
            "resume method",
            "resume offer",
            "resume answer",
            "resume confirm",
        ];
        Self {
            sipp: resume.play(play, names, 2).start().await,
            rtp,
            heard: Vec::new(),
        }
    }

    /// The next packet of sound, if one comes in this time. Reports go on while a call is held.
    async fn packet(&mut self, time: Duration) -> bool {
        let mut packet = [0; 2000];
        let receiving = async { while self.rtp.recv(&mut packet).await.unwrap() != 172 {} };
        let came = tokio::time::timeout(time, receiving).await.is_ok();
        if came {
            self.heard.extend_from_slice(&packet[12..172]);
        }
        came
    }

    async fn hears(&mut self, packets: usize) {
        for _ in 0..packets {
            assert!(self.packet(PATIENCE).await, "sound in time");
        }
    }

    /// Nothing comes for a while.
    async fn hears_nothing(&mut self) {
        let limit = Instant::now() + PATIENCE;
        while self.packet(Duration::from_millis(300)).await {
            assert!(Instant::now() < limit, "it is held in time");
        }
    }

    /// It has done what the test let it do.
    async fn changes(&self, change: Change, number: u32) {
        self.sipp.go_on();
        self.sipp.has(&change.last_message(number)).await;
    }
}

async fn holds_and_resumes(name: &str, hold: Change, resume: Change) {
    let mut held = Held::new(hold, resume).await;
    let trunk = crate::lab::trunk_to(held.sipp.address).await;
    // Longer than anybody listens.
    let message = sound(1500);
    let request = call_request(vec![PlaybackItem::Sound(message.clone())]);
    let (phone, events, stop) = (caller(), unseen_events(), CancellationToken::new());
    let behaviour = async {
        held.hears(5).await;
        held.changes(hold, 1).await;
        held.hears_nothing().await;
        let before = held.heard.len();
        held.changes(resume, 2).await;
        held.hears(25).await;
        stop.cancel();
        before
    };
    let calling = phone.call(&trunk, &request, &events, &stop);
    let (placed, before) = tokio::join!(calling, behaviour);
    let story = Story::new(placed, Vec::new());
    let (heard, whole) = (&held.heard, message.bytes(Codec::Pcma));
    assert!(
        heard[..] == whole[..heard.len()],
        "{name}: nothing is left out and nothing is heard twice, before and after {before} bytes"
    );
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::Asked), "{name}");
    assert_eq!(story.talked().1, Side::Us);
    held.sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_message_waits_while_we_are_held_in_any_form_and_goes_on_where_it_stopped() {
    let mut holding = JoinSet::new();
    for (name, hold, resume) in FORMS {
        holding.spawn(holds_and_resumes(name, hold, resume));
    }
    holding.join_all().await;
}

const HOLD_LIMIT: Duration = Duration::from_millis(700);

async fn holds_for_too_long(name: &str, hold: Change, resume: Change) {
    let mut held = Held::new(hold, resume).await;
    let mut config = SipTrunkConfig::new("test", held.sipp.address.into());
    config.media.hold_limit = Some(HOLD_LIMIT);
    let trunk = trunk(config).await;
    let message = vec![PlaybackItem::Sound(sound(1500))];
    let phone = caller();
    let behaviour = async {
        held.hears(5).await;
        let held_at = Instant::now();
        held.changes(hold, 1).await;
        held_at
    };
    let calling = call(&phone, &trunk, call_request(message));
    let (story, held_at) = tokio::join!(calling, behaviour);
    assert_eq!(story.why_hung_up(), Some(WhyHungUp::HeldTooLong), "{name}");
    let leg = story.legs.last().unwrap().clone();
    let waited = leg.ended_at.duration_since(held_at);
    assert!(waited >= HOLD_LIMIT, "{name}: {waited:?}");
    let (sent, came) = (story.stats.packets_sent, held.heard.len());
    assert!((5..1500).contains(&sent), "{name}: {sent}, {came} bytes");
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    assert_eq!(time, leg.ended_at - leg.answered_at.unwrap());
    held.sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_holds_us_for_too_long_is_hung_up_on_in_any_form() {
    let mut holding = JoinSet::new();
    for (name, hold, resume) in FORMS {
        holding.spawn(holds_for_too_long(name, hold, resume));
    }
    holding.join_all().await;
}
