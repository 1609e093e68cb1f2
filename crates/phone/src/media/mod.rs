//! Sound on the wire: RTP in and out for all calls, on one clock.

pub mod clock;
pub mod dtmf;
pub mod facts;
pub mod ports;
pub mod receive;
pub mod rtp;
pub mod session;
pub mod stream;
