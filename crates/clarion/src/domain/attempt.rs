//! An attempt: one dialled number of a call. Each has one line in the bill.

use jiff::Timestamp;

use super::call_sid::CallSid;
use super::callee_choice::CalleeChoice;
use super::hearing::AnsweredBy;
use super::leg::Leg;
use super::outcome::Outcome;
use super::phone_number::PhoneNumber;

/// The place of an attempt in its call, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptNumber(u16);

impl AttemptNumber {
    pub const FIRST: Self = Self(1);

    pub fn new(number: u16) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    pub fn number(self) -> u16 {
        self.0
    }

    /// The id of the attempt's bill line. The client knows that of the first one before it is dialled.
    pub fn order_id(self, call: &CallSid) -> String {
        match self {
            Self::FIRST => call.to_string(),
            Self(number) => format!("{call}-{number}"),
        }
    }
}

/// The callSid of the call that a bill line with this id would belong to, if it is one of ours.
pub fn call_of_order(order_id: &str) -> &str {
    order_id.split_once('-').map_or(order_id, |(call, _)| call)
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub number: AttemptNumber,
    pub to: PhoneNumber,
    pub outcome: Outcome,
    /// `None` if it was never dialled.
    pub dialled_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    /// What the callee has said by keys.
    pub choice: Option<CalleeChoice>,
    /// Where the request wanted to know, and somebody answered.
    pub answered_by: Option<AnsweredBy>,
    /// The name of the voice that spoke its text.
    pub voice: Option<String>,
}

/// A leg, and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegOfCall {
    pub attempt: AttemptNumber,
    /// From 1 on, within its attempt.
    pub number: u32,
    pub leg: Leg,
}

/// What is stored of a call's attempts and of their legs, in order. The attempt that a call is at has no row yet, but may have legs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallHistory {
    pub attempts: Vec<Attempt>,
    pub legs: Vec<LegOfCall>,
}

impl CallHistory {
    /// The legs of one attempt.
    pub fn legs_of(&self, attempt: AttemptNumber) -> impl Iterator<Item = &Leg> {
        let legs = self.legs.iter().filter(move |leg| leg.attempt == attempt);
        legs.map(|of_call| &of_call.leg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_call_has_its_call_sid_and_later_ones_a_number() {
        let call: CallSid = "26111502351000001000000000000000".parse().unwrap();
        let id = |number| AttemptNumber::new(number).unwrap().order_id(&call);
        assert_eq!(id(1), call.as_str());
        assert_eq!(id(2), "26111502351000001000000000000000-2");
        assert_eq!(id(50), "26111502351000001000000000000000-50");
        assert_eq!(AttemptNumber::new(0), None);
        for number in [1, 2, 50] {
            assert_eq!(call_of_order(&id(number)), call.as_str());
        }
    }
}
