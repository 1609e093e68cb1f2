//! The calling engine: it places real calls over SIP, plays prepared frames over RTP, and can answer calls.
//!
//! It knows nothing of accounts, files on disk or bills.

pub mod call;
pub mod ending;
mod event_order;
pub mod media;
pub mod sdp;
pub mod signalling;
pub mod test_phone;
pub mod trunk;
