//! What needs a hand, in words: the first part of *Now*.

use jiff::SignedDuration;

use super::sentence::Sentence;
use super::shown::{self, trunk_mark};
use super::times;
use super::words::{Words, fill};
use crate::dispatch::trunk_pool::TrunkState;
use crate::management::{Concern, GIVEN_UP, NodeUse, Overview, TrunkUse};
use crate::readiness::NotReady;

/// A call that is due for longer than this needs a hand, and so does a callback that waits for longer.
const LONG_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// What somebody should look at, the worst first.
pub fn hands(
    overview: &Overview,
    node: &NodeUse,
    not_ready: Option<NotReady>,
    owed_for: Option<SignedDuration>,
    words: &Words,
) -> Vec<Sentence> {
    let own = Concern::of(node, not_ready);
    let stops_calls = |concern: &&Concern| {
        matches!(
            concern,
            Concern::NotReady(_) | Concern::NoTrunk | Concern::Trunk { .. }
        )
    };
    let mut hands: Vec<Sentence> = Vec::new();
    if overview.is_stopped {
        hands.push(words.hand_stopped.into());
    }
    let worst = own.iter().filter(stops_calls);
    hands.extend(worst.map(|concern| of_concern(concern, words)));
    hands.extend(elsewhere(overview, node, words));
    for lost in overview.nodes.iter().filter(|node| !node.is_alive) {
        hands.push(fill(words.hand_node, &[("node", &lost.name)]).into());
    }
    let waits = |text: &str, age: Option<SignedDuration>| {
        let age = age.filter(|age| *age >= LONG_WAIT)?;
        let time = times::lasting(age, words);
        Some(Sentence::from(fill(text, &[("time", &time)])))
    };
    let queue = &overview.queue;
    if queue.due > 0 && are_closed(&node.trunks) {
        hands.push(words.hand_closed.into());
    } else {
        hands.extend(waits(words.hand_queue, queue.due_for));
    }
    hands.extend(waits(words.hand_callbacks, owed_for));
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
    let others = own.iter().filter(|concern| !stops_calls(concern));
    hands.extend(others.map(|concern| of_concern(concern, words)));
    hands
}

/// What the other nodes say of themselves: the same of several in one sentence.
fn elsewhere(overview: &Overview, node: &NodeUse, words: &Words) -> Vec<Sentence> {
    let mut told: Vec<(Concern, Vec<&str>)> = Vec::new();
    let others = overview.nodes.iter();
    for other in others.filter(|other| other.is_alive && other.name != node.name) {
        for concern in Concern::read(other.concerns.as_deref().unwrap_or_default()) {
            match told.iter_mut().find(|(known, _)| *known == concern) {
                Some((_, names)) => names.push(&other.name),
                None => told.push((concern, vec![&other.name])),
            }
        }
    }
    let said = told.iter().map(|(concern, names)| {
        let mut sentence = of_concern(concern, words);
        let nodes = fill(words.hand_elsewhere, &[("nodes", &names.join(", "))]);
        sentence.before.insert_str(0, &nodes);
        sentence
    });
    said.collect()
}

fn of_concern(concern: &Concern, words: &Words) -> Sentence {
    match concern {
        Concern::NotReady(why) => {
            let why = shown::not_ready(why, words);
            fill(words.hand_not_ready, &[("why", &why)]).into()
        }
        Concern::NoTrunk => words.hand_no_trunk.into(),
        Concern::Trunk { name, state } => of_trunk(name, state, words),
        Concern::Disk { name, left } => {
            let values = [
                ("disk", disk_name(name, words)),
                ("free", &*mebibytes(*left)),
            ];
            fill(words.hand_disk, &values).into()
        }
        Concern::LatePackets => words.hand_late.into(),
    }
}

/// Why a trunk carries no calls.
fn of_trunk(name: &str, state: &TrunkState, words: &Words) -> Sentence {
    let said = |state: &str| fill(words.hand_trunk, &[("trunk", name), ("state", state)]);
    match state {
        TrunkState::Down { why } => {
            let text = said(words.trunk_down_why);
            Sentence::with_why(words, &text, &[], why)
        }
        state => said(trunk_mark(state, words).word).into(),
    }
}

/// Whether all trunks that there are wait for their hours.
fn are_closed(trunks: &[TrunkUse]) -> bool {
    let is_closed = |trunk: &TrunkUse| trunk.state == TrunkState::OutsideItsHours;
    !trunks.is_empty() && trunks.iter().all(is_closed)
}

/// A setting names the folder; people know what is in it.
pub fn disk_name(name: &str, words: &Words) -> &'static str {
    match name {
        "audio_files.folder" => words.disk_audio,
        _ => words.disk_database,
    }
}

pub fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        small @ 0..10_240 => format!("{small} MiB"),
        large => format!("{} GiB", large >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim_holds::HoldKind;
    use crate::console::words::{CHINESE, ENGLISH};
    use crate::disk_room::FreeDisk;
    use jiff::Timestamp;

    use crate::store::{OwedCallbacks, QueueOverview, SeenNode};

    const MINUTE: SignedDuration = SignedDuration::from_mins(1);

    fn overview() -> Overview {
        Overview {
            queue: QueueOverview::default(),
            accepted: 0,
            callbacks: OwedCallbacks::default(),
            nodes: Vec::new(),
            live: Vec::new(),
            is_stopped: false,
        }
    }

    fn trunk(name: &str, state: TrunkState) -> TrunkUse {
        TrunkUse {
            name: name.to_owned(),
            state,
            calls: 0,
            channels: 1,
            calls_per_second: 1,
            history: Vec::new(),
        }
    }

    fn node(trunks: Vec<TrunkUse>) -> NodeUse {
        NodeUse {
            trunks,
            ..NodeUse::default()
        }
    }

    fn said(overview: &Overview, node: &NodeUse, words: &Words) -> Vec<String> {
        let hands = hands(overview, node, None, None, words).into_iter();
        let whole = |hand: Sentence| format!("{}{}{}", hand.before, hand.english, hand.after);
        hands.map(whole).collect()
    }

    #[test]
    fn where_all_is_well_nothing_is_said() {
        let mut node = node(vec![trunk("north", TrunkState::Up)]);
        node.packets = (1000, 10);
        assert!(said(&overview(), &node, &ENGLISH).is_empty());
    }

    #[test]
    fn a_trunk_outside_its_hours_is_no_fault_and_one_that_is_down_is() {
        let closed = trunk("day", TrunkState::OutsideItsHours);
        let why = "OPTIONS is not answered".to_owned();
        let down = trunk("north", TrunkState::Down { why });
        let told = said(&overview(), &node(vec![closed.clone(), down]), &ENGLISH);
        let [told] = &told[..] else {
            panic!("{told:?}");
        };
        assert!(told.starts_with("Trunk north carries no calls: "), "{told}");
        assert!(told.contains("OPTIONS is not answered"), "{told}");
        let failing = trunk("south", TrunkState::Failing);
        let told = said(&overview(), &node(vec![failing]), &CHINESE);
        assert!(told[0].starts_with("中继 south 不可用"), "{told:?}");
        let told = said(&overview(), &node(Vec::new()), &ENGLISH);
        assert!(told[0].starts_with("There is no trunk"), "{told:?}");
    }

    #[test]
    fn calls_that_are_due_while_every_trunk_is_closed_wait_for_hours() {
        let mut overview = overview();
        overview.queue.due = 1;
        overview.queue.due_for = Some(MINUTE);
        let closed = trunk("day", TrunkState::OutsideItsHours);
        let told = said(&overview, &node(vec![closed.clone()]), &ENGLISH);
        assert_eq!(told, [ENGLISH.hand_closed]);
        let open = node(vec![closed, trunk("north", TrunkState::Up)]);
        let told = said(&overview, &open, &ENGLISH);
        assert_eq!(
            told,
            ["A call has been due for 60 s and is not dialled yet."]
        );
        overview.queue.due_for = Some(MINUTE - SignedDuration::from_millis(1));
        assert!(said(&overview, &open, &ENGLISH).is_empty());
    }

    #[test]
    fn what_the_other_nodes_say_is_told_with_their_names_and_the_same_once() {
        let here = node(vec![trunk("north", TrunkState::Up)]);
        let says = |name: &str, is_alive, concerns: &[Concern]| SeenNode {
            name: name.to_owned(),
            steady_since: Timestamp::UNIX_EPOCH,
            heartbeat_at: Timestamp::UNIX_EPOCH,
            schema: 27,
            is_alive,
            concerns: Some(serde_json::to_string(concerns).unwrap()),
        };
        let down = Concern::Trunk {
            name: "north".to_owned(),
            state: TrunkState::Failing,
        };
        let mut overview = overview();
        overview.nodes = vec![
            says("a", true, std::slice::from_ref(&down)),
            says("b", true, &[down.clone(), Concern::LatePackets]),
            // What a node that is gone has said does not count, and what is wrong here is known here.
            says("", true, &[Concern::NoTrunk]),
        ];
        let told = said(&overview, &here, &ENGLISH);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("Node a, b: Trunk north carries no calls"),
            "{told:?}"
        );
        assert_eq!(told[1], format!("Node b: {}", ENGLISH.hand_late));
        overview.nodes[1].is_alive = false;
        let told = said(&overview, &here, &CHINESE);
        assert!(told[0].starts_with("节点 a：中继 north 不可用"), "{told:?}");
    }

    #[test]
    fn late_packets_a_scarce_disk_and_a_node_that_is_not_ready_need_a_hand() {
        let mut node = node(vec![trunk("north", TrunkState::Up)]);
        node.packets = (1000, 11);
        let told = said(&overview(), &node, &ENGLISH);
        assert_eq!(told, [ENGLISH.hand_late]);
        node.packets = (0, 0);
        let disk = |bytes| FreeDisk {
            name: "data_dir",
            bytes,
            floor: 100 << 20,
        };
        node.disks = vec![disk(Some(199 << 20)), disk(Some(200 << 20)), disk(None)];
        let told = said(&overview(), &node, &ENGLISH);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("has only 199 MiB left"), "{told:?}");
        node.disks.clear();
        let why = NotReady::ClaimsHeld(HoldKind::Quality, String::new());
        let hands = hands(&overview(), &node, Some(why), Some(MINUTE), &ENGLISH);
        let told: Vec<_> = hands.into_iter().map(|hand| hand.before).collect();
        assert_eq!(
            told,
            [
                "This node is not ready: packets of sound leave too late.",
                "The oldest callback has waited for 60 s: its receiver does not take it.",
            ]
        );
    }
}
