//! `POST …/Calls/MediaFileUpload?appid=…&filename=…`: adds an audio file, or a zip of several, to the application. GET returns a file.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;

use super::request::{Authenticated, Upload};
use super::wire::{AnswerForm, Content, Field};
use super::{Api, downloads, query};
use crate::audio_files::{AddedBy, OpenFile};
use crate::disk_room::RoomFor;
use crate::domain::prompt::{AudioOwner, FileName, FileOwner};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::FairPlace;
use crate::store::unavailable;

/// Of the query.
pub const FIELDS: &[Field] = &[
    Field::required("appid", "Application id, in any case."),
    Field::required(
        "filename",
        "Name of the file, ending in .wav or .zip, percent-encoded as UTF-8 or GBK.",
    ),
];

pub const ANSWER: AnswerForm = AnswerForm {
    group: None,
    fields: &[Field::optional(
        "downloadUrl",
        "",
        "In XML only: where the file, or the first one of a zip, can be had by a signed GET.",
    )],
};

pub async fn upload(State(api): State<Arc<Api>>, upload: Upload) -> Response {
    let request = &upload.request;
    request.answer(&add(&api, request).await)
}

async fn add(api: &Api, request: &Authenticated) -> Result<Content, Refusal> {
    let application = request
        .application_named(api, &request.query_name("appid")?.unwrap_or_default())
        .await?;
    let name = file_name(request)?;
    api.disk.check(RoomFor::Files).await?;
    let owner = AudioOwner::Application(application.id.clone());
    let body = request.body().clone();
    let added = api
        .audio_files
        .add(
            &*api.store,
            AddedBy::Customer,
            owner,
            &name,
            body,
            api.clock.now(),
        )
        .await?;
    tracing::info!(app = %application.id, files = added.len(), "audio files added");
    let first = added.first().map_or("", |file| file.name.as_str());
    let address = format!("{}{}", request.server_url(api), request.path());
    let (app, name) = (&application.id, query::encoded(first));
    Ok(Content::XmlValue(
        "downloadUrl",
        format!("{address}?appid={app}&filename={name}"),
    ))
}

pub async fn download(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    match find(&api, &request).await {
        Ok((place, file)) => Response::builder()
            .extension(StatusCode::Success) // for the metrics
            .header(CONTENT_TYPE, "audio/wav")
            .header(CONTENT_LENGTH, file.length)
            .header(CACHE_CONTROL, "no-store")
            .body(downloads::body(place, file.bytes))
            .expect("these headers are valid"),
        Err(refusal) => request.answer(&Err(refusal)),
    }
}

async fn find(api: &Api, request: &Authenticated) -> Result<(FairPlace, OpenFile), Refusal> {
    let application = request
        .application_named(api, &request.query_name("appid")?.unwrap_or_default())
        .await?;
    let name = FileName::named_by("filename", &file_name(request)?)?;
    let found = api
        .store
        .audio_files(&application.id, FileOwner::Application, &[name])
        .await
        .map_err(|error| unavailable(&error))?;
    let content = found.into_iter().next().flatten();
    let content = content.ok_or(StatusCode::VoiceFileMissing)?;
    let place = api.admission.downloads.place(&request.account.sid).await?;
    let file = api.audio_files.open_file(&content).await;
    let file = file.map_err(|error| {
        tracing::error!(%error, "an audio file cannot be read");
        StatusCode::UnknownError
    })?;
    Ok((place, file))
}

fn file_name(request: &Authenticated) -> Result<String, Refusal> {
    request
        .query_name("filename")?
        .ok_or_else(|| Refusal::field("the query parameter filename is required"))
}
