//! A request of the API, authenticated and read, as every handler gets it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Frame;

use super::auth;
use super::limiter::Slot;
use super::wire::{self, BodyFormat, Content, Field, Fields, Form};
use super::{Api, Arrival, KnownClient, PeerAddress, query};
use crate::config::{AudioFilesConfig, LeastRate};
use crate::domain::account::{Account, AppId, Application};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::{FairPlace, PlaceShortage};

/// The field that `Authenticated::application` reads.
pub const APP_ID: Field = Field::required("appId", "Application id: 32 letters or digits.");

/// How much of an over-long body is read and discarded, so that the client can read the answer instead of seeing a broken connection.
const DRAIN: u64 = 16 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(10);
/// How much of the body of a refused request is kept: enough to see its format. Otherwise strangers could fill the memory with many bodies
/// at once.
const BEGINNING: usize = 1024;
/// The answer to a request beyond the limits of its account waits for so long, and so do those of a flood that is not authenticated: whoever
/// asks again as soon as he is refused would take the processor from others.
pub const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

/// A request that has passed every check up to the request limits. A handler that takes this type cannot skip authentication.
#[derive(Debug)]
pub struct Authenticated {
    pub account: Arc<Account>,
    arrival: Arrival,
    parts: Parts,
    body: Bytes,
    format: BodyFormat,
    _slot: Slot,
}

impl Authenticated {
    pub fn fields(&self, form: &Form) -> Result<Fields, Refusal> {
        wire::read(form, &self.parts.headers, &self.body)
    }

    /// A header with readable text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let text = self.parts.headers.get(name)?.to_str().ok()?.trim();
        (!text.is_empty()).then_some(text)
    }

    pub fn has_body(&self) -> bool {
        !self.body.trim_ascii().is_empty()
    }

    pub fn query(&self, name: &str) -> Option<String> {
        query::value(&self.parts, name)
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// A name in the query, whatever the case of the parameter.
    pub fn query_name(&self, parameter: &str) -> Result<Option<String>, Refusal> {
        let Some(raw) = query::raw_value(&self.parts, parameter) else {
            return Ok(None);
        };
        let name = query::name(raw);
        let problem = || format!("{parameter} must be percent-encoded as UTF-8 or GBK");
        name.map(Some).ok_or_else(|| Refusal::field(problem()))
    }

    /// Returns the path of the request, without its query.
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Returns the server's URL as its clients know it.
    pub fn server_url(&self, api: &Api) -> String {
        match &api.config.http.public_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => self.arrival.server_url(&self.parts),
        }
    }

    /// Returns the application that the request names, if this account may use it now.
    pub async fn application(
        &self,
        api: &Api,
        fields: &Fields,
    ) -> Result<Arc<Application>, Refusal> {
        self.application_named(api, fields.text("appId")?.unwrap_or_default())
            .await
    }

    pub async fn application_named(
        &self,
        api: &Api,
        id: &str,
    ) -> Result<Arc<Application>, Refusal> {
        let id = AppId::from_request(id)?;
        let (directory, asker) = (&api.admission.directory, &self.account.sid);
        let application = directory.application(&id, Some(asker)).await?;
        application.check_usable_by(asker)?;
        Ok(application)
    }

    pub fn answer(&self, result: &Result<Content, Refusal>) -> Response {
        wire::answer(self.format, result)
    }
}

impl FromRequest<Arc<Api>> for Authenticated {
    type Rejection = Response;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Response> {
        let http = &api.config.http;
        let limits = BodyLimits {
            bytes: http.max_body_bytes,
            time: http.body_time,
            least_rate: None,
        };
        Self::read(request, api, limits, async |_| Ok(()))
            .await
            .map(|(request, ())| request)
    }
}

/// A request with a long body. It keeps its place until it is dropped.
#[derive(Debug)]
pub struct Upload {
    pub request: Authenticated,
    _place: FairPlace,
}

impl FromRequest<Arc<Api>> for Upload {
    type Rejection = Response;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Response> {
        let audio_files = &api.config.audio_files;
        let limits = BodyLimits {
            bytes: audio_files.limits.bytes,
            time: audio_files.upload_time,
            least_rate: audio_files.least_rate,
        };
        let place = async |account: &Account| {
            let deadline = Instant::now() + limits.time;
            let uploads = &api.admission.uploads;
            let place = uploads.take(account.sid.as_str(), deadline.into()).await;
            place.map_err(|shortage| too_many_uploads(audio_files, shortage))
        };
        let (request, place) = Authenticated::read(request, api, limits, place).await?;
        Ok(Self {
            request,
            _place: place,
        })
    }
}

fn too_many_uploads(config: &AudioFilesConfig, shortage: PlaceShortage) -> Refusal {
    let rule = match shortage {
        PlaceShortage::Own => {
            let limit = config.uploads_per_account;
            format!("at most {limit} uploads of an account are in progress at once")
        }
        PlaceShortage::All => {
            let limit = config.uploads_at_once;
            format!("at most {limit} uploads are in progress at once")
        }
    };
    Refusal::new(StatusCode::TooManyRequests, rule)
}

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    pub bytes: usize,
    pub time: Duration,
    pub least_rate: Option<LeastRate>,
}

impl Authenticated {
    /// Authenticates the request, waits for a place if one is needed, then reads the body.
    async fn read<P>(
        request: Request,
        api: &Arc<Api>,
        limits: BodyLimits,
        place: impl AsyncFnOnce(&Account) -> Result<P, Refusal>,
    ) -> Result<(Self, P), Response> {
        let (parts, body) = request.into_parts();
        let from = parts
            .extensions
            .get::<PeerAddress>()
            .expect("the listener always adds it")
            .0;
        let arrival = *parts
            .extensions
            .get::<Arrival>()
            .expect("the listener always adds it");
        let entered = match admit(api, &parts, from).await {
            Ok((account, slot)) => {
                api.admission.admitted_point.reach();
                let place = place(&account).await;
                place.map(|place| (account, slot, place))
            }
            Err(refusal) => Err(refusal),
        };
        // The body of a refused request is read too: the format of the answer may depend on it, and a client that is still writing when the
        // connection closes never sees the answer.
        let keep = match entered {
            Ok(_) => limits.bytes,
            Err(_) => BEGINNING,
        };
        let body = read_body(&parts.headers, body, limits, keep).await;
        let bytes = body.as_ref().map(Clone::clone).unwrap_or_default();
        let format = BodyFormat::of_answer(&parts.headers, &bytes);
        let read = entered.and_then(|entered| {
            body.as_ref().map_err(BodyError::refusal)?;
            Ok(entered)
        });
        match read {
            Ok((account, slot, place)) => {
                let request = Self {
                    account,
                    arrival,
                    parts,
                    body: bytes,
                    format,
                    _slot: slot,
                };
                Ok((request, place))
            }
            Err(refusal) => {
                let mut answer = wire::answer(format, &Err(refusal));
                if body.is_err() {
                    answer
                        .headers_mut()
                        .insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Err(answer)
            }
        }
    }
}

/// Authenticates a request and counts it. One that is refused waits first, if there are too many of them.
async fn admit(api: &Api, parts: &Parts, from: IpAddr) -> Result<(Arc<Account>, Slot), Refusal> {
    let admission = &api.admission;
    let (refusal, pause) = match auth::authenticate(api, parts, from).await {
        Ok(account) => {
            if let Some(client) = parts.extensions.get::<KnownClient>() {
                client.record();
            }
            match admission.limiter.enter(&account, Instant::now()) {
                Ok(slot) => return Ok((account, slot)),
                Err(refusal) => (refusal, REFUSAL_PAUSE),
            }
        }
        Err(refusal) => {
            let pause = admission.failures.record(&refusal, from);
            (refusal, pause)
        }
    };
    tokio::time::sleep(pause).await;
    Err(refusal)
}

#[derive(Debug)]
pub enum BodyError {
    TooLong(usize),
    TooSlow,
    BelowRate(LeastRate),
    Broken,
}

impl BodyError {
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::TooLong(limit) => Refusal::new(
                StatusCode::DataTooLong,
                format!("the body is longer than {limit} bytes"),
            ),
            Self::TooSlow => {
                Refusal::new(StatusCode::BodyFormat, "the body did not arrive in time")
            }
            Self::BelowRate(LeastRate {
                bytes_per_second,
                grace,
            }) => Refusal::new(
                StatusCode::BodyFormat,
                format!(
                    "the body did not arrive in time: after {} seconds, at least {bytes_per_second} bytes a second",
                    grace.as_secs()
                ),
            ),
            Self::Broken => Refusal::new(StatusCode::BodyFormat, "the body did not arrive whole"),
        }
    }
}

/// Reads a body to its end and keeps only its first `keep` bytes.
pub async fn read_body(
    headers: &HeaderMap,
    mut body: Body,
    limits: BodyLimits,
    keep: usize,
) -> Result<Bytes, BodyError> {
    let BodyLimits {
        bytes: limit,
        time,
        least_rate,
    } = limits;
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        // A client that sends `Expect` is refused before it sends its body.
        if !headers.contains_key(EXPECT) {
            drain(&mut body, time).await;
        }
        return Err(BodyError::TooLong(limit));
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let collect = async {
        let mut kept = Vec::with_capacity(announced.unwrap_or(1024).min(keep));
        let (mut length, began) = (0, Instant::now());
        while let Some(frame) = next_frame(&mut body, least_rate, began, length).await? {
            let Some(data) = frame.data_ref() else {
                continue;
            };
            length += data.len();
            if length > limit {
                return Err(BodyError::TooLong(limit));
            }
            kept.extend_from_slice(&data[..data.len().min(keep - kept.len())]);
        }
        Ok(Bytes::from(kept))
    };
    let result = tokio::time::timeout(time, collect)
        .await
        .unwrap_or(Err(BodyError::TooSlow));
    if let Err(BodyError::TooLong(_)) = result {
        drain(&mut body, time).await;
    }
    result
}

/// Waits for the next bytes as long as the least rate allows.
async fn next_frame(
    body: &mut Body,
    least_rate: Option<LeastRate>,
    began: Instant,
    length: usize,
) -> Result<Option<Frame<Bytes>>, BodyError> {
    let frame = match least_rate {
        None => body.frame().await,
        Some(rate) => {
            let deadline = began + rate.time_for(length);
            let frame = tokio::time::timeout_at(deadline.into(), body.frame()).await;
            frame.map_err(|_| BodyError::BelowRate(rate))?
        }
    };
    frame.transpose().map_err(|_| BodyError::Broken)
}

async fn drain(body: &mut Body, time: Duration) {
    let read = async {
        let mut drained = 0;
        while drained < DRAIN {
            match body.frame().await {
                Some(Ok(frame)) => drained += frame.data_ref().map_or(0, |data| data.len() as u64),
                _ => return,
            }
        }
    };
    // The rest is not read. The client may then lose the answer.
    let _ = tokio::time::timeout(time.min(DRAIN_TIME), read).await;
}
