//! How nodes share a trunk: each is granted a part of its channels and of its starts a second. Together the parts are never more than the
//! trunk has. A node that has more calls than its part suffices for says since when it wants more; the others then give back what they do not
//! use, and what they use beyond their fair part as their calls end. Where a trunk has fewer channels than there are nodes, who has wanted for
//! the longest time is next.

/// What a trunk can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrunkCapacity {
    pub channels: u32,
    pub per_second: u32,
}

/// What a node tells of a trunk when it asks for its part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequest {
    pub trunk: String,
    /// A node's questions are numbered from 1 on. One that arrives after a later one is too old to change anything.
    pub question: i64,
    /// Nobody knows what became of the question before. It may still arrive: so this one is written down, even if it changes nothing else.
    pub is_after_doubt: bool,
    pub whole: TrunkCapacity,
    pub in_use: u32,
    /// It may go on to use as many before it is answered: they are not granted to others.
    pub keeps: u32,
    /// Calls are due that could start if its part were larger.
    pub wants_more: bool,
}

/// One node's part of a trunk, as it is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodePart {
    pub channels: u32,
    /// Starts in a thousand seconds.
    pub rate: i64,
    pub in_use: u32,
    /// In milliseconds of the store's clock.
    pub wanting_since: Option<i64>,
    /// The last question that changed it.
    pub question: i64,
}

impl NodePart {
    /// The same, but for the question that it comes from.
    pub fn is_as(self, other: Self) -> bool {
        let question = other.question;
        Self { question, ..self } == other
    }
}

/// What a node may use from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrunkGrant {
    pub channels: u32,
    pub rate: i64,
    /// While others want more: a channel beyond this number is given back as soon as it is free.
    pub keep: u32,
}

impl TrunkGrant {
    /// The whole trunk, for a node that is alone.
    pub fn whole(whole: TrunkCapacity) -> Self {
        Self {
            channels: whole.channels,
            rate: i64::from(whole.per_second) * 1000,
            keep: whole.channels,
        }
    }

    /// What stays with a node that uses so many, when it gives back what others want.
    pub fn given_back(self, in_use: u32) -> u32 {
        self.channels.min(self.keep.max(in_use))
    }
}

/// A node's new part, given its last one and those of the others. What cannot be divided goes to who has wanted for the longest time; of two
/// who began to want at the same moment, to the one with the lower `rank`.
pub fn regrant(
    request: &GrantRequest,
    own: NodePart,
    others: &[NodePart],
    rank: u32,
    now: i64,
) -> (NodePart, TrunkGrant) {
    let whole = request.whole;
    if request.question <= own.question {
        let grant = TrunkGrant {
            channels: own.channels,
            rate: own.rate,
            keep: own.channels,
        };
        return (own, grant);
    }
    let own = NodePart {
        question: request.question,
        in_use: request.in_use,
        wanting_since: request.wants_more.then(|| own.wanting_since.unwrap_or(now)),
        ..own
    };
    let is_active = |part: &NodePart| part.in_use > 0 || part.wanting_since.is_some();
    let nodes = count(others.iter()) + 1;
    let active = count(others.iter().filter(|part| is_active(part))) + u32::from(is_active(&own));
    let is_contested = others.iter().any(|part| part.wanting_since.is_some());

    let taken = others.iter().map(|part| part.channels);
    let free = whole
        .channels
        .saturating_sub(taken.fold(0, u32::saturating_add));
    let base = whole.channels / nodes;
    let fair = whole.channels / active.max(1);
    let keep = if is_active(&own) { fair } else { base };
    let wanted = if is_contested {
        let is_first = waits_longest(&own, others, rank);
        let more = u32::from(is_first && request.wants_more);
        let fair_part = if request.wants_more {
            keep
        } else {
            keep.min(own.channels)
        };
        fair_part
            .max(request.keeps)
            .max(own.in_use.saturating_add(more))
    } else if request.wants_more {
        own.channels.saturating_mul(2).max(fair).max(own.in_use + 1)
    } else {
        own.channels.max(base)
    };
    let all_starts = i64::from(whole.per_second) * 1000;
    let taken: i64 = others.iter().map(|part| part.rate).sum();
    let sharing = i64::from(if is_active(&own) { active } else { nodes });
    let part = NodePart {
        channels: wanted.min(free),
        rate: (all_starts / sharing).min((all_starts - taken).max(0)),
        ..own
    };
    let grant = TrunkGrant {
        channels: part.channels,
        rate: part.rate,
        keep: if is_contested { keep } else { part.channels },
    };
    (part, grant)
}

fn count<'a>(parts: impl Iterator<Item = &'a NodePart>) -> u32 {
    u32::try_from(parts.count()).unwrap_or(u32::MAX)
}

/// Among those who want more, nobody has wanted for longer.
fn waits_longest(own: &NodePart, others: &[NodePart], rank: u32) -> bool {
    let Some(since) = own.wanting_since else {
        return false;
    };
    let longest = others.iter().filter_map(|part| part.wanting_since).min();
    longest.is_none_or(|longest| since < longest || since == longest && rank == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: TrunkGrant = TrunkGrant {
        channels: 0,
        rate: 0,
        keep: 0,
    };

    /// Nodes that ask in turn, as they would through the store.
    struct Nodes {
        whole: TrunkCapacity,
        parts: Vec<NodePart>,
        grants: Vec<TrunkGrant>,
        now: i64,
    }

    impl Nodes {
        fn new(channels: u32, per_second: u32, nodes: usize) -> Self {
            let whole = TrunkCapacity {
                channels,
                per_second,
            };
            Self {
                whole,
                parts: vec![NodePart::default(); nodes],
                grants: vec![NONE; nodes],
                now: 0,
            }
        }

        fn ask(&mut self, node: usize, in_use: u32, wants_more: bool) -> TrunkGrant {
            self.now += 1;
            let request = GrantRequest {
                trunk: "trunk".to_owned(),
                question: self.now,
                is_after_doubt: false,
                whole: self.whole,
                in_use,
                keeps: self.grants[node].given_back(in_use),
                wants_more,
            };
            let mut others = self.parts.clone();
            let own = others.remove(node);
            let rank = u32::try_from(node).unwrap();
            let (part, grant) = regrant(&request, own, &others, rank, self.now);
            assert!(part.channels >= request.keeps, "{part:?} {request:?}");
            (self.parts[node], self.grants[node]) = (part, grant);
            let channels: u32 = self.parts.iter().map(|part| part.channels).sum();
            let rate: i64 = self.parts.iter().map(|part| part.rate).sum();
            assert!(
                channels <= self.whole.channels.max(in_use),
                "{:?}",
                self.parts
            );
            assert!(rate <= i64::from(self.whole.per_second) * 1000);
            grant
        }
    }

    #[test]
    fn one_node_has_the_whole_trunk_and_gives_half_of_it_to_a_second() {
        let mut nodes = Nodes::new(10, 4, 1);
        let alone = nodes.ask(0, 0, false);
        assert_eq!((alone.channels, alone.rate), (10, 4000));
        nodes.parts.push(NodePart::default());
        nodes.grants.push(NONE);
        assert_eq!(nodes.ask(1, 0, true).channels, 0, "nothing is left");
        let busy = nodes.ask(0, 9, true);
        assert_eq!((busy.channels, busy.keep), (10, 5), "now it knows");
        let busy = nodes.ask(0, 9, true);
        assert_eq!((busy.channels, busy.keep), (9, 5), "its calls go on");
        assert_eq!(nodes.ask(1, 0, true).channels, 1);
        assert_eq!(nodes.ask(0, 5, true).channels, 5);
        let second = nodes.ask(1, 1, true);
        assert_eq!((second.channels, second.rate), (5, 2000));
        assert_eq!(
            nodes.ask(0, 0, false).channels,
            5,
            "idle, it keeps its part"
        );
        assert_eq!(nodes.ask(1, 5, false).channels, 5);
    }

    #[test]
    fn a_question_that_arrives_after_a_later_one_changes_nothing() {
        let mut nodes = Nodes::new(10, 4, 2);
        nodes.ask(0, 0, true);
        let late = nodes.now;
        nodes.ask(1, 5, true);
        nodes.ask(0, 5, true);
        let part = nodes.parts[0];
        nodes.now = late - 1;
        nodes.ask(0, 0, false);
        assert_eq!(nodes.parts[0], part);
    }

    #[test]
    fn where_there_are_fewer_channels_than_nodes_everybody_has_a_turn() {
        let mut nodes = Nodes::new(1, 1, 3);
        let mut served = [0; 3];
        let mut running: Option<usize> = None;
        for _ in 0..60 {
            for (node, served) in served.iter_mut().enumerate() {
                let in_use = u32::from(running == Some(node));
                let grant = nodes.ask(node, in_use, true);
                if running.is_none() && grant.channels > 0 {
                    running = Some(node);
                    *served += 1;
                    nodes.ask(node, 1, true);
                    nodes.parts[node].wanting_since = None;
                }
            }
            if let Some(node) = running.take() {
                // While its call goes on it learns that others want the channel. When the call ends, it has nothing that it may keep.
                let keep = nodes.ask(node, 1, true).keep;
                assert_eq!(nodes.ask(node, 0, true).channels.min(keep), 0);
            }
        }
        assert!(served.iter().all(|times| *times >= 10), "{served:?}");
    }

    #[test]
    fn whatever_nodes_ask_for_they_never_have_more_than_the_trunk() {
        for seed in 0..200_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut draw = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                u32::try_from(random % below).unwrap()
            };
            let count = draw(5) as usize + 1;
            let mut nodes = Nodes::new(draw(12), draw(9), count);
            for _ in 0..200 {
                let node = draw(count as u64) as usize;
                let most = nodes.parts[node].channels;
                nodes.ask(node, draw(u64::from(most) + 1), draw(2) == 1);
            }
        }
    }
}
