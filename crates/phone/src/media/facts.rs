//! What is known of a call's sound when it is over.

use std::time::Duration;

use crate::codec::Codec;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub codec: Option<Codec>,
    pub packets_sent: u32,
    pub packets_late: u32,
    /// The longest that a packet left after its moment.
    pub worst_lateness: Duration,
}
