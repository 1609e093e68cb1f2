//! One call's inbound state, shared by its session and by the thread that receives for all calls.
//!
//! A panic while a packet is judged is kept to its call: the state is left as it is, and no packet changes it from then on.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use supervisor::panic_message;

use super::ears::EarReport;
use super::inbound::Inbound;

#[derive(Debug, Clone)]
pub struct InboundHandle(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    inbound: Inbound,
    failed: bool,
}

impl InboundHandle {
    pub fn new(inbound: Inbound) -> Self {
        Self(Arc::new(Mutex::new(State {
            inbound,
            failed: false,
        })))
    }

    /// Judges a packet. Returns the peer's address if this packet has settled it. `then` runs under the same lock, so that
    /// what it does about the address cannot be overtaken by a change of the description.
    pub fn receive(
        &self,
        bytes: &[u8],
        from: SocketAddr,
        now: Instant,
        then: impl FnOnce(SocketAddr),
    ) {
        let mut state = self.lock();
        if state.failed {
            return;
        }
        let received = catch_unwind(AssertUnwindSafe(|| state.inbound.receive(bytes, from, now)));
        match received {
            Ok(Some(peer)) => then(peer),
            Ok(None) => {}
            Err(panic) => {
                state.failed = true;
                tracing::error!(
                    reason = panic_message(&*panic),
                    peer = %from,
                    "a packet made its call panic: the call receives nothing from now on"
                );
            }
        }
    }

    /// Reads or changes the state.
    pub fn with<T>(&self, access: impl FnOnce(&mut Inbound) -> T) -> T {
        access(&mut self.lock().inbound)
    }

    /// When the last packet of the peer came; `None` if packets are not received any more.
    pub fn last_received(&self) -> Option<Instant> {
        let state = self.lock();
        (!state.failed).then(|| state.inbound.last_received())
    }

    /// When the last packet came after the answer, if one did.
    pub fn heard(&self) -> Option<Instant> {
        self.lock().inbound.heard()
    }

    /// The ears listen from now on and know nothing yet, or listen no more.
    pub fn set_ears(&self, listens: bool) {
        self.lock().inbound.set_ears(listens);
    }

    /// What the ears know, where they listen.
    pub fn ear_report(&self) -> Option<EarReport> {
        self.lock().inbound.ear_report()
    }

    /// A panic leaves the lock poisoned only where `with` panicked, in the call's own task.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
