//! Incidents: what an intake remembers of something that went wrong, from its first alert until it is over. It decides which alert makes a notice.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::super::call::{CallProgress, CallSid};
use super::super::call_state::CallState;
use super::super::notice::ending::NoticeEnding;
use super::super::notice::silence::NoticeSilence;
use super::super::outcome::Outcome;
use super::super::request_key::RequestId;
use super::IntakeName;

/// A longer key of a source is kept as its hash.
const LONGEST_KEY: usize = 400;
/// So many alerts of one incident are told apart.
pub const MAX_FINGERPRINTS: usize = 1000;
/// A longer fingerprint is kept as its hash.
const LONGEST_FINGERPRINT: usize = 64;

/// What a source calls an incident.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IncidentKey(String);

impl IncidentKey {
    pub fn new(text: &str) -> Self {
        if text.len() <= LONGEST_KEY && !text.chars().any(char::is_control) {
            return Self(text.to_owned());
        }
        Self(format!("sha256:{}", hex::encode(Sha256::digest(text))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An incident that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub intake: IntakeName,
    pub key: IncidentKey,
    /// Tells it from an earlier one of the same key.
    pub id: String,
    /// How many notices it has had.
    pub notices: u32,
    /// The last of them.
    pub call: Option<CallSid>,
    /// The alerts that this notice tells of.
    pub fingerprints: Vec<String>,
    pub opened_at: Timestamp,
    pub seen_at: Timestamp,
}

/// What an alert came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentResult {
    /// People are called from now on.
    Called,
    /// They are being called already, or somebody knows.
    Known,
    Resolved,
    /// There was no such incident, or nobody needs to know.
    Nothing,
    Refused,
}

impl IncidentResult {
    pub const ALL: [Self; 5] = [
        Self::Called,
        Self::Known,
        Self::Resolved,
        Self::Nothing,
        Self::Refused,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Called => "called",
            Self::Known => "known",
            Self::Resolved => "resolved",
            Self::Nothing => "nothing",
            Self::Refused => "refused",
        }
    }
}

/// What has become of the notice of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeState {
    /// There was none, or it ended and nobody knows.
    NobodyKnows,
    /// People are being called.
    Running,
    /// Somebody has confirmed, or answered where no key was asked for.
    SomebodyKnows,
}

impl NoticeState {
    /// `None` if there is no call. Whoever has asked for silence, as the notice offered it, knows for as long as it lasts: the source does not tell of
    /// the end of what it is silent about.
    pub fn of(
        progress: Option<&CallProgress>,
        silence: Option<&NoticeSilence>,
        now: Timestamp,
    ) -> Self {
        let Some(progress) = progress else {
            return Self::NobodyKnows;
        };
        if progress.state != CallState::Ended {
            return Self::Running;
        }
        let ending = progress.notice.as_ref().and_then(|notice| notice.ending);
        let is_known = match ending {
            Some(ending) => matches!(ending, NoticeEnding::Confirmed | NoticeEnding::Talked),
            None => progress.outcome == Some(Outcome::Talked),
        };
        if is_known && !is_silence_over(progress, silence, now) {
            Self::SomebodyKnows
        } else {
            Self::NobodyKnows
        }
    }
}

fn is_silence_over(
    progress: &CallProgress,
    silence: Option<&NoticeSilence>,
    now: Timestamp,
) -> bool {
    let confirmed = progress
        .notice
        .as_ref()
        .and_then(|notice| notice.confirmed.as_ref());
    let (Some(confirmed), Some(silence)) = (confirmed, silence) else {
        return false;
    };
    let lasts = SignedDuration::from_mins(silence.minutes.into());
    let began = progress.ended_at.unwrap_or(now);
    confirmed.key == silence.key && now > began + lasts
}

/// What tells one alert of an incident from another: the source's own word for it, or all of its labels.
pub fn fingerprint(text: &str) -> String {
    if text.len() <= LONGEST_FINGERPRINT {
        return text.to_owned();
    }
    hex::encode(Sha256::digest(text))
}

impl Incident {
    /// Whether an alert that tells of these makes a notice. `calls_for_new` is what the intake says about alerts that join.
    pub fn wants_notice(
        &self,
        state: NoticeState,
        fingerprints: &[String],
        calls_for_new: bool,
    ) -> bool {
        let is_new = |fingerprint: &String| !self.fingerprints.contains(fingerprint);
        match state {
            NoticeState::NobodyKnows => true,
            NoticeState::Running | NoticeState::SomebodyKnows => {
                calls_for_new && fingerprints.iter().take(MAX_FINGERPRINTS).any(is_new)
            }
        }
    }

    /// What its next notice is called: whoever asks for it twice, or from two nodes, gets one.
    pub fn next_request(&self) -> RequestId {
        RequestId::of_incident(&self.id, self.notices + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::call::NoticeProgress;
    use super::super::super::notice::ending::Confirmation;
    use super::*;

    fn incident(fingerprints: &[&str]) -> Incident {
        Incident {
            intake: "night".parse().unwrap(),
            key: IncidentKey::new("{}:{alertname=\"Down\"}"),
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            notices: 1,
            call: None,
            fingerprints: fingerprints.iter().map(ToString::to_string).collect(),
            opened_at: Timestamp::UNIX_EPOCH,
            seen_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_repeat_calls_again_only_where_nobody_knows() {
        let wants = |state, fingerprints: &[&str], calls_for_new| {
            let fingerprints: Vec<_> = fingerprints.iter().map(ToString::to_string).collect();
            incident(&["a", "b"]).wants_notice(state, &fingerprints, calls_for_new)
        };
        for (state, fingerprints, calls_for_new, wanted) in [
            (NoticeState::NobodyKnows, &["a"][..], false, true),
            (NoticeState::Running, &["a", "b"], true, false),
            (NoticeState::SomebodyKnows, &["b"], true, false),
            (NoticeState::SomebodyKnows, &["b", "c"], true, true),
            (NoticeState::SomebodyKnows, &["b", "c"], false, false),
            (NoticeState::Running, &["c"], true, true),
        ] {
            assert_eq!(
                wants(state, fingerprints, calls_for_new),
                wanted,
                "{state:?} {fingerprints:?} {calls_for_new}"
            );
        }
    }

    #[test]
    fn somebody_knows_who_has_confirmed_or_was_asked_for_no_key() {
        let ended = |outcome, ending: Option<NoticeEnding>| CallProgress {
            state: CallState::Ended,
            outcome: Some(outcome),
            answered_at: None,
            ended_at: None,
            notice: ending.map(|ending| NoticeProgress {
                attempts: 1,
                confirmed: None,
                answered_by: None,
                ending: Some(ending),
            }),
        };
        let now = Timestamp::UNIX_EPOCH;
        let of = |progress: &CallProgress| NoticeState::of(Some(progress), None, now);
        let none = NoticeState::of(None, None, now);
        assert_eq!(none, NoticeState::NobodyKnows);
        let ringing = CallProgress::under_way(CallState::Ringing);
        assert_eq!(of(&ringing), NoticeState::Running);
        for (outcome, ending, wanted) in [
            (Outcome::Talked, None, NoticeState::SomebodyKnows),
            (Outcome::Busy, None, NoticeState::NobodyKnows),
            (
                Outcome::Confirmed,
                Some(NoticeEnding::Confirmed),
                NoticeState::SomebodyKnows,
            ),
            (
                Outcome::Unconfirmed,
                Some(NoticeEnding::Exhausted),
                NoticeState::NobodyKnows,
            ),
            (
                Outcome::Cancelled,
                Some(NoticeEnding::Cancelled),
                NoticeState::NobodyKnows,
            ),
        ] {
            assert_eq!(of(&ended(outcome, ending)), wanted, "{outcome:?}");
        }
    }

    #[test]
    fn whoever_has_asked_for_silence_knows_while_it_lasts() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let confirmed = |key| CallProgress {
            state: CallState::Ended,
            outcome: Some(Outcome::Confirmed),
            answered_at: Some(at(0)),
            ended_at: Some(at(0)),
            notice: Some(NoticeProgress {
                attempts: 1,
                confirmed: Some(Confirmation {
                    called: "13800000001".to_owned(),
                    key,
                }),
                answered_by: None,
                ending: Some(NoticeEnding::Confirmed),
            }),
        };
        let silence = NoticeSilence {
            key: '9',
            url: "http://alerts.example".to_owned(),
            minutes: 60,
            labels: std::collections::BTreeMap::new(),
            author: "clarion".to_owned(),
        };
        let knows = |key, minutes| {
            let progress = confirmed(key);
            let state = NoticeState::of(Some(&progress), Some(&silence), at(minutes));
            state == NoticeState::SomebodyKnows
        };
        assert!(knows('9', 60) && !knows('9', 61));
        assert!(knows('1', 6000), "no silence was asked for");
    }

    #[test]
    fn keys_are_bounded_and_requests_of_an_incident_have_names_of_their_own() {
        let long = IncidentKey::new(&"k".repeat(5000));
        assert_eq!(long.as_str().len(), "sha256:".len() + 64);
        assert_ne!(long, IncidentKey::new(&"k".repeat(5001)));
        assert_eq!(IncidentKey::new("组").as_str(), "组");
        let mut incident = incident(&[]);
        let first = incident.next_request();
        assert!(first.as_str().chars().count() <= 64);
        incident.notices += 1;
        assert_ne!(incident.next_request(), first);
    }
}
