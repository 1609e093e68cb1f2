//! Refreshing a session, so that the network between does not give it up (RFC 4028).

use std::sync::Arc;

use rsipstack::sip::Header;

use super::dialogs::LegDialog;
use super::session_timer::{SHORTEST, SessionTimer};

/// The result of a refresh of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    Yes,
    /// The peer does not know the call any more, or says nothing.
    Gone,
}

/// Refreshes a session (RFC 4028): by UPDATE where the peer knows it, otherwise by a re-INVITE with what was agreed on before.
#[derive(Clone)]
pub struct Refresher {
    pub(super) dialog: Arc<LegDialog>,
    /// The peer knows UPDATE.
    pub(super) by_update: bool,
}

impl std::fmt::Debug for Refresher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refresher")
            .field("by_update", &self.by_update)
            .finish_non_exhaustive()
    }
}

impl Refresher {
    /// True if a refresh carries an offer.
    pub fn offers(&self) -> bool {
        !self.by_update
    }

    pub async fn refresh(&self, timer: SessionTimer, description: String) -> Refreshed {
        let seconds = timer.interval.as_secs();
        let mut headers = vec![
            Header::Supported("timer".into()),
            Header::SessionExpires(format!("{seconds};refresher=uac").into()),
            Header::MinSE(SHORTEST.to_string().into()),
        ];
        self.dialog.reconnect().await;
        let dialog = self.dialog.get();
        let answer = if self.by_update {
            dialog.update(Some(headers), None).await
        } else {
            headers.push(Header::ContentType("application/sdp".into()));
            dialog
                .reinvite(Some(headers), Some(description.into_bytes()))
                .await
        };
        // RFC 4028 section 10: only these end the session; any other failure leaves it as it is.
        match answer {
            Ok(Some(answer)) if matches!(answer.status_code.code(), 408 | 481) => Refreshed::Gone,
            Ok(Some(_)) => Refreshed::Yes,
            Ok(None) | Err(_) => Refreshed::Gone,
        }
    }
}
