//! What a refusal teaches us about the next INVITE to the same address.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::ending::{FailedAt, Failure};
use crate::signalling::{FailedInvite, Invite};
use crate::trunk::{RedirectGuard, RedirectTarget, Trunk};

/// A day: no session needs longer refresh intervals.
const LONGEST_SESSION: u32 = 86_400;

#[derive(Debug, Default)]
pub(super) struct NextInvite {
    /// Where the peer sends us now, and where else after that.
    redirected: Option<RedirectTarget>,
    others: VecDeque<RedirectTarget>,
    /// Every address that a redirect has named: none is called twice.
    named: Vec<String>,
    /// Why a redirect is not followed.
    refused: Option<String>,
    shortest_session: Option<u32>,
}

impl NextInvite {
    /// Returns true if there is another INVITE that the refusal suggests and the trunk's configuration allows. `sent_to` is the address of the
    /// trunk that is tried.
    pub async fn learn(
        &mut self,
        refusal: &FailedInvite,
        trunk: &Trunk,
        guard: Option<&dyn RedirectGuard>,
        sent_to: SocketAddr,
    ) -> bool {
        if let Some(seconds) = refusal.shortest_session() {
            let first_time = self.shortest_session.is_none();
            self.shortest_session = Some(seconds.min(LONGEST_SESSION));
            return first_time && trunk.config.session_interval.is_some();
        }
        let is_own = self.redirected.as_ref().is_none_or(|target| target.is_own);
        let sent_to = (self.destination(sent_to), is_own);
        let targets = refusal.redirected_to();
        if trunk.config.follow_redirects && !targets.is_empty() {
            self.add(targets, trunk, guard, sent_to).await;
        } else if !refusal.failure.leaves_other_targets() {
            return false;
        }
        self.redirected = self.others.pop_front();
        self.redirected.is_some()
    }

    /// Takes the targets of a redirect that may be called, before those of an earlier one.
    async fn add(
        &mut self,
        targets: Vec<String>,
        trunk: &Trunk,
        guard: Option<&dyn RedirectGuard>,
        sent_to: (SocketAddr, bool),
    ) {
        let mut allowed = VecDeque::new();
        for target in targets {
            if self.named.contains(&target) {
                continue;
            }
            match trunk.locate(&target, guard, sent_to).await {
                Ok(found) => allowed.push_back(found),
                Err(reason) => {
                    tracing::warn!(
                        trunk = trunk.config.name,
                        reason,
                        "a redirect is not followed"
                    );
                    self.refused = Some(reason);
                }
            }
            self.named.push(target);
        }
        allowed.append(&mut self.others);
        self.others = allowed;
    }

    pub fn is_redirected(&self) -> bool {
        self.redirected.is_some()
    }

    /// Where it fails, if it does.
    pub fn place(&self) -> FailedAt {
        if self.is_redirected() {
            FailedAt::RedirectTarget
        } else {
            FailedAt::Trunk
        }
    }

    /// The address that is called now cannot be reached. True if there is another one.
    pub fn skip(&mut self, reason: String) -> bool {
        self.refused = Some(reason);
        self.redirected = self.others.pop_front();
        self.redirected.is_some()
    }

    /// The failure, and why its redirect was not followed where it is one.
    pub fn explained(self, mut failure: Failure) -> Failure {
        if let (Some((300..=399, phrase)), Some(reason)) = (&mut failure.response, self.refused) {
            *phrase = format!("{phrase} (not followed: {reason})");
        }
        failure
    }

    /// Where it goes, if `address` of the trunk is tried.
    pub fn destination(&self, address: SocketAddr) -> SocketAddr {
        let target = self.redirected.as_ref();
        target.map_or(address, |target| target.address)
    }

    pub fn apply(&self, invite: &mut Invite) {
        if let Some(target) = &self.redirected {
            invite.target.clone_from(&target.uri);
            invite.destination = target.address;
            // Anybody may ask for a digest, and try out passwords with it.
            if !target.is_own {
                invite.credentials = None;
            }
        }
        if let Some(seconds) = self.shortest_session {
            for (name, value) in &mut invite.headers {
                if name == "Session-Expires" {
                    *value = seconds.to_string();
                }
            }
            invite
                .headers
                .push(("Min-SE".to_owned(), seconds.to_string()));
        }
    }
}
