//! *Audit*: who changed what and when, the newest first.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::Console;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::times::Moment;
use super::visit::Visit;
use super::words::fill;
use crate::domain::audit::{AuditEntry, AuditFilter};

/// Changes that are shown.
const SHOWN: u32 = 200;

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage {
    frame: Frame,
    about: String,
    rows: Vec<AuditRow>,
    limit: Option<String>,
}

struct AuditRow {
    at: Moment,
    who: String,
    from: String,
    what: String,
    failure: Option<Sentence>,
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let about = visit.query("about");
    let filter = AuditFilter {
        since: None,
        about: about.clone(),
        limit: SHOWN,
    };
    let changes = console.management.changes(filter).await?;
    let row = |entry: &AuditEntry| {
        let actor = &entry.actor;
        let who = actor.operator.as_ref().or(actor.system_user.as_ref());
        let failure = entry.failure.as_ref();
        AuditRow {
            at: Moment::new(entry.at, &console.clock, words),
            who: who.cloned().unwrap_or_default(),
            from: actor.address.clone().unwrap_or_default(),
            what: entry.detail.clone(),
            failure: failure.map(|why| Sentence::with_why(words, words.audit_failed, &[], why)),
        }
    };
    let is_cut = changes.len() >= SHOWN as usize;
    Ok(html(&AuditPage {
        frame: Frame::new(&console, &visit, MenuPlace::Audit, words.audit_title),
        about: about.unwrap_or_default(),
        rows: changes.iter().map(row).collect(),
        limit: is_cut.then(|| fill(words.audit_limit, &[("n", &SHOWN.to_string())])),
    }))
}
