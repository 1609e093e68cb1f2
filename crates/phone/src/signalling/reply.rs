//! Our response to a change that the peer wants during a call.

use rsipstack::dialog::dialog::TransactionHandle;
use rsipstack::sip::headers::untyped::Contact;
use rsipstack::sip::{Header, HeadersExt, Method, Request, StatusCode, Uri};

use super::headers::{ALLOWED, DESCRIPTION, EXTENSIONS, header_value};
use super::session_timer::{AskedTimer, SessionTimer};

/// Answers one request of the peer; dropping it refuses.
#[derive(Debug)]
pub struct SessionReply {
    handle: TransactionHandle,
    method: Method,
    /// The number of the request in its dialog.
    number: Option<u32>,
    /// Where the peer is from now on.
    target: Option<Box<(Uri, Contact)>>,
    /// The refreshes that the peer asks for.
    timer: Option<AskedTimer>,
}

impl SessionReply {
    pub(super) fn to(request: &Request, handle: TransactionHandle) -> Self {
        let supported = header_value(request, "Supported").unwrap_or_default();
        let expires = header_value(request, "Session-Expires");
        let timer = expires.and_then(|expires| AskedTimer::of_request(&expires, &supported));
        let number = request.cseq_header().and_then(rsipstack::sip::CSeq::seq);
        Self {
            handle,
            method: request.method,
            number: number.ok(),
            target: target(request).map(Box::new),
            timer,
        }
    }

    pub(super) fn target(&self) -> Option<(Uri, Contact)> {
        self.target.as_deref().cloned()
    }

    /// The number of a request without an offer to which the response must carry one. The ACK with this number brings the answer (RFC
    /// 3261 section 14.2).
    pub fn wants_offer(&self) -> Option<u32> {
        self.number.filter(|_| self.method == Method::Invite)
    }

    /// The refreshes that are agreed on when it is accepted; none where the peer asks for none.
    pub fn session_timer(&self) -> Option<SessionTimer> {
        self.timer.map(AskedTimer::timer)
    }

    pub async fn accept(self, description: Option<String>) {
        let mut headers = vec![
            Header::Allow(ALLOWED.into()),
            Header::Supported(EXTENSIONS.join(", ").into()),
        ];
        if description.is_some() {
            headers.push(Header::ContentType(DESCRIPTION.into()));
        }
        if let Some(timer) = self.timer {
            if timer.is_required() {
                headers.push(Header::Require("timer".into()));
            }
            headers.push(Header::SessionExpires(timer.answered().into()));
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
        let _ = self.handle.reply(StatusCode::NotAcceptableHere).await;
    }

    /// An offer of ours is under way: the peer tries again later (RFC 3261 section 14.2).
    pub async fn refuse_for_now(self) {
        let _ = self.handle.reply(StatusCode::RequestPending).await;
    }
}

fn target(request: &Request) -> Option<(Uri, Contact)> {
    let contact = request.contact_header().ok()?;
    let uri = request.typed_contact_headers().ok()?.first()?.uri.clone();
    Some((uri, contact.clone()))
}
