//! A disk that fails: nothing is promised that is not on it.

use std::path::{Path, PathBuf};

use crate::audio_files::upload;
use crate::support::child::{Caller, Installation};
use crate::support::{PATIENCE, TestServer, eventually, preload, status_code};

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
    let installation = Installation::new(None).await;
    let fault = installation.folder.path().join("fault");
    let library = failing_disk(installation.folder.path());
    let server = installation
        .start_with(&[("LD_PRELOAD", &preload(&library)), ("DISK_FAULT", &fault)])
        .await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let before = caller.place_call().await.unwrap();
    std::fs::write(&fault, "full").unwrap();
    assert_eq!(caller.refused().await, "111000");
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
