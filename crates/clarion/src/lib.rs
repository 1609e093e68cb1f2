//! Clarion: an application sends one HTTPS request, Clarion makes one telephone call, reports it and bills it.
//!
//! Start reading at `server` (what there is and how it is joined), or follow a call: `api::landing_calls` → `store` → `callbacks`.

pub mod accepted;
pub mod api;
pub mod audio_files;
pub mod barred_numbers;
pub mod billing;
pub mod callbacks;
pub mod check;
pub mod claim_holds;
pub mod cli;
pub mod client;
mod client_network;
pub mod clock;
pub mod config;
pub mod console;
pub mod disk_room;
pub mod dispatch;
pub mod domain;
mod fair_places;
pub mod http;
pub mod intakes;
pub mod management;
pub mod outgoing;
pub mod passwords;
pub mod placing;
pub mod private_files;
pub mod random;
mod readiness;
pub mod seldom;
pub mod server;
pub mod sip_trace;
pub mod store;
pub mod telemetry;
