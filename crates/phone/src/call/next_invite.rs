//! What a refusal teaches us about the next INVITE to the same address.

use std::net::SocketAddr;

use crate::signalling::{FailedInvite, Invite};
use crate::trunk::Trunk;

/// A day: no session needs longer refresh intervals.
const LONGEST_SESSION: u32 = 86_400;

#[derive(Debug, Default)]
pub(super) struct NextInvite {
    redirected: Option<(String, SocketAddr)>,
    shortest_session: Option<u32>,
    /// A call that is tried again is a new call to the peer.
    refusals: u32,
}

impl NextInvite {
    /// Returns true if the refusal suggests another INVITE that the trunk's configuration allows.
    pub async fn learn(&mut self, refusal: &FailedInvite, trunk: &Trunk) -> bool {
        self.refusals += 1;
        if let Some(seconds) = refusal.shortest_session() {
            let first_time = self.shortest_session.is_none();
            self.shortest_session = Some(seconds.min(LONGEST_SESSION));
            return first_time && trunk.config.session_interval.is_some();
        }
        let Some(target) = refusal
            .redirected_to()
            .filter(|_| trunk.config.follow_redirects)
        else {
            return false;
        };
        match trunk.locate(&target).await {
            Ok(address) => {
                self.redirected = Some((target, address));
                true
            }
            Err(error) => {
                tracing::warn!(trunk = trunk.config.name, %error, "a redirect leads nowhere");
                false
            }
        }
    }

    pub fn apply(&self, invite: &mut Invite) {
        if self.refusals > 0 {
            invite.call_id = format!("{}-{}", self.refusals, invite.call_id);
        }
        if let Some((target, address)) = &self.redirected {
            invite.target.clone_from(target);
            invite.destination = *address;
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
