//! Faults of every kind, one after the other, while clients place calls of every kind: whatever was accepted ends once, is billed once and
//! reported once. A chapter is one world with its faults, which its seed decides. Short chapters here; `make campaign` runs a thousand faults on
//! each database (`scripts/campaign`).

mod clients;
mod faults;
pub mod nodes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::clients::Clients;
use self::faults::{Fault, JUMP, POSTGRES, SEVERAL, SQLITE};
use self::nodes::Nodes;
use crate::lives::World;
use crate::lives::checker::violations;

/// For calls in every state to be there when the next fault comes.
const BETWEEN_FAULTS: Duration = Duration::from_millis(1500);
/// One clock may be wrong one way, and another one the other way.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(2 * JUMP + 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    Sqlite,
    /// This many nodes on one PostgreSQL.
    Postgres(usize),
}

impl Setup {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(1) => "postgres",
            Self::Postgres(_) => "nodes",
        }
    }

    fn faults(self) -> Vec<Fault> {
        match self {
            Self::Sqlite => SQLITE.to_vec(),
            Self::Postgres(1) => POSTGRES.to_vec(),
            Self::Postgres(_) => [POSTGRES, SEVERAL].concat(),
        }
    }
}

/// A setting of the campaign.
fn told<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).map_or(otherwise, |value| {
        let value = value.parse();
        value.unwrap_or_else(|_| panic!("{name} is a number"))
    })
}

/// Every kind once, in an order of the seed's, before any comes again.
fn plan(rng: &mut StdRng, setup: Setup, count: usize) -> Vec<Fault> {
    let mut plan = Vec::new();
    while plan.len() < count {
        let mut kinds = setup.faults();
        while !kinds.is_empty() {
            plan.push(kinds.swap_remove(rng.random_range(0..kinds.len())));
        }
    }
    plan.truncate(count);
    plan
}

/// The first faults of the first chapter, unless `scripts/campaign` wants another one.
async fn chapter(setup: Setup) {
    let (seed, count) = (told("CAMPAIGN_SEED", 1), told("CAMPAIGN_FAULTS", 4));
    let mut rng = StdRng::seed_from_u64(seed);
    let plan = plan(&mut rng, setup, count);
    println!("campaign {} seed {seed}: {plan:?}", setup.name());
    let began = Instant::now();
    let world = World::new().await;
    let mut nodes = Nodes::start(setup, &world.settings()).await;
    World::prepare(nodes.database()).await;
    let clients = Clients::start(&world, nodes.doors(), seed);
    let mut takeovers = Vec::new();
    for fault in &plan {
        clients.some_more().await;
        tokio::time::sleep(BETWEEN_FAULTS.mul_f64(rng.random())).await;
        let came = nodes.suffer(*fault, &mut rng).await;
        println!(
            "  {:6.1} s  {fault:?}{}",
            began.elapsed().as_secs_f64(),
            came.map_or_else(String::new, |time| format!(
                ", taken over after {:.1} s",
                time.as_secs_f64()
            ))
        );
        takeovers.extend(came);
        nodes.revive().await;
    }
    clients.finish().await;
    let history = world.history(nodes.database(), CLOCKS_APART).await;
    let mut wrong = violations(&history);
    let accepted: BTreeSet<_> = history.accepted.iter().collect();
    let untold = history.records.keys().filter(|sid| !accepted.contains(sid));
    // Every request was repeated until it was answered.
    wrong.extend(untold.map(|sid| format!("{sid} is of a request that was answered otherwise")));
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for (outcome, _) in history.records.values() {
        *outcomes
            .entry(outcome.as_deref().unwrap_or("none"))
            .or_default() += 1;
    }
    takeovers.sort_unstable();
    let takeovers: Vec<_> = takeovers
        .iter()
        .map(|time| format!("{:.2}", time.as_secs_f64()))
        .collect();
    // For scripts/campaign.
    println!(
        "chapter {} seed {seed} faults {count} calls {} dialled {} callbacks {} ended-by-itself {} wrong {} takeovers {} outcomes {outcomes:?}",
        setup.name(),
        history.accepted.len(),
        history.dialled.len(),
        history.callbacks.len(),
        nodes.ended_by_themselves,
        wrong.len(),
        takeovers.join(","),
    );
    assert!(
        wrong.is_empty(),
        "{} wrong, seed {seed}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_whatever_happens_on_sqlite() {
    chapter(Setup::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_whatever_happens_on_postgres() {
    chapter(Setup::Postgres(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_whatever_happens_to_three_nodes() {
    chapter(Setup::Postgres(3)).await;
}

#[test]
fn a_seed_has_one_plan_and_every_kind_has_its_turn() {
    for setup in [Setup::Sqlite, Setup::Postgres(1), Setup::Postgres(3)] {
        let of = |seed| plan(&mut StdRng::seed_from_u64(seed), setup, 30);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert!(setup.faults().iter().all(|kind| of(7).contains(kind)));
    }
}
