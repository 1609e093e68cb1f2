//! The verbs of the store that are about callbacks: one queue for final callbacks and events. They become owed in the transaction that ends
//! a call, or that they are about.

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackKey, CallbackLease, CallbackState, ClaimedCallback,
    DueReceiver, EndedAttempt, OwedCallback, ReceiverShare,
};

/// Due times are by the store's own clock, as in the queue of calls: verbs are told how long, never when.
#[async_trait]
pub trait CallbackQueue: Send + Sync {
    /// The receivers of each application with callbacks that are due, some at a time: what it costs does not depend on how much waits.
    async fn due_receivers(&self, look: ReceiverLook) -> Result<DueReceivers, StoreError>;
    /// Takes leases on callbacks that are due, oldest first, at most as many as the shares allow. Of the events of one call one is taken at a
    /// time, the earliest of those that are due. `None` if another node was quicker: look again.
    async fn claim_callbacks(
        &self,
        claim: CallbackClaim,
    ) -> Result<Option<Vec<ClaimedCallback>>, StoreError>;
    /// Records attempts and what follows from each, all in one transaction. Those whose lease was lost are left out; the others are returned.
    /// An event that was delivered supersedes the earlier ones of its call to the same address that still wait.
    async fn record_attempts(
        &self,
        ended: Vec<EndedAttempt>,
    ) -> Result<Vec<CallbackKey>, StoreError>;
    /// Gives leases back; the callbacks are due as before.
    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError>;
    /// Frees the callbacks of holders that are gone: on SQLite everyone but `node`, on PostgreSQL whose lease has run out. Returns how many.
    async fn reclaim_callbacks(&self, node: &str) -> Result<u64, StoreError>;
    /// Gives up events that have waited for so long without a place, at most so many. Returns how many.
    async fn give_up_late_events(
        &self,
        waited: SignedDuration,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError>;
    /// Newest calls first.
    async fn callbacks(&self, filter: CallbackFilter) -> Result<CallbackPage, StoreError>;
    /// A callback with its attempts, oldest first.
    async fn callback(
        &self,
        key: &CallbackKey,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError>;
    /// Makes a callback due now, at the beginning of the schedule, whatever became of it. Its attempts are kept.
    async fn replay_callback(&self, key: &CallbackKey) -> Result<(), StoreError>;
    /// Does that to many final callbacks, a step at a time.
    async fn replay_callbacks(&self, step: ReplayStep) -> Result<Replayed, StoreError>;
    /// Owes an event about a call, after those that it has. False if it has had too many of them.
    async fn owe_event(&self, owed: OwedCallback) -> Result<bool, StoreError>;
    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError>;
}

/// Where to look for callbacks that are due.
#[derive(Debug, Clone)]
pub struct ReceiverLook {
    /// The most receivers of one application.
    pub limit: u32,
    /// The receiver behind which to go on, for applications that had more of them than the look before saw.
    pub after: HashMap<AppId, String>,
    /// Accounts whose callbacks cannot be taken now.
    pub full: Vec<AccountSid>,
}

/// What a look has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueReceivers {
    pub receivers: Vec<DueReceiver>,
    /// How long it takes until something else is due, as far as the look went.
    pub next_due: Option<SignedDuration>,
    /// Where to go on, for applications that have more receivers.
    pub after: HashMap<AppId, String>,
}

/// Which callbacks a node takes.
#[derive(Debug, Clone)]
pub struct CallbackClaim {
    /// This life of this process.
    pub node: String,
    /// Longer than an attempt may take, so that leases need no renewal.
    pub lease: SignedDuration,
    pub shares: Vec<ReceiverShare>,
}

/// An application that callbacks wait of, and the time until its first is due.
#[derive(Debug, Clone)]
pub(super) struct WaitingApp {
    pub app: AppId,
    pub account: AccountSid,
    pub first: SignedDuration,
}

impl ReceiverLook {
    /// The applications whose receivers are to be looked at, each with the receiver to begin behind; and what is known without.
    pub(super) fn choose(
        &self,
        waiting: Vec<WaitingApp>,
    ) -> (Vec<(WaitingApp, String)>, DueReceivers) {
        let mut found = DueReceivers::default();
        let mut due = Vec::new();
        for app in waiting {
            if app.first.is_positive() {
                found.later(app.first);
            } else if !self.full.contains(&app.account) {
                let after = self.after.get(&app.app).cloned().unwrap_or_default();
                due.push((app, after));
            }
        }
        (due, found)
    }
}

impl DueReceivers {
    /// Adds what was found of one application: its receivers, each with the time until its first is due.
    pub(super) fn add(
        &mut self,
        app: &WaitingApp,
        limit: u32,
        seen: Vec<(String, SignedDuration)>,
    ) {
        if seen.len() >= usize::try_from(limit).unwrap_or(usize::MAX)
            && let Some((last, _)) = seen.last()
        {
            self.after.insert(app.app.clone(), last.clone());
        }
        for (receiver, first) in seen {
            if first.is_positive() {
                self.later(first);
                continue;
            }
            self.receivers.push(DueReceiver {
                account: app.account.clone(),
                app: app.app.clone(),
                receiver,
                overdue: -first,
            });
        }
    }

    fn later(&mut self, wait: SignedDuration) {
        self.next_due = Some(self.next_due.map_or(wait, |known| known.min(wait)));
    }
}

/// Final callbacks that are to be sent again.
#[derive(Debug, Clone)]
pub struct ReplayStep {
    pub from: ReplayFrom,
    pub app: Option<AppId>,
    /// Name and port.
    pub host: Option<String>,
    /// Of calls after this one.
    pub after: CallSid,
    /// Callbacks that are looked at.
    pub limit: u32,
}

/// What became of the callbacks that are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayFrom {
    #[default]
    GivenUp,
    Delivered,
}

impl ReplayStep {
    pub(super) fn is_wanted(&self, app: &str, host: &str) -> bool {
        self.app
            .as_ref()
            .is_none_or(|wanted| wanted.as_str() == app)
            && self.host.as_ref().is_none_or(|wanted| wanted == host)
    }
}

/// What a step has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    pub count: u64,
    /// The next step goes on after this call; `None`: it is all done.
    pub next: Option<CallSid>,
}

/// The callbacks that an operator wants to see. Some states have an index; what else is asked looks at a stretch of the newest.
#[derive(Debug, Clone, Default)]
pub struct CallbackFilter {
    pub state: Option<CallbackState>,
    pub app: Option<AppId>,
    /// Name and port.
    pub host: Option<String>,
    /// The page after this one: its last.
    pub before: Option<CallbackKey>,
    pub limit: u32,
}

/// A page of a list of callbacks.
#[derive(Debug, Clone, Default)]
pub struct CallbackPage {
    pub callbacks: Vec<Callback>,
    /// The next page is before this callback; `None`: there is none.
    pub next: Option<CallbackKey>,
    /// The search stopped here before the page was full: it can go on.
    pub searched_until: Option<CallbackKey>,
}

/// What is still to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallbackBacklog {
    pub waiting: u64,
    pub oldest_owed_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(name: char, first: i64) -> WaitingApp {
        WaitingApp {
            app: name.to_string().repeat(32).parse().unwrap(),
            account: name.to_string().repeat(32).parse().unwrap(),
            first: SignedDuration::from_secs(first),
        }
    }

    #[test]
    fn a_look_goes_on_behind_the_last_receiver_that_it_saw() {
        let look = ReceiverLook {
            limit: 2,
            after: HashMap::from([(waiting('a', 0).app, "m:80".to_owned())]),
            full: vec![waiting('b', 0).account],
        };
        let apps = vec![
            waiting('a', -1),
            waiting('b', -1),
            waiting('c', 7),
            waiting('d', 0),
        ];
        let (chosen, mut found) = look.choose(apps);
        let begun: Vec<_> = chosen.iter().map(|(_, after)| after.as_str()).collect();
        assert_eq!(
            begun,
            ["m:80", ""],
            "those that are due, and not of a full account"
        );
        assert_eq!(found.next_due, Some(SignedDuration::from_secs(7)));
        let seen = |receiver: &str, first| (receiver.to_owned(), SignedDuration::from_secs(first));
        found.add(
            &chosen[0].0,
            look.limit,
            vec![seen("n:80", -3), seen("o:80", 5)],
        );
        found.add(&chosen[1].0, look.limit, vec![seen("x:80", 0)]);
        assert_eq!(
            found.after,
            HashMap::from([(waiting('a', 0).app, "o:80".to_owned())])
        );
        assert_eq!(found.next_due, Some(SignedDuration::from_secs(5)));
        let due: Vec<_> = found
            .receivers
            .iter()
            .map(|due| due.receiver.as_str())
            .collect();
        assert_eq!(due, ["n:80", "x:80"]);
        assert_eq!(found.receivers[0].overdue, SignedDuration::from_secs(3));
    }
}
