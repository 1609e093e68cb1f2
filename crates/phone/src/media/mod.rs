//! Sound on the wire: RTP and RTCP, both ways, for all calls.
//!
//! `engine` is what all calls share and `session` is one call; the rest are their parts.

mod batch;
pub mod dtmf;
mod ear_listener;
pub mod ears;
pub mod engine;
pub mod inbound;
pub(crate) mod inbound_handle;
pub mod latch;
mod paced_stream;
pub mod pacer;
mod packet_row;
mod port_deck;
pub mod ports;
pub mod receiver;
pub mod receiver_stats;
mod reporter;
pub mod rtcp;
pub mod rtp;
pub mod session;
pub mod shared;
mod sockets;
pub mod srtp;
pub mod stats;
pub mod stream;
pub mod tone_detector;
mod tone_listener;
