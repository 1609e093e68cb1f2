//! What happens in a history, drawn from its seed before it begins.

use std::time::Duration;

use clarion::domain::claim::LeaseEnd;
use jiff::SignedDuration;

use crate::chance::Chance;
use crate::life::Blow;
use crate::notices::NoticeDraw;

/// Seconds by which a clock may be wrong.
const WRONG_BY: i64 = 7200;

pub const TRUNKS: [&str; 2] = ["east", "west"];

#[derive(Debug)]
pub struct Plan {
    pub lease_end: LeaseEnd,
    pub lease: u32,
    /// When the node at each place starts.
    pub nodes: Vec<Duration>,
    pub trunks: Vec<TrunkPlan>,
    pub calls_at_once: u32,
    pub ring: Duration,
    pub lead_in: Duration,
    pub calls: Vec<CallPlan>,
    pub faults: Vec<(Duration, Fault)>,
    pub strikes: Vec<Strike>,
}

#[derive(Debug, Clone, Copy)]
pub struct TrunkPlan {
    pub channels: u32,
    pub per_second: u32,
}

#[derive(Debug, Clone)]
pub struct CallPlan {
    pub at: Duration,
    pub callee: u32,
    pub urgent: bool,
    pub valid_for: u32,
    pub cancelled_after: Option<Duration>,
    pub notice: Option<NoticeDraw>,
}

#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Strike(usize, Blow),
    /// It is asked to stop, and another one starts there after a time.
    Stop(usize, Duration),
    /// One of its tasks panics.
    Panic(usize, &'static str),
    /// The clock of the machine is wrong by so many seconds for a while.
    Clock(usize, i64, Duration),
    /// Its prompts cannot be made.
    Prompts(usize, Duration),
    StoreDown(Duration),
    StoreShaky(Duration),
    StoreSlow(Duration),
    TrunkDown(usize, Duration),
    /// The operator stops all dialling for a while.
    StopAll(Duration),
}

/// A blow that falls when something has happened so many times before.
#[derive(Debug, Clone, Copy)]
pub struct Strike {
    pub what: &'static str,
    pub left: u32,
    pub blow: Blow,
}

/// What a process does, as it is noted.
const DEEDS: [&str; 14] = [
    "claim",
    "dialling",
    "leave",
    "invite",
    "ringing",
    "answered",
    "chosen",
    "end",
    "go-on",
    "requeue",
    "overdue",
    "orphans",
    "heartbeat",
    "share",
];

const TASKS: [&str; 6] = [
    "dispatch",
    "heartbeat",
    "housekeeping",
    "trunk-sharing",
    "calls-claimed",
    "call-recorded",
];

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let is_shared = !chance.one_in(4);
        let places = if is_shared { chance.number(1..4) } else { 1 };
        let length = chance.number(3_000..20_000);
        let calls = chance.number(1..24);
        let (faults, strikes) = match chance.below(8) {
            0 => (0, 0),
            _ => (chance.number(0..6), chance.number(0..4)),
        };
        let callees = chance.number(1..30);
        Self {
            lease_end: if is_shared {
                LeaseEnd::Time
            } else {
                LeaseEnd::Process
            },
            lease: chance.number(2..5),
            nodes: (0..places)
                .map(|place| chance.millis(0..1 + place * 6_000))
                .collect(),
            trunks: (0..chance.number(1..3))
                .map(|_| TrunkPlan {
                    channels: chance.number(1..8),
                    per_second: chance.number(2..30),
                })
                .collect(),
            calls_at_once: chance.number(1..20),
            ring: chance.millis(3_000..12_000),
            lead_in: chance.millis(0..4_000),
            calls: (0..calls)
                .map(|_| CallPlan::draw(&mut chance, length, callees))
                .collect(),
            faults: (0..faults)
                .map(|_| {
                    let at = chance.millis(0..length);
                    (at, Fault::draw(&mut chance, places as usize))
                })
                .collect(),
            strikes: (0..strikes).map(|_| Strike::draw(&mut chance)).collect(),
        }
    }

    /// How far what two clocks say of one moment may be apart. One that is wrong is set right by as much, also where its process began anew meanwhile: then it
    /// is wrong the other way.
    pub fn clocks_apart(&self) -> SignedDuration {
        let mut faults = self.faults.iter();
        if faults.any(|(_, fault)| matches!(fault, Fault::Clock(..))) {
            SignedDuration::from_secs(2 * WRONG_BY + 10)
        } else {
            SignedDuration::from_millis(10)
        }
    }

    /// From then on nothing goes wrong any more.
    pub fn calm_after(&self) -> Duration {
        let faults = self.faults.iter().map(|(at, fault)| *at + fault.lasts());
        let calls = self.calls.iter().map(|call| call.at);
        let starts = self.nodes.iter().copied();
        faults.chain(calls).chain(starts).max().unwrap_or_default()
    }
}

impl Strike {
    fn draw(chance: &mut Chance) -> Self {
        Self {
            what: chance.pick(&DEEDS),
            left: chance.number(0..12),
            blow: Blow::draw(chance),
        }
    }
}

impl Blow {
    fn draw(chance: &mut Chance) -> Self {
        if chance.one_in(2) {
            Self::Kill(chance.millis(100..8_000))
        } else {
            Self::Stall(chance.millis(500..12_000))
        }
    }
}

impl CallPlan {
    fn draw(chance: &mut Chance, length: u32, callees: u32) -> Self {
        Self {
            at: chance.millis(0..length),
            callee: chance.number(0..callees),
            urgent: chance.one_in(4),
            valid_for: chance.number(8..40),
            cancelled_after: chance.one_in(6).then(|| chance.millis(0..6_000)),
            notice: chance.one_in(2).then(|| NoticeDraw::draw(chance, callees)),
        }
    }
}

impl Fault {
    fn draw(chance: &mut Chance, places: usize) -> Self {
        let place = usize::try_from(chance.below(places as u64)).expect("a few");
        let time = chance.millis(100..8_000);
        match chance.below(16) {
            0..7 => Self::Strike(place, Blow::draw(chance)),
            7 => Self::Stop(place, time),
            8 => Self::Panic(place, chance.pick(&TASKS)),
            9 => Self::Clock(place, chance.pick(&[-WRONG_BY, -2, 2, WRONG_BY]), time),
            10 => Self::Prompts(place, time),
            11 => Self::StoreDown(time),
            12 => Self::StoreShaky(time),
            13 => Self::StoreSlow(time),
            14 => Self::TrunkDown(usize::try_from(chance.below(2)).expect("0 or 1"), time),
            _ => Self::StopAll(time),
        }
    }

    fn lasts(self) -> Duration {
        match self {
            Self::Strike(_, Blow::Kill(time) | Blow::Stall(time))
            | Self::Stop(_, time)
            | Self::Clock(_, _, time)
            | Self::Prompts(_, time)
            | Self::StoreDown(time)
            | Self::StoreShaky(time)
            | Self::StoreSlow(time)
            | Self::TrunkDown(_, time)
            | Self::StopAll(time) => time,
            Self::Panic(..) => Duration::ZERO,
        }
    }
}
