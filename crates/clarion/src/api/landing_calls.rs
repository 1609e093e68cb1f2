//! `POST …/Calls/LandingCalls`: checks one voice notification, makes it durable and answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use jiff::{SignedDuration, Zoned};
use sha2::{Digest, Sha256};

use super::Api;
use super::directory::unavailable;
use super::request::Authenticated;
use super::wire::{Content, Field, Fields, Form};
use crate::config::Config;
use crate::disk_room::RoomFor;
use crate::domain::account::{Account, AccountSid, AppId, Application};
use crate::domain::bill::rating::Shortage;
use crate::domain::call::{self, CallSid, NewCall, Priority, Queueing};
use crate::domain::callback::RespUrl;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::prompt::{
    self, AudioFile, ContentId, FileName, FileOwner, Prompt, Speech, TEST_FILE,
};
use crate::domain::request_key::{Accepted, CallOrder, KnownRequest, RequestId, RequestKey};
use crate::domain::route::{self, CallEnds, RouteKey};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::random;
use crate::store::StoreError;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Says that an answer was given before.
const REPLAYED: &str = "idempotent-replayed";

/// The current names, and the names of the older interface that clients still send. A current name wins over its older one.
pub const FORM: Form = Form {
    root: "LandingCall",
    fields: &[
        Field {
            name: "appId",
            required: true,
            rule: "Application id: 32 letters or digits.",
        },
        Field {
            name: "to",
            required: true,
            rule: "Called number: mobile, or landline with area code; `+` or `00` before a country code; an extension after `-`. One number a request.",
        },
        Field {
            name: "mediaName",
            required: false,
            rule: "Voice file names ending in .wav, separated by `;`. mediaName and mediaTxt must not both be empty. In XML the attribute `type` carries mediaNameType.",
        },
        Field {
            name: "mediaNameType",
            required: false,
            rule: "0 = file of the application (default), 1 = common file of the platform.",
        },
        Field {
            name: "mediaTxt",
            required: false,
            rule: "Text to be spoken. Effective when mediaName is empty, or when playMode is 1.",
        },
        Field {
            name: "displayNum",
            required: false,
            rule: "Number shown to the called party. One that is not allowed is no error: the platform's number is shown.",
        },
        Field {
            name: "playTimes",
            required: false,
            rule: "1 to 3, default 1: how often the whole is played.",
        },
        Field {
            name: "respUrl",
            required: false,
            rule: "http or https address for the status notification, without user name or password.",
        },
        Field {
            name: "userData",
            required: false,
            rule: "Comes back unchanged in the status notification.",
        },
        Field {
            name: "txtSpeed",
            required: false,
            rule: "-500 to 500, default 0. Checked only when mediaTxt is effective.",
        },
        Field {
            name: "txtVolume",
            required: false,
            rule: "-20 to 20, default 0. Checked only when mediaTxt is effective.",
        },
        Field {
            name: "txtPitch",
            required: false,
            rule: "-500 to 500, default 0. Checked only when mediaTxt is effective.",
        },
        Field {
            name: "txtBgsound",
            required: false,
            rule: "0 = none (default), 1 to 6 = background sound. Checked only when mediaTxt is effective.",
        },
        Field {
            name: "playMode",
            required: false,
            rule: "0 = text or files (default), 1 = the text first, then the files.",
        },
        Field {
            name: "speed",
            required: false,
            rule: "Older name of txtSpeed.",
        },
        Field {
            name: "volume",
            required: false,
            rule: "Older name of txtVolume.",
        },
        Field {
            name: "pitch",
            required: false,
            rule: "Older name of txtPitch.",
        },
        Field {
            name: "bgsound",
            required: false,
            rule: "Older name of txtBgsound.",
        },
        Field {
            name: "maxCallTime",
            required: false,
            rule: "Longest talk time in seconds; 0 or absent: the platform's.",
        },
        Field {
            name: "requestId",
            required: false,
            rule: "A name of your own for this request, up to 64 characters; also as the header `Idempotency-Key`. The same name again, within one application, gives the same answer and makes no second call; with other fields it is refused.",
        },
    ],
    attributes: &[("mediaName", "type", "mediaNameType")],
};

pub async fn create(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    match accept(&api, &request).await {
        Ok(answer) => {
            let mut response = request.answer(&Ok(answer.content));
            if answer.is_replay {
                let replayed = HeaderValue::from_static("true");
                response.headers_mut().insert(REPLAYED, replayed);
            }
            response
        }
        Err(refusal) => request.answer(&Err(refusal)),
    }
}

struct LandingAnswer {
    content: Content,
    /// The request was accepted before; nothing was done this time.
    is_replay: bool,
}

impl LandingAnswer {
    fn of(call: &CallSid, accepted_at: &Zoned, is_replay: bool) -> Self {
        let created = accepted_at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let values = vec![
            ("callSid", call.to_string()),
            ("dateCreated", created),
            ("orderid", call.to_string()),
        ];
        Self {
            content: Content::Group("LandingCall", values),
            is_replay,
        }
    }

    /// The answer that a request of this name got before, unless it was another request.
    fn again(api: &Api, key: &RequestKey, known: &KnownRequest) -> Result<Self, Refusal> {
        if key.digest != known.digest {
            return Err(StatusCode::RequestIdUsed.into());
        }
        let accepted_at = known.accepted_at.to_zoned(api.clock.zone().clone());
        Ok(Self::of(&known.call, &accepted_at, true))
    }
}

async fn accept(api: &Api, request: &Authenticated) -> Result<LandingAnswer, Refusal> {
    let fields = request.fields(&FORM)?;
    let application = request.application(api, &fields).await?;
    let id = RequestId::read(fields.text("requestId")?, request.header(IDEMPOTENCY_KEY))?;
    let parsed = ParsedRequest::read(&fields, &request.account, &api.config)?;
    let key = id.map(|id| RequestKey {
        digest: parsed.digest(),
        id,
    });
    if let Some(key) = &key {
        let known = api.store.find_request(&application.id, &key.id).await;
        if let Some(known) = known.map_err(|error| unavailable(&error))? {
            return LandingAnswer::again(api, key, &known);
        }
    }
    if api.barred.contains(parsed.number.digits()) {
        return Err(Refusal::new(
            StatusCode::CalledNotAllowed,
            "to: this number does not want to be called",
        ));
    }
    api.disk.check(RoomFor::Calls)?;
    let files = resolve(api, &application, parsed.owner, &parsed.files).await?;

    let now = api.clock.wall();
    let call = parsed.into_call(
        api.call_sids.create(&now, random::bytes()),
        files,
        &request.account.sid,
        &application.id,
        &now,
    );
    let answer = LandingAnswer::of(&call.sid, &now, false);
    tracing::debug!(call = %call.sid, account = %call.account, to = %call.number, "accepting");
    let queueing = queueing(&call, &api.config);
    check_callee(api, &call, &queueing).await?;
    let (account, prompt) = (call.account.clone(), call.prompt.clone());
    let order = CallOrder {
        call,
        queueing,
        request: key.clone(),
    };
    let accepted = make_durable(api, &request.account, order).await?;
    // Two requests of one name at the same time.
    if let (Accepted::Before(known), Some(key)) = (accepted, key) {
        return LandingAnswer::again(api, &key, &known);
    }
    api.accepted.call_accepted(account, prompt);
    Ok(answer)
}

/// Refuses a callee who was called so often that the cap per day will not let this call through before it expires. Any other cap only makes
/// the call wait.
async fn check_callee(api: &Api, call: &NewCall, queueing: &Queueing) -> Result<(), Refusal> {
    let cap = api.config.dispatch.callee_caps.per_day;
    if cap == 0 {
        return Ok(());
    }
    let counted_until_then = SignedDuration::from_hours(24) - queueing.valid_for;
    let calls = api
        .store
        .calls_to(&call.callee, counted_until_then)
        .await
        .map_err(|error| unavailable(&error))?;
    if calls < cap {
        return Ok(());
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
    let limit = api.config.rates.reserve.min(api.config.calls.max_talk);
    let limit = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
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

fn queueing(call: &NewCall, config: &Config) -> Queueing {
    let routes = config.trunks.iter().map(|trunk| &trunk.route);
    Queueing {
        route: RouteKey::of(routes, call.ends()),
        priority: Priority::USUAL,
        pause: SignedDuration::ZERO,
        valid_for: SignedDuration::try_from(config.calls.expiry).unwrap_or(SignedDuration::MAX),
    }
}

/// A request whose fields keep all their rules. Its audio files are not looked up yet.
#[derive(Debug)]
struct ParsedRequest {
    called: String,
    number: PhoneNumber,
    callee: String,
    files: Vec<FileName>,
    owner: FileOwner,
    speech: Option<Speech>,
    plays: u8,
    caller: Option<String>,
    resp_url: Option<RespUrl>,
    user_data: Option<String>,
    max_talk: Option<u32>,
}

impl ParsedRequest {
    fn read(fields: &Fields, account: &Account, config: &Config) -> Result<Self, Refusal> {
        let called = fields
            .text("to")?
            .ok_or_else(|| Refusal::field("to is required"))?
            .to_owned();
        let number = PhoneNumber::parse(&called, &config.numbers)?;
        number.check_allowed(&config.numbers)?;
        let caller = account.caller(fields.text("displayNum")?, &number, &config.numbers);
        let routes = config.trunks.iter().map(|trunk| &trunk.route);
        let ends = CallEnds {
            called: number.digits(),
            caller: caller.as_deref(),
        };
        if !route::is_carried(routes, ends) {
            return Err(StatusCode::NoRoute.into());
        }
        let files = prompt::file_names(
            fields.text("mediaName")?.unwrap_or_default(),
            config.calls.max_files,
        )?;
        let owner = match fields.text("mediaNameType")? {
            None | Some("0") => FileOwner::Application,
            Some("1") => FileOwner::Platform,
            Some(_) => return Err(Refusal::field("mediaNameType must be 0 or 1")),
        };
        let together = match fields.text("playMode")? {
            None | Some("0") => false,
            Some("1") => true,
            Some(_) => return Err(Refusal::field("playMode must be 0 or 1")),
        };
        let effective_text = files.is_empty() || together;
        let speech = if effective_text {
            speech(fields, config)?
        } else {
            None
        };
        if files.is_empty() && speech.is_none() {
            return Err(StatusCode::NothingToPlay.into());
        }
        Ok(Self {
            called,
            callee: config.numbers.callee(&number),
            number,
            files,
            owner,
            speech,
            plays: prompt::play_times(fields.text("playTimes")?)?,
            caller,
            resp_url: fields.text("respUrl")?.map(RespUrl::parse).transpose()?,
            user_data: call::user_data(fields.raw("userData")?, config.calls.max_user_data_bytes)?,
            max_talk: call::max_talk(fields.text("maxCallTime")?, config.calls.max_talk)?,
        })
    }

    /// Tells this request from another one that has the same name.
    fn digest(&self) -> String {
        let number = (self.number.digits(), self.number.extension());
        let speech = self.speech.as_ref().map(|speech| {
            let tone = (speech.speed, speech.volume, speech.pitch);
            (&speech.text, tone, speech.background)
        });
        let files: Vec<_> = self.files.iter().map(FileName::as_str).collect();
        let owner = matches!(self.owner, FileOwner::Platform);
        let resp_url = self.resp_url.as_ref().map(RespUrl::as_str);
        let fields = (
            (number, files, owner, speech, self.plays),
            (&self.caller, resp_url, &self.user_data, self.max_talk),
        );
        let text = serde_json::to_string(&fields).unwrap_or_default();
        hex::encode(Sha256::digest(text))
    }

    fn into_call(
        self,
        sid: CallSid,
        files: Vec<AudioFile>,
        account: &AccountSid,
        app: &AppId,
        now: &Zoned,
    ) -> NewCall {
        let accepted_at = now.timestamp();
        NewCall {
            sid,
            account: account.clone(),
            app: app.clone(),
            accepted_at,
            called: self.called,
            number: self.number,
            callee: self.callee,
            caller: self.caller,
            prompt: Prompt {
                speech: self.speech,
                files,
                plays: self.plays,
            },
            max_talk: self.max_talk,
            resp_url: self.resp_url,
            user_data: self.user_data,
        }
    }
}

fn speech(fields: &Fields, config: &Config) -> Result<Option<Speech>, Refusal> {
    let Some(text) = fields.text("mediaTxt")? else {
        return Ok(None);
    };
    let limit = config.calls.max_text_characters;
    if text.chars().count() > limit {
        return Err(Refusal::new(
            StatusCode::DataTooLong,
            format!("mediaTxt is longer than {limit} characters"),
        ));
    }
    Ok(Some(Speech {
        text: text.to_owned(),
        speed: voice_option(fields, "txtSpeed", "speed", -500, 500)?,
        volume: voice_option(fields, "txtVolume", "volume", -20, 20)?,
        pitch: voice_option(fields, "txtPitch", "pitch", -500, 500)?,
        background: voice_option(fields, "txtBgsound", "bgsound", 0, 6)?,
    }))
}

/// Reads an option by its current name, or by its older name if the current one is empty. A refusal names the field that the client sent.
fn voice_option<T: TryFrom<i32> + Default>(
    fields: &Fields,
    name: &'static str,
    older: &'static str,
    lowest: i32,
    highest: i32,
) -> Result<T, Refusal> {
    match fields.text(name)? {
        None => prompt::voice_option(older, fields.text(older)?, lowest, highest),
        value => prompt::voice_option(name, value, lowest, highest),
    }
}

/// Looks the files up. The test file is found for either owner, unless that owner has a file of the same name.
async fn resolve(
    api: &Api,
    application: &Application,
    owner: FileOwner,
    names: &[FileName],
) -> Result<Vec<AudioFile>, Refusal> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let contents = api
        .store
        .audio_files(&application.id, owner, names)
        .await
        .map_err(|error| unavailable(&error))?;
    names
        .iter()
        .zip(contents)
        .map(|(name, content)| {
            let builtin = || (name.as_str() == TEST_FILE).then(ContentId::test_file);
            let content = content.or_else(builtin).ok_or_else(|| {
                Refusal::new(
                    StatusCode::VoiceFileMissing,
                    format!("mediaName: there is no voice file {name}"),
                )
            })?;
            Ok(AudioFile {
                name: name.clone(),
                content,
            })
        })
        .collect()
}
