//! *Trunks*: each as this node sees it, how it has fared, what it carries; letting it run empty, and a call that tests it.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};

use super::Console;
use super::page::{Frame, MenuPlace, html_with};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::shown::{AppChoice, Mark, trunk_mark};
use super::times::Moment;
use super::visit::Visit;
use super::words::Words;
use crate::clock::Clock;
use crate::dispatch::trunk_pool::TrunkState;
use crate::domain::account::AppId;
use crate::domain::operator::OperatorRole;
use crate::domain::prefix::Prefix;
use crate::management::{ManagedTrunk, TrunkUse};

/// The field with the application of a test call.
const APP: &str = "app";

#[derive(Template)]
#[template(path = "console/trunks.html")]
struct TrunksPage {
    frame: Frame,
    trunks: Vec<TrunkCard>,
    /// Whom a test call can be placed for.
    apps: Vec<AppChoice>,
    refused: Option<RefusedTest>,
}

struct TrunkCard {
    name: String,
    host: String,
    transport: String,
    mark: Mark,
    why: String,
    calls: u32,
    channels: u32,
    rate: u32,
    priority: u32,
    prefixes: String,
    is_drained: bool,
    /// A test call over it was asked for.
    is_tested: bool,
    history: Vec<ChangeRow>,
}

struct ChangeRow {
    at: Moment,
    mark: Mark,
    why: String,
}

/// A test call that was refused.
struct RefusedTest {
    number: String,
    why: Sentence,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, None).await
}

async fn page(
    console: &Console,
    visit: &Visit,
    refused: Option<RefusedTest>,
) -> Result<Response, Refused> {
    let words = visit.language.words();
    let here = console.management.node_use().await.unwrap_or_default();
    let trunks = console.management.trunks().await?;
    let card = |managed: &ManagedTrunk<'_>| {
        let name = managed.settings.name();
        let used = here.trunks.iter().find(|used| used.name == name);
        TrunkCard {
            is_tested: visit.field("trunk") == name,
            ..card(managed, used, &console.clock, words)
        }
    };
    let apps = if visit.may(OperatorRole::Admin) {
        console.management.usable_applications().await?
    } else {
        Vec::new()
    };
    let chosen = visit.field(APP);
    let status = match &refused {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let frame = Frame::new(console, visit, MenuPlace::Trunks, words.trunks_title);
    let page = TrunksPage {
        frame,
        trunks: trunks.iter().map(card).collect(),
        apps: apps.iter().map(|app| AppChoice::of(app, chosen)).collect(),
        refused,
    };
    Ok(html_with(status, &page))
}

fn card(
    managed: &ManagedTrunk<'_>,
    used: Option<&TrunkUse>,
    clock: &Clock,
    words: &'static Words,
) -> TrunkCard {
    let settings = managed.settings;
    let state = used.map_or(&TrunkState::Up, |used| &used.state);
    let prefixes: Vec<_> = settings.route.prefixes.iter().map(Prefix::as_str).collect();
    TrunkCard {
        name: settings.name().to_owned(),
        host: match &settings.loopback {
            Some(_) => words.trunk_loopback.to_owned(),
            None => settings.sip.host.to_string(),
        },
        transport: settings.endpoint.transport.to_string(),
        mark: trunk_mark(state, words),
        why: why(state),
        calls: used.map_or(0, |used| used.calls),
        channels: settings.channels,
        rate: settings.calls_per_second,
        priority: settings.route.priority,
        // One that begins every number is that of all.
        prefixes: if prefixes.contains(&"") {
            words.trunk_all_numbers.to_owned()
        } else {
            prefixes.join(", ")
        },
        is_drained: managed.is_drained,
        is_tested: false,
        history: used.map_or_else(Vec::new, |used| {
            let changes = used.history.iter().map(|change| ChangeRow {
                at: Moment::new(change.at, clock, words),
                mark: trunk_mark(&change.state, words),
                why: why(&change.state),
            });
            changes.collect()
        }),
    }
}

fn why(state: &TrunkState) -> String {
    match state {
        TrunkState::Down { why } => why.clone(),
        _ => String::new(),
    }
}

/// Places a test call, and goes on to it.
pub async fn test(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (trunk, number) = (visit.field("trunk"), visit.field("number").trim());
    let app: AppId = visit.field(APP).parse().map_err(|_| Refused::BadForm)?;
    let placed = console.acting(&visit).test_trunk(trunk, &app, number).await;
    match placed {
        Ok(sid) => Ok(Redirect::to(&format!("/calls/{sid}?done=requested")).into_response()),
        Err(error) if error.is_refusal() => {
            let refused = RefusedTest {
                number: number.to_owned(),
                why: Sentence::of(visit.language.words(), &error.wording()),
            };
            page(&console, &visit, Some(refused)).await
        }
        Err(error) => Err(error.into()),
    }
}

pub async fn drain(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let name = visit.path_value("name");
    console.acting(&visit).drain_trunk(name).await?;
    Ok(Redirect::to("/trunks?done=drained").into_response())
}

pub async fn open(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let name = visit.path_value("name");
    console.acting(&visit).open_trunk(name).await?;
    Ok(Redirect::to("/trunks?done=opened").into_response())
}
