//! The calling engine: it places real calls over SIP, plays prepared frames over RTP, and can answer calls.
//!
//! It knows nothing of accounts, files on disk or bills.

pub mod call;
pub mod ending;
pub mod leg_record;
pub mod media;
mod quoted;
pub mod sdp;
pub mod signalling;
pub mod test_phone;
pub mod trunk;
