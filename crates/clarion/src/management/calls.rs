//! Calls: which there are, what happened to one, and how an operator ends it. Numbers that are never called.

use jiff::Timestamp;

use super::change::NotedChange;
use super::{Management, ManagementError, SeenCall};
use crate::domain::bill::BillLine;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_record::{CallFilter, CallPage};
use crate::domain::call_state::CallState;
use crate::domain::callback::Callback;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::wording::wording;

/// What came of barring a number, or of allowing it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarredNumber {
    pub digits: String,
    pub is_barred: bool,
    /// False if it was so before.
    pub is_new: bool,
}

/// A call with everything that belongs to it.
#[derive(Debug)]
pub struct CallStory {
    /// What was asked for.
    pub accepted: NewCall,
    /// What happened; `steps` tells it in order.
    pub seen: SeenCall,
    /// The final one first, then events. `Management::callback` has the attempts of each.
    pub callbacks: Vec<Callback>,
    /// One an attempt.
    pub bill_lines: Vec<BillLine>,
}

impl Management {
    /// The newest first.
    pub async fn calls(&self, filter: CallFilter) -> Result<CallPage, ManagementError> {
        Ok(self.store.list_calls(filter).await?)
    }

    /// The least callSid of this moment, by which lists of calls begin and end.
    pub fn sid_at(&self, moment: Timestamp) -> CallSid {
        CallSid::first_at(&moment.to_zoned(self.clock.zone().clone()))
    }

    /// The digits by which a list finds the calls to a number, in any form.
    pub fn digits(&self, number: &str) -> Result<String, ManagementError> {
        let number = PhoneNumber::parse(number, &self.config.numbers)?;
        Ok(number.digits().to_owned())
    }

    /// Everything that can be told of a call.
    pub async fn call_story(&self, sid: &CallSid) -> Result<CallStory, ManagementError> {
        let seen = self.call(sid).await?;
        let accepted = self.store.accepted_call(sid).await?;
        let missing = || ManagementError::missing(format!("call {sid}"));
        Ok(CallStory {
            accepted: accepted.ok_or_else(missing)?,
            callbacks: self.callbacks_of(sid).await?,
            bill_lines: self.store.bill_lines_of(sid).await?,
            seen,
        })
    }

    /// Everything that is stored of a call.
    pub async fn call(&self, sid: &CallSid) -> Result<SeenCall, ManagementError> {
        let seen = self.look_again(None, sid).await?;
        seen.ok_or_else(|| ManagementError::missing(format!("call {sid}")))
    }

    /// Looks at a call again. What cannot have changed since is not read again. `None` if there is no such call.
    pub async fn look_again(
        &self,
        before: Option<SeenCall>,
        sid: &CallSid,
    ) -> Result<Option<SeenCall>, ManagementError> {
        Ok(SeenCall::again(before, &*self.store, sid).await?)
    }

    /// Ends a call: one that waits is not dialled, one in progress is hung up. How far it had come.
    pub async fn cancel_call(&self, sid: &CallSid) -> Result<CallState, ManagementError> {
        let cancel = async {
            let state = self.store.cancel_call(sid).await?;
            let over = || {
                ManagementError::rule(wording!(
                    "{sid} has ended already, or there is no such call",
                    "呼叫 {sid} 已结束，或不存在"
                ))
            };
            state.ok_or_else(over)
        };
        self.noted(NotedChange::new("call cancel").on(sid), cancel)
            .await
    }

    /// Nobody may call the number.
    pub async fn bar_number(&self, number: &str) -> Result<BarredNumber, ManagementError> {
        self.set_barred(NotedChange::new("call bar").on(number), number, true)
            .await
    }

    pub async fn unbar_number(&self, number: &str) -> Result<BarredNumber, ManagementError> {
        self.set_barred(NotedChange::new("call unbar").on(number), number, false)
            .await
    }

    /// Digits, in their order.
    pub async fn barred_numbers(&self) -> Result<Vec<String>, ManagementError> {
        Ok(self.store.barred_numbers().await?)
    }

    async fn set_barred(
        &self,
        change: NotedChange,
        number: &str,
        is_barred: bool,
    ) -> Result<BarredNumber, ManagementError> {
        let bar = async {
            let number =
                PhoneNumber::parse(number, &self.config.numbers).map_err(ManagementError::from)?;
            let digits = number.digits().to_owned();
            let now = self.clock.now();
            let is_new = self.store.bar_number(&digits, is_barred, now).await?;
            Ok::<_, ManagementError>(BarredNumber {
                digits,
                is_barred,
                is_new,
            })
        };
        self.noted(change, bar).await
    }
}
