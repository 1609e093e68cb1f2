//! What nodes may ask of the queue.

use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::outcome::Outcome;
use proptest::prelude::*;

pub const NODES: u8 = 3;

#[derive(Debug, Clone)]
pub enum Action {
    Accept(Request),
    /// A call that was accepted is sent again.
    AcceptAgain(usize),
    Find(u8),
    Lanes,
    Claim {
        node: u8,
        /// Calls of each lane, by application and urgency.
        calls: [u32; 4],
        at_once: Option<u32>,
    },
    Overdue(u8),
    /// A lease of all that were ever given: it may be over.
    Advance(usize, Step),
    Requeue(usize, bool, u32),
    End(usize, Outcome),
    /// The next attempt of a notice calls this callee.
    GoOn(usize, Outcome, GoOn),
    Heartbeat(u8, bool),
    /// Those of its own calls that it has given up, by their place among all.
    Orphans(u8, Vec<usize>),
    Leave(u8),
    Held(u8),
    Cancel(usize),
    Cancelled(u8),
    Depth,
    CallsTo(u8),
}

#[derive(Debug, Clone, Copy)]
pub struct GoOn {
    pub callee: u8,
    pub was_dialled: bool,
    pub later: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Dialling,
    Ringing,
    Answered,
    Chosen(CalleeChoice),
}

#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub app: u8,
    pub callee: u8,
    pub urgent: bool,
    pub time: Time,
    pub name: Option<u8>,
    pub is_notice: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Now,
    /// Not due for an hour.
    Later,
    /// Expired already.
    Expired,
}

fn request() -> impl Strategy<Value = Request> {
    let time = prop_oneof![
        7 => Just(Time::Now),
        2 => Just(Time::Later),
        1 => Just(Time::Expired),
    ];
    let name = proptest::option::weighted(0.2, 0..3_u8);
    let is_notice = proptest::bool::weighted(0.4);
    (0..2_u8, 0..4_u8, any::<bool>(), name, time, is_notice).prop_map(
        |(app, callee, urgent, name, time, is_notice)| Request {
            app,
            callee,
            urgent,
            time,
            name,
            is_notice,
        },
    )
}

pub fn action() -> impl Strategy<Value = Action> {
    let node = || 0..NODES;
    let one_of_all = || any::<prop::sample::Index>().prop_map(|index| index.index(1000));
    let step = prop_oneof![
        3 => Just(Step::Dialling),
        1 => Just(Step::Ringing),
        1 => Just(Step::Answered),
        1 => prop_oneof![Just(CalleeChoice::Confirmed('1')), Just(CalleeChoice::Stopped)]
            .prop_map(Step::Chosen),
    ];
    let outcome = || prop::sample::select(Outcome::ALL);
    let another = (
        0..4_u8,
        proptest::bool::weighted(0.7),
        proptest::bool::weighted(0.3),
    );
    let another = another.prop_map(|(callee, was_dialled, later)| GoOn {
        callee,
        was_dialled,
        later,
    });
    let calls = prop::array::uniform4(0..4_u32);
    let at_once = proptest::option::weighted(0.3, 0..4_u32);
    prop_oneof![
        8 => request().prop_map(Action::Accept),
        1 => one_of_all().prop_map(Action::AcceptAgain),
        1 => (0..3_u8).prop_map(Action::Find),
        2 => Just(Action::Lanes),
        8 => (node(), calls, at_once)
            .prop_map(|(node, calls, at_once)| Action::Claim { node, calls, at_once }),
        2 => node().prop_map(Action::Overdue),
        5 => (one_of_all(), step).prop_map(|(lease, step)| Action::Advance(lease, step)),
        4 => (one_of_all(), any::<bool>(), 0..5_u32)
            .prop_map(|(lease, later, tries)| Action::Requeue(lease, later, tries)),
        4 => (one_of_all(), outcome()).prop_map(|(lease, outcome)| Action::End(lease, outcome)),
        4 => (one_of_all(), outcome(), another)
            .prop_map(|(lease, outcome, another)| Action::GoOn(lease, outcome, another)),
        4 => (node(), proptest::bool::weighted(0.75))
            .prop_map(|(node, lives)| Action::Heartbeat(node, lives)),
        3 => (node(), prop::collection::vec(one_of_all(), 0..3))
            .prop_map(|(node, given_up)| Action::Orphans(node, given_up)),
        1 => node().prop_map(Action::Leave),
        1 => node().prop_map(Action::Held),
        2 => one_of_all().prop_map(Action::Cancel),
        1 => node().prop_map(Action::Cancelled),
        1 => Just(Action::Depth),
        1 => (0..4_u8).prop_map(Action::CallsTo),
    ]
}
