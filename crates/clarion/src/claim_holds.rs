//! Why this node claims no calls for the time being. Whatever notices such a reason holds claims by its name and releases them when it has
//! passed; calls that run go on. Readiness and metrics tell the reasons.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// The machine's clock is too far from the database's.
    Clock,
    /// Prompts cannot be made here.
    Prompts,
    /// Packets leave too late.
    Quality,
}

impl HoldKind {
    pub const ALL: [Self; 3] = [Self::Clock, Self::Prompts, Self::Quality];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Prompts => "prompts",
            Self::Quality => "quality",
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct ClaimHolds {
    reasons: Arc<Mutex<BTreeMap<HoldKind, String>>>,
}

impl ClaimHolds {
    /// Holds claims for this reason, or releases them where there is none. A change is logged.
    pub fn set(&self, kind: HoldKind, reason: Option<String>) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let was_held = reasons.contains_key(&kind);
        match &reason {
            Some(reason) if !was_held => {
                tracing::error!(kind = kind.as_str(), reason, "no calls are claimed");
            }
            None if was_held => tracing::info!(kind = kind.as_str(), "calls may be claimed again"),
            _ => {}
        }
        let is_held = f64::from(u8::from(reason.is_some()));
        metrics::gauge!("clarion_claims_held", "reason" => kind.as_str()).set(is_held);
        match reason {
            Some(reason) => reasons.insert(kind, reason),
            None => reasons.remove(&kind),
        };
    }

    /// Sets the metric of every kind, so that it is there before anything has happened.
    pub fn describe(&self) {
        for kind in HoldKind::ALL {
            self.set(kind, None);
        }
    }

    pub fn reasons(&self) -> BTreeMap<HoldKind, String> {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.clone()
    }

    pub fn holds(&self, kind: HoldKind) -> bool {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.contains_key(&kind)
    }

    pub fn is_held(&self) -> bool {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        !reasons.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_held_while_there_is_a_reason() {
        let holds = ClaimHolds::default();
        holds.describe();
        assert!(!holds.is_held());
        holds.set(HoldKind::Clock, Some("an hour ahead".to_owned()));
        holds.set(HoldKind::Clock, Some("two hours ahead".to_owned()));
        let reasons = BTreeMap::from([(HoldKind::Clock, "two hours ahead".to_owned())]);
        assert_eq!(holds.clone().reasons(), reasons);
        holds.set(HoldKind::Clock, None);
        assert!(!holds.is_held());
    }
}
