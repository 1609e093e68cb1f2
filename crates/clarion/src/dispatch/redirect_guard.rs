//! What an account has to say about the numbers that a trunk leads its calls to: those on its do-not-call list are not called.

use std::sync::Arc;

use async_trait::async_trait;
use phone::trunk::RedirectGuard;

use super::notices::NoticePlanner;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::NewCall;
use crate::domain::redirect::redirected_number;
use crate::domain::route::TrunkRoute;

#[derive(Debug)]
pub struct AccountGuard {
    planner: Arc<NoticePlanner>,
    account: AccountSid,
    app: AppId,
    route: TrunkRoute,
}

impl AccountGuard {
    pub fn new(planner: &Arc<NoticePlanner>, call: &NewCall, route: &TrunkRoute) -> Self {
        Self {
            planner: Arc::clone(planner),
            account: call.account.clone(),
            app: call.app.clone(),
            route: route.clone(),
        }
    }
}

#[async_trait]
impl RedirectGuard for AccountGuard {
    async fn may_lead_to(&self, written: &str) -> Result<(), String> {
        let planner = &self.planner;
        let number = redirected_number(written, &self.route, planner.numbers())?;
        match planner.is_unwanted(&self.account, &self.app, &number).await {
            Ok(false) => Ok(()),
            Ok(true) => {
                Err("it leads to a number on the do-not-call list of the account".to_owned())
            }
            Err(_) => Err("nobody could be asked whether the number wants to be called".to_owned()),
        }
    }
}
