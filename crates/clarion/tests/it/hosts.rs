//! Several PostgreSQL servers in one address: the one that can be written to is found, and found again when it is another.

use clarion::store::{Database, DatabaseRoute};

use crate::support::cluster::Cluster;
use crate::support::{TestServer, call_sid, eventually, free_port, status_code};

const ACCESS: &str = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";

fn ports(hosts: &[u16]) -> String {
    let hosts: Vec<_> = hosts
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    hosts.join(",")
}

/// The host that is taken.
async fn taken(url: &str) -> Result<DatabaseRoute, String> {
    let database = Database::parse(url).unwrap();
    let found = database.inspect().await;
    found
        .map(|found| found.route.unwrap())
        .map_err(|error| format!("{error:#}"))
}

#[tokio::test]
async fn the_writable_server_is_found_and_the_other_one_after_a_switch() {
    let mut primary = Cluster::start("", ACCESS, &[]).await;
    let standby = primary.standby().await;
    let (first, second) = (primary.0.port, standby.0.port);
    // A host that is not there comes first, and the standby before the primary.
    let hosts = ports(&[free_port(), second, first]);
    let url = format!("postgres://clarion@{hosts}/postgres");
    let server = TestServer::start_with(&format!(
        "database = {url:?}\n[store]\nstatement_seconds = 2\n"
    ))
    .await;
    let call = "\"to\":\"13800000000\",\"mediaTxt\":\"x\"";
    let before = call_sid(&server.call_json(call).await);
    eventually("the standby has it", async || {
        holds(&standby, &before).await
    })
    .await;
    primary.0.stop().await;
    standby.execute("SELECT pg_promote()").await;
    let mut answer = String::new();
    eventually("the other server takes calls", async || {
        answer = server.call_json(call).await;
        status_code(&answer) == "000000"
    })
    .await;
    let after = call_sid(&answer);
    assert!(holds(&standby, &before).await && holds(&standby, &after).await);
    eventually("ready", async || {
        let mut connection = server.client().connect().await.unwrap();
        connection.get("/readyz").await.unwrap().0 == 200
    })
    .await;
}

async fn holds(cluster: &Cluster, sid: &str) -> bool {
    let client = crate::support::postgres::connect(&cluster.url("clarion")).await;
    let count = format!("SELECT 1 FROM calls WHERE call_sid = '{sid}'");
    let found = client.query(&count, &[]).await;
    found.is_ok_and(|rows| !rows.is_empty())
}

/// What no standby has may be gone with the primary: nobody is told that it was accepted, although the primary shows it.
#[tokio::test]
async fn a_call_that_no_standby_has_is_not_told_as_accepted() {
    let mut primary = Cluster::start("", ACCESS, &[]).await;
    let mut standby = primary.standby().await;
    primary
        .execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        .await;
    primary.0.reload();
    let client = crate::support::postgres::connect(&primary.url("clarion")).await;
    let waits_for = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    eventually("commits wait for the standby", async || {
        !client.query(waits_for, &[]).await.unwrap().is_empty()
    })
    .await;
    let url = primary.url("clarion");
    let server = TestServer::start_with(&format!(
        "database = {url:?}\n[store]\nstatement_seconds = 1\n"
    ))
    .await;
    let call = "\"to\":\"13800000000\",\"mediaTxt\":\"x\",\"requestId\":\"the alarm\"";
    standby.0.stop().await;
    let answer = server.call_json(call).await;
    assert_eq!(status_code(&answer), "190013", "{answer}");
    let sid = answer.split("callSid ").nth(1).unwrap();
    let sid = sid.split('"').next().unwrap();
    // The primary's own log has it: it can be seen when the primary has started again.
    primary.0.stop().await;
    primary.start_again(|_| {}).await;
    eventually("the primary shows it", async || holds(&primary, sid).await).await;
    let answer = server.call_json(call).await;
    assert_ne!(status_code(&answer), "000000", "{answer}");
    standby.start_again(|_| {}).await;
    let mut answer = String::new();
    eventually("it is told as accepted", async || {
        answer = server.call_json(call).await;
        status_code(&answer) == "000000"
    })
    .await;
    assert_eq!(call_sid(&answer), sid);
    assert!(holds(&standby, sid).await);
}

/// A server that lives on as a read-only one: its connections stay open, and are not kept.
#[tokio::test]
async fn a_server_that_becomes_read_only_is_left() {
    let one = Cluster::start("", ACCESS, &[]).await;
    let other = Cluster::start("default_transaction_read_only = on", ACCESS, &[]).await;
    let hosts = ports(&[one.0.port, other.0.port]);
    let url = format!("postgres://clarion@{hosts}/postgres");
    let server = TestServer::start_with(&format!("database = {url:?}\n")).await;
    server.store.ready().await.unwrap();
    let read_only = |on: &str| {
        format!(
            "SET default_transaction_read_only = off; ALTER SYSTEM SET default_transaction_read_only = {on}; SELECT pg_reload_conf()"
        )
    };
    for (cluster, on) in [(&one, "on"), (&other, "off")] {
        let client = crate::support::postgres::connect(&cluster.url("clarion")).await;
        // Not in one transaction: the server refuses that.
        for statement in read_only(on).split("; ") {
            client.batch_execute(statement).await.unwrap();
        }
    }
    // The other one is empty: the first connection that is made anew meets a database without our schema, which is proof enough.
    eventually("the other server is asked", async || {
        let asked = server.store.ready().await;
        asked.is_err_and(|error| error.to_string().contains("probe"))
    })
    .await;
}

#[tokio::test]
async fn the_server_that_is_wanted_is_taken_and_the_others_are_left() {
    let primary = Cluster::start("", ACCESS, &[]).await;
    let standby = primary.standby().await;
    let (first, second) = (primary.0.port, standby.0.port);
    let host = |port: u16| format!("127.0.0.1:{port}");
    for (hosts, wanted, found) in [
        ([second, first], "", Ok(first)),
        ([second, first], "any", Ok(second)),
        ([second, first], "read-write", Ok(first)),
        ([first, second], "read-only", Ok(second)),
        ([second, first], "primary", Ok(first)),
        ([first, second], "standby", Ok(second)),
        ([first, second], "prefer-standby", Ok(second)),
        ([first, first], "prefer-standby", Ok(first)),
        ([first, first], "standby", Err("is not a standby")),
        ([second, second], "read-write", Err("is read-only")),
        ([second, second], "primary", Err("is a standby")),
    ] {
        let attribute = match wanted {
            "" => String::new(),
            wanted => format!("?target_session_attrs={wanted}"),
        };
        let url = format!("postgres://clarion@{}/postgres{attribute}", ports(&hosts));
        match (taken(&url).await, found) {
            (Ok(route), Ok(port)) => assert_eq!(route.host, host(port), "{url}"),
            (Err(said), Err(words)) => assert!(said.contains(words), "{url}: {said}"),
            (taken, found) => panic!("{url}: {taken:?}, not {found:?}"),
        }
    }
    // Each in its turn by chance: both are met.
    let url = format!(
        "postgres://clarion@{}/postgres?target_session_attrs=any&load_balance_hosts=random",
        ports(&[first, second])
    );
    let mut met = std::collections::BTreeSet::new();
    eventually("both are met", async || {
        met.insert(taken(&url).await.unwrap().host);
        met.len() == 2
    })
    .await;
    // A server that does not let us in ends the search, as in libpq: it has our address and not our trust.
    primary.replace("pg_hba.conf", "host all all 127.0.0.1/32 reject\n");
    let url = format!(
        "postgres://clarion@{}/postgres?target_session_attrs=any",
        ports(&[first, second])
    );
    eventually("it is refused", async || {
        taken(&url)
            .await
            .is_err_and(|said| said.contains("pg_hba.conf"))
    })
    .await;
    // The check tells what each of them is.
    let url = format!(
        "postgres://clarion@{}/postgres?target_session_attrs=any",
        ports(&[second, first])
    );
    let route = taken(&url).await.unwrap();
    let (name, kind) = &route.hosts[0];
    assert_eq!(*name, host(second));
    assert_eq!(kind.as_ref().unwrap().to_string(), "a standby");
    assert!(
        route.hosts[1]
            .1
            .as_ref()
            .is_err_and(|said| said.contains("pg_hba.conf"))
    );
}
