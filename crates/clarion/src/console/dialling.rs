//! *Dialling*: stopping it for everybody, and the numbers that nobody may call.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};

use super::Console;
use super::page::{Frame, MenuPlace, html_with};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::visit::Visit;
use super::words::fill;

/// Numbers of a page. Who has more looks for one.
const SHOWN: usize = 200;
const ADDRESS: &str = "/dialling";

#[derive(Template)]
#[template(path = "console/dialling.html")]
struct DiallingPage {
    frame: Frame,
    is_stopped: bool,
    find: String,
    numbers: Vec<String>,
    more: Option<String>,
    /// What was typed and cannot be a number, and why.
    refused: Option<(String, Sentence)>,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, None).await
}

async fn page(
    console: &Console,
    visit: &Visit,
    refused: Option<(String, Sentence)>,
) -> Result<Response, Refused> {
    let (words, management) = (visit.language.words(), &console.management);
    let find = visit.query("find").unwrap_or_default();
    let wanted: String = find.chars().filter(char::is_ascii_digit).collect();
    let mut numbers = management.barred_numbers().await?;
    numbers.retain(|digits| digits.contains(&wanted));
    let is_cut = numbers.len() > SHOWN;
    numbers.truncate(SHOWN);
    let status = match refused {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let frame = Frame::new(console, visit, MenuPlace::Dialling, words.dialling_title);
    let page = DiallingPage {
        frame,
        is_stopped: management.is_stopped().await?,
        find,
        numbers,
        more: is_cut.then(|| fill(words.barred_more, &[("n", &SHOWN.to_string())])),
        refused,
    };
    Ok(html_with(status, &page))
}

pub async fn stop(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    console.acting(&visit).stop_all().await?;
    Ok(done("stopped"))
}

pub async fn resume(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    console.acting(&visit).resume().await?;
    Ok(done("dialling"))
}

pub async fn bar(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let number = visit.field("number").trim();
    match console.acting(&visit).bar_number(number).await {
        Ok(barred) if barred.is_new => Ok(done("barred")),
        Ok(_) => Ok(done("unchanged")),
        Err(error) if error.is_refusal() => {
            let why = Sentence::of(visit.language.words(), &error.wording());
            let refused = (number.to_owned(), why);
            page(&console, &visit, Some(refused)).await
        }
        Err(error) => Err(error.into()),
    }
}

pub async fn unbar(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let number = visit.field("number").trim();
    console.acting(&visit).unbar_number(number).await?;
    Ok(done("unbarred"))
}

fn done(what: &str) -> Response {
    Redirect::to(&format!("{ADDRESS}?done={what}")).into_response()
}
