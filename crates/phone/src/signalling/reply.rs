//! Our response to a change that the peer wants during a call.

use rsipstack::dialog::dialog::TransactionHandle;
use rsipstack::sip::{Header, Method, Request, StatusCode};

use super::headers::header_value;

/// Answers one request of the peer; dropping it refuses.
#[derive(Debug)]
pub struct SessionReply {
    handle: TransactionHandle,
    method: Method,
    /// The refresh interval that the peer asks for, as it wrote it.
    session_expires: Option<String>,
}

impl SessionReply {
    pub(super) fn to(request: &Request, handle: TransactionHandle) -> Self {
        let session_expires = header_value(request, "Session-Expires");
        Self {
            handle,
            method: request.method,
            session_expires,
        }
    }

    /// True if the response to a request without an offer must carry one.
    pub fn wants_offer(&self) -> bool {
        self.method == Method::Invite
    }

    pub async fn accept(self, description: Option<String>) {
        let mut headers = Vec::new();
        if description.is_some() {
            headers.push(Header::ContentType("application/sdp".into()));
        }
        // The side that asks for refreshes does them, and wants to see that confirmed (RFC 4028 section 9).
        if let Some(interval) = self.session_expires {
            let seconds = interval.split(';').next().unwrap_or_default().trim();
            headers.push(Header::Require("timer".into()));
            headers.push(Header::SessionExpires(
                format!("{seconds};refresher=uac").into(),
            ));
        }
        // If the peer has gone, the leg tells so.
        let _ = self
            .handle
            .respond(
                StatusCode::OK,
                Some(headers),
                description.map(String::into_bytes),
            )
            .await;
    }

    pub async fn refuse(self) {
        let _ = self
            .handle
            .respond(StatusCode::NotAcceptableHere, None, None)
            .await;
    }
}
