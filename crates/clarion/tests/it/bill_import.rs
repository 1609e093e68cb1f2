//! Records of other services by the command line, and the bill that comes of them, read back by other programs.

use std::process::Stdio;

use clarion::domain::bill::csv;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::bills::{day, money};
use crate::support::{APP, SID, TestServer, execute};

struct Said {
    good: bool,
    out: String,
    error: String,
}

async fn clarion(server: &TestServer, arguments: &[&str], input: &str) -> Said {
    let config = server.folder.path().join("clarion.toml");
    let data = server.folder.path().join("data");
    let text = format!("data_dir = {data:?}\ntime_zone = \"Asia/Shanghai\"\n");
    std::fs::write(&config, text).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("--config")
        .arg(config)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = process.wait_with_output().await.unwrap();
    Said {
        good: output.status.success(),
        out: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A right record of each type, and both forms of a conference.
fn records() -> Vec<Value> {
    let mut records: Vec<_> = (2..=17)
        .map(|code| typed(code, "4001", "13800000000"))
        .collect();
    records[0]["caller"] = "10086".into();
    records[2]["caller"] = "server-1".into();
    records[2]["callSid"] = "".into();
    records[7]["caller"] = "conf4006".into();
    let mut joined = typed(9, "张三@example", "conf4006");
    joined["orderid"] = "joined".into();
    records.push(joined);
    records
}

fn typed(code: u8, caller: &str, called: &str) -> Value {
    json!({
        "orderid": format!("record-{code}"), "type": code, "appId": APP, "callSid": format!("c{code}"),
        "caller": caller, "called": called, "start": "2026-11-15 08:00:00", "end": format!("2026-11-15 08:00:{code:02}"),
        "fee": "0.05", "outcome": "done",
    })
}

fn json_lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

async fn before_midnight() -> TestServer {
    let server = TestServer::start().await;
    server.permit_bills().await;
    server.set_time("2026-11-15T12:00:00+08:00");
    server
}

#[tokio::test]
async fn each_of_the_sixteen_types_is_imported_and_found_in_the_downloaded_file() {
    let server = before_midnight().await;
    let said = clarion(
        &server,
        &["bill", "import", "-", "--json"],
        &json_lines(&records()),
    )
    .await;
    assert!(said.good, "{}{}", said.out, said.error);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report, json!({ "added": 17, "known": 0, "refused": [] }));
    server.set_time("2026-11-16T00:05:01+08:00");
    let fetched = server.get(&server.bill("").await.target()).await;
    for code in 2..=17 {
        let row = format!("record-{code},{code},{APP},");
        assert!(fetched.text().contains(&row), "{row} in {}", fetched.text());
    }
    assert!(
        fetched
            .text()
            .contains(&format!("joined,9,{APP},c9,张三@example,conf4006,"))
    );
    assert!(
        fetched
            .text()
            .contains(&format!("record-4,4,{APP},,server-1,"))
    );
    let one = server.get(&server.bill("type=9").await.target()).await;
    assert_eq!(one.text().lines().count(), 3);
}

#[tokio::test]
async fn wrong_records_are_named_by_line_field_and_rule_and_nothing_is_taken() {
    let server = before_midnight().await;
    let mut spoiled = Vec::new();
    let mut spoil = |record: &Value, field: &str, value: Value| {
        let mut record = record.clone();
        record[field] = value;
        record["orderid"] = format!("spoiled-{}", spoiled.len()).into();
        spoiled.push(record);
    };
    let right = records();
    spoil(&right[0], "caller", "not a template".into());
    spoil(&right[2], "callSid", "c4".into());
    spoil(&right[7], "caller", "张三@example".into());
    spoil(&right[16], "caller", "two words".into());
    spoil(&right[5], "type", 1.into());
    spoil(&right[5], "type", 18.into());
    spoil(&right[5], "fee", json!(0.05));
    spoil(&right[5], "appId", "f".repeat(31).into());
    let file = json_lines(&[&right[..1], &spoiled[..]].concat());
    let said = clarion(&server, &["bill", "import", "-"], &file).await;
    assert!(!said.good);
    assert!(
        said.error.contains("nothing was added: 8 of the records"),
        "{}",
        said.error
    );
    for wanted in [
        "line 2: caller of type 2 must be the SMS template id",
        "line 3: callSid of type 4 must be empty",
        "line 4: caller of type 9 by invitation must be the conference number",
        "line 5: caller of type 9 by calling in must be",
        "line 6: type must be one of the codes 2 to 17",
        "line 7: type must be one of the codes 2 to 17",
        "line 8: fee must be a text",
        "line 9: appId ",
    ] {
        assert!(said.out.contains(wanted), "{wanted} in {}", said.out);
    }
    let none = server.store.bills_of_day(day("2026-11-15")).await.unwrap();
    assert_eq!(none, []);
}

#[tokio::test]
async fn a_file_that_is_no_list_of_records_is_told_so() {
    let server = before_midnight().await;
    let record = typed(14, "4001", "13800000000");
    let far = record.to_string().replace("2026-11-15", "2062-11-15");
    let cut = &record.to_string()[..40];
    for (file, wanted) in [
        (
            "orderid,colour\nx,red\n",
            "line 1: header `colour` is not a column",
        ),
        (
            "orderid,type,type\nx,14,14\n",
            "line 1: header `type` is there twice",
        ),
        (
            "orderid,type\nx\n",
            "line 2: row has 1 cells, the header has 2",
        ),
        (
            "orderid,type\n\"x,14\n",
            "line 2: file a quotation mark is never closed",
        ),
        (
            &format!("[{record}]"),
            "line 1: file is a JSON array: write one object a line",
        ),
        (
            &format!("{record}\n\n{cut}\n"),
            "line 3: line is not a JSON object",
        ),
        (&far, "line 1: end lies more than a year ahead"),
        (
            &format!("{record}\n")
                .repeat(2)
                .replace("0.05", "1000000000.01"),
            "line 2: fee is more than 1000000000.00",
        ),
    ] {
        let said = clarion(&server, &["bill", "import", "-"], file).await;
        assert!(
            !said.good && said.out.contains(wanted),
            "{wanted} in {}",
            said.out
        );
        assert!(said.error.contains("nothing was added"), "{}", said.error);
    }
    // The same record twice in a file is one; a mark of the byte order is no part of it; nothing is nothing.
    let twice = format!("\u{feff}{record}\r\n{record}\r\n");
    for (file, wanted) in [
        (&*twice, "1 added, 1 there already"),
        ("", "0 added, 0 there already"),
        ("orderid,type\n", "0 added, 0 there already"),
    ] {
        let said = clarion(&server, &["bill", "import", "-"], file).await;
        assert!(said.good && said.out.contains(wanted), "{}", said.out);
    }
    let said = clarion(&server, &["bill", "import", "/nowhere.csv"], "").await;
    assert!(
        said.error.contains("cannot read /nowhere.csv"),
        "{}",
        said.error
    );
}

#[tokio::test]
async fn a_late_record_goes_into_the_first_open_day_when_asked() {
    let server = before_midnight().await;
    let file = json_lines(&records()[..1]);
    server.set_time("2026-11-16T12:00:00+08:00");
    server
        .store
        .close_day(day("2026-11-15"), server.clock.now())
        .await
        .unwrap();
    let said = clarion(&server, &["bill", "import", "-"], &file).await;
    assert!(
        said.out
            .contains("line 1: end lies in 2026-11-15, which is closed"),
        "{}",
        said.out
    );
    for answer in ["1 added, 0 there already", "0 added, 1 there already"] {
        let said = clarion(&server, &["bill", "import", "-", "--late"], &file).await;
        assert!(said.good && said.out.contains(answer), "{}", said.out);
    }
    assert_eq!(
        server
            .store
            .bills_of_day(day("2026-11-16"))
            .await
            .unwrap()
            .len(),
        1
    );
}

/// What Python's csv module reads, in JSON.
async fn read_by_python(csv: &[u8]) -> Vec<Vec<String>> {
    let program = "import csv, io, json, sys\n\
        text = io.TextIOWrapper(sys.stdin.buffer, encoding='utf-8', newline='')\n\
        print(json.dumps(list(csv.reader(text, strict=True))))";
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(csv).await.unwrap();
    drop(stdin);
    let output = python.wait_with_output().await.unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn a_spreadsheet_gets_no_formula_and_python_reads_the_original_values() {
    let server = before_midnight().await;
    let values = [
        "=HYPERLINK(\"http://x\")",
        "+1",
        "-1",
        "@SUM(A1)",
        "'already",
        "\ttab",
        "\rreturn",
        "a,b",
        "\"quoted\"",
        "\"",
        "two\r\nlines",
        "\nline",
        "\n=1",
        "a;=1+1",
        "a\t@b;'c",
        "＝1+1",
        "x;－1",
        "🎉 emoji, \"and\" =more",
        " blanks ",
        "''",
        "'",
        "plain",
    ];
    let records: Vec<_> = values
        .iter()
        .enumerate()
        .map(|(number, value)| {
            let mut record = typed(14, "+864001234567", "=13800000000");
            record["orderid"] = format!("r{number:02}").into();
            record["userData"] = (*value).into();
            record
        })
        .collect();
    let said = clarion(&server, &["bill", "import", "-"], &json_lines(&records)).await;
    assert!(said.good, "{}", said.out);
    server.set_time("2026-11-16T00:05:01+08:00");
    let fetched = server.get(&server.bill("").await.target()).await;
    let rows = read_by_python(&fetched.body).await;
    assert_eq!(rows.len(), values.len() + 1);
    let formulas = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    // As the documents say it: at the beginning and behind each of these, a ' that is followed by one of those is ours.
    let original = |cell: &str| -> String {
        let first =
            |rest: &str| rest.starts_with(['\'', '\t', '\r', '\n']) || rest.starts_with(formulas);
        let cell = cell
            .strip_prefix('\'')
            .filter(|rest| first(rest))
            .unwrap_or(cell);
        let mut text = String::new();
        for part in cell.split_inclusive([';', '\t', '\r', '\n']) {
            let ours = !text.is_empty();
            let behind = |rest: &&str| rest.starts_with('\'') || rest.starts_with(formulas);
            let bare = part.strip_prefix('\'').filter(behind);
            text.push_str(bare.filter(|_| ours).unwrap_or(part));
        }
        text
    };
    for (row, value) in rows[1..].iter().zip(values) {
        for cell in row {
            assert!(!cell.starts_with(['\t', '\r', '\n']), "{row:?}");
            let mut parts = cell.split([';', '\t', '\r', '\n']);
            assert!(parts.all(|part| !part.starts_with(formulas)), "{row:?}");
        }
        assert_eq!(original(&row[14]), value);
        assert_eq!((&*row[4], &*row[5]), ("'+864001234567", "'=13800000000"));
    }
    // Keywords with signs find what they name, to the letter.
    let found = server
        .get(&server.bill("=HYPERLINK called==13800000000").await.target())
        .await;
    assert_eq!(read_by_python(&found.body).await.len(), 2);
    for word in [
        "userData=+1",
        "userData=-1",
        "@SUM(A1)",
        "\"quoted\"",
        "🎉",
        "userData='",
    ] {
        let found = server.get(&server.bill(word).await.target()).await;
        let rows = read_by_python(&found.body).await;
        assert_eq!(rows.len(), 2, "{word}: {rows:?}");
    }
    // And our own reader takes the file back: everything is there already.
    let said = clarion(&server, &["bill", "import", "-", "--late"], fetched.text()).await;
    assert!(said.out.contains("22 there already"), "{}", said.out);
}

#[tokio::test]
async fn an_operator_closes_lists_shows_exports_and_verifies() {
    let server = TestServer::start().await;
    let json = async |arguments: &[&str]| -> Value {
        let said = clarion(&server, &[arguments, &["--json"]].concat(), "").await;
        assert!(said.good, "{arguments:?}: {}", said.error);
        serde_json::from_str(&said.out).unwrap()
    };
    let set = [
        "rate",
        "set",
        "--account",
        SID,
        "+86138",
        "0.055",
        "--unit",
        "30",
        "--unanswered",
        "0.01",
    ];
    let rate =
        json!({ "prefix": "+86138", "price": "0.055", "unitSeconds": 30, "unanswered": "0.01" });
    assert_eq!(json(&set).await, rate);
    assert_eq!(
        json(&["rate", "list", "--account", SID]).await,
        json!([rate])
    );
    assert_eq!(json(&["rate", "list"]).await[0]["prefix"], "*");
    assert!(
        clarion(&server, &["rate", "remove", "--account", SID, "+86138"], "")
            .await
            .good
    );
    assert_eq!(json(&["rate", "list", "--account", SID]).await, json!([]));
    assert_eq!(json(&["account", "show", SID]).await["spent"], "0.00");

    // The command line lives in the present: these ended last week.
    let ended = server.clock.now() - jiff::SignedDuration::from_hours(24 * 7);
    let on = clarion::domain::bill::calendar::day_of(ended, server.clock.zone());
    server.set_time(&ended.to_string());
    let record = crate::support::bills::record("one", ended, money("0.05"));
    server
        .store
        .import_records(vec![record], false)
        .await
        .unwrap();
    let on = on.to_string();
    let export = async |format: &str| {
        let said = clarion(
            &server,
            &["bill", "export", &on, "--app", APP, "--format", format],
            "",
        )
        .await;
        assert!(said.good, "{}", said.error);
        said.out
    };
    assert!(export("csv").await.starts_with("orderid,type,"));
    let line: Value = serde_json::from_str(&export("jsonl").await).unwrap();
    assert_eq!(
        (&line["orderid"], &line["fee"]),
        (&"one".into(), &"0.05".into())
    );
    let open = clarion(&server, &["bill", "verify", &on], "").await;
    assert!(open.error.contains("is not closed yet"), "{}", open.error);
    assert_eq!(json(&["bill", "close"]).await, json!({ "daysClosed": 1 }));
    assert_eq!(json(&["bill", "close"]).await, json!({ "daysClosed": 0 }));
    let today = clarion(&server, &["bill", "close", "--day", "2999-01-01"], "").await;
    assert!(today.error.contains("is not over yet"), "{}", today.error);
    let days = json(&["bill", "list"]).await;
    assert_eq!(
        (&days[0]["day"], &days[0]["lines"], &days[0]["fee"]),
        (&on.clone().into(), &1.into(), &"0.05".into())
    );
    assert_eq!(json(&["bill", "show", &on]).await[0]["lines"], 1);
    let verdict = json(&["bill", "verify", &on]).await;
    assert_eq!(
        (&verdict["good"], &verdict["lines"]),
        (&true.into(), &1.into())
    );
    let file = server
        .folder
        .path()
        .join(format!("data/bills/{on}/{APP}.csv"));
    std::fs::write(file, "x").unwrap();
    let said = clarion(&server, &["bill", "verify", &on], "").await;
    assert!(
        !said.good && said.error.contains("is not right"),
        "{}",
        said.error
    );
}

/// A file of version 0.1, which guarded cells at their beginning only, is made again to the byte when it is gone.
#[tokio::test]
async fn a_bill_of_the_first_version_is_made_again_as_it_was() {
    let server = before_midnight().await;
    let mut record = typed(14, "+864001234567", "13800000000");
    record["orderid"] = "r1".into();
    record["userData"] = "a;=1\tb".into();
    let said = clarion(&server, &["bill", "import", "-"], &json_lines(&[record])).await;
    assert!(said.good, "{}", said.out);
    server.set_time("2026-11-16T00:05:01+08:00");
    let bill = server.bill("").await;
    let today = server.get(&bill.target()).await;
    let mut first = Vec::new();
    for (_, cells) in csv::read(today.text()).unwrap() {
        let cells: Vec<_> = cells.iter().map(|cell| csv::unguarded(cell)).collect();
        csv::first_row(&mut first, cells.iter().map(String::as_str));
    }
    assert_ne!(first, today.body);
    let (hash, bytes) = (hex::encode(Sha256::digest(&first)), first.len());
    let recorded = format!("UPDATE bill_files SET sha256 = '{hash}', bytes = {bytes}");
    execute(&server.database, &recorded).await;
    let bills = server.folder.path().join("data/bills");
    for entry in std::fs::read_dir(&bills).unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    let again = server.get(&bill.target()).await;
    assert_eq!((again.status, again.body), (200, first));
    let verified = clarion(&server, &["bill", "verify", "2026-11-15"], "").await;
    assert!(verified.good, "{}", verified.out);
}
