//! An alert that may come in: its token fits an intake, its address is one of those that the intake takes alerts from, and its account has a place.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, CONNECTION};
use axum::http::request::Parts;
use axum::response::Response;

use super::super::auth::SAME_TIME;
use super::super::limiter::Slot;
use super::super::request::{BodyLimits, REFUSAL_PAUSE, read_body};
use super::super::{Api, KnownClient, PeerAddress, query};
use super::answer;
use crate::domain::account::{Account, Application};
use crate::domain::intake::{Intake, IntakeFormat, IntakeName, IntakeToken};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::{FairPlace, PlaceShortage};
use crate::store::{INTAKES, unavailable};

/// The header in which SMSEagle's clients send their token.
const ACCESS_TOKEN: &str = "access-token";
/// Of `ROUTE`, before the name.
const BEFORE_NAME: &str = "/intake/";
/// A longer alert takes one of the places for those, and is read on a thread that may be busy.
pub const SHORT_ALERT: usize = 64 << 10;
/// So many of these are taken at once, of all accounts and of one.
pub const LONG_ALERTS: usize = 8;
pub const LONG_ALERTS_OF_ACCOUNT: usize = 2;
/// So much of the body of a refused request is kept.
const NOTHING: usize = 0;

#[derive(Debug)]
pub struct IncomingAlert {
    pub intake: Intake,
    pub account: Arc<Account>,
    pub application: Arc<Application>,
    pub body: Bytes,
    _slot: Slot,
    /// Of a long one.
    _place: Option<FairPlace>,
}

impl FromRequest<Arc<Api>> for IncomingAlert {
    type Rejection = Response;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let http = &api.config.http;
        let limits = BodyLimits {
            bytes: http.max_alert_bytes,
            time: http.body_time,
            least_rate: api.config.audio_files.least_rate,
        };
        let admitted = match admit(api, &parts).await {
            Ok(alert) if may_be_long(&body) => with_place(api, alert, limits.time).await,
            admitted => admitted,
        };
        // The body of a refused request is read too: a client that is still writing when the connection closes never sees the answer.
        let keep = match admitted {
            Ok(_) => limits.bytes,
            Err(_) => NOTHING,
        };
        let body = read_body(&parts.headers, body, limits, keep).await;
        let is_broken = body.is_err();
        let read = admitted.and_then(|admitted| {
            let body = body.map_err(|error| error.refusal())?;
            Ok((admitted, body))
        });
        match read {
            Ok((admitted, body)) => Ok(Self { body, ..admitted }),
            Err(refusal) => {
                let mut response = answer::refused(&refusal);
                if is_broken {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                }
                Err(response)
            }
        }
    }
}

/// It takes as much memory as it is long, and time to be read. One that does not say how long it is may be as long as the longest.
fn may_be_long(body: &Body) -> bool {
    body.size_hint()
        .exact()
        .is_none_or(|length| length > SHORT_ALERT as u64)
}

/// Long alerts of one account leave places for those of others.
async fn with_place(
    api: &Api,
    alert: IncomingAlert,
    time: Duration,
) -> Result<IncomingAlert, Refusal> {
    let deadline = Instant::now() + time;
    let places = &api.admission.long_alerts;
    let place = places
        .take(alert.account.sid.as_str(), deadline.into())
        .await;
    let place = place.map_err(|shortage| {
        let (limit, whose) = match shortage {
            PlaceShortage::Own => (LONG_ALERTS_OF_ACCOUNT, " of an account"),
            PlaceShortage::All => (LONG_ALERTS, ""),
        };
        Refusal::new(
            StatusCode::TooManyRequests,
            format!("at most {limit} long alerts{whose} are taken at once"),
        )
    })?;
    Ok(IncomingAlert {
        _place: Some(place),
        ..alert
    })
}

/// Everything but the body.
async fn admit(api: &Api, parts: &Parts) -> Result<IncomingAlert, Refusal> {
    let from = parts
        .extensions
        .get::<PeerAddress>()
        .expect("the listener always adds it")
        .0;
    let (refusal, pause) = match find(api, parts, from).await {
        Ok((intake, account, application)) => {
            if let Some(client) = parts.extensions.get::<KnownClient>() {
                client.record();
            }
            match api.admission.limiter.enter(&account, Instant::now()) {
                Ok(slot) => {
                    api.admission.admitted_point.reach();
                    return Ok(IncomingAlert {
                        intake,
                        account,
                        application,
                        body: Bytes::new(),
                        _slot: slot,
                        _place: None,
                    });
                }
                Err(refusal) => (refusal, REFUSAL_PAUSE),
            }
        }
        Err(refusal) => {
            let pause = api.admission.failures.record(&refusal, from);
            (refusal, pause)
        }
    };
    tokio::time::sleep(pause).await;
    Err(refusal)
}

type Found = (Intake, Arc<Account>, Arc<Application>);

async fn find(api: &Api, parts: &Parts, from: IpAddr) -> Result<Found, Refusal> {
    let began = Instant::now();
    let intake = match parts.uri.path().strip_prefix(BEFORE_NAME) {
        Some(name) => by_name(api, name, token(parts)).await?,
        None => by_token(api, parts).await?,
    };
    if intake.is_none() {
        tokio::time::sleep_until((began + SAME_TIME).into()).await;
    }
    let intake = intake.ok_or(StatusCode::IntakeInvalid)?;
    intake.check_address(from)?;
    // An earlier version would take the end of an incident for something else.
    if api.placing.oldest_node() < INTAKES {
        return Err(Refusal::new(
            StatusCode::UnknownError,
            "alerts are not taken while a server of an earlier version is running; please try again",
        ));
    }
    let directory = &api.admission.directory;
    let application = directory.application(&intake.app, None).await?;
    let account = directory.read_account(&application.account).await?;
    let account = account.ok_or(StatusCode::AppMissing)?;
    account.check_state()?;
    application.check_usable_by(&account.sid)?;
    Ok((intake, account, application))
}

/// Whether there is no such intake, or the token does not fit, is not told.
async fn by_name(
    api: &Api,
    name: &str,
    token: Option<IntakeToken>,
) -> Result<Option<Intake>, Refusal> {
    let (Ok(name), Some(token)) = (name.parse::<IntakeName>(), token) else {
        return Ok(None);
    };
    let intake = api.store.intake(&name).await;
    let intake = intake.map_err(|error| unavailable(&error))?;
    Ok(
        intake
            .filter(|intake| intake.token.fits(&token) && intake.format != IntakeFormat::SmsEagle),
    )
}

async fn by_token(api: &Api, parts: &Parts) -> Result<Option<Intake>, Refusal> {
    let token = parts.headers.get(ACCESS_TOKEN);
    let Some(token) = token.and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    let intake = api.store.intake_of_token(&IntakeToken::given(token)).await;
    let intake = intake.map_err(|error| unavailable(&error))?;
    Ok(intake.filter(|intake| intake.format == IntakeFormat::SmsEagle))
}

/// As bearer, or in the query where a tool cannot send headers.
pub fn token(parts: &Parts) -> Option<IntakeToken> {
    let header = parts.headers.get(AUTHORIZATION);
    let bearer = header.and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        let token = token.trim();
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.to_owned())
    });
    let token = bearer.or_else(|| query::value(parts, "token"))?;
    Some(IntakeToken::given(&token))
}
