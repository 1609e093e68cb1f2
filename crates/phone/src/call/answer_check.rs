//! Who has answered: the ears listen after the answer, and what they hear decides what is played, or that we hang up.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::leg_record::{HeardLine, WhyHungUp};
use crate::media::ears::{Answerer, EarReport, LineTone};
use crate::media::inbound_handle::InboundHandle;

/// Whoever is not known to be a machine after so long is a human.
pub const LONGEST_CHECK: Duration = Duration::from_secs(4);
/// The beep of a machine is waited for so long at most.
pub const LONGEST_GREETING: Duration = Duration::from_secs(45);

/// What is done where a machine has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineAction {
    /// Nothing: it is said in the record of the leg.
    Report,
    HangUp,
    /// The message is played when it records.
    SpeakAfterBeep,
}

/// What follows from what was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckStep {
    /// The message can be played to whoever this is.
    Speak(Answerer),
    /// There is a reason to hang up.
    HangUp(WhyHungUp),
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Keys of an extension are sent; what is heard is the switchboard.
    Opening,
    Listening,
    /// A human hears the message as soon as the opening is over.
    Human,
    /// A machine speaks, until then at most.
    Greeting {
        until: Instant,
    },
    Over,
}

#[derive(Debug)]
pub(super) struct AnswerCheck {
    action: MachineAction,
    inbound: InboundHandle,
    /// Told when the ears know more.
    heard: Arc<Notify>,
    begins: Instant,
    opening_ends: Instant,
    stage: Stage,
    line: HeardLine,
}

impl AnswerCheck {
    /// `before` is the time from now until the keys of an extension are sent, `opening` until the message may begin.
    pub fn new(
        action: MachineAction,
        inbound: InboundHandle,
        heard: Arc<Notify>,
        before: Duration,
        opening: Duration,
    ) -> Self {
        let now = Instant::now();
        // What was heard before the answer is not who has answered.
        inbound.set_ears(false);
        Self {
            action,
            inbound,
            heard,
            begins: now + before,
            opening_ends: now + opening,
            stage: Stage::Opening,
            line: HeardLine {
                answered_by: Some(Answerer::Unknown),
                tone: None,
                after: Duration::ZERO,
            },
        }
    }

    /// What is known of the line now.
    pub fn line(&self) -> HeardLine {
        self.line
    }

    /// Waits for what follows. Dropping it half-way and calling it again loses nothing.
    pub async fn next(&mut self) -> CheckStep {
        loop {
            let (step, until) = match self.stage {
                Stage::Opening => {
                    tokio::time::sleep_until(self.begins).await;
                    self.inbound.set_ears(true);
                    self.stage = Stage::Listening;
                    continue;
                }
                Stage::Listening => (self.judge(), self.begins + LONGEST_CHECK),
                Stage::Greeting { until } => (self.judge_greeting(until), until),
                Stage::Human => {
                    tokio::time::sleep_until(self.opening_ends).await;
                    (Some(CheckStep::Speak(Answerer::Human)), self.opening_ends)
                }
                Stage::Over => std::future::pending().await,
            };
            if let Some(step) = step {
                self.stop_listening();
                return step;
            }
            if matches!(self.stage, Stage::Listening | Stage::Greeting { .. }) {
                tokio::select! {
                    () = self.heard.notified() => {}
                    () = tokio::time::sleep_until(until) => {}
                }
            }
        }
    }

    fn report(&self) -> EarReport {
        self.inbound.ear_report().unwrap_or_default()
    }

    /// What the first that is known comes to.
    fn judge(&mut self) -> Option<CheckStep> {
        let report = self.report();
        self.line.tone = report.tone;
        if report.tone.is_some_and(says_nobody) {
            self.line.after = report.after;
            if self.action == MachineAction::Report {
                self.stop_listening();
                return None;
            }
            return Some(CheckStep::HangUp(WhyHungUp::Tone));
        }
        let is_late = Instant::now() >= self.begins + LONGEST_CHECK;
        let (answerer, after) = match report.answerer {
            Some(answerer) => (answerer, report.after),
            None if is_late => (Answerer::Human, LONGEST_CHECK),
            None => return None,
        };
        self.line.answered_by = Some(answerer);
        self.line.after = after;
        match (self.action, answerer) {
            (MachineAction::Report, _) => self.stop_listening(),
            (MachineAction::HangUp, Answerer::Machine) => {
                return Some(CheckStep::HangUp(WhyHungUp::Machine));
            }
            (MachineAction::SpeakAfterBeep, Answerer::Machine) => {
                let until = Instant::now() + LONGEST_GREETING;
                self.stage = Stage::Greeting { until };
            }
            (MachineAction::HangUp | MachineAction::SpeakAfterBeep, _) => {
                self.stage = Stage::Human;
            }
        }
        None
    }

    /// Whether the machine records now. One that is followed by a tone of the network was the network's.
    fn judge_greeting(&mut self, until: Instant) -> Option<CheckStep> {
        let report = self.report();
        if report.tone.is_some_and(says_nobody) {
            self.line.tone = report.tone;
            self.line.answered_by = Some(Answerer::Unknown);
            return Some(CheckStep::HangUp(WhyHungUp::Tone));
        }
        let is_time = report.takes_message || Instant::now() >= until;
        is_time.then_some(CheckStep::Speak(Answerer::Machine))
    }

    fn stop_listening(&mut self) {
        self.inbound.set_ears(false);
        self.stage = Stage::Over;
    }
}

/// The network says that nobody is there.
fn says_nobody(tone: LineTone) -> bool {
    match tone {
        LineTone::Busy | LineTone::Congestion | LineTone::Dial | LineTone::Special => true,
        LineTone::Fax | LineTone::Announcement => false,
    }
}
