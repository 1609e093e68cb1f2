//! Our INVITE on its way: it leaves only while there is leave, is repeated with credentials where the peer asks for them, and comes to its
//! final response. The library would send it in the moment in which it is made, and answer a challenge under a branch of its own choice.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use rsipstack::dialog::DialogId;
use rsipstack::dialog::authenticate::{AuthRetry, Credential, handle_client_authenticate};
use rsipstack::dialog::dialog::{DialogInner, DialogState, DialogStateSender};
use rsipstack::dialog::invitation::InviteAsyncResult;
use rsipstack::sip::{HeadersExt, Request, Response, StatusCodeKind, Uri};
use rsipstack::transaction::TransactionState;
use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;
use rsipstack::transport::{SipAddr, SipConnection};
use tokio_util::sync::CancellationToken;

use super::conversations::Conversation;
use super::dialogs::LegDialog;
use super::headers::peer_tag;
use super::invite_outcome::InviteResult;
use super::leave::Leave;
use super::{SignallingError, Transport, abandoned_invite, branch, challenge};

/// Once for the first challenge, and twice more where the peer calls our proof stale: the library's own limit (`AuthRetry`).
pub(super) const MAX_REPEATS: u32 = 3;

pub(super) struct Inviting {
    pub transaction: Transaction,
    pub dialog: Arc<LegDialog>,
    /// Where the dialogs of repeated INVITEs tell what happens in them.
    pub states: DialogStateSender,
    pub transport: Transport,
    pub credentials: Option<Credential>,
    pub leave: Leave,
    /// Cancelled when nobody waits for the response any more.
    pub unwanted: CancellationToken,
    pub repeats: Repeats,
    /// Whoever answers is heard as long as something may come of the INVITE.
    pub conversation: Arc<Conversation>,
}

/// How often the INVITE was repeated, and under which branch it left first.
pub(super) struct Repeats {
    first_branch: String,
    times: u32,
    judge: AuthRetry,
}

impl Repeats {
    pub fn first_branch(&self) -> &str {
        &self.first_branch
    }

    pub fn of(invite: &Request) -> Option<Self> {
        Some(Self {
            first_branch: branch::of(invite.via_header().ok()?)?.to_owned(),
            times: 0,
            judge: AuthRetry::new(),
        })
    }
}

/// How one INVITE went.
enum Sent {
    Over(InviteAsyncResult),
    /// There is no leave, or none any more.
    Withheld,
    Unwanted,
}

impl Inviting {
    pub async fn run(mut self: Box<Self>) -> InviteResult {
        let mut asked_by = None;
        loop {
            let result = match self.send().await {
                Sent::Over(result) => result,
                Sent::Withheld if self.transaction.state == TransactionState::Nothing => {
                    return asked_by.map_or(InviteResult::Withheld, InviteResult::Unproved);
                }
                Sent::Withheld => {
                    let end = abandoned_invite::end(self.transaction, self.transport);
                    go_on(self.conversation, end);
                    return InviteResult::LeaveLost;
                }
                Sent::Unwanted => {
                    Box::pin(abandoned_invite::end(self.transaction, self.transport)).await;
                    return InviteResult::Silence;
                }
            };
            let asked = matches!(result, Err(rsipstack::Error::DialogError(..)));
            if result.is_err() && !asked && self.has_rung() {
                let end = abandoned_invite::end(self.transaction, self.transport);
                go_on(self.conversation, end);
                return InviteResult::Broken;
            }
            let response = self.transaction.last_response.as_ref().filter(|_| asked);
            let Some(challenge) = response.cloned().and_then(challenge::reveal) else {
                if let Ok((_, Some(response))) = &result
                    && response.status_code.kind() == StatusCodeKind::Successful
                {
                    let tag = peer_tag(response).map(str::to_owned);
                    let end = abandoned_invite::end_forks(self.transaction, self.transport, tag);
                    go_on(self.conversation, end);
                }
                return result.into();
            };
            match Box::pin(self.repeat(&challenge)).await {
                Ok(true) => asked_by = Some(Box::new(challenge)),
                Ok(false) => return InviteResult::Final(Box::new(challenge)),
                Err(error) => return Err(error).into(),
            }
        }
    }

    /// An 18x has come.
    fn has_rung(&self) -> bool {
        let response = self.transaction.last_response.as_ref();
        response.is_some_and(|response| (101..200).contains(&response.status_code.code()))
    }

    /// Sends the INVITE and waits for its final response. A packet of it leaves within a poll while the peer has not responded: so directly
    /// before such a poll the leave is looked at.
    async fn send(&mut self) -> Sent {
        let (dialog, leave) = (self.dialog.get(), &self.leave);
        let mut unwanted = pin!(self.unwanted.cancelled());
        let mut processing = pin!(dialog.process_invite(&mut self.transaction));
        poll_fn(|context| {
            if unwanted.as_mut().poll(context).is_ready() {
                return Poll::Ready(Sent::Unwanted);
            }
            if matches!(dialog.state(), DialogState::Calling(_)) && !leave.holds() {
                return Poll::Ready(Sent::Withheld);
            }
            processing.as_mut().poll(context).map(Sent::Over)
        })
        .await
    }

    /// Makes the INVITE ready that answers the challenge. False if it is not to be answered: the password was wrong, or the leg was given up.
    async fn repeat(&mut self, challenge: &Response) -> rsipstack::Result<bool> {
        let Some(credentials) = &self.credentials else {
            return Ok(false);
        };
        if !self.repeats.judge.should_answer(challenge) {
            return Ok(false);
        }
        // The library has counted on before it missed the challenge.
        let cseq = self.dialog.get().snapshot().local_cseq;
        let proof =
            handle_client_authenticate(cseq, &self.transaction, challenge.clone(), credentials);
        let proof = proof.await?;
        let times = self.repeats.times + 1;
        let mut invite = proof.original.clone();
        let branch = branch::repeated(&self.repeats.first_branch, times);
        branch::set(&mut invite, branch.clone())?;
        let opening = Opening {
            endpoint: &self.transaction.endpoint_inner,
            states: &self.states,
            credentials: Some(credentials.clone()),
            destination: proof.destination.clone(),
            connection: proof.connection.clone(),
            contact: self.dialog.contact(),
        };
        let opened = opening.by(invite);
        let failed = |error: SignallingError| rsipstack::Error::Error(error.to_string());
        let (dialog, transaction) = opened.map_err(failed)?;
        let goes_on = self.dialog.replace(dialog, branch);
        if goes_on {
            self.transaction = transaction;
            self.repeats.times = times;
        }
        Ok(goes_on)
    }
}

/// Works on without the leg, and hears what is said meanwhile.
fn go_on(conversation: Arc<Conversation>, work: impl Future<Output = ()> + Send + 'static) {
    // Large, and waits for half a minute after every answer: in a block of its own it takes its place once.
    let work = Box::pin(work);
    tokio::spawn(async move {
        work.await;
        drop(conversation);
    });
}

/// What a dialog needs that an INVITE of ours opens.
pub(super) struct Opening<'a> {
    pub endpoint: &'a EndpointInnerRef,
    pub states: &'a DialogStateSender,
    pub credentials: Option<Credential>,
    pub destination: Option<SipAddr>,
    pub connection: Option<SipConnection>,
    /// Where we are reached.
    pub contact: Option<Uri>,
}

impl Opening<'_> {
    /// The dialog that the INVITE opens, and the transaction that sends it.
    pub fn by(self, invite: Request) -> Result<(Arc<DialogInner>, Transaction), SignallingError> {
        let key = TransactionKey::from_request(&invite, TransactionRole::Client)?;
        let endpoint = self.endpoint.clone();
        let mut transaction =
            Transaction::new_client(key, invite.clone(), endpoint.clone(), self.connection);
        transaction.destination = self.destination;
        let dialog = DialogInner::new(
            TransactionRole::Client,
            DialogId::try_from(&transaction)?,
            invite,
            endpoint,
            self.states.clone(),
            self.credentials,
            self.contact,
            transaction.tu_sender.clone(),
        )?;
        if let Some(destination) = transaction.destination.clone() {
            *dialog.remote_uri.lock() = destination.into();
        }
        Ok((Arc::new(dialog), transaction))
    }
}
