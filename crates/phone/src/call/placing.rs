//! A call on its way: the addresses of its trunk, and whatever they redirect to, leg after leg.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::dialling::DiallingCall;
use super::keys::{KeySource, PressedKeys};
use super::next_invite::NextInvite;
use super::{AnswerRecorded, CallEvent, CallRequest, Events, LeaveRequest, PhoneError};
use crate::ending::{Cause, Ending, FailedAt, Failure};
use crate::leg_record::{LegRecord, OpenLeg};
use crate::media::engine::{MediaEngine, MediaError, MediaOptions};
use crate::media::inbound::InboundEvent;
use crate::media::session::MediaSession;
use crate::signalling::{DialogSnapshot, Leave, OnAnswer, ReadyLeg, SignallingError};
use crate::trunk::Trunk;

/// A 3xx may lead to several addresses and to another 3xx; this many are called after the first.
const REDIRECTS: usize = 5;

pub(super) struct Placing<'a> {
    pub media: &'a MediaEngine,
    pub trunk: &'a Trunk,
    pub request: &'a CallRequest,
    pub events: &'a Events,
    pub hang_up: &'a CancellationToken,
    /// The legs that are over.
    pub legs: Vec<LegRecord>,
}

/// A leg before its INVITE, with what it needs.
struct PreparedLeg {
    ready: ReadyLeg,
    media: MediaSession,
    keys: PressedKeys,
    /// Told when the ears know more.
    heard: Arc<Notify>,
    sent_to: SocketAddr,
}

/// Why no INVITE has left.
enum NotDialled {
    /// There is no way to the address.
    Unreachable(String),
    Because(Cause),
}

impl Placing<'_> {
    pub async fn run(&mut self) -> Ending {
        match self.try_addresses().await {
            Ok(ending) => ending,
            // What an earlier leg has done counts too.
            Err(failure) => Ending::Failed(Failure {
                rang: failure.rang || self.has_rung(),
                ..failure
            }),
        }
    }

    async fn try_addresses(&mut self) -> Result<Ending, Failure> {
        let name = &self.trunk.config.name;
        let addresses = self.trunk.usable_addresses().await.map_err(|error| {
            tracing::warn!(trunk = name, %error, "the trunk has no address");
            Failure::plain(Cause::TransportDown)
        })?;
        let mut last = None;
        for address in addresses {
            let failure = match self.call_at(address).await {
                Ok(ending) => return Ok(ending),
                Err(failure) => failure,
            };
            let leaves_others = self.trunk.config.failover.allows(&failure) && !self.has_rung();
            // An address that cannot be reached says less than what another one has answered.
            if last.is_none() || !failure.was_not_sent() {
                last = Some(failure);
            }
            if !leaves_others {
                break;
            }
            self.trunk.expire_addresses();
            if self.hang_up.is_cancelled() {
                break;
            }
        }
        Err(last.unwrap_or(Failure::plain(Cause::TransportDown)))
    }

    /// Tries one address of the trunk, and whatever that redirects to.
    async fn call_at(&mut self, address: SocketAddr) -> Result<Ending, Failure> {
        let mut next = NextInvite::default();
        let mut last = Failure::plain(Cause::Rejected);
        for _ in 0..=REDIRECTS {
            let call = match self.dial(address, &next).await {
                Ok(call) => call,
                // That the peer sends us where nobody is says nothing about the trunk: its 3xx decides.
                Err(NotDialled::Unreachable(reason)) if next.is_redirected() => {
                    if next.skip(reason) {
                        continue;
                    }
                    break;
                }
                Err(NotDialled::Unreachable(_)) => {
                    return Err(Failure::plain(Cause::TransportDown));
                }
                Err(NotDialled::Because(cause)) => return Err(Failure::plain(cause)),
            };
            let failed_at = next.place();
            let progress_time = self.trunk.config.progress_time;
            let answered = call
                .wait_for_answer(self.request, progress_time, self.events, self.hang_up)
                .await;
            let unanswered = match answered {
                Ok(call) => {
                    let signalling = self.trunk.signalling();
                    let (ending, leg) = call.talk(self.request, signalling, self.hang_up).await;
                    self.legs.push(leg);
                    return ending;
                }
                Err(unanswered) => unanswered,
            };
            self.legs.extend(unanswered.leg);
            let again = match &unanswered.refusal {
                // Nothing that rang is dialled again.
                Some(refusal) if !self.hang_up.is_cancelled() && !self.has_rung() => {
                    let guard = self.request.redirect_guard.as_deref();
                    next.learn(refusal, self.trunk, guard, address).await
                }
                _ => false,
            };
            if failed_at == FailedAt::Trunk || !unanswered.failure.was_not_sent() {
                last = Failure {
                    at: failed_at,
                    ..unanswered.failure
                };
            }
            if !again {
                break;
            }
        }
        Err(next.explained(last))
    }

    /// Makes a leg ready, and sends its INVITE when there is leave to.
    async fn dial(
        &self,
        address: SocketAddr,
        next: &NextInvite,
    ) -> Result<Box<DiallingCall>, NotDialled> {
        let ready = self.prepare(address, next).await.map_err(|error| {
            let trunk = &self.trunk.config.name;
            tracing::warn!(trunk, %error, "a call could not be placed");
            match error {
                PhoneError::Signalling(error @ SignallingError::Unreachable(..)) => {
                    NotDialled::Unreachable(error.to_string())
                }
                // Something in it makes no sense.
                PhoneError::Signalling(_) => NotDialled::Because(Cause::Rejected),
                PhoneError::Media(_) => NotDialled::Because(Cause::Exhausted),
            }
        });
        let PreparedLeg {
            ready,
            media,
            keys,
            heard,
            sent_to,
        } = ready?;
        let leave = self.ask_leave(&ready).await;
        let leave = leave.ok_or(NotDialled::Because(Cause::Withheld))?;
        let leg = OpenLeg::new(sent_to, self.trunk.signalling().transport());
        let call = DiallingCall::new(ready.send(leave), media, keys, heard, leg);
        // It is handed on as it gets older, and stays where it is.
        Ok(Box::new(call))
    }

    async fn prepare(
        &self,
        address: SocketAddr,
        next: &NextInvite,
    ) -> Result<PreparedLeg, PhoneError> {
        let keys = PressedKeys::new(self.events);
        let pressed = keys.clone();
        let heard = Arc::new(Notify::new());
        let hearing = Arc::clone(&heard);
        let on_inbound = move |event: InboundEvent<'_>| match event {
            InboundEvent::Key(key) => pressed.heard(key, KeySource::Packets, Instant::now()),
            InboundEvent::Tone(key) => pressed.heard(key, KeySource::Tones, Instant::now()),
            InboundEvent::Heard => hearing.notify_one(),
            InboundEvent::Sound(..) => {}
        };
        let options = MediaOptions {
            sip_peer: Some(next.destination(address).ip()),
            ..self.trunk.config.media.clone()
        };
        let media = self.media.open(options, on_inbound);
        let mut media = media.map_err(MediaError::from)?;
        let request = self.request;
        // What a network plays before the answer may say why there is none.
        media.set_ears(request.machine.is_some());
        let mut invite = self.trunk.invite(
            &request.number,
            &request.caller,
            &request.call_id,
            address,
            media.offer(),
        );
        // A call that is tried again is a new call to the peer, and an answer to an earlier leg is no answer to this one.
        if !self.legs.is_empty() {
            invite.call_id = format!("{}-{}", self.legs.len(), invite.call_id);
        }
        next.apply(&mut invite);
        let sent_to = invite.destination;
        let ready = self.trunk.signalling().prepare(invite, self.on_answer());
        Ok(PreparedLeg {
            ready: ready.await?,
            media,
            keys,
            heard,
            sent_to,
        })
    }

    fn on_answer(&self) -> OnAnswer {
        let events = self.events.clone();
        Box::new(move |snapshot: Option<DialogSnapshot>| {
            let (recorded, done) = AnswerRecorded::new();
            let _ = events.send(CallEvent::Answered(snapshot.map(Box::new), recorded));
            done
        })
    }

    /// `None` if there is no leave, or if the call has been given up before there was.
    async fn ask_leave(&self, ready: &ReadyLeg) -> Option<Leave> {
        let (request, leave) = LeaveRequest::new();
        let snapshot = Box::new(ready.snapshot().clone());
        let asked = self.events.send(CallEvent::Ready(snapshot, request));
        asked.ok()?;
        self.hang_up.run_until_cancelled(leave).await?.ok()
    }

    fn has_rung(&self) -> bool {
        self.legs.iter().any(|leg| leg.rang_at.is_some())
    }
}
