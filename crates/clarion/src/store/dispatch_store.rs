//! What dispatch needs of the store: the queue, and a little beside it. Every store has it; a simulation has no more than this.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use supervisor::Supervisor;
use tokio::sync::Notify;

use super::{CallQueue, Store, StoreError};
use crate::domain::account::{AccountLimits, AccountSid, AccountState, AppId, AppLimits};
use crate::domain::attempt::CallHistory;
use crate::domain::call::CallSid;
use crate::domain::call_list::{CallList, ListName};
use crate::domain::call_window::CallWindow;
use crate::domain::claim::{Lease, NodeId};

/// What a customer's calls are made by.
#[derive(Debug, Clone, Default)]
pub struct CustomerRules {
    pub account: AccountLimits,
    pub app: AppLimits,
    /// Of the account.
    pub hours: Option<CallWindow>,
    /// It was suspended or closed: it makes no calls.
    pub is_stopped: bool,
    /// There are numbers that the account must not call.
    pub has_do_not_call: bool,
}

#[async_trait]
pub trait DispatchStore: CallQueue + fmt::Debug {
    /// The limits of an account and of an application of it, and the account's hours.
    async fn customer_rules(
        &self,
        account: &AccountSid,
        app: &AppId,
    ) -> Result<CustomerRules, StoreError>;
    /// The operator's switches that are set, with their values.
    async fn operator_switches(&self) -> Result<Vec<(String, String)>, StoreError>;
    /// As `BillBook::tighten_reservation`.
    async fn paid_talk(
        &self,
        sid: &CallSid,
        lease: &Lease,
        longest_talk: u32,
    ) -> Result<Option<u32>, StoreError>;
    /// The attempts of a call that is in the queue, and the legs of its earlier rounds.
    async fn history_so_far(&self, sid: &CallSid) -> Result<CallHistory, StoreError>;
    /// As `ListBook::lists_named`.
    async fn lists_of_notice(
        &self,
        account: &AccountSid,
        names: &[ListName],
    ) -> Result<Vec<CallList>, StoreError>;
    /// As `DoNotCallBook::on_do_not_call`.
    async fn unwanted_numbers(
        &self,
        account: &AccountSid,
        digits: &[&str],
    ) -> Result<HashSet<String>, StoreError>;
    /// Takes or keeps the duty to register a trunk, as `BillBook::take_duty`. It ends with the node.
    async fn registration_duty(
        &self,
        trunk: &str,
        node: &NodeId,
        lease: SignedDuration,
    ) -> Result<bool, StoreError>;
    /// As `Store::wake_up`.
    fn woken(&self, supervisor: &Supervisor) -> Arc<Notify>;
}

#[async_trait]
impl<S: Store> DispatchStore for S {
    async fn customer_rules(
        &self,
        account: &AccountSid,
        app: &AppId,
    ) -> Result<CustomerRules, StoreError> {
        let account = self.account(account).await?;
        let app = self.application(app).await?;
        Ok(CustomerRules {
            account: account
                .as_ref()
                .map(|account| account.limits)
                .unwrap_or_default(),
            app: app.map(|app| app.limits).unwrap_or_default(),
            is_stopped: account
                .as_ref()
                .is_some_and(|account| account.state != AccountState::Active),
            has_do_not_call: account
                .as_ref()
                .is_some_and(|account| account.has_do_not_call),
            hours: account.and_then(|account| account.call_hours),
        })
    }

    async fn history_so_far(&self, sid: &CallSid) -> Result<CallHistory, StoreError> {
        self.call_history(sid).await
    }

    async fn lists_of_notice(
        &self,
        account: &AccountSid,
        names: &[ListName],
    ) -> Result<Vec<CallList>, StoreError> {
        self.lists_named(account, names).await
    }

    async fn unwanted_numbers(
        &self,
        account: &AccountSid,
        digits: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        self.on_do_not_call(account, digits).await
    }

    async fn operator_switches(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.switches().await
    }

    async fn paid_talk(
        &self,
        sid: &CallSid,
        lease: &Lease,
        longest_talk: u32,
    ) -> Result<Option<u32>, StoreError> {
        self.tighten_reservation(sid, lease, longest_talk).await
    }

    async fn registration_duty(
        &self,
        trunk: &str,
        node: &NodeId,
        lease: SignedDuration,
    ) -> Result<bool, StoreError> {
        self.take_duty(&format!("register:{trunk}"), node, lease)
            .await
    }

    fn woken(&self, supervisor: &Supervisor) -> Arc<Notify> {
        self.wake_up(supervisor)
    }
}
