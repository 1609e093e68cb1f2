//! Who changed what and when: every command that changes something is noted, and nothing that is noted is lost or changed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use clarion::domain::audit::{Actor, AuditEntry, AuditFilter, AuditLine};
use clarion::store::Database;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::store_contract::open;
use crate::support::{APP, SID, TOKEN, account, application};

contract! {
    what_was_noted_is_found_the_newest_first,
    what_was_noted_is_read_in_pages_and_by_who_it_was,
}

fn entry(second: i64, action: &str, detail: &str) -> AuditEntry {
    AuditEntry {
        at: Timestamp::from_second(second).unwrap(),
        actor: Actor {
            operator: Some("li".to_owned()),
            system_user: None,
            address: Some("192.0.2.7".to_owned()),
        },
        action: action.to_owned(),
        detail: detail.to_owned(),
        failure: (second == 3).then(|| "there is no account".to_owned()),
    }
}

async fn what_was_noted_is_found_the_newest_first(database: Database) {
    let store = open(&database).await;
    let noted = [
        entry(1, "account set", "account set x --name 100%"),
        entry(2, "call bar", "call bar +8613800000000"),
        entry(3, "account set", "account set y_z"),
    ];
    for entry in &noted {
        store.note_change(entry.clone()).await.unwrap();
    }
    let found = async |about: Option<&str>, since: i64, limit| {
        let filter = AuditFilter {
            since: Some(Timestamp::from_second(since).unwrap()),
            about: about.map(str::to_owned),
            limit,
            ..AuditFilter::default()
        };
        entries(store.changes(filter).await.unwrap())
    };
    let [first, second, third] = noted;
    assert_eq!(
        found(None, 0, 9).await,
        [third.clone(), second.clone(), first.clone()]
    );
    assert_eq!(found(None, 2, 9).await, [third.clone(), second.clone()]);
    assert_eq!(found(None, 0, 1).await, std::slice::from_ref(&third));
    assert_eq!(found(Some("call bar"), 0, 9).await, [second]);
    // What means something to LIKE is looked for as it is.
    assert_eq!(found(Some("100%"), 0, 9).await, [first]);
    assert_eq!(found(Some("y_z"), 0, 9).await, [third]);
    assert!(found(Some("%"), 2, 9).await.is_empty());
}

fn entries(lines: Vec<AuditLine>) -> Vec<AuditEntry> {
    lines.into_iter().map(|line| line.entry).collect()
}

async fn what_was_noted_is_read_in_pages_and_by_who_it_was(database: Database) {
    let store = open(&database).await;
    let mut noted: Vec<_> = (0..5)
        .map(|n| entry(7, "call bar", &n.to_string()))
        .collect();
    for (entry, user) in noted[..3]
        .iter_mut()
        .zip(["wang", "li as root", "li_ as root"])
    {
        entry.actor.operator = None;
        entry.actor.system_user = Some(user.to_owned());
    }
    for entry in &noted {
        store.note_change(entry.clone()).await.unwrap();
    }
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let filter = AuditFilter {
            before,
            limit: 2,
            ..AuditFilter::default()
        };
        let page = store.changes(filter).await.unwrap();
        let Some(last) = page.last() else {
            break;
        };
        before = Some(last.number);
        seen.extend(entries(page));
    }
    seen.reverse();
    assert_eq!(seen, noted);
    for (by, wanted) in [
        ("li", vec!["4", "3", "1"]),
        ("root", vec!["2", "1"]),
        ("li_", vec!["2"]),
        ("wang", vec!["0"]),
        ("wan", vec![]),
        ("%", vec![]),
    ] {
        let filter = AuditFilter {
            by: Some(by.to_owned()),
            limit: 9,
            ..AuditFilter::default()
        };
        let found = entries(store.changes(filter).await.unwrap());
        let found: Vec<_> = found.iter().map(|entry| &*entry.detail).collect();
        assert_eq!(found, wanted, "{by}");
    }
}

/// An installation with an account, and the real program.
struct Desk {
    folder: tempfile::TempDir,
    database: String,
}

impl Desk {
    async fn new(database: Database, name: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&database).await;
        store.add_account(account()).await.unwrap();
        store.add_application(application()).await.unwrap();
        store.close().await;
        Self {
            folder,
            database: name,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clarion"));
        command
            .args(arguments)
            .env("CLARION_DATA_DIR", self.folder.path().join("data"))
            .env("CLARION_DATABASE", &self.database)
            .env("SUDO_USER", "wang")
            .env("SSH_CONNECTION", "203.0.113.9 50000 192.0.2.1 22");
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().await.unwrap()
    }

    async fn trail(&self) -> Vec<Value> {
        let output = self.run(&["audit", "--json", "--limit", "100"]).await;
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

async fn every_change_is_noted(desk: &Desk) {
    let changing: &[&[&str]] = &[
        &["account", "set", SID, "--name", "A B"],
        &["account", "set", SID, "--allow-ips", "192.0.2.0/24"],
        &["account", "rotate-token", SID, "--token", TOKEN],
        &["app", "set", APP, "--calls-at-once", "3"],
        &["rate", "set", "--account", SID, "*", "0.1"],
        &["rate", "remove", "--account", SID, "*"],
        &["call", "bar", "13800000001"],
        &["call", "unbar", "13800000001"],
        &["list", "add", "--account", SID, "night", "13800000001=Li"],
        &["list", "set", "--account", SID, "night", "13800000002"],
        &["list", "remove", "--account", SID, "night"],
        &["do-not-call", "add", "--account", SID, "13800000001"],
        &["do-not-call", "remove", "--account", SID, "13800000001"],
        &["do-not-call", "import", "--account", SID, "/dev/null"],
        &["call", "stop-all"],
        &["call", "resume"],
        &["account", "suspend", SID, "--hang-up"],
    ];
    let showing: &[&[&str]] = &[
        &["account", "show", SID],
        &["account", "list"],
        &["app", "list", "--account", SID],
        &["call", "barred"],
        &["list", "show", "--account", SID],
        &["do-not-call", "show", "--account", SID],
        &["do-not-call", "export", "--account", SID],
        &["call", "list"],
        &["callback", "list"],
        &["trunk", "list"],
        &["bill", "list"],
        &["audio", "list"],
        &["audit"],
    ];
    for arguments in changing.iter().chain(showing) {
        let output = desk.run(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    let trail = desk.trail().await;
    assert_eq!(trail.len(), changing.len(), "{trail:#?}");
    for (noted, arguments) in trail.iter().rev().zip(changing) {
        assert_eq!(noted["action"], arguments[..2].join(" "));
        assert_eq!(noted["address"], "203.0.113.9");
        assert!(
            noted["systemUser"]
                .as_str()
                .unwrap()
                .starts_with("wang as ")
        );
        assert!(noted["failure"].is_null());
    }
    assert_eq!(
        trail[changing.len() - 1]["detail"],
        format!("account set {SID} --name \"A B\"")
    );
    let whole = format!("{trail:?}");
    assert!(!whole.contains(TOKEN), "{whole}");
    // What fails is noted twice: as it was wanted, and why nothing came of it.
    let nobody = "f".repeat(32);
    let output = desk.run(&["account", "suspend", &nobody]).await;
    assert!(!output.status.success());
    let trail = desk.trail().await;
    assert_eq!(trail.len(), changing.len() + 2);
    assert!(
        trail[0]["failure"]
            .as_str()
            .unwrap()
            .contains("there is no account")
    );
    assert!(trail[1]["failure"].is_null());
}

#[tokio::test]
async fn every_change_by_the_command_line_is_noted_on_sqlite() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("clarion.db");
    let name = format!("sqlite:{}", path.display());
    let desk = Desk::new(Database::Sqlite(path.clone()), name).await;
    every_change_is_noted(&desk).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    for forgery in [
        "UPDATE audit_trail SET detail = 'x'",
        "DELETE FROM audit_trail",
    ] {
        let refused = connection.execute(forgery, []).unwrap_err();
        assert!(refused.to_string().contains("only added to"), "{refused}");
    }
    // SQLite asks the trigger about what is replaced only where the connection wants it, as ours do.
    let ours = clarion::store::sqlite::connect(&path).unwrap();
    let forgery = "INSERT OR REPLACE INTO audit_trail (id, at, action, detail) SELECT id, at, action, 'x' FROM audit_trail";
    let refused = ours.execute(forgery, []).unwrap_err();
    assert!(refused.to_string().contains("only added to"), "{refused}");
}

#[tokio::test]
async fn every_change_by_the_command_line_is_noted_on_postgres() {
    let url = crate::support::postgres::empty_database().await;
    let desk = Desk::new(Database::parse(&url).unwrap(), url.clone()).await;
    every_change_is_noted(&desk).await;
    let client = crate::support::postgres::connect(&url).await;
    for forgery in [
        "UPDATE audit_trail SET detail = 'x'",
        "DELETE FROM audit_trail",
        "TRUNCATE audit_trail",
    ] {
        let refused = client.batch_execute(forgery).await.unwrap_err();
        let said = refused.as_db_error().unwrap().message().to_owned();
        assert!(said.contains("only added to"), "{said}");
    }
}

#[tokio::test]
async fn a_secret_comes_from_a_file_or_from_standard_input() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("clarion.db");
    let name = format!("sqlite:{}", path.display());
    let desk = Desk::new(Database::Sqlite(path), name).await;
    let file = place.path().join("token");
    std::fs::write(&file, format!("{}\n", "a".repeat(32))).unwrap();
    let from_file = format!("@{}", file.display());
    let arguments = ["account", "rotate-token", SID, "--json", "--token"];
    let output = desk.run(&[&arguments[..], &[&from_file]].concat()).await;
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains(&"a".repeat(32))
    );

    let mut command = desk.command(&[&arguments[..], &["-"]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all("b".repeat(32).as_bytes()).await.unwrap();
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains(&"b".repeat(32))
    );

    let output = desk.run(&[&arguments[..], &["@/nowhere"]].concat()).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("cannot read it"),
        "{said}"
    );
    let whole = format!("{:?}", desk.trail().await);
    assert!(!whole.contains(&"a".repeat(32)) && !whole.contains(&"b".repeat(32)));
}

fn modes(folder: &Path, found: &mut Vec<(String, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        found.push((path.display().to_string(), mode));
        if path.is_dir() {
            modes(&path, found);
        }
    }
}

/// Started with an open umask, by whoever: nothing that the server makes is open to others, and what was open is closed.
#[tokio::test]
async fn nobody_else_reads_what_a_server_writes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for old in ["voices", "bills", "prompts"] {
        std::fs::create_dir_all(data.join(old)).unwrap();
    }
    std::fs::write(data.join("clarion.lock"), "").unwrap();
    // As after `cp` of a backup.
    let database = data.join("clarion.db");
    std::fs::write(&database, "").unwrap();
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o664)).unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    for path in [
        &data,
        &data.join("voices"),
        &data.join("bills"),
        &data.join("prompts"),
    ] {
        std::fs::set_permissions(path, open.clone()).unwrap();
    }
    std::fs::set_permissions(
        data.join("clarion.lock"),
        std::fs::Permissions::from_mode(0o666),
    )
    .unwrap();
    let program = env!("CARGO_BIN_EXE_clarion");
    let mut child = Command::new("sh")
        .args(["-c", &format!("umask 000; exec {program} serve")])
        .env("CLARION_DATA_DIR", &data)
        .env("CLARION_HTTP__LISTEN", "[\"127.0.0.1:0\"]")
        .env("CLARION_CONSOLE__LISTEN", "[]")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let first = tokio::time::timeout(crate::support::PATIENCE, lines.next_line()).await;
    assert!(first.unwrap().unwrap().unwrap().contains("serves"));
    let mut found = Vec::new();
    modes(&data, &mut found);
    assert!(found.iter().any(|(path, _)| path.ends_with("clarion.db")));
    assert!(found.iter().any(|(path, _)| path.ends_with("clarion.lock")));
    for (path, mode) in found {
        // A group that was let in stays.
        let was_there = [
            "/data", "/voices", "/bills", "/prompts", ".db", ".db-wal", ".db-shm",
        ]
        .iter()
        .any(|old| path.ends_with(old));
        let closed = if was_there { 0o007 } else { 0o077 };
        assert_eq!(mode & closed, 0, "{path} has mode {mode:o}");
    }
}
