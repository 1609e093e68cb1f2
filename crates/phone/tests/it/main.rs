//! The engine against peers, over real sockets.

mod answer_check;
mod baresip;
mod calls;
mod far_end;
mod forms;
mod hostile;
mod hosts;
mod kamailio;
mod key_menu;
mod lab;
mod leave;
mod leg_records;
mod long;
mod many;
mod odd_peers;
mod passwords;
mod peers;
mod puppet;
mod redirects;
mod sipp;
mod softphone;
mod streams;
mod supervision;
mod torture;
mod transports;
mod trunks;
