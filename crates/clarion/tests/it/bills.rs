//! Bills as clients see them: the request in XML and JSON, the token, the fetch.

use std::io::Read;

use clarion::domain::bill::rating::{Prefix, Rate};
use clarion::domain::bill::{COLUMNS, csv};
use clarion::domain::money::Money;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::bills::{add_records, at, bill_of, day, money, talk};
use crate::support::{
    APP, SID, TestServer, application_of_another_account, eventually, status_code,
};

const AFTER: &str = "2026-11-16T00:05:01+08:00";

/// The server on the morning after a day with two calls.
pub async fn morning_after(settings: &str) -> TestServer {
    let mut server = TestServer::start_with(settings).await;
    server.permit_bills().await;
    // A running server would take these calls, or think that their process is gone.
    server.take_server().stop().await;
    let rate = Rate {
        prefix: Prefix::default(),
        unit_seconds: 60,
        price: money("0.055"),
        unanswered: Money::ZERO,
    };
    let sid = SID.parse().unwrap();
    server.store.set_rate(&sid, rate).await.unwrap();
    talk(
        &*server.store,
        "8613800000001",
        61,
        at("2026-11-15T08:00:00+08:00"),
    )
    .await;
    talk(
        &*server.store,
        "8613800000002",
        5,
        at("2026-11-15T23:59:59.999+08:00"),
    )
    .await;
    talk(
        &*server.store,
        "8613800000003",
        30,
        at("2026-11-16T00:00:00+08:00"),
    )
    .await;
    server.set_time(AFTER);
    server.restart(settings).await;
    server
}

fn header_row() -> String {
    COLUMNS.join(",")
}

#[tokio::test]
async fn a_bill_is_asked_for_in_both_formats_and_fetched() {
    let server = morning_after("").await;
    let body = format!("<BillRecords><appId>{APP}</appId><date>day</date></BillRecords>");
    let xml = server.ask("BillRecords", "xml", Some(&body)).await;
    let rest = xml
        .strip_prefix(&*format!("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response><statusCode>000000</statusCode><downUrl>https://localhost:{}/bills/", server.address.port()))
        .unwrap_or_else(|| panic!("{xml}"));
    let (id, rest) = rest.split_once("</downUrl><token>").unwrap();
    let token = rest.strip_suffix("</token></Response>").unwrap();
    assert!(
        token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()),
        "{token}"
    );

    let json = server.ask_bill("").await;
    let wanted = format!(
        "{{\"statusCode\":\"000000\",\"downurl\":\"https://localhost:{}/bills/{id}\",\"token\":\"",
        server.address.port()
    );
    assert!(json.starts_with(&wanted), "{json}");
    assert!(!json.contains(token), "every answer has a token of its own");

    let fetched = server.get(&format!("/bills/{id}?token={token}")).await;
    assert_eq!(fetched.status, 200);
    assert_eq!(
        csv::read(fetched.text()).unwrap().len(),
        3,
        "{}",
        fetched.text()
    );
    let rows: Vec<_> = fetched.text().split("\r\n").collect();
    assert_eq!(rows[0], header_row());
    assert!(rows[1].starts_with("00000000000000000000") && rows[1].contains(",14,aaaabbbb"));
    assert!(
        rows[1].contains(",864001234567,'+86 138,2026-11-15 07:58:59,2026-11-15 07:58:59,2026-11-15 08:00:00,61,2,0.055,0.11,talked,"),
        "{}",
        rows[1]
    );
    assert!(
        fetched
            .text()
            .contains("2026-11-15 23:59:59,5,1,0.055,0.055,talked,")
    );
    assert_eq!(
        fetched.header("content-disposition"),
        Some(&*format!(
            "attachment; filename=\"bill-2026-11-15-{APP}.csv\""
        ))
    );
    let hash = hex::encode(Sha256::digest(&fetched.body));
    assert_eq!(fetched.header("etag"), Some(&*format!("\"{hash}\"")));
    let again = server.get(&server.bill("").await.target()).await;
    assert_eq!(again.body, fetched.body, "byte for byte");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_has_its_code() {
    let server = TestServer::start().await;
    let ask = async |body: String, format: &str| {
        let answer = server.ask("BillRecords", format, Some(&body)).await;
        status_code(&answer).to_owned()
    };
    let xml = |app: &str, date: &str| {
        format!("<BillRecords><appId>{app}</appId><date>{date}</date></BillRecords>")
    };
    let json = |app: &str, date: &str| format!("{{\"appId\":\"{app}\",\"date\":\"{date}\"}}");
    assert_eq!(ask(xml(APP, "day"), "xml").await, "110095");
    assert_eq!(ask(json(APP, "day"), "json").await, "110095");
    server.permit_bills().await;
    eventually("permission", async || {
        ask(json(APP, "week"), "json").await == "108023"
    })
    .await;
    for date in ["month", "week", "", "2026-11-14", "yesterday"] {
        assert_eq!(ask(xml(APP, date), "xml").await, "108023", "{date}");
        assert_eq!(ask(json(APP, date), "json").await, "108023", "{date}");
    }
    let told = server
        .ask("BillRecords", "json", Some(&json(APP, "month")))
        .await;
    assert!(
        told.contains("only the previous day's bill is offered"),
        "{told}"
    );
    let foreign = application_of_another_account(&server).await;
    for date in ["day", "week"] {
        assert_eq!(ask(xml(foreign.as_str(), date), "xml").await, "111181");
        assert_eq!(ask(json(foreign.as_str(), date), "json").await, "111181");
    }
    let long = "x".repeat(300);
    assert_eq!(status_code(&server.ask_bill(&long).await), "110062");
    let long = xml(APP, "day").replace("</date>", &format!("</date><keywords>{long}</keywords>"));
    assert_eq!(ask(long, "xml").await, "110062");
}

#[tokio::test]
async fn a_day_is_closing_until_its_grace_time_is_over() {
    let server = morning_after("").await;
    server.set_time("2026-11-16T00:04:00+08:00");
    let answer = server.ask_bill("").await;
    assert_eq!(status_code(&answer), "110082");
    assert!(answer.contains("closing"), "{answer}");
    server.set_time(AFTER);
    assert_eq!(status_code(&server.ask_bill("").await), "000000");
    let open = server.store.first_open_day().await.unwrap();
    assert_eq!(open, day("2026-11-16"));
}

#[tokio::test]
async fn a_running_server_closes_the_day_by_itself_and_makes_up_missed_nights() {
    let mut server = morning_after("").await;
    let filed = async |server: &TestServer, on: &str| {
        let files = server.store.bill_files(day(on)).await.unwrap();
        files.len() == 1
    };
    eventually("the file of the day", async || {
        filed(&server, "2026-11-15").await
    })
    .await;
    // Three nights without a server.
    server.take_server().stop().await;
    talk(
        &*server.store,
        "8613800000009",
        1,
        at("2026-11-17T12:00:00+08:00"),
    )
    .await;
    server.set_time("2026-11-19T12:00:00+08:00");
    server.restart("").await;
    for on in ["2026-11-16", "2026-11-17"] {
        eventually(on, async || filed(&server, on).await).await;
    }
    assert_eq!(
        server.store.bill_files(day("2026-11-18")).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn a_day_without_calls_is_the_header_row_alone() {
    let server = TestServer::start().await;
    server.permit_bills().await;
    server.set_time(AFTER);
    let fetched = server.get(&server.bill("").await.target()).await;
    assert_eq!(fetched.text(), format!("{}\r\n", header_row()));
}

#[tokio::test]
async fn keywords_choose_lines_and_their_file_is_kept_for_the_next_one_who_asks() {
    let server = morning_after("").await;
    let whole = server.bill("").await;
    let long = server.bill("units=2").await;
    let again = server.bill("  units=2 ").await;
    assert_eq!(long.url, again.url);
    assert_ne!(long.url, whole.url);
    let rows = async |keywords: &str| {
        let fetched = server.get(&server.bill(keywords).await.target()).await;
        csv::read(fetched.text()).unwrap().len() - 1
    };
    assert_eq!(rows("").await, 2);
    assert_eq!(rows("units=2").await, 1);
    assert_eq!(rows("talked 数据").await, 2);
    assert_eq!(rows("units=2 23:59").await, 0);
    // In XML they mean the same, and lead to the same file.
    let body = format!(
        "<BillRecords><appId>{APP}</appId><date>day</date><keywords>units=2</keywords></BillRecords>"
    );
    let xml = server.ask("BillRecords", "xml", Some(&body)).await;
    let wanted = format!("<downUrl>{}</downUrl>", long.url);
    assert!(xml.contains(&wanted), "{wanted} in {xml}");
}

#[tokio::test]
async fn there_is_an_end_to_different_keywords() {
    let server = morning_after("[bills]\nmax_filtered_files = 2").await;
    for keywords in ["a", "b", "a"] {
        assert_eq!(status_code(&server.ask_bill(keywords).await), "000000");
    }
    assert_eq!(status_code(&server.ask_bill("c").await), "111111");
    assert_eq!(status_code(&server.ask_bill("").await), "000000");
}

#[tokio::test]
async fn files_of_keywords_have_a_quota_of_their_account_and_want_room_on_the_disk() {
    let settings = "[bills]\nmax_filtered_mb = 1\n";
    let server = TestServer::start_with(settings).await;
    server.permit_bills().await;
    server.set_time("2026-11-15T10:00:00+08:00");
    add_records(&*server.store, at("2026-11-15T09:00:00+08:00"), 10_000).await;
    server.set_time(AFTER);
    // Each of these is all of the day again: one has more than the quota, and is the last.
    let words: Vec<_> = (0..8).map(|number| "20 ".repeat(number + 1)).collect();
    let asking = words.iter().map(|words| server.ask_bill(words));
    let answers = futures_util::future::join_all(asking).await;
    let given = answers
        .iter()
        .filter(|answer| status_code(answer) == "000000");
    assert_eq!(given.count(), 1, "{answers:?}");
    let refused = answers
        .iter()
        .find(|answer| status_code(answer) == "111111");
    let refused = refused.expect("the others are refused");
    assert!(refused.contains("too long together"), "{refused}");
    // The whole bill, and what is there already, are given all the same, also where the disk is nearly full.
    let again = words
        .iter()
        .zip(&answers)
        .find(|(_, answer)| status_code(answer) == "000000");
    let mut server = server;
    server.take_server().stop().await;
    let nearly_full = "min_free_mb = 17179869184\n";
    server.restart(nearly_full).await;
    for known in ["", again.unwrap().0] {
        assert_eq!(status_code(&server.ask_bill(known).await), "000000");
    }
    assert_eq!(status_code(&server.ask_bill("nothing").await), "190014");
}

#[tokio::test]
async fn the_address_and_its_name_in_json_are_settings() {
    let server = morning_after(
        "[http]\npublic_url = \"https://voice.example.com:8883/\"\n[bills]\nbill_json_key = \"downUrl\"",
    )
    .await;
    let answer = server.ask_bill("").await;
    assert!(
        answer.starts_with(
            "{\"statusCode\":\"000000\",\"downUrl\":\"https://voice.example.com:8883/bills/"
        ),
        "{answer}"
    );
}

#[tokio::test]
async fn a_cut_download_is_resumed_where_it_stopped() {
    let server = TestServer::start().await;
    server.permit_bills().await;
    server.set_time("2026-11-15T10:00:00+08:00");
    add_records(&*server.store, at("2026-11-15T09:00:00+08:00"), 20_000).await;
    server.set_time(AFTER);
    let download = server.bill("").await;
    let target = download.target();
    let mut stream = server.door().tls(&[]).await;
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut got = vec![0; 100_000];
    stream.read_exact(&mut got).await.unwrap();
    drop(stream);
    let head = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let mut whole = got.split_off(head);
    let head = String::from_utf8(got).unwrap();
    let tag = head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap();
    let headers = format!("Range: bytes={}-\r\nIf-Range: {tag}\r\n", whole.len());
    let rest = server.fetch("GET", &target, &headers).await;
    assert_eq!(rest.status, 206);
    let length = whole.len() + rest.body.len();
    assert_eq!(
        rest.header("content-range"),
        Some(&*format!("bytes {}-{}/{length}", whole.len(), length - 1))
    );
    whole.extend(&rest.body);
    assert_eq!(format!("\"{}\"", hex::encode(Sha256::digest(&whole))), tag);

    let head = server.fetch("HEAD", &target, "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(&*length.to_string()));
    assert_eq!(head.header("accept-ranges"), Some("bytes"));
    let known = server
        .fetch("GET", &target, &format!("If-None-Match: {tag}\r\n"))
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let beyond = server
        .fetch("GET", &target, &format!("Range: bytes={length}-\r\n"))
        .await;
    assert_eq!(beyond.status, 416);
    let other = server
        .fetch("GET", &target, "Range: bytes=5-\r\nIf-Range: \"old\"\r\n")
        .await;
    assert_eq!(
        (other.status, &other.body),
        (200, &whole),
        "another file: all of it"
    );

    let packed = server
        .fetch("GET", &target, "Accept-Encoding: gzip, deflate\r\n")
        .await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(
        packed.body.len() < length / 4,
        "{} of {length}",
        packed.body.len()
    );
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, whole);
}

/// However many ask at once: a file that is still being made counts.
#[tokio::test]
async fn there_is_an_end_to_different_keywords_that_are_asked_for_at_once() {
    let server = TestServer::start_with("[bills]\nmax_filtered_files = 3").await;
    server.permit_bills().await;
    server.set_time("2026-11-15T10:00:00+08:00");
    add_records(&*server.store, at("2026-11-15T09:00:00+08:00"), 20_000).await;
    server.set_time(AFTER);
    server.bill("").await;
    let words: Vec<_> = (0..12).map(|number| format!("nothing-{number}")).collect();
    let asking = words.iter().map(|words| server.ask_bill(words));
    let answers = futures_util::future::join_all(asking).await;
    let given = answers
        .iter()
        .filter(|answer| status_code(answer) == "000000");
    assert!(given.count() <= 3, "{answers:?}");
    let files = server.store.bill_files(day("2026-11-15")).await.unwrap();
    assert!(files.len() <= 4, "{files:?}");
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_made_whole_again() {
    let server = morning_after("").await;
    let first = server.get(&server.bill("").await.target()).await;
    let folder = server.folder.path().join("data/bills/2026-11-15");
    let file = folder.join(format!("{APP}.csv"));
    std::fs::write(&file, &first.body[..100]).unwrap();
    let second = server.get(&server.bill("").await.target()).await;
    assert_eq!(second.body, first.body);
}

/// Somebody has altered the lines and removed the file: nothing else takes its place, and nobody gets it.
#[tokio::test]
async fn a_closed_bill_that_would_come_out_differently_is_not_given() {
    let server = morning_after("").await;
    let granted = server.bill("").await;
    let folder = server.folder.path().join("data/bills/2026-11-15");
    std::fs::remove_file(folder.join(format!("{APP}.csv"))).unwrap();
    let db = rusqlite::Connection::open(server.folder.path().join("data/clarion.db")).unwrap();
    db.execute("UPDATE bill_lines SET fee = fee + 1", [])
        .unwrap();
    for _ in 0..2 {
        assert_eq!(status_code(&server.ask_bill("").await), "111000");
        assert_eq!(server.get(&granted.target()).await.status, 500);
    }
    db.execute("UPDATE bill_lines SET fee = fee - 1", [])
        .unwrap();
    assert_eq!(server.get(&granted.target()).await.status, 200);
}

#[tokio::test]
async fn a_file_that_somebody_has_removed_is_made_again_as_it_was() {
    let server = morning_after("").await;
    let first = server.get(&server.bill("").await.target()).await;
    let file = server
        .folder
        .path()
        .join(format!("data/bills/2026-11-15/{APP}.csv"));
    std::fs::remove_file(&file).unwrap();
    let granted = server.bill("").await;
    let second = server.get(&granted.target()).await;
    assert_eq!(second.body, first.body);
    // Also between the request and the fetch, as on a node with a folder of its own.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(server.get(&granted.target()).await.body, first.body);
    assert_eq!(
        server
            .store
            .bill_files(bill_of("2026-11-15").day)
            .await
            .unwrap()
            .len(),
        1
    );
}
