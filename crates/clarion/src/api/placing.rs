//! What is the same for every operation that places a call: its fields are read, its files looked up, and it is made durable; then it is answered.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::Response;
use jiff::{SignedDuration, Zoned};

use super::Api;
use super::callees;
use super::directory::unavailable;
use super::event_fields;
use super::key_fields::{self, WantedQuestion};
use super::notice_fields::{WantedNotice, recipient};
use super::request::Authenticated;
use super::request_times::RequestTimes;
use super::wire::{Content, Field, Fields, Form};
use crate::config::Config;
use crate::disk_room::RoomFor;
use crate::domain::account::{Account, AccountSid, AppId, Application};
use crate::domain::bill::rating::Shortage;
use crate::domain::call::{self, CallKind, CallSid, NewCall, Priority, Queueing};
use crate::domain::callback::{EventWish, OwedEvent, RespUrl, StateEvent};
use crate::domain::notice::Recipient;
use crate::domain::prompt::{
    self, AudioFile, ContentId, FileName, FileOwner, Prompt, Speech, TEST_FILE, VerifyCode,
};
use crate::domain::request_key::{Accepted, CallOrder, KnownRequest, RequestId, RequestKey};
use crate::domain::route::RouteKey;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::random;
use crate::store::{NOTICES, StoreError};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Says that an answer was given before.
const REPLAYED: &str = "idempotent-replayed";

pub const TO: Field = Field::required(
    "to",
    "Called number: mobile, or landline with area code; `+` or `00` before a country code; an extension after `-`. One number a request.",
);
pub const DISPLAY_NUM: Field = Field::optional(
    "displayNum",
    "the platform's",
    "Number shown to the called party. One that is not allowed is no error: the platform's number is shown.",
);
pub const PLAY_TIMES: Field =
    Field::optional("playTimes", "1", "1 to 3: how often the whole is played.");
pub const RESP_URL: Field = Field::optional(
    "respUrl",
    "",
    "http or https address for the status notification, without user name or password.",
);
pub const USER_DATA: Field = Field::optional(
    "userData",
    "",
    "Comes back unchanged in the status notification.",
);
pub const MAX_CALL_TIME: Field = Field::optional(
    "maxCallTime",
    "the platform's",
    "Longest talk time in seconds; 0 means the platform's.",
);
pub const REQUEST_ID: Field = Field::optional(
    "requestId",
    "",
    "A name of your own for this request, up to 64 characters; also as the header `Idempotency-Key`. The same name again, within one application, gives the same answer and makes no second call; with other fields it is refused.",
);

/// Of the answer, in a group that is named like the request.
pub const PLACED: &[Field] = &[
    Field::required(
        "callSid",
        "The call: 32 letters or digits. The request is on disk, and the call will be dialled.",
    ),
    Field::required(
        "dateCreated",
        "When it was accepted: yyyy-MM-dd HH:mm:ss in the platform's zone.",
    ),
    Field::required("orderid", "Id of its bill record."),
];

/// Reads the fields of an operation.
pub type ReadCall = fn(&Fields, &Account, &Config) -> Result<WantedCall, Refusal>;

/// The answer is a group that is named like the request.
pub async fn place(
    api: &Api,
    request: &Authenticated,
    form: &'static Form,
    read: ReadCall,
) -> Response {
    match accept(api, request, form, read).await {
        Ok(placed) => {
            let mut response = request.answer(&Ok(placed.content(form.root)));
            if placed.is_replay {
                let replayed = HeaderValue::from_static("true");
                response.headers_mut().insert(REPLAYED, replayed);
            }
            response
        }
        Err(refusal) => request.answer(&Err(refusal)),
    }
}

struct Placed {
    call: CallSid,
    accepted_at: Zoned,
    /// The request was accepted before; nothing was done this time.
    is_replay: bool,
}

impl Placed {
    /// What a request of this name got before, unless it was another request.
    fn again(api: &Api, key: &RequestKey, known: KnownRequest) -> Result<Self, Refusal> {
        if !key.is_that_of(&known) {
            return Err(StatusCode::RequestIdUsed.into());
        }
        Ok(Self {
            accepted_at: known.accepted_at.to_zoned(api.clock.zone().clone()),
            call: known.call,
            is_replay: true,
        })
    }

    fn content(&self, group: &'static str) -> Content {
        let created = self.accepted_at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let values = vec![
            ("callSid", self.call.to_string()),
            ("dateCreated", created),
            ("orderid", self.call.to_string()),
        ];
        Content::Group(group, values)
    }
}

async fn accept(
    api: &Api,
    request: &Authenticated,
    form: &Form,
    read: ReadCall,
) -> Result<Placed, Refusal> {
    let fields = request.fields(form)?;
    let application = request.application(api, &fields).await?;
    let id = RequestId::read(fields.text("requestId")?, request.header(IDEMPOTENCY_KEY))?;
    let mut wanted = read(&fields, &request.account, &api.config)?;
    let key = id.map(|id| wanted.key(id));
    if let Some(key) = &key {
        let known = api.store.find_request(&application.id, &key.id).await;
        if let Some(known) = known.map_err(|error| unavailable(&error))? {
            return Placed::again(api, key, known);
        }
    }
    if api.store.oldest_node() < NOTICES {
        wanted.leave_out_what_was_ignored();
    }
    let callees = match &wanted.notice {
        Some(wanted) => callees::find(api, &request.account, &wanted.notice).await?,
        None => vec![wanted.common.to.clone()],
    };
    let callees = callees::willing(api, &request.account, callees).await?;
    api.disk.check(RoomFor::Calls)?;
    let files = resolve(api, &application, &wanted.files).await?;
    let question = question(api, &application, &wanted).await?;

    let now = api.clock.wall();
    let sid = api.call_sids.create(&now, random::bytes());
    let queueing = wanted.queueing(&api.config, &request.account, &now)?;
    let prompts = (files, question);
    let call = wanted.into_call(sid, prompts, &request.account.sid, &application.id, &now);
    tracing::debug!(call = %call.sid, account = %call.account, to = %call.number, "accepting");
    check_callees(api, &callees, &queueing).await?;
    let (account, prompt) = (call.account.clone(), call.prompt.clone());
    let placed = Placed {
        call: call.sid.clone(),
        accepted_at: now,
        is_replay: false,
    };
    let event = OwedEvent::new(
        &call,
        StateEvent::Queued,
        None,
        call.accepted_at,
        api.clock.zone(),
    );
    let is_told = event.is_some();
    let order = CallOrder {
        call,
        event,
        queueing,
        request: key.clone(),
    };
    let accepted = make_durable(api, &request.account, order).await?;
    // Two requests of one name at the same time.
    if let (Accepted::Before(known), Some(key)) = (accepted, key) {
        return Placed::again(api, &key, known);
    }
    if is_told {
        api.callback_owed.notify_one();
    }
    api.accepted.call_accepted(account, prompt);
    Ok(placed)
}

/// Refuses callees who were called so often that the cap per day will not let a call to any of them through before it expires. Any other cap
/// only makes the call wait.
async fn check_callees(
    api: &Api,
    callees: &[Recipient],
    queueing: &Queueing,
) -> Result<(), Refusal> {
    let cap = api.config.dispatch.callee_caps.per_day;
    if cap == 0 {
        return Ok(());
    }
    let counted_until_then = SignedDuration::from_hours(24) - queueing.valid_for;
    let callees: BTreeSet<_> = callees.iter().map(|to| to.callee.as_str()).collect();
    // A notice is refused only where every number of it is spent.
    for callee in callees {
        let calls = api.store.calls_to(callee, counted_until_then).await;
        if calls.map_err(|error| unavailable(&error))? < cap {
            return Ok(());
        }
    }
    Err(Refusal::new(
        StatusCode::TooManyCallsToNumber,
        format!("to: this number has had its {cap} calls of the day"),
    ))
}

/// Stores the call. If the account has a balance or a spending limit, the possible cost of the call is reserved with it.
async fn make_durable(api: &Api, account: &Account, order: CallOrder) -> Result<Accepted, Refusal> {
    let sid = order.call.sid.clone();
    if account.balance.is_none() && account.spending_limit.is_none() {
        let accepted = api.store.accept_call(order).await;
        return accepted.map_err(|error| not_durable(&sid, &error));
    }
    let limit = api.config.reserved_talk();
    let longest_talk = order.call.max_talk.unwrap_or(limit).min(limit);
    let accepted = api
        .store
        .accept_call_within_limits(order, longest_talk)
        .await;
    match accepted.map_err(|error| not_durable(&sid, &error))? {
        Ok(accepted) => Ok(accepted),
        Err(Shortage::Balance) => Err(StatusCode::BalanceInsufficient.into()),
        Err(Shortage::SpendingLimit) => Err(StatusCode::SpendingLimit.into()),
    }
}

/// Nobody is told "no" about a call that may be made.
fn not_durable(sid: &CallSid, error: &StoreError) -> Refusal {
    let refusal = unavailable(error);
    if !error.is_unknown() {
        return refusal;
    }
    let code = StatusCode::AcceptUnknown;
    Refusal::new(code, format!("{}; callSid {sid}", code.meaning()))
}

/// The fields that every such operation has.
#[derive(Debug)]
pub struct CommonFields {
    pub to: Recipient,
    plays: u8,
    resp_url: Option<RespUrl>,
    user_data: Option<String>,
    max_talk: Option<u32>,
    pub events: Option<EventWish>,
}

impl CommonFields {
    pub fn read(fields: &Fields, account: &Account, config: &Config) -> Result<Self, Refusal> {
        let to = fields
            .text("to")?
            .ok_or_else(|| Refusal::field("to is required"))?;
        Ok(Self {
            to: recipient("to", to, fields, account, config)?,
            plays: prompt::play_times(fields.text("playTimes")?)?,
            resp_url: fields.text("respUrl")?.map(RespUrl::parse).transpose()?,
            user_data: call::user_data(fields.raw("userData")?, config.calls.max_user_data_bytes)?,
            max_talk: call::max_talk(fields.text("maxCallTime")?, config.calls.max_talk)?,
            events: event_fields::wish(fields),
        })
    }
}

/// The audio files of a field.
#[derive(Debug)]
pub struct NamedFiles {
    pub field: &'static str,
    pub owner: FileOwner,
    pub names: Vec<FileName>,
}

/// A request whose fields keep all their rules. Its audio files are not looked up yet.
#[derive(Debug)]
pub struct WantedCall {
    pub kind: CallKind,
    pub common: CommonFields,
    pub speech: Option<Speech>,
    /// Played in their order.
    pub files: Vec<NamedFiles>,
    pub code: Option<VerifyCode>,
    /// How long it may wait before it is dialled.
    pub valid_for: Duration,
    pub notice: Option<WantedNotice>,
}

impl WantedCall {
    /// What only fields of the vendor's clients ask for, which a server of an earlier version does not know and has ignored so far.
    fn leave_out_what_was_ignored(&mut self) {
        self.common.events = None;
        self.notice.take_if(|wanted| !wanted.is_new);
    }

    fn queueing(
        &self,
        config: &Config,
        account: &Account,
        now: &Zoned,
    ) -> Result<Queueing, Refusal> {
        let routes = config.trunks.iter().map(|trunk| &trunk.route);
        let request = RequestTimes {
            now,
            hours: account.call_hours.as_ref(),
            valid_for: SignedDuration::try_from(self.valid_for).unwrap_or(SignedDuration::MAX),
        };
        let (times, priority) = match &self.notice {
            Some(wanted) => (wanted.times(&request)?, wanted.priority),
            None if self.kind == CallKind::Verification => (request.of_code()?, Priority::USUAL),
            None => (request.usual()?, Priority::USUAL),
        };
        Ok(Queueing {
            route: RouteKey::of(routes, self.common.to.ends()),
            priority,
            pause: times.pause,
            valid_for: times.valid_for,
            patience: self
                .notice
                .as_ref()
                .and_then(|wanted| wanted.notice.patience(&self.common.to.number, &[])),
        })
    }

    /// Tells this request from another one that has the same name. What a notification is told by never changes: names are remembered
    /// for days, longer than an upgrade takes.
    fn key(&self, id: RequestId) -> RequestKey {
        let common = &self.common;
        let number = &common.to.number;
        let number = (number.digits(), number.extension());
        let speech = self.speech.as_ref().map(|speech| {
            let tone = (speech.speed, speech.volume, speech.pitch);
            (&speech.text, tone, speech.background)
        });
        let names = |files: &NamedFiles| {
            let names: Vec<_> = files.names.iter().map(FileName::to_string).collect();
            (names, matches!(files.owner, FileOwner::Platform))
        };
        let resp_url = common.resp_url.as_ref().map(RespUrl::as_str);
        let rest = (
            &common.to.caller,
            resp_url,
            &common.user_data,
            common.max_talk,
        );
        let (text, secret) = match self.kind {
            CallKind::Notification => {
                let (files, of_platform) = self.files.first().map(names).unwrap_or_default();
                let message = (number, files, of_platform, speech, common.plays);
                (serde_json::to_string(&(message, rest)), None)
            }
            CallKind::Verification => {
                // The files can tell the code as well.
                let files: Vec<_> = self.files.iter().map(names).collect();
                let code = self.code.as_ref().map(VerifyCode::reveal);
                let language = self.code.as_ref().map(|code| code.language.as_str());
                let secret = serde_json::to_string(&(code, files));
                let message = ("VoiceVerify", number, language, common.plays);
                (serde_json::to_string(&(message, rest)), secret.ok())
            }
        };
        let mut text = text.unwrap_or_default();
        if let Some(events) = &common.events {
            text.push_str(&events.to_stored());
        }
        if let Some(notice) = &self.notice {
            text.push_str(&notice.told_by());
        }
        RequestKey::new(id, &text, secret.as_deref())
    }

    fn into_call(
        self,
        sid: CallSid,
        (files, question): (Vec<AudioFile>, Option<Prompt>),
        account: &AccountSid,
        app: &AppId,
        now: &Zoned,
    ) -> NewCall {
        let common = self.common;
        NewCall {
            sid,
            kind: self.kind,
            account: account.clone(),
            app: app.clone(),
            accepted_at: now.timestamp(),
            called: common.to.called,
            number: common.to.number,
            callee: common.to.callee,
            caller: common.to.caller,
            prompt: Prompt {
                speech: self.speech,
                files,
                code: self.code,
                plays: common.plays,
            },
            max_talk: common.max_talk,
            resp_url: common.resp_url,
            user_data: common.user_data,
            events: common.events,
            notice: self.notice.map(|wanted| wanted.into_notice(question)),
        }
    }
}

/// What asks for a key, in the voice of the message. A file that is not there is left out: the platform's sentence asks instead.
async fn question(
    api: &Api,
    application: &Application,
    wanted: &WantedCall,
) -> Result<Option<Prompt>, Refusal> {
    let question = wanted.notice.as_ref().and_then(WantedNotice::question);
    let (owner, name) = match question {
        None => return Ok(None),
        Some(WantedQuestion::Text(text)) => {
            let speech = Speech::beside(wanted.speech.as_ref(), text);
            return Ok(Some(Prompt::spoken(speech)));
        }
        Some(WantedQuestion::File(owner, name)) => (*owner, name.clone()),
    };
    let named = NamedFiles {
        field: key_fields::INPUT_DTMF_PROMPT.name,
        owner,
        names: vec![name],
    };
    match resolve_field(api, application, &named).await {
        Ok(files) => Ok(Some(Prompt {
            speech: None,
            files,
            code: None,
            plays: 1,
        })),
        Err(refusal) if refusal.code == StatusCode::VoiceFileMissing => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Looks all files up.
async fn resolve(
    api: &Api,
    application: &Application,
    files: &[NamedFiles],
) -> Result<Vec<AudioFile>, Refusal> {
    let mut found = Vec::new();
    for named in files.iter().filter(|named| !named.names.is_empty()) {
        found.extend(resolve_field(api, application, named).await?);
    }
    Ok(found)
}

/// The test file is found for either owner, unless that owner has a file of the same name.
async fn resolve_field(
    api: &Api,
    application: &Application,
    named: &NamedFiles,
) -> Result<Vec<AudioFile>, Refusal> {
    let contents = api
        .store
        .audio_files(&application.id, named.owner, &named.names)
        .await
        .map_err(|error| unavailable(&error))?;
    let names = named.names.iter().zip(contents);
    names
        .map(|(name, content)| {
            let builtin = || (name.as_str() == TEST_FILE).then(ContentId::test_file);
            let content = content.or_else(builtin).ok_or_else(|| {
                Refusal::new(
                    StatusCode::VoiceFileMissing,
                    format!("{}: there is no voice file {name}", named.field),
                )
            })?;
            Ok(AudioFile {
                name: name.clone(),
                content,
            })
        })
        .collect()
}
