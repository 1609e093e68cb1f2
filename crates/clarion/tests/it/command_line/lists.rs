//! Lists of numbers and do-not-call lists, as an operator keeps them.

use std::fmt::Write as _;
use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{clarion, error, json, program};
use crate::support::{SID, TestServer, eventually, status_code};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_list_is_made_shown_changed_and_removed() {
    let server = TestServer::start().await;
    let of = ["--account", SID];
    let list = |words: &[&'static str]| [&["list"], &words[..1], &of, &words[1..]].concat();
    let first = ["add", "night", "13800000001=Li Wei", "010-52823298-77"];
    let added = json(&server, &list(&first)).await;
    assert_eq!(added["name"], "night");
    assert_eq!(
        added["numbers"],
        json!([{ "number": "13800000001", "name": "Li Wei" }, { "number": "010-52823298-77", "name": null }])
    );
    assert_eq!(json(&server, &list(&["show", "night"])).await, added);
    json(&server, &list(&["add", "day", "13800000003"])).await;
    let all = json(&server, &list(&["show"])).await;
    assert_eq!(all[1], added);
    let shown = text(clarion(&server, &list(&["show"])).await.stdout);
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].starts_with("@day ") && lines[2].starts_with("@night "));
    assert_eq!(
        lines[3..],
        ["  1   13800000001      Li Wei", "  2   010-52823298-77  -"]
    );
    let changed = json(&server, &list(&["set", "night", "13800000002"])).await;
    assert_eq!(
        changed["numbers"],
        json!([{ "number": "13800000002", "name": null }])
    );
    let removed = clarion(&server, &list(&["remove", "night"])).await;
    assert_eq!(text(removed.stdout), "the list @night is removed\n");
    assert_eq!(
        json(&server, &list(&["show"]))
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    clarion(&server, &list(&["remove", "day"])).await;
    assert_eq!(
        text(clarion(&server, &list(&["show"])).await.stdout),
        "none\n"
    );
}

#[tokio::test]
async fn a_wrong_list_is_refused_by_its_rule() {
    let server = TestServer::start().await;
    let of = ["list", "add", "--account", SID];
    json(&server, &[&of[..], &["night", "13800000001"]].concat()).await;
    let many: Vec<_> = (0..21).map(|place| format!("138{place:08}")).collect();
    let many: Vec<_> = [&of[..], &["many"]]
        .concat()
        .into_iter()
        .chain(many.iter().map(String::as_str))
        .collect();
    let nobody = "f".repeat(32);
    for (arguments, rule) in [
        (
            [&of[..], &["night", "13800000001"]].concat(),
            "list @night of account",
        ),
        (
            [&of[..], &["a b", "13800000001"]].concat(),
            "1 to 32 letters",
        ),
        ([&of[..], &["a", "138"]].concat(), "number \"138\""),
        ([&of[..], &["a", "110=police"]].concat(), "emergency"),
        (
            [&of[..], &["a", "13800000001", "+8613800000001"]].concat(),
            "only once",
        ),
        (many, "1 to 20 numbers, but has 21"),
        (
            vec!["list", "add", "--account", &nobody, "a", "13800000001"],
            "there is no account",
        ),
        (
            vec!["list", "set", "--account", SID, "a", "13800000001"],
            "there is no list @a of account",
        ),
        (
            vec!["list", "show", "--account", SID, "a"],
            "there is no list @a of account",
        ),
        (
            vec!["list", "remove", "--account", SID, "a"],
            "there is no list @a of account",
        ),
        (
            vec!["list", "show", "--account", &nobody],
            "there is no account",
        ),
    ] {
        let said = error(&server, &arguments).await;
        assert!(said.contains(rule), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn numbers_are_put_on_a_do_not_call_list_and_taken_off() {
    let server = TestServer::start().await;
    let of = ["--account", SID];
    let command =
        |words: &[&'static str]| [&["do-not-call"], &words[..1], &of, &words[1..]].concat();
    let said = async |words: &[&'static str]| text(clarion(&server, &command(words)).await.stdout);
    assert_eq!(
        said(&["add", "13800000001", "+8613800000002", "008613800000001"]).await,
        "+8613800000001 is not called\n+8613800000002 is not called\n+8613800000001 is not called, as before\n"
    );
    eventually("the server knows of it", async || {
        let call = server.call_json("\"to\":\"13800000002\",\"mediaTxt\":\"x\"");
        status_code(&call.await) == "108035"
    })
    .await;
    let shown = json(&server, &command(&["show"])).await;
    assert_eq!(shown.as_array().unwrap().len(), 2);
    assert_eq!(
        (&shown[0]["number"], &shown[0]["by"], &shown[0]["callSid"]),
        (&json!("+8613800000001"), &json!("operator"), &json!(null))
    );
    let after = json(&server, &command(&["show", "--after", "13800000001"])).await;
    assert_eq!(after, json!([shown[1]]));
    let one = json(&server, &command(&["show", "13800000002"])).await;
    assert_eq!(one, shown[1]);
    assert_eq!(
        said(&["remove", "13800000002", "13800000003"]).await,
        "+8613800000002 may be called\n+8613800000003 may be called, as before\n"
    );
    let nobody = "f".repeat(32);
    for (arguments, rule) in [
        (
            command(&["show", "13800000002"]),
            "+8613800000002 is not on the do-not-call list",
        ),
        (command(&["add", "138"]), "\"138\": the number"),
        (command(&["add", "13800000001-7"]), "no extension"),
        (
            vec!["do-not-call", "export", "--account", &nobody],
            "there is no account",
        ),
        (
            command(&["import", "missing.txt"]),
            "cannot read missing.txt",
        ),
    ] {
        let said = error(&server, &arguments).await;
        assert!(said.contains(rule), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn a_do_not_call_list_is_imported_and_exported_line_by_line() {
    let server = TestServer::start().await;
    let path = |name: &str| server.folder.path().join(name).display().to_string();
    let of = ["do-not-call", "import", "--account", SID];
    let (wrong, good, out) = (path("wrong.txt"), path("good.txt"), path("out.txt"));
    let lines = "\u{feff}13800000001\r\n\n+8613800000002\n138\n 13800000001 \n13800000003-7\nabc";
    std::fs::write(&wrong, lines).unwrap();
    // What is right is added, and every line that is not is named.
    let output = clarion(&server, &[&of[..], &[&wrong]].concat()).await;
    assert!(!output.status.success());
    let said = text(output.stdout);
    let said: Vec<_> = said.lines().collect();
    for (line, place) in said.iter().zip([4, 6, 7]) {
        assert!(
            line.starts_with(&format!("line {place}: the number")),
            "{said:?}"
        );
    }
    assert_eq!(said[3..], ["2 added, 1 there already, 3 wrong"]);
    assert!(text(output.stderr).contains("3 of 6 lines have no number for the list"));
    let json_again = clarion(&server, &[&of[..], &[&wrong, "--json"]].concat()).await;
    let report: serde_json::Value = serde_json::from_slice(&json_again.stdout).unwrap();
    assert_eq!((&report["added"], &report["known"]), (&json!(0), &json!(3)));
    assert_eq!(report["wrong"][1]["line"], 6);
    // A long file, and back.
    let mut numbers = String::new();
    for place in 0..100_000 {
        writeln!(numbers, "+86139{place:08}").unwrap();
    }
    std::fs::write(&good, &numbers).unwrap();
    let imported = json(&server, &[&of[..], &[&good]].concat()).await;
    assert_eq!(
        imported,
        json!({ "added": 100_000, "known": 0, "wrong": [] })
    );
    let export = ["do-not-call", "export", "--account", SID];
    let exported = text(clarion(&server, &export).await.stdout);
    assert_eq!(
        exported,
        format!("+8613800000001\n+8613800000002\n{numbers}")
    );
    let written = clarion(&server, &[&export[..], &["--out", &out]].concat()).await;
    assert!(written.status.success() && written.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&out).unwrap(), exported);
    // What was exported is known, from standard input too.
    let mut again = program(&server, &[&of[..], &["-"]].concat());
    let mut again = again
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = again.stdin.take().unwrap();
    input.write_all(exported.as_bytes()).await.unwrap();
    drop(input);
    let again = text(again.wait_with_output().await.unwrap().stdout);
    assert_eq!(again, "0 added, 100002 there already, 0 wrong\n");
    std::fs::write(&good, "1".repeat(5_000)).unwrap();
    let said = error(&server, &[&of[..], &[&good]].concat()).await;
    assert!(said.contains("line 1 is too long"), "{said}");
}
