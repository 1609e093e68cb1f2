//! *Audit*: who changed what and when, the newest first.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use url::form_urlencoded;

use super::Console;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::times::Moment;
use super::visit::Visit;
use crate::domain::audit::{AuditFilter, AuditLine};

/// Changes of a page.
const PAGE: u32 = 100;

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage {
    frame: Frame,
    about: String,
    by: String,
    rows: Vec<AuditRow>,
    /// The address of the next page.
    older: Option<String>,
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
    let (about, by) = (visit.query("about"), visit.query("by"));
    let filter = AuditFilter {
        since: None,
        before: visit.query("before").and_then(|text| text.parse().ok()),
        by: by.clone(),
        about: about.clone(),
        limit: PAGE,
    };
    let changes = console.management.changes(filter).await?;
    let row = |line: &AuditLine| {
        let entry = &line.entry;
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
    let last = changes.last().filter(|_| changes.len() >= PAGE as usize);
    let older = last.map(|last| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [("about", &about), ("by", &by)] {
            query.extend_pairs(value.iter().map(|value| (name, value)));
        }
        query.append_pair("before", &last.number.to_string());
        format!("/audit?{}", query.finish())
    });
    Ok(html(&AuditPage {
        frame: Frame::new(&console, &visit, MenuPlace::Audit, words.audit_title),
        about: about.unwrap_or_default(),
        by: by.unwrap_or_default(),
        rows: changes.iter().map(row).collect(),
        older,
    }))
}
