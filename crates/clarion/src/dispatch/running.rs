//! The calls that this node works at: those under way, how far each has come and the means to hang it up, and those that are only brought to an
//! end, or back to the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio_util::sync::CancellationToken;

use super::lock;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{CancelledCall, ClaimedCall};

#[derive(Debug)]
struct RunningCall {
    /// Of the lease: the same call may be claimed again while an earlier task of it has not noticed its end.
    fence: i64,
    hang_up: CancellationToken,
    state: CallState,
}

#[derive(Debug, Default)]
pub struct RunningCalls {
    calls: Mutex<BTreeMap<CallSid, RunningCall>>,
    /// Calls that are settled without being dialled, each with the fence of its lease. They occupy nothing.
    settling: Mutex<BTreeMap<CallSid, i64>>,
    /// The server stops, and waits no longer.
    is_stopping: AtomicBool,
}

impl RunningCalls {
    /// Counts a claimed call as running until the slot is dropped.
    pub fn enter(self: &Arc<Self>, claimed: &ClaimedCall) -> RunningSlot {
        let (sid, fence) = (claimed.call.sid.clone(), claimed.lease.fence);
        let hang_up = CancellationToken::new();
        let call = RunningCall {
            fence,
            hang_up: hang_up.clone(),
            state: CallState::Claimed,
        };
        self.calls().insert(sid.clone(), call);
        RunningSlot {
            running: Arc::clone(self),
            sid,
            fence,
            hang_up,
        }
    }

    /// Counts a claimed call as worked at until the slot is dropped, though nobody is dialled.
    pub fn settle(self: &Arc<Self>, claimed: &ClaimedCall) -> SettlingSlot {
        let (sid, fence) = (claimed.call.sid.clone(), claimed.lease.fence);
        self.settling().insert(sid.clone(), fence);
        SettlingSlot {
            running: Arc::clone(self),
            sid,
            fence,
        }
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.calls().len()).unwrap_or(u32::MAX)
    }

    pub fn count_in(&self, state: CallState) -> usize {
        let calls = self.calls();
        calls.values().filter(|call| call.state == state).count()
    }

    pub fn is_empty(&self) -> bool {
        self.calls().is_empty()
    }

    /// Whether somebody works at the call.
    pub fn attends(&self, sid: &CallSid) -> bool {
        self.calls().contains_key(sid) || self.settling().contains_key(sid)
    }

    pub fn all_settling(&self) -> BTreeSet<CallSid> {
        self.settling().keys().cloned().collect()
    }

    /// A call only ever moves forward: events may arrive in another order than they happened.
    pub fn set_state(&self, sid: &CallSid, state: CallState) {
        if let Some(call) = self.calls().get_mut(sid)
            && state.number() > call.state.number()
        {
            call.state = state;
        }
    }

    /// Somebody may have answered since it was cancelled.
    pub fn cancel(&self, cancelled: &CancelledCall) {
        if let Some(call) = self.calls().get(&cancelled.sid)
            && !(cancelled.before_answer && call.state == CallState::Answered)
        {
            call.hang_up.cancel();
        }
    }

    /// The server stops, and waits no longer.
    pub fn hang_up_all(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        for call in self.calls().values() {
            call.hang_up.cancel();
        }
    }

    /// Whether calls are hung up only because the server stops.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Every running call with the means to hang it up.
    pub fn all(&self) -> BTreeMap<CallSid, CancellationToken> {
        let calls = self.calls();
        let calls = calls.iter();
        calls
            .map(|(sid, call)| (sid.clone(), call.hang_up.clone()))
            .collect()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<CallSid, RunningCall>> {
        lock(&self.calls)
    }

    fn settling(&self) -> MutexGuard<'_, BTreeMap<CallSid, i64>> {
        lock(&self.settling)
    }
}

/// A call's entry among those that are settled, removed however that ends.
#[derive(Debug)]
pub struct SettlingSlot {
    running: Arc<RunningCalls>,
    sid: CallSid,
    fence: i64,
}

impl Drop for SettlingSlot {
    fn drop(&mut self) {
        let mut settling = self.running.settling();
        if settling.get(&self.sid) == Some(&self.fence) {
            settling.remove(&self.sid);
        }
    }
}

/// A call's entry among those that run, removed however its task ends.
#[derive(Debug)]
pub struct RunningSlot {
    running: Arc<RunningCalls>,
    sid: CallSid,
    fence: i64,
    /// Cancelled when the call shall end, whatever its state.
    pub hang_up: CancellationToken,
}

impl Drop for RunningSlot {
    fn drop(&mut self) {
        let mut calls = self.running.calls();
        let is_ours = |call: &RunningCall| call.fence == self.fence;
        if calls.get(&self.sid).is_some_and(is_ours) {
            calls.remove(&self.sid);
        }
    }
}
