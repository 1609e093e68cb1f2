//! A node as the store sees it: it claims calls and ends them, without telephones.

use std::collections::HashMap;
use std::sync::Arc;

use clarion::clock::Clock;
use clarion::domain::callback::{CallbackKey, OwedCallback};
use clarion::domain::claim::{CallUpdate, CalleeCaps, Claim, ClaimedCall, LaneShare, NodeId};
use clarion::domain::ended_call::EndedCall;
use clarion::domain::outcome::Outcome;
use clarion::random;
use clarion::store::{Database, Store};
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use supervisor::Supervisor;

const LEASE: SignedDuration = SignedDuration::from_secs(3600);
/// As in the server's housekeeping.
const OVERDUE: u32 = 1000;
const ENDS_AT_ONCE: usize = 256;

pub struct QueueNode {
    pub store: Arc<dyn Store>,
    pub id: NodeId,
    clock: Clock,
}

impl QueueNode {
    pub async fn start(database: &Database, clock: &Clock) -> anyhow::Result<Self> {
        let node = Self {
            store: database.open(&Supervisor::new()).await?,
            id: NodeId::new(random::bytes()),
            clock: clock.clone(),
        };
        node.heartbeat().await?;
        Ok(node)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub async fn heartbeat(&self) -> anyhow::Result<()> {
        let seen = self.store.heartbeat(&self.id, self.now(), LEASE);
        seen.await?;
        Ok(())
    }

    /// Looks for lanes with something due and takes at most so many calls of each.
    pub async fn claim(&self, calls: u32) -> anyhow::Result<Vec<ClaimedCall>> {
        let lanes = self.store.queued_lanes().await?.due;
        let shares = lanes.into_iter().map(|lane| LaneShare {
            account: lane.account,
            lane: lane.lane,
            calls,
        });
        let claim = Claim {
            node: self.id.clone(),
            shares: shares.collect(),
            limits: HashMap::new(),
            caps: CalleeCaps::default(),
        };
        Ok(self.store.claim_calls(claim).await?)
    }

    pub async fn end(&self, claimed: ClaimedCall, outcome: Outcome) -> anyhow::Result<()> {
        self.store.end_call(self.ended(claimed, outcome)).await?;
        Ok(())
    }

    /// The steps of a call that is answered at once.
    pub async fn carry_out(&self, claimed: ClaimedCall) -> anyhow::Result<()> {
        let (sid, lease, at) = (&claimed.call.sid, &claimed.lease, self.now());
        let dialling = CallUpdate::Dialling {
            tries: 1,
            trunk: "bench".to_owned(),
            at,
            dialog: "{}".to_owned(),
        };
        self.store.advance_call(sid, lease, dialling.into()).await?;
        let answered = CallUpdate::Answered {
            at,
            dialog: Some("{}".to_owned()),
        };
        self.store.advance_call(sid, lease, answered.into()).await?;
        self.end(claimed, Outcome::Talked).await
    }

    /// Ends all that are overdue, as housekeeping does. How many those were.
    pub async fn end_overdue(&self) -> anyhow::Result<u64> {
        let mut ended = 0;
        loop {
            let overdue = self.store.claim_overdue(&self.id, OVERDUE).await?;
            if overdue.is_empty() {
                return Ok(ended);
            }
            ended += overdue.len() as u64;
            let ends = overdue
                .into_iter()
                .map(|(claimed, _)| self.end(claimed, Outcome::Expired));
            let ends = stream::iter(ends).buffer_unordered(ENDS_AT_ONCE);
            ends.try_collect::<()>().await?;
        }
    }

    fn ended(&self, claimed: ClaimedCall, outcome: Outcome) -> EndedCall {
        let now = self.now();
        let talked = (outcome == Outcome::Talked).then_some(now);
        EndedCall {
            choice: None,
            voice: None,
            if_called_off: None,
            events: Vec::new(),
            notice: None,
            outcome,
            trunk: talked.map(|_| "bench".to_owned()),
            tries: u32::from(talked.is_some()),
            dialled_at: talked,
            rang_at: None,
            answered_at: talked,
            ended_at: now,
            sip_code: talked.map(|_| 200),
            reason: None,
            legs: Vec::new(),
            bill_day: self.clock.wall().date(),
            callback: claimed.call.resp_url.clone().map(|url| OwedCallback {
                key: CallbackKey::of_end(claimed.call.sid.clone()),
                app: claimed.call.app.clone(),
                webhook_id: format!("msg_{}", random::id()),
                url,
                body: "<request/>".to_owned(),
                owed_at: now,
                valid_for: None,
            }),
            claimed,
        }
    }
}
