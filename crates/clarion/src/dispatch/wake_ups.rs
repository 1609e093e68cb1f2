//! What wakes the dispatcher, and how soon it looks at the queue then. Each look is a question to the database.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::claiming::QueueRest;

/// After the end of a call, while nothing waits.
const NO_HURRY: Duration = Duration::from_millis(10);
/// After a call was queued, while no trunk can carry one.
const ALL_FULL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct WakeUps {
    /// Somebody has put a call into the queue, or has opened a trunk.
    pub queued: Arc<Notify>,
    /// Another node has put a call into the queue.
    pub woken: Arc<Notify>,
    /// A call has ended, or was put back.
    pub room: Arc<Notify>,
}

impl WakeUps {
    pub fn new(queued: Arc<Notify>, woken: Arc<Notify>) -> Self {
        Self {
            queued,
            woken,
            room: Arc::default(),
        }
    }

    /// Until it is worth while to look again, after a look that has left this much. While nothing waits for the room that a call leaves, there is no
    /// hurry: what its end has put into the queue is found a moment later, with that of others. While every trunk is full, calls that are queued
    /// cannot start before one of them has room.
    pub async fn next(&self, pause: Duration, rest: QueueRest) {
        let queued = async {
            self.queued.notified().await;
            if rest == QueueRest::TrunksFull {
                sleep(ALL_FULL).await;
            }
        };
        let room = async {
            self.room.notified().await;
            if rest == QueueRest::Nothing {
                sleep(NO_HURRY).await;
            }
        };
        tokio::select! {
            biased;
            () = queued => {}
            () = self.woken.notified() => {}
            () = room => {}
            () = sleep(pause) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    fn wake_ups() -> WakeUps {
        WakeUps::new(Arc::default(), Arc::default())
    }

    async fn waited(wake_ups: &WakeUps, rest: QueueRest) -> Duration {
        let began = Instant::now();
        wake_ups.next(PAUSE, rest).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_queued_call_is_looked_for_at_once_unless_every_trunk_is_full() {
        let wake_ups = wake_ups();
        for (rest, expected) in [
            (QueueRest::Nothing, Duration::ZERO),
            (QueueRest::Waits, Duration::ZERO),
            (QueueRest::TrunksFull, ALL_FULL),
        ] {
            wake_ups.queued.notify_one();
            assert_eq!(waited(&wake_ups, rest).await, expected, "{rest:?}");
        }
        let nothing = waited(&wake_ups, QueueRest::TrunksFull).await;
        assert_eq!(nothing, PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_used_at_once_while_something_waits_for_it() {
        let wake_ups = wake_ups();
        for (rest, expected) in [
            (QueueRest::Nothing, NO_HURRY),
            (QueueRest::Waits, Duration::ZERO),
            (QueueRest::TrunksFull, Duration::ZERO),
        ] {
            wake_ups.room.notify_one();
            assert_eq!(waited(&wake_ups, rest).await, expected, "{rest:?}");
        }
        // Also where a call was queued just before.
        wake_ups.queued.notify_one();
        let room = Arc::clone(&wake_ups.room);
        let freed = tokio::spawn(async move {
            sleep(Duration::from_millis(5)).await;
            room.notify_one();
        });
        let waited = waited(&wake_ups, QueueRest::TrunksFull).await;
        assert!(waited < ALL_FULL, "{waited:?}");
        freed.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_calls_that_are_queued_while_every_trunk_is_full_cost_a_look_every_20_ms() {
        let wake_ups = wake_ups();
        let queued = Arc::clone(&wake_ups.queued);
        let accepting = tokio::spawn(async move {
            for _ in 0..1000 {
                queued.notify_one();
                sleep(Duration::from_millis(1)).await;
            }
        });
        let mut looks = 0;
        while !accepting.is_finished() {
            wake_ups.next(PAUSE, QueueRest::TrunksFull).await;
            looks += 1;
        }
        assert!((10..=52).contains(&looks), "{looks}");
    }
}
