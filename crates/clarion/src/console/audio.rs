//! *Audio files*: those of the platform and of each application, with a player and their waveform; and what a call says.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use futures_util::stream;
use jiff::SignedDuration;
use tokio::sync::OwnedSemaphorePermit;
use url::form_urlencoded;

use super::Console;
use super::byte_range::WantedBytes;
use super::page::{Frame, MenuPlace, html_with};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::shown::AppChoice;
use super::times::{self, Moment};
use super::visit::Visit;
use super::waveform;
use super::words::Words;
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::prompt::AddedFile;
use crate::management::{ManagementError, OfferedFile};

/// How long a sound waits for its place.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are sent at once.
const PART: usize = 65_536;

#[derive(Template)]
#[template(path = "console/audio.html")]
struct AudioPage {
    frame: Frame,
    /// The application whose files these are; empty for the platform.
    app: String,
    apps: Vec<AppChoice>,
    files: Vec<AudioRow>,
    /// Why an upload was refused.
    problem: Option<Sentence>,
}

struct AudioRow {
    name: String,
    length: String,
    bytes: u64,
    added: Moment,
    /// Where it can be heard and seen.
    query: String,
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, visit.query("app"), None).await
}

async fn page(
    console: &Console,
    visit: &Visit,
    app: Option<String>,
    problem: Option<Sentence>,
) -> Result<Response, Refused> {
    let words = visit.language.words();
    let management = &console.management;
    let chosen = owner(app.as_deref())?;
    let files = management.audio_files_of(chosen.clone()).await?;
    let apps = management.all_applications().await?;
    let status = match problem {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let page = AudioPage {
        frame: Frame::new(console, visit, MenuPlace::Audio, words.audio_title)
            .at(here(app.as_deref())),
        apps: apps
            .iter()
            .map(|app| AppChoice::of(app, chosen.as_ref().map_or("", AppId::as_str)))
            .collect(),
        files: files
            .iter()
            .map(|file| row(console, file, chosen.as_ref(), words))
            .collect(),
        app: chosen.map(|app| app.to_string()).unwrap_or_default(),
        problem,
    };
    Ok(html_with(status, &page))
}

/// `None` for the platform.
fn owner(app: Option<&str>) -> Result<Option<AppId>, Refused> {
    let app = app.filter(|app| !app.is_empty()).map(str::parse);
    app.transpose().map_err(|_| Refused::NotFound)
}

fn row(console: &Console, file: &AddedFile, app: Option<&AppId>, words: &Words) -> AudioRow {
    let length = i64::try_from(file.duration).unwrap_or(i64::MAX);
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(app) = app {
        query.append_pair("app", app.as_str());
    }
    query.append_pair("name", file.name.as_str());
    AudioRow {
        name: file.name.to_string(),
        length: times::lasting(SignedDuration::from_millis(length), words),
        bytes: file.bytes,
        added: Moment::new(file.added_at, &console.clock, words),
        query: query.finish(),
    }
}

pub async fn upload(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let given = visit.field("app").to_owned();
    let app = owner(Some(&given))?;
    if visit.files().is_empty() {
        let problem = visit.language.words().audio_none_chosen;
        return page(&console, &visit, Some(given), Some(problem.into())).await;
    }
    let management = console.acting(&visit);
    let names: Vec<_> = visit.files().iter().map(|file| file.name.clone()).collect();
    let files = visit.files().iter().map(|file| OfferedFile {
        name: file.name.clone(),
        bytes: Ok(file.bytes.clone()),
    });
    let files: Vec<_> = files.collect();
    let added = management.add_audio(app, &names, files.into_iter());
    match added.await {
        Ok(_) => Ok(Redirect::to(&address(&given, "added")).into_response()),
        Err(error @ (ManagementError::Rule(_) | ManagementError::Refused(_))) => {
            let words = visit.language.words();
            let said = Sentence::with_wording(words, words.rule_whole, &[], &error.wording());
            page(&console, &visit, Some(given), Some(said)).await
        }
        Err(error) => Err(error.into()),
    }
}

pub async fn remove(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let given = visit.field("app");
    let removed = console.acting(&visit);
    removed
        .remove_audio(owner(Some(given))?, visit.field("name"))
        .await?;
    Ok(Redirect::to(&address(given, "removed")).into_response())
}

/// The address of the page with these files.
fn here(app: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    match app.filter(|app| !app.is_empty()) {
        Some(app) => format!("/audio?{}", query.append_pair("app", app).finish()),
        None => "/audio".to_owned(),
    }
}

fn address(app: &str, done: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !app.is_empty() {
        query.append_pair("app", app);
    }
    format!("/audio?{}", query.append_pair("done", done).finish())
}

pub async fn of_file(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let place = place(&console).await?;
    Ok(wav(&visit, &file(&console, &visit).await?, place))
}

pub async fn wave_of_file(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let _place = place(&console).await?;
    Ok(svg(&visit, &file(&console, &visit).await?))
}

async fn file(console: &Console, visit: &Visit) -> Result<Vec<i16>, Refused> {
    let app = owner(visit.query("app").as_deref())?;
    let name = visit.query("name").ok_or(Refused::NotFound)?;
    Ok(console.management.heard_in_file(app, &name).await?)
}

pub async fn of_call(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let place = place(&console).await?;
    Ok(wav(&visit, &call(&console, &visit).await?, place))
}

pub async fn wave_of_call(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let _place = place(&console).await?;
    Ok(svg(&visit, &call(&console, &visit).await?))
}

async fn call(console: &Console, visit: &Visit) -> Result<Vec<i16>, Refused> {
    let sid: CallSid = visit
        .path_value("sid")
        .parse()
        .map_err(|_| Refused::NotFound)?;
    Ok(console.management.heard_in_call(&sid).await?)
}

/// A page has many waveforms: they wait for each other, as long as somebody looks at an empty place.
async fn place(console: &Console) -> Result<OwnedSemaphorePermit, Refused> {
    let place = Arc::clone(&console.sounds).acquire_owned();
    let place = tokio::time::timeout(PATIENCE, place).await;
    place.ok().and_then(Result::ok).ok_or(Refused::Busy)
}

/// Players play it, or a part of it; who opens it saves it. Its place is free again when it has been sent.
fn wav(visit: &Visit, samples: &[i16], place: OwnedSemaphorePermit) -> Response {
    let mut bytes = Bytes::from(sound::wav::mono_16_bit(samples, sound::RATE));
    let all = bytes.len();
    let (status, range) = match WantedBytes::of(&visit.parts.headers, all) {
        WantedBytes::All => (StatusCode::OK, None),
        WantedBytes::Some(part) => {
            bytes = bytes.slice(part.clone());
            let range = format!("bytes {}-{}/{all}", part.start, part.end - 1);
            let range = HeaderValue::try_from(range).ok();
            (StatusCode::PARTIAL_CONTENT, range)
        }
        WantedBytes::Nothing => {
            let range = [(CONTENT_RANGE, format!("bytes */{all}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, range).into_response();
        }
    };
    let length = HeaderValue::from(bytes.len());
    let parts = stream::unfold((bytes, place), async |(mut rest, place)| {
        if rest.is_empty() {
            return None;
        }
        let part = rest.split_to(rest.len().min(PART));
        Some((Ok::<_, Infallible>(part), (rest, place)))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("audio/wav")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (CONTENT_LENGTH, length),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
    ];
    let mut answer = (status, headers, Body::from_stream(parts)).into_response();
    if let Some(range) = range {
        answer.headers_mut().insert(CONTENT_RANGE, range);
    }
    answer
}

fn svg(visit: &Visit, samples: &[i16]) -> Response {
    let on_dark = visit.query("dark").is_some();
    let media_type = HeaderValue::from_static("image/svg+xml");
    (
        [(CONTENT_TYPE, media_type)],
        waveform::draw(samples, on_dark),
    )
        .into_response()
}
