//! *Health*: what `clarion check` says of this node, now.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::Console;
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::shown::Mark;
use super::words::Words;
use crate::check::{self, Finding, FindingLevel};

#[derive(Template)]
#[template(path = "console/health.html")]
struct HealthPage {
    frame: Frame,
    /// Why the node is not ready.
    not_ready: Option<String>,
    findings: Vec<FindingRow>,
}

struct FindingRow {
    mark: Mark,
    finding: Finding,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    // Trunks are asked, and a voice is tried: one at a time is enough.
    let Ok(_place) = console.examining.try_acquire() else {
        return Err(Refused::Busy);
    };
    let (config, mut findings) = (console.management.config(), Vec::new());
    check::examine(config, None, &mut |found| findings.extend(found)).await;
    // What is wrong first; the rest in the order of the check.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let row = |finding: Finding| FindingRow {
        mark: level_mark(finding.level, words),
        finding,
    };
    Ok(html(&HealthPage {
        frame: Frame::new(&console, &visit, MenuPlace::Health, words.health_title),
        not_ready: console.management.not_ready().await,
        findings: findings.into_iter().map(row).collect(),
    }))
}

fn level_mark(level: FindingLevel, words: &Words) -> Mark {
    let (word, tone) = match level {
        FindingLevel::Ok => (words.level_ok, "good"),
        FindingLevel::Warning => (words.level_warning, "warn"),
        FindingLevel::Problem => (words.level_problem, "bad"),
    };
    Mark { word, tone }
}
