//! What follows an attempt of a notice: the next one, or the end of the whole. The decision is the domain's (`Notice::sequel`); here it is given what has
//! happened so far, and which of its numbers may be called now.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::customers::{AccountRules, CustomerLimits};
use super::node::Node;
use super::planted::{self, PlantedBug};
use super::trunk_pool::TrunkPool;
use crate::barred_numbers::BarredNumbers;
use crate::config::Config;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::attempt::{Attempt, AttemptNumber};
use crate::domain::call::NewCall;
use crate::domain::call_window::CallWindow;
use crate::domain::callback::{CallReport, EventAttempt, OwedCallback, OwedEvent, StateEvent};
use crate::domain::claim::ClaimedCall;
use crate::domain::ended_call::{CalledOff, EndedCall, GoingOn, NextDial, NoticeOver};
use crate::domain::notice::call_hours::CallHours;
use crate::domain::notice::ending::{Confirmation, NoticeEnd, NoticeEnding};
use crate::domain::notice::keys::CalleeChoice;
use crate::domain::notice::plan::NumberTurn;
use crate::domain::notice::{Notice, Recipient, Sequel};
use crate::domain::numbering_plan::NumberingPlan;
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::route::{self, RouteKey, TrunkRoute};
use crate::store::StoreError;

/// A call whose hours are closed looks again after this time at most: an operator may have changed them.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// From a number that was given up undialled to the next one.
const WHEN_GIVEN_UP: SignedDuration = SignedDuration::from_secs(1);

/// What becomes of a notice whose attempt has ended.
pub enum NoticeStep {
    GoesOn(Box<GoingOn>),
    Over(Box<EndedCall>),
}

/// How an attempt makes room for what follows.
#[derive(Debug, Clone, Copy)]
pub enum Leaving<'a> {
    /// It is over. So its notice ends with it, where that is not for the plan to decide.
    Ended(Option<NoticeEnding>),
    /// Its number has been held back for too long. Only one that a trunk can be used for takes its turn.
    HeldBack(&'a TrunkPool),
}

impl Leaving<'_> {
    /// What becomes of the turn that the number had.
    fn lose(self, turn: &mut NumberTurn, was_dialled: bool) {
        if !was_dialled || matches!(self, Self::HeldBack(_)) {
            *turn = NumberTurn::Lost;
        }
    }

    fn may_lead_to(self, other: &Recipient) -> bool {
        match self {
            Self::Ended(_) => true,
            Self::HeldBack(pool) => pool.reaches(other.ends()),
        }
    }

    /// How the notice ends with the attempt, whatever its plan says.
    fn ending(self) -> Option<NoticeEnding> {
        match self {
            Self::Ended(ending) => ending,
            Self::HeldBack(_) => None,
        }
    }
}

#[derive(Debug)]
pub struct NoticePlanner {
    node: Node,
    barred: Arc<BarredNumbers>,
    customers: Arc<CustomerLimits>,
    numbers: NumberingPlan,
    routes: Vec<TrunkRoute>,
    /// So long a talk is paid for in advance.
    reserved_talk: u32,
}

impl NoticePlanner {
    pub fn new(
        config: &Config,
        node: &Node,
        barred: &Arc<BarredNumbers>,
        customers: &Arc<CustomerLimits>,
    ) -> Arc<Self> {
        Arc::new(Self {
            node: node.clone(),
            barred: Arc::clone(barred),
            customers: Arc::clone(customers),
            numbers: config.numbers.clone(),
            routes: config
                .trunks
                .iter()
                .map(|trunk| trunk.route.clone())
                .collect(),
            reserved_talk: config.reserved_talk(),
        })
    }

    /// What follows this attempt.
    pub async fn step(
        &self,
        notice: &Notice,
        ended: &EndedCall,
        leaving: Leaving<'_>,
    ) -> Result<NoticeStep, StoreError> {
        let claimed = &ended.claimed;
        let history = self.node.store.history_so_far(&claimed.call.sid).await?;
        let mut past = history.attempts;
        let was_dialled = ended.was_dialled(claimed.legs_before);
        if was_dialled {
            past.push(Attempt {
                number: claimed.attempt,
                to: claimed.call.number.clone(),
                outcome: ended.outcome,
                dialled_at: ended.attempt_dialled_at(claimed.legs_before),
                answered_at: ended.answered_at,
                ended_at: ended.ended_at,
                choice: ended.choice,
                answered_by: ended.answered_by(),
                voice: ended.voice.clone(),
            });
        }
        // What cannot be said to one cannot be said to another.
        let unspeakable = ended.outcome == Outcome::PromptFailed;
        let is_cut_short = ended.outcome == Outcome::Interrupted
            && planted::is(PlantedBug::InterruptionEndsNotice);
        let ending = leaving.ending();
        let ending = ending.or((unspeakable || is_cut_short).then_some(NoticeEnding::Exhausted));
        let sequel = if let Some(ending) = ending {
            Sequel::Over(ending)
        } else {
            let call = &claimed.call;
            let rules = self.customers.rules(&call.account, &call.app).await?;
            let mut numbers = self.turns(notice, call, &rules, &past).await?;
            for (to, turn) in &mut numbers {
                if to.number == call.number {
                    leaving.lose(turn, was_dialled);
                } else if !leaving.may_lead_to(to) {
                    *turn = NumberTurn::Barred;
                }
            }
            self.sequel(notice, &numbers, &past, rules.hours.as_deref())
        };
        let over = |ending| {
            let mut end = Notice::end(ending, &past, ended.outcome, ended.ended_at);
            let key = ended.choice.and_then(CalleeChoice::confirming_key);
            end.confirmed = key.map(|key| Confirmation {
                called: claimed.call.called.clone(),
                key,
            });
            self.over(ended, end)
        };
        let called_off = || CalledOff {
            cancelled: over(NoticeEnding::Cancelled),
            resolved: over(NoticeEnding::Resolved),
        };
        let (next, not_before) = match sequel {
            Sequel::Over(ending) => {
                // Whether somebody has cancelled it says the mark in the queue alone: an attempt may be broken off for other reasons. Only a confirmation
                // that was committed wins over it.
                let mut last = ended.clone().over(over(ending));
                if ending != NoticeEnding::Confirmed {
                    last.if_called_off = Some(Box::new(called_off()));
                }
                return Ok(NoticeStep::Over(Box::new(last)));
            }
            Sequel::Dial { number, not_before } => (number, not_before),
        };
        let pause = not_before.duration_since(self.node.clock.now());
        // A number that was given up before anything was sent may not be the only one: nobody goes round in circles.
        let pause = if was_dialled {
            pause
        } else {
            pause.max(WHEN_GIVEN_UP)
        };
        let events = self.events(ended, &next, was_dialled);
        let patience = notice.patience(&next.number, &past);
        Ok(NoticeStep::GoesOn(Box::new(GoingOn {
            next: self.next_dial(next, ended.claimed.call.max_talk, pause, patience),
            if_called_off: called_off(),
            if_unpaid: over(NoticeEnding::Unpaid),
            ended: EndedCall {
                events,
                ..ended.clone()
            },
        })))
    }

    fn sequel(
        &self,
        notice: &Notice,
        numbers: &[(Recipient, NumberTurn)],
        past: &[Attempt],
        hours: Option<&CallWindow>,
    ) -> Sequel {
        let windows = notice.hours(hours);
        let hours = CallHours {
            windows: &windows,
            zone: self.node.clock.zone(),
        };
        notice.sequel(numbers, past, hours, self.node.clock.now())
    }

    /// Whom a notice calls, with those of its lists as they are now.
    async fn recipients(
        &self,
        notice: &Notice,
        account: &AccountSid,
    ) -> Result<Vec<Recipient>, StoreError> {
        let lists = match &notice.list_names()[..] {
            [] => Vec::new(),
            names => self.node.store.lists_of_notice(account, names).await?,
        };
        Ok(notice.recipients(&lists, &self.numbers))
    }

    /// Whom a notice calls, and who of them may be called now. Every number is checked again before each attempt: what was allowed when the request came may
    /// not be any more.
    async fn turns(
        &self,
        notice: &Notice,
        call: &NewCall,
        rules: &AccountRules,
        past: &[Attempt],
    ) -> Result<Vec<(Recipient, NumberTurn)>, StoreError> {
        let recipients = self.recipients(notice, &call.account).await?;
        let unwanted = if rules.has_do_not_call {
            let digits: Vec<_> = recipients.iter().map(|to| to.number.digits()).collect();
            let unwanted = self.node.store.unwanted_numbers(&call.account, &digits);
            unwanted.await?
        } else {
            HashSet::new()
        };
        let may_be_called = |to: &Recipient| {
            let digits = to.number.digits();
            let forbidden = self.forbidden(notice, &to.number, past.is_empty());
            let is_carried = route::is_carried(&self.routes, to.ends());
            let is_barred = self.barred.contains(digits) || unwanted.contains(digits);
            is_carried && !is_barred && forbidden.is_none()
        };
        let turn = |to: Recipient| {
            let turn = if may_be_called(&to) {
                NumberTurn::Open
            } else {
                NumberTurn::Barred
            };
            (to, turn)
        };
        Ok(recipients.into_iter().map(turn).collect())
    }

    /// Why the platform does not call a number of a notice. An emergency number may be called where the operator permits it, but not again, nor instead of
    /// another number.
    fn forbidden(
        &self,
        notice: &Notice,
        number: &PhoneNumber,
        is_first_attempt: bool,
    ) -> Option<&'static str> {
        let is_named_first = notice.numbers.first().map(|to| &to.number) == Some(number);
        let is_allowed = number.check_allowed(&self.numbers).is_ok();
        let is_permitted = is_first_attempt && is_named_first
            || number.check_no_emergency("to", &self.numbers).is_ok();
        (!is_allowed || !is_permitted)
            .then_some("the settings have forbidden the number while the call waited")
    }

    /// Why the number of an attempt must not be called any more, besides those that are barred: asked right before it is dialled.
    pub async fn withdrawn(
        &self,
        claimed: &ClaimedCall,
    ) -> Result<Option<&'static str>, StoreError> {
        let call = &claimed.call;
        let number = &call.number;
        if let Some(notice) = &call.notice {
            let is_first_attempt = claimed.attempt == AttemptNumber::FIRST;
            let reason = self.forbidden(notice, number, is_first_attempt);
            if reason.is_some() {
                return Ok(reason);
            }
        }
        if self.is_unwanted(&call.account, &call.app, number).await? {
            return Ok(Some("the number is on the do-not-call list of its account"));
        }
        // A number that the request does not name was on one of its lists.
        if let Some(notice) = &call.notice
            && !notice.names(number)
        {
            let recipients = self.recipients(notice, &call.account).await?;
            if !recipients.iter().any(|to| to.number == *number) {
                return Ok(Some(
                    "the number was taken off its list while the call waited",
                ));
            }
        }
        Ok(None)
    }

    pub fn numbers(&self) -> &NumberingPlan {
        &self.numbers
    }

    /// Whether the number is on the do-not-call list of the account.
    pub async fn is_unwanted(
        &self,
        account: &AccountSid,
        app: &AppId,
        number: &PhoneNumber,
    ) -> Result<bool, StoreError> {
        let rules = self.customers.rules(account, app).await?;
        if !rules.has_do_not_call {
            return Ok(false);
        }
        let (store, digits) = (&self.node.store, [number.digits()]);
        let unwanted = store.unwanted_numbers(account, &digits).await?;
        Ok(!unwanted.is_empty())
    }

    fn next_dial(
        &self,
        to: Recipient,
        max_talk: Option<u32>,
        pause: SignedDuration,
        patience: Option<SignedDuration>,
    ) -> NextDial {
        NextDial {
            route: RouteKey::of(&self.routes, to.ends()),
            to,
            pause: pause.max(SignedDuration::ZERO),
            patience,
            longest_talk: self.longest_talk(max_talk),
        }
    }

    /// How long a talk is paid for in advance.
    pub fn longest_talk(&self, asked: Option<u32>) -> u32 {
        asked.map_or(self.reserved_talk, |asked| asked.min(self.reserved_talk))
    }

    fn over(&self, ended: &EndedCall, end: NoticeEnd) -> NoticeOver {
        let call = &ended.claimed.call;
        let callback = call.resp_url.clone().map(|url| {
            let report = CallReport {
                call: &call.sid,
                kind: call.kind,
                called: call.asked_for(),
                outcome: end.outcome,
                dialled_at: end.dialled_at,
                answered_at: end.answered_at,
                ended_at: end.ended_at,
                user_data: call.user_data.as_deref(),
                notice: Some(&end),
            };
            OwedCallback::new(&report, call.app.clone(), url, self.node.clock.zone())
        });
        let events = ended.last_events(end.outcome, self.node.clock.zone());
        NoticeOver {
            end,
            callback,
            events,
        }
    }

    /// What those who watch it are told when it goes on: the end of this attempt, and who is next.
    fn events(&self, ended: &EndedCall, next: &Recipient, was_dialled: bool) -> Vec<OwedEvent> {
        let (claimed, zone) = (&ended.claimed, self.node.clock.zone());
        let event = if next.number == claimed.call.number {
            StateEvent::Waiting
        } else {
            StateEvent::Escalated
        };
        let about = EventAttempt {
            attempt: claimed.attempt.number() + u16::from(was_dialled),
            called: &next.called,
        };
        let next = OwedEvent::new(&claimed.call, event, Some(about), ended.ended_at, zone);
        ended.hang_up_event(zone).into_iter().chain(next).collect()
    }

    /// How long it takes until the hours of a call are open again; nothing while they are.
    pub async fn closed_for(&self, call: &NewCall) -> Result<Option<SignedDuration>, StoreError> {
        let rules = self.customers.rules(&call.account, &call.app).await?;
        let windows = call.hours(rules.hours.as_deref());
        if windows.is_empty() {
            return Ok(None);
        }
        let now = self.node.clock.now();
        let hours = CallHours {
            windows: &windows,
            zone: self.node.clock.zone(),
        };
        // Hours that never open let the call expire.
        let opens = hours.next_open(now).unwrap_or(Timestamp::MAX);
        let pause = opens.duration_since(now).min(LONGEST_PAUSE);
        Ok(Some(pause).filter(SignedDuration::is_positive))
    }
}
