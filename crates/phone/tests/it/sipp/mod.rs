//! The engine against SIPp, a peer that nobody here wrote. The scenarios are in `tests/sipp`: SIPp fails where it does not get what a
//! scenario expects, so its satisfaction is half of every test.

mod answers;
mod changes;
mod far_end;
mod form;
mod giving_up;
mod hold;
mod keys;
mod passwords;
mod play;
mod questions;
mod refusals;
pub mod registrations;
mod relay;
mod slow;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::lab::{Folder, PATIENCE, eventually};
pub use play::{Play, Sipp, described_at, description};

/// A port that is free for UDP and TCP. SIPp wants to be told one; these lie where neither the system nor our own media choose theirs.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = NEXT.load(Ordering::Relaxed);
    if first == 0 {
        let random = rand::random_range(1..9000);
        let _ = NEXT.compare_exchange(0, random, Ordering::Relaxed, Ordering::Relaxed);
    }
    loop {
        let port = 10_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 9000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
