//! The audit trail tells a change that was made elsewhere in words that this command line understands: as the command that would have made it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use super::Cli;
use crate::config::Config;
use crate::domain::account::{AccountChange, AccountSid, AppId, ApplicationChange};
use crate::domain::audit::{Actor, AuditFilter};
use crate::domain::bill::rating::Rate;
use crate::domain::intake::change::IntakeChange;
use crate::domain::intake::{IntakeFormat, IntakeName};
use crate::management::settings::Settings;
use crate::management::{
    CallbackReplay, Management, ManagementError, NewAccount, NewApplication, NewIntake,
    OfferedFile, WrittenList,
};
use crate::store::ReplayFrom;

const TRUNK: &str = "[[trunk]]\nname = \"lab\"\nloopback = true\nchannels = 1\ncalls_per_second = 1\nprefixes = [\"\"]\n";

/// The words of a line, as `quoted` has written them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.trim());
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(inner) => {
                let mut escaped = false;
                let end = inner.find(|c| {
                    let closes = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    closes
                });
                end.unwrap() + 2
            }
            None => rest.find(' ').unwrap_or(rest.len()),
        };
        let word = &rest[..end];
        let unquoted = serde_json::from_str(word).unwrap_or_else(|_| word.to_owned());
        words.push(unquoted);
        rest = rest[end..].trim_start();
    }
    words
}

/// Every change that the layer can make, whether it comes to something or not.
async fn change_everything(desk: &Management, account: &AccountSid, app: &AppId) {
    async fn tried<T>(change: impl Future<Output = Result<T, ManagementError>>) {
        let _ = change.await;
    }
    let call = "26111502351000001000000000000000".parse().unwrap();
    let settings = AccountChange::from_texts([
        ("name", "A \"B\""),
        ("display-numbers", "+86400*"),
        ("call-hours", "1-5 0800-2100"),
        ("calls-at-once", "default"),
        ("balance", "7.5"),
    ]);
    tried(desk.set_account(account, settings.unwrap())).await;
    tried(desk.suspend_account(account, true)).await;
    tried(desk.rotate_token(account, None)).await;
    tried(desk.rotate_callback_secret(app)).await;
    let settings = ApplicationChange::from_texts([
        ("state", "disabled"),
        ("callback-secret", "none"),
        ("bill-json-key", "downUrl"),
        ("voice", "espeak"),
    ]);
    tried(desk.set_application(app, settings.unwrap())).await;
    tried(desk.add_reading(app, "k8s", "\"kubernetes\"")).await;
    tried(desk.remove_reading(app, "k8s")).await;
    let rate = Rate {
        prefix: "+86138".parse().unwrap(),
        unit_seconds: 60,
        price: "0.055".parse().unwrap(),
        unanswered: "0".parse().unwrap(),
    };
    tried(desk.set_rate(account, rate.clone())).await;
    tried(desk.remove_rate(account, &rate.prefix)).await;
    tried(desk.cancel_call(&call)).await;
    tried(desk.call_again(&call)).await;
    tried(desk.stop_all()).await;
    tried(desk.resume()).await;
    tried(desk.bar_number("+86 138 0000 0000")).await;
    tried(desk.unbar_number("13800000000")).await;
    tried(desk.drain_trunk("lab")).await;
    tried(desk.open_trunk("lab")).await;
    let list = WrittenList {
        account: account.clone(),
        name: "night".parse().unwrap(),
        numbers: vec!["13800000000=Li Wei".to_owned(), "13800000001".to_owned()],
    };
    tried(desk.add_list(list.clone())).await;
    tried(desk.set_list(list.clone())).await;
    tried(desk.remove_list(account, &list.name)).await;
    let night: IntakeName = "night".parse().unwrap();
    let settings = || {
        IntakeChange::from_texts([
            ("text", "{{ alerts[0].what }}: \"x\"\n"),
            ("to", "@night,13800000001"),
            ("call-window", "1-5 0800-2100"),
            ("silence-key", "none"),
        ])
        .unwrap()
    };
    let intake = NewIntake {
        name: night.clone(),
        app: app.clone(),
        format: IntakeFormat::Zabbix,
        settings: settings(),
    };
    tried(desk.add_intake(intake)).await;
    tried(desk.set_intake(&night, settings())).await;
    tried(desk.rotate_intake_token(&night)).await;
    tried(desk.test_intake(&night, None)).await;
    tried(desk.remove_intake(&night)).await;
    let numbers = ["13800000000".to_owned()];
    tried(desk.add_do_not_call(account, &numbers)).await;
    tried(desk.remove_do_not_call(account, &numbers)).await;
    tried(desk.import_do_not_call(account, "numbers of today.txt", &b"13800000000\n"[..])).await;
    let brought = || {
        std::iter::once(OfferedFile {
            name: "a b.wav".to_owned(),
            bytes: Ok(vec![0].into()),
        })
    };
    let names = ["a b.wav".to_owned()];
    tried(desk.add_audio(Some(app.clone()), &names, brought())).await;
    tried(desk.import_audio(None, "old files", true, brought())).await;
    tried(desk.remove_audio(Some(app.clone()), "a b.wav")).await;
    tried(desk.close_days(Some("2026-11-15".parse().unwrap()))).await;
    tried(desk.import_bill_records("records.csv", "nonsense", true)).await;
    tried(desk.replay_callback(&format!("{call}/3").parse().unwrap())).await;
    let replay = CallbackReplay {
        app: Some(app.clone()),
        host: Some("example.com:443".to_owned()),
        since: "2026-11-15T08:00:00Z".parse().unwrap(),
        after: Some(call.clone()),
        from: ReplayFrom::Delivered,
    };
    tried(desk.replay_callbacks(&replay, None)).await;
}

#[tokio::test]
async fn every_change_is_noted_in_words_that_are_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let data = [("CLARION_DATA_DIR".to_owned(), data)];
    let config = Arc::new(Config::from_parts(TRUNK, &data).unwrap());
    let desk = Management::open(config, Actor::default()).await.unwrap();
    let account = desk.add_account(NewAccount::default()).await.unwrap().sid;
    let new = NewApplication {
        account: account.clone(),
        id: None,
        name: "shop".to_owned(),
        signs_callbacks: true,
    };
    let app = desk.add_application(new).await.unwrap().id;
    change_everything(&desk, &account, &app).await;
    let all = AuditFilter {
        limit: 1000,
        ..AuditFilter::default()
    };
    let mut actions = BTreeSet::new();
    for line in desk.changes(all).await.unwrap() {
        let entry = line.entry;
        let line = words(&entry.detail);
        assert_eq!(line[..2].join(" "), entry.action);
        let parsed = Cli::try_parse_from([&["clarion".to_owned()][..], &line].concat());
        assert!(parsed.is_ok(), "{}: {}", entry.detail, parsed.unwrap_err());
        actions.insert(entry.action);
    }
    // `call place` is requested of a server, `migrate` makes the trail, and `voice install` fetches packages.
    assert_eq!(actions.len(), 36, "{actions:?}");
    desk.close().await;
}

#[test]
fn a_failure_is_told_although_a_thread_hangs() {
    let (let_go, hangs) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let failed = super::block_on::<()>(async {
            tokio::task::spawn_blocking(move || hangs.recv());
            anyhow::bail!("the task `pacer` panicked")
        });
        tell.send(failed.unwrap_err().to_string())
    });
    let said = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(said.unwrap(), "the task `pacer` panicked");
    drop(let_go);
}
