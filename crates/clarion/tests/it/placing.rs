//! Calls that are placed, watched and shown from the command line, beside a running server.

use std::process::Stdio;

use jiff::civil::DateTime;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::support::child::{ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::{self, APP, SID, TOKEN, eventually, postgres};

const TRUNK: &str = "[[trunk]]\nname = \"lab\"\nloopback = true\nchannels = 20\ncalls_per_second = 50\nprefixes = [\"\"]\n";
const RECEIVER: &str = "[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n";

/// An installation with a server, whose only trunk leads to the telephone inside it.
struct Counter {
    site: Installation,
    server: ChildServer,
    receiver: Receiver,
}

/// What a command has said, and its exit status.
#[derive(Debug)]
struct Said {
    out: String,
    error: String,
    status: i32,
}

impl Counter {
    async fn open(postgres: Option<String>) -> Self {
        let site = Installation::with_settings(postgres, &format!("{RECEIVER}{TRUNK}")).await;
        Self {
            server: site.start().await,
            site,
            receiver: Receiver::start(vec![ok()]).await,
        }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.server.door.address.port())
    }

    async fn run(&self, arguments: &[&str]) -> Said {
        let output = self.site.clarion(arguments).await;
        Said {
            out: String::from_utf8(output.stdout).unwrap(),
            error: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code().unwrap(),
        }
    }

    async fn place(&self, options: &[&str]) -> Said {
        self.place_saying("hello", options).await
    }

    async fn place_saying(&self, text: &str, options: &[&str]) -> Said {
        let url = self.url();
        let place = ["call", "place", "--server", &url, "--media-txt", text];
        self.run(&[&place[..], options].concat()).await
    }

    async fn show(&self, sid: &str) -> Value {
        let said = self.run(&["call", "show", sid, "--json"]).await;
        assert_eq!(said.status, 0, "{said:?}");
        serde_json::from_str(&said.out).unwrap()
    }
}

/// The events of a watched call, without those of the waiting and of the callback, which depend on who looks when.
fn events(out: &str) -> Vec<Value> {
    let steps = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let is_sure = |step: &Value| step["event"] != "waiting" && step["event"] != "callback";
    steps.filter(is_sure).collect()
}

/// Its event, its attempt, and one more fact.
fn told<'a>(steps: &'a [Value], fact: &str) -> Vec<(&'a str, Option<u64>, &'a str)> {
    let told = |step: &'a Value| {
        let event = step["event"].as_str().unwrap();
        let fact = step[fact].as_str().unwrap_or_default();
        (event, step["attempt"].as_u64(), fact)
    };
    steps.iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_placed_by_one_command_and_rings() {
    let counter = Counter::open(None).await;
    let said = counter.place(&["--to", "13800000003"]).await;
    assert_eq!((said.status, said.error.as_str()), (0, ""), "{said:?}");
    let sid = said.out.strip_suffix('\n').unwrap();
    assert_eq!(sid.len(), 32, "{said:?}");
    eventually("it rings", async || {
        counter.show(sid).await["state"] == "ringing"
    })
    .await;

    // The answer is what a client would get, and a name is remembered as for a client.
    let url = counter.receiver.url();
    let options = ["--to", "13800000002", "--resp-url", &url, "--json"];
    let named = [&options[..], &["--request-id", "alarm-7"]].concat();
    let first = counter.place(&named).await;
    let answer: Value = serde_json::from_str(&first.out).unwrap();
    assert_eq!(answer["statusCode"], "000000");
    assert_eq!(answer["LandingCall"]["callSid"].as_str().unwrap().len(), 32);
    let again = counter.place(&named).await;
    assert_eq!(again.out, first.out);
    assert_eq!(counter.receiver.has_received(1).await.len(), 1);

    // It is noted, without what was said.
    let audit = counter.run(&["audit", "call place"]).await.out;
    assert_eq!(audit.lines().count(), 3, "{audit}");
    assert!(audit.contains("--media-txt (hidden)"), "{audit}");
    assert!(!audit.contains("hello") && !audit.contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_names_the_field_and_fails() {
    let counter = Counter::open(None).await;
    for (option, value, code, field) in [
        ("--redial-times", "11", "108023", "redialTimes"),
        ("--redial-interval", "9", "108023", "redialInterval"),
        ("--backup-to", "138", "108023", "backupTo"),
        ("--call-window", "0800", "108023", "callWindow"),
        ("--play-times", "7", "108036", "playTimes"),
        ("--mediaName", "no.txt", "108023", "mediaName"),
    ] {
        let said = counter.place(&["--to", "13800000001", option, value]).await;
        assert_eq!(said.status, 1, "{option}: {said:?}");
        assert_eq!(said.out, "", "{option}");
        let sentence = said.error.strip_prefix("clarion: ").unwrap();
        assert!(sentence.starts_with(code), "{option}: {sentence}");
        assert!(sentence.contains(field), "{option}: {sentence}");
    }
    let options = ["--to", "13800000001", "--priority", "0", "--json"];
    let said = counter.place(&options).await;
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&answer["statusCode"], said.status), (&"108023".into(), 1));
    assert!(answer["statusMsg"].as_str().unwrap().contains("priority"));
    let calls = counter.run(&["call", "list"]).await;
    assert_eq!(calls.out, "none\n", "nothing was queued");
    let audit = counter.run(&["audit", "call place"]).await.out;
    assert!(
        audit.contains("not done, or not all of it: 108023"),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_are_several_applications_one_must_be_named() {
    let counter = Counter::open(None).await;
    let other = "b".repeat(32);
    let add = ["app", "add", "--account", SID, "--app-id", &other];
    let add = [&add[..], &["--name", "Second"]].concat();
    assert_eq!(counter.run(&add).await.status, 0);
    let said = counter.place(&["--to", "13800000001"]).await;
    assert_eq!(said.status, 1);
    for part in ["2 applications", APP, &other, "Second"] {
        assert!(said.error.contains(part), "{part}: {said:?}");
    }
    assert!(!said.error.contains(TOKEN));
    let said = counter
        .place(&["--to", "13800000003", "--app", &other])
        .await;
    let sid = said.out.trim();
    assert_eq!(counter.show(sid).await["appId"], other);
    let unknown = "c".repeat(32);
    let said = counter
        .place(&["--to", "13800000001", "--app", &unknown])
        .await;
    assert!(said.error.contains("there is no application"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_server_that_can_be_trusted_gets_a_signed_request() {
    let site = Installation::with_settings(None, TRUNK).await;
    let names = "[\"localhost\"]".into();
    let counter = Counter {
        server: site
            .start_with(&[("CLARION_HTTP__HOST_NAMES", &names)])
            .await,
        site,
        receiver: Receiver::start(vec![ok()]).await,
    };
    let place = async |url: &str| {
        let call = ["call", "place", "--to", "13800000001", "--media-txt", "x"];
        counter.run(&[&call[..], &["--server", url]].concat()).await
    };
    let port = counter.server.door.address.port();
    let plain = place(&format!("http://localhost:{port}")).await;
    assert!(plain.error.contains("--server must be https://"));
    let below = place(&format!("https://localhost:{port}/below")).await;
    assert!(below.error.contains("--server must be https://"));
    let elsewhere = place(&format!("https://127.0.0.1:{port}")).await;
    assert!(
        elsewhere.error.contains("not valid for name"),
        "{elsewhere:?}"
    );
    let nobody = support::free_port();
    let nobody = place(&format!("https://localhost:{nobody}")).await;
    assert!(
        nobody.error.contains("no connection to the server"),
        "{nobody:?}"
    );
    // Here the port of the settings is any.
    let own = ["call", "place", "--to", "13800000001", "--media-txt", "x"];
    let own = counter.run(&own).await;
    assert!(own.error.contains("name the server with --server"));
    for said in [plain, below, elsewhere, own] {
        assert_eq!((said.status, said.out.as_str()), (1, ""), "{said:?}");
    }
    assert_eq!(counter.run(&["call", "list"]).await.out, "none\n");
}

/// The server of the settings is found at its own listener.
async fn is_placed_at_its_own_listener(http: &str) {
    let site = Installation::with_settings(None, TRUNK).await;
    let port = support::free_port();
    let listen = format!("[\"0.0.0.0:{port}\"]").into();
    let plain = http.into();
    let environment = [
        ("CLARION_HTTP__LISTEN", &listen),
        ("CLARION_HTTP__PLAIN", &plain),
    ];
    let mut server = Command::new(env!("CARGO_BIN_EXE_clarion"));
    let config = site.folder.path().join("clarion.toml");
    server.arg("--config").arg(config).arg("serve");
    server.envs(environment).stdout(Stdio::piped());
    let mut server = server.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap();
    let place = ["call", "place", "--to", "13800000003", "--media-txt", "x"];
    let output = site.clarion_with(&place, &environment).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(output.stdout.len(), 33);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_the_settings_is_asked_at_its_own_listener() {
    is_placed_at_its_own_listener("false").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_behind_a_proxy_is_asked_without_tls() {
    is_placed_at_its_own_listener("true").await;
}

/// Busy, then answered by the second person.
async fn is_watched_step_by_step(postgres: Option<String>) {
    let counter = Counter::open(postgres).await;
    let url = counter.receiver.url();
    let options = ["--to", "13800000002", "--backup-to", "13800000005"];
    let options = [&options[..], &["--resp-url", &url, "--json", "--watch"]].concat();
    let said = counter.place(&options).await;
    assert_eq!(said.status, 0, "somebody was told: {said:?}");
    let (answer, watched) = said.out.split_once('\n').unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    let sid = answer["LandingCall"]["callSid"].as_str().unwrap();
    // Afterwards it is told from its beginning.
    let again = counter.run(&["call", "watch", sid, "--json"]).await;
    assert_eq!(again.status, 0);
    let steps = events(&again.out);
    let (first, second) = ("+86138****0002", "+86138****0005");
    let mut expected = vec![
        ("queued", None, first),
        ("dialling", Some(1), first),
        ("ringing", Some(1), ""),
        ("hangup", Some(1), first),
        ("escalated", Some(2), second),
        ("dialling", Some(2), second),
        ("ringing", Some(2), ""),
        ("answered", Some(2), ""),
        ("hangup", Some(2), second),
        ("ended", None, ""),
    ];
    assert_eq!(told(&steps, "number"), expected);
    let times: Vec<_> = steps.iter().map(|step| step["time"].as_str()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(
        (&steps[3]["outcome"], &steps[3]["sipCode"]),
        (&"busy".into(), &486.into())
    );
    assert_eq!(steps[4]["why"], "tries-used");
    assert_eq!(steps[8]["outcome"], "talked");
    let end = &steps[9];
    assert_eq!(
        (&end["ending"], &end["state"], &end["attempts"]),
        (&"talked".into(), &"0".into(), &2.into())
    );
    // As it happened it was the same, but that ringing may be stored after the answer.
    let live = events(watched);
    let mut live = told(&live, "number");
    let rang = live.extract_if(.., |step| step.0 == "ringing").count();
    expected.retain(|step| step.0 != "ringing");
    assert_eq!((live, rang), (expected, 2));
    let last = watched.lines().last().unwrap();
    assert!(last.contains("\"delivered\""), "{watched}");

    let text = counter.run(&["call", "watch", sid]).await.out;
    for part in [
        "queued     for +86138****0002",
        "dialling   attempt 1: +86138****0002 over lab",
        "hangup     attempt 1: busy (486 ",
        "escalated  attempt 2: +86138****0005 is next: the number has had its tries",
        "answered   attempt 2\n",
        "hangup     attempt 2: talked for ",
        "ended      talked (talked), after 2 attempts; state 0",
        "callback   delivered to 127.0.0.1:",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("13800000002"), "a whole number: {text}");
    tells_the_whole_story(&counter, sid).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answered_is_watched_and_shown() {
    let counter = Counter::open(None).await;
    let options = ["--to", "13800000015", "--machine-detect", "2", "--watch"];
    let watched = counter.place(&options).await.out;
    for part in [
        "heard      attempt 1: a machine answered, after ",
        "hangup     attempt 1: machine for ",
        "ended      machine (exhausted), after 1 attempt; state 1",
    ] {
        assert!(watched.contains(part), "{part:?} is not in {watched}");
    }
    let calls = counter.run(&["call", "list", "--json"]).await.out;
    let sid = calls.split("\"callSid\":").nth(1).unwrap();
    let sid = sid.split('"').nth(1).unwrap();
    let shown = counter.show(sid).await;
    assert_eq!(shown["notice"]["machineDetect"], "2");
    assert_eq!(shown["attempts"][0]["answeredBy"], "machine");
    let heard = &shown["legs"][0]["heard"];
    assert_eq!(
        (&heard["answeredBy"], &heard["tone"]),
        (&"machine".into(), &Value::Null)
    );
    let text = counter.run(&["call", "show", sid]).await.out;
    for part in [
        "machines               hung up on\n",
        "answered by            machine\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

async fn tells_the_whole_story(counter: &Counter, sid: &str) {
    let shown = counter.show(sid).await;
    let notice = &shown["notice"];
    assert_eq!(
        notice["numbers"],
        serde_json::json!(["+86138****0002", "+86138****0005"])
    );
    assert_eq!(
        (&notice["ending"], &notice["state"], &notice["current"]),
        (&"talked".into(), &"0".into(), &Value::Null)
    );
    assert_eq!(shown["callback"]["state"], "delivered");
    let whys: Vec<_> = (0..2).map(|n| &shown["attempts"][n]["why"]).collect();
    assert_eq!(whys, [&Value::Null, &"tries-used".into()]);
    let text = counter.run(&["call", "show", sid]).await.out;
    let (before, attempts) = text.split_once("\nattempt 1\n").unwrap();
    let (first, second) = attempts.split_once("\nattempt 2\n").unwrap();
    for part in ["\nnotice\n", "  ended                  talked, state 0"] {
        assert!(before.contains(part), "{part:?} is not in {before}");
    }
    for part in [
        "  to                     +86138****0002\n",
        "  outcome                busy: the called party was busy\n",
        "  leg 1\n",
        "    response               486 ",
    ] {
        assert!(first.contains(part), "{part:?} is not in {first}");
    }
    for part in [
        "  why                    the number has had its tries",
        "  outcome                talked",
        "    hung up by             the other side\n",
    ] {
        assert!(second.contains(part), "{part:?} is not in {second}");
    }
    assert!(!text.contains("13800000002"), "a whole number: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_watched_step_by_step() {
    is_watched_step_by_step(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_watched_step_by_step_on_postgres() {
    is_watched_step_by_step(Some(postgres::empty_database().await)).await;
}

/// Its first attempt was in vain, and the next one is due in an hour.
async fn waits_is_cancelled_and_ends(postgres: Option<String>) {
    let counter = Counter::open(postgres).await;
    let options = ["--to", "13800000002", "--redial-times", "1"];
    let pause = ["--redial-interval", "3000", "--valid-time", "86400"];
    let named = ["--request-id", "pump 3", "--priority", "3"];
    let placed = counter
        .place(&[&options[..], &pause, &named].concat())
        .await;
    let sid = placed.out.trim();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_clarion"));
    let config = counter.site.folder.path().join("clarion.toml");
    watching.arg("--config").arg(config);
    watching.args(["call", "watch", sid, "--json"]);
    let watching = watching.stdout(Stdio::piped()).kill_on_drop(true);
    let mut watching = watching.spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let waiting = loop {
        let line = lines.next_line().await.unwrap().expect("it waits first");
        let step: Value = serde_json::from_str(&line).unwrap();
        if step["event"] == "waiting" && step["attempt"] == 2 {
            break step;
        }
        seen.push(line);
    };
    let steps = events(&seen.join("\n"));
    let last = steps.last().unwrap();
    assert_eq!(
        (&last["event"], &last["why"]),
        (&"redial".into(), &"redial".into())
    );
    let shown = counter.show(sid).await;
    assert_eq!(
        (&shown["requestId"], &shown["priority"]),
        (&"pump 3".into(), &3.into())
    );
    let moment = |name: &str| shown[name].as_str().unwrap().parse::<DateTime>().unwrap();
    let valid = moment("validUntil").duration_since(moment("accepted"));
    assert!((86_399..=86_401).contains(&valid.as_secs()), "{valid}");
    let current = &shown["notice"]["current"];
    assert_eq!(
        (&current["attempt"], &current["why"]),
        (&2.into(), &"redial".into())
    );
    assert_eq!(current["due"], waiting["due"]);
    let text = counter.run(&["call", "show", sid]).await.out;
    let (_, second) = text.split_once("\nattempt 2\n").unwrap();
    for part in ["  state                  queued\n", "  due ", "  why "] {
        assert!(second.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(counter.run(&["call", "cancel", sid]).await.status, 0);
    let end = lines.next_line().await.unwrap().unwrap();
    let end: Value = serde_json::from_str(&end).unwrap();
    assert_eq!(
        (&end["event"], &end["ending"], &end["state"]),
        (&"ended".into(), &"cancelled".into(), &"1".into())
    );
    assert_eq!(lines.next_line().await.unwrap(), None, "the call is over");
    let status = watching.wait().await.unwrap();
    assert_eq!(status.code(), Some(3), "nobody was reached");
    let shown = counter.show(sid).await;
    assert_eq!(
        (
            &shown["requestId"],
            &shown["priority"],
            &shown["validUntil"]
        ),
        (&"pump 3".into(), &Value::Null, &Value::Null),
        "what is over waits for nothing"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_waits_says_until_when_and_its_end_ends_the_watching() {
    waits_is_cancelled_and_ends(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_waits_says_until_when_and_its_end_ends_the_watching_on_postgres() {
    waits_is_cancelled_and_ends(Some(postgres::empty_database().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_told_and_an_unknown_call_cannot_be_watched() {
    let counter = Counter::open(None).await;
    let text = "hello and good morning to everybody who listens to this message";
    let options = ["--to", "13800000010", "--json", "--watch"];
    let url = counter.url();
    let place = ["call", "place", "--server", &url, "--media-txt", text];
    let said = counter.run(&[&place[..], &options].concat()).await;
    let (_, watched) = said.out.split_once('\n').unwrap();
    let steps = events(watched);
    let keys = steps.iter().filter(|step| step["event"] == "key");
    let keys: Vec<_> = keys.map(|step| step["dtmf"].as_str().unwrap()).collect();
    assert_eq!((keys, said.status), (vec!["1", "2", "3"], 0));
    let unknown = counter.run(&["call", "watch", &"2".repeat(32)]).await;
    assert_eq!(unknown.status, 1);
    assert!(unknown.error.contains("there is no call"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_shown_with_its_keys_and_who_confirmed() {
    let counter = Counter::open(None).await;
    let url = counter.receiver.url();
    let text = "The water rises. Please leave the house now, and take nothing with you.";
    let options = [
        "--to",
        "13800000012",
        "--confirm-dtmf",
        "1;2",
        "--stop-dtmf",
        "9",
    ];
    let more = ["--call-state-url", &url, "--watch"];
    let said = counter
        .place_saying(text, &[&options[..], &more[..]].concat())
        .await;
    assert_eq!(said.status, 0, "somebody has confirmed: {said:?}");
    let sid = said.out.lines().next().unwrap();
    let ended = "ended      confirmed (confirmed), after 1 attempt; state 0";
    assert!(said.out.contains(ended), "{said:?}");
    let text = counter.run(&["call", "show", sid]).await.out;
    for part in [
        "  keys                   1 or 2 confirms, 9 twice: no more calls, waited for 10 s\n",
        "  events to              127.0.0.1:",
        "  said                   confirmed by key 1\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let shown = counter.show(sid).await;
    assert_eq!(shown["attempts"][0]["confirmKey"], "1");
    let confirm = &shown["notice"]["keys"]["confirm"];
    assert_eq!(*confirm, serde_json::json!(["1", "2"]));
}
