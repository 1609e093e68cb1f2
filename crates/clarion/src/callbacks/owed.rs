//! What has just become owed. Whoever has written it says so here: that wakes the worker, which need not look for what it was told.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::account::{AccountSid, AppId};

/// Receivers that are kept in mind; beyond them the worker looks.
pub const MOST: usize = 500;

/// Where something waits (`CallbackKey::receiver`), and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwedReceiver {
    pub account: AccountSid,
    pub app: AppId,
    pub receiver: String,
}

/// What the worker is told.
#[derive(Debug, PartialEq, Eq)]
pub enum NewlyOwed {
    /// Nothing but this.
    Only(HashSet<OwedReceiver>),
    /// It has to look.
    Anything,
}

#[derive(Debug)]
pub struct OwedSignal {
    wake: Notify,
    newly: Mutex<NewlyOwed>,
}

impl Default for OwedSignal {
    fn default() -> Self {
        Self {
            wake: Notify::new(),
            newly: Mutex::new(NewlyOwed::nothing()),
        }
    }
}

impl NewlyOwed {
    fn nothing() -> Self {
        Self::Only(HashSet::new())
    }
}

impl OwedSignal {
    /// Something was committed and is due at these receivers, or may have been: where there is nothing, the worker asks once in vain.
    pub fn is_owed_at(
        &self,
        account: &AccountSid,
        app: &AppId,
        receivers: impl IntoIterator<Item = String>,
    ) {
        let owed = receivers.into_iter().map(|receiver| OwedReceiver {
            account: account.clone(),
            app: app.clone(),
            receiver,
        });
        let mut owed = owed.peekable();
        if owed.peek().is_none() {
            return;
        }
        let mut newly = self.newly();
        if let NewlyOwed::Only(known) = &mut *newly {
            known.extend(owed);
            if known.len() > MOST {
                *newly = NewlyOwed::Anything;
            }
        }
        drop(newly);
        self.wake.notify_one();
    }

    /// Something may be owed, to somebody.
    pub fn something_is_owed(&self) {
        *self.newly() = NewlyOwed::Anything;
        self.wake.notify_one();
    }

    /// Waits until something is owed. Cancelling it loses nothing.
    pub async fn heard(&self) -> NewlyOwed {
        self.wake.notified().await;
        std::mem::replace(&mut *self.newly(), NewlyOwed::nothing())
    }

    fn newly(&self) -> MutexGuard<'_, NewlyOwed> {
        // A panic elsewhere leaves nothing half done here.
        self.newly.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> AppId {
        "aa11".repeat(8).parse().unwrap()
    }

    fn account() -> AccountSid {
        "bb22".repeat(8).parse().unwrap()
    }

    #[tokio::test]
    async fn what_was_said_before_anyone_listened_is_heard_once() {
        let signal = OwedSignal::default();
        for host in ["a.example", "b.example", "a.example"] {
            signal.is_owed_at(&account(), &app(), [host.to_owned()]);
        }
        let NewlyOwed::Only(heard) = signal.heard().await else {
            panic!("every receiver was named");
        };
        let mut receivers: Vec<_> = heard.into_iter().map(|owed| owed.receiver).collect();
        receivers.sort();
        assert_eq!(receivers, ["a.example", "b.example"]);
        signal.is_owed_at(&account(), &app(), ["c.example".to_owned()]);
        assert!(matches!(signal.heard().await, NewlyOwed::Only(heard) if heard.len() == 1));
    }

    #[tokio::test]
    async fn too_many_receivers_or_an_unknown_one_mean_anything() {
        let signal = OwedSignal::default();
        for number in 0..=MOST {
            signal.is_owed_at(&account(), &app(), [format!("r{number}.example")]);
        }
        assert_eq!(signal.heard().await, NewlyOwed::Anything);
        signal.is_owed_at(&account(), &app(), ["a.example".to_owned()]);
        signal.something_is_owed();
        signal.is_owed_at(&account(), &app(), ["b.example".to_owned()]);
        assert_eq!(signal.heard().await, NewlyOwed::Anything);
    }
}
