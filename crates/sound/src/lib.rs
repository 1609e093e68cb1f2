//! Samples: WAV files and text in, sound for a telephone line out.
//!
//! This crate knows no sockets, no database, no accounts and no telephone. What it makes is handed out as shared bytes that a caller
//! can put on the line without copying them. `Studio` is the way in: it makes each prompt once, off the caller's thread, and remembers it.

pub mod archive;
pub mod background;
mod cache;
pub mod encoded;
pub mod level;
mod mix;
pub mod prompt;
pub mod resample;
pub mod speech;
pub mod studio;
pub mod text;
pub mod wav;

pub use encoded::Encoded;
pub use prompt::{Playlist, Step};
pub use speech::{Speech, Voice};
pub use studio::{Settings, Studio, Unready};

/// Samples a second on the line.
pub const RATE: u32 = 8000;
