//! The base of the tests: a server with methods in terms of the API, and a PostgreSQL that `make test` has started.

pub mod bills;
pub mod child;
pub mod cluster;
#[macro_use]
mod contract;
pub mod document;
pub mod download;
pub mod exchange;
pub mod owed;
pub mod postgres;
pub mod proxy;
pub mod raw;
pub mod receiver;
pub mod sip_peer;
pub mod sipp;
pub mod telephone;
pub mod tone;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clarion::client::{ApiCredentials, Client, Signature};
use clarion::clock::Clock;
use clarion::config::Config;
use clarion::domain::account::{
    Account, AccountChange, AccountLimits, AccountState, AppId, AppLimits, AppState, Application,
    ApplicationChange, Permissions,
};
use clarion::domain::audit::Actor;
use clarion::domain::call::CallSid;
use clarion::domain::call_list::{CallList, ListedNumber};
use clarion::domain::call_record::{CallFilter, CallLife};
use clarion::domain::lexicon::Lexicon;
use clarion::domain::numbering_plan::NumberingPlan;
use clarion::management::Management;
use clarion::server::Server;
use clarion::store::{Database, Store};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use supervisor::Supervisor;
use tempfile::TempDir;

pub const SID: &str = "0123456789abcdef0123456789abcdef";
pub const TOKEN: &str = "fedcba98765432100123456789abcdef";
pub const APP: &str = "aaaabbbbccccddddeeeeffff00001111";

/// The zone of every server in these tests. The machine's own zone is never used.
pub const ZONE: &str = "Asia/Shanghai";

/// How long a test waits for anything before it fails. Only a failure waits this long, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Returns the clock of a server in a process of its own, which follows the machine's clock.
pub fn clock() -> Clock {
    Clock::new(TimeZone::get(ZONE).unwrap())
}

pub fn account() -> Account {
    Account {
        sid: SID.parse().unwrap(),
        name: "Test".into(),
        auth_token: TOKEN.parse().unwrap(),
        state: AccountState::Active,
        permissions: Permissions::default(),
        limits: AccountLimits::default(),
        balance: None,
        spending_limit: None,
        call_hours: None,
        display_numbers: vec![],
        allowed_networks: vec![],
        has_do_not_call: false,
        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        updated_at: "2026-01-02T03:04:05Z".parse().unwrap(),
    }
}

pub fn application() -> Application {
    Application {
        limits: AppLimits::default(),
        id: APP.parse().unwrap(),
        account: SID.parse().unwrap(),
        name: "Test".into(),
        state: AppState::Active,
        callback_secret: None,
        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        bill_json_key: None,
        voice: None,
        lexicon: Lexicon::default(),
    }
}

/// That of the default settings.
pub fn numbering_plan() -> NumberingPlan {
    Config::from_parts("", &[]).unwrap().numbers
}

/// A list of that account, whose numbers are written as on the command line.
pub fn call_list(name: &str, numbers: &[&str], updated_at: Timestamp) -> CallList {
    let plan = numbering_plan();
    let numbers = numbers.iter().map(|text| ListedNumber::parse(text, &plan));
    let numbers = numbers.collect::<Result<_, _>>().unwrap();
    let (account, name) = (SID.parse().unwrap(), name.parse().unwrap());
    CallList::new(account, name, numbers, updated_at).unwrap()
}

/// A server in this process, with one account and one application.
pub struct TestServer {
    pub address: SocketAddr,
    /// Where operators reach it.
    pub console: SocketAddr,
    pub ca: PathBuf,
    pub clock: Clock,
    pub folder: TempDir,
    /// The server's database, opened a second time, as the command line does.
    pub store: Arc<dyn Store>,
    pub database: Database,
    server: Option<Server>,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Manages the server from within, as nobody.
    pub fn management(&self) -> Management {
        let server = self.server.as_ref().unwrap();
        server.management(Actor::default())
    }

    /// Closes a day that is over, unless the server itself has; where it is at it, this waits.
    pub async fn close_day(&self, day: Date) {
        let management = self.management();
        eventually("the day is closed", async || {
            management.close_days(Some(day)).await.is_ok()
        })
        .await;
    }

    /// Starts a server with settings of the test, on top of the test defaults.
    pub async fn start_with(settings: &str) -> Self {
        Self::start_prepared(settings, async |_, _| {}).await
    }

    /// Starts a server on a database that the test has prepared. A test that has to know that a running server obeys a switch sets it here:
    /// metrics cannot tell, since all servers of a process share them.
    pub async fn start_prepared(
        settings: &str,
        prepare: impl AsyncFnOnce(&dyn Store, &Clock),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = test_config(&folder, settings);
        std::fs::create_dir_all(&config.data_dir).unwrap();
        let store = config.database.open(&Supervisor::new()).await.unwrap();
        store.add_account(account()).await.unwrap();
        store.add_application(application()).await.unwrap();
        let clock = clock();
        prepare(&*store, &clock).await;
        Self::start_on(folder, config, store, clock).await
    }

    /// Starts another node on the same database.
    pub async fn another_node(&self, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = test_config(&folder, settings);
        std::fs::create_dir_all(&config.data_dir).unwrap();
        let store = config.database.open(&Supervisor::new()).await.unwrap();
        Self::start_on(folder, config, store, self.clock.clone()).await
    }

    async fn start_on(
        folder: TempDir,
        config: Config,
        store: Arc<dyn Store>,
        clock: Clock,
    ) -> Self {
        let database = config.database.clone();
        // A large future, which every test would have in its own.
        let server = Box::pin(Server::start(config, clock.clone()));
        let server = server.await.unwrap();
        Self {
            address: server.addresses[0],
            console: server.console[0],
            ca: folder.path().join("data/tls/ca.pem"),
            clock,
            folder,
            store,
            database,
            server: Some(server),
        }
    }

    pub async fn stop(mut self) {
        self.server.take().unwrap().stop().await;
    }

    /// Starts a new server in the same folder, after the old one has been taken and stopped.
    pub async fn restart(&mut self, settings: &str) {
        let server = Server::start(test_config(&self.folder, settings), self.clock.clone())
            .await
            .unwrap();
        self.address = server.addresses[0];
        self.console = server.console[0];
        self.server = Some(server);
    }

    /// Tells the server that new callbacks are owed, as the end of a call does.
    pub fn deliver_callbacks(&self) {
        if let Some(server) = &self.server {
            server.deliver_callbacks();
        }
    }

    /// Returns the supervisor, to make tasks of the server panic.
    pub fn supervisor(&self) -> &Supervisor {
        self.server.as_ref().unwrap().supervisor()
    }

    /// Takes the server itself, for a test that stops it.
    pub fn take_server(&mut self) -> Server {
        self.server.take().unwrap()
    }

    #[expect(clippy::unused_self, reason = "reads better where it is used")]
    pub fn credentials(&self) -> ApiCredentials {
        ApiCredentials {
            sid: SID.parse().unwrap(),
            token: TOKEN.parse().unwrap(),
        }
    }

    pub fn sign(&self) -> Signature {
        self.credentials().sign(&self.clock.wall())
    }

    pub fn client(&self) -> Client {
        Client::new(self.address, &self.ca).unwrap()
    }

    /// Requests one operation in one format, on a connection of its own. A GET has no body.
    pub async fn ask(&self, operation: &str, format: &str, body: Option<&str>) -> String {
        let mut connection = self.client().connect().await.unwrap();
        let media_type = format!("application/{format}");
        connection
            .operation(
                &self.credentials(),
                &self.sign(),
                operation,
                &media_type,
                body.map(str::to_owned),
            )
            .await
            .unwrap()
    }

    /// Places a call by XML and returns the answer.
    pub async fn call_xml(&self, fields: &str) -> String {
        let body = format!("<LandingCall><appId>{APP}</appId>{fields}</LandingCall>");
        self.ask("Calls/LandingCalls", "xml", Some(&body)).await
    }

    /// Places a call by JSON and returns the answer.
    pub async fn call_json(&self, fields: &str) -> String {
        let body = format!("{{\"appId\":\"{APP}\",{fields}}}");
        self.ask("Calls/LandingCalls", "json", Some(&body)).await
    }

    pub async fn change_account(&self, change: AccountChange) {
        self.store
            .change_account(&SID.parse().unwrap(), change)
            .await
            .unwrap();
    }

    pub async fn change_application(&self, change: ApplicationChange) {
        self.store
            .change_application(&APP.parse().unwrap(), change)
            .await
            .unwrap();
    }
}

/// A trunk that carries every number and has no channel.
pub const WAITING_TRUNK: &str = "[[trunk]]\nname = \"waiting\"\nhost = \"127.0.0.1:9\"\noptions_seconds = 0\nprefixes = [\"\"]\n";

fn test_config(folder: &TempDir, settings: &str) -> Config {
    let data = folder.path().join("data");
    // Unless a test has trunks of its own, all calls are accepted and none is dialled.
    let trunk = if settings.contains("[[trunk]]") {
        ""
    } else {
        WAITING_TRUNK
    };
    let text = format!("data_dir = {data:?}\ntime_zone = {ZONE:?}\n{settings}\n{trunk}");
    let listen = ["CLARION_HTTP__LISTEN", "CLARION_CONSOLE__LISTEN"]
        .map(|name| (name.to_owned(), "[\"127.0.0.1:0\"]".to_owned()));
    Config::from_parts(&text, &listen).unwrap()
}

/// Returns the statusCode of an answer in either format.
pub fn status_code(answer: &str) -> &str {
    for (before, after) in [("<statusCode>", '<'), ("\"statusCode\":\"", '"')] {
        if let Some(rest) = answer.split(before).nth(1) {
            return rest.split(after).next().unwrap();
        }
    }
    panic!("no statusCode in {answer}");
}

/// Returns the callSid of an accepted call.
pub fn call_sid(answer: &str) -> String {
    assert_eq!(status_code(answer), "000000", "{answer}");
    for (before, after) in [("<callSid>", '<'), ("\"callSid\":\"", '"')] {
        if let Some(rest) = answer.split(before).nth(1) {
            return rest.split(after).next().unwrap().to_owned();
        }
    }
    panic!("no callSid in {answer}");
}

/// Waits until a condition holds. Tests use this instead of sleeping.
pub async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    eventually_within(PATIENCE, what, condition).await;
}

/// Every call has ended and was reported. A call that ends owes a callback: so calls are looked at first.
pub async fn all_is_over(store: &dyn Store) -> bool {
    let alive = CallFilter {
        life: CallLife::Alive,
        limit: 1,
        ..CallFilter::default()
    };
    store.list_calls(alive).await.unwrap().calls.is_empty()
        && store.callback_backlog().await.unwrap().waiting == 0
}

pub async fn eventually_within(
    patience: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) {
    let deadline = tokio::time::Instant::now() + patience;
    while !condition().await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "{what}: not within {patience:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What `LD_PRELOAD` has to be for a program that gets this library beside those that this process has (scripts/test-anytime).
pub fn preload(library: &Path) -> PathBuf {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD") {
        all.push(" ");
        all.push(others);
    }
    all.into()
}

/// Returns a port for a program that needs a fixed one. No other test of this process gets it, and it is outside the ranges from which the
/// system and our own media choose ports.
pub fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        let [high, low] = clarion::random::bytes();
        AtomicU16::new(u16::from_be_bytes([high, low]))
    });
    loop {
        let port = 10_000 + next.fetch_add(1, Ordering::Relaxed) % 9000;
        let free = TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok();
        if free {
            return port;
        }
    }
}

pub fn app_id() -> AppId {
    APP.parse().unwrap()
}

/// Adds an application that the test account may not use.
pub async fn application_of_another_account(server: &TestServer) -> AppId {
    let mut other = account();
    other.sid = "f".repeat(32).parse().unwrap();
    server.store.add_account(other.clone()).await.unwrap();
    let mut foreign = application();
    foreign.id = "e".repeat(32).parse().unwrap();
    foreign.account = other.sid;
    server.store.add_application(foreign.clone()).await.unwrap();
    foreign.id
}

/// Closes a day by hand.
pub async fn close_day(database: &Database, day: &str) {
    let next: Date = day.parse::<Date>().unwrap().tomorrow().unwrap();
    let close = format!(
        "INSERT INTO bill_days (day, closed_at) VALUES ('{day}', 0); UPDATE bill_calendar SET first_open = '{next}'"
    );
    execute(database, &close).await;
}

/// Marks the callback of a call as delivered.
pub async fn settle_callback(database: &Database, sid: &CallSid) {
    let settle = format!("UPDATE callbacks SET state = 2 WHERE call_sid = '{sid}'");
    execute(database, &settle).await;
}

pub async fn execute(database: &Database, statements: &str) {
    try_execute(database, statements).await.unwrap();
}

/// Executes statements. The error is in the database's own words.
pub async fn try_execute(database: &Database, statements: &str) -> Result<(), String> {
    match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            db.execute_batch(statements)
                .map_err(|error| error.to_string())
        }
        Database::Postgres(config) => {
            let client = postgres::connect(config.url()).await;
            let done = client.batch_execute(statements).await;
            done.map_err(|error| error.as_db_error().unwrap().message().to_owned())
        }
    }
}

/// Returns the day on which a call was billed.
pub async fn bill_day(database: &Database, sid: &CallSid) -> String {
    let query = format!("SELECT bill_day FROM bill_lines WHERE order_id = '{sid}'");
    text_of(database, &query).await
}

/// Returns the one text that a query finds.
pub async fn text_of(database: &Database, query: &str) -> String {
    match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            db.query_row(query, [], |row| row.get(0)).unwrap()
        }
        Database::Postgres(config) => {
            let client = postgres::connect(config.url()).await;
            client.query_one(query, &[]).await.unwrap().get(0)
        }
    }
}
