//! What a callee may ask of the source of an alert: that it says nothing more about it for a while. Alertmanager calls that a silence
//! (its API v2, `POST /api/v2/silences`).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::call::NewCall;
use super::super::callback::{CallbackKey, OwedCallback, RespUrl};

/// Nobody silences an alert for longer by telephone, in minutes.
pub const LONGEST_SILENCE: u32 = 240;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeSilence {
    /// Whoever confirms with this key asks for it.
    pub key: char,
    /// Where silences are made.
    pub url: String,
    pub minutes: u32,
    /// The alerts that have exactly these are silenced, and no others.
    pub labels: BTreeMap<String, String>,
    /// On whose behalf.
    pub author: String,
}

impl NoticeSilence {
    /// The request that makes it. After it would have ended it is worth nothing, so it is not tried for longer.
    pub fn owed(&self, call: &NewCall, from: Timestamp) -> OwedCallback {
        let lasts = SignedDuration::from_mins(self.minutes.min(LONGEST_SILENCE).into());
        let matchers: Vec<_> = self
            .labels
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value, "isRegex": false, "isEqual": true }))
            .collect();
        let body = json!({
            "matchers": matchers,
            "startsAt": from.to_string(),
            "endsAt": (from + lasts).to_string(),
            "createdBy": self.author,
            "comment": format!("confirmed by telephone by {} (call {})", call.number, call.sid),
        });
        let key = CallbackKey::of_silence(call.sid.clone());
        OwedCallback {
            webhook_id: key.webhook_id(),
            key,
            app: call.app.clone(),
            url: RespUrl::from_stored(self.url.clone()),
            body: body.to_string(),
            owed_at: from,
            valid_for: Some(lasts),
        }
    }
}
