//! What has just become owed. Whoever has written it says so here: that wakes the worker, which need not look for what it was told.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::account::{AccountSid, AppId};
use crate::domain::callback::OwedCallback;

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
    /// This callback of an account was committed, and is due.
    pub fn is_owed(&self, account: &AccountSid, callback: &OwedCallback) {
        let owed = OwedReceiver {
            account: account.clone(),
            app: callback.app.clone(),
            receiver: callback.receiver(),
        };
        let mut newly = self.newly();
        if let NewlyOwed::Only(known) = &mut *newly {
            known.insert(owed);
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
    use jiff::Timestamp;

    use super::*;
    use crate::domain::call::CallSid;
    use crate::domain::callback::{CallbackKey, RespUrl};

    fn callback(host: &str) -> OwedCallback {
        let sid: CallSid = "26111800000000000000000000000001".parse().unwrap();
        let key = CallbackKey::of_end(sid);
        OwedCallback {
            webhook_id: key.webhook_id(),
            key,
            app: "aa11".repeat(8).parse().unwrap(),
            url: RespUrl::parse(&format!("https://{host}/voice")).unwrap(),
            body: String::new(),
            owed_at: Timestamp::UNIX_EPOCH,
            valid_for: None,
        }
    }

    fn account() -> AccountSid {
        "bb22".repeat(8).parse().unwrap()
    }

    #[tokio::test]
    async fn what_was_said_before_anyone_listened_is_heard_once() {
        let signal = OwedSignal::default();
        for host in ["a.example", "b.example", "a.example"] {
            signal.is_owed(&account(), &callback(host));
        }
        let NewlyOwed::Only(heard) = signal.heard().await else {
            panic!("every receiver was named");
        };
        let mut receivers: Vec<_> = heard.into_iter().map(|owed| owed.receiver).collect();
        receivers.sort();
        let wanted = ["a.example", "b.example"].map(|host| callback(host).receiver());
        assert_eq!(receivers, wanted);
        signal.is_owed(&account(), &callback("c.example"));
        assert!(matches!(signal.heard().await, NewlyOwed::Only(heard) if heard.len() == 1));
    }

    #[tokio::test]
    async fn too_many_receivers_or_an_unknown_one_mean_anything() {
        let signal = OwedSignal::default();
        for number in 0..=MOST {
            signal.is_owed(&account(), &callback(&format!("r{number}.example")));
        }
        assert_eq!(signal.heard().await, NewlyOwed::Anything);
        signal.is_owed(&account(), &callback("a.example"));
        signal.something_is_owed();
        signal.is_owed(&account(), &callback("b.example"));
        assert_eq!(signal.heard().await, NewlyOwed::Anything);
    }
}
