//! What tests of whole calls stand on: a server with trunks, a receiver of callbacks, customers that place calls.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clarion::client::{ApiCredentials, Client, Connection, Signature};
use clarion::clock::Clock;
use clarion::domain::account::{Account, AppId};
use clarion::domain::bill::BillLine;
use clarion::domain::call::CallSid;
use clarion::domain::call_record::CallRecord;
use clarion::domain::call_state::CallState;
use clarion::domain::leg::Leg;
use clarion::domain::outcome::Outcome;
use clarion::store::Store;
use jiff::Zoned;

use crate::support::receiver::{Receiver, ok};
use crate::support::{
    APP, SID, TOKEN, TestServer, account, application, bills, call_sid, eventually, postgres,
};

/// Settings for a server whose callbacks and sound stay on this machine.
pub fn settings(more: &str, trunks: &str) -> String {
    format!(
        "{more}\n[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n[media]\nbind = \"127.0.0.1\"\n{trunks}"
    )
}

/// The first line of the settings of a server that keeps its calls in an empty PostgreSQL.
pub async fn on_postgres() -> String {
    format!("database = {:?}\n", postgres::empty_database().await)
}

pub struct Stage {
    pub server: TestServer,
    pub receiver: Receiver,
    recordings: tempfile::TempDir,
    reported: AtomicUsize,
}

impl Stage {
    /// On a trunk that leads to the telephone in the server, which records what it hears.
    pub async fn new(more: &str) -> Self {
        Self::prepared(more, async |_, _| {}).await
    }

    /// As `new`, on a database that the test has prepared.
    pub async fn prepared(more: &str, prepare: impl AsyncFnOnce(&dyn Store, &Clock)) -> Self {
        let recordings = tempfile::tempdir().unwrap();
        let loopback = format!(
            "[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 50\ncalls_per_second = 200\nprefixes = [\"\"]\nrecord = {:?}\n",
            recordings.path()
        );
        let settings = settings(more, &loopback);
        Self {
            receiver: Receiver::start(vec![ok()]).await,
            server: TestServer::start_prepared(&settings, prepare).await,
            recordings,
            reported: AtomicUsize::new(0),
        }
    }

    /// On trunks of the test's own.
    pub async fn on(trunks: &str, more: &str) -> Self {
        Self {
            receiver: Receiver::start(vec![ok()]).await,
            server: TestServer::start_with(&settings(more, trunks)).await,
            recordings: tempfile::tempdir().unwrap(),
            reported: AtomicUsize::new(0),
        }
    }

    /// Places a call of the first customer and gives its callSid.
    pub async fn call(&self, number: &str, extra: &str) -> CallSid {
        let url = self.receiver.url();
        let fields = format!("\"to\":\"{number}\",\"respUrl\":\"{url}\",{extra}");
        let answer = self.server.call_json(&fields).await;
        call_sid(&answer).parse().unwrap()
    }

    /// The body of the next callback, when it has come.
    pub async fn report(&self) -> String {
        let place = self.reported.fetch_add(1, Ordering::Relaxed);
        let received = self.receiver.has_received(place + 1).await;
        received[place].body.clone()
    }

    /// The body of a call's callback, when it has come.
    pub async fn report_of(&self, sid: &CallSid) -> String {
        report_of(&self.receiver, sid).await
    }

    /// What the telephone in the server heard, as a WAV file.
    pub async fn recording(&self, sid: &CallSid) -> Vec<u8> {
        let path: PathBuf = self.recordings.path().join(format!("{sid}.wav"));
        eventually("a recording", async || path.exists()).await;
        std::fs::read(path).unwrap()
    }

    pub async fn outcome(&self, sid: &CallSid) -> Option<Outcome> {
        let progress = self
            .server
            .store
            .call_progress(&SID.parse().unwrap(), sid)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(progress.state, CallState::Ended);
        progress.outcome
    }

    /// What is stored of a call's legs.
    pub async fn legs(&self, sid: &CallSid) -> Vec<Leg> {
        let history = self.server.store.call_history(sid).await.unwrap();
        history.legs.into_iter().map(|one| one.leg).collect()
    }

    pub async fn record(&self, sid: &CallSid) -> CallRecord {
        record(&*self.server.store, sid).await
    }

    pub async fn is_in(&self, sid: &CallSid, state: CallState) {
        let what = format!("{sid} is {state:?}");
        eventually(&what, async || self.record(sid).await.state == state).await;
    }

    pub async fn bill_line(&self, sid: &CallSid) -> BillLine {
        bill_line(&*self.server.store, sid).await
    }
}

pub async fn record(store: &dyn Store, sid: &CallSid) -> CallRecord {
    store.call_record(sid).await.unwrap().unwrap()
}

pub async fn bill_line(store: &dyn Store, sid: &CallSid) -> BillLine {
    let ended_at = record(store, sid).await.ended_at.unwrap();
    bills::line_of(store, sid.as_str(), ended_at).await
}

pub async fn report_of(receiver: &Receiver, sid: &CallSid) -> String {
    let find = || {
        let received = receiver.received().into_iter();
        let mut bodies = received.map(|received| received.body);
        bodies.find(|body| field(body, "callSid") == sid.as_str())
    };
    eventually("a call is reported", async || find().is_some()).await;
    find().unwrap()
}

/// The text of an element, as it is written.
pub fn field<'a>(body: &'a str, name: &str) -> &'a str {
    let open = format!("<{name}>");
    let rest = body
        .split(&open)
        .nth(1)
        .unwrap_or_else(|| panic!("no {name} in {body}"));
    rest.split("</").next().unwrap()
}

/// Somebody with an account, an application and one connection.
pub struct Customer {
    connection: Connection,
    credentials: ApiCredentials,
    signature: Signature,
    app: AppId,
    url: String,
}

impl Customer {
    /// The one whom every test server knows.
    pub async fn first(stage: &Stage) -> Self {
        let now = stage.server.clock.wall();
        Self::connect(&stage.server.client(), SID, APP, &now, stage.receiver.url()).await
    }

    /// Another one; the digit tells one from the other.
    pub async fn another(stage: &Stage, digit: u8, change: impl FnOnce(&mut Account)) -> Self {
        let sid = register(&*stage.server.store, digit, change).await;
        let now = stage.server.clock.wall();
        let url = stage.receiver.url();
        Self::connect(&stage.server.client(), &sid, &sid, &now, url).await
    }

    pub async fn connect(client: &Client, sid: &str, app: &str, now: &Zoned, url: String) -> Self {
        let credentials = ApiCredentials {
            sid: sid.parse().unwrap(),
            token: TOKEN.parse().unwrap(),
        };
        Self {
            connection: client.connect().await.unwrap(),
            signature: credentials.sign(now),
            credentials,
            app: app.parse().unwrap(),
            url,
        }
    }

    pub async fn call(&mut self, number: &str, extra: &str) -> CallSid {
        let body = format!(
            "{{\"appId\":\"{}\",\"to\":\"{number}\",\"respUrl\":\"{}\",{extra}}}",
            self.app, self.url
        );
        let answer = self
            .connection
            .operation(
                &self.credentials,
                &self.signature,
                "Calls/LandingCalls",
                "application/json",
                Some(body),
            )
            .await
            .unwrap();
        call_sid(&answer).parse().unwrap()
    }
}

/// An account with an application, both of the same name, which is returned.
pub async fn register(store: &dyn Store, digit: u8, change: impl FnOnce(&mut Account)) -> String {
    let sid = format!("{digit:032}");
    let mut known = account();
    known.sid = sid.parse().unwrap();
    change(&mut known);
    let mut app = application();
    (app.id, app.account) = (sid.parse().unwrap(), known.sid.clone());
    store.add_account(known).await.unwrap();
    store.add_application(app).await.unwrap();
    sid
}
