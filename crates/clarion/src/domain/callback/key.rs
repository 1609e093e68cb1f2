//! Names one of the things that are owed for a call: its final callback, one of its events, or the silence that a callee has asked for.

use std::fmt;
use std::str::FromStr;

use crate::domain::call_sid::CallSid;
use crate::domain::event_subscription::events_receiver;
use crate::domain::resp_url::RespUrl;

/// The place of a silence among what is owed for a call: before the rest, so that nothing takes it for an event.
const SILENCE: i32 = -1;
const SILENCE_WORD: &str = "silence";

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallbackKey {
    pub call: CallSid,
    /// 0 is the final callback. Events count from 1, in the order in which they happened. `SILENCE` is no event: it is delivered like a final callback.
    pub seq: i32,
}

impl CallbackKey {
    /// The final callback of a call.
    pub fn of_end(call: CallSid) -> Self {
        Self { call, seq: 0 }
    }

    /// The silence that a callee has asked for.
    pub fn of_silence(call: CallSid) -> Self {
        Self { call, seq: SILENCE }
    }

    pub fn is_event(&self) -> bool {
        self.seq > 0
    }

    pub fn is_silence(&self) -> bool {
        self.seq == SILENCE
    }

    /// The receiver recognises repeated deliveries by this id.
    pub fn webhook_id(&self) -> String {
        match self.seq {
            0 => format!("msg_{}", self.call),
            SILENCE => format!("msg_{}_{SILENCE_WORD}", self.call),
            seq => format!("msg_{}_{seq}", self.call),
        }
    }

    /// Where it waits: with everything else that goes to the same host and is of its kind.
    pub fn receiver(&self, url: &RespUrl) -> String {
        match self.seq {
            ..=0 => url.host(),
            _ => events_receiver(url),
        }
    }
}

/// As operators write it: `callSid` for the final callback, `callSid/3` for an event, `callSid/silence` for a silence.
impl fmt::Display for CallbackKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            0 => self.call.fmt(f),
            SILENCE => write!(f, "{}/{SILENCE_WORD}", self.call),
            seq => write!(f, "{}/{seq}", self.call),
        }
    }
}

impl FromStr for CallbackKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((call, seq)) = text.split_once('/') else {
            return text.parse().map(Self::of_end);
        };
        if seq == SILENCE_WORD {
            return call.parse().map(Self::of_silence);
        }
        let seq = seq.parse().ok().filter(|seq| *seq > 0);
        Ok(Self {
            call: call.parse()?,
            seq: seq.ok_or("the number of an event is 1 or more")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_callback_has_the_name_of_its_call_and_an_event_a_number_too() {
        let call = "26111502351000001000000000000000";
        let url = RespUrl::parse("https://example.com/cb").unwrap();
        for (text, id, receiver) in [
            (call.to_owned(), format!("msg_{call}"), "example.com:443"),
            (
                format!("{call}/7"),
                format!("msg_{call}_7"),
                "events@example.com:443",
            ),
            (
                format!("{call}/silence"),
                format!("msg_{call}_silence"),
                "example.com:443",
            ),
        ] {
            let key: CallbackKey = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
            assert_eq!(
                (key.webhook_id(), key.receiver(&url)),
                (id, receiver.to_owned())
            );
        }
        for wrong in ["x", "x/1", &format!("{call}/0"), &format!("{call}/")] {
            assert!(wrong.parse::<CallbackKey>().is_err(), "{wrong}");
        }
    }
}
