//! Notices that call the numbers of a list: by its name, as the list is when its numbers have their turn.

use clarion::domain::call::CallSid;
use clarion::domain::call_list::CallList;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;

use super::{HELLO, TIMES, told};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, SID, eventually};

const PAUSE: SignedDuration = SignedDuration::from_secs(3000);

impl Stage {
    fn list(&self, name: &str, numbers: &[&str]) -> CallList {
        support::call_list(name, numbers, self.server.clock.now())
    }

    async fn add_list(&self, name: &str, numbers: &[&str]) {
        let list = self.list(name, numbers);
        self.server.store.add_list(list).await.unwrap();
    }

    async fn set_list(&self, name: &str, numbers: &[&str]) {
        let list = self.list(name, numbers);
        self.server.store.set_list(list).await.unwrap();
    }

    async fn remove_list(&self, name: &str) {
        let (account, name) = (SID.parse().unwrap(), name.parse().unwrap());
        let removed = self.server.store.remove_list(&account, &name);
        removed.await.unwrap();
    }

    /// So many attempts are over, and the next one waits.
    async fn waits_after(&self, sid: &CallSid, attempts: usize) {
        eventually("an attempt is over", async || {
            self.attempts(sid).await.len() == attempts
        })
        .await;
    }
}

/// Tried twice, after a long pause.
fn with_backups(backups: &str) -> String {
    format!(
        "{HELLO},\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\",\"backupTo\":\"{backups}\""
    )
}

async fn has_its_turn_among_numbers(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let night = ["13800020002=Li Wei", "13800000002", "+8613800030002"];
    stage.add_list("night", &night).await;
    stage.add_list("day", &["13800000005"]).await;
    let fields = format!("{HELLO},\"backupTo\":\"13800010002; @night ;13800040002;@day;@night\"");
    let sid = stage.call("13800000002", &fields).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "ended"), "talked");
    assert_eq!(
        told(&stage.attempts(&sid).await),
        [
            ("8613800000002", Outcome::Busy, false),
            ("8613800010002", Outcome::Busy, false),
            ("8613800020002", Outcome::Busy, false),
            ("8613800030002", Outcome::Busy, false),
            ("8613800040002", Outcome::Busy, false),
            ("8613800000005", Outcome::Talked, true),
        ]
    );
    let lines = stage.lines(&sid).await;
    assert_eq!(lines[3].called, "+8613800030002", "as the list has it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_has_its_turn_among_numbers() {
    has_its_turn_among_numbers("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_has_its_turn_among_numbers_on_postgres() {
    has_its_turn_among_numbers(&on_postgres().await).await;
}

async fn is_changed_between_two_attempts(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    stage
        .add_list("night", &["13800010002", "13800020002"])
        .await;
    let sid = stage.call("13800000002", &with_backups("@night")).await;
    stage.waits_after(&sid, 1).await;
    stage
        .set_list("night", &["13800030002", "13800000005"])
        .await;
    stage.let_time_pass(PAUSE).await;
    // Now one of the new list waits for its second try, and is taken off.
    stage.waits_after(&sid, 3).await;
    stage.set_list("night", &["13800000005"]).await;
    stage.let_time_pass(PAUSE).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "ended"), "talked");
    assert_eq!(
        told(&stage.attempts(&sid).await),
        [
            ("8613800000002", Outcome::Busy, false),
            ("8613800000002", Outcome::Busy, false),
            ("8613800030002", Outcome::Busy, false),
            ("8613800000005", Outcome::Talked, true),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_list_counts_from_the_next_attempt() {
    is_changed_between_two_attempts("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_list_counts_from_the_next_attempt_on_postgres() {
    is_changed_between_two_attempts(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_of_a_removed_list_is_called() {
    let stage = Stage::new(TIMES).await;
    stage.add_list("night", &["13800000005"]).await;
    let sid = stage.call("13800000002", &with_backups("@night")).await;
    stage.waits_after(&sid, 1).await;
    stage.remove_list("night").await;
    stage.let_time_pass(PAUSE).await;
    let report = stage.report_of(&sid).await;
    let told = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(told, ["2", "busy", "exhausted"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_checked_when_a_request_names_it() {
    let settings = "[numbers]\nforbidden = [\"+8613800009*\"]\npermitted = [\"+86120\"]\n";
    let stage = Stage::prepared(settings, async |store, clock| {
        let barred = store.bar_number("8613800000006", true, clock.now());
        assert!(barred.await.unwrap());
    })
    .await;
    stage.add_list("night", &["13800000005"]).await;
    stage.add_list("old", &["13800009000", "13800000005"]).await;
    stage.add_list("barred", &["13800000006"]).await;
    let answer = async |backups: &str| {
        let fields = format!("\"to\":\"13800000001\",{HELLO},\"backupTo\":\"{backups}\"");
        stage.server.call_json(&fields).await
    };
    let many = "@night;".repeat(21);
    for (backups, code, rule) in [
        (
            "@nobody",
            "108023",
            "@nobody must be a list of this account",
        ),
        ("@Night", "108023", "@Night must be a list of this account"),
        (
            "13800000002;@",
            "108023",
            "after '@', the name of a list must be 1 to 32",
        ),
        (
            "@a b",
            "108023",
            "after '@', the name of a list must be 1 to 32",
        ),
        (
            "@night@old",
            "108023",
            "after '@', the name of a list must be 1 to 32",
        ),
        (&many, "108023", "at most 20 numbers and lists"),
    ] {
        let answer = answer(backups).await;
        assert_eq!(support::status_code(&answer), code, "{backups}: {answer}");
        let (named, ruled) = (answer.contains("backupTo"), answer.contains(rule));
        assert!(named && ruled, "{backups}: {answer}");
    }
    let emergency = format!("\"to\":\"120\",{HELLO},\"backupTo\":\"@night\"");
    let answer = stage.server.call_json(&emergency).await;
    assert_eq!(support::status_code(&answer), "108035", "{answer}");
    let (queued, _) = stage.server.store.queue_depth().await.unwrap();
    assert_eq!(queued, 0);
    // What must not be called any more makes way for the others of its list.
    let fields = format!("{HELLO},\"backupTo\":\"@barred;@old\"");
    let sid = stage.call("13800000002", &fields).await;
    assert_eq!(field(&stage.report_of(&sid).await, "result"), "talked");
    let attempts = stage.attempts(&sid).await;
    let dialled: Vec<_> = attempts.iter().map(|one| one.to.digits()).collect();
    assert_eq!(dialled, ["8613800000002", "8613800000005"]);
}

/// It would call nobody of the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_node_of_an_earlier_version_lists_are_not_offered() {
    let stage = Stage::new(&on_postgres().await).await;
    stage.add_list("night", &["13800000005"]).await;
    let ask = async |backups: &str| {
        let fields = format!("\"to\":\"13800000001\",{HELLO},\"backupTo\":\"{backups}\"");
        stage.server.call_json(&fields).await
    };
    eventually("the first heartbeat", async || {
        support::status_code(&ask("@night").await) == "000000"
    })
    .await;
    let join = "INSERT INTO nodes (node, steady_since, heartbeat_at, lease_until, schema_version) VALUES \
        ('earlier', 0, 0, 9000000000000, 16)";
    support::execute(&stage.server.database, join).await;
    eventually("lists are refused", async || {
        let answer = ask("@night").await;
        answer.contains("190008") && answer.contains("backupTo: lists are not offered")
    })
    .await;
    let answer = ask("13800000005").await;
    assert_eq!(support::status_code(&answer), "000000", "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_told_by_the_name_of_its_list() {
    let stage = Stage::new(TIMES).await;
    stage.add_list("night", &["13800000005"]).await;
    stage.add_list("day", &["13800000005"]).await;
    let ask = async |backups: &str| {
        let fields = format!(
            "\"to\":\"13800000003\",{HELLO},\"requestId\":\"alarm-7\",\"backupTo\":\"{backups}\""
        );
        stage.server.call_json(&fields).await
    };
    let first = support::call_sid(&ask("@night").await);
    stage.set_list("night", &["13800000002"]).await;
    assert_eq!(support::call_sid(&ask("@night").await), first);
    stage.remove_list("night").await;
    assert_eq!(support::call_sid(&ask(" @night").await), first);
    for other in ["@day", "13800000005", "@night;@day"] {
        let answer = ask(other).await;
        assert!(answer.contains("190010"), "{other}: {answer}");
    }
}
