//! Refreshing a session, so that the network between does not give it up (RFC 4028).

use std::sync::Arc;

use rsipstack::sip::Header;

use super::dialogs::LegDialog;
use super::headers::header_value;
use super::session_timer::{SHORTEST, SessionTimer};

/// The result of a refresh of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// With what was agreed on by that, where the response says it.
    Yes(Option<SessionTimer>),
    /// The peer cannot do it now.
    Later,
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
        let Ok(Some(answer)) = answer else {
            return Refreshed::Gone;
        };
        let expires = header_value(&answer, "Session-Expires");
        let timer = expires.and_then(|expires| SessionTimer::from_answer(&expires));
        Refreshed::by(answer.status_code.code(), timer)
    }
}

impl Refreshed {
    /// RFC 4028 section 10: only 408 and 481 end the session; any other failure leaves it as it is.
    fn by(code: u16, timer: Option<SessionTimer>) -> Self {
        match code {
            408 | 481 => Self::Gone,
            // Its own offer is under way, or it is busy.
            491 | 500 | 502..=599 => Self::Later,
            200..=299 => Self::Yes(timer),
            _ => Self::Yes(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_that_is_refused_for_now_is_no_refresh() {
        let timer = SessionTimer::from_answer("600;refresher=uas");
        for (code, refreshed) in [
            (200, Refreshed::Yes(timer)),
            (488, Refreshed::Yes(None)),
            (501, Refreshed::Yes(None)),
            (491, Refreshed::Later),
            (500, Refreshed::Later),
            (503, Refreshed::Later),
            (481, Refreshed::Gone),
            (408, Refreshed::Gone),
        ] {
            assert_eq!(Refreshed::by(code, timer), refreshed, "{code}");
        }
    }
}
