//! The silence that a callee has asked for, as a request to Alertmanager.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{CallbackKey, OwedCallback};
use crate::domain::call::NewCall;
use crate::domain::notice::silence::{LONGEST_SILENCE, NoticeSilence};
use crate::domain::resp_url::RespUrl;

impl OwedCallback {
    /// The request that makes a silence. After it would have ended it is worth nothing, so it is not tried for longer.
    pub fn of_silence(silence: &NoticeSilence, call: &NewCall, from: Timestamp) -> Self {
        let lasts = SignedDuration::from_mins(silence.minutes.min(LONGEST_SILENCE).into());
        let matchers: Vec<_> = silence
            .labels
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value, "isRegex": false, "isEqual": true }))
            .collect();
        let body = json!({
            "matchers": matchers,
            "startsAt": from.to_string(),
            "endsAt": (from + lasts).to_string(),
            "createdBy": silence.author,
            "comment": format!("confirmed by telephone by {} (call {})", call.number, call.sid),
        });
        let key = CallbackKey::of_silence(call.sid.clone());
        Self {
            webhook_id: key.webhook_id(),
            key,
            app: call.app.clone(),
            url: RespUrl::from_stored(silence.url.clone()),
            body: body.to_string(),
            owed_at: from,
            valid_for: Some(lasts),
        }
    }
}
