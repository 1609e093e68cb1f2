//! What happens to nodes and to their database.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::Signal;

use super::nodes::Nodes;
use crate::support::proxy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9`.
    Kill,
    /// It is asked to stop, as by systemd.
    Terminate,
    /// It stands still for longer than its lease, and goes on.
    StandStill,
    ClockJumpsAhead,
    ClockJumpsBack,
    /// The disk of the database is full, and is not any more after a while.
    DiskFull,
    /// The database server dies at once, and comes back.
    DatabaseKilled,
    /// Nothing passes between one node and the database.
    Silence,
    /// Nothing passes between any node and the database.
    SilenceForAll,
    /// What is asked is done, and no answer comes back.
    NoAnswers,
    /// Connections are closed.
    Cut,
    /// What is asked is done, and the connection is closed instead of an answer.
    CutAfterAsking,
    /// All nodes die at once.
    KillAll,
}

pub const SQLITE: &[Fault] = &[
    Fault::Kill,
    Fault::Terminate,
    Fault::StandStill,
    Fault::ClockJumpsAhead,
    Fault::ClockJumpsBack,
    Fault::DiskFull,
];

pub const POSTGRES: &[Fault] = &[
    Fault::Kill,
    Fault::Terminate,
    Fault::StandStill,
    Fault::ClockJumpsAhead,
    Fault::ClockJumpsBack,
    Fault::DiskFull,
    Fault::DatabaseKilled,
    Fault::Silence,
    Fault::NoAnswers,
    Fault::Cut,
    Fault::CutAfterAsking,
];

/// Where there are several nodes, besides.
pub const SEVERAL: &[Fault] = &[Fault::Kill, Fault::KillAll, Fault::SilenceForAll];

/// By so many seconds a clock jumps.
pub const JUMP: i64 = 7200;

/// From the first to the second, in milliseconds.
fn between(rng: &mut StdRng, least: u64, most: u64) -> Duration {
    Duration::from_millis(rng.random_range(least..=most))
}

impl Nodes {
    /// How long the calls of a node that has died or stands still were held by it, where others could take them.
    pub async fn suffer(&mut self, fault: Fault, rng: &mut StdRng) -> Option<Duration> {
        let victim = rng.random_range(0..self.count());
        match fault {
            Fault::Kill => {
                let held = self.kill(victim).await;
                return self.taken_over(held).await;
            }
            Fault::Terminate => self.terminate(victim).await,
            Fault::StandStill => {
                let held = self.signal(victim, Signal::STOP);
                let taken = self.taken_over(held).await;
                tokio::time::sleep(
                    between(rng, 3500, 6000).saturating_sub(taken.unwrap_or_default()),
                )
                .await;
                self.signal(victim, Signal::CONT);
                return taken;
            }
            Fault::ClockJumpsAhead => self.jump(victim, JUMP, between(rng, 500, 4000)).await,
            Fault::ClockJumpsBack => self.jump(victim, -JUMP, between(rng, 500, 4000)).await,
            Fault::DiskFull => self.fill_disk(between(rng, 200, 4000)).await,
            Fault::DatabaseKilled => self.kill_database(between(rng, 0, 5000)).await,
            Fault::Silence => {
                let hit = self.proxies(Some(victim));
                disturb(&hit, proxy::Fault::Stall, between(rng, 200, 6000)).await;
            }
            Fault::SilenceForAll => {
                let hit = self.proxies(None);
                disturb(&hit, proxy::Fault::Stall, between(rng, 200, 6000)).await;
            }
            Fault::NoAnswers => {
                let hit = self.proxies(Some(victim));
                disturb(&hit, proxy::Fault::StallAnswers, between(rng, 200, 4000)).await;
            }
            Fault::Cut => {
                let hit = self.proxies(Some(victim));
                disturb(&hit, proxy::Fault::Cut, between(rng, 0, 3000)).await;
            }
            Fault::CutAfterAsking => {
                let hit = self.proxies(Some(victim));
                disturb(&hit, proxy::Fault::CutAfter, between(rng, 100, 2000)).await;
            }
            Fault::KillAll => {
                for node in 0..self.count() {
                    self.kill(node).await;
                }
                tokio::time::sleep(between(rng, 0, 4000)).await;
            }
        }
        None
    }
}

async fn disturb(proxies: &[&proxy::Proxy], fault: proxy::Fault, time: Duration) {
    for proxy in proxies {
        proxy.all(fault);
    }
    tokio::time::sleep(time).await;
    for proxy in proxies {
        proxy.all(proxy::Fault::Pass);
    }
}
