//! The order in which whoever keeps a call's record is told of its INVITE and its answer.

use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::call::CallEvent;

/// Tells of an INVITE before its answer. A peer may answer before the task that has sent the INVITE runs again: that answer waits here.
#[derive(Debug)]
pub struct EventOrder {
    events: mpsc::UnboundedSender<CallEvent>,
    told: Mutex<Told>,
}

#[derive(Debug)]
enum Told {
    Nothing,
    /// Still nothing, and an answer waits.
    NothingYet(CallEvent),
    Dialling,
}

impl EventOrder {
    pub fn new(events: mpsc::UnboundedSender<CallEvent>) -> Self {
        Self {
            events,
            told: Mutex::new(Told::Nothing),
        }
    }

    pub fn dialling(&self, event: CallEvent) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.events.send(event);
        if let Told::NothingYet(answer) = std::mem::replace(&mut *told, Told::Dialling) {
            let _ = self.events.send(answer);
        }
    }

    pub fn answered(&self, event: CallEvent) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match *told {
            Told::Dialling => {
                let _ = self.events.send(event);
            }
            _ => *told = Told::NothingYet(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::call::AnswerRecorded;

    #[test]
    fn an_answer_that_is_too_quick_is_told_after_its_invite() {
        for early in [true, false] {
            let (events, mut happened) = mpsc::unbounded_channel();
            let order = EventOrder::new(events);
            let answer = || CallEvent::Answered(None, AnswerRecorded(oneshot::channel().0));
            if early {
                order.answered(answer());
                assert!(happened.try_recv().is_err());
            }
            order.dialling(CallEvent::Dialling(None));
            if !early {
                order.answered(answer());
            }
            assert!(matches!(happened.try_recv(), Ok(CallEvent::Dialling(_))));
            assert!(matches!(happened.try_recv(), Ok(CallEvent::Answered(..))));
        }
    }
}
