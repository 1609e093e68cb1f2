//! The keys of a notice: which ones are asked for.

use serde::{Deserialize, Serialize};

pub use super::super::callee_choice::{CalleeChoice, key};
use super::super::prompt::Prompt;
use super::super::voice_name::VoiceName;

/// What is asked of a callee. Keys of different meanings differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeKeys {
    /// Whoever presses one of these has confirmed; none where an answer is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<char>,
    /// Plays the message again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<char>,
    /// Pressed twice: no more calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<char>,
    /// How long a key is waited for after the message, in seconds.
    pub wait: u16,
    /// What asks for the key, where the request brings it; otherwise the platform's sentence does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Prompt>,
    /// Who speaks the platform's sentences, where the request or its application has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceName>,
}
