//! A disk that fails: nothing is promised that is not on it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::audio_files::upload;
use crate::campaign::nodes::Shared;
use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::{PATIENCE, TestServer, eventually, preload, status_code, text_of};

/// Compiles the faulty disk and returns the library's path.
pub fn failing_disk(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/failing_disk.c");
    let library = folder.join("failing_disk.so");
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(compiled.success());
    library
}

#[tokio::test]
async fn after_a_failed_sync_nothing_more_is_promised_and_the_process_ends() {
    let installation = Installation::new(None).await;
    let fault = installation.folder.path().join("fault");
    let library = failing_disk(installation.folder.path());
    let mut server = installation
        .start_with(&[("LD_PRELOAD", &preload(&library)), ("DISK_FAULT", &fault)])
        .await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let before = caller.place_call().await.unwrap();
    std::fs::write(&fault, "sync").unwrap();
    assert!(
        caller.place_call().await.is_err(),
        "what is not on the disk is not accepted"
    );
    let status = tokio::time::timeout(PATIENCE, server.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.code(), Some(74));
    // A fresh start on a disk that is well again.
    std::fs::remove_file(&fault).unwrap();
    let server = installation.start().await;
    let after = Caller::connect(&server.client)
        .await
        .unwrap()
        .place_call()
        .await
        .unwrap();
    installation.holds(&[before, after]).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_refuses_calls_until_there_is_room_again() {
    refuses_calls_while_it_is_full(&[]).await;
}

/// SQLite takes it for a failed write, after which nothing could be promised.
#[tokio::test]
async fn a_quota_that_is_used_up_is_a_full_disk() {
    refuses_calls_while_it_is_full(QUOTA).await;
}

/// Writes fail because a quota is used up, not because the disk is full.
const QUOTA: &[(&str, &str)] = &[("DISK_FAULT_QUOTA", "1")];

async fn refuses_calls_while_it_is_full(how: &[(&str, &str)]) {
    let installation = Installation::new(None).await;
    let fault = installation.folder.path().join("fault");
    let library = failing_disk(installation.folder.path());
    let server = installation
        .start_by(|serve| on_disk(serve, &library, &fault).envs(how.iter().copied()))
        .await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let before = caller.place_call().await.unwrap();
    std::fs::write(&fault, "full").unwrap();
    assert_eq!(caller.refused().await, "190014");
    std::fs::remove_file(&fault).unwrap();
    let mut after = None;
    eventually("calls are accepted again", async || {
        after = Caller::connect(&server.client)
            .await
            .unwrap()
            .try_call()
            .await;
        after.is_some()
    })
    .await;
    installation.holds(&[before, after.unwrap()]).await.unwrap();
}

/// Below the floor calls and files are refused with their own code, readiness says so, and what was accepted before is still answered.
#[tokio::test]
async fn a_disk_that_is_nearly_full_refuses_files_and_calls_with_a_code() {
    let server = TestServer::start_with("").await;
    let fields = "<to>13800000000</to><mediaTxt>x</mediaTxt>";
    assert_eq!(status_code(&server.call_xml(fields).await), "000000");
    let server = TestServer::start_with("min_free_mb = 17179869184\n").await;
    for _ in 0..3 {
        let answer = server.call_xml(fields).await;
        assert_eq!(status_code(&answer), "190014", "{answer}");
        assert!(answer.contains("no room on the disk"), "{answer}");
    }
    let wav = sound::wav::mono_16_bit(&[1; 800], sound::RATE);
    let refused = upload(&server, "a.wav", &wav);
    assert_eq!(status_code(&refused.await), "190014");
    assert_eq!(
        status_code(&server.ask("AccountInfo", "xml", None).await),
        "000000"
    );
    assert_eq!(server.get("/readyz").await.status, 503);
}

/// With PostgreSQL, calls are on another disk: only files are refused.
#[tokio::test]
async fn a_full_disk_of_a_node_does_not_refuse_calls_that_are_kept_elsewhere() {
    let url = crate::support::postgres::empty_database().await;
    let settings = format!("min_free_mb = 17179869184\ndatabase = {url:?}\n");
    let server = TestServer::start_with(&settings).await;
    let answer = server
        .call_xml("<to>13800000000</to><mediaTxt>x</mediaTxt>")
        .await;
    assert_eq!(status_code(&answer), "000000");
    let wav = sound::wav::mono_16_bit(&[1; 800], sound::RATE);
    let refused = upload(&server, "a.wav", &wav);
    assert_eq!(status_code(&refused.await), "190014");
}

/// All calls are answered.
const LOOPBACK: &str = "[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n[media]\nbind = \"127.0.0.1\"\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 50\ncalls_per_second = 200\nprefixes = [\"\"]\n";

fn on_disk<'a>(serve: &'a mut Command, library: &Path, fault: &Path) -> &'a mut Command {
    serve
        .env("LD_PRELOAD", preload(library))
        .env("DISK_FAULT", fault)
}

/// Asks for a call that talks for some seconds.
async fn place(receiver: &Receiver, caller: &mut Caller, number: usize) -> Result<String, String> {
    let (url, text) = (receiver.url(), "One hundred and eleven. ".repeat(4));
    // Numbers with small ends are not answered by the telephone in the server.
    let number = 1000 + number;
    let fields = format!("\"to\":\"138{number:08}\",\"mediaTxt\":\"{text}\",\"respUrl\":\"{url}\"");
    caller.try_to_place(&fields).await.unwrap()
}

/// A server on a disk that can be filled, with a trunk on which every call is answered.
struct SmallDisk {
    installation: Installation,
    server: ChildServer,
    receiver: Receiver,
    fault: PathBuf,
}

impl SmallDisk {
    async fn new() -> Self {
        Self::full_by(&[]).await
    }

    async fn full_by(how: &[(&str, &str)]) -> Self {
        let installation = Installation::with_settings(None, LOOPBACK).await;
        let folder = installation.folder.path();
        let (fault, library) = (folder.join("fault"), failing_disk(folder));
        let server = installation
            .start_by(|serve| on_disk(serve, &library, &fault).envs(how.iter().copied()))
            .await;
        let small = Self {
            receiver: Receiver::start(vec![ok()]).await,
            installation,
            server,
            fault,
        };
        eventually("there is a reserve", async || {
            small.bytes("clarion.db-reserve") > 0
        })
        .await;
        small
    }

    fn bytes(&self, file: &str) -> u64 {
        let path = self.installation.folder.path().join(file);
        std::fs::metadata(path).map_or(0, |found| found.len())
    }

    /// A log that has been copied is written again from its beginning, and would need no room for a while.
    async fn make_log_short(&self) {
        let file = self.installation.folder.path().join("clarion.db");
        let database = rusqlite::Connection::open(file).unwrap();
        let shorten = "PRAGMA wal_checkpoint(TRUNCATE)";
        // Whoever is reading just then keeps it from being shortened.
        eventually("the log is short", async || {
            database.query_row(shorten, [], |_| Ok(())).unwrap();
            self.bytes("clarion.db-wal") < 100_000
        })
        .await;
    }

    /// From now on so much can be written. Returns how much of the reserve was left then.
    fn leave_room(&self, bytes: u64) -> u64 {
        let reserve = self.bytes("clarion.db-reserve");
        let files = ["clarion.db", "clarion.db-wal", "clarion.db-shm"];
        let used: u64 = files.iter().map(|file| self.bytes(file)).sum();
        std::fs::write(&self.fault, format!("room {}", used + reserve + bytes)).unwrap();
        reserve
    }

    async fn are_talking(&self, count: u32) {
        eventually("all are talking", async || {
            let answered = "clarion_calls{state=\"answered\"}";
            self.server.metric(answered).await == Some(f64::from(count))
        })
        .await;
    }

    async fn place(&self, caller: &mut Caller, number: usize) -> Result<String, String> {
        place(&self.receiver, caller, number).await
    }

    /// Each call is reported, and none twice.
    async fn all_are_reported(&self, calls: &[String]) {
        let received = self.receiver.has_received(calls.len()).await;
        let reported = |sid: &String| {
            received
                .iter()
                .any(|callback| callback.body.contains(sid.as_str()))
        };
        assert!(calls.iter().all(reported));
        assert_eq!(received.len(), calls.len());
    }
}

/// Somebody else fills the disk while calls are talking: their ends are written into what was kept for them.
#[tokio::test]
async fn calls_that_have_begun_end_on_a_full_disk() {
    have_begun_and_end(SmallDisk::new().await).await;
}

#[tokio::test]
async fn calls_that_have_begun_end_when_a_quota_is_used_up() {
    have_begun_and_end(SmallDisk::full_by(QUOTA).await).await;
}

async fn have_begun_and_end(small: SmallDisk) {
    let mut caller = Caller::connect(&small.server.client).await.unwrap();
    let mut calls = Vec::new();
    for number in 0..40 {
        calls.push(small.place(&mut caller, number).await.unwrap());
    }
    small.are_talking(40).await;
    small.make_log_short().await;
    small.leave_room(0);
    small.all_are_reported(&calls).await;
    let full = small.server.metric("clarion_store_disk_full_total").await;
    assert!(full >= Some(1.0), "their ends found the disk full");
}

/// Others take half of what was kept as well, while the server has callbacks to send: what is left is for the ends of calls alone.
#[tokio::test]
async fn the_last_half_of_the_reserve_is_for_the_ends_of_calls() {
    let small = SmallDisk::new().await;
    let mut caller = Caller::connect(&small.server.client).await.unwrap();
    let mut calls = Vec::new();
    for number in 0..40 {
        calls.push(small.place(&mut caller, number).await.unwrap());
    }
    small.are_talking(40).await;
    small.make_log_short().await;
    eventually("others have taken the first half, too", async || {
        small.leave_room(0) < 16 << 20
    })
    .await;
    let billed = "SELECT CAST(count(*) AS TEXT) FROM bill_lines";
    eventually("all have ended on the full disk", async || {
        text_of(&small.installation.database, billed).await == "40"
    })
    .await;
    assert_eq!(small.bytes("clarion.db-reserve"), 0, "all of it was needed");
    let refused = small.place(&mut caller, calls.len()).await;
    assert_eq!(refused.unwrap_err(), "190014");
    std::fs::remove_file(&small.fault).unwrap();
    small.all_are_reported(&calls).await;
}

/// The calls themselves fill a small disk. What was accepted waits there, and all of it is called and reported when there is room.
#[tokio::test]
async fn a_small_disk_that_calls_have_filled_goes_on_when_it_is_freed() {
    let small = SmallDisk::new().await;
    small.leave_room(1 << 20);
    let mut caller = Caller::connect(&small.server.client).await.unwrap();
    let mut calls = Vec::new();
    let refused = loop {
        match small.place(&mut caller, calls.len()).await {
            Ok(sid) => calls.push(sid),
            Err(code) => break code,
        }
    };
    assert_eq!(refused, "190014");
    std::fs::remove_file(&small.fault).unwrap();
    small.all_are_reported(&calls).await;
    assert_eq!(calls.iter().collect::<HashSet<_>>().len(), calls.len());
}

/// PostgreSQL's own disk is full: its server falls, and rises when there is room. What was accepted is ended, billed and reported all the same.
#[tokio::test]
async fn calls_that_talk_while_the_disk_of_postgresql_is_full_end_once_and_none_is_lost() {
    let mut shared = Shared::start().await;
    let settings = format!("[store]\nstatement_seconds = 2\n{LOOPBACK}");
    let installation = Installation::with_settings(Some(shared.url.clone()), &settings).await;
    let server = installation.start().await;
    let receiver = Receiver::start(vec![ok()]).await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let mut calls = Vec::new();
    for number in 0..20 {
        calls.push(place(&receiver, &mut caller, number).await.unwrap());
    }
    eventually("all are talking", async || {
        let answered = "clarion_calls{state=\"answered\"}";
        server.metric(answered).await == Some(20.0)
    })
    .await;
    shared.disk.fill();
    while let Ok(sid) = place(&receiver, &mut caller, calls.len()).await {
        calls.push(sid);
    }
    shared.disk.free();
    shared.recover().await;
    let told = |sid: &String| {
        let received = receiver.received();
        received.iter().any(|told| told.body.contains(sid.as_str()))
    };
    eventually("all are reported", async || calls.iter().all(told)).await;
    let after = place(&receiver, &mut caller, calls.len()).await;
    assert!(after.is_ok(), "{after:?}");
    let sids = calls.join("','");
    let lines = format!("SELECT count(*)::text FROM bill_lines WHERE call_sid IN ('{sids}')");
    let billed = text_of(&installation.database, &lines).await;
    assert_eq!(billed, calls.len().to_string(), "each is billed once");
}
