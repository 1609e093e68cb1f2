//! What a callee may ask of the source of an alert: that it says nothing more about it for a while. Alertmanager calls that a silence
//! (its API v2, `POST /api/v2/silences`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
