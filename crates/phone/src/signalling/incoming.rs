//! Requests that come to us: a request inside a dialog goes to its dialog, a call goes to whoever answers calls, and everything else is
//! refused without work. A request that makes us panic costs nobody else anything.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rsipstack::dialog::authenticate::verify_digest;
use rsipstack::dialog::dialog::Dialog;
use rsipstack::sip::typed::Authorization;
use rsipstack::sip::{
    Header, HeadersExt, Method, Request, Scheme, StatusCode, ToTypedHeader, Uri, Version,
};
use rsipstack::transaction::TransactionReceiver;
use rsipstack::transaction::key::TransactionRole;
use rsipstack::transaction::transaction::Transaction;
use supervisor::{Watch, contain};
use tokio::sync::mpsc;

use super::dialog::OwnedDialog;
use super::dialogs::Dialogs;
use super::headers::{ALLOWED, EXTENSIONS, capabilities};
use super::incoming_leg::IncomingLeg;
use super::{SignallingError, SipCredentials, early_update};

/// A call to us.
#[derive(Debug)]
pub struct IncomingCall {
    pub leg: IncomingLeg,
    /// The user part of the request's address: the number that was dialled.
    pub number: String,
    /// The user part of the From header: the number that is shown.
    pub caller: String,
    pub call_id: String,
    pub offer: Vec<u8>,
}

/// Shorter than a peer waits before it repeats a request.
const SETTLING_TIME: Duration = Duration::from_millis(400);
/// A hang-up must not get lost where a busy machine needs longer. The peer repeats it meanwhile, which does no harm.
const SETTLING_TIME_OF_A_BYE: Duration = Duration::from_secs(4);

pub type CallSender = mpsc::UnboundedSender<IncomingCall>;

/// Who answers calls, and who may call.
#[derive(Debug, Clone)]
pub struct Answering {
    pub calls: CallSender,
    /// Where there are some, callers must prove that they know them.
    pub credentials: Option<SipCredentials>,
}

pub async fn answer_requests(
    mut requests: TransactionReceiver,
    dialogs: Arc<Dialogs>,
    calls: Option<Answering>,
    watch: Watch,
) {
    while let Some(transaction) = requests.recv().await {
        watch.heartbeat();
        match contain(pin!(answer(transaction, &dialogs, calls.as_ref()))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a request could not be answered"),
            Err(reason) => {
                tracing::error!(
                    reason,
                    "a request made its handling panic: it is not answered"
                );
            }
        }
    }
}

async fn answer(
    mut transaction: Transaction,
    dialogs: &Arc<Dialogs>,
    calls: Option<&Answering>,
) -> Result<(), SignallingError> {
    if let Some(status) = fault(&transaction.original) {
        return refuse(transaction, status).await;
    }
    let unknown = unknown_extensions(&transaction.original);
    if !unknown.is_empty() {
        let unsupported = vec![Header::Unsupported(unknown.join(", ").into())];
        let status = StatusCode::BadExtension;
        return Ok(transaction.reply_with(status, unsupported, None).await?);
    }
    let in_dialog = transaction.original.to_header()?.tag()?.is_some();
    if in_dialog {
        if dialogs.find(&transaction).is_none() {
            return refuse(transaction, StatusCode::CallTransactionDoesNotExist).await;
        }
        if !understood_in_a_dialog(transaction.original.method) {
            return refuse(transaction, StatusCode::MethodNotAllowed).await;
        }
        if transaction.original.method == Method::Update
            && let Some(leg) = dialogs.unanswered(&transaction)
        {
            tokio::spawn(async move { early_update::answer(transaction, &leg).await });
            return Ok(());
        }
        // The dialog may wait for its owner before it answers, and other requests must not wait with it.
        let dialogs = Arc::clone(dialogs);
        tokio::spawn(async move {
            let mut dialog = match settled(&dialogs, &transaction).await {
                Ok(dialog) => dialog,
                Err(StatusCode::RequestPending) => return before_the_answer(transaction).await,
                Err(status) => return refuse(transaction, status).await,
            };
            if let Err(error) = dialog.handle(&mut transaction).await {
                tracing::debug!(%error, "a request inside a dialog failed");
            }
            Ok(())
        });
        return Ok(());
    }
    match (&transaction.original.method, calls) {
        (Method::Invite, Some(answering)) => match &answering.credentials {
            Some(credentials) if !authentic(&transaction.original, credentials) => {
                challenge(transaction).await
            }
            _ => call(transaction, dialogs, &answering.calls),
        },
        (Method::Options, _) => {
            let able = capabilities();
            Ok(transaction.reply_with(StatusCode::OK, able, None).await?)
        }
        (Method::Ack, _) => Ok(()),
        (Method::Cancel, _) => refuse(transaction, StatusCode::CallTransactionDoesNotExist).await,
        (Method::Invite, None) => refuse(transaction, StatusCode::Forbidden).await,
        _ => refuse(transaction, StatusCode::MethodNotAllowed).await,
    }
}

/// Other methods are not even shown to the library: during a MESSAGE a dialog does not count as confirmed there, and could not be ended.
fn understood_in_a_dialog(method: Method) -> bool {
    use Method::{Ack, Bye, Cancel, Info, Invite, Options, PRack, Update};
    matches!(
        method,
        Ack | Bye | Cancel | Info | Invite | Options | PRack | Update
    )
}

/// The library answers requests about a call of ours only a moment after our ACK has left, and the callee may hang up before that moment. So
/// we wait for it, and for the ACK of a caller whose BYE has overtaken it. A request about a call of ours that is still not answered then
/// has come before the answer.
async fn settled(dialogs: &Dialogs, transaction: &Transaction) -> Result<Dialog, StatusCode> {
    let is_bye = transaction.original.method == Method::Bye;
    let time = if is_bye {
        SETTLING_TIME_OF_A_BYE
    } else {
        SETTLING_TIME
    };
    let deadline = tokio::time::Instant::now() + time;
    loop {
        let dialog = dialogs.find(transaction);
        let dialog = dialog.ok_or(StatusCode::CallTransactionDoesNotExist)?;
        let state = dialog.state();
        let is_ours =
            matches!(&dialog, Dialog::Invite(invite) if invite.role() == TransactionRole::Client);
        let ready = if is_ours {
            state.is_confirmed() || state.is_terminated()
        } else {
            !(is_bye && state.waiting_ack())
        };
        let is_late = tokio::time::Instant::now() > deadline;
        match (ready, is_late) {
            (false, true) if is_ours => return Err(StatusCode::RequestPending),
            (false, false) => tokio::time::sleep(Duration::from_millis(5)).await,
            _ => return Ok(dialog),
        }
    }
}

/// A request about a call of ours that is not answered yet.
async fn before_the_answer(mut transaction: Transaction) -> Result<(), SignallingError> {
    let headers = match transaction.original.method {
        Method::Options => capabilities(),
        // A key before the message does not count.
        Method::Info => Vec::new(),
        // Our INVITE is still under way (RFC 3261 section 14.2).
        _ => return refuse(transaction, StatusCode::RequestPending).await,
    };
    Ok(transaction
        .reply_with(StatusCode::OK, headers, None)
        .await?)
}

/// What is wrong with a request, where the library does not look.
pub(super) fn fault(request: &Request) -> Option<StatusCode> {
    if request.version != Version::V2 {
        return Some(StatusCode::VersionNotSupported);
    }
    let another_method =
        request.cseq_header().and_then(rsipstack::sip::CSeq::method) != Ok(request.method);
    // RFC 3261 section 18.3: what a packet promises must be in it.
    let promised = request.headers.iter().find_map(|header| match header {
        Header::ContentLength(length) => Some(length.value().trim().parse::<usize>()),
        _ => None,
    });
    let incomplete = promised.is_some_and(|promised| promised != Ok(request.body.len()));
    (another_method || incomplete).then_some(StatusCode::BadRequest)
}

/// Extensions that are required and that we do not know (RFC 3261 section 8.2.2.3). ACK and CANCEL cannot require any.
pub(super) fn unknown_extensions(request: &Request) -> Vec<String> {
    if matches!(request.method, Method::Ack | Method::Cancel) {
        return Vec::new();
    }
    let required = request.headers.iter().filter_map(|header| match header {
        Header::Require(value) => Some(value.value()),
        _ => None,
    });
    required
        .flat_map(|value| value.split(','))
        .map(|extension| extension.trim().to_owned())
        .filter(|extension| !extension.is_empty() && !EXTENSIONS.contains(&extension.as_str()))
        .collect()
}

async fn refuse(mut transaction: Transaction, status: StatusCode) -> Result<(), SignallingError> {
    // There is no response to an ACK.
    if transaction.original.method == Method::Ack {
        return Ok(());
    }
    let headers = match status {
        // RFC 3261 section 8.2.1.
        StatusCode::MethodNotAllowed => vec![Header::Allow(ALLOWED.into())],
        _ => vec![],
    };
    Ok(transaction.reply_with(status, headers, None).await?)
}

fn authentic(request: &Request, credentials: &SipCredentials) -> bool {
    let given = request.headers.iter().find_map(|header| match header {
        Header::ProxyAuthorization(value) => Some(value.value().to_owned()),
        _ => None,
    });
    given.is_some_and(|given| {
        Authorization::parse(&given).is_ok_and(|typed| {
            typed.username == credentials.user
                && verify_digest(&typed, &credentials.password, &request.method, &given)
        })
    })
}

async fn challenge(mut transaction: Transaction) -> Result<(), SignallingError> {
    let nonce: u128 = rand::random();
    let value =
        format!("Digest realm=\"clarion\", nonce=\"{nonce:032x}\", algorithm=MD5, qop=\"auth\"");
    let headers = vec![Header::ProxyAuthenticate(value.into())];
    Ok(transaction
        .reply_with(StatusCode::ProxyAuthenticationRequired, headers, None)
        .await?)
}

fn call(
    mut transaction: Transaction,
    dialogs: &Arc<Dialogs>,
    calls: &CallSender,
) -> Result<(), SignallingError> {
    let (sender, states) = dialogs.layer.new_dialog_state_channel();
    let dialog = dialogs
        .layer
        .get_or_create_server_invite(&transaction, sender, None, None)?;
    let number = number_in(&transaction.original.uri);
    let from = transaction.original.from_header()?.typed()?;
    let incoming = IncomingCall {
        leg: IncomingLeg::new(
            OwnedDialog::invited(Arc::clone(dialogs), dialog.clone()),
            states,
        ),
        number,
        caller: number_in(&from.uri),
        call_id: transaction.original.call_id_header()?.value().to_owned(),
        offer: transaction.original.body.clone(),
    };
    if calls.send(incoming).is_err() {
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

/// The user part of an address, or the number of a `tel:` address, which the library reads as a host.
fn number_in(uri: &Uri) -> String {
    match &uri.scheme {
        Some(Scheme::Other(scheme)) if scheme.eq_ignore_ascii_case("tel") => uri.host().to_string(),
        _ => uri.user().unwrap_or_default().to_owned(),
    }
}
