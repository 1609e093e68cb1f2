use std::sync::atomic::AtomicU32;
use std::sync::mpsc;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Beats until the test is over.
async fn beat_forever(watch: Watch) {
    loop {
        watch.heartbeat();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + 30 * SECOND;
    while !condition() {
        assert!(Instant::now() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_task_that_panics_is_down_for_a_pause_and_then_up_again() {
    let supervisor = Supervisor::new();
    let starts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let _guard = supervisor.restart("dispatch", None, move |watch| {
        counted.fetch_add(1, Ordering::Relaxed);
        beat_forever(watch)
    });
    until("it runs", || starts.load(Ordering::Relaxed) == 1).await;
    assert!(supervisor.down().is_empty());
    assert!(supervisor.request_panic("dispatch"));
    until("it is down", || supervisor.down() == ["dispatch"]).await;
    until("it is up again", || supervisor.down().is_empty()).await;
    assert_eq!(starts.load(Ordering::Relaxed), 2);
    assert!(!supervisor.request_panic("nobody"));
}

#[tokio::test]
async fn a_task_that_waits_for_ever_can_be_made_to_panic_where_it_waits() {
    let supervisor = Supervisor::new();
    let starts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let _guard = supervisor.restart("sweep", None, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>()
    });
    assert!(supervisor.request_panic_at_once("sweep"));
    until("it is down", || supervisor.down() == ["sweep"]).await;
    until("it is started again", || {
        starts.load(Ordering::Relaxed) == 2
    })
    .await;
    let _needed = supervisor.require("listener", None, |_| std::future::pending::<()>());
    assert!(supervisor.request_panic_at_once("listener"));
    let failure = supervisor.failed().await;
    assert_eq!(failure.task, "listener");
    assert!(failure.reason.contains("was asked to panic"), "{failure}");
}

#[tokio::test]
async fn a_task_that_ends_unasked_is_started_again_and_one_that_is_asked_to_is_not() {
    let supervisor = Supervisor::new();
    let starts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let guard = supervisor.restart("billing", None, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async {}
    });
    until("it is started again", || {
        starts.load(Ordering::Relaxed) >= 2
    })
    .await;
    supervisor.stop();
    guard.ended().await;
}

/// Time goes on by itself where nobody has anything else to do, so a pause that is waited for shows.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_to_be_started_again_ends_at_once_when_all_stop() {
    let supervisor = Supervisor::new();
    let guard = supervisor.restart("registrations", None, |_| async {});
    until("it is down", || supervisor.down() == ["registrations"]).await;
    let stopped = tokio::time::Instant::now();
    supervisor.stop();
    guard.ended().await;
    assert!(
        stopped.elapsed() < FIRST_PAUSE / 2,
        "{:?}",
        stopped.elapsed()
    );
    assert!(supervisor.tasks().is_empty());
}

#[tokio::test]
async fn dropping_the_guard_ends_the_task_and_forgets_it() {
    let supervisor = Supervisor::new();
    let alive = Arc::new(());
    let held = Arc::downgrade(&alive);
    let guard = supervisor.restart("health", None, move |watch| {
        let alive = Arc::clone(&alive);
        async move {
            beat_forever(watch).await;
            drop(alive);
        }
    });
    assert_eq!(supervisor.tasks().len(), 1);
    drop(guard);
    assert!(supervisor.tasks().is_empty());
    until("what it held is gone", || held.strong_count() == 0).await;
}

#[tokio::test]
async fn a_required_thread_that_panics_is_a_failure_that_names_it() {
    let supervisor = Supervisor::new();
    let thread = supervisor
        .require_thread("pacer", Some(SECOND), |watch| {
            loop {
                watch.heartbeat();
                thread::sleep(Duration::from_millis(1));
            }
        })
        .unwrap();
    assert!(supervisor.request_panic("pacer"));
    let failure = supervisor.failed().await;
    assert_eq!(failure.task, "pacer");
    assert!(failure.reason.contains("asked to panic"), "{failure}");
    assert_eq!(supervisor.down(), ["pacer"]);
    thread.join().unwrap();
}

#[tokio::test]
async fn a_required_task_that_ends_unasked_is_a_failure() {
    let supervisor = Supervisor::new();
    let _guard = supervisor.require("listener", None, |_| async {});
    let failure = supervisor.failed().await;
    assert_eq!(failure.to_string(), "the task `listener` ended unasked");
}

#[tokio::test]
async fn a_thread_that_was_released_ends_in_good_order() {
    let supervisor = Supervisor::new();
    let (inbox, work) = mpsc::channel::<()>();
    let thread = supervisor
        .require_thread("pacer", None, move |watch| {
            while work.recv().is_ok() {}
            watch.release();
        })
        .unwrap();
    drop(inbox);
    thread.join().unwrap();
    assert!(supervisor.tasks().is_empty());
    assert!(supervisor.shared.failure.borrow().is_none());
}

#[tokio::test]
async fn a_thread_that_may_be_started_again_is() {
    let supervisor = Supervisor::new();
    let (runs, ran) = mpsc::channel();
    let thread = supervisor
        .restart_thread("checkpoint", None, move |watch| {
            if runs.send(()).is_err() {
                watch.release();
                return;
            }
            panic!("as it happens");
        })
        .unwrap();
    ran.recv().unwrap();
    until("it is down", || supervisor.down() == ["checkpoint"]).await;
    ran.recv().unwrap();
    drop(ran);
    tokio::task::spawn_blocking(move || thread.join().unwrap())
        .await
        .unwrap();
    assert!(supervisor.tasks().is_empty());
}

#[tokio::test]
async fn a_task_that_stalls_counts_as_down_until_it_beats_again() {
    let supervisor = Supervisor::new();
    let (inbox, work) = mpsc::channel::<()>();
    let patience = Duration::from_millis(20);
    let thread = supervisor
        .require_thread("receiver", Some(patience), move |watch| {
            while work.recv().is_ok() {
                watch.heartbeat();
            }
            watch.release();
        })
        .unwrap();
    until("it has stalled", || supervisor.down() == ["receiver"]).await;
    until("it beats", || {
        inbox.send(()).unwrap();
        supervisor.down().is_empty()
    })
    .await;
    drop(inbox);
    thread.join().unwrap();
}

#[tokio::test]
async fn several_tasks_of_one_name_are_up_only_together() {
    let supervisor = Supervisor::new();
    let _one = supervisor.restart("sip-listener", None, beat_forever);
    let _two = supervisor.require("sip-listener", None, |_| async {});
    supervisor.failed().await;
    assert_eq!(
        supervisor.tasks(),
        [TaskState {
            name: "sip-listener".to_owned(),
            up: false
        }]
    );
}

#[tokio::test]
async fn a_detached_task_ends_by_itself_and_is_forgotten_then() {
    let supervisor = Supervisor::new();
    let (finish, finished) = watch::channel(false);
    supervisor
        .restart("registration", None, move |watch| {
            let mut finished = finished.clone();
            async move {
                let _ = finished.wait_for(|finished| *finished).await;
                watch.release();
            }
        })
        .detach();
    assert_eq!(supervisor.tasks().len(), 1);
    finish.send(true).unwrap();
    until("it is forgotten", || supervisor.tasks().is_empty()).await;
}

#[tokio::test]
async fn a_panic_is_contained_and_says_what_happened() {
    let harmless = contain(async {
        tokio::task::yield_now().await;
        7
    });
    assert_eq!(harmless.await, Ok(7));
    let fatal = contain(async {
        tokio::task::yield_now().await;
        panic!("of all things");
    });
    let fatal: Result<(), String> = fatal.await;
    assert_eq!(fatal, Err("of all things".to_owned()));
}
