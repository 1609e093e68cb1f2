//! Whether the next host of a trunk is tried after a failure: the trunk's own policy decides.

use std::fmt;
use std::sync::Arc;

use crate::ending::Failure;

type Check = dyn Fn(&Failure) -> bool + Send + Sync;

/// True if another host may carry the call. It is asked only while nothing has rung.
#[derive(Clone)]
pub struct HostFailover(Arc<Check>);

impl HostFailover {
    pub fn new(check: impl Fn(&Failure) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn allows(&self, failure: &Failure) -> bool {
        !failure.rang && (self.0)(failure)
    }
}

impl Default for HostFailover {
    /// Where the trouble lies with the host by what its code means to anybody.
    fn default() -> Self {
        Self::new(Failure::may_fail_over)
    }
}

impl fmt::Debug for HostFailover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFailover")
    }
}
