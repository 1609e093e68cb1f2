//! Steady load for a while: memory stays flat and the write-ahead log bounded.
//!
//! A short run here; `make soak` runs for ten minutes (SOAK_SECONDS).

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::child::{Caller, Installation};

const CONNECTIONS: usize = 8;
/// What may come on top of the memory after the first quarter: caches that are still filling, the allocator's slack.
const SLACK: u64 = 96 << 20;
/// 256 MiB is where the writer starts the log anew whatever it costs; one batch and one pass later at the latest.
const LONGEST_LOG: u64 = 320 << 20;

fn duration() -> Duration {
    let seconds = std::env::var("SOAK_SECONDS").map_or(6, |seconds| {
        seconds.parse().expect("SOAK_SECONDS is a number")
    });
    Duration::from_secs(seconds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_for_a_while_keeps_memory_flat_and_the_log_bounded() {
    let installation = Installation::new(None).await;
    let server = installation.start().await;
    let end = Instant::now() + duration();
    let mut callers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let client = server.client.clone();
        callers.spawn(async move {
            let mut caller = Caller::connect(&client).await.unwrap();
            let mut accepted = 0_u64;
            while Instant::now() < end {
                caller.place_call().await.unwrap();
                accepted += 1;
            }
            accepted
        });
    }
    tokio::time::sleep_until(end - duration() * 3 / 4).await;
    let (warm, mut memory_limit, mut log_limit) = (server.memory(), 0, 0);
    while Instant::now() < end {
        memory_limit = memory_limit.max(server.memory());
        let log = std::fs::metadata(installation.folder.path().join("clarion.db-wal"));
        log_limit = log_limit.max(log.map_or(0, |log| log.len()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let accepted: u64 = callers.join_all().await.into_iter().sum();
    println!(
        "{accepted} calls accepted in {:?}; memory {warm} bytes after a quarter, {memory_limit} at most; log {log_limit} bytes at most",
        duration()
    );
    assert!(accepted > 0);
    assert!(
        memory_limit < warm + SLACK,
        "memory grew from {warm} to {memory_limit} bytes"
    );
    assert!(log_limit < LONGEST_LOG, "the log grew to {log_limit} bytes");
}
