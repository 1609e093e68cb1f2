//! *Now*: what needs a hand first, then the figures, the calls under way, the queue, the trunks and the nodes, live.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};

use super::events::{self, Fragment};
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::shown::{self, CallRow, Mark, state_mark, trunk_mark};
use super::times::Moment;
use super::words::{Words, fill};
use super::{Console, times};
use crate::disk_room::FreeDisk;
use crate::dispatch::trunk_pool::TrunkState;
use crate::management::{GIVEN_UP, LIVE_CALLS, NodeUse, Overview, TrunkUse};
use crate::readiness::NotReady;

/// A call that waits for longer than this needs a hand, and so does a callback.
const LONG_WAIT: SignedDuration = SignedDuration::from_secs(60);
/// Accounts of the queue that are shown.
const ACCOUNTS: usize = 10;
/// A disk with less than so many times its floor needs a hand soon.
const SCARCE: u64 = 2;
/// As many of a thousand packets may leave late before somebody is told.
const LATE: u64 = 10;

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
    let age = |since: Option<Timestamp>| since.map(|since| now.duration_since(since));
    let note = |age: Option<SignedDuration>| match age {
        Some(age) => fill(
            words.figure_oldest,
            &[("time", &times::lasting(age, words))],
        ),
        None => words.figure_none.to_owned(),
    };
    let oldest = Oldest {
        call: age(overview.queue.oldest),
        callback: age(overview.callbacks.oldest_owed_at),
    };
    let (sent, late) = node.packets;
    let live = overview.live.clone();
    let is_cut = live.len() >= LIVE_CALLS as usize;
    let live = console.names.calls(management, live).await?;
    Ok(NowPart {
        words,
        hands: hands(&overview, &node, not_ready, &oldest, words),
        waiting: overview.queue.waiting,
        waiting_note: note(oldest.call),
        on_line: overview.queue.running.iter().map(|(_, count)| count).sum(),
        on_line_note: on_line_note(&overview, words),
        accepted: overview.accepted,
        accepted_note: fill(
            words.figure_rate_of,
            &[("n", &format!("{:.1}", overview.accepted as f64 / 60.0))],
        ),
        callbacks: overview.callbacks.waiting,
        callbacks_note: note(oldest.callback),
        packets: late.to_string(),
        packets_note: fill(words.figure_packets_of, &[("n", &sent.to_string())]),
        calls: live
            .iter()
            .map(|call| CallRow::new(call, &console.clock, words))
            .collect(),
        more: is_cut.then(|| fill(words.live_more, &[("n", &LIVE_CALLS.to_string())])),
        queue: queue(console, &overview, words).await?,
        trunks: node
            .trunks
            .iter()
            .map(|trunk| trunk_row(trunk, words))
            .collect(),
        nodes: nodes(console, &overview, words),
        disks: node
            .disks
            .iter()
            .map(|disk| {
                let free = disk.bytes;
                let is_short = free.is_some_and(|free| free < disk.floor);
                let is_scarce = free.is_some_and(|free| free < disk.floor * SCARCE);
                let (word, tone) = match (is_short, is_scarce) {
                    (true, _) => (words.disk_full, "bad"),
                    (false, true) => (words.disk_scarce, "warn"),
                    (false, false) => (words.disk_enough, "good"),
                };
                DiskRow {
                    name: disk_name(disk, words),
                    free: free.map(mebibytes).unwrap_or_default(),
                    floor: mebibytes(disk.floor),
                    mark: Mark { word, tone },
                }
            })
            .collect(),
    })
}

/// How long the oldest of those that wait has waited.
struct Oldest {
    call: Option<SignedDuration>,
    callback: Option<SignedDuration>,
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
    overview: &Overview,
    words: &Words,
) -> Result<Vec<QueueRow>, Refused> {
    let now = console.clock.now();
    let mut rows = Vec::new();
    for waiting in overview.queue.accounts.iter().take(ACCOUNTS) {
        let oldest = waiting.oldest.map(|since| now.duration_since(since));
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

/// What somebody should look at, the worst first.
fn hands(
    overview: &Overview,
    node: &NodeUse,
    not_ready: Option<NotReady>,
    oldest: &Oldest,
    words: &Words,
) -> Vec<Sentence> {
    let mut hands: Vec<Sentence> = Vec::new();
    hands.extend(not_ready.map(|why| {
        let why = shown::not_ready(&why, words);
        Sentence::from(fill(words.hand_not_ready, &[("why", &why)]))
    }));
    if overview.is_stopped {
        hands.push(words.hand_stopped.into());
    }
    if node.trunks.is_empty() {
        hands.push(words.hand_no_trunk.into());
    }
    let down = |trunk: &&TrunkUse| trunk.state != TrunkState::Up;
    for trunk in node.trunks.iter().filter(down) {
        let said = |state: &str| {
            let values = [("trunk", trunk.name.as_str()), ("state", state)];
            fill(words.hand_trunk, &values)
        };
        hands.push(match &trunk.state {
            TrunkState::Down { why } => {
                Sentence::with_why(words, &said(words.trunk_down_why), &[], why)
            }
            state => said(trunk_mark(state, words).word).into(),
        });
    }
    for lost in overview.nodes.iter().filter(|node| !node.is_alive) {
        hands.push(fill(words.hand_node, &[("node", &lost.name)]).into());
    }
    let waits = |text: &str, age: Option<SignedDuration>| {
        let age = age.filter(|age| *age >= LONG_WAIT)?;
        let time = times::lasting(age, words);
        Some(Sentence::from(fill(text, &[("time", &time)])))
    };
    hands.extend(waits(words.hand_queue, oldest.call));
    hands.extend(waits(words.hand_callbacks, oldest.callback));
    let given_up = overview.callbacks.given_up;
    if given_up > 0 {
        let more = if given_up >= u64::from(GIVEN_UP) {
            "+"
        } else {
            ""
        };
        let count = format!("{given_up}{more}");
        hands.push(fill(words.hand_given_up, &[("n", &count)]).into());
    }
    for disk in &node.disks {
        if let Some(free) = disk.bytes.filter(|free| *free < disk.floor * SCARCE) {
            let values = [
                ("disk", disk_name(disk, words)),
                ("free", &*mebibytes(free)),
            ];
            hands.push(fill(words.hand_disk, &values).into());
        }
    }
    let (sent, late) = node.packets;
    if late * 1000 > sent * LATE {
        hands.push(words.hand_late.into());
    }
    hands
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

/// A setting names the folder; people know what is in it.
fn disk_name(disk: &FreeDisk, words: &Words) -> &'static str {
    match disk.name {
        "audio_files.folder" => words.disk_audio,
        _ => words.disk_database,
    }
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        small @ 0..10_240 => format!("{small} MiB"),
        large => format!("{} GiB", large >> 10),
    }
}
