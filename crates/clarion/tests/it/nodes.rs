//! Several processes on one PostgreSQL: what they share is never exceeded, and keeps nobody waiting who could be called.

use std::time::Duration;

use phone::test_phone::Script;
use supervisor::Supervisor;

use crate::audio_files::wav;
use crate::calls::stage::{Customer, register, report_of, settings};
use crate::support::child::{ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{APP, SID, clock, eventually, postgres};

/// A customer of a node that is a process.
async fn customer(node: &ChildServer, sid: &str, app: &str, receiver: &Receiver) -> Customer {
    Customer::connect(&node.client, sid, app, &clock().wall(), receiver.url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_starves_at_a_trunk_with_fewer_channels_than_nodes() {
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(100))).await;
    let trunk = telephone.trunk("narrow", "channels = 1\ncalls_per_second = 100");
    let settings = settings("", &trunk);
    let url = postgres::empty_database().await;
    let first = Installation::with_settings(Some(url), &settings).await;
    let others = [first.another_node(&settings), first.another_node(&settings)];
    let store = first.database.open(&Supervisor::new()).await.unwrap();
    let mut accounts = Vec::new();
    for digit in 1..=9 {
        let limit = |account: &mut clarion::domain::account::Account| {
            account.limits.calls_at_once = Some(1);
        };
        accounts.push(register(&*store, digit, limit).await);
    }
    let nodes = [
        first.start().await,
        others[0].start().await,
        others[1].start().await,
    ];
    let receiver = Receiver::start(vec![ok()]).await;
    let mut sids = Vec::new();
    for (place, account) in accounts.iter().enumerate() {
        let mut customer = customer(&nodes[place % 3], account, account, &receiver).await;
        for call in 0..2 {
            let number = format!("138{place:04}{call:04}");
            sids.push(customer.call(&number, "\"mediaTxt\":\"hello\"").await);
        }
    }
    for sid in &sids {
        let report = report_of(&receiver, sid).await;
        assert!(report.contains("<state>0</state>"), "{report}");
    }
    assert_eq!(telephone.peak_concurrency(), 1);
    assert_eq!(telephone.dialled().len(), sids.len(), "each once");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_under_load_exceeds_no_channels() {
    const CHANNELS: usize = 10;
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(300))).await;
    let trunk = format!("channels = {CHANNELS}\ncalls_per_second = 100");
    let settings = settings("", &telephone.trunk("shared", &trunk));
    let url = postgres::empty_database().await;
    let first = Installation::with_settings(Some(url), &settings).await;
    let second = first.another_node(&settings);
    let busy = first.start().await;
    let receiver = Receiver::start(vec![ok()]).await;
    let mut customer = customer(&busy, SID, APP, &receiver).await;
    let mut sids = Vec::new();
    for number in 0..60 {
        let number = format!("138{number:08}");
        sids.push(customer.call(&number, "\"mediaTxt\":\"hello\"").await);
    }
    eventually("all channels are in use", async || {
        telephone.peak_concurrency() == CHANNELS
    })
    .await;
    let _late = second.start().await;
    for sid in &sids {
        let report = report_of(&receiver, sid).await;
        assert!(report.contains("<state>0</state>"), "{report}");
    }
    assert_eq!(telephone.peak_concurrency(), CHANNELS);
}

/// Its folder of audio files is not the one that the others share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_audio_files_leaves_the_calls_to_others_and_says_so() {
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_secs(1))).await;
    let trunk = telephone.trunk("shared", "channels = 10\ncalls_per_second = 100");
    let settings = settings(
        "[prompts]\nmemory_mb = 0\ndisk_mb = 0\nfailure_seconds = 1\n",
        &trunk,
    );
    let url = postgres::empty_database().await;
    let whole = Installation::with_settings(Some(url), &settings).await;
    let lacking = whole.another_node(&settings);
    let file = whole.folder.path().join("alarm.wav");
    std::fs::write(&file, wav(1000)).unwrap();
    whole
        .says(&["audio", "add", "--app", APP, file.to_str().unwrap()])
        .await;
    let nodes = [whole.start().await, lacking.start().await];
    let receiver = Receiver::start(vec![ok()]).await;
    let mut sids = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        let mut customer = customer(node, SID, APP, &receiver).await;
        for number in 0..30 {
            let number = format!("138{place:04}{number:04}");
            sids.push(customer.call(&number, "\"mediaName\":\"alarm.wav\"").await);
        }
    }
    eventually("the node without the files says so", async || {
        let mut connection = nodes[1].client.connect().await.unwrap();
        let (status, body) = connection.get("/readyz").await.unwrap();
        status == 503 && body.contains("no audio file can be read")
    })
    .await;
    for sid in &sids {
        let report = report_of(&receiver, sid).await;
        assert!(report.contains("<state>0</state>"), "{report}");
    }
}
