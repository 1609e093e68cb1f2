//! A change of the session before the answer (RFC 3311): a network that rings has something to say about where the sound comes from. The
//! library handles no requests about an INVITE of ours that is not answered, so this one is answered here.

use rsipstack::dialog::DialogId;
use rsipstack::dialog::dialog::{DialogState, TransactionCommand, TransactionHandle};
use rsipstack::sip::{Header, HeadersExt, StatusCode};
use rsipstack::transaction::transaction::Transaction;

use super::dialogs::LegDialog;
use super::{SILENCE, SignallingError};

/// Shows an UPDATE to its leg, and answers as the leg wants.
pub(super) async fn answer(
    mut transaction: Transaction,
    leg: &LegDialog,
) -> Result<(), SignallingError> {
    let (handle, mut replies) = TransactionHandle::new();
    let id = DialogId::try_from(&transaction)?;
    let request = transaction.original.clone();
    leg.tell(DialogState::Updated(id, request, handle));
    let reply = tokio::time::timeout(SILENCE, replies.recv()).await;
    let Ok(Some(TransactionCommand::Respond {
        status,
        headers,
        body,
    })) = reply
    else {
        // The leg was given up in this moment.
        let gone = StatusCode::CallTransactionDoesNotExist;
        return Ok(transaction.reply(gone).await?);
    };
    let mut headers = headers.unwrap_or_default();
    // It is where the INVITE said.
    if let Ok(contact) = leg.get().initial_request().contact_header() {
        headers.push(Header::Contact(contact.clone()));
    }
    Ok(transaction.reply_with(status, headers, body).await?)
}
