//! The token opens one file of one account for its time, and a token that is not good tells nothing, in either format.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clarion::client::ApiCredentials;
use clarion::domain::account::AccountChange;
use serde_json::Value;

use crate::bills::morning_after;
use crate::support::download::Download;
use crate::support::{TOKEN, TestServer, application, application_of_another_account};

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response><statusCode>190009</statusCode>\
    <statusMsg>the download token is not valid</statusMsg></Response>";
const JSON: &str = "{\"statusCode\":\"190009\",\"statusMsg\":\"the download token is not valid\"}";

/// Word for word the same whatever is wrong, and whether there is such a file or not.
async fn is_refused(server: &TestServer, what: &str, target: &str) {
    for (format, wanted) in [("xml", XML), ("json", JSON)] {
        let accept = format!("Accept: application/{format}\r\n");
        let fetched = server.fetch("GET", target, &accept).await;
        assert_eq!((fetched.status, fetched.text()), (403, wanted), "{what}");
        for absent in ["etag", "content-disposition", "accept-ranges"] {
            assert_eq!(fetched.header(absent), None, "{what}");
        }
        let head = server.fetch("HEAD", target, &accept).await;
        assert_eq!((head.status, head.body.len()), (403, 0), "{what}");
    }
}

/// The path of the one with the token of the other.
fn mixed(path: &Download, token: &Download) -> String {
    let target = path.target();
    let path = target.split('?').next().unwrap();
    format!("{path}?token={}", token.token)
}

fn download(answer: &str) -> Download {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    Download {
        url: text("downurl"),
        token: text("token"),
    }
}

#[tokio::test]
async fn a_token_that_is_not_good_tells_nothing() {
    let server = morning_after("").await;
    let good = server.bill("").await;
    let target = good.target();
    let path = target.split('?').next().unwrap();
    for (what, query) in [
        ("none", String::new()),
        ("empty", "?token=".to_owned()),
        ("short", format!("?token={}", &good.token[1..])),
        ("not hex", format!("?token={}", "x".repeat(32))),
        ("wrong", format!("?token={}", "0".repeat(32))),
        ("behind another", format!("?token=x&token={}", good.token)),
    ] {
        is_refused(&server, what, &format!("{path}{query}")).await;
    }
    let nowhere = format!("/bills/{}?token={}", "0".repeat(32), good.token);
    is_refused(&server, "no such file", &nowhere).await;
    let upwards = format!("/bills/..%2F..%2Fclarion.db?token={}", good.token);
    is_refused(&server, "a path", &upwards).await;
    assert_eq!(server.get(&target).await.status, 200);
}

#[tokio::test]
async fn a_token_of_another_file_does_not_open_this_one() {
    let server = morning_after("").await;
    let whole = server.bill("").await;
    let filtered = server.bill("units=2").await;
    // Another application of the account, with a bill of its own.
    let mut second = application();
    second.id = "5".repeat(32).parse().unwrap();
    server.store.add_application(second.clone()).await.unwrap();
    let body = format!("{{\"appId\":\"{}\",\"date\":\"day\"}}", second.id);
    let other = download(&server.ask("BillRecords", "json", Some(&body)).await);
    let all = [&whole, &filtered, &other];
    for one in all {
        assert_eq!(server.get(&one.target()).await.status, 200);
        for another in all.into_iter().filter(|another| another.url != one.url) {
            is_refused(&server, "another file's", &mixed(one, another)).await;
        }
    }
}

#[tokio::test]
async fn a_token_of_another_account_does_not_open_the_file() {
    let server = morning_after("").await;
    let ours = server.bill("").await;
    let app = application_of_another_account(&server).await;
    let stranger = ApiCredentials {
        sid: "f".repeat(32).parse().unwrap(),
        token: TOKEN.parse().unwrap(),
    };
    let permitted = AccountChange {
        bill_download: Some(true),
        ..AccountChange::default()
    };
    let changed = server.store.change_account(&stranger.sid, permitted);
    changed.await.unwrap();
    let body = format!("{{\"appId\":\"{app}\",\"date\":\"day\"}}");
    let mut connection = server.client().connect().await.unwrap();
    let signature = stranger.sign(&server.clock.wall());
    let answer = connection
        .operation(
            &stranger,
            &signature,
            "BillRecords",
            "application/json",
            Some(body),
        )
        .await;
    let theirs = download(&answer.unwrap());
    assert_eq!(server.get(&theirs.target()).await.status, 200);
    is_refused(&server, "theirs for ours", &mixed(&ours, &theirs)).await;
    is_refused(&server, "ours for theirs", &mixed(&theirs, &ours)).await;
}

#[tokio::test]
async fn a_token_is_good_twice_after_a_restart_and_until_its_time_is_over() {
    let mut server = morning_after("").await;
    let target = server.bill("").await.target();
    let first = server.get(&target).await;
    assert_eq!(first.status, 200);
    assert_eq!(server.get(&target).await.body, first.body, "twice");
    server.take_server().stop().await;
    server.restart("").await;
    assert_eq!(
        server.get(&target).await.body,
        first.body,
        "after a restart"
    );
    server.set_time("2026-11-17T00:04:50+08:00");
    assert_eq!(server.get(&target).await.status, 200);
    server.set_time("2026-11-17T00:06:10+08:00");
    is_refused(&server, "24 hours are over", &target).await;
}

fn csv_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            csv_files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Overwrites a file, and puts back when it was changed last: to the file system it is as before.
fn write_at(file: &Path, bytes: &[u8], changed_at: SystemTime) {
    use std::io::Write;
    let mut open = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(file)
        .unwrap();
    open.write_all(bytes).unwrap();
    open.set_modified(changed_at).unwrap();
}

/// A file that was tampered with is not served: it is made again from the lines of its day, which do not change.
#[tokio::test]
async fn a_bill_file_is_checked_by_its_hash_before_it_is_served() {
    let server = morning_after("").await;
    let bill = server.bill("").await;
    let right = server.get(&bill.target()).await;
    assert_eq!(right.status, 200);
    let mut files = Vec::new();
    csv_files(&server.folder.path().join("data/bills"), &mut files);
    assert_eq!(files.len(), 1);
    // Cut off, changed without another length or time of change, and gone.
    let whole = std::fs::read(&files[0]).unwrap();
    let mut changed = whole.clone();
    let last = changed.len() - 3;
    changed[last] ^= 1;
    for wrong in [Some(&whole[..20]), Some(&changed), None] {
        let changed_at = std::fs::metadata(&files[0]).unwrap().modified().unwrap();
        match wrong {
            Some(bytes) => write_at(&files[0], bytes, changed_at),
            None => std::fs::remove_file(&files[0]).unwrap(),
        }
        let part = server
            .fetch("GET", &bill.target(), "Range: bytes=0-9\r\n")
            .await;
        assert_eq!((part.status, &part.body[..]), (206, &right.body[..10]));
        let served = server.get(&bill.target()).await;
        assert_eq!((served.status, served.body), (200, right.body.clone()));
    }
}
