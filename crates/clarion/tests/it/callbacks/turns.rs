//! Whose callbacks are delivered: accounts take turns, and what the silent receivers of one can hold is bounded.

use std::net::TcpListener;
use std::ops::RangeInclusive;

use clarion::domain::callback::CallbackState;
use clarion::store::CallbackFilter;
use jiff::Timestamp;

use super::SETTINGS;
use crate::calls::stage::register;
use crate::support::owed::{owe, owed_to};
use crate::support::receiver::{Receiver, ok};
use crate::support::{APP, TestServer, eventually, execute, postgres};

/// Ports where connections are accepted by the system and never answered.
fn silent_ports(count: u16) -> Vec<TcpListener> {
    let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
    (0..count).map(bind).collect()
}

fn urls(ports: &[TcpListener]) -> Vec<String> {
    let url = |port: &TcpListener| format!("http://{}/", port.local_addr().unwrap());
    ports.iter().map(url).collect()
}

/// Settings on either database.
async fn on_either(settings: &str) -> [String; 2] {
    let database = postgres::empty_database().await;
    [
        settings.to_owned(),
        format!("database = {database:?}\n{settings}"),
    ]
}

async fn under_way(server: &TestServer) -> usize {
    let filter = CallbackFilter {
        state: Some(CallbackState::Delivering),
        limit: 1000,
        ..CallbackFilter::default()
    };
    let found = server.store.callbacks(filter).await.unwrap();
    found.callbacks.len()
}

/// How many callbacks have been tried.
async fn tried(server: &TestServer) -> usize {
    let filter = CallbackFilter {
        limit: 1000,
        ..CallbackFilter::default()
    };
    let all = server.store.callbacks(filter).await.unwrap();
    let tried = all.callbacks.iter();
    tried.filter(|callback| callback.attempts > 0).count()
}

/// Owes a callback of another account than the server's first one.
async fn owe_by_another(server: &TestServer, url: &str) {
    let app = register(&*server.store, 7, |_| {}).await;
    let mut owed = owed_to(url, 9001, server.clock.now());
    owed.app = app.parse().unwrap();
    owe(&server.database, vec![owed]).await;
    server.deliver_callbacks();
}

/// When the first of these callbacks was tried, after this.
async fn first_try(
    server: &TestServer,
    numbers: RangeInclusive<u32>,
    after: Timestamp,
) -> Option<Timestamp> {
    let mut first = None;
    for number in numbers {
        for attempt in server.callback(number).await.1 {
            let is_earlier = first.is_none_or(|first| attempt.started_at < first);
            if attempt.started_at > after && is_earlier {
                first = Some(attempt.started_at);
            }
        }
    }
    first
}

#[tokio::test]
async fn silent_ports_of_one_account_do_not_delay_the_callback_of_another() {
    let places = "concurrency = 12\nper_account = 8\nper_address = 8\nper_host = 4\ntime_limit_seconds = 60\nlease_seconds = 90\n";
    let settings = SETTINGS.replace("time_limit_seconds = 1\n", places);
    for settings in on_either(&settings).await {
        let server = TestServer::start_with(&settings).await;
        let ports = silent_ports(150);
        let alive = Receiver::start(vec![ok()]).await;
        server.owe(&urls(&ports)).await;
        eventually("the silent ones have all they get", async || {
            under_way(&server).await == 8
        })
        .await;
        owe_by_another(&server, &alive.url()).await;
        alive.has_received(1).await;
        server.callback_is(9001, CallbackState::Delivered).await;
        assert_eq!(tried(&server).await, 1, "nothing else had to end for it");
        assert_eq!(under_way(&server).await, 8);
        server.stop().await;
    }
}

#[tokio::test]
async fn all_silent_ports_of_an_address_count_as_one_receiver() {
    let places = "per_address = 5\ntime_limit_seconds = 1\n";
    let settings = SETTINGS.replace("time_limit_seconds = 1\n", places);
    let settings = settings.replace("[0.05, 0.05, 0.05]", "[3600]");
    for settings in on_either(&settings).await {
        let server = TestServer::start_with(&settings).await;
        let ports = silent_ports(150);
        server.owe(&urls(&ports)).await;
        eventually("five were tried at once", async || {
            assert!(under_way(&server).await <= 5);
            tried(&server).await >= 5
        })
        .await;
        eventually("the next ones were tried one by one", async || {
            let (tried_before, now) = (tried(&server).await, under_way(&server).await);
            assert!(tried_before < 5 || now <= 1, "{now} after {tried_before}");
            tried_before >= 7
        })
        .await;
        // A receiver at that address that answers is found among the silent ones, and has places of its own from then on.
        let (alive, began) = (Receiver::start(vec![ok()]).await, server.clock.now());
        let owed = (2001..=2020).map(|number| owed_to(&alive.url(), number, began));
        owe(&server.database, owed.collect()).await;
        server.deliver_callbacks();
        alive.has_received(20).await;
        let first = first_try(&server, 2001..=2020, began).await.unwrap();
        let mut silent_first = 0;
        for number in 1..=150 {
            let tried = first_try(&server, number..=number, began).await;
            silent_first += usize::from(tried.is_some_and(|tried| tried < first));
        }
        assert!(
            silent_first <= 3,
            "{silent_first} silent ones came before it"
        );
        server.stop().await;
    }
}

#[tokio::test]
async fn a_hundred_thousand_due_callbacks_of_one_account_do_not_hide_the_one_of_another() {
    let places = "concurrency = 4\nper_account = 2\ntime_limit_seconds = 60\nlease_seconds = 90\n";
    let settings = SETTINGS.replace("time_limit_seconds = 1\n", places);
    for settings in on_either(&settings).await {
        let server = TestServer::start_with(&settings).await;
        // Every address of this machine leads to it.
        let dead = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = dead.local_addr().unwrap().port();
        let alive = Receiver::start(vec![ok()]).await;
        server.owe(&[format!("http://127.0.0.1:{port}/")]).await;
        let many = format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000), \
             hosts (n, host) AS (SELECT n, '127.' || (n / 62500 + 1) || '.' || (n / 250 % 250 + 1) || '.' || (n % 250 + 1) || ':{port}' FROM numbers) \
             INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
             SELECT (10000000 + n) || 'ffffffffffffffffffffffff', '{APP}', 'w', host, 'http://' || host || '/', 'b', 0, 0, 0 FROM hosts"
        );
        execute(&server.database, &many).await;
        owe_by_another(&server, &alive.url()).await;
        alive.has_received(1).await;
        server.callback_is(9001, CallbackState::Delivered).await;
        assert_eq!(
            under_way(&server).await,
            2,
            "nothing else had to end for it"
        );
        server.stop().await;
    }
}
