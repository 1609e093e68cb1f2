//! Why a call ended as it did: what the telephone's ending means for the record.

use phone::ending::{Cause, Failure};

use crate::domain::hearing::{HeardTone, Hearing};
use crate::domain::leg::Leg;
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::outcome::Outcome;
use crate::domain::response_policy::{Judgement, ResponsePolicy, TrunkResponse, Verdict};

/// Why a call ended as it did.
#[derive(Debug, Clone)]
pub struct EndReason {
    pub outcome: Outcome,
    pub sip_code: Option<u16>,
    pub text: Option<String>,
    /// How its notice ends with it, where that is not for the plan to decide.
    pub ending: Option<NoticeEnding>,
}

impl EndReason {
    pub fn plain(outcome: Outcome) -> Self {
        Self {
            outcome,
            sip_code: None,
            text: None,
            ending: None,
        }
    }

    /// Its notice ends with it.
    #[must_use]
    pub fn for_good(mut self, ending: NoticeEnding) -> Self {
        self.ending = Some(ending);
        self
    }

    pub fn because(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            text: Some(reason.into()),
            ..Self::plain(outcome)
        }
    }

    /// It was tried in vain until it had waited for too long.
    pub fn expired<'a>(legs: impl Iterator<Item = &'a Leg>) -> Self {
        let legs: Vec<_> = legs.collect();
        let Some(last) = legs.last() else {
            return Self::plain(Outcome::Expired);
        };
        let said = match (last.sip_code, &last.phrase) {
            (Some(code), Some(phrase)) => format!("{code} {phrase}"),
            (Some(code), None) => code.to_string(),
            (None, _) => "no response".to_owned(),
        };
        let times = match legs.len() {
            1 => "once".to_owned(),
            legs => format!("{legs} times"),
        };
        let text = format!(
            "dialled {times} in vain; the last trunk, {}, said: {said}",
            last.trunk
        );
        Self {
            sip_code: last.sip_code,
            ..Self::because(Outcome::Expired, text)
        }
    }

    /// Of a call that was answered, and on which nobody was but the network: it says by tones that there is nobody.
    pub fn of_tone(heard: Hearing) -> Option<Self> {
        let (outcome, text) = match heard.tone? {
            HeardTone::Busy => (Outcome::Busy, "a busy tone"),
            HeardTone::Congestion => (Outcome::TrunkFailure, "a congestion tone"),
            HeardTone::Dial => (Outcome::TrunkFailure, "a dial tone"),
            HeardTone::Special => (Outcome::NotAnswered, "the tones before an announcement"),
            HeardTone::Fax | HeardTone::Announcement => return None,
        };
        let text = format!("the call was answered, and the line has {text}");
        Some(Self::because(outcome, text))
    }

    pub fn of_failure(failure: &Failure, outcome: Outcome) -> Self {
        // What it was judged to be, and the peer's own words: whatever bytes it has sent, what is kept is a line of text.
        let word = match failure.response {
            Some(_) if !failure.given_up => outcome.as_str(),
            _ => failure.cause.as_str(),
        };
        let text = match &failure.response {
            Some((code, phrase)) => format!("{word} ({code} {phrase})"),
            None => word.to_owned(),
        };
        let text = text.replace(char::is_control, " ");
        Self {
            sip_code: failure.response.as_ref().map(|(code, _)| *code),
            ..Self::because(outcome, text)
        }
    }
}

/// What becomes of a call that failed: by the trunk's policy where a response says why, and otherwise by our own knowledge.
pub fn judge(failure: &Failure, policy: &ResponsePolicy) -> Judgement {
    if let Some((code, q850)) = failure.reason() {
        let said = failure.response.as_ref().map(|(_, phrase)| phrase.as_str());
        let told = failure.q850.as_ref().and_then(|q850| q850.text.as_deref());
        return policy.judge(&TrunkResponse {
            code,
            rang: failure.rang,
            q850,
            phrases: [said.unwrap_or_default(), told.unwrap_or_default()],
        });
    }
    let (verdict, outcome) = match failure.cause {
        Cause::Busy => (Verdict::Final, Outcome::Busy),
        Cause::Declined => (Verdict::Final, Outcome::Declined),
        Cause::NoAnswer => (Verdict::Final, Outcome::NotAnswered),
        Cause::Cancelled => (Verdict::Final, Outcome::Cancelled),
        Cause::NoRoute => (Verdict::Final, Outcome::InvalidNumber),
        Cause::Rejected | Cause::BadMedia => (Verdict::NextTrunk, Outcome::TrunkFailure),
        Cause::Unavailable | Cause::TimedOut | Cause::TransportDown | Cause::Exhausted => {
            (Verdict::Wait, Outcome::TrunkFailure)
        }
        // It rang, or may have, and then our lease was not certain any more.
        Cause::Withheld | Cause::LeaveLost => (Verdict::Final, Outcome::Interrupted),
    };
    Judgement { verdict, outcome }
}

/// Whether the next host of a trunk is tried: where the policy would have the call wait, the trouble may lie with this one.
pub fn leaves_other_hosts(failure: &Failure, policy: &ResponsePolicy) -> bool {
    judge(failure, policy).verdict == Verdict::Wait && failure.cause != Cause::Exhausted
}

/// The same judgement where the network has said more by tones or by a voice before it refused. A code that says why stands; others are vague.
pub fn with_heard(judgement: Judgement, heard: Option<Hearing>) -> Judgement {
    let outcome = judgement.outcome;
    let is_vague = matches!(outcome, Outcome::NotAnswered | Outcome::TrunkFailure);
    let outcome = match heard.and_then(|heard| heard.tone) {
        Some(HeardTone::Busy) if is_vague => Outcome::Busy,
        Some(HeardTone::Announcement | HeardTone::Special) if is_vague => Outcome::NotAnswered,
        _ => outcome,
    };
    Judgement {
        outcome,
        ..judgement
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_a_peer_says_is_kept_as_a_line_of_text() {
        let failure = Failure {
            response: Some((486, "Bu\0sy\r\nHere".to_owned())),
            rang: true,
            ..Failure::plain(Cause::Busy)
        };
        let judgement = judge(&failure, &ResponsePolicy::default());
        let reason_of_end = EndReason::of_failure(&failure, judgement.outcome);
        assert_eq!(reason_of_end.outcome, Outcome::Busy);
        let reason = reason_of_end.text.unwrap();
        assert!(!reason.contains(char::is_control), "{reason:?}");
    }

    #[test]
    fn the_word_of_a_refusal_is_that_of_its_judgement() {
        let failure = Failure {
            response: Some((603, "Decline".to_owned())),
            ..Failure::plain(Cause::Declined)
        };
        let text = |outcome| EndReason::of_failure(&failure, outcome).text.unwrap();
        assert_eq!(text(Outcome::TrunkFailure), "trunk-failure (603 Decline)");
        assert_eq!(text(Outcome::Declined), "declined (603 Decline)");
        let cancelled = Failure {
            given_up: true,
            ..Failure::plain(Cause::NoAnswer)
        };
        let reason = EndReason::of_failure(&cancelled, Outcome::NotAnswered);
        assert_eq!(reason.text.unwrap(), "no-answer");
    }

    #[test]
    fn what_was_heard_decides_where_the_code_is_vague() {
        use HeardTone::{Announcement, Busy, Dial, Special};
        let heard = |tone| {
            Some(Hearing {
                answered_by: None,
                tone: Some(tone),
                after: Duration::from_secs(2),
            })
        };
        let judged = |outcome, heard| {
            let verdict = Verdict::Final;
            with_heard(Judgement { verdict, outcome }, heard).outcome
        };
        for (outcome, tone, expected) in [
            (Outcome::NotAnswered, Busy, Outcome::Busy),
            (Outcome::TrunkFailure, Busy, Outcome::Busy),
            (Outcome::TrunkFailure, Announcement, Outcome::NotAnswered),
            (Outcome::TrunkFailure, Special, Outcome::NotAnswered),
            (Outcome::InvalidNumber, Announcement, Outcome::InvalidNumber),
            (Outcome::Declined, Busy, Outcome::Declined),
            (Outcome::NotAnswered, Dial, Outcome::NotAnswered),
        ] {
            assert_eq!(
                judged(outcome, heard(tone)),
                expected,
                "{outcome:?} {tone:?}"
            );
        }
        assert_eq!(judged(Outcome::NotAnswered, None), Outcome::NotAnswered);
    }
}
