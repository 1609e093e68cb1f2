//! A database that an older program made, with data in it, is brought up to date when it is opened.

use clarion::domain::call_state::CallState;
use clarion::domain::prompt::AudioOwner;
use clarion::store::Database;
use supervisor::Supervisor;

use super::{call, open, order, with_account};
use crate::support::bills::claim;
use crate::support::{self, APP, SID, app_id};

contract! {
    data_of_the_first_schema_is_there_after_the_migration,
    a_schema_that_is_newer_than_the_program_is_left_alone,
    a_schema_that_was_only_expanded_is_still_for_us,
    only_servers_change_a_schema,
}

const SID_OF_CALL: &str = "20261115103509000000000000000001";

/// As the first program left it.
async fn first_schema(database: &Database) {
    let (schema, version) = match database {
        Database::Sqlite(_) => (
            include_str!("../../../migrations/sqlite/0001_first.sql"),
            "PRAGMA user_version = 1;",
        ),
        Database::Postgres(_) => (
            include_str!("../../../migrations/postgres/0001_first.sql"),
            "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now());
             INSERT INTO schema_migrations (version) VALUES (1);",
        ),
    };
    let rows = format!(
        "INSERT INTO accounts (sid, name, auth_token, state, bill_download, custom_display_number, created_at)
           VALUES ('{SID}', 'Old', '{SID}', 'active', TRUE, FALSE, 1000);
         INSERT INTO number_rules (account_sid, pattern) VALUES ('{SID}', '+86400*'), ('{SID}', '+861052823298');
         INSERT INTO applications (id, account_sid, name, state, created_at) VALUES ('{APP}', '{SID}', 'Old', 'active', 1000);
         INSERT INTO voice_files (owner, name, content, bytes, duration, added_at)
           VALUES ('{APP}', 'a.wav', 'abc', 7, 8, 9000), ('', 'b.wav', 'def', 1, 2, 3000);
         INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt)
           VALUES ('{SID_OF_CALL}', '{SID}', '{APP}', 1000, '13800000000', '8613800000000', '{{\"files\":[],\"plays\":1}}');
         INSERT INTO call_queue (call_sid, app_id, callee, due_at, expires_at, state)
           VALUES ('{SID_OF_CALL}', '{APP}', '8613800000000', 1000, 9000, 0);"
    );
    for statements in [schema, version, &rows] {
        support::execute(database, statements).await;
    }
}

async fn data_of_the_first_schema_is_there_after_the_migration(database: Database) {
    first_schema(&database).await;
    let before = database.inspect().await.unwrap();
    assert_eq!(before.version, 1);
    let store = open(&database).await;
    let own = AudioOwner::Application(app_id());
    let files = store.audio_files_of(&own).await.unwrap();
    assert_eq!(files.len(), 1);
    let file = &files[0];
    assert_eq!(
        (file.name.as_str(), file.content.as_str()),
        ("a.wav", "abc")
    );
    assert_eq!((file.bytes, file.duration), (7, 8));
    assert_eq!(file.added_at.as_millisecond(), 9000);
    let common = store.audio_files_of(&AudioOwner::Platform).await.unwrap();
    assert_eq!(common[0].name.as_str(), "b.wav");
    store
        .remove_audio_file(&own, &"a.wav".parse().unwrap())
        .await
        .unwrap();
    // Its bytes are charged to the application, also those from before there was a quota.
    let dropped = store.dropped_audio(jiff::Timestamp::MAX).await.unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0].content.as_str(), "abc");
    let account = store.account(&SID.parse().unwrap()).await.unwrap().unwrap();
    assert!(account.permissions.bill_download && !account.permissions.custom_display_number);
    assert_eq!(account.display_numbers.len(), 2);
    let progress = store
        .call_progress(&account.sid, &SID_OF_CALL.parse().unwrap())
        .await
        .unwrap();
    assert_eq!(progress.unwrap().state, CallState::Queued);
    store.ready().await.unwrap();
    store.close().await;
    let after = database.inspect().await.unwrap();
    assert_eq!(after.version, after.wanted);
    // Nothing is left under the old name, and a second opening finds nothing to do.
    assert!(matches!(
        support::try_execute(&database, "DELETE FROM voice_files").await,
        Err(error) if error.contains("voice_files")
    ));
    assert_eq!(
        open(&database)
            .await
            .audio_files_of(&AudioOwner::Platform)
            .await
            .unwrap(),
        common
    );
}

async fn a_schema_that_is_newer_than_the_program_is_left_alone(database: Database) {
    let store = open(&database).await;
    store.close().await;
    made_up_migration(&database, 99).await;
    let supervisor = Supervisor::new();
    for refused in [
        database.open(&supervisor).await,
        database.open_as_is(&supervisor).await,
    ] {
        let message = format!("{:#}", refused.unwrap_err());
        assert!(message.contains("version 99"), "{message}");
    }
    assert!(!database.inspect().await.unwrap().is_usable);
}

/// As a later program leaves it: with something more, and with what it says about programs before it.
async fn made_up_migration(database: &Database, oldest_program: usize) {
    let version = match database {
        Database::Sqlite(_) => "PRAGMA user_version = 99",
        Database::Postgres(_) => "INSERT INTO schema_migrations (version) VALUES (99)",
    };
    let expansion = format!(
        "ALTER TABLE calls ADD COLUMN made_up TEXT;
         ALTER TABLE call_queue ADD COLUMN made_up INTEGER NOT NULL DEFAULT 7;
         CREATE TABLE made_up (name TEXT PRIMARY KEY);
         UPDATE schema_info SET oldest_program = {oldest_program};"
    );
    support::execute(database, version).await;
    support::execute(database, &expansion).await;
}

async fn a_schema_that_was_only_expanded_is_still_for_us(database: Database) {
    let store = with_account(&database).await;
    store.accept_call(order(call(1))).await.unwrap();
    let wanted = database.inspect().await.unwrap().wanted;
    // While one is at work, and for the next who comes.
    made_up_migration(&database, wanted).await;
    let next = database.open_as_is(&Supervisor::new()).await.unwrap();
    next.accept_call(order(call(2))).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap().0, 2);
    let claimed = claim(&*store, 2).await;
    assert_eq!(claimed.len(), 1, "one callee, one call");
    let found = database.inspect().await.unwrap();
    assert!(found.is_usable && found.version == 99);
}

async fn only_servers_change_a_schema(database: Database) {
    first_schema(&database).await;
    let refused = database.open_as_is(&Supervisor::new()).await;
    let message = format!("{:#}", refused.unwrap_err());
    assert!(message.contains("`clarion migrate`"), "{message}");
    assert_eq!(database.inspect().await.unwrap().version, 1);
    open(&database).await.close().await;
    let found = database.inspect().await.unwrap();
    assert_eq!(found.version, found.wanted);
    database.open_as_is(&Supervisor::new()).await.unwrap();
}

/// On PostgreSQL: the old node would find a schema that it does not know.
#[tokio::test]
async fn nobody_migrates_beside_a_living_node_of_the_version_before() {
    let database = support::postgres::empty().await;
    first_schema(&database).await;
    let beat = |seconds: i64| {
        format!(
            "DELETE FROM nodes; INSERT INTO nodes (node, steady_since, heartbeat_at) \
             VALUES ('node-old', 0, (extract(epoch FROM now()) * 1000)::bigint - {seconds} * 1000)"
        )
    };
    support::execute(&database, &beat(3)).await;
    let refused = database.open(&Supervisor::new()).await;
    let message = format!("{:#}", refused.unwrap_err());
    let told = "node-old of an older version is still running";
    assert!(message.contains(told), "{message}");
    assert_eq!(database.inspect().await.unwrap().version, 1);
    support::execute(&database, &beat(120)).await;
    open(&database).await;
}

/// From here on nodes say which schema they are for. One that the next schema is for goes on beside it.
#[tokio::test]
async fn only_a_living_node_that_the_next_schema_is_not_for_keeps_it_away() {
    let database = support::postgres::empty().await;
    open(&database).await.close().await;
    let wanted = database.inspect().await.unwrap().wanted;
    // The last step is taken back.
    let before = format!(
        "DELETE FROM schema_migrations WHERE version = {wanted}; ALTER TABLE nodes DROP COLUMN concerns"
    );
    support::execute(&database, &before).await;
    let living = |schema: usize| {
        format!(
            "DELETE FROM nodes; INSERT INTO nodes (node, steady_since, heartbeat_at, lease_until, schema_version) \
             SELECT 'node-old', 0, now, now + 60000, {schema} FROM (SELECT (extract(epoch FROM now()) * 1000)::bigint AS now) AS clock"
        )
    };
    support::execute(&database, &living(3)).await;
    let refused = database.open(&Supervisor::new()).await;
    let message = format!("{:#}", refused.unwrap_err());
    let told = "node-old of an older version is still running";
    assert!(message.contains(told), "{message}");
    assert_eq!(database.inspect().await.unwrap().version, wanted - 1);
    support::execute(&database, &living(wanted - 1)).await;
    open(&database).await.close().await;
    assert_eq!(database.inspect().await.unwrap().version, wanted);
}
