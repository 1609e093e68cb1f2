//! *Health*: what `clarion check` says of this node. Trunks are asked, a voice is tried and pages are read, so the node is examined in the background, one
//! examination at a time, and the page shows what was found so far, live.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use askama::Template;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};

use super::Console;
use super::events::{self, Fragment};
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::shown::{self, Mark};
use super::times::Moment;
use super::visit::Visit;
use super::words::Words;
use crate::check::{self, Finding, FindingLevel};

/// Whoever looks later than this has the node examined anew.
const KEPT: SignedDuration = SignedDuration::from_mins(5);

/// The last examination of this node.
#[derive(Debug, Default)]
pub struct Examination(Mutex<Examined>);

#[derive(Debug, Default, Clone)]
struct Examined {
    /// So far.
    findings: Vec<Finding>,
    began: Option<Timestamp>,
    is_running: bool,
}

impl Examination {
    fn lock(&self) -> MutexGuard<'_, Examined> {
        // A panic elsewhere leaves nothing half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one has to begin now: the last is too old, or one is asked for.
    fn begins(&self, now: Timestamp, is_wanted: bool) -> bool {
        let mut examined = self.lock();
        let is_old = |began: Timestamp| now.duration_since(began) > KEPT;
        if examined.is_running || !(is_wanted || examined.began.is_none_or(is_old)) {
            return false;
        }
        *examined = Examined {
            findings: Vec::new(),
            began: Some(now),
            is_running: true,
        };
        true
    }
}

/// An examination under way; it is over however it ends.
struct RunningExamination(Arc<Console>);

impl RunningExamination {
    async fn run(self) {
        let config = Arc::clone(self.0.management.config());
        check::examine(&config, None, &mut |found| {
            self.0.examination.lock().findings.extend(found);
        })
        .await;
    }
}

impl Drop for RunningExamination {
    fn drop(&mut self) {
        self.0.examination.lock().is_running = false;
    }
}

#[derive(Template)]
#[template(path = "console/health.html")]
struct HealthPage {
    frame: Frame,
    /// Why the node is not ready.
    not_ready: Option<String>,
    part: HealthPart,
}

/// What changes while the node is examined.
#[derive(Template)]
#[template(path = "console/health_part.html")]
struct HealthPart {
    words: &'static Words,
    began: Option<Moment>,
    is_running: bool,
    findings: Vec<FindingRow>,
}

struct FindingRow {
    mark: Mark,
    subject: Sentence,
    found: Sentence,
    remedy: Option<Sentence>,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let is_wanted = visit.query("again").is_some();
    if console.examination.begins(console.clock.now(), is_wanted) {
        tokio::spawn(RunningExamination(Arc::clone(&console)).run());
    }
    let frame = Frame::new(&console, &visit, MenuPlace::Health, words.health_title);
    Ok(html(&HealthPage {
        frame: frame.at("/health"),
        not_ready: {
            let why = console.management.not_ready().await;
            why.map(|why| shown::not_ready(&why, words))
        },
        part: part(&console, words),
    }))
}

pub fn watch(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    events::stream(console, visit, async |console, visit| {
        let part = part(&console, visit.language.words());
        Ok(Fragment {
            html: part.render().unwrap_or_default(),
            is_last: !part.is_running,
        })
    })
}

fn part(console: &Console, words: &'static Words) -> HealthPart {
    let mut examined = console.examination.lock().clone();
    // What is wrong first; the rest in the order of the check.
    let level = |finding: &Finding| std::cmp::Reverse(finding.level);
    examined.findings.sort_by_key(level);
    let row = |finding: Finding| FindingRow {
        mark: level_mark(finding.level, words),
        subject: Sentence::of(words, &finding.subject.wording()),
        found: Sentence::of(words, &finding.found),
        remedy: finding.remedy.map(|remedy| Sentence::of(words, &remedy)),
    };
    HealthPart {
        words,
        began: examined
            .began
            .map(|began| Moment::new(began, &console.clock, words)),
        is_running: examined.is_running,
        findings: examined.findings.into_iter().map(row).collect(),
    }
}

fn level_mark(level: FindingLevel, words: &Words) -> Mark {
    let (word, tone) = match level {
        FindingLevel::Ok => (words.level_ok, "good"),
        FindingLevel::Warning => (words.level_warning, "warn"),
        FindingLevel::Problem => (words.level_problem, "bad"),
    };
    Mark { word, tone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_examination_runs_at_a_time_and_is_kept_for_a_while() {
        let (examination, then) = (Examination::default(), Timestamp::UNIX_EPOCH);
        assert!(examination.begins(then, false), "there was none");
        assert!(!examination.begins(then + KEPT * 2, true), "it still runs");
        examination.lock().is_running = false;
        assert!(!examination.begins(then + KEPT, false), "it is young");
        assert!(examination.begins(then + KEPT, true), "it is asked for");
        examination.lock().is_running = false;
        assert!(examination.begins(then + KEPT * 3, false), "it is old");
    }
}
