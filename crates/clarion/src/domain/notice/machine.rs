//! What a notice wants to know about whoever answers.

use serde::{Deserialize, Serialize};

use super::super::hearing::AnsweredBy;

/// As `machineDetect` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachineDetection {
    /// 1: it is only reported who has answered.
    Report,
    /// 2: a machine is hung up on.
    HangUp,
    /// 3: the message is spoken after the beep of a machine.
    AfterBeep,
}

impl MachineDetection {
    pub const ALL: [Self; 3] = [Self::Report, Self::HangUp, Self::AfterBeep];

    /// The value of `machineDetect`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "1",
            Self::HangUp => "2",
            Self::AfterBeep => "3",
        }
    }

    /// Whether the message waits until it is known who has answered.
    pub fn waits(self) -> bool {
        self != Self::Report
    }

    /// Whether an attempt that was answered so ends as one that a machine has answered.
    pub fn is_missed(self, answered_by: Option<AnsweredBy>) -> bool {
        self.waits() && answered_by == Some(AnsweredBy::Machine)
    }
}
