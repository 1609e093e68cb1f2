//! What we talk about: every Call-ID that we have begun and that is not over, with our own tag, which nobody can guess who does not see our
//! packets. A peer that names both is no stranger, wherever it sends from: carriers hang up from other hosts than the one that was called.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rsipstack::sip::{HeadersExt, Response};

use super::head::MessageHead;
use super::headers::our_tag;

#[derive(Debug, Default)]
pub(super) struct Conversations {
    hashing: RandomState,
    /// By the hash of Call-ID and tag, so that looking for one takes no memory.
    open: Mutex<HashMap<u64, OpenConversation>>,
}

#[derive(Debug)]
struct OpenConversation {
    /// An INVITE that is repeated with credentials has Call-ID and tag in common with the first.
    holders: usize,
    /// The address of the trunk that it began with.
    trunk: SocketAddr,
}

/// A conversation that goes on until this is dropped.
#[derive(Debug)]
pub(super) struct Conversation {
    all: Arc<Conversations>,
    key: u64,
}

impl Conversations {
    /// A conversation with a trunk. Where the library chooses our tag, the Call-ID is its own too, and says enough.
    pub fn begin(
        self: &Arc<Self>,
        call_id: &str,
        tag: Option<&[u8]>,
        trunk: SocketAddr,
    ) -> Conversation {
        let key = self.key(call_id.as_bytes(), tag);
        let mut open = self.lock();
        let conversation = open
            .entry(key)
            .or_insert(OpenConversation { holders: 0, trunk });
        conversation.holders += 1;
        conversation.trunk = trunk;
        drop(open);
        Conversation {
            all: Arc::clone(self),
            key,
        }
    }

    /// Whether a message that came to us belongs to one of them.
    pub fn include(&self, received: &MessageHead<'_>) -> bool {
        self.find(received.call_id, received.receivers_tag())
            .is_some()
    }

    /// The trunk with which we talk about what a message of ours says.
    pub fn trunk_of(&self, sent: &MessageHead<'_>) -> Option<SocketAddr> {
        self.find(sent.call_id, sent.senders_tag())
    }

    /// The trunk to which the request went that a response answers.
    pub fn trunk_asked(&self, response: &Response) -> Option<SocketAddr> {
        let call_id = response.call_id_header().ok()?.value();
        self.find(call_id.as_bytes(), our_tag(response).map(str::as_bytes))
    }

    fn find(&self, call_id: &[u8], tag: Option<&[u8]>) -> Option<SocketAddr> {
        let keys = [self.key(call_id, tag), self.key(call_id, None)];
        let open = self.lock();
        let mut found = keys.iter().filter_map(|key| open.get(key));
        found.next().map(|conversation| conversation.trunk)
    }

    fn key(&self, call_id: &[u8], tag: Option<&[u8]>) -> u64 {
        self.hashing.hash_one((call_id, tag))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, OpenConversation>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        if let Some(conversation) = open.get_mut(&self.key) {
            conversation.holders -= 1;
            if conversation.holders == 0 {
                open.remove(&self.key);
            }
        }
    }
}
