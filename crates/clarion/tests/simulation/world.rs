//! Everything around the nodes: the store that they share, the telephone network, what clients were promised; and what was seen to be wrong.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use clarion::domain::claim::LeaseEnd;
use clarion::domain::ended_call::EndedCall;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::chance::Chance;
use crate::checker::{History, violations};
use crate::life::Life;
use crate::model::QueueModel;
use crate::network::Network;
use crate::plan::Strike;
use crate::weather::Weather;

#[derive(Debug)]
pub struct World {
    began: Instant,
    state: Mutex<WorldState>,
    /// Wakes the node at each place when another one has queued a call.
    pub wakers: Vec<Arc<Notify>>,
}

#[derive(Debug)]
pub struct WorldState {
    pub model: QueueModel,
    pub network: Network,
    pub weather: Weather,
    pub chance: Chance,
    pub switches: Vec<(String, String)>,
    /// callSids that clients were given.
    pub accepted: Vec<String>,
    pub wrong: Vec<String>,
    pub log: Log,
    /// The process at each place.
    pub lives: Vec<Life>,
    /// Blows that fall when something happens.
    pub strikes: Vec<Strike>,
}

/// What happened, in order: a number that tells one history from another, and lines where somebody wants to read them.
#[derive(Debug, Default)]
pub struct Log {
    hasher: DefaultHasher,
    pub lines: Option<Vec<String>>,
}

impl Log {
    fn record(&mut self, now: i64, place: usize, what: &str, about: &str) {
        (now, place, what, about).hash(&mut self.hasher);
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>8}  {place}  {what} {about}"));
        }
    }
}

impl World {
    pub fn new(seed: u64, lease_end: LeaseEnd, places: usize, read: bool) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            wakers: (0..places).map(|_| Arc::default()).collect(),
            state: Mutex::new(WorldState {
                model: QueueModel::new(lease_end, epoch().as_millisecond()),
                network: Network::default(),
                weather: Weather::default(),
                chance: Chance::new(seed ^ 0x776f_726c_6400),
                switches: Vec::new(),
                accepted: Vec::new(),
                wrong: Vec::new(),
                lives: (0..places).map(|_| Life::begin()).collect(),
                strikes: Vec::new(),
                log: Log {
                    lines: read.then(Vec::new),
                    ..Log::default()
                },
            }),
        })
    }

    /// The state of the world, with the store's clock as it is now.
    pub fn state(&self) -> MutexGuard<'_, WorldState> {
        let mut state = self.state.lock().expect("nobody panics with it");
        state.model.now = epoch().as_millisecond() + self.millis();
        state
    }

    pub fn now(&self) -> Timestamp {
        epoch() + self.began.elapsed()
    }

    fn millis(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).expect("not that long")
    }

    /// Something happened at a place. A blow may fall on whoever did it.
    pub fn record(&self, state: &mut WorldState, place: usize, what: &str, about: &str) {
        let now = self.millis();
        state.log.record(now, place, what, about);
        let mut blows = Vec::new();
        state.strikes.retain_mut(|strike| {
            let is_meant = strike.what == what && strike.left == 0;
            strike.left -= u32::from(strike.what == what && strike.left > 0);
            blows.extend(is_meant.then_some(strike.blow));
            !is_meant
        });
        for blow in blows {
            state.log.record(now, place, "strike", &format!("{blow:?}"));
            state.lives[place].strike(blow);
        }
    }

    pub fn wake_others(&self, place: usize) {
        let others = self.wakers.iter().enumerate();
        for (_, waker) in others.filter(|(other, _)| *other != place) {
            waker.notify_one();
        }
    }

    /// Every call has ended, and no leg is up.
    pub fn is_at_rest(&self) -> bool {
        let state = self.state();
        let is_over = state.model.calls.values().all(|call| call.place.is_none());
        is_over && state.network.legs_up() == 0
    }
}

impl WorldState {
    pub fn fingerprint(&self) -> u64 {
        self.log.hasher.finish()
    }

    /// What the checker of the other tests needs to know.
    pub fn history(&self) -> History {
        // A client that got no answer, or an unknown one, counts too where the call is there.
        let in_store = self.model.calls.keys().map(ToString::to_string);
        let mut accepted: Vec<_> = self.accepted.iter().cloned().chain(in_store).collect();
        accepted.sort();
        accepted.dedup();
        let records = self.model.calls.iter().map(|(sid, call)| {
            let of_call = |ended: &&EndedCall| ended.sid() == sid;
            let end = self.model.ends.iter().find(of_call);
            let outcome = end.map(|end| end.whole().outcome.as_str().to_owned());
            // The lines of a notice are judged by its plan.
            let lines = match call.call.notice {
                Some(_) => 1,
                None => self.model.bill_lines.iter().filter(of_call).count(),
            };
            (sid.to_string(), (outcome, lines as u64))
        });
        let callbacks = self.model.callbacks.iter().map(|owed| {
            (
                owed.key.call.to_string(),
                owed.webhook_id.clone(),
                owed.body.clone(),
            )
        });
        History {
            // Whether a confirmation was understood is judged by the plan (`notices`).
            accepted,
            dialled: self
                .network
                .invites()
                .map(|leg| leg.order.clone())
                .collect(),
            refused: self
                .network
                .refused()
                .map(|leg| leg.order.clone())
                .collect(),
            callbacks: callbacks.collect(),
            records: records.collect(),
            legs_up: self.network.legs_up(),
            ..History::default()
        }
    }

    /// Everything that is wrong.
    pub fn judge(&self) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        wrong.extend(violations(&self.history()));
        wrong.extend(self.network.contradictions(&self.model));
        wrong
    }
}

/// When every history begins.
pub fn epoch() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time of this age")
}
