//! Requests that come to us: those inside a dialog find their dialog, a call finds whoever answers calls, and everything else is refused
//! without work.

use std::sync::Arc;

use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::sip::{HeadersExt, Method, StatusCode};
use rsipstack::transaction::TransactionReceiver;
use rsipstack::transaction::transaction::Transaction;
use tokio::sync::mpsc;

use super::SignallingError;
use super::leg::Leg;

/// A call to us.
#[derive(Debug)]
pub struct IncomingCall {
    pub leg: Leg,
    /// The user part of the request's address: the number that was dialled.
    pub number: String,
    pub offer: Vec<u8>,
}

pub type CallSender = mpsc::UnboundedSender<IncomingCall>;

pub async fn answer_requests(
    mut requests: TransactionReceiver,
    dialogs: Arc<DialogLayer>,
    calls: Option<CallSender>,
) {
    while let Some(transaction) = requests.recv().await {
        if let Err(error) = answer(transaction, &dialogs, calls.as_ref()).await {
            tracing::debug!(%error, "a request could not be answered");
        }
    }
}

async fn answer(
    mut transaction: Transaction,
    dialogs: &Arc<DialogLayer>,
    calls: Option<&CallSender>,
) -> Result<(), SignallingError> {
    let in_dialog = transaction.original.to_header()?.tag()?.is_some();
    if in_dialog {
        let Some(mut dialog) = dialogs.match_dialog(&transaction) else {
            return refuse(transaction, StatusCode::CallTransactionDoesNotExist).await;
        };
        // The dialog may wait for its owner before it answers, and other requests must not wait with it.
        tokio::spawn(async move {
            if let Err(error) = dialog.handle(&mut transaction).await {
                tracing::debug!(%error, "a request inside a dialog failed");
            }
        });
        return Ok(());
    }
    match (&transaction.original.method, calls) {
        (Method::Invite, Some(calls)) => call(transaction, dialogs, calls),
        (Method::Options, _) => Ok(transaction.reply(StatusCode::OK).await?),
        (Method::Ack, _) => Ok(()),
        (Method::Cancel, _) => refuse(transaction, StatusCode::CallTransactionDoesNotExist).await,
        (Method::Invite, None) => refuse(transaction, StatusCode::Forbidden).await,
        _ => refuse(transaction, StatusCode::MethodNotAllowed).await,
    }
}

async fn refuse(mut transaction: Transaction, status: StatusCode) -> Result<(), SignallingError> {
    // There is no response to an ACK.
    if transaction.original.method == Method::Ack {
        return Ok(());
    }
    Ok(transaction.reply(status).await?)
}

fn call(
    mut transaction: Transaction,
    dialogs: &Arc<DialogLayer>,
    calls: &CallSender,
) -> Result<(), SignallingError> {
    let (sender, states) = dialogs.new_dialog_state_channel();
    let dialog = dialogs.get_or_create_server_invite(&transaction, sender, None, None)?;
    let number = transaction
        .original
        .uri
        .user()
        .unwrap_or_default()
        .to_owned();
    let offer = transaction.original.body.clone();
    let leg = Leg::incoming(Arc::clone(dialogs), dialog.clone(), states);
    if calls.send(IncomingCall { leg, number, offer }).is_err() {
        dialog.reject(Some(StatusCode::TemporarilyUnavailable), None)?;
    }
    let mut dialog = dialog;
    tokio::spawn(async move {
        if let Err(error) = dialog.handle(&mut transaction).await {
            tracing::debug!(%error, "an incoming call failed");
        }
    });
    Ok(())
}
