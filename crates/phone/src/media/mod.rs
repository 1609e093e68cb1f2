//! Sound on the wire: RTP in and out for all calls, on one clock.
//!
//! `engine` is what all calls share and `session` is one call; the rest are their parts.

mod batch;
pub mod clock;
pub mod dtmf;
pub mod engine;
pub mod facts;
pub mod hearing;
mod latch;
pub mod ports;
pub mod receive;
pub mod reception;
mod reporter;
pub mod rtcp;
pub mod rtp;
pub mod session;
pub mod shared;
mod sockets;
pub mod srtp;
pub mod stream;
