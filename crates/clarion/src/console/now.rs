//! *Now*: what needs a hand first, then the figures, the trunks and the calls under way, live.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};

use super::desk::{LIVE_CALLS, Overview, TrunkLook};
use super::events::{self, Fragment};
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::shown::{CallRow, Mark};
use super::words::{Words, fill};
use super::{Console, times};

/// A call that waits for longer than this needs a hand, and so does a callback.
const LONG_WAIT: SignedDuration = SignedDuration::from_secs(60);

#[derive(Template)]
#[template(path = "console/now.html")]
struct NowPage {
    frame: Frame,
    part: NowPart,
}

/// What changes while one looks.
#[derive(Template)]
#[template(path = "console/now_part.html")]
struct NowPart {
    words: &'static Words,
    hands: Vec<String>,
    waiting: String,
    waiting_note: String,
    on_line: u32,
    callbacks: String,
    callbacks_note: String,
    trunks: Vec<TrunkRow>,
    calls: Vec<CallRow>,
    more: Option<String>,
}

struct TrunkRow {
    name: String,
    mark: Mark,
    /// Why it is down.
    why: String,
    calls: u32,
    channels: u32,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let title = visit.language.words().now_title;
    Ok(html(&NowPage {
        frame: Frame::new(&console, &visit, MenuPlace::Now, title),
        part: part(&console, &visit).await?,
    }))
}

pub fn watch(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    events::stream(console, visit, async |console, visit| {
        let part = part(&console, &visit).await?;
        Ok(Fragment {
            html: part.render().unwrap_or_default(),
            is_last: false,
        })
    })
}

async fn part(console: &Console, visit: &Visit) -> Result<NowPart, Refused> {
    let (words, now) = (visit.language.words(), console.clock.now());
    let overview = console.desk.overview().await?;
    let age = |since: Option<Timestamp>| since.map(|since| now.duration_since(since));
    let note = |age: Option<SignedDuration>| match age {
        Some(age) => fill(
            words.figure_oldest,
            &[("time", &times::lasting(age, words))],
        ),
        None => words.figure_none.to_owned(),
    };
    let oldest_call = age(overview.oldest_accepted_at);
    let oldest_callback = age(overview.callbacks.oldest_owed_at);
    let is_cut = overview.live.len() >= LIVE_CALLS as usize;
    let live = overview.live.iter();
    Ok(NowPart {
        words,
        hands: hands(&overview, oldest_call, oldest_callback, words),
        waiting: overview.waiting.to_string(),
        waiting_note: note(oldest_call),
        on_line: overview.trunks.iter().map(|trunk| trunk.calls).sum(),
        callbacks: overview.callbacks.waiting.to_string(),
        callbacks_note: note(oldest_callback),
        trunks: overview
            .trunks
            .iter()
            .map(|look| trunk_row(look, words))
            .collect(),
        calls: live
            .map(|call| CallRow::new(call, &console.clock, words))
            .collect(),
        more: is_cut.then(|| fill(words.live_more, &[("n", &LIVE_CALLS.to_string())])),
    })
}

/// What somebody should look at, the worst first.
fn hands(
    overview: &Overview,
    oldest_call: Option<SignedDuration>,
    oldest_callback: Option<SignedDuration>,
    words: &Words,
) -> Vec<String> {
    let mut hands = Vec::new();
    if let Some(why) = &overview.not_ready {
        hands.push(fill(words.hand_not_ready, &[("why", why)]));
    }
    if overview.is_stopped {
        hands.push(words.hand_stopped.to_owned());
    }
    if overview.trunks.is_empty() {
        hands.push(words.hand_no_trunk.to_owned());
    }
    for look in overview.trunks.iter().filter(|look| look.state != "up") {
        let row = trunk_row(look, words);
        let state = if row.why.is_empty() {
            row.mark.word.to_owned()
        } else {
            row.why
        };
        let values = [("trunk", look.name.as_str()), ("state", &state)];
        hands.push(fill(words.hand_trunk, &values));
    }
    let waits = |text: &str, age: Option<SignedDuration>| {
        let age = age.filter(|age| *age >= LONG_WAIT)?;
        Some(fill(text, &[("time", &times::lasting(age, words))]))
    };
    hands.extend(waits(words.hand_queue, oldest_call));
    hands.extend(waits(words.hand_callbacks, oldest_callback));
    hands
}

fn trunk_row(look: &TrunkLook, words: &Words) -> TrunkRow {
    let (word, tone) = match look.state.as_str() {
        "up" => (words.trunk_up, "good"),
        "drained" => (words.trunk_drained, "warn"),
        "outside its hours" => (words.trunk_closed, "quiet"),
        "failing" => (words.trunk_failing, "bad"),
        _ => ("", "bad"),
    };
    let why = look.state.strip_prefix("down: ").unwrap_or_default();
    let why = match word {
        "" => fill(words.trunk_down, &[("why", why)]),
        _ => String::new(),
    };
    TrunkRow {
        name: look.name.clone(),
        mark: Mark { word, tone },
        why,
        calls: look.calls,
        channels: look.channels,
    }
}
