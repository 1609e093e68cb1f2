//! Writes owed callbacks without a call, as the end of a call writes them.

use std::collections::HashMap;

use clarion::domain::call::{CallKind, CallSid};
use clarion::domain::callback::{
    CallReport, Callback, CallbackAttempt, CallbackKey, CallbackState, ClaimedCallback, EVENT_TIME,
    OwedCallback, ReceiverShare, RespUrl,
};
use clarion::domain::outcome::Outcome;
use clarion::store::sqlite::queue_clock::QueueClock;
use clarion::store::{CallbackClaim, Database, ReceiverLook, Store, postgres, sqlite};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{APP, TestServer, eventually};

pub fn call(number: u32) -> CallSid {
    format!("{number:032x}").parse().unwrap()
}

/// Names the final callback of a call.
pub fn key(number: u32) -> CallbackKey {
    CallbackKey::of_end(call(number))
}

/// Returns an event of a call.
pub fn event_to(url: &str, number: u32, seq: i32) -> OwedCallback {
    let key = CallbackKey { seq, ..key(number) };
    OwedCallback {
        webhook_id: key.webhook_id(),
        body: format!("<request><action>CallState</action><seq>{seq}</seq></request>"),
        key,
        valid_for: Some(EVENT_TIME),
        ..owed_to(url, number, now())
    }
}

/// Time passes for what is owed.
pub async fn pass(database: &Database, time: SignedDuration) {
    let millis = time.as_millis();
    let past = format!(
        "UPDATE callbacks SET due_at = due_at - {millis}, expires_at = expires_at - {millis}"
    );
    super::execute(database, &past).await;
}

/// Returns a callback about a call that ended just now, after thirty seconds.
pub fn owed_to(url: &str, number: u32, now: Timestamp) -> OwedCallback {
    let report = CallReport {
        notice: None,
        kind: CallKind::Notification,
        call: &call(number),
        called: "13800000000",
        outcome: Outcome::Talked,
        dialled_at: Some(now - SignedDuration::from_secs(40)),
        answered_at: Some(now - SignedDuration::from_secs(30)),
        ended_at: now,
        user_data: Some("订单 <&>\"7"),
    };
    let zone = TimeZone::get(super::ZONE).unwrap();
    let url = RespUrl::parse(url).unwrap();
    OwedCallback::new(&report, APP.parse().unwrap(), url, &zone)
}

/// Writes owed callbacks in one transaction, with the dialect's own function.
pub async fn owe(database: &Database, owed: Vec<OwedCallback>) {
    match database {
        Database::Sqlite(path) => {
            let path = path.clone();
            let write = move || {
                let mut db = sqlite::connect(&path).unwrap();
                let now = QueueClock::read(&db).unwrap().now();
                let transaction = db.transaction().unwrap();
                for owed in &owed {
                    sqlite::callbacks::owe(&transaction, owed, now).unwrap();
                }
                transaction.commit().unwrap();
            };
            tokio::task::spawn_blocking(write).await.unwrap();
        }
        Database::Postgres(config) => {
            let mut client = postgres::connect(config).await.unwrap();
            let transaction = client.transaction().await.unwrap();
            postgres::callbacks::owe(&transaction, &owed).await.unwrap();
            transaction.commit().await.unwrap();
        }
    }
}

/// How a test claims: so many for each receiver, and none for some.
#[derive(Debug, Clone)]
pub struct Claiming {
    pub node: &'static str,
    pub lease: SignedDuration,
    pub receivers: usize,
    pub per_receiver: u32,
    pub without: &'static str,
}

impl Default for Claiming {
    fn default() -> Self {
        Self {
            node: "n",
            lease: SignedDuration::from_secs(60),
            receivers: 100,
            per_receiver: 10,
            without: "",
        }
    }
}

/// Returns a look at everything.
pub fn look() -> ReceiverLook {
    ReceiverLook {
        limit: 1000,
        after: HashMap::new(),
        full: Vec::new(),
    }
}

/// Claims what is due. Also returns how long it takes until something else is.
pub async fn claim(
    store: &dyn Store,
    claiming: &Claiming,
) -> (Vec<ClaimedCallback>, Option<SignedDuration>) {
    let found = store.due_receivers(look()).await.unwrap();
    let due = found.receivers.into_iter();
    let due = due.filter(|due| due.receiver != claiming.without);
    let shares = due.take(claiming.receivers).map(|due| ReceiverShare {
        app: due.app,
        receiver: due.receiver,
        limit: claiming.per_receiver,
    });
    let claim = CallbackClaim {
        node: claiming.node.to_owned(),
        lease: claiming.lease,
        shares: shares.collect(),
    };
    let claimed = store.claim_callbacks(claim).await.unwrap();
    (claimed.unwrap_or_default(), found.next_due)
}

/// Returns the machine's time, for servers in processes of their own.
pub fn now() -> Timestamp {
    super::clock().now()
}

impl TestServer {
    /// Owes callbacks to these addresses, numbered from 1, and notifies the server.
    pub async fn owe(&self, urls: &[String]) {
        let owed = (1..)
            .zip(urls)
            .map(|(number, url)| owed_to(url, number, self.clock.now()))
            .collect();
        owe(&self.database, owed).await;
        self.deliver_callbacks();
    }

    pub async fn callback(&self, number: u32) -> (Callback, Vec<CallbackAttempt>) {
        let found = self.store.callback(&key(number)).await.unwrap();
        found.expect("a callback that is owed")
    }

    /// Waits until a callback has this state, and returns its attempts.
    pub async fn callback_is(&self, number: u32, state: CallbackState) -> Vec<CallbackAttempt> {
        let what = format!("callback {number} is {}", state.as_str());
        eventually(&what, async || self.callback(number).await.0.state == state).await;
        self.callback(number).await.1
    }
}
