//! Prompts that cannot be made for a while.

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
        body.contains("the voice file cannot be read")
    })
    .await;
    std::fs::rename(&away, &folder).unwrap();
    for sid in &sids {
        let report = stage.report_of(sid).await;
        assert!(report.contains("<state>0</state>"), "{report}");
    }
}
