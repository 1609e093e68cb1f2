//! *Try it*: a request with every field explained, as XML, JSON and curl; and the call that it makes. It is placed through the API itself, signed like that of any
//! application, so what is shown here is what happens.

use std::net::SocketAddr;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::{Map, Value};
use tower::ServiceExt;

use super::Console;
use super::field_words;
use super::page::{Frame, MenuPlace, html_with};
use super::refusal::Refused;
use super::shown::AppChoice;
use super::visit::Visit;
use crate::api::wire::Field;
use crate::api::{Arrival, LANDING_CALL, PeerAddress};
use crate::client::ApiCredentials;
use crate::domain::account::{AppId, Application};
use crate::domain::call::CallSid;
use crate::domain::wording::Wording;
use crate::management::{ManagementError, NotedChange};

const APP_ID: &str = "appId";
/// What most requests have; the others are folded away.
const USUAL: [&str; 6] = [
    "to",
    "mediaTxt",
    "mediaName",
    "playTimes",
    "displayNum",
    "respUrl",
];
/// An answer is no longer.
const LONGEST_ANSWER: usize = 65_536;

#[derive(Template)]
#[template(path = "console/try_it.html")]
struct TryPage {
    frame: Frame,
    apps: Vec<AppChoice>,
    usual: Vec<FieldRow>,
    others: Vec<FieldRow>,
    /// One of the others has a value.
    is_open: bool,
    shown: Option<ShownRequest>,
    /// The answer, where the request was refused.
    refusal: Option<String>,
}

struct FieldRow {
    name: &'static str,
    meaning: String,
    default: &'static str,
    value: String,
    is_required: bool,
    is_long: bool,
}

/// The request in the forms in which applications send it.
struct ShownRequest {
    json: String,
    xml: String,
    curl: String,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, StatusCode::OK, None, None).await
}

/// The request as it would be sent.
pub async fn preview(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let application = application(&console, &visit).await?;
    let shown = shown(&console, &visit, &application, &given(&visit));
    page(&console, &visit, StatusCode::OK, Some(shown), None).await
}

/// Sends the request.
pub async fn create(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let application = application(&console, &visit).await?;
    let given = given(&visit);
    let to = visit.field("to").trim();
    let change = NotedChange::new("call place")
        .with("app", &application.id)
        .with("to", to);
    let placing = place(&console, &visit, &application, &given);
    match console.acting(&visit).noted(change, placing).await {
        Ok(sid) => Ok(Redirect::to(&format!("/calls/{sid}?done=requested")).into_response()),
        Err(ManagementError::Rule(said)) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let shown = shown(&console, &visit, &application, &given);
            page(
                &console,
                &visit,
                status,
                Some(shown),
                Some(said.to_string()),
            )
            .await
        }
        Err(error) => Err(error.into()),
    }
}

async fn application(console: &Console, visit: &Visit) -> Result<Application, Refused> {
    let app: AppId = visit.field(APP_ID).parse().map_err(|_| Refused::BadForm)?;
    Ok(console.management.application(&app).await?)
}

/// Fields with a value, in the order of the table.
fn given(visit: &Visit) -> Vec<(&'static str, String)> {
    let fields = fields().filter_map(|field| {
        let typed = visit.field(field.name);
        let value = if is_long(field) { typed } else { typed.trim() };
        (!value.trim().is_empty()).then(|| (field.name, value.to_owned()))
    });
    fields.collect()
}

fn fields() -> impl Iterator<Item = &'static Field> {
    let fields = LANDING_CALL.fields.iter();
    fields.filter(|field| field.name != APP_ID && !field.rule.starts_with("Older name"))
}

/// A text of the customer's own: each of its characters counts.
fn is_long(field: &Field) -> bool {
    matches!(field.name, "mediaTxt" | "userData")
}

async fn place(
    console: &Console,
    visit: &Visit,
    application: &Application,
    given: &[(&'static str, String)],
) -> Result<CallSid, ManagementError> {
    let account = console.management.account(&application.account).await?;
    let credentials = ApiCredentials {
        sid: account.sid,
        token: account.auth_token,
    };
    let signature = credentials.sign(&console.clock.wall());
    let path = path(&console.version, credentials.sid.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("{path}?sig={}", signature.sig))
        .header(AUTHORIZATION, signature.authorization)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json;charset=utf-8");
    if let Some(extensions) = request.extensions_mut() {
        extensions.insert(PeerAddress(visit.address));
        if let Some(arrival) = visit.parts.extensions.get::<Arrival>() {
            extensions.insert(*arrival);
        }
    }
    let body = Body::from(json(&application.id, given).to_string());
    let request = request.body(body).map_err(anyhow::Error::from)?;
    let answer = console.api.clone().oneshot(request).await;
    let answer = answer.unwrap_or_else(|never| match never {});
    let bytes = axum::body::to_bytes(answer.into_body(), LONGEST_ANSWER).await;
    let text = bytes.map_err(anyhow::Error::from)?;
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    let sid = answer.pointer("/LandingCall/callSid");
    let sid = sid.and_then(Value::as_str).and_then(|sid| sid.parse().ok());
    let said = || {
        let part = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
        let told = format!("{} {}", part("statusCode"), part("statusMsg"));
        ManagementError::Rule(Wording::quoting(told))
    };
    sid.ok_or_else(said)
}

fn path(version: &str, account: &str) -> String {
    format!("/{version}/Accounts/{account}/Calls/LandingCalls")
}

fn json(app: &AppId, given: &[(&'static str, String)]) -> Value {
    let mut body = Map::new();
    body.insert(APP_ID.to_owned(), app.as_str().into());
    for (name, value) in given {
        body.insert((*name).to_owned(), value.as_str().into());
    }
    Value::Object(body)
}

fn shown(
    console: &Console,
    visit: &Visit,
    application: &Application,
    given: &[(&'static str, String)],
) -> ShownRequest {
    let body = json(&application.id, given);
    let mut xml = format!(
        "<?xml version='1.0' encoding='utf-8'?>\n<{}>\n",
        LANDING_CALL.root
    );
    let all = std::iter::once((APP_ID, application.id.as_str()));
    let all = all.chain(given.iter().map(|(name, value)| (*name, value.as_str())));
    for (name, value) in all {
        let value = quick_xml::escape::escape(value);
        xml.push_str(&format!("  <{name}>{value}</{name}>\n"));
    }
    xml.push_str(&format!("</{}>", LANDING_CALL.root));
    ShownRequest {
        json: format!("{body:#}"),
        xml,
        curl: curl(console, visit, application, &body),
    }
}

/// Where applications reach this server: as the settings say, else by the name under which the console was found.
fn api_url(console: &Console, visit: &Visit) -> String {
    let http = &console.management.config().http;
    if let Some(url) = &http.public_url {
        return url.as_str().trim_end_matches('/').to_owned();
    }
    let arrival = visit.parts.extensions.get::<Arrival>();
    let own = arrival.map(|arrival| arrival.server_url(&visit.parts));
    let own = own.and_then(|own| own.parse::<Uri>().ok());
    let host = own.as_ref().and_then(Uri::host).unwrap_or("127.0.0.1");
    let scheme = if http.plain { "http" } else { "https" };
    let port = http.listen.first().map_or(8883, SocketAddr::port);
    format!("{scheme}://{host}:{port}")
}

/// A script for a shell. The token is not in it: whoever sees the page may not know it.
fn curl(console: &Console, visit: &Visit, application: &Application, body: &Value) -> String {
    let server = api_url(console, visit);
    let body = body.to_string().replace('\'', "'\\''");
    let sid = &application.account;
    let path = path(&console.version, "$SID");
    format!(
        "SID={sid}\nTOKEN=…\nSTAMP=$(date +%Y%m%d%H%M%S)\nSIG=$(printf %s \"$SID$TOKEN$STAMP\" | md5sum | cut -c1-32)\ncurl --request POST \"{server}{path}?sig=$SIG\" \\\n  --header \"Authorization: $(printf %s \"$SID:$STAMP\" | base64 --wrap=0)\" \\\n  --header 'Accept: application/json' \\\n  --header 'Content-Type: application/json;charset=utf-8' \\\n  --data-binary '{body}'"
    )
}

async fn page(
    console: &Console,
    visit: &Visit,
    status: StatusCode,
    shown: Option<ShownRequest>,
    refusal: Option<String>,
) -> Result<Response, Refused> {
    let words = visit.language.words();
    let chosen = visit.field(APP_ID);
    let apps = console.management.usable_applications().await?;
    let row = |field: &'static Field| FieldRow {
        name: field.name,
        meaning: field_words::meaning(field, visit.language).replace('`', ""),
        // A sentence is in one language.
        default: Some(field.default)
            .filter(|default| !default.contains(' '))
            .unwrap_or_default(),
        value: visit.field(field.name).to_owned(),
        is_required: field.required,
        is_long: is_long(field),
    };
    let is_usual = |field: &&'static Field| USUAL.contains(&field.name);
    let usual = USUAL
        .iter()
        .filter_map(|name| fields().find(|field| field.name == *name));
    let others: Vec<_> = fields().filter(|field| !is_usual(field)).map(row).collect();
    let page = TryPage {
        frame: Frame::new(console, visit, MenuPlace::TryIt, words.try_title),
        apps: apps.iter().map(|app| AppChoice::of(app, chosen)).collect(),
        usual: usual.map(row).collect(),
        is_open: others.iter().any(|field| !field.value.is_empty()),
        others,
        shown,
        refusal,
    };
    Ok(html_with(status, &page))
}
