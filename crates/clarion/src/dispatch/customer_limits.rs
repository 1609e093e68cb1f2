//! What accounts and applications may have under way at once and start in a second, as far as this node is concerned.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use super::Dispatch;
use super::capacity::{Capacity, Waiting};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::claim::{NodeShare, QueuedApp};
use crate::store::StoreError;

/// CustomerLimits are read again after so long: an operator's change is honoured soon, and a busy queue does not ask for the same at every step.
const REMEMBERED: Duration = Duration::from_millis(500);
/// What nobody has used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Known {
    room: Capacity,
    learned: Instant,
}

/// So many at once, and so many a second.
type AtOnceAndASecond = (u32, u32);

#[derive(Debug, Default)]
pub struct CustomerLimits {
    accounts: HashMap<AccountSid, Known>,
    apps: HashMap<AppId, Known>,
}

impl CustomerLimits {
    fn knows(&self, queued: &QueuedApp, now: Instant) -> bool {
        let fresh = |known: &Known| now.saturating_duration_since(known.learned) < REMEMBERED;
        self.accounts.get(&queued.account).is_some_and(fresh)
            && self.apps.get(&queued.app).is_some_and(fresh)
    }

    fn learn(
        &mut self,
        queued: &QueuedApp,
        account: AtOnceAndASecond,
        app: AtOnceAndASecond,
        now: Instant,
    ) {
        learn(&mut self.accounts, &queued.account, account, now);
        learn(&mut self.apps, &queued.app, app, now);
    }

    /// What may start now of an application with calls in the queue.
    fn waiting(&mut self, queued: QueuedApp, now: Instant) -> Waiting {
        let left = |known: Option<&mut Known>| known.map_or(0, |known| known.room.left(now));
        Waiting {
            account_room: left(self.accounts.get_mut(&queued.account)),
            app_room: left(self.apps.get_mut(&queued.app)),
            account: queued.account,
            app: queued.app,
        }
    }

    pub fn take(&mut self, account: &AccountSid, app: &AppId, now: Instant) {
        let known = [self.accounts.get_mut(account), self.apps.get_mut(app)];
        for known in known.into_iter().flatten() {
            known.room.count(now);
        }
    }

    pub fn give_back(&mut self, account: &AccountSid, app: &AppId) {
        let known = [self.accounts.get_mut(account), self.apps.get_mut(app)];
        for known in known.into_iter().flatten() {
            known.room.give_back();
        }
    }

    pub fn forget_idle(&mut self, now: Instant) {
        let used = |known: &Known| {
            known.room.in_use() > 0 || now.saturating_duration_since(known.learned) < IDLE
        };
        self.accounts.retain(|_, known| used(known));
        self.apps.retain(|_, known| used(known));
    }
}

fn learn<K: Hash + Eq + Clone>(
    rooms: &mut HashMap<K, Known>,
    name: &K,
    (at_once, a_second): AtOnceAndASecond,
    now: Instant,
) {
    let known = rooms.entry(name.clone()).or_insert_with(|| Known {
        room: Capacity::new(at_once, a_second, now),
        learned: now,
    });
    known.room.resize(at_once, a_second);
    known.learned = now;
}

impl Dispatch {
    /// The applications with something due, each with the room that is left for it.
    pub(super) async fn waiting(&self, queued: Vec<QueuedApp>) -> Result<Vec<Waiting>, StoreError> {
        let share = self.share();
        let mut waiting = Vec::with_capacity(queued.len());
        for app in queued {
            if !self.limits().knows(&app, Instant::now()) {
                self.ask_limits(&app, share).await?;
            }
            waiting.push(self.limits().waiting(app, Instant::now()));
        }
        Ok(waiting)
    }

    /// Every node takes its part of what an account or application may use on all of them together.
    async fn ask_limits(&self, queued: &QueuedApp, share: NodeShare) -> Result<(), StoreError> {
        let account = self.store.account(&queued.account).await?;
        let account = account.map(|account| account.limits).unwrap_or_default();
        let app = self.store.application(&queued.app).await?;
        let app = app.map(|app| app.limits).unwrap_or_default();
        let settings = &self.config.dispatch;
        let sid = queued.account.as_str();
        let of_account = (
            share.part(account.calls_at_once.unwrap_or(settings.calls_at_once), sid),
            share.part(
                account
                    .calls_per_second
                    .unwrap_or(settings.calls_per_second),
                sid,
            ),
        );
        let id = queued.app.as_str();
        let of_app = (
            share.part(app.calls_at_once.unwrap_or(u32::MAX), id),
            share.part(app.calls_per_second.unwrap_or(u32::MAX), id),
        );
        self.limits()
            .learn(queued, of_account, of_app, Instant::now());
        Ok(())
    }
}
