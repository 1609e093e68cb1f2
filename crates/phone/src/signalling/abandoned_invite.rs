//! What comes of an INVITE that nobody waits for any more: it is not sent again, and whoever takes it up all the same is told that it is
//! over. So is every telephone but the first that answers an INVITE which a proxy has passed on to several.

use rsipstack::sip::{Method, Response, SipMessage, StatusCodeKind};
use rsipstack::transaction::TransactionState;
use rsipstack::transaction::transaction::{Transaction, TransactionEvent};

use super::headers::peer_tag;
use super::orphan::{DialogSnapshot, end as end_leg};
use super::{SILENCE, SignallingError, Transport};

/// Gives the INVITE up, where it has left: CANCEL as soon as the peer has shown that it knows it (RFC 3261 section 9.1), BYE if it answers.
pub(super) async fn end(mut invite: Transaction, transport: Transport) {
    let mut known = match invite.state {
        TransactionState::Calling => {
            stop_repeating(&mut invite);
            false
        }
        TransactionState::Trying | TransactionState::Proceeding => true,
        _ => return,
    };
    loop {
        if known {
            cancel(&invite);
        }
        let Some(response) = next_response(&mut invite, known).await else {
            return;
        };
        match response.status_code.kind() {
            StatusCodeKind::Provisional => known = true,
            StatusCodeKind::Successful => {
                return Box::pin(bye(&invite, transport, &response)).await;
            }
            _ => return,
        }
    }
}

/// The next response, or the final one, if it comes in time.
async fn next_response(invite: &mut Transaction, only_final: bool) -> Option<Response> {
    let receiving = async {
        while let Some(message) = invite.receive().await {
            if let SipMessage::Response(response) = message
                && !(only_final && response.status_code.kind() == StatusCodeKind::Provisional)
            {
                return Some(response);
            }
        }
        None
    };
    tokio::time::timeout(SILENCE, receiving)
        .await
        .ok()
        .flatten()
}

/// The timer for the next repetition goes, and one that has just run out.
fn stop_repeating(invite: &mut Transaction) {
    if let Some(timer) = invite.timer_a.take() {
        invite.endpoint_inner.timers.cancel(timer);
    }
    let mut waiting = Vec::new();
    while let Ok(event) = invite.tu_receiver.try_recv() {
        waiting.push(event);
    }
    for event in waiting {
        if !matches!(event, TransactionEvent::Timer(_)) {
            let _ = invite.tu_sender.send(event);
        }
    }
}

fn cancel(invite: &Transaction) {
    let Some(snapshot) = DialogSnapshot::of_invite(&invite.original, None) else {
        return;
    };
    let (endpoint, destination) = (invite.endpoint_inner.clone(), invite.destination.clone());
    tokio::spawn(async move {
        let cancelled = async {
            let cancel = snapshot.request(&endpoint, Method::Cancel, snapshot.cseq)?;
            let nowhere = || SignallingError::Address(snapshot.target.clone());
            end_leg(&endpoint, cancel, destination.ok_or_else(nowhere)?).await
        };
        if let Err(error) = cancelled.await {
            tracing::debug!(%error, "an INVITE that nobody waits for could not be cancelled");
        }
    });
}

/// The library has acknowledged the answer.
async fn bye(invite: &Transaction, transport: Transport, answer: &Response) {
    let ended = async {
        let sent_to = invite.destination.as_ref();
        let sent_to = sent_to.and_then(|sent_to| sent_to.get_socketaddr().ok());
        let snapshot = DialogSnapshot::of_answer(answer, sent_to);
        let nowhere = || SignallingError::Address("an answer without a Contact".to_owned());
        let snapshot = snapshot.ok_or_else(nowhere)?;
        let bye = snapshot.request(&invite.endpoint_inner, Method::Bye, snapshot.later_cseq())?;
        let destination = snapshot.destination(transport).ok_or_else(nowhere)?;
        end_leg(&invite.endpoint_inner, bye, destination).await
    };
    if let Err(error) = ended.await {
        tracing::debug!(%error, "an answer that nobody waits for could not be ended");
    }
}

/// Ends the answers of further telephones that the INVITE has reached (RFC 3261 section 13.2.2.4), for as long as the library acknowledges
/// answers.
pub(super) async fn end_forks(
    mut invite: Transaction,
    transport: Transport,
    answered: Option<String>,
) {
    let mut known = Vec::from_iter(answered);
    while let Some(message) = invite.receive().await {
        let SipMessage::Response(response) = message else {
            continue;
        };
        if let Some(tag) = peer_tag(&response).map(str::to_owned)
            && response.status_code.kind() == StatusCodeKind::Successful
            && !known.contains(&tag)
        {
            known.push(tag);
            // Seldom.
            Box::pin(bye(&invite, transport, &response)).await;
        }
    }
}
