//! Notices in a history: drawn by its seed, and judged by the plan itself. What was dialled is followed attempt by attempt: each must be the one
//! that the plan names then, none may come too early, and no notice ends while its plan goes on.

use std::collections::BTreeSet;

use clarion::domain::attempt::{Attempt, AttemptNumber};
use clarion::domain::call::CallSid;
use clarion::domain::ended_call::EndedCall;
use clarion::domain::notice::ending::NoticeEnding;
use clarion::domain::notice::keys::NoticeKeys;
use clarion::domain::notice::plan::{NoticePlan, RedialReason};
use clarion::domain::notice::{Notice, Recipient};
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use jiff::SignedDuration;

use crate::chance::Chance;
use crate::model::QueueModel;
use crate::network::{Network, Pressed};
use crate::plans::NoticeStory;

/// How a call of a history goes on where nobody answers.
#[derive(Debug, Clone)]
pub struct NoticeDraw {
    plan: NoticePlan,
    backups: Vec<u32>,
    keys: Option<NoticeKeys>,
}

impl NoticeDraw {
    pub fn draw(chance: &mut Chance, callees: u32) -> Self {
        let redial_on = RedialReason::ALL.into_iter();
        Self {
            plan: NoticePlan {
                redials: u16::try_from(chance.below(4)).expect("a few"),
                pauses: (0..chance.number(1..4))
                    .map(|_| SignedDuration::from_secs(chance.number(1..6).into()))
                    .collect(),
                redial_on: redial_on.filter(|_| !chance.one_in(4)).collect(),
                tries_a_turn: chance
                    .one_in(2)
                    .then(|| u16::try_from(chance.number(1..4)).expect("a few")),
            },
            backups: (0..chance.below(4))
                .map(|_| chance.number(0..callees))
                .collect(),
            keys: chance.one_in(2).then(|| NoticeKeys {
                confirm: if chance.one_in(5) { vec![] } else { vec!['1'] },
                replay: None,
                stop: chance.one_in(2).then_some('9'),
                wait: 3,
                question: None,
                voice: None,
            }),
        }
    }

    pub fn notice(&self, first: &Recipient) -> Notice {
        let mut numbers = vec![first.clone()];
        for callee in &self.backups {
            let backup = recipient(*callee);
            if !numbers.contains(&backup) {
                numbers.push(backup);
            }
        }
        Notice {
            lists: vec![],
            shown: None,
            plan: self.plan.clone(),
            numbers,
            window: None,
            lifts_hours: false,
            ring: None,
            keys: self.keys.clone(),
            silence: None,
            machine: None,
        }
    }
}

pub fn recipient(callee: u32) -> Recipient {
    let digits = format!("861380000{callee:04}");
    Recipient {
        called: digits.clone(),
        callee: digits.clone(),
        number: PhoneNumber::from_stored(digits, None),
        caller: None,
    }
}

/// What is wrong with the notices of a history.
pub fn violations(
    model: &QueueModel,
    network: &Network,
    clocks_apart: SignedDuration,
) -> Vec<String> {
    let ends = model.ends.iter();
    let notices = ends.filter(|end| end.claimed.call.notice.is_some());
    notices
        .flat_map(|end| judge(end, model, network, clocks_apart))
        .map(|problem| format!("notice {problem}"))
        .collect()
}

fn judge(
    end: &EndedCall,
    model: &QueueModel,
    network: &Network,
    clocks_apart: SignedDuration,
) -> Vec<String> {
    let sid = end.sid();
    let notice = end.claimed.call.notice.as_deref().expect("it is a notice");
    let attempts = &model.calls[sid].attempts;
    let mut wrong = Vec::new();
    let orders: Vec<_> = model
        .bill_lines
        .iter()
        .filter(|line| line.sid() == sid)
        .map(|line| line.claimed.attempt.order_id(sid))
        .collect();
    let expected: Vec<_> = (1..=attempts.len())
        .map(|number| order(sid, number))
        .collect();
    if orders != expected || orders.is_empty() {
        wrong.push(format!("{sid} has the lines {orders:?}"));
    }
    let dialled = network.invites().filter(|leg| leg.sid == sid.as_str());
    let dialled: BTreeSet<_> = dialled.map(|leg| leg.order.clone()).collect();
    for order in dialled.iter().filter(|order| !orders.contains(order)) {
        wrong.push(format!("{order} was dialled and has no line"));
    }
    let Some(over) = &end.notice else {
        wrong.push(format!("{sid} does not say how it ended"));
        return wrong;
    };
    let call = &model.calls[sid];
    let story = NoticeStory {
        numbers: notice.numbers.clone(),
        notice: notice.clone(),
        attempts: attempts.clone(),
        ending: Some(over.ending),
        ended_at: end.ended_at,
        expires_at: call.expires_at(),
        was_cancelled: call.was_cancelled,
        clocks_apart,
    };
    let strayed = story.violations().into_iter();
    wrong.extend(strayed.map(|problem| format!("{sid} {problem}")));
    let asks = (notice.keys.iter()).any(|keys| !keys.confirm.is_empty() || keys.stop.is_some());
    let talked = attempts.iter().filter(|one| one.answered_at.is_some());
    if talked.count() > 1 && !asks {
        wrong.push(format!("{sid} was told to two people"));
    }
    wrong.extend(thanks(end, attempts, network));
    wrong
}

/// Whoever heard that a confirmation was understood can rely on it: the notice ends with that attempt, and says so.
fn thanks(end: &EndedCall, attempts: &[Attempt], network: &Network) -> Vec<String> {
    let sid = end.sid();
    let thanked = network.invites().filter(|leg| leg.is_thanked);
    let thanked = thanked.filter(|leg| leg.sid == sid.as_str());
    let mut wrong = Vec::new();
    for leg in thanked {
        let (outcome, ends) = match leg.pressed {
            Some(Pressed::Stop) => (Outcome::Stopped, false),
            _ => (Outcome::Confirmed, true),
        };
        let is_of_leg = |one: &&Attempt| one.number.order_id(sid) == leg.order;
        let attempt = attempts.iter().find(is_of_leg);
        if attempt.is_none_or(|attempt| attempt.outcome != outcome) {
            let order = &leg.order;
            wrong.push(format!(
                "{order} was understood, and is not {}",
                outcome.as_str()
            ));
        }
        let over = end.notice.as_ref();
        let is_told = over
            .is_some_and(|over| over.ending == NoticeEnding::Confirmed && over.confirmed.is_some());
        if ends && (!is_told || attempts.last() != attempt) {
            wrong.push(format!(
                "{sid} was confirmed, and went on or does not say so"
            ));
        }
    }
    wrong
}

fn order(sid: &CallSid, number: usize) -> String {
    let number = u16::try_from(number).ok().and_then(AttemptNumber::new);
    number.expect("not 0").order_id(sid)
}
