//! The engine against peers, over real sockets.

mod calls;
mod hostile;
mod lab;
mod long;
mod many;
mod softphone;
mod streams;
mod transports;
mod trunks;
