//! A call that tests a trunk: placed for an application like any other, with its checks, its record and its bill line, but over this trunk alone.

use jiff::SignedDuration;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::domain::account::AppId;
use crate::domain::call::{CallKind, CallSid, NewCall, Priority};
use crate::domain::prompt::{AudioFile, ContentId, FileName, Prompt, TEST_FILE};
use crate::domain::route::{self, RouteKey};
use crate::domain::wording::wording;
use crate::placing::{RequestTimes, WillingCall, recipient};

/// It is given up if it cannot be dialled so soon.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

impl Management {
    /// Calls a number over this trunk and plays the test file. The callSid of the call.
    pub async fn test_trunk(
        &self,
        trunk: &str,
        app: &AppId,
        number: &str,
    ) -> Result<CallSid, ManagementError> {
        let change = NotedChange::new("trunk test").on(trunk).on(number);
        let placing = Box::pin(self.place_test(trunk, app, number));
        self.noted(change.with("app", app), placing).await
    }

    async fn place_test(
        &self,
        trunk: &str,
        app: &AppId,
        number: &str,
    ) -> Result<CallSid, ManagementError> {
        self.check_trunk(trunk)?;
        let application = self.application(app).await?;
        let account = self.account(&application.account).await?;
        account.check_state()?;
        application.check_usable_by(&account.sid)?;
        let to = recipient("to", number, None, &account, &self.config)?;
        let routes = self.config.trunks.iter().map(|trunk| &trunk.route);
        let own = routes.filter(|route| route.name == trunk);
        if !route::is_carried(own, to.ends()) {
            return Err(ManagementError::rule(wording!(
                "{trunk} does not carry {number}: its prefixes and callers say so",
                "中继 {trunk} 不承载 {number}（由 prefixes 和 callers 决定）"
            )));
        }
        let placing = self.placing().await?;
        let callees = placing.callees(&account, &to, None).await?;
        placing.check_room().await?;
        let now = self.clock.wall();
        let times = RequestTimes {
            now: &now,
            hours: account.call_hours.as_ref(),
            valid_for: PATIENCE,
        };
        let mut queueing = placing.queueing(&to, None, Priority::USUAL, times.usual()?);
        queueing.route = RouteKey::alone(trunk);
        let sid = placing.new_sid(&now);
        let call = NewCall {
            sid: sid.clone(),
            kind: CallKind::Notification,
            account: account.sid.clone(),
            app: app.clone(),
            accepted_at: now.timestamp(),
            called: to.called,
            number: to.number,
            callee: to.callee,
            caller: to.caller,
            prompt: Prompt {
                speech: None,
                files: vec![AudioFile {
                    name: FileName::named_by("name", TEST_FILE)?,
                    content: ContentId::test_file(),
                }],
                code: None,
                plays: 1,
            },
            max_talk: None,
            resp_url: None,
            user_data: None,
            events: None,
            notice: None,
        };
        let willing = WillingCall {
            call,
            queueing,
            callees,
            request: None,
        };
        placing.accept(&account, willing).await?;
        Ok(sid)
    }
}
