//! Legs as the calling engine tells of them, as they are kept.

use phone::ending::Side;
use phone::leg_record::LegRecord;

use crate::clock::Clock;
use crate::domain::leg::{HungUpBy, Leg, LegMedia};

pub fn leg(record: LegRecord, trunk: &str, clock: &Clock) -> Leg {
    let media = record.media;
    Leg {
        trunk: trunk.to_owned(),
        address: record.address,
        transport: record.transport.to_string(),
        sent_at: clock.at(record.sent_at),
        rang_at: record.rang_at.map(|moment| clock.at(moment)),
        answered_at: record.answered_at.map(|moment| clock.at(moment)),
        ended_at: clock.at(record.ended_at),
        sip_code: record.code,
        q850_cause: record.cause,
        phrase: record.phrase,
        hung_up_by: match record.hung_up_by {
            Some(Side::Us) => HungUpBy::Us,
            Some(Side::Them) => HungUpBy::Them,
            None => HungUpBy::Nobody,
        },
        media: LegMedia {
            codec: media.codec.map(|codec| codec.name().to_owned()),
            packets_sent: media.packets_sent,
            packets_late: media.packets_late,
            packets_received: media.packets_received,
            packets_lost: media.packets_lost,
            jitter: media.jitter,
            worst_jitter: media.worst_jitter,
        },
    }
}
