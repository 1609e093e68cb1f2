//! What is the same for every operation that places a call: its fields are read, its files looked up, and it is made durable; then it is answered.

use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::Response;
use jiff::{SignedDuration, Zoned};

use super::Api;
use super::event_fields;
use super::key_fields::{self, WantedQuestion};
use super::notice_fields::WantedNotice;
use super::request::Authenticated;
use super::wire::{Content, Field, Fields, Form};
use crate::config::Config;
use crate::domain::account::{Account, AccountSid, AppId, Application};
use crate::domain::call::{self, CallKind, CallSid, NewCall, Priority, Queueing};
use crate::domain::callback::{EventSubscription, RespUrl};
use crate::domain::notice::Recipient;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::prompt::{self, AudioFile, FileName, FileOwner, Prompt, Speech, VerifyCode};
use crate::domain::request_key::{Accepted, KnownRequest, RequestId, RequestKey};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::voice_name::VoiceName;
use crate::placing::{CallPlacing, NamedFiles, RequestTimes, WillingCall, recipient};
use crate::store::{NOTICES, unavailable};

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
    let (account, placing) = (&request.account, &api.placing);
    let fields = request.fields(form)?;
    let application = request.application(api, &fields).await?;
    let id = RequestId::read(fields.text("requestId")?, request.header(IDEMPOTENCY_KEY))?;
    let wanted = read(&fields, account, &api.config)?;
    let key = id.map(|id| wanted.key(id));
    if let Some(key) = &key {
        let known = api.store.find_request(&application.id, &key.id).await;
        if let Some(known) = known.map_err(|error| unavailable(&error))? {
            return Placed::again(api, key, known);
        }
    }
    let made = match make(placing, account, &application, wanted, key.clone()).await {
        Ok(made) => made,
        // One of the same name at the same time may have taken what this one misses: then this one is a repeat of it.
        Err(refusal) => {
            let Some(key) = &key else {
                return Err(refusal);
            };
            let known = api.store.find_request(&application.id, &key.id).await;
            return match known {
                Ok(Some(known)) => Placed::again(api, key, known),
                _ => Err(refusal),
            };
        }
    };
    // Two requests of one name at the same time.
    if let (Some(known), Some(key)) = (made.before, key) {
        return Placed::again(api, &key, known);
    }
    Ok(Placed {
        call: made.call,
        accepted_at: made.accepted_at,
        is_replay: false,
    })
}

/// A call that was made of a request.
#[derive(Debug)]
pub struct MadeCall {
    pub call: CallSid,
    pub accepted_at: Zoned,
    /// What a request of the same name had become by then; nothing was made in this case.
    pub before: Option<KnownRequest>,
}

/// Makes the call of a request whose fields keep all their rules, by what the platform and the database say about it now.
pub async fn make(
    placing: &CallPlacing,
    account: &Account,
    application: &Application,
    mut wanted: WantedCall,
    key: Option<RequestKey>,
) -> Result<MadeCall, Refusal> {
    if placing.oldest_node() < NOTICES {
        wanted.leave_out_what_was_ignored();
    }
    wanted.speak_as(application);
    let notice = wanted.notice.as_ref().map(|wanted| &wanted.notice);
    let callees = placing.callees(account, &wanted.common.to, notice).await?;
    placing.check_room().await?;
    let mut files = Vec::new();
    for named in &wanted.files {
        files.extend(placing.find_files(&application.id, named).await?);
    }
    let question = question(placing, application, &wanted).await?;

    let now = placing.clock().wall();
    let sid = placing.new_sid(&now);
    let queueing = wanted.queueing(placing, account, &now)?;
    let prompts = (files, question);
    let call = wanted.into_call(sid, prompts, &account.sid, &application.id, &now);
    let sid = call.sid.clone();
    let willing = WillingCall {
        call,
        queueing,
        callees,
        request: key,
    };
    let before = match placing.accept(account, willing).await? {
        Accepted::New => None,
        Accepted::Before(known) => Some(known),
    };
    Ok(MadeCall {
        call: sid,
        accepted_at: now,
        before,
    })
}

/// The fields that every such operation has.
#[derive(Debug)]
pub struct CommonFields {
    pub to: Recipient,
    /// The number that the request wants to show: its canonical digits, or whatever else it says.
    wished_caller: Option<String>,
    plays: u8,
    resp_url: Option<RespUrl>,
    user_data: Option<String>,
    max_talk: Option<u32>,
    pub events: Option<EventSubscription>,
}

impl CommonFields {
    pub fn read(fields: &Fields, account: &Account, config: &Config) -> Result<Self, Refusal> {
        let to = fields
            .text("to")?
            .ok_or_else(|| Refusal::field("to is required"))?;
        let to = recipient("to", to, fields.text("displayNum")?, account, config)?;
        Self::read_for(to, fields, config)
    }

    /// All but the number.
    pub fn read_for(to: Recipient, fields: &Fields, config: &Config) -> Result<Self, Refusal> {
        let wished_caller = fields.text("displayNum")?.map(|text| {
            let number = PhoneNumber::parse(text, &config.numbers);
            number.map_or_else(|_| text.to_owned(), |number| number.digits().to_owned())
        });
        Ok(Self {
            to,
            wished_caller,
            plays: prompt::play_times(fields.text("playTimes")?)?,
            resp_url: fields.text("respUrl")?.map(RespUrl::parse).transpose()?,
            user_data: call::user_data(fields.raw("userData")?, config.calls.max_user_data_bytes)?,
            max_talk: call::max_talk(fields.text("maxCallTime")?, config.calls.max_talk)?,
            events: event_fields::subscription(fields),
        })
    }
}

/// A request whose fields keep all their rules. Its audio files are not looked up yet.
#[derive(Debug)]
pub struct WantedCall {
    pub kind: CallKind,
    pub common: CommonFields,
    /// Who is to speak, the platform's sentences too.
    pub voice: Option<VoiceName>,
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

    /// As its application wants its texts to be spoken, where the request has not said otherwise.
    fn speak_as(&mut self, application: &Application) {
        self.voice = self.voice.take().or_else(|| application.voice.clone());
        let speech = self.speech.take();
        self.speech = speech.map(|speech| self.spoken(speech, application));
    }

    /// One of its texts, in its voice.
    fn spoken(&self, speech: Speech, application: &Application) -> Speech {
        let voice = self.voice.clone();
        Speech { voice, ..speech }.of_application(application)
    }

    fn queueing(
        &self,
        placing: &CallPlacing,
        account: &Account,
        now: &Zoned,
    ) -> Result<Queueing, Refusal> {
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
        let notice = self.notice.as_ref().map(|wanted| &wanted.notice);
        Ok(placing.queueing(&self.common.to, notice, priority, times))
    }

    /// Tells this request from another one that has the same name: by what it says, not by what the settings make of it. What a notification is told by
    /// never changes: names are remembered for days, longer than an upgrade takes.
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
            &common.wished_caller,
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
        if let Some(voice) = &self.voice {
            text.push_str(&format!("voice {voice}"));
        }
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
            notice: self
                .notice
                .map(|wanted| wanted.into_notice(question, self.voice)),
        }
    }
}

/// What asks for a key, in the voice of the message. A file that is not there is left out: the platform's sentence asks instead.
async fn question(
    placing: &CallPlacing,
    application: &Application,
    wanted: &WantedCall,
) -> Result<Option<Prompt>, Refusal> {
    let question = wanted.notice.as_ref().and_then(WantedNotice::question);
    let (owner, name) = match question {
        None => return Ok(None),
        Some(WantedQuestion::Text(text)) => {
            let speech = Speech::beside(wanted.speech.as_ref(), text);
            return Ok(Some(Prompt::spoken(wanted.spoken(speech, application))));
        }
        Some(WantedQuestion::File(owner, name)) => (*owner, name.clone()),
    };
    let named = NamedFiles {
        field: key_fields::INPUT_DTMF_PROMPT.name,
        owner,
        names: vec![name],
    };
    match placing.find_files(&application.id, &named).await {
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
