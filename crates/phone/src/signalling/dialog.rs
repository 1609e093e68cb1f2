//! A dialog of the library that has an owner. The library keeps a dialog until somebody removes it, so this is done when the owner lets go,
//! whatever state the dialog is in then.

use std::sync::Arc;

use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invitation::InviteAsyncResult;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::StatusCode;
use tokio::task::{JoinError, JoinHandle};

use super::invite_routes::InviteRoute;

pub(super) type InviteOutcome = Result<InviteAsyncResult, JoinError>;

pub(super) struct OwnedDialog {
    dialogs: Arc<DialogLayer>,
    dialog: InviteDialog,
    /// Our INVITE while it has no final response.
    invite: Option<JoinHandle<InviteAsyncResult>>,
    /// Where our INVITE went, for requests that have to follow it; a dialog that the peer opened has none.
    route: Option<InviteRoute>,
}

impl OwnedDialog {
    /// A dialog that our INVITE opens.
    pub fn inviting(
        dialogs: Arc<DialogLayer>,
        dialog: InviteDialog,
        invite: JoinHandle<InviteAsyncResult>,
        route: InviteRoute,
    ) -> Self {
        Self {
            dialogs,
            dialog,
            invite: Some(invite),
            route: Some(route),
        }
    }

    /// A dialog that the peer's INVITE opens.
    pub fn invited(dialogs: Arc<DialogLayer>, dialog: InviteDialog) -> Self {
        Self {
            dialogs,
            dialog,
            invite: None,
            route: None,
        }
    }

    pub fn get(&self) -> &InviteDialog {
        &self.dialog
    }

    /// What became of our INVITE, once. May be dropped and asked again before that.
    pub async fn outcome(&mut self) -> InviteOutcome {
        let Some(invite) = &mut self.invite else {
            return std::future::pending().await;
        };
        let outcome = invite.await;
        self.invite = None;
        outcome
    }

    /// CANCEL, and BYE if the answer came in the same moment.
    pub async fn cancel(&self) {
        if let Err(error) = self.dialog.cancel().await {
            tracing::debug!(%error, "a CANCEL was not confirmed");
        }
        self.hang_up().await;
    }

    /// BYE, if the dialog is up.
    pub async fn hang_up(&self) {
        if let Err(error) = end_confirmed(&self.dialog).await {
            // A BYE that nobody answers has ended the dialog all the same.
            tracing::debug!(%error, "a BYE was not confirmed");
        }
    }
}

/// BYE, if there is anything to end by it.
async fn end_confirmed(dialog: &InviteDialog) -> rsipstack::Result<()> {
    let state = dialog.state();
    if state.is_confirmed() || state.waiting_ack() {
        return dialog.bye().await;
    }
    Ok(())
}

impl Drop for OwnedDialog {
    fn drop(&mut self) {
        let (dialogs, dialog) = (Arc::clone(&self.dialogs), self.dialog.clone());
        let _ = dialog.reject(Some(StatusCode::TemporarilyUnavailable), None);
        let (invite, route) = (self.invite.take(), self.route.take());
        if invite.is_none() && dialog.state().is_terminated() {
            return dialogs.remove_dialog(&dialog.id());
        }
        // Nobody is left to hang up. The library cancels an INVITE that is under way; a dialog that is up, or was answered in this
        // very moment, is ended here.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if let Some(invite) = invite {
                invite.abort();
                let _ = invite.await;
            }
            let _ = end_confirmed(&dialog).await;
            dialogs.remove_dialog(&dialog.id());
            drop(route);
        });
    }
}
