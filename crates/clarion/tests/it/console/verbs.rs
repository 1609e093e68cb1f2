//! Command line and console are held against each other: what the one can do, the other can, or a reason stands here; and what both do comes to the same.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use clarion::console::routes;
use clarion::domain::audit::AuditFilter;
use clarion::domain::callback::CallbackState;
use clarion::domain::outcome::Outcome;
use clarion::management::Management;

use super::add_operators;
use super::visitor::Visitor;
use crate::support::{APP, SID, TestServer, call_sid, eventually, execute};

/// What a command has in the console: a route, or why it has none.
enum Counterpart {
    Route(&'static str),
    None(&'static str),
}

use Counterpart::{None as Nothing, Route};

const ON_ITS_MACHINE: Counterpart =
    Nothing("it is about the process or its machine, not about what the server does");

/// Every command, and its counterpart.
const COMMANDS: &[(&str, Counterpart)] = &[
    ("account add", Route("POST /accounts")),
    ("account list", Route("GET /accounts")),
    ("account rotate-token", Route("POST /accounts/{sid}/token")),
    ("account set", Route("POST /accounts/{sid}")),
    ("account show", Route("GET /accounts/{sid}")),
    ("account suspend", Route("POST /accounts/{sid}/suspend")),
    ("app add", Route("POST /accounts/{sid}/apps")),
    ("app list", Route("GET /accounts/{sid}")),
    ("app rotate-secret", Route("POST /apps/{id}/secret")),
    ("app set", Route("POST /apps/{id}")),
    ("audio add", Route("POST /audio")),
    (
        "audio import",
        Nothing("it reads a folder of the server's machine"),
    ),
    ("audio list", Route("GET /audio")),
    ("audio play", Route("GET /audio/sound.wav")),
    ("audio remove", Route("POST /audio/remove")),
    ("audit", Route("GET /audit")),
    (
        "bill close",
        Nothing("days close by themselves; closing one early is for who repairs something"),
    ),
    ("bill export", Route("GET /bills/{day}/{app}")),
    (
        "bill import",
        Nothing("records of another service come once, in a file, when a customer moves"),
    ),
    ("bill list", Route("GET /bills")),
    ("bill show", Route("GET /bills/{day}")),
    ("bill verify", Route("POST /bills/{day}/verify")),
    ("call again", Route("POST /calls/{sid}/again")),
    ("call bar", Route("POST /dialling/bar")),
    ("call barred", Route("GET /dialling")),
    ("call cancel", Route("POST /calls/{sid}/cancel")),
    ("call list", Route("GET /calls")),
    ("call place", Route("POST /try")),
    ("call resume", Route("POST /dialling/resume")),
    ("call show", Route("GET /calls/{sid}")),
    ("call stop-all", Route("POST /dialling/stop")),
    ("call trace", Route("GET /calls/{sid}")),
    ("call unbar", Route("POST /dialling/unbar")),
    ("call watch", Route("GET /events/calls/{sid}")),
    ("callback list", Route("GET /callbacks")),
    ("callback replay", Route("POST /callbacks/resend-all")),
    ("callback show", Route("GET /calls/{sid}")),
    ("check", Route("GET /health")),
    ("config", Route("GET /settings")),
    ("demo", ON_ITS_MACHINE),
    ("do-not-call add", Route("POST /accounts/{sid}/do-not-call")),
    (
        "do-not-call export",
        Route("GET /accounts/{sid}/do-not-call.txt"),
    ),
    (
        "do-not-call import",
        Route("POST /accounts/{sid}/do-not-call/import"),
    ),
    (
        "do-not-call remove",
        Route("POST /accounts/{sid}/do-not-call/remove"),
    ),
    ("do-not-call show", Route("GET /accounts/{sid}/do-not-call")),
    ("intake add", Route("POST /intakes")),
    ("intake list", Route("GET /intakes")),
    ("intake remove", Route("POST /intakes/{intake}/remove")),
    ("intake rotate-token", Route("POST /intakes/{intake}/token")),
    ("intake set", Route("POST /intakes/{intake}")),
    ("intake show", Route("GET /intakes/{intake}")),
    ("intake test", Route("POST /intakes/{intake}/test")),
    (
        "lexicon add",
        Nothing("a word is found by ear with voice preview, which writes a file of the machine"),
    ),
    ("lexicon list", Nothing("as lexicon add")),
    ("lexicon remove", Nothing("as lexicon add")),
    ("list add", Route("POST /accounts/{sid}/lists")),
    ("list remove", Route("POST /accounts/{sid}/lists/remove")),
    ("list set", Route("POST /accounts/{sid}/lists/set")),
    ("list show", Route("GET /accounts/{sid}/lists")),
    ("migrate", ON_ITS_MACHINE),
    ("openapi", Nothing("the API itself serves it")),
    (
        "operator add",
        Nothing("who may use the console is decided on the machine, not in the console"),
    ),
    ("operator list", Nothing("as operator add")),
    ("operator remove", Nothing("as operator add")),
    ("operator set", Nothing("as operator add")),
    ("phone", ON_ITS_MACHINE),
    ("rate list", Route("GET /accounts/{sid}")),
    ("rate remove", Route("POST /accounts/{sid}/rates/remove")),
    ("rate set", Route("POST /accounts/{sid}/rates")),
    ("serve", ON_ITS_MACHINE),
    ("trunk drain", Route("POST /trunks/{name}/drain")),
    ("trunk list", Route("GET /trunks")),
    ("trunk open", Route("POST /trunks/{name}/open")),
    ("trunk test", Route("POST /trunks/test")),
    ("voice install", ON_ITS_MACHINE),
    ("voice list", Route("GET /settings")),
    (
        "voice preview",
        Nothing("it writes a file of the machine; the console plays what a call has said"),
    ),
];

/// Routes without a command of their own, and why.
const ROUTES: &[(&str, &str)] = &[
    ("GET /", "the first page; metrics tell it to machines"),
    ("GET /accounts/{sid}/lists", "list show"),
    ("GET /apps/{id}", "app list shows all"),
    ("GET /assets/{name}", "looks"),
    ("GET /audio/wave.svg", "a picture"),
    ("GET /calls.csv", "call list --json"),
    ("GET /calls/{sid}/sound.wav", "audio play, of a call"),
    ("GET /calls/{sid}/wave.svg", "a picture"),
    ("GET /events/health", "GET /health, live"),
    ("GET /events/now", "the first page, live"),
    ("GET /language/{code}", "looks"),
    ("GET /sign-in", "who one is"),
    ("GET /try", "the form of POST /try"),
    ("POST /accounts/{sid}/resume", "account set --state active"),
    ("POST /callbacks/resend", "callback replay, of one"),
    ("POST /calls/{sid}/callback", "callback replay, of one"),
    ("POST /sign-in", "who one is"),
    ("POST /sign-out", "who one is"),
    ("POST /try/show", "the form of POST /try, filled in"),
];

/// The commands below these words, as the program's own help tells them.
fn commands(words: &[&str]) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .args(words)
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let Some((_, listed)) = help.split_once("Commands:\n") else {
        return vec![words.join(" ")];
    };
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help");
    let below = |name: &str| commands(&[words, &[name]].concat());
    names.flat_map(below).collect()
}

#[test]
fn every_command_has_a_page_or_a_reason_and_every_page_a_command() {
    let known: BTreeSet<_> = COMMANDS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let there: BTreeSet<_> = commands(&[]).into_iter().collect();
    assert_eq!(there, known, "the commands that there are, and those here");
    let served: BTreeSet<_> = routes()
        .iter()
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    let mut told: BTreeSet<String> = ROUTES
        .iter()
        .map(|(route, _)| (*route).to_owned())
        .collect();
    for (command, counterpart) in COMMANDS {
        match counterpart {
            Route(route) => {
                assert!(served.contains(*route), "{command}: there is no {route}");
                told.insert((*route).to_owned());
            }
            Nothing(reason) => assert!(!reason.is_empty(), "{command}"),
        }
    }
    assert_eq!(served, told, "the routes that there are, and those here");
}

/// The same change by both ways: the form of the console, and the command.
struct Change {
    path: String,
    fields: Vec<(&'static str, &'static str)>,
    command: Vec<&'static str>,
}

fn change(path: &str, fields: &[(&'static str, &'static str)], command: &[&'static str]) -> Change {
    Change {
        path: path.replace("{sid}", SID).replace("{app}", APP),
        fields: fields.to_vec(),
        command: command.to_vec(),
    }
}

const NEW: &str = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";
const TOKEN: &str = "b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2";

/// A command about the account.
fn of_account(words: &[&'static str]) -> Vec<&'static str> {
    [words, &["--account", SID]].concat()
}

fn changes() -> Vec<Change> {
    let changes = [
        of_accounts(),
        of_rates(),
        of_lists(),
        of_dialling(),
        of_callbacks(),
    ];
    changes.into_iter().flatten().collect()
}

fn of_accounts() -> Vec<Change> {
    vec![
        change(
            "/accounts",
            &[("name", "City"), ("sid", NEW), ("auth-token", TOKEN)],
            &[
                "account", "add", "--name", "City", "--sid", NEW, "--token", TOKEN,
            ],
        ),
        change(
            "/accounts/{sid}",
            &[
                ("calls-at-once", "7"),
                ("was-calls-at-once", ""),
                ("call-hours", "1-5 0800-2100"),
                ("was-call-hours", ""),
            ],
            &[
                "account",
                "set",
                SID,
                "--calls-at-once",
                "7",
                "--call-hours",
                "1-5 0800-2100",
            ],
        ),
        change("/accounts/{sid}/suspend", &[], &["account", "suspend", SID]),
        change(
            "/accounts/{sid}/resume",
            &[],
            &["account", "set", SID, "--state", "active"],
        ),
        change(
            "/accounts/{sid}/apps",
            &[("name", "Reminders")],
            &of_account(&["app", "add", "--name", "Reminders"]),
        ),
        change(
            "/apps/{app}",
            &[("calls-per-second", "3"), ("was-calls-per-second", "")],
            &["app", "set", APP, "--calls-per-second", "3"],
        ),
    ]
}

fn of_rates() -> Vec<Change> {
    vec![
        change(
            "/accounts/{sid}/rates",
            &[
                ("prefix", "86"),
                ("price", "0.06"),
                ("unit", "60"),
                ("unanswered", "0"),
            ],
            &of_account(&["rate", "set", "86", "0.06"]),
        ),
        change(
            "/accounts/{sid}/rates",
            &[
                ("prefix", "8610"),
                ("price", "0.05"),
                ("unit", "6"),
                ("unanswered", "0.01"),
            ],
            &of_account(&[
                "rate",
                "set",
                "8610",
                "0.05",
                "--unit",
                "6",
                "--unanswered",
                "0.01",
            ]),
        ),
        change(
            "/accounts/{sid}/rates/remove",
            &[("prefix", "86")],
            &of_account(&["rate", "remove", "86"]),
        ),
    ]
}

fn of_lists() -> Vec<Change> {
    vec![
        change(
            "/accounts/{sid}/lists",
            &[
                ("name", "night"),
                ("numbers", "13800000001=Li\n13800000002"),
            ],
            &of_account(&["list", "add", "night", "13800000001=Li", "13800000002"]),
        ),
        change(
            "/accounts/{sid}/lists/set",
            &[("name", "night"), ("numbers", "13800000002")],
            &of_account(&["list", "set", "night", "13800000002"]),
        ),
        change(
            "/accounts/{sid}/do-not-call",
            &[("number", "13800000003")],
            &of_account(&["do-not-call", "add", "13800000003"]),
        ),
        change(
            "/accounts/{sid}/do-not-call",
            &[("number", "13800000004")],
            &of_account(&["do-not-call", "add", "13800000004"]),
        ),
        change(
            "/accounts/{sid}/do-not-call/remove",
            &[("number", "+8613800000003")],
            &of_account(&["do-not-call", "remove", "13800000003"]),
        ),
        change(
            "/accounts/{sid}/lists/remove",
            &[("name", "night")],
            &of_account(&["list", "remove", "night"]),
        ),
    ]
}

fn of_dialling() -> Vec<Change> {
    vec![
        change("/dialling/stop", &[], &["call", "stop-all"]),
        change(
            "/dialling/bar",
            &[("number", "13800000005")],
            &["call", "bar", "13800000005"],
        ),
        change(
            "/dialling/bar",
            &[("number", "13800000006")],
            &["call", "bar", "13800000006"],
        ),
        change(
            "/dialling/unbar",
            &[("number", "8613800000006")],
            &["call", "unbar", "13800000006"],
        ),
    ]
}

/// Callbacks that were given up: of three calls, one of them to another receiver.
const CALLBACKS: [(&str, &str); 3] = [
    ("26010100000000000000000000000001", "rare:80"),
    ("26010100000000000000000000000002", "rare:80"),
    ("26010100000000000000000000000003", "other:80"),
];

async fn give_up(server: &TestServer) {
    for (sid, host) in CALLBACKS {
        let given_up = format!(
            "INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, owed_at, finished_at) \
             VALUES ('{sid}', 0, '{APP}', 'msg_{sid}', '{host}', 'http://nowhere.invalid/', 'x', 3, 0, 0)"
        );
        execute(&server.database, &given_up).await;
    }
}

fn of_callbacks() -> Vec<Change> {
    let [(first, _), (second, _), _] = CALLBACKS;
    vec![
        change(
            "/callbacks/resend",
            &[("key", first)],
            &["callback", "replay", first],
        ),
        change(
            "/callbacks/resend-all",
            &[
                ("host", "rare:80"),
                ("since", "2025-12-01T00:00"),
                ("from", "given-up"),
            ],
            &[
                "callback",
                "replay",
                "--since",
                "2025-11-30T16:00:00Z",
                "--host",
                "rare:80",
            ],
        ),
        change(
            "/callbacks/resend-all",
            &[
                ("app", APP),
                ("since", "2025-12-01T00:00"),
                ("after", second),
            ],
            &[
                "callback",
                "replay",
                "--since",
                "2025-11-30T16:00:00Z",
                "--app",
                APP,
                "--after",
                second,
            ],
        ),
    ]
}

/// Everything that these changes change, as a text. What chance and the clock decide is left out.
async fn state(server: &TestServer) -> String {
    let management = server.management();
    let mut text = String::new();
    for account in management.accounts().await.unwrap() {
        let sid = account.sid.clone();
        let _ = writeln!(
            text,
            "{} {} {:?} {:?} {:?} {:?} {}",
            account.sid,
            account.name,
            account.state,
            account.limits,
            account.call_hours,
            account.permissions,
            account.auth_token.reveal(),
        );
        for app in management.applications(&sid).await.unwrap() {
            let _ = writeln!(text, "  {} {:?} {:?}", app.name, app.state, app.limits);
        }
        let rates = management.rates(Some(&sid)).await.unwrap();
        let _ = writeln!(text, "  {rates:?}");
        for list in management.lists(&sid).await.unwrap() {
            let _ = writeln!(text, "  {} {:?}", list.name, list.numbers);
        }
        let unwanted = management.do_not_call_page(&sid, None, 100).await.unwrap();
        let digits: Vec<_> = unwanted.iter().map(|entry| &entry.digits).collect();
        let _ = writeln!(text, "  {digits:?}");
    }
    let _ = writeln!(text, "{:?}", management.barred_numbers().await.unwrap());
    let _ = writeln!(text, "{}", management.is_stopped().await.unwrap());
    for (sid, _) in CALLBACKS {
        let (callback, _) = management.callback(&sid.parse().unwrap()).await.unwrap();
        let _ = writeln!(text, "{}", callback.state == CallbackState::GivenUp);
    }
    text
}

/// The kinds of the changes that were noted, the oldest first.
async fn noted(management: &Management) -> Vec<String> {
    let filter = AuditFilter {
        limit: 100,
        ..AuditFilter::default()
    };
    let entries = management.changes(filter).await.unwrap();
    assert!(entries.iter().all(|line| line.entry.failure.is_none()));
    let kinds = entries.into_iter().rev().map(|line| line.entry.action);
    kinds.collect()
}

/// A call on each server: one is cancelled by a form, the other by a command.
async fn both_cancel(admin: &mut Visitor, token: &str, servers: [&TestServer; 2]) {
    let mut cancelled = Vec::new();
    for server in servers {
        let fields = "\"to\":\"13800000000\",\"mediaTxt\":\"x\"";
        cancelled.push(call_sid(&server.call_json(fields).await));
    }
    let path = format!("/calls/{}/cancel", cancelled[0]);
    let answer = admin.post(&path, &[("token", token)]).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let command = ["call", "cancel", cancelled[1].as_str()];
    let said = crate::command_line::clarion(servers[1], &command).await;
    assert!(said.status.success());
    for (server, sid) in servers.into_iter().zip(&cancelled) {
        let sid = sid.parse().unwrap();
        eventually("the call is cancelled", async || {
            let record = server.store.call_record(&sid).await.unwrap().unwrap();
            record.outcome == Some(Outcome::Cancelled)
        })
        .await;
    }
}

#[tokio::test]
async fn both_come_to_the_same() {
    let open = || {
        TestServer::start_prepared("", async |store, clock| {
            add_operators(store, clock).await;
        })
    };
    let (here, there) = (open().await, open().await);
    for server in [&here, &there] {
        give_up(server).await;
    }
    let mut admin = Visitor::signed_in(&here, "admin").await;
    let token = admin.token().await;
    assert_eq!(state(&here).await, state(&there).await, "they begin alike");
    both_cancel(&mut admin, &token, [&here, &there]).await;
    for change in changes() {
        let (before, name) = (state(&here).await, change.command.join(" "));
        let mut fields = vec![("token", token.as_str())];
        fields.extend(&change.fields);
        let answer = admin.post(&change.path, &fields).await;
        assert!(
            [200, 303].contains(&answer.status),
            "{name}: {}",
            answer.body
        );
        let said = crate::command_line::clarion(&there, &change.command).await;
        let why = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success(), "{name}: {why}");
        let after = state(&here).await;
        assert_ne!(after, before, "{name} changes something");
        assert_eq!(after, state(&there).await, "{name}");
    }
    let (by_form, by_command) = (here.management(), there.management());
    assert_eq!(noted(&by_form).await, noted(&by_command).await);
}
