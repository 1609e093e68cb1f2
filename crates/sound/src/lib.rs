//! Samples: WAV files and text in, sound for a telephone line out.
//!
//! This crate knows no sockets, no database, no accounts and no telephone. What it makes is handed out as shared bytes that a caller
//! can put on the line without copying them. `PromptRenderer` is the way in: it makes each prompt once, off the caller's thread, and remembers it.

pub mod archive;
pub mod background;
mod cache;
mod filter;
pub mod level;
pub mod loudness;
mod mix;
pub mod prompt;
pub mod renderer;
pub mod resample;
pub mod speech;
pub mod spelled;
mod stretch;
pub mod telephone;
pub mod text;
pub mod wav;

pub use g711::{EncodedAudio, RATE};
pub use prompt::{Playlist, PlaylistItem};
pub use renderer::{PromptError, PromptRenderer, RendererSettings};
pub use speech::{Utterance, VoiceChoice, VoiceOptions};
