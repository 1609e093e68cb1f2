//! CallPlacing a call anew that has ended, as the operator: the same account, application, prompt, numbers and plan, and a new callSid. The checks are those of a
//! request, as they turn out now. It is due at once and of the usual urgency: for how long the first one might wait is not remembered.

use std::sync::Arc;

use jiff::SignedDuration;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::domain::account::Account;
use crate::domain::call::{CallKind, CallSid, NewCall, Priority};
use crate::domain::call_state::CallState;
use crate::domain::notice::{Notice, Recipient};
use crate::domain::prompt::Prompt;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::wording::wording;
use crate::placing::{CallPlacing, PlacingTimes, RequestTimes, WillingCall, recipient};

impl Management {
    /// The callSid of the new call.
    pub async fn call_again(&self, sid: &CallSid) -> Result<CallSid, ManagementError> {
        let placing = Box::pin(self.place_again(sid));
        self.noted(NotedChange::new("call again").on(sid), placing)
            .await
    }

    async fn place_again(&self, sid: &CallSid) -> Result<CallSid, ManagementError> {
        let before = self.ended_call(sid).await?;
        let account = self.account(&before.account).await?;
        account.check_state()?;
        let application = self.application(&before.app).await?;
        application.check_usable_by(&account.sid)?;
        let placing = self.placing().await?;
        let to =
            self.recipient_again("to", before.asked_for(), before.caller.as_deref(), &account)?;
        let notice = match before.notice.as_deref() {
            Some(notice) => Some(
                self.notice_again(&placing, &before, notice, &account)
                    .await?,
            ),
            None => None,
        };
        let callees = placing.callees(&account, &to, notice.as_ref()).await?;
        placing.check_room().await?;
        let files = placing.find_again(&before.app, "mediaName", &before.prompt.files);
        let prompt = Prompt {
            files: files.await?,
            ..before.prompt
        };
        let now = self.clock.wall();
        let times = self.times_again(&account, notice.as_ref())?;
        let priority = match &notice {
            Some(notice) if notice.lifts_hours => Priority::FIRST,
            _ => Priority::USUAL,
        };
        let queueing = placing.queueing(&to, notice.as_ref(), priority, times);
        let call = NewCall {
            sid: placing.new_sid(&now),
            accepted_at: now.timestamp(),
            prompt,
            notice: notice.map(Arc::new),
            ..before
        };
        let call = call.to(to);
        let sid = call.sid.clone();
        let willing = WillingCall {
            call,
            queueing,
            callees,
            request: None,
        };
        placing.accept(&account, willing).await?;
        Ok(sid)
    }

    async fn ended_call(&self, sid: &CallSid) -> Result<NewCall, ManagementError> {
        let missing = || ManagementError::missing(format!("call {sid}"));
        let record = self.store.call_record(sid).await?.ok_or_else(missing)?;
        if record.state != CallState::Ended {
            return Err(ManagementError::rule(wording!(
                "{sid} has not ended yet: it can be made again when it is over",
                "呼叫 {sid} 尚未结束，结束后才能再次呼叫"
            )));
        }
        if record.kind == CallKind::Verification {
            return Err(ManagementError::rule(wording!(
                "the code of {sid} was erased when the call ended: only its application can request it again",
                "呼叫 {sid} 的验证码在结束时已清除，只能由应用重新请求"
            )));
        }
        self.store.accepted_call(sid).await?.ok_or_else(missing)
    }

    /// As it may be called now. A number that may not be shown any more is replaced by the platform's, as in a request.
    fn recipient_again(
        &self,
        field: &str,
        called: &str,
        caller: Option<&str>,
        account: &Account,
    ) -> Result<Recipient, Refusal> {
        let shown = caller.map(|digits| format!("+{digits}"));
        recipient(field, called, shown.as_deref(), account, &self.config)
    }

    async fn notice_again(
        &self,
        placing: &CallPlacing,
        before: &NewCall,
        notice: &Notice,
        account: &Account,
    ) -> Result<Notice, Refusal> {
        let mut again = notice.clone();
        for (place, to) in again.numbers.iter_mut().enumerate() {
            let field = if place == 0 { "to" } else { "backupTo" };
            *to = self.recipient_again(field, &to.called, to.caller.as_deref(), account)?;
        }
        let has_more = again.plan.redials > 0 || again.numbers.len() > 1 || !again.lists.is_empty();
        if has_more {
            before
                .number
                .check_no_emergency("to", &self.config.numbers)?;
        }
        let shown = again.shown.map(|digits| format!("+{digits}"));
        again.shown = account.shown(shown.as_deref(), &self.config.numbers);
        again.lifts_hours &= account.permissions.urgent_outside_hours;
        let question = again.keys.as_mut().and_then(|keys| keys.question.as_mut());
        if let Some(question) = question {
            let files = placing.find_again(&before.app, "inputDtmfPrompt", &question.files);
            match files.await {
                Ok(files) => question.files = files,
                // The platform's sentence asks instead.
                Err(refusal) if refusal.code == StatusCode::VoiceFileMissing => {
                    again.keys.iter_mut().for_each(|keys| keys.question = None);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(again)
    }

    fn times_again(
        &self,
        account: &Account,
        notice: Option<&Notice>,
    ) -> Result<PlacingTimes, Refusal> {
        let now = self.clock.wall();
        let expiry = self.config.calls.expiry;
        let request = RequestTimes {
            now: &now,
            hours: account.call_hours.as_ref(),
            valid_for: SignedDuration::try_from(expiry).unwrap_or(SignedDuration::MAX),
        };
        match notice {
            Some(notice) => {
                let windows = notice.hours(request.hours);
                request.within(&windows, now.timestamp(), request.valid_for)
            }
            None => request.usual(),
        }
    }
}
