//! All dialogs of an endpoint, for finding the one that a request belongs to. The library keeps those that peers open. Those that we
//! open are kept here: the library knows them only from the moment in which it sends their INVITE, and that moment is ours to choose.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rsipstack::dialog::DialogId;
use rsipstack::dialog::dialog::{Dialog, DialogState, DialogStateSender};
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transaction::transaction::Transaction;

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
}

struct Current {
    dialog: InviteDialog,
    given_up: bool,
}

impl LegDialog {
    pub fn new(dialog: InviteDialog, states: Option<DialogStateSender>) -> Self {
        let current = Current {
            dialog,
            given_up: false,
        };
        Self {
            current: Mutex::new(current),
            states,
        }
    }

    /// Tells the leg what the library does not.
    pub fn tell(&self, state: DialogState) {
        if let Some(states) = &self.states {
            // A leg that does not listen any more is over.
            let _ = states.send(state);
        }
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
    pub fn replace(&self, dialog: InviteDialog) -> bool {
        let mut current = self.lock();
        if !current.given_up {
            current.dialog = dialog;
        }
        !current.given_up
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
