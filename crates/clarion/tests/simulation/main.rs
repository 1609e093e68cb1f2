//! Dispatch, simulated: the real loops and call tasks of one to three nodes over a store, a telephone network and a clock that follow from a
//! seed. Thousands of histories with faults in the time of one real call, each of which can be run again:
//!
//! - `SIMULATION_SEED=N make simulation` runs one history and prints what happened in it;
//! - `SIMULATION_FROM=A SIMULATION_HISTORIES=N make simulation` runs N histories, from seed A on.

mod chance;
#[path = "../it/lives/checker.rs"]
mod checker;
mod history;
mod life;
mod line;
mod model;
mod network;
mod node;
mod node_store;
mod plan;
mod weather;
mod world;

use std::time::Instant;

use crate::history::run;

/// A number that whoever runs the tests has set.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
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
    let histories = setting("SIMULATION_HISTORIES").unwrap_or(200);
    let began = Instant::now();
    let (mut calls, mut invites) = (0, 0);
    let mut bad = Vec::new();
    for seed in from..from + histories {
        let verdict = run(seed, false);
        calls += verdict.calls;
        invites += verdict.invites;
        if !verdict.wrong.is_empty() {
            println!("SIMULATION_SEED={seed}: {:?}", verdict.wrong);
            bad.push(seed);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{histories} histories, {calls} calls, {invites} INVITEs in {seconds:.1} s; bad: {bad:?}");
    assert!(bad.is_empty());
}
