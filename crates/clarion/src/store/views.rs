//! The verbs of the store that operators look with. Each costs no more however much there is to remember: it goes by an index, and reads a bounded part of it.
//! What grows with the queue is said so, and is for those who remember the answer.

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::bill::{BillLine, Totals};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_record::{CallFilter, CallLife, CallPage, CallRecord};
use crate::domain::call_state::CallState;
use crate::domain::callback::{Callback, CallbackAttempt};
use crate::domain::claim::NodeId;

#[async_trait]
pub trait OperatorViews: Send + Sync {
    /// The newest first.
    async fn list_calls(&self, filter: CallFilter) -> Result<CallPage, StoreError>;
    /// A call as it was accepted; a verification that has ended has no code any more. Its callee is that of its number alone.
    async fn accepted_call(&self, sid: &CallSid) -> Result<Option<NewCall>, StoreError>;
    /// What is owed for a call: the final callback first, then its events in their order, at most so many.
    async fn callbacks_of(&self, sid: &CallSid, limit: u32) -> Result<Vec<Callback>, StoreError>;
    /// What a call has cost, attempt by attempt.
    async fn bill_lines_of(&self, sid: &CallSid) -> Result<Vec<BillLine>, StoreError>;
    async fn nodes(&self) -> Result<Vec<SeenNode>, StoreError>;
    /// What a node says of itself, for those who look at another one. False if no heartbeat of it is there.
    async fn tell_concerns(&self, node: &NodeId, concerns: String) -> Result<bool, StoreError>;
    /// It counts all calls with a later sid.
    async fn accepted_since(&self, sid: &CallSid) -> Result<u64, StoreError>;
    /// It counts all calls that wait.
    async fn queue_overview(&self) -> Result<QueueOverview, StoreError>;
    /// What receivers have not got. It counts all callbacks that wait.
    async fn owed_callbacks(&self, wanted: WantedOwed) -> Result<OwedCallbacks, StoreError>;
    /// What each account has to pay for the closed days from one to another, the newest day first.
    async fn billed_accounts(&self, from: Date, to: Date)
    -> Result<Vec<BilledAccount>, StoreError>;
    /// What all bills of each closed day come to.
    async fn billed_days(&self) -> Result<Vec<DayTotals>, StoreError>;
}

/// A life of a server process, as its heartbeats tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenNode {
    pub name: String,
    /// Its heartbeats have come without a gap since then.
    pub steady_since: Timestamp,
    pub heartbeat_at: Timestamp,
    /// The schema that it was made for; 0 where it did not say.
    pub schema: usize,
    /// Its lease holds.
    pub is_alive: bool,
    /// As it has told them (`OperatorViews::tell_concerns`).
    pub concerns: Option<String>,
}

/// The calls that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueOverview {
    pub waiting: u64,
    /// Those of them that could be dialled; the others wait for a later time, or for their callee.
    pub due: u64,
    /// How long the one that has been due the longest has been so.
    pub due_for: Option<SignedDuration>,
    /// Those that a node has taken, by how far they have come.
    pub running: Vec<(CallState, u64)>,
    /// Of those that wait: the accounts with the most first.
    pub accounts: Vec<WaitingAccount>,
}

/// The calls of one account that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingAccount {
    pub account: AccountSid,
    pub waiting: u64,
    pub due: u64,
    pub due_for: Option<SignedDuration>,
}

impl QueueOverview {
    /// The accounts of it that are told.
    const ACCOUNTS: usize = 100;

    pub(super) fn new(mut accounts: Vec<WaitingAccount>, running: Vec<(CallState, u64)>) -> Self {
        let waiting = accounts.iter().map(|account| account.waiting).sum();
        let due = accounts.iter().map(|account| account.due).sum();
        let due_for = accounts.iter().filter_map(|account| account.due_for).max();
        accounts.sort_by(|a, b| (b.waiting, &a.account).cmp(&(a.waiting, &b.account)));
        accounts.truncate(Self::ACCOUNTS);
        Self {
            waiting,
            due,
            due_for,
            running,
            accounts,
        }
    }
}

/// Somebody to whom callbacks are owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingReceiver {
    /// Name and port.
    pub host: String,
    /// Events wait apart from final callbacks.
    pub is_of_events: bool,
    pub waiting: u64,
    pub oldest_owed_at: Timestamp,
    /// How often the one in vain that waits the longest from now on; 0 where none has failed.
    pub failures: u32,
    /// The last attempt of that one.
    pub last_attempt: Option<CallbackAttempt>,
}

/// How much to tell of what receivers have not got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedOwed {
    /// Receivers at most.
    pub receivers: u32,
    /// Calls after this one, whose callbacks were given up, are counted; at most so many.
    pub given_up_since: CallSid,
    pub given_up_limit: u32,
}

/// Callbacks that receivers have not got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwedCallbacks {
    /// Those that fail first, then those with the most.
    pub receivers: Vec<WaitingReceiver>,
    /// What waits for all of them, and since when the oldest does.
    pub waiting: u64,
    pub oldest_owed_at: Option<Timestamp>,
    pub given_up: u64,
}

impl OwedCallbacks {
    /// What a row tells of all receivers is the same in each.
    pub fn add(&mut self, receiver: WaitingReceiver, of_all: (u64, Timestamp)) {
        self.receivers.push(receiver);
        self.waiting = of_all.0;
        self.oldest_owed_at = Some(of_all.1);
    }
}

/// What an account has to pay for a closed day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BilledAccount {
    pub day: Date,
    pub account: AccountSid,
    /// `None` if the account is gone.
    pub name: Option<String>,
    pub totals: Totals,
    /// Its bill files: one an application.
    pub files: u64,
}

/// What all bills of a closed day come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayTotals {
    pub day: Date,
    pub totals: Totals,
    /// Whole ones, without those of keywords.
    pub files: u64,
}

/// Which index a list of calls walks along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallWalk {
    All,
    /// Those that have not ended.
    Alive,
    /// Those that nodes hold.
    Running,
    To(String),
    /// Those of all these applications.
    Of(Vec<AppId>),
}

/// So many calls are looked at where no index answers the question.
const STRETCH: u32 = 5_000;
/// Of each application, however many there are.
const SHORTEST_STRETCH: u32 = 50;

impl CallWalk {
    /// `apps` are those of the account, where that is asked for and they are needed.
    pub fn new(filter: &CallFilter, apps: impl FnOnce() -> Vec<AppId>) -> Self {
        match filter.life {
            CallLife::Any => {}
            CallLife::Alive => return Self::Alive,
            CallLife::Running => return Self::Running,
        }
        match (&filter.number, &filter.app, &filter.account) {
            (Some(number), _, _) => Self::To(number.clone()),
            (None, Some(app), _) => Self::Of(vec![app.clone()]),
            (None, None, Some(_)) => Self::Of(apps()),
            (None, None, None) => Self::All,
        }
    }

    /// Whether the applications of the account are needed.
    pub fn needs_apps(filter: &CallFilter) -> bool {
        filter.life == CallLife::Any
            && filter.number.is_none()
            && filter.app.is_none()
            && filter.account.is_some()
    }

    /// Whether each call must be looked at, because the index does not answer all of the question.
    fn searches(&self, filter: &CallFilter) -> bool {
        let of_customer = filter.account.is_some() || filter.app.is_some();
        let unanswered = match self {
            Self::All => false,
            Self::Alive | Self::Running => of_customer || filter.number.is_some(),
            Self::To(_) => of_customer,
            Self::Of(_) => filter.account.is_some() && filter.app.is_some(),
        };
        unanswered || !filter.search.is_empty()
    }

    /// How many callSids are wanted of each part of the walk.
    pub fn wanted(&self, filter: &CallFilter) -> u32 {
        if !self.searches(filter) {
            return filter.limit.saturating_add(1);
        }
        let parts = match self {
            Self::Of(apps) => u32::try_from(apps.len().max(1)).unwrap_or(u32::MAX),
            _ => 1,
        };
        (STRETCH / parts).max(SHORTEST_STRETCH)
    }
}

/// The callSids that a walk has found.
#[derive(Debug)]
pub(super) struct CallStretch {
    /// The newest first.
    pub sids: Vec<CallSid>,
    /// There may be more calls before this one, which was not looked at any further.
    floor: Option<CallSid>,
    searches: bool,
    /// What has ended since the walk is left out.
    alive: bool,
}

impl CallStretch {
    /// From the parts of a walk, each with its newest first.
    pub fn new(walk: &CallWalk, filter: &CallFilter, parts: Vec<Vec<CallSid>>) -> Self {
        let wanted = usize::try_from(walk.wanted(filter)).unwrap_or(usize::MAX);
        let cut = parts.iter().filter(|part| part.len() >= wanted);
        // Before the latest of these ends, calls of another part may be missing.
        let floor = cut.filter_map(|part| part.last().cloned()).max();
        let mut sids: Vec<_> = parts.into_iter().flatten().collect();
        sids.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(floor) = &floor {
            sids.retain(|sid| sid >= floor);
        }
        let searches = walk.searches(filter);
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let floor = if searches {
            floor
        } else {
            let has_more = sids.len() > limit;
            sids.truncate(limit);
            sids.last().filter(|_| has_more).cloned()
        };
        Self {
            sids,
            floor,
            searches,
            alive: filter.life != CallLife::Any,
        }
    }

    /// The page, of those calls of the stretch that are wanted.
    pub fn page(self, mut calls: Vec<CallRecord>, limit: u32) -> CallPage {
        let is_full = calls.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let last = calls.last().map(|call| call.sid.clone());
        calls.retain(|call| !self.alive || call.state != CallState::Ended);
        if self.searches && !is_full {
            return CallPage {
                calls,
                next: self.floor.clone(),
                searched_until: self.floor,
            };
        }
        let next = if self.searches { last } else { self.floor };
        CallPage {
            calls,
            next,
            searched_until: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sids(numbers: &[u32]) -> Vec<CallSid> {
        let sid = |number: &u32| format!("{number:032}").parse().unwrap();
        numbers.iter().map(sid).collect()
    }

    #[test]
    fn a_page_of_several_applications_ends_where_one_of_them_may_have_more() {
        let filter = CallFilter {
            account: Some("a".repeat(32).parse().unwrap()),
            limit: 3,
            ..CallFilter::default()
        };
        let apps = vec![
            "b".repeat(32).parse().unwrap(),
            "c".repeat(32).parse().unwrap(),
        ];
        let walk = CallWalk::new(&filter, || apps);
        assert_eq!(walk.wanted(&filter), 4);
        let parts = vec![sids(&[9, 7, 5, 3]), sids(&[8])];
        let stretch = CallStretch::new(&walk, &filter, parts);
        assert_eq!(stretch.sids, sids(&[9, 8, 7]));
        let page = stretch.page(Vec::new(), 3);
        assert_eq!(
            (page.next, page.searched_until),
            (Some(sids(&[7])[0].clone()), None)
        );
    }

    #[test]
    fn a_search_tells_how_far_it_came() {
        let mut filter = CallFilter {
            limit: 3,
            ..CallFilter::default()
        };
        filter.search.trunk = Some("north".to_owned());
        let walk = CallWalk::new(&filter, Vec::new);
        assert_eq!(walk.wanted(&filter), STRETCH);
        let all: Vec<_> = (1..=STRETCH).rev().collect();
        let page = CallStretch::new(&walk, &filter, vec![sids(&all)]).page(Vec::new(), 3);
        assert_eq!(page.searched_until, Some(sids(&[1])[0].clone()));
        assert_eq!(page.next, page.searched_until);
        let page = CallStretch::new(&walk, &filter, vec![sids(&all[1..])]).page(Vec::new(), 3);
        assert_eq!((page.next, page.searched_until), (None, None));
    }
}
