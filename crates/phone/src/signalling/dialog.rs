//! A dialog that has an owner. Requests find it until its owner lets go of it, and then it is ended, whatever state it is in.

use std::sync::Arc;

use rsipstack::dialog::dialog::Dialog;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{Request, StatusCode};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use super::SILENCE;
use super::dialogs::{Dialogs, LegDialog};
use super::invite_outcome::InviteResult;
use super::invite_routes::InviteRoute;
use super::reply::SessionReply;

pub(super) struct OwnedDialog {
    dialogs: Arc<Dialogs>,
    dialog: Arc<LegDialog>,
    /// Our INVITE while it has no final response.
    invite: Option<InviteTask>,
    /// Where our INVITE went, for requests that have to follow it; a dialog that the peer opened has none.
    route: Option<InviteRoute>,
}

/// The task that sends our INVITE and waits for the final response.
pub(super) struct InviteTask {
    pub result: JoinHandle<InviteResult>,
    /// Dropped when nobody waits for it any more.
    pub wanted: DropGuard,
}

impl OwnedDialog {
    /// A dialog that our INVITE opens.
    pub fn inviting(
        dialogs: Arc<Dialogs>,
        dialog: Arc<LegDialog>,
        invite: InviteTask,
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
    pub fn invited(dialogs: Arc<Dialogs>, dialog: InviteDialog) -> Self {
        Self {
            dialogs,
            dialog: Arc::new(LegDialog::invited(dialog)),
            invite: None,
            route: None,
        }
    }

    pub fn share(&self) -> Arc<LegDialog> {
        Arc::clone(&self.dialog)
    }

    pub fn get(&self) -> InviteDialog {
        self.dialog.get()
    }

    /// The INVITE that has opened it, if it is not our first.
    pub fn repeated_invite(&self) -> Option<Request> {
        self.dialog.repeated_invite()
    }

    /// What became of our INVITE, once. May be dropped and asked again before that.
    pub async fn outcome(&mut self) -> InviteResult {
        let Some(invite) = &mut self.invite else {
            return std::future::pending().await;
        };
        let result = (&mut invite.result).await;
        self.invite = None;
        result.unwrap_or(InviteResult::NotSent)
    }

    /// CANCEL, and BYE if the answer came in the same moment.
    pub async fn cancel(&self) {
        if let Err(error) = self.dialog.give_up().cancel().await {
            tracing::debug!(%error, "a CANCEL was not confirmed");
        }
        self.hang_up().await;
    }

    /// BYE, if the dialog is up. A BYE that nobody answers has ended the dialog all the same.
    pub async fn hang_up(&self) -> ByeAnswer {
        self.dialog.reconnect().await;
        let asked = Instant::now();
        match end_confirmed(&self.get()).await {
            // The library does not tell silence from an answer; it only takes as long.
            Ok(()) if asked.elapsed() < SILENCE => ByeAnswer::Came,
            Ok(()) => ByeAnswer::Missing,
            Err(error) => {
                tracing::debug!(%error, "a BYE was not confirmed");
                ByeAnswer::Missing
            }
        }
    }

    /// From now on the peer is where its request says (RFC 3261 section 12.2.2).
    pub fn follow(&self, reply: &SessionReply) {
        if let Some((target, contact)) = reply.target() {
            Dialog::Invite(self.get()).set_remote_target(target, Some(contact));
        }
    }
}

/// Whether the peer has answered our BYE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByeAnswer {
    Came,
    Missing,
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
        let (dialogs, dialog) = (Arc::clone(&self.dialogs), self.dialog.give_up());
        let leg = Arc::clone(&self.dialog);
        let _ = dialog.reject(Some(StatusCode::TemporarilyUnavailable), None);
        let (invite, route) = (self.invite.take(), self.route.take());
        if invite.is_none() && dialog.state().is_terminated() {
            return dialogs.remove(&dialog);
        }
        // Nobody is left to hang up. An INVITE that is under way is given up by its task (`inviting`); a dialog that is up, or was
        // answered in this very moment, is ended here.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if let Some(InviteTask { result, wanted }) = invite {
                dialogs.remove(&dialog);
                drop(wanted);
                let _ = result.await;
            }
            leg.reconnect().await;
            let _ = end_confirmed(&dialog).await;
            dialogs.remove(&dialog);
            drop(route);
        });
    }
}
