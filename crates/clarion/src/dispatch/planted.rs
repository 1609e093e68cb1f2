//! Bugs that a test plants, to see that the simulation finds them. In a release build there are none.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    /// An INVITE leaves although the lease may be over.
    LeaseNotChecked,
    /// An INVITE leaves before it is committed that the call is dialled.
    InviteBeforeCommit,
    /// A node that starts takes the whole trunk before it knows its part.
    ShareNotAwaited,
    /// A notice whose attempt was interrupted is given up, whatever its plan says.
    InterruptionEndsNotice,
}

thread_local! {
    static PLANTED: Cell<Option<PlantedBug>> = const { Cell::new(None) };
}

/// Plants a bug in everything that runs on this thread.
#[cfg(debug_assertions)]
pub fn plant(bug: Option<PlantedBug>) {
    PLANTED.set(bug);
}

pub(super) fn is(bug: PlantedBug) -> bool {
    cfg!(debug_assertions) && PLANTED.get() == Some(bug)
}
