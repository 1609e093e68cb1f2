//! A phone that answers by a script and remembers what it heard: people try Clarion with it when they have no trunk, and our tests use it.

mod callee;
mod heard_call;
mod line_sound;
mod script;

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use supervisor::{Supervisor, TaskGuard, panic_message};
use tokio::sync::mpsc;

pub use heard_call::{HeardCall, ReceivedPacket, Timing};
pub use line_sound::LineSound;
pub use script::{KeyForm, NUMBERS, Script, Then};

use crate::call::{MediaConfig, PhoneError};
use crate::media::engine::MediaEngine;
use crate::signalling::{Answering, Signalling, SignallingConfig, SipCredentials};
use callee::ScriptedCallee;
use g711::Codec;

/// Some seconds of sound: what it is to remember is not lost while the machine has no time to read it.
const PATIENT_BUFFER: usize = 256 * 1024;

/// Where the phone listens, and how.
#[derive(Debug, Clone)]
pub struct TestPhoneConfig {
    pub sip: SignallingConfig,
    pub media: MediaConfig,
    pub codecs: Vec<Codec>,
    /// Where there are some, callers must prove that they know them.
    pub credentials: Option<SipCredentials>,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct TestPhone {
    /// Dropped first: without signalling the task would end unasked.
    _answering: TaskGuard,
    signalling: Signalling,
}

impl TestPhone {
    /// Starts listening. `script` says how a number behaves. The receiver gets every call when it is over. `supervisor` knows the task as
    /// `test-phone`.
    pub async fn start(
        supervisor: &Supervisor,
        config: &TestPhoneConfig,
        script: impl Fn(&str) -> Script + Send + 'static,
    ) -> Result<(Self, mpsc::UnboundedReceiver<HeardCall>), PhoneError> {
        let (calls, mut incoming) = mpsc::unbounded_channel();
        let answering = Answering {
            calls,
            credentials: config.credentials.clone(),
        };
        let media = MediaConfig {
            rtp_buffer: PATIENT_BUFFER,
            ..config.media.clone()
        };
        let callee = Arc::new(ScriptedCallee {
            media: MediaEngine::start(supervisor, &media)?,
            codecs: config.codecs.clone(),
        });
        let signalling = Signalling::start(supervisor, &config.sip, Some(answering)).await?;
        let (over, heard) = mpsc::unbounded_channel();
        let answering = supervisor.require("test-phone", None, move |watch| async move {
            while let Some(call) = incoming.recv().await {
                watch.heartbeat();
                match catch_unwind(AssertUnwindSafe(|| script(&call.number))) {
                    Ok(script) => {
                        let (callee, over) = (Arc::clone(&callee), over.clone());
                        tokio::spawn(async move {
                            let _ = over.send(callee.take(call, script).await);
                        });
                    }
                    // Dropping the call refuses it.
                    Err(panic) => {
                        tracing::error!(reason = panic_message(&*panic), "a script panicked");
                    }
                }
            }
        });
        let phone = Self {
            _answering: answering,
            signalling,
        };
        Ok((phone, heard))
    }

    pub fn contact(&self) -> SocketAddr {
        self.signalling.contact()
    }

    /// Dialogs and transactions that are open now: for finding leaks.
    pub fn open(&self) -> (usize, usize) {
        self.signalling.open()
    }

    /// Which dialogs these are.
    pub fn open_dialogs(&self) -> Vec<String> {
        self.signalling.open_dialogs()
    }
}
