//! *Now*: what needs a hand first, then the figures, the calls under way, the queue, the trunks and the nodes, live.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use jiff::SignedDuration;

use super::events::{self, Fragment};
use super::hands;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::shown::{CallRow, Mark, state_mark, trunk_mark};
use super::times::Moment;
use super::visit::Visit;
use super::words::{Words, fill};
use super::{Console, times};
use crate::disk_room::FreeDisk;
use crate::dispatch::PACKETS_WINDOW;
use crate::dispatch::trunk_pool::TrunkState;
use crate::management::{LIVE_CALLS, Overview, TrunkUse, is_scarce};
use crate::store::QueueOverview;

/// Accounts of the queue that are shown.
const ACCOUNTS: usize = 10;

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
    hands: Vec<Sentence>,
    waiting: u64,
    waiting_note: String,
    on_line: u64,
    /// How many of those dial, ring and talk.
    on_line_note: String,
    accepted: u64,
    accepted_note: String,
    callbacks: u64,
    callbacks_note: String,
    packets: String,
    packets_note: String,
    calls: Vec<CallRow>,
    more: Option<String>,
    queue: Vec<QueueRow>,
    trunks: Vec<TrunkRow>,
    nodes: Vec<NodeRow>,
    disks: Vec<DiskRow>,
}

struct QueueRow {
    account: String,
    sid: String,
    waiting: u64,
    oldest: String,
}

struct TrunkRow {
    name: String,
    mark: Mark,
    /// Why it is down.
    why: Sentence,
    calls: u32,
    channels: u32,
}

struct NodeRow {
    name: String,
    mark: Mark,
    steady: Moment,
    heartbeat: Moment,
}

struct DiskRow {
    name: &'static str,
    free: String,
    floor: String,
    mark: Mark,
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
    let management = &console.management;
    let overview = management.overview().await?;
    let node = management.node_use().await.unwrap_or_default();
    let not_ready = management.not_ready().await;
    let owed_since = overview.callbacks.oldest_owed_at;
    let owed_for = owed_since.map(|since| now.duration_since(since));
    let (sent, late) = node.packets;
    let window = times::lasting(PACKETS_WINDOW, words);
    let live = overview.live.clone();
    let is_cut = live.len() >= LIVE_CALLS as usize;
    let live = console.names.calls(management, live).await?;
    Ok(NowPart {
        words,
        hands: hands::hands(&overview, &node, not_ready, owed_for, words),
        waiting: overview.queue.waiting,
        waiting_note: waiting_note(&overview.queue, words),
        on_line: overview.queue.running.iter().map(|(_, count)| count).sum(),
        on_line_note: on_line_note(&overview, words),
        accepted: overview.accepted,
        accepted_note: fill(
            words.figure_rate_of,
            &[("n", &format!("{:.1}", overview.accepted as f64 / 60.0))],
        ),
        callbacks: overview.callbacks.waiting,
        callbacks_note: oldest_note(owed_for, words),
        packets: late.to_string(),
        packets_note: fill(
            words.figure_packets_of,
            &[("n", &sent.to_string()), ("time", &window)],
        ),
        calls: live
            .iter()
            .map(|call| CallRow::new(call, &console.clock, words))
            .collect(),
        more: is_cut.then(|| fill(words.live_more, &[("n", &LIVE_CALLS.to_string())])),
        queue: queue(console, &overview.queue, words).await?,
        trunks: node
            .trunks
            .iter()
            .map(|trunk| trunk_row(trunk, words))
            .collect(),
        nodes: nodes(console, &overview, words),
        disks: node
            .disks
            .iter()
            .map(|disk| disk_row(disk, words))
            .collect(),
    })
}

/// How long the oldest has waited.
fn oldest_note(age: Option<SignedDuration>, words: &Words) -> String {
    age.map_or_else(
        || words.figure_none.to_owned(),
        |age| {
            fill(
                words.figure_oldest,
                &[("time", &times::lasting(age, words))],
            )
        },
    )
}

/// How long one has been due, and how many are not.
fn waiting_note(queue: &QueueOverview, words: &Words) -> String {
    let later = queue.waiting.saturating_sub(queue.due);
    let later = (later > 0).then(|| fill(words.figure_later, &[("n", &later.to_string())]));
    match (queue.due_for, later) {
        (None, Some(later)) => later,
        (due_for, later) => {
            let oldest = std::iter::once(oldest_note(due_for, words));
            oldest.chain(later).collect::<Vec<_>>().join(" · ")
        }
    }
}

/// Calls that have left the queue, by how far they have come.
fn on_line_note(overview: &Overview, words: &Words) -> String {
    let running = overview.queue.running.iter().copied();
    let parts = running
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {}", state_mark(state, words).word));
    let note = parts.collect::<Vec<_>>().join(" · ");
    if note.is_empty() {
        return words.figure_line_note.to_owned();
    }
    note
}

async fn queue(
    console: &Console,
    queue: &QueueOverview,
    words: &Words,
) -> Result<Vec<QueueRow>, Refused> {
    let mut rows = Vec::new();
    for waiting in queue.accounts.iter().take(ACCOUNTS) {
        let oldest = waiting.due_for;
        rows.push(QueueRow {
            account: console
                .names
                .account(&console.management, &waiting.account)
                .await?,
            sid: waiting.account.to_string(),
            waiting: waiting.waiting,
            oldest: oldest
                .map(|age| times::lasting(age, words))
                .unwrap_or_default(),
        });
    }
    Ok(rows)
}

fn nodes(console: &Console, overview: &Overview, words: &'static Words) -> Vec<NodeRow> {
    let row = |node: &crate::store::SeenNode| {
        let (word, tone) = if node.is_alive {
            (words.node_alive, "good")
        } else {
            (words.node_gone, "bad")
        };
        NodeRow {
            name: node.name.clone(),
            mark: Mark { word, tone },
            steady: Moment::new(node.steady_since, &console.clock, words),
            heartbeat: Moment::new(node.heartbeat_at, &console.clock, words),
        }
    };
    overview.nodes.iter().map(row).collect()
}

fn trunk_row(trunk: &TrunkUse, words: &Words) -> TrunkRow {
    let why = match &trunk.state {
        TrunkState::Down { why } => Sentence::with_why(words, words.trunk_down_why, &[], why),
        _ => Sentence::default(),
    };
    TrunkRow {
        name: trunk.name.clone(),
        mark: trunk_mark(&trunk.state, words),
        why,
        calls: trunk.calls,
        channels: trunk.channels,
    }
}

fn disk_row(disk: &FreeDisk, words: &'static Words) -> DiskRow {
    let free = disk.bytes;
    let is_short = free.is_some_and(|free| free < disk.floor);
    let (word, tone) = match (is_short, is_scarce(disk)) {
        (true, _) => (words.disk_full, "bad"),
        (false, true) => (words.disk_scarce, "warn"),
        (false, false) => (words.disk_enough, "good"),
    };
    DiskRow {
        name: hands::disk_name(disk.name, words),
        free: free.map(hands::mebibytes).unwrap_or_default(),
        floor: hands::mebibytes(disk.floor),
        mark: Mark { word, tone },
    }
}
