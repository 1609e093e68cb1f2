//! Whether this server may be sent new requests: it proves a durable write, has every task alive and room on its disk, and is not stopping.
//!
//! The answer comes within a second, whatever hangs. The proof is made once for all who ask within a second, and only one at a time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use supervisor::Supervisor;
use tokio::sync::{Mutex, watch};

use crate::claim_holds::{ClaimHolds, HoldKind};
use crate::disk_room::DiskRoom;
use crate::seldom::Seldom;
use crate::store::{StoreError, WriteProbe};

/// Whoever asks gets an answer within this time.
const TIME_LIMIT: Duration = Duration::from_millis(800);
/// A proof is good for this long.
const REMEMBERED: Duration = Duration::from_secs(1);

/// Why this server may not be sent new requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotReady {
    Stopping,
    /// Their names.
    TasksDown(String),
    ClaimsHeld(HoldKind, String),
    Disk(String),
    /// The database does not take writes.
    NoWrite(String),
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopping => f.write_str("stopping"),
            Self::TasksDown(names) => write!(f, "down: {names}"),
            Self::ClaimsHeld(_, reason) => write!(f, "no calls are claimed: {reason}"),
            Self::Disk(why) | Self::NoWrite(why) => f.write_str(why),
        }
    }
}

/// A proof of a durable write, under way or made: `None` until its result is there.
type Proof = watch::Receiver<Option<Result<(), String>>>;

#[derive(Debug)]
pub struct Readiness {
    store: Arc<dyn WriteProbe>,
    supervisor: Supervisor,
    holds: ClaimHolds,
    disk: Arc<DiskRoom>,
    stopping: AtomicBool,
    proof: Mutex<Option<(Instant, Proof)>>,
}

impl Readiness {
    pub fn new(
        store: Arc<dyn WriteProbe>,
        supervisor: Supervisor,
        holds: ClaimHolds,
        disk: Arc<DiskRoom>,
    ) -> Self {
        Self {
            store,
            supervisor,
            holds,
            disk,
            stopping: AtomicBool::new(false),
            proof: Mutex::default(),
        }
    }

    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// What is known without asking a disk.
    pub fn known(&self) -> Result<(), NotReady> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(NotReady::Stopping);
        }
        let down = self.supervisor.down();
        if !down.is_empty() {
            return Err(NotReady::TasksDown(down.join(", ")));
        }
        if let Some((kind, reason)) = self.holds.reasons().into_iter().next() {
            return Err(NotReady::ClaimsHeld(kind, reason));
        }
        Ok(())
    }

    pub async fn check(&self) -> Result<(), NotReady> {
        self.known()?;
        let proven = tokio::time::timeout(TIME_LIMIT, async {
            self.disk.readiness().await.map_err(NotReady::Disk)?;
            self.prove_write().await.map_err(NotReady::NoWrite)
        });
        let in_time = proven.await;
        in_time.unwrap_or_else(|_| {
            let why = "the database did not take a write in time";
            Err(NotReady::NoWrite(why.to_owned()))
        })
    }

    async fn prove_write(&self) -> Result<(), String> {
        let mut proof = self.current_proof().await;
        let proven = proof.wait_for(Option::is_some).await;
        let proven = proven.map_err(|_| "the proof of a write broke down".to_owned())?;
        proven.clone().unwrap_or(Ok(()))
    }

    /// The proof that is under way, or was made a moment ago; otherwise a new one. It is a task of its own: whoever waits for it may give
    /// up, and the next one who asks does not start a second one beside it.
    async fn current_proof(&self) -> Proof {
        static FAILURES: Seldom = Seldom::new();
        let mut current = self.proof.lock().await;
        if let Some((begun, proof)) = &*current {
            let is_under_way = proof.borrow().is_none() && proof.has_changed().is_ok();
            if is_under_way || begun.elapsed() < REMEMBERED {
                return proof.clone();
            }
        }
        let (result, proof) = watch::channel(None);
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let proven = store.ready().await.map_err(|error| {
                if let Some(unsaid) = FAILURES.say() {
                    tracing::warn!(%error, unsaid, "not ready");
                }
                let why = match error {
                    StoreError::NoRoom => "there is no room on the disk of the database",
                    _ => "the database does not take writes",
                };
                why.to_owned()
            });
            result.send_replace(Some(proven));
        });
        *current = Some((Instant::now(), proof.clone()));
        proof
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc;

    use async_trait::async_trait;
    use tokio::time::{Instant, advance};

    use super::*;

    /// What a load balancer waits for.
    const IN_TIME: Duration = Duration::from_millis(999);

    /// It takes writes, or never answers.
    #[derive(Debug, Default)]
    struct Probed {
        hangs: bool,
        times: AtomicU32,
    }

    #[async_trait]
    impl WriteProbe for Probed {
        async fn ready(&self) -> Result<(), StoreError> {
            self.times.fetch_add(1, Ordering::Relaxed);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    }

    fn readiness(store: &Arc<Probed>, disk: DiskRoom) -> Arc<Readiness> {
        let (store, supervisor) = (Arc::clone(store), Supervisor::new());
        let holds = ClaimHolds::default();
        let disk = Arc::new(disk);
        Arc::new(Readiness::new(store, supervisor, holds, disk))
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_never_answers_is_not_ready_within_a_second_and_asked_once() {
        let store = Arc::new(Probed {
            hangs: true,
            ..Probed::default()
        });
        let readiness = readiness(&store, DiskRoom::that_has(|| Ok(500)));
        for _ in 0..3 {
            let asked = Instant::now();
            let answers = tokio::join!(readiness.check(), readiness.check());
            for answer in [answers.0, answers.1] {
                assert!(matches!(answer, Err(NotReady::NoWrite(_))), "{answer:?}");
            }
            assert!(asked.elapsed() <= IN_TIME, "{:?}", asked.elapsed());
        }
        assert_eq!(store.times.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_never_answers_is_not_ready_within_a_second() {
        let (let_go, hangs) = mpsc::channel::<()>();
        let hangs = std::sync::Mutex::new(hangs);
        let disk = DiskRoom::that_has(move || {
            let _ = hangs.lock().unwrap().recv();
            Ok(500)
        });
        let readiness = readiness(&Arc::default(), disk);
        for _ in 0..2 {
            let asked = Arc::clone(&readiness);
            let answer = tokio::spawn(async move { asked.check().await });
            tokio::task::yield_now().await;
            // The clock stands still while the thread hangs.
            advance(IN_TIME).await;
            let answer = answer.await.unwrap();
            assert!(matches!(answer, Err(NotReady::Disk(_))), "{answer:?}");
        }
        drop(let_go);
        while readiness.check().await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_not_ready() {
        let readiness = readiness(&Arc::default(), DiskRoom::that_has(|| Ok(0)));
        let answer = readiness.check().await;
        assert!(matches!(answer, Err(NotReady::Disk(_))), "{answer:?}");
    }
}
