//! The fields by which an application asks to be told what happens to a call, step by step. The vendor has them too: a client of today that sends
//! something else there stays accepted, as if it had not sent it.

use super::wire::{Field, Fields};
use crate::domain::callback::{EventSubscription, RespUrl};

pub const CALL_STATE_URL: Field = Field::optional(
    "callStateUrl",
    "",
    "http or https address for events: queued, dialling, ringing, answered, key, hangup, waiting, escalated, ended. One that cannot be used means none.",
);
/// Of a code, which is one call of one number and asks for no key.
pub const CODE_STATE_URL: Field = Field::optional(
    CALL_STATE_URL.name,
    "",
    "http or https address for events: queued, dialling, ringing, answered, hangup, ended. One that cannot be used means none.",
);
pub const CALL_STATE_PUSH: Field = Field::optional(
    "callStatePush",
    "0",
    "0 = every event, 1 = only the last. Another value means the default.",
);

pub fn subscription(fields: &Fields) -> Option<EventSubscription> {
    let url = fields.if_text(CALL_STATE_URL.name)?;
    let url = RespUrl::named_by(CALL_STATE_URL.name, url).ok()?;
    let only_last = fields.if_text(CALL_STATE_PUSH.name) == Some("1");
    Some(EventSubscription { url, only_last })
}
