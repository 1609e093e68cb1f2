//! Whether the far end of a call is still there: OPTIONS inside the dialog (RFC 3261 section 11).

use rsipstack::dialog::invite_dialog::InviteDialog;

/// What comes of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    There,
    /// It does not know the call any more.
    Gone,
    /// Nothing came back.
    Silent,
    /// Somebody on the way says that he did not get through, which may be his own trouble.
    Unreached,
}

/// Asks about one call.
#[derive(Clone)]
pub struct PresenceCheck(pub(super) InviteDialog);

impl PresenceCheck {
    pub async fn ask(&self) -> Presence {
        match self.0.options(None).await {
            Ok(Some(response)) => judge(response.status_code.code()),
            Ok(None) | Err(_) => Presence::Silent,
        }
    }
}

/// The library makes a 408 of its own out of silence; a proxy that waits for nobody sends one too.
fn judge(code: u16) -> Presence {
    match code {
        481 => Presence::Gone,
        408 => Presence::Silent,
        430 | 477 | 502..=504 => Presence::Unreached,
        _ => Presence::There,
    }
}

impl std::fmt::Debug for PresenceCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PresenceCheck").finish_non_exhaustive()
    }
}
