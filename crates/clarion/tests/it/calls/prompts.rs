//! Prompts that cannot be made for a while.

use std::path::Path;

use clarion::domain::outcome::Outcome;

use super::stage::Stage;
use crate::audio_files::{upload, wav};
use crate::support::eventually;

#[tokio::test]
async fn a_folder_that_is_away_for_a_while_costs_no_call() {
    let stage = Stage::new("[prompts]\nmemory_mb = 0\ndisk_mb = 0\nfailure_seconds = 1\n").await;
    let server = &stage.server;
    upload(server, "a.wav", &wav(1000)).await;
    let folder = server.folder.path().join("data/voices");
    let away = server.folder.path().join("data/voices-away");
    std::fs::rename(&folder, &away).unwrap();
    let mut sids = Vec::new();
    for number in 0..30 {
        let number = format!("138{number:07}0");
        sids.push(stage.call(&number, "\"mediaName\":\"a.wav\"").await);
    }
    eventually("the node says what is wrong", async || {
        let mut connection = server.client().connect().await.unwrap();
        let (_, body) = connection.get("/readyz").await.unwrap();
        body.contains("no audio file can be read")
    })
    .await;
    std::fs::rename(&away, &folder).unwrap();
    for sid in &sids {
        let report = stage.report_of(sid).await;
        assert!(report.contains("<state>0</state>"), "{report}");
    }
}

/// Removes the bytes of one uploaded file.
fn lose(folder: &Path, bytes: &[u8]) {
    let shards = std::fs::read_dir(folder).unwrap();
    let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
    let mut paths = files.map(|file| file.unwrap().path());
    let lost = paths.find(|path| std::fs::read(path).unwrap() == bytes);
    std::fs::remove_file(lost.expect("it was uploaded")).unwrap();
}

#[tokio::test]
async fn a_file_that_is_lost_costs_its_own_calls_only() {
    let more =
        "[calls]\nexpire_seconds = 4\n[prompts]\nmemory_mb = 0\ndisk_mb = 0\nfailure_seconds = 1\n";
    let stage = Stage::new(more).await;
    let server = &stage.server;
    let doomed = wav(2000);
    upload(server, "kept.wav", &wav(1000)).await;
    upload(server, "lost.wav", &doomed).await;
    lose(&server.folder.path().join("data/voices"), &doomed);
    let mut lost = Vec::new();
    for number in 0..10 {
        let number = format!("138{number:07}0");
        lost.push(stage.call(&number, "\"mediaName\":\"lost.wav\"").await);
    }
    let kept = stage
        .call("13900000000", "\"mediaName\":\"kept.wav\"")
        .await;
    let report = stage.report_of(&kept).await;
    assert!(report.contains("<state>0</state>"), "{report}");
    // All the while, it goes on.
    eventually("the calls without a prompt have expired", async || {
        let mut connection = server.client().connect().await.unwrap();
        let (status, body) = connection.get("/readyz").await.unwrap();
        assert_eq!(status, 200, "{body}");
        let mut expired = 0;
        for sid in &lost {
            expired += usize::from(stage.record(sid).await.outcome == Some(Outcome::Expired));
        }
        expired == lost.len()
    })
    .await;
    for sid in &lost {
        let report = stage.report_of(sid).await;
        assert!(report.contains("<state>2</state>"), "{report}");
    }
}
