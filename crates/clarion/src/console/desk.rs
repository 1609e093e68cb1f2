//! What the console asks and changes: one method a verb, each change noted in the audit trail first. Its handlers know no store.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use moka::future::Cache;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::dispatch::STOP_ALL;
use crate::dispatch::trunk_pool::PooledTrunk;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::attempt::CallHistory;
use crate::domain::audit::{Actor, AuditEntry, AuditFilter};
use crate::domain::bill::BillLine;
use crate::domain::call::CallSid;
use crate::domain::call_record::{CallFilter, CallRecord};
use crate::domain::call_state::CallState;
use crate::domain::callback::{Callback, CallbackAttempt, CallbackKey};
use crate::domain::operator::{Operator, OperatorName, OperatorRole, SignIn};
use crate::readiness::Readiness;
use crate::sip_trace::{KeptMessage, TraceFilter, TraceRing};
use crate::store::{CallbackBacklog, Store, StoreError};

/// All who look within this time see the same overview: it is asked for once.
const OVERVIEW_AGE: Duration = Duration::from_millis(900);
/// Calls under way that are shown.
pub const LIVE_CALLS: u32 = 50;
/// Names of accounts and applications that are remembered, and for how long.
const NAMES: u64 = 10_000;
const NAME_AGE: Duration = Duration::from_secs(10);

/// What a desk works with.
#[derive(Debug)]
pub struct DeskParts {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub trunks: Vec<Arc<PooledTrunk>>,
    pub readiness: Arc<Readiness>,
    /// `None` where no messages are kept.
    pub trace: Option<Arc<TraceRing>>,
    /// To be notified when a callback is due.
    pub callback_owed: Arc<Notify>,
}

#[derive(Debug)]
pub struct Desk {
    parts: DeskParts,
    names: Cache<String, String>,
    overview: Mutex<Option<(Instant, Arc<Overview>)>>,
}

/// The state of things now.
#[derive(Debug)]
pub struct Overview {
    pub waiting: u64,
    pub oldest_accepted_at: Option<Timestamp>,
    pub callbacks: CallbackBacklog,
    pub trunks: Vec<TrunkLook>,
    /// The newest calls that have not ended.
    pub live: Vec<NamedCall>,
    pub is_stopped: bool,
    /// Why this node is not ready.
    pub not_ready: Option<String>,
}

#[derive(Debug)]
pub struct TrunkLook {
    pub name: String,
    pub state: String,
    pub calls: u32,
    pub channels: u32,
}

/// A call with the names of whose it is.
#[derive(Debug, Clone)]
pub struct NamedCall {
    pub record: CallRecord,
    pub account: String,
    pub app: String,
}

/// Everything that is known about a call.
#[derive(Debug)]
pub struct CallFile {
    pub call: NamedCall,
    pub history: CallHistory,
    pub callback: Option<(Callback, Vec<CallbackAttempt>)>,
    pub bill: Vec<BillLine>,
}

impl Desk {
    pub fn new(parts: DeskParts) -> Self {
        Self {
            parts,
            names: Cache::builder()
                .max_capacity(NAMES)
                .time_to_live(NAME_AGE)
                .build(),
            overview: Mutex::default(),
        }
    }

    pub async fn has_operators(&self) -> Result<bool, StoreError> {
        Ok(!self.parts.store.operators().await?.is_empty())
    }

    pub async fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
        self.parts.store.operator(name).await
    }

    pub async fn add_sign_in(&self, sign_in: SignIn) -> Result<(), StoreError> {
        self.parts.store.add_sign_in(sign_in).await
    }

    pub async fn sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
    ) -> Result<Option<(SignIn, OperatorRole)>, StoreError> {
        self.parts.store.sign_in(id_hash, now).await
    }

    pub async fn renew_sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let store = &self.parts.store;
        store.renew_sign_in(id_hash, now, expires_at).await
    }

    pub async fn end_sign_in(&self, id_hash: &str) -> Result<(), StoreError> {
        self.parts.store.end_sign_in(id_hash).await
    }

    /// The state of things, as it was a moment ago at most.
    pub async fn overview(&self) -> Result<Arc<Overview>, StoreError> {
        let mut kept = self.overview.lock().await;
        if let Some((made, overview)) = &*kept
            && made.elapsed() < OVERVIEW_AGE
        {
            return Ok(Arc::clone(overview));
        }
        let overview = Arc::new(self.look_around().await?);
        *kept = Some((Instant::now(), Arc::clone(&overview)));
        Ok(overview)
    }

    async fn look_around(&self) -> Result<Overview, StoreError> {
        let store = &self.parts.store;
        let (waiting, oldest_accepted_at) = store.queue_depth().await?;
        let live = CallFilter {
            alive: true,
            limit: LIVE_CALLS,
            ..CallFilter::default()
        };
        let switches = store.switches().await?;
        let trunks = self.parts.trunks.iter().map(|trunk| TrunkLook {
            name: trunk.name().to_owned(),
            state: trunk.state(),
            calls: trunk.calls(),
            channels: trunk.channels(),
        });
        Ok(Overview {
            waiting,
            oldest_accepted_at,
            callbacks: store.callback_backlog().await?,
            trunks: trunks.collect(),
            live: self.calls(live).await?,
            is_stopped: switches.iter().any(|(name, _)| name == STOP_ALL),
            not_ready: self.parts.readiness.check().await.err(),
        })
    }

    /// The newest first.
    pub async fn calls(&self, filter: CallFilter) -> Result<Vec<NamedCall>, StoreError> {
        let mut named = Vec::new();
        for record in self.parts.store.list_calls(filter).await? {
            named.push(self.named(record).await?);
        }
        Ok(named)
    }

    async fn named(&self, record: CallRecord) -> Result<NamedCall, StoreError> {
        Ok(NamedCall {
            account: self.account_name(&record.account).await?,
            app: self.app_name(&record.app).await?,
            record,
        })
    }

    async fn account_name(&self, sid: &AccountSid) -> Result<String, StoreError> {
        if let Some(name) = self.names.get(sid.as_str()).await {
            return Ok(name);
        }
        let account = self.parts.store.account(sid).await?;
        let name = account.map_or_else(|| sid.to_string(), |account| account.name);
        self.names.insert(sid.to_string(), name.clone()).await;
        Ok(name)
    }

    async fn app_name(&self, id: &AppId) -> Result<String, StoreError> {
        // An application may have the id of its account.
        let key = format!("app {id}");
        if let Some(name) = self.names.get(&key).await {
            return Ok(name);
        }
        let app = self.parts.store.application(id).await?;
        let name = app.map_or_else(|| id.to_string(), |app| app.name);
        self.names.insert(key, name.clone()).await;
        Ok(name)
    }

    /// `None` if there is no such call.
    pub async fn call(&self, sid: &CallSid) -> Result<Option<CallFile>, StoreError> {
        let store = &self.parts.store;
        let Some(record) = store.call_record(sid).await? else {
            return Ok(None);
        };
        let history = store.call_history(sid).await?;
        let callback = if record.state == CallState::Ended {
            store.callback(&CallbackKey::of_end(sid.clone())).await?
        } else {
            None
        };
        let mut bill = Vec::new();
        for attempt in &history.attempts {
            let order = attempt.number.order_id(sid);
            bill.extend(store.bill_line(&order).await?);
        }
        Ok(Some(CallFile {
            call: self.named(record).await?,
            history,
            callback,
            bill,
        }))
    }

    /// The SIP messages of a call that this node still has, in order.
    pub fn messages(&self, sid: &CallSid) -> Vec<Arc<KeptMessage>> {
        let Some(ring) = &self.parts.trace else {
            return Vec::new();
        };
        TraceFilter::CallSid(sid.to_string()).select(ring.messages(), &[])
    }

    /// How far the call had come; `None` if it had ended.
    pub async fn cancel(
        &self,
        actor: Actor,
        sid: &CallSid,
    ) -> Result<Option<CallState>, StoreError> {
        let change = self.change(actor, "call cancel", format!("call cancel {sid}"));
        change.note(None).await?;
        let result = self.parts.store.cancel_call(sid).await;
        match &result {
            Ok(Some(_)) => {}
            Ok(None) => change.note(Some("it has ended already".to_owned())).await?,
            Err(error) => change.note(Some(error.to_string())).await?,
        }
        result
    }

    /// Sends a callback again, whatever its state.
    pub async fn replay(&self, actor: Actor, key: &CallbackKey) -> Result<(), StoreError> {
        let change = self.change(actor, "callback replay", format!("callback replay {key}"));
        change.note(None).await?;
        let result = self.parts.store.replay_callback(key).await;
        if let Err(error) = &result {
            change.note(Some(error.to_string())).await?;
        }
        self.parts.callback_owed.notify_one();
        result
    }

    /// The newest first.
    pub async fn changes(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        self.parts.store.changes(filter).await
    }

    fn change(&self, actor: Actor, action: &'static str, detail: String) -> Change<'_> {
        Change {
            desk: self,
            actor,
            action,
            detail,
        }
    }
}

/// A change as it is noted: before it is made, and once more if it was not.
struct Change<'a> {
    desk: &'a Desk,
    actor: Actor,
    action: &'static str,
    detail: String,
}

impl Change<'_> {
    async fn note(&self, failure: Option<String>) -> Result<(), StoreError> {
        let parts = &self.desk.parts;
        let entry = AuditEntry {
            at: parts.clock.now(),
            actor: self.actor.clone(),
            action: self.action.to_owned(),
            detail: self.detail.clone(),
            failure,
        };
        parts.store.note_change(entry).await
    }
}
