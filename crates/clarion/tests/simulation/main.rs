//! Dispatch, simulated: the real loops and call tasks of one to three nodes over a store, a telephone network and a clock that follow from a
//! seed. Thousands of histories with faults in the time of a few real calls, each of which can be run again:
//!
//! - `make simulation SIMULATION_SEED=N` runs one history and prints what happened in it;
//! - `make simulation SIMULATION_FROM=A SIMULATION_HISTORIES=N` runs N histories, from seed A on.

mod chance;
#[path = "../it/lives/checker.rs"]
mod checker;
mod databases;
#[path = "../it/lives/events.rs"]
mod events;
mod history;
mod life;
mod line;
mod model;
mod network;
mod node;
mod node_store;
mod notices;
mod panics;
mod plan;
#[path = "../it/lives/plans.rs"]
mod plans;
#[path = "../it/lives/records.rs"]
mod records;
mod support;
mod weather;
mod world;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use clarion::dispatch::planted::{PlantedBug, plant};

use crate::history::run;

/// Histories of a short run, on one thread.
const FEW: u64 = 250;
/// A planted bug is found within this many histories.
const ENOUGH: u64 = 1500;

/// A number that whoever runs the tests has set.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

#[test]
fn whatever_goes_wrong_every_call_ends_once() {
    if let Some(seed) = setting("SIMULATION_SEED") {
        let verdict = run(seed, true);
        println!("{}", verdict.lines.join("\n"));
        assert!(verdict.wrong.is_empty(), "{:#?}", verdict.wrong);
        return;
    }
    let from = setting("SIMULATION_FROM").unwrap_or(0);
    let until = from + setting("SIMULATION_HISTORIES").unwrap_or(FEW);
    let threads = setting("SIMULATION_THREADS").unwrap_or(1);
    let (next, calls, invites) = (
        AtomicU64::new(from),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let bad = AtomicUsize::new(0);
    let began = Instant::now();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= until {
                return;
            }
            let verdict = run(seed, false);
            calls.fetch_add(verdict.calls, Ordering::Relaxed);
            invites.fetch_add(verdict.invites, Ordering::Relaxed);
            if !verdict.wrong.is_empty() {
                println!("SIMULATION_SEED={seed}: {:#?}", verdict.wrong);
                bad.fetch_add(1, Ordering::Relaxed);
            }
            if (seed + 1) % 1000 == 0 {
                let seconds = began.elapsed().as_secs();
                println!(
                    "{} histories in {seconds} s; SIMULATION_FROM={} goes on",
                    seed + 1 - from,
                    seed + 1
                );
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (calls, invites) = (calls.into_inner(), invites.into_inner());
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} histories, {calls} calls, {invites} INVITEs in {seconds:.0} s",
        until - from
    );
    assert!(calls > 0 && invites > 0);
    assert_eq!(
        bad.into_inner(),
        0,
        "histories in which something went wrong"
    );
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in 0..30 {
        let (first, second) = (run(seed, false), run(seed, true));
        assert_eq!(first.fingerprint, second.fingerprint, "seed {seed}");
        assert_ne!(first.fingerprint, run(seed + 1, false).fingerprint);
        assert!(second.lines.len() > 10);
    }
}

/// What is wrong in the first history in which the bug shows.
fn first_found(bug: PlantedBug) -> String {
    plant(Some(bug));
    let found = (0..ENOUGH).find_map(|seed| {
        let wrong = run(seed, false).wrong;
        (!wrong.is_empty()).then(|| format!("SIMULATION_SEED={seed}: {}", wrong.join("; ")))
    });
    plant(None);
    println!("{bug:?}: {found:?}");
    found.unwrap_or_else(|| panic!("{bug:?} was not found in {ENOUGH} histories"))
}

#[test]
fn a_lease_that_is_not_looked_at_before_the_invite_is_found() {
    let found = first_found(PlantedBug::LeaseNotChecked);
    // Or what follows from it: another node has taken the call over, and dials it or writes it down.
    let signs = ["after the lease", "was dialled again", "has no line"];
    let is_seen = signs.iter().any(|sign| found.contains(sign));
    assert!(is_seen, "{found}");
}

#[test]
fn an_invite_that_leaves_before_its_commit_is_found() {
    let found = first_found(PlantedBug::InviteBeforeCommit);
    assert!(found.contains("was dialled"), "{found}");
}

#[test]
fn a_share_that_is_not_waited_for_is_found() {
    let found = first_found(PlantedBug::ShareNotAwaited);
    assert!(found.contains("channels"), "{found}");
}

#[test]
fn a_notice_that_is_given_up_because_of_a_crash_is_found() {
    let found = first_found(PlantedBug::InterruptionEndsNotice);
    assert!(found.contains("ended as exhausted"), "{found}");
}
