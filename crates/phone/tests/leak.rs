//! Nothing is left over of a call: sockets, memory, tasks, dialogs. A process of its own, because other tests open files too.

#[path = "it/lab.rs"]
#[expect(dead_code, reason = "the lab serves other tests too")]
mod lab;

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use g711::Codec;
use phone::call::{CallRequest, Phone};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{Script, TestPhone};
use phone::trunk::Trunk;
use supervisor::Supervisor;
use tokio::task::JoinSet;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use lab::{PATIENCE, call, call_request, callee_config, caller, eventually, trunk_to};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Open files of this process.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Bytes that are allocated now. What the process holds from the system says little: an allocator keeps what was once needed.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}

/// Short calls, so many at once, each of them to an end of its own kind.
async fn rounds(phone: &Arc<Phone>, trunk: &Arc<Trunk>, calls: usize) {
    let mut under_way = JoinSet::new();
    for index in 0..calls {
        while under_way.len() >= 100 {
            under_way.join_next().await.unwrap().unwrap();
        }
        let suffix = ["0001", "0002", "0004", "0007", "0003"][index % 5];
        let request = CallRequest {
            number: format!("1380000{suffix}"),
            ring_time: Duration::from_millis(200),
            ..call_request(vec![PlaybackItem::Silence { frames: 2 }])
        };
        let (phone, trunk) = (Arc::clone(phone), Arc::clone(trunk));
        under_way.spawn(async move { call(&phone, &trunk, request).await });
    }
    while let Some(ended) = under_way.join_next().await {
        ended.unwrap();
    }
}

/// `LEAK_CALLS` asks for more than the quick run does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_thousands_of_calls_everything_is_as_it_was() {
    let calls: usize = std::env::var("LEAK_CALLS")
        .ok()
        .and_then(|calls| calls.parse().ok())
        .unwrap_or(2000);
    let (callee, mut heard) = TestPhone::start(
        &Supervisor::new(),
        &callee_config(&Codec::ALL),
        Script::of_number,
    )
    .await
    .unwrap();
    let (phone, trunk) = (Arc::new(caller()), trunk_to(callee.contact()).await);
    let drain = tokio::spawn(async move {
        let mut count = 0;
        while heard.recv().await.is_some() {
            count += 1;
        }
        count
    });
    // As many as are remembered at once while their timers run, so that the memory has its full size before it is measured.
    rounds(&phone, &trunk, 2000).await;
    settle(&trunk, &callee).await;
    let (files, bytes) = (open_files(), allocated());
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    rounds(&phone, &trunk, calls).await;
    settle(&trunk, &callee).await;
    eventually("tasks and sockets are gone", || {
        let alive = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        alive <= tasks && open_files() <= files
    })
    .await;
    let grown = allocated().saturating_sub(bytes);
    // Tables that have grown stay a little larger; something that is kept of every call would be much more.
    assert!(grown < 200_000, "{grown} bytes more after {calls} calls");
    println!("{calls} calls: {files} files and {tasks} tasks as before, {grown} bytes more");
    drop((trunk, callee, phone));
    assert!(drain.await.unwrap() > calls / 2);
}

/// Waits until dialogs and transactions are gone.
async fn settle(trunk: &Trunk, callee: &TestPhone) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let open = (trunk.signalling().open(), callee.open());
        if open == ((0, 0), (0, 0)) {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "left over, dialogs and transactions of caller and callee: {open:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
