//! The SIP messages of a call as a ladder: a line for each end, an arrow for each message, each to open.

use std::net::SocketAddr;
use std::sync::Arc;

use super::times;
use super::words::{Words, fill};
use crate::clock::Clock;
use crate::sip_trace::KeptMessage;

/// The picture is at least this wide, in units of its own; the page scales it.
const WIDTH: usize = 440;
/// Of a character of a name or a label.
const CHARACTER: usize = 8;
/// From one arrow to the next, and what is above the first.
const STEP: usize = 34;
const HEAD: usize = 40;
/// Left of our own line, and at least right of the last one.
const MARGIN: usize = 60;
/// Messages that are drawn: a call that has more has a loop.
const MOST: usize = 200;

/// Everything that the page draws.
#[derive(Debug)]
pub struct Ladder {
    pub width: usize,
    pub height: usize,
    pub described: String,
    pub ends: Vec<LadderEnd>,
    pub rungs: Vec<Rung>,
}

#[derive(Debug)]
pub struct LadderEnd {
    pub x: usize,
    pub name: String,
}

/// One message.
#[derive(Debug)]
pub struct Rung {
    pub number: usize,
    pub y: usize,
    pub label_y: usize,
    pub from_x: usize,
    pub to_x: usize,
    /// The points of the arrow's head.
    pub tip: String,
    pub middle: usize,
    pub label: String,
    /// Of a response that refuses.
    pub is_refusal: bool,
    pub time: String,
    pub direction: &'static str,
    pub ends: String,
    pub text: String,
}

/// `None` where there are no messages.
pub fn draw(messages: &[Arc<KeptMessage>], clock: &Clock, words: &Words) -> Option<Ladder> {
    let messages = &messages[..messages.len().min(MOST)];
    if messages.is_empty() {
        return None;
    }
    let mut peers: Vec<Option<SocketAddr>> = Vec::new();
    for message in messages {
        if !peers.contains(&message.peer) {
            peers.push(message.peer);
        }
    }
    let names: Vec<_> = peers.iter().map(|peer| name(*peer)).collect();
    let widest = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    let labels = messages.iter().map(|message| label(message.first_line()));
    // The first arrows are no longer than the gap.
    let widest_label = labels.map(|label| width_of(&label)).max().unwrap_or(0);
    let margin = MARGIN.max(widest / 2);
    let gap = (WIDTH.saturating_sub(MARGIN + margin) / peers.len())
        .max(widest)
        .max(widest_label);
    let column = |peer: &Option<SocketAddr>| {
        let place = peers.iter().position(|known| known == peer);
        MARGIN + gap * (place.unwrap_or(0) + 1)
    };
    let ours = LadderEnd {
        x: MARGIN,
        name: "Clarion".to_owned(),
    };
    let ends = peers.iter().map(|peer| LadderEnd {
        x: column(peer),
        name: name(*peer),
    });
    let ends: Vec<_> = std::iter::once(ours).chain(ends).collect();
    let rungs = messages.iter().enumerate().map(|(place, message)| {
        let peer_x = column(&message.peer);
        rung(place, message, peer_x, clock, words)
    });
    let count = messages.len().to_string();
    let values = [("n", count.as_str()), ("peers", &names.join(", "))];
    Some(Ladder {
        width: MARGIN + gap * peers.len() + margin,
        height: HEAD + STEP * messages.len() + 16,
        described: fill(words.ladder_picture, &values),
        ends,
        rungs: rungs.collect(),
    })
}

fn rung(place: usize, message: &KeptMessage, peer_x: usize, clock: &Clock, words: &Words) -> Rung {
    let y = HEAD + STEP * (place + 1) - 8;
    let (from_x, to_x, direction) = if message.sent {
        (MARGIN, peer_x, words.ladder_sent)
    } else {
        (peer_x, MARGIN, words.ladder_received)
    };
    let behind = if message.sent { to_x - 7 } else { to_x + 7 };
    let label = label(message.first_line());
    Rung {
        number: place + 1,
        y,
        label_y: y - 6,
        from_x,
        to_x,
        tip: format!("{to_x},{y} {behind},{} {behind},{}", y - 4, y + 4),
        middle: usize::midpoint(MARGIN, peer_x),
        is_refusal: label.starts_with(['4', '5', '6']),
        label,
        time: times::of_day(message.at, clock),
        direction,
        ends: format!("{} {}", message.transport, name(message.peer)),
        text: message.text.replace("\r\n", "\n"),
    }
}

fn name(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "?".to_owned(), |peer| peer.to_string())
}

/// With its number, or with air on both sides.
fn width_of(text: &str) -> usize {
    (text.chars().count() + 4) * CHARACTER
}

/// `INVITE`, or `180 Ringing`.
fn label(first_line: &str) -> String {
    let text = match first_line.strip_prefix("SIP/2.0 ") {
        Some(response) => response,
        None => first_line.split(' ').next().unwrap_or_default(),
    };
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::console::words::ENGLISH;

    fn message(sent: bool, peer: &str, text: &str) -> Arc<KeptMessage> {
        Arc::new(KeptMessage {
            at: Timestamp::UNIX_EPOCH,
            sent,
            transport: "udp".to_owned(),
            local: "192.0.2.1:5060".parse().unwrap(),
            peer: Some(peer.parse().unwrap()),
            call_id: "x".to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn arrows_go_the_way_that_messages_went() {
        let messages = [
            message(
                true,
                "192.0.2.7:5060",
                "INVITE sip:1@t SIP/2.0\r\nVia: x\r\n",
            ),
            message(false, "192.0.2.7:5060", "SIP/2.0 486 Busy Here\r\n"),
            message(true, "192.0.2.8:5060", "INVITE sip:1@u SIP/2.0\r\n"),
        ];
        let clock = Clock::new(TimeZone::UTC);
        let ladder = draw(&messages, &clock, &ENGLISH).unwrap();
        assert_eq!(ladder.ends.len(), 3);
        let [invite, busy, other] = &ladder.rungs[..] else {
            panic!("{ladder:?}");
        };
        assert_eq!(
            (invite.label.as_str(), invite.is_refusal),
            ("INVITE", false)
        );
        assert_eq!(
            (busy.label.as_str(), busy.is_refusal),
            ("486 Busy Here", true)
        );
        assert_eq!((invite.from_x, invite.to_x), (busy.to_x, busy.from_x));
        assert!(other.to_x > invite.to_x && busy.y > invite.y);
        assert!(!invite.text.contains('\r'));
        assert!(draw(&[], &clock, &ENGLISH).is_none());
    }

    #[test]
    fn names_have_room_however_long_and_many_they_are() {
        let peers = [
            "[2001:db8:1234:5678:9abc:def0:1234:5678]:65060",
            "192.0.2.7:5060",
            "[2001:db8::1]:5060",
        ];
        let messages = peers.map(|peer| message(true, peer, "INVITE sip:1@t SIP/2.0\r\n"));
        let clock = Clock::new(TimeZone::UTC);
        for count in 1..=peers.len() {
            let ladder = draw(&messages[..count], &clock, &ENGLISH).unwrap();
            let half = |end: &LadderEnd| end.name.chars().count() * CHARACTER / 2;
            let mut free = 0;
            for end in &ladder.ends {
                assert!(end.x >= free + half(end), "{ladder:?}");
                free = end.x + half(end);
            }
            assert!(free <= ladder.width, "{ladder:?}");
        }
        let short = draw(&messages[1..2], &clock, &ENGLISH).unwrap();
        assert_eq!(short.width, WIDTH, "as long as there is room");
    }

    #[test]
    fn a_loop_is_cut() {
        let many = vec![message(true, "192.0.2.7:5060", "OPTIONS x SIP/2.0"); MOST * 3];
        let clock = Clock::new(TimeZone::UTC);
        let ladder = draw(&many, &clock, &ENGLISH).unwrap();
        assert_eq!(ladder.rungs.len(), MOST);
    }
}
