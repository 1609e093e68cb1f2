//! A database that says nothing: packets are lost, and no connection closes. Everybody is answered all the same, nobody is told what is not
//! known, and what was silent is not used again.

use std::time::Duration;

use clarion::domain::account::AccountChange;
use clarion::domain::bill::rating::Rate;
use clarion::domain::money::Money;
use clarion::store::{Database, StoreError};
use supervisor::Supervisor;

use crate::support::bills::add_records;
use crate::support::proxy::{Fault, Hits, Proxy};
use crate::support::{SID, TestServer, call_sid, eventually, postgres, status_code};

/// A server behind a proxy, with deadlines that are soon over.
struct Behind {
    server: TestServer,
    proxy: Proxy,
    /// Past the proxy.
    database: String,
}

impl Behind {
    async fn start(more: &str) -> Self {
        let database = postgres::empty_database().await;
        let proxy = Proxy::before(&database).await;
        let settings = format!(
            "database = {:?}\n[store]\nstatement_seconds = 1\n{more}",
            proxy.url(&database)
        );
        let server = TestServer::start_with(&settings).await;
        Self {
            server,
            proxy,
            database,
        }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let mut connection = self.server.client().connect().await.unwrap();
        connection.get(path).await.unwrap()
    }

    async fn is_ready(&self) -> bool {
        self.get("/readyz").await.0 == 200
    }

    /// Places a call that passes the proxy with this word.
    async fn call(&self, word: &str) -> String {
        let fields =
            format!("<to>13800000000</to><mediaTxt>x</mediaTxt><userData>{word}</userData>");
        answered(self.server.call_xml(&fields)).await
    }

    /// How many calls with this word are there, and how many of them are queued.
    async fn stored(&self, word: &str) -> (i64, i64) {
        let client = postgres::connect(&self.database).await;
        let count = "SELECT count(*), count(call_queue.call_sid) FROM calls LEFT JOIN call_queue USING (call_sid) WHERE user_data = $1";
        let row = client.query_one(count, &[&word]).await.unwrap();
        (row.get(0), row.get(1))
    }
}

/// Much longer than the deadlines of `Behind`, and much shorter than a silent connection lasts by itself: those once kept everybody waiting for a minute.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Whoever waits for the connection fails.
async fn answered<T>(answer: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(ANSWERED_WITHIN, answer).await;
    answer.expect("it is answered")
}

/// Nobody waits for the proxy to speak again: it stays silent until all of this is answered.
#[tokio::test]
async fn requests_are_answered_while_the_database_is_silent() {
    let behind = Behind::start("").await;
    let sid = call_sid(&behind.call("before").await);
    behind.proxy.all(Fault::Stall);
    // What is read failed; what was sent to be committed may have been, for all that is known here.
    let result = format!("CallResult?callsid={sid}");
    let result = answered(behind.server.ask(&result, "json", None));
    let (result, call) = tokio::join!(result, behind.call("meanwhile"));
    assert_eq!(status_code(&result), "111000", "{result}");
    assert!(["111000", "190013"].contains(&status_code(&call)), "{call}");
    behind.proxy.all(Fault::Pass);
    eventually("calls are accepted again", async || {
        status_code(&behind.call("after").await) == "000000"
    })
    .await;
    assert_eq!(behind.stored("before").await, (1, 1));
    assert_eq!(behind.stored("meanwhile").await, (0, 0));
}

#[tokio::test]
async fn a_silent_database_is_not_ready_and_all_goes_on_when_it_speaks_again() {
    let trunk = "[dispatch]\nlease_seconds = 2\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"\"]\n";
    let behind = Behind::start(trunk).await;
    eventually("ready", async || behind.is_ready().await).await;
    behind.proxy.all(Fault::Stall);
    eventually("not ready", async || {
        let (status, text) = answered(behind.get("/readyz")).await;
        status == 503 && text.contains("the database")
    })
    .await;
    behind.proxy.all(Fault::Pass);
    eventually("ready again, with every task alive", async || {
        behind.is_ready().await
    })
    .await;
    // Every loop that a call needs has taken a connection that speaks.
    let sid = call_sid(&behind.call("after").await).parse().unwrap();
    eventually("the call has ended", async || {
        let record = behind.server.store.call_record(&sid).await;
        matches!(record, Ok(Some(record)) if record.outcome.is_some())
    })
    .await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_repeated_and_neither_lost_nor_doubled() {
    let behind = Behind::start("").await;
    for (round, fault) in [
        Fault::StallAnswers,
        Fault::Stall,
        Fault::CutAfter,
        Fault::Cut,
    ]
    .into_iter()
    .enumerate()
    {
        let word = format!("round-{round}");
        behind.proxy.when(&[&word], fault, Hits::ThisConnection);
        call_sid(&behind.call(&word).await);
        assert_eq!(behind.proxy.moments(), u32::try_from(round).unwrap() + 1);
        assert_eq!(behind.stored(&word).await, (1, 1), "{fault:?}");
    }
}

#[tokio::test]
async fn a_call_whose_commit_is_never_answered_is_told_as_unknown_and_is_there_once() {
    let behind = Behind::start("").await;
    let word = "committed";
    behind
        .proxy
        .when(&[word], Fault::StallAnswers, Hits::ThisAndSilenceForAll);
    let answer = behind.call(word).await;
    assert_eq!(status_code(&answer), "190013", "{answer}");
    assert!(answer.contains("with the same requestId"), "{answer}");
    let sid = answer.split("callSid ").nth(1).unwrap();
    let sid = sid.split('<').next().unwrap();
    // The commit was made before its answer got lost.
    assert_eq!(behind.stored(word).await, (1, 1));
    let client = postgres::connect(&behind.database).await;
    let found = client.query_one("SELECT call_sid FROM calls", &[]).await;
    assert_eq!(found.unwrap().get::<_, String>(0), sid);
}

#[tokio::test]
async fn a_call_that_never_reached_the_database_is_told_as_unknown_and_is_not_there() {
    let behind = Behind::start("").await;
    let word = "swallowed";
    behind
        .proxy
        .when(&[word], Fault::Stall, Hits::ThisAndSilenceForAll);
    let answer = behind.call(word).await;
    assert_eq!(status_code(&answer), "190013", "{answer}");
    assert_eq!(behind.stored(word).await, (0, 0));
    behind.proxy.all(Fault::Pass);
    eventually("the next is accepted", async || {
        status_code(&behind.call("next").await) == "000000"
    })
    .await;
    assert_eq!(behind.stored(word).await, (0, 0), "nor later");
}

/// Whether the commit was made or not, nobody is called twice.
#[tokio::test]
async fn whoever_is_not_told_may_ask_another_node_for_the_same() {
    for (word, fault, stored) in [
        ("committed", Fault::StallAnswers, (1, 1)),
        ("swallowed", Fault::Stall, (0, 0)),
    ] {
        let behind = Behind::start("").await;
        let fields = format!(
            "<to>13800000000</to><mediaTxt>x</mediaTxt><userData>{word}</userData><requestId>the alarm</requestId>"
        );
        behind
            .proxy
            .when(&[word], fault, Hits::ThisAndSilenceForAll);
        let answer = answered(behind.server.call_xml(&fields)).await;
        assert_eq!(status_code(&answer), "190013", "{answer}");
        assert_eq!(behind.stored(word).await, stored, "{fault:?}");

        let settings = format!("database = {:?}\n", behind.database);
        let other = behind.server.another_node(&settings).await;
        let repeated = [
            call_sid(&answered(other.call_xml(&fields)).await),
            call_sid(&answered(other.call_xml(&fields)).await),
        ];
        assert_eq!(repeated[0], repeated[1]);
        assert_eq!(answer.contains(&repeated[0]), stored == (1, 1), "{answer}");
        behind.proxy.all(Fault::Pass);
        eventually("the first node accepts again", async || {
            status_code(&behind.call("next").await) == "000000"
        })
        .await;
        assert_eq!(behind.stored(word).await, (1, 1), "once: {fault:?}");
    }
}

/// The calls of the account cost money, and it has some.
async fn has_money(server: &TestServer) {
    let rate = Rate {
        prefix: "".parse().unwrap(),
        unit_seconds: 60,
        price: "0.10".parse().unwrap(),
        unanswered: Money::ZERO,
    };
    let account = SID.parse().unwrap();
    server.store.set_rate(&account, rate).await.unwrap();
    let change = AccountChange {
        balance: Some(Some("1000".parse().unwrap())),
        ..AccountChange::default()
    };
    server.change_account(change).await;
}

#[tokio::test]
async fn a_call_that_costs_money_is_reserved_once_though_its_commit_is_not_answered() {
    let behind = Behind::start("").await;
    has_money(&behind.server).await;
    let account = SID.parse().unwrap();
    let reserved = async || {
        let funds = behind.server.store.funds(&account).await.unwrap().unwrap();
        funds.reserved
    };
    eventually("the balance is known", async || {
        call_sid(&behind.call("first").await);
        reserved().await > Money::ZERO
    })
    .await;
    let one = reserved().await;
    for (word, fault) in [
        ("answers", Fault::StallAnswers),
        ("cut", Fault::CutAfter),
        ("silence", Fault::Stall),
    ] {
        let before = reserved().await;
        let moment = [word, "COMMIT"];
        behind.proxy.when(&moment, fault, Hits::ThisConnection);
        call_sid(&behind.call(word).await);
        assert_eq!(behind.stored(word).await, (1, 1), "{fault:?}");
        assert_eq!(reserved().await.minus(before), one, "{fault:?}");
    }
    assert_eq!(behind.proxy.moments(), 3);
}

/// The server does not hear that the node has gone: it lets go of what the node has locked all the same.
#[tokio::test]
async fn what_a_silent_connection_has_locked_is_free_again() {
    let behind = Behind::start("").await;
    let account = SID.parse().unwrap();
    let named = |name: &str| AccountChange {
        name: Some(name.to_owned()),
        ..AccountChange::default()
    };
    let moment = ["never heard of", "COMMIT"];
    behind
        .proxy
        .when(&moment, Fault::Stall, Hits::ThisConnection);
    let changed = behind
        .server
        .store
        .change_account(&account, named(moment[0]));
    let changed = answered(changed).await;
    assert!(
        matches!(changed, Err(StoreError::Unknown(_))),
        "{changed:?}"
    );
    assert_eq!(behind.proxy.moments(), 1);
    let other = Database::parse(&behind.database).unwrap();
    let other = other.open(&Supervisor::new()).await.unwrap();
    eventually("the account can be changed", async || {
        other.change_account(&account, named("free")).await.is_ok()
    })
    .await;
    let found = other.account(&account).await.unwrap().unwrap();
    assert_eq!(found.name, "free");
}

/// One transaction after the other has the account's row while it looks at the money: the others wait for their turn without a connection.
#[tokio::test]
async fn calls_that_wait_for_the_money_of_their_account_leave_others_their_connections() {
    let database = postgres::empty_database().await;
    let settings = format!("database = {database:?}\n[store]\nstatement_seconds = 60\n");
    let server = TestServer::start_with(&settings).await;
    has_money(&server).await;
    let mut other = postgres::connect(&database).await;
    let held = other.transaction().await.unwrap();
    let hold = "SELECT 1 FROM accounts WHERE sid = $1 FOR UPDATE";
    held.query(hold, &[&SID]).await.unwrap();
    let placing = async |number: u32| {
        let fields = format!("<to>1380000{number:04}</to><mediaTxt>x</mediaTxt>");
        server.call_xml(&fields).await
    };
    let calls = futures_util::future::join_all((0..20).map(placing));
    let look = async {
        let watcher = postgres::connect(&database).await;
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let waiting = async || {
            let row = watcher.query_one(waiting, &[]).await.unwrap();
            row.get::<_, i64>(0)
        };
        eventually("one waits", async || waiting().await > 0).await;
        for _ in 0..20 {
            answered(server.store.rates(None)).await.unwrap();
        }
        assert_eq!(waiting().await, 1);
        held.rollback().await.unwrap();
    };
    let (calls, ()) = tokio::join!(calls, look);
    for call in calls {
        call_sid(&call);
    }
}

/// Whoever stops waiting leaves no connection behind with an answer still to come.
#[tokio::test]
async fn a_connection_on_which_somebody_has_stopped_waiting_is_not_used_again() {
    let behind = Behind::start("").await;
    let (store, account) = (&behind.server.store, SID.parse().unwrap());
    behind
        .proxy
        .when(&[SID], Fault::StallAnswers, Hits::ThisConnection);
    tokio::select! {
        read = store.account(&account) => panic!("answered: {read:?}"),
        () = eventually("it is asked", async || behind.proxy.moments() == 1) => {}
    }
    for _ in 0..10 {
        answered(store.account(&account)).await.unwrap();
    }
}

/// Slow is not silent.
#[tokio::test]
async fn a_database_that_is_slow_is_waited_for() {
    let behind = Behind::start("").await;
    call_sid(&behind.call("before").await);
    behind.proxy.all(Fault::Delay(Duration::from_millis(150)));
    for word in ["slow", "slower"] {
        call_sid(&behind.call(word).await);
        assert_eq!(behind.stored(word).await, (1, 1));
    }
}

#[tokio::test]
async fn what_takes_long_has_a_longer_deadline() {
    let behind = Behind::start("").await;
    let store = &behind.server.store;
    let mut other = postgres::connect(&behind.database).await;
    let held = other.transaction().await.unwrap();
    held.batch_execute("LOCK TABLE bill_lines, rates")
        .await
        .unwrap();
    let now = behind.server.clock.now();
    let rate = Rate {
        prefix: "".parse().unwrap(),
        unit_seconds: 60,
        price: Money::ZERO,
        unanswered: Money::ZERO,
    };
    let importing = add_records(&**store, now, 3);
    let changing = async {
        let account = SID.parse().unwrap();
        let changed = store.set_rate(&account, rate).await;
        assert!(
            matches!(changed, Err(StoreError::Unknown(_))),
            "{changed:?}"
        );
        held.rollback().await.unwrap();
    };
    answered(async { tokio::join!(importing, changing) }).await;
}

/// Whatever a role or a database is set to: an accepted call is on the disk, and no commit is cancelled by the server.
#[tokio::test]
async fn a_session_keeps_its_promises_whatever_the_database_is_set_to() {
    let url = postgres::empty_database().await;
    let name = url::Url::parse(&url).unwrap();
    let name = name.path().trim_start_matches('/');
    let client = postgres::connect(&url).await;
    for setting in ["synchronous_commit = off", "statement_timeout = 1000"] {
        let set = format!("ALTER DATABASE {name} SET {setting}");
        client.batch_execute(&set).await.unwrap();
    }
    let Database::Postgres(config) = Database::parse(&url).unwrap() else {
        panic!("{url}");
    };
    let session = clarion::store::postgres::connect(&config).await.unwrap();
    for (setting, value) in [
        ("synchronous_commit", "on"),
        ("statement_timeout", "0"),
        ("idle_in_transaction_session_timeout", "5s"),
        ("tcp_keepalives_idle", "5"),
        ("tcp_user_timeout", "10000"),
        ("application_name", "clarion"),
    ] {
        let shown = session
            .query_one_once(&format!("SHOW {setting}"), &[])
            .await;
        assert_eq!(shown.unwrap().get::<_, String>(0), value, "{setting}");
    }
}
