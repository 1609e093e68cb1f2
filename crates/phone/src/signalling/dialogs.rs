//! All dialogs of an endpoint, for finding the one that a request belongs to. The library keeps those that peers open. Those that we
//! open are kept here: the library knows them only from the moment in which it sends their INVITE, and that moment is ours to choose.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rsipstack::dialog::DialogId;
use rsipstack::dialog::dialog::{Dialog, DialogInner, DialogState, DialogStateSender};
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{CallId, HeadersExt, Request, Response, Route, Uri};
use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transaction::transaction::Transaction;

use super::branch;
use super::connector::TrunkConnector;
use super::headers::our_tag;
use super::orphan::route_set;

/// Call-ID and our own tag: they stay, whoever answers.
type PlacedKey = (String, String);

pub(super) struct Dialogs {
    pub layer: DialogLayer,
    placed: Mutex<HashMap<PlacedKey, Arc<LegDialog>>>,
}

impl Dialogs {
    pub fn new(endpoint: EndpointInnerRef) -> Self {
        Self {
            layer: DialogLayer::new(endpoint),
            placed: Mutex::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.layer.len() + self.placed().len()
    }

    pub fn described(&self) -> Vec<String> {
        let ids = self.layer.all_dialog_ids().into_iter();
        let called = ids.map(|id| match self.layer.get_dialog_with(&id) {
            Some(dialog) => format!("{id} {}", dialog.state()),
            None => id,
        });
        let placed = self.placed();
        let placed = placed.values().map(|dialog| dialog.get().id().to_string());
        called.chain(placed).collect()
    }

    /// A dialog that we open.
    pub fn add(&self, dialog: &Arc<LegDialog>) {
        let key = key(&dialog.get().id());
        self.placed().insert(key, Arc::clone(dialog));
    }

    pub fn remove(&self, dialog: &InviteDialog) {
        let id = dialog.id();
        if self.placed().remove(&key(&id)).is_some() {
            return Dialog::Invite(dialog.clone()).on_remove();
        }
        self.layer.remove_dialog(&id);
    }

    /// The leg of ours that a request belongs to, as long as it is not answered: the library handles no requests about it.
    pub fn unanswered(&self, transaction: &Transaction) -> Option<Arc<LegDialog>> {
        let id = DialogId::try_from(transaction).ok()?;
        let placed = self.placed().get(&key(&id)).cloned()?;
        let waits = placed.get().state().can_cancel();
        waits.then_some(placed)
    }

    /// Tells the leg of ours that rings what the response says about the way to it.
    pub fn learn(&self, ringing: &Response) {
        let call_id = ringing.call_id_header().ok().map(CallId::value);
        let (Some(call_id), Some(tag)) = (call_id, our_tag(ringing)) else {
            return;
        };
        let key = (call_id.to_owned(), tag.to_owned());
        let placed = self.placed().get(&key).cloned();
        if let Some(placed) = placed {
            placed.learn(ringing);
        }
    }

    /// The dialog that a request belongs to. One that we open and that is not answered yet belongs to whoever speaks about it.
    pub fn find(&self, transaction: &Transaction) -> Option<Dialog> {
        let id = DialogId::try_from(transaction).ok()?;
        let placed = self.placed().get(&key(&id)).cloned();
        let Some(placed) = placed else {
            return self.layer.get_dialog(&id);
        };
        let dialog = placed.get();
        let theirs = dialog.state().can_cancel() || dialog.id().remote_tag == id.remote_tag;
        theirs.then_some(Dialog::Invite(dialog))
    }

    fn placed(&self) -> MutexGuard<'_, HashMap<PlacedKey, Arc<LegDialog>>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &DialogId) -> PlacedKey {
    (id.call_id.clone(), id.local_tag.clone())
}

/// The dialog of a leg. An INVITE that is repeated with credentials opens another one in its place.
pub(super) struct LegDialog {
    current: Mutex<Current>,
    /// Where the leg hears what happens; a dialog that the peer opened tells it by itself.
    states: Option<DialogStateSender>,
    /// Where there are connections: what opens the one to the trunk, and the address that the INVITE was sent to.
    way: Option<(Arc<TrunkConnector>, SocketAddr)>,
}

struct Current {
    dialog: InviteDialog,
    /// What is inside of it, where we have opened it.
    inner: Option<Arc<DialogInner>>,
    given_up: bool,
    /// That of the INVITE that has opened it, where that is ours.
    branch: String,
    /// That INVITE repeats another one.
    is_repeated: bool,
}

impl Current {
    fn placed(inner: Arc<DialogInner>, branch: String, is_repeated: bool) -> Self {
        Self {
            dialog: InviteDialog::from_inner(Arc::clone(&inner)),
            inner: Some(inner),
            given_up: false,
            branch,
            is_repeated,
        }
    }
}

impl LegDialog {
    /// A dialog that we open.
    pub fn placed(
        inner: Arc<DialogInner>,
        branch: String,
        states: DialogStateSender,
        way: Option<(Arc<TrunkConnector>, SocketAddr)>,
    ) -> Self {
        Self {
            current: Mutex::new(Current::placed(inner, branch, false)),
            states: Some(states),
            way,
        }
    }

    /// A dialog that the peer opens.
    pub fn invited(dialog: InviteDialog) -> Self {
        let current = Current {
            dialog,
            inner: None,
            given_up: false,
            branch: String::new(),
            is_repeated: false,
        };
        Self {
            current: Mutex::new(current),
            states: None,
            way: None,
        }
    }

    /// Where there are connections, requests go over that to the trunk, which is opened again if it is gone. The library, left alone, would
    /// open another one, to wherever and by whatever transport the peer has named.
    pub async fn reconnect(&self) {
        let Some((connector, trunk)) = &self.way else {
            return;
        };
        match connector.connection(*trunk).await {
            Ok(connection) => {
                if let Some(inner) = &self.lock().inner {
                    inner.set_server_connection(connection);
                }
            }
            Err(error) => tracing::debug!(%error, "a call has lost its connection"),
        }
    }

    /// Whoever rings says where it is and which way leads there (RFC 3261 section 12.1.2). The library learns that only from an answer, but
    /// a reliable 18x has to be confirmed before. Others may know Call-ID and tag; who knows the branch has seen our INVITE.
    pub fn learn(&self, ringing: &Response) {
        let current = self.lock();
        let via = ringing.via_header().ok();
        if via.and_then(branch::of) != Some(&current.branch) {
            return;
        }
        let Some(inner) = &current.inner else {
            return;
        };
        if !current.dialog.state().can_cancel() {
            return;
        }
        let contacts = ringing.typed_contact_headers();
        let contact = contacts
            .ok()
            .and_then(|contacts| contacts.into_iter().next());
        let Some(contact) = contact else {
            return;
        };
        let routes = route_set(ringing).into_iter().map(Route::from);
        *inner.remote_uri.lock() = contact.uri;
        *inner.route_set.lock() = routes.collect();
    }

    /// The number of the next request inside of it, where we have opened it.
    pub fn next_number(&self) -> Option<u32> {
        let current = self.lock();
        current
            .inner
            .as_ref()
            .map(|inner| inner.increment_local_seq())
    }

    /// Tells the leg what the library does not.
    pub fn tell(&self, state: DialogState) {
        if let Some(states) = &self.states {
            // A leg that does not listen any more is over.
            let _ = states.send(state);
        }
    }

    /// Where we are reached, in a dialog that we have opened.
    pub fn contact(&self) -> Option<Uri> {
        let current = self.lock();
        current.inner.as_ref()?.local_contact.clone()
    }

    /// The INVITE that has opened it, if it is not our first.
    pub fn repeated_invite(&self) -> Option<Request> {
        let current = self.lock();
        (current.is_repeated).then(|| current.dialog.initial_request())
    }

    pub fn get(&self) -> InviteDialog {
        self.lock().dialog.clone()
    }

    /// The dialog that is to be ended. No other one takes its place from now on.
    pub fn give_up(&self) -> InviteDialog {
        let mut current = self.lock();
        current.given_up = true;
        current.dialog.clone()
    }

    /// False if the leg has been given up.
    pub fn replace(&self, inner: Arc<DialogInner>, branch: String) -> bool {
        let mut current = self.lock();
        let goes_on = !current.given_up;
        if goes_on {
            *current = Current::placed(inner, branch, true);
        }
        goes_on
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Leave;
    use super::super::tests::{at_once, endpoint, invite};
    use super::*;
    use rsipstack::sip::SipMessage;

    /// An 18x to an INVITE, from whoever is at this address.
    fn ringing(via: &str, from: &str, call_id: &str, contact: &str) -> Response {
        let text = format!(
            "SIP/2.0 183 Session Progress\r\nVia: {via}\r\nFrom: {from}\r\nTo: <sip:b@h>;tag=b\r\nCall-ID: {call_id}\r\nCSeq: 1 INVITE\r\n\
             Contact: <{contact}>\r\nContent-Length: 0\r\n\r\n"
        );
        match SipMessage::try_from(text.as_str()) {
            Ok(SipMessage::Response(response)) => response,
            other => panic!("not a response: {other:?}"),
        }
    }

    #[tokio::test]
    async fn the_way_to_a_leg_is_learned_from_whoever_has_seen_its_invite() {
        let callee = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let caller = endpoint(None).await;
        let invite = invite(callee.local_addr().unwrap());
        let ready = caller.prepare(invite, at_once()).await.unwrap();
        let ours = ready.snapshot().clone();
        let _leg = ready.send(Leave::always());
        let placed = caller.dialogs.placed().values().next().cloned().unwrap();
        let target = || {
            let current = placed.lock();
            let inner = current.inner.as_ref().unwrap();
            inner.remote_uri.lock().to_string()
        };
        let (before, there) = (target(), "sip:b@198.51.100.9");
        let via = ours.via.unwrap();
        let forged = via.replace("z9hG4bK", "z9hG4bKno");
        assert_ne!(forged, via);
        let no_tag = "<sip:4001234567@127.0.0.1>;tag=no";
        for other in [
            ringing(&forged, &ours.from, &ours.call_id, there),
            ringing(&via, no_tag, &ours.call_id, there),
            ringing(&via, &ours.from, "no", there),
        ] {
            caller.dialogs.learn(&other);
            assert_eq!(target(), before, "{other}");
        }
        let right = ringing(&via, &ours.from, &ours.call_id, there);
        caller.dialogs.learn(&right);
        assert_eq!(target(), there);
    }
}
