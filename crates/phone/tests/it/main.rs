//! The engine against peers, over real sockets.

mod calls;
mod hostile;
mod lab;
mod long;
mod many;
mod transports;
mod trunks;
