//! The events of a call: what somebody who watches it is told while it goes on.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::status_body::escape;
use super::{CallbackKey, EVENT_TIME, OwedCallback};
use crate::domain::account::AppId;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::event_subscription::events_receiver;
use crate::domain::resp_url::RespUrl;

/// So many events a call may have, besides that of its end.
pub const MAX_EVENTS: i32 = 1000;

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateEvent {
    Queued,
    Dialling,
    Ringing,
    Answered,
    /// The callee has chosen by this key.
    Key(char),
    /// An attempt is over, with this outcome.
    HangUp(&'static str),
    /// The same number is called again later.
    Waiting,
    /// The next number has its turn.
    Escalated,
    /// The whole is over, with this outcome.
    Ended(&'static str),
}

impl StateEvent {
    /// The word in the body.
    fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Dialling => "dialling",
            Self::Ringing => "ringing",
            Self::Answered => "answered",
            Self::Key(_) => "key",
            Self::HangUp(_) => "hangup",
            Self::Waiting => "waiting",
            Self::Escalated => "escalated",
            Self::Ended(_) => "ended",
        }
    }
}

/// The attempt that an event is about.
#[derive(Debug, Clone, Copy)]
pub struct EventAttempt<'a> {
    pub attempt: u16,
    /// The number, as the client wrote it.
    pub called: &'a str,
}

/// An event that is owed. The store gives it its place among those of its call, in the commit that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedEvent {
    pub call: CallSid,
    pub app: AppId,
    pub url: RespUrl,
    /// The body before its number, and after it.
    pub body: [String; 2],
    pub owed_at: Timestamp,
    is_last: bool,
}

impl OwedEvent {
    /// Nothing where nobody wants to know.
    pub fn new(
        call: &NewCall,
        event: StateEvent,
        about: Option<EventAttempt<'_>>,
        at: Timestamp,
        zone: &TimeZone,
    ) -> Option<Self> {
        let subscription = call.events.as_ref()?;
        let is_last = matches!(event, StateEvent::Ended(_));
        if subscription.only_last && !is_last {
            return None;
        }
        let about = about.map_or_else(String::new, |about| {
            let (attempt, number) = (about.attempt, escape(about.called));
            format!("<attempt>{attempt}</attempt><number>{number}</number>")
        });
        let more = match event {
            StateEvent::Key(key) => format!("<dtmf>{key}</dtmf>"),
            StateEvent::HangUp(outcome) | StateEvent::Ended(outcome) => {
                format!("<result>{outcome}</result>")
            }
            _ => String::new(),
        };
        let user_data = call.user_data.as_deref().map_or_else(String::new, |data| {
            format!("<userData>{}</userData>", escape(data))
        });
        let time = at.to_zoned(zone.clone()).strftime("%Y%m%d%H%M%S");
        let (sid, word) = (&call.sid, event.as_str());
        Some(Self {
            call: call.sid.clone(),
            app: call.app.clone(),
            url: subscription.url.clone(),
            body: [
                format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>CallState</action><callSid>{sid}</callSid><seq>"
                ),
                format!(
                    "</seq><event>{word}</event>{about}{more}<time>{time}</time>{user_data}</request>"
                ),
            ],
            owed_at: at,
            is_last,
        })
    }

    /// Whether it is told after an event of this number.
    pub fn has_room(&self, last: i32) -> bool {
        last < MAX_EVENTS || self.is_last
    }

    /// Where it waits.
    pub fn receiver(&self) -> String {
        events_receiver(&self.url)
    }

    /// As the event of this number.
    pub fn numbered(&self, seq: i32) -> OwedCallback {
        let key = CallbackKey {
            call: self.call.clone(),
            seq,
        };
        let [before, after] = &self.body;
        OwedCallback {
            webhook_id: key.webhook_id(),
            key,
            app: self.app.clone(),
            url: self.url.clone(),
            body: format!("{before}{seq}{after}"),
            owed_at: self.owed_at,
            valid_for: Some(EVENT_TIME),
        }
    }
}
