//! Legs as the calling engine tells of them, as they are kept.

use std::time::Duration;

use phone::ending::Side;
use phone::leg_record::{HeardLine, KeyPress, LegRecord, WhyHungUp};
use phone::media::ears::{Answerer, LineTone};
use phone::signalling::{DialogSnapshot, Transport};

use crate::clock::ClockReading;
use crate::domain::claim::OrphanedCall;
use crate::domain::hearing::{AnsweredBy, HeardTone, Hearing};
use crate::domain::leg::{HangUpReason, HungUpBy, Leg, LegKey, LegMedia};

pub fn leg(record: LegRecord, trunk: &str, clock: ClockReading) -> Leg {
    let media = record.media;
    let answered_at = record.answered_at;
    let key = |press: &KeyPress| LegKey {
        key: press.key,
        after: answered_at.map_or(Duration::ZERO, |answered| {
            press.at.saturating_duration_since(answered)
        }),
    };
    Leg {
        trunk: trunk.to_owned(),
        address: record.address,
        transport: Some(record.transport.to_string()),
        sent_at: clock.time_of(record.sent_at),
        rang_at: record.rang_at.map(|moment| clock.time_of(moment)),
        answered_at: record.answered_at.map(|moment| clock.time_of(moment)),
        ended_at: clock.time_of(record.ended_at),
        sip_code: record.code,
        q850_cause: record.cause,
        phrase: record.phrase,
        hung_up_by: match record.hung_up_by {
            Some(Side::Us) => HungUpBy::Us,
            Some(Side::Them) => HungUpBy::Them,
            None => HungUpBy::Nobody,
        },
        hang_up_reason: record.why_hung_up.map(reason),
        keys: record.keys.iter().map(key).collect(),
        heard: record.heard.map(hearing),
        media: LegMedia {
            codec: media.codec.map(|codec| codec.name().to_owned()),
            address: media.peer,
            to_play: media.to_play,
            played: media.played,
            packets_sent: media.packets_sent,
            packets_late: media.packets_late,
            packets_received: media.packets_received,
            packets_lost: media.packets_lost,
            jitter: media.jitter,
            worst_jitter: media.worst_jitter,
            round_trip: media.round_trip,
            peer_lost: media.reported.map(|reported| reported.lost),
        },
    }
}

fn reason(why: WhyHungUp) -> HangUpReason {
    match why {
        WhyHungUp::Played => HangUpReason::Played,
        WhyHungUp::PlaybackFailed => HangUpReason::PlaybackFailed,
        WhyHungUp::LongestTalk => HangUpReason::LongestTalk,
        WhyHungUp::HeldTooLong => HangUpReason::HeldTooLong,
        WhyHungUp::Vanished => HangUpReason::Vanished,
        WhyHungUp::Asked => HangUpReason::Asked,
        WhyHungUp::Machine => HangUpReason::Machine,
        WhyHungUp::Tone => HangUpReason::Tone,
        WhyHungUp::BadAnswer => HangUpReason::BadAnswer,
        WhyHungUp::NoAnswer => HangUpReason::NoAnswer,
        WhyHungUp::NoProgress => HangUpReason::NoProgress,
    }
}

fn hearing(heard: HeardLine) -> Hearing {
    Hearing {
        answered_by: heard.answered_by.map(|answerer| match answerer {
            Answerer::Human => AnsweredBy::Human,
            Answerer::Machine => AnsweredBy::Machine,
            Answerer::Unknown => AnsweredBy::Unknown,
        }),
        tone: heard.tone.map(|tone| match tone {
            LineTone::Busy => HeardTone::Busy,
            LineTone::Congestion => HeardTone::Congestion,
            LineTone::Dial => HeardTone::Dial,
            LineTone::Special => HeardTone::Special,
            LineTone::Fax => HeardTone::Fax,
            LineTone::Announcement => HeardTone::Announcement,
        }),
        after: heard.after,
    }
}

/// What is known of the leg that a process has left behind: what was committed before its INVITE was sent, when it rang and when it was
/// answered. Whether the INVITE has left is not known, and the moment is that of the first one since the call was claimed.
pub fn orphaned_leg(
    orphan: &OrphanedCall,
    dialog: &DialogSnapshot,
    transport: Option<Transport>,
) -> Option<Leg> {
    Some(Leg {
        trunk: orphan.trunk.clone()?,
        address: dialog.sent_to?,
        transport: transport.map(|transport| transport.to_string()),
        sent_at: orphan.dialled_at?,
        rang_at: orphan.rang_at,
        answered_at: orphan.answered_at,
        ended_at: orphan.last_known(),
        sip_code: None,
        q850_cause: None,
        phrase: None,
        hung_up_by: HungUpBy::Unknown,
        hang_up_reason: None,
        keys: Vec::new(),
        heard: None,
        media: LegMedia::default(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use jiff::SignedDuration;
    use jiff::tz::TimeZone;
    use phone::call::MediaStats;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn the_moments_of_a_leg_become_times_of_the_platform() {
        let clock = Clock::new(TimeZone::UTC);
        clock.shift(SignedDuration::from_hours(1000));
        let (before, sent_at) = (clock.now(), Instant::now());
        let record = LegRecord {
            address: "192.0.2.1:5060".parse().unwrap(),
            transport: Transport::Tls,
            sent_at,
            rang_at: None,
            answered_at: Some(sent_at),
            ended_at: Instant::now(),
            code: Some(200),
            cause: None,
            phrase: None,
            hung_up_by: Some(Side::Them),
            why_hung_up: None,
            keys: vec![KeyPress {
                key: '#',
                at: sent_at + Duration::from_millis(1500),
            }],
            heard: None,
            media: MediaStats::default(),
        };
        let took = SignedDuration::try_from(record.ended_at - sent_at).unwrap();
        let leg = leg(record, "provider", clock.reading());
        assert!((before..=clock.now()).contains(&leg.sent_at), "{leg:?}");
        assert_eq!(leg.ended_at.duration_since(leg.sent_at), took);
        assert_eq!((leg.rang_at, leg.answered_at), (None, Some(leg.sent_at)));
        assert_eq!(leg.hung_up_by, HungUpBy::Them);
        let pressed = LegKey {
            key: '#',
            after: Duration::from_millis(1500),
        };
        assert_eq!(leg.keys, [pressed]);
        assert_eq!(
            (leg.trunk.as_str(), leg.transport.as_deref()),
            ("provider", Some("tls"))
        );
    }
}
