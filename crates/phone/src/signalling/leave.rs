//! Leave to send an INVITE. Whoever keeps the record of a call gives it when the record is durable, and it can run out.

use std::fmt;
use std::sync::Arc;

/// Leave to send an INVITE and to repeat it. It is looked at directly before a packet leaves, so the look must not wait.
#[derive(Clone)]
pub struct Leave(Arc<dyn Fn() -> bool + Send + Sync>);

impl Leave {
    /// For callers that keep no record.
    pub fn always() -> Self {
        Self::while_holds(|| true)
    }

    pub fn while_holds(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(holds))
    }

    pub fn holds(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leave").field(&self.holds()).finish()
    }
}
