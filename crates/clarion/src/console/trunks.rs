//! *Trunks*: each as this node sees it, what it carries, and letting it run empty.

use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};

use super::Console;
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::shown::{Mark, trunk_mark};
use super::words::Words;
use crate::dispatch::trunk_pool::TrunkState;
use crate::domain::prefix::Prefix;
use crate::management::{ManagedTrunk, TrunkUse};

#[derive(Template)]
#[template(path = "console/trunks.html")]
struct TrunksPage {
    frame: Frame,
    trunks: Vec<TrunkCard>,
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
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let here = console.management.node_use().unwrap_or_default();
    let trunks = console.management.trunks().await?;
    let card = |managed: &ManagedTrunk<'_>| {
        let name = managed.settings.name();
        let used = here.trunks.iter().find(|used| used.name == name);
        card(managed, used, words)
    };
    Ok(html(&TrunksPage {
        frame: Frame::new(&console, &visit, MenuPlace::Trunks, words.trunks_title),
        trunks: trunks.iter().map(card).collect(),
    }))
}

fn card(managed: &ManagedTrunk<'_>, used: Option<&TrunkUse>, words: &Words) -> TrunkCard {
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
        why: match state {
            TrunkState::Down { why } => why.clone(),
            _ => String::new(),
        },
        calls: used.map_or(0, |used| used.calls),
        channels: settings.channels,
        rate: settings.calls_per_second,
        priority: settings.route.priority,
        prefixes: if prefixes.is_empty() {
            words.trunk_all_numbers.to_owned()
        } else {
            prefixes.join(", ")
        },
        is_drained: managed.is_drained,
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
