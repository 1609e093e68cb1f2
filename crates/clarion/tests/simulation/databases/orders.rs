//! What nodes and clients bring along when they ask something of the queue.

use std::collections::HashMap;
use std::sync::Arc;

use clarion::domain::call::{CallKind, NewCall, Priority, Queueing};
use clarion::domain::callback::{CallbackKey, OwedCallback, RespUrl};
use clarion::domain::claim::{CalleeCaps, Claim, ClaimedCall, Lane, LaneShare, NodeId};
use clarion::domain::customer_limits::{CallLimits, Customer};
use clarion::domain::ended_call::{CalledOff, EndedCall, NoticeOver};
use clarion::domain::notice::ending::{Confirmation, NoticeEnd, NoticeEnding};
use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::notice::plan::NoticePlan;
use clarion::domain::notice::{Notice, Recipient};
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use clarion::domain::prompt::Prompt;
use clarion::domain::request_key::{AcceptedCall, RequestId, RequestKey};
use clarion::domain::route::RouteKey;
use jiff::{SignedDuration, Timestamp};

use super::verbs::{Request, Time};
use super::{ACCOUNT, APPS};

pub const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The call of a request; each has a number of its own.
pub fn order(request: Request, number: usize, accepted_at: Timestamp) -> AcceptedCall {
    let to = recipient(request.callee);
    AcceptedCall {
        event: None,
        call: NewCall {
            kind: CallKind::Notification,
            sid: format!("{number:032}").parse().unwrap(),
            account: ACCOUNT.parse().unwrap(),
            app: APPS[usize::from(request.app)].parse().unwrap(),
            accepted_at,
            notice: request.is_notice.then(|| notice(&to)),
            called: to.called,
            number: to.number,
            callee: to.callee,
            caller: to.caller,
            prompt: Prompt {
                speech: None,
                files: Vec::new(),
                code: None,
                plays: 1,
            },
            max_talk: None,
            resp_url: Some(RespUrl::from_stored("http://example.com/cb".to_owned())),
            user_data: None,
            events: None,
        },
        queueing: Queueing {
            patience: None,
            route: RouteKey::default(),
            priority: priority(request.urgent),
            pause: if request.time == Time::Later {
                HOUR
            } else {
                SignedDuration::ZERO
            },
            valid_for: if request.time == Time::Expired {
                SignedDuration::ZERO
            } else {
                HOUR * 2
            },
        },
        request: request.name.map(|name| RequestKey {
            id: request_id(name),
            digest: format!("{request:?}"),
        }),
    }
}

pub fn node(number: u8) -> NodeId {
    NodeId::new([number; 8])
}

pub fn recipient(callee: u8) -> Recipient {
    let number = number(callee);
    Recipient {
        called: number.digits().to_owned(),
        callee: number.digits().to_owned(),
        number,
        caller: None,
    }
}

fn notice(to: &Recipient) -> Arc<Notice> {
    Arc::new(Notice {
        lists: vec![],
        shown: None,
        plan: NoticePlan::single(),
        numbers: vec![to.clone()],
        window: None,
        lifts_hours: false,
        ring: None,
        keys: None,
        silence: None,
        machine: None,
    })
}

pub fn number(callee: u8) -> PhoneNumber {
    PhoneNumber::from_stored(format!("861380000000{callee}"), None)
}

fn priority(urgent: bool) -> Priority {
    Priority::new(if urgent { 1 } else { 5 }).unwrap()
}

pub fn request_id(name: u8) -> RequestId {
    let name = format!("request {name}");
    RequestId::read(Some(&name), None).unwrap().unwrap()
}

pub fn claim(of: u8, calls: [u32; 4], at_once: Option<u32>) -> Claim {
    let lanes = APPS.iter().flat_map(|app| [(app, true), (app, false)]);
    let shares = lanes.zip(calls).map(|((app, urgent), calls)| LaneShare {
        account: ACCOUNT.parse().unwrap(),
        lane: Lane {
            app: app.parse().unwrap(),
            route: RouteKey::default(),
            priority: priority(urgent),
        },
        calls,
    });
    let limits = at_once.map(|at_once| {
        let limits = CallLimits {
            at_once,
            per_second: u32::MAX,
        };
        (Customer::Account(ACCOUNT.parse().unwrap()), limits)
    });
    Claim {
        node: node(of),
        shares: shares.filter(|share| share.calls > 0).collect(),
        limits: HashMap::from_iter(limits),
        caps: CalleeCaps::default(),
    }
}

pub fn ended(claimed: ClaimedCall, outcome: Outcome, at: Timestamp) -> EndedCall {
    let call = &claimed.call;
    let callback = call.resp_url.clone().map(|url| OwedCallback {
        key: CallbackKey::of_end(call.sid.clone()),
        webhook_id: format!("msg_{}", call.sid),
        app: call.app.clone(),
        url,
        body: format!("<request>{}</request>", outcome.as_str()),
        owed_at: at,
        valid_for: None,
    });
    let choice = match outcome {
        Outcome::Confirmed => Some(CalleeChoice::Confirmed('1')),
        Outcome::Stopped => Some(CalleeChoice::Stopped),
        _ => None,
    };
    let notice = call.notice.is_some().then(|| NoticeEnd {
        ending: NoticeEnding::Exhausted,
        outcome: Outcome::Busy,
        attempts: claimed.attempt.number(),
        confirmed: choice
            .and_then(CalleeChoice::confirming_key)
            .map(|key| Confirmation {
                called: call.called.clone(),
                key,
            }),
        answered_by: None,
        dialled_at: Some(at),
        answered_at: None,
        ended_at: at + SignedDuration::from_millis(1500),
    });
    let over = |end: &NoticeEnd, ending: NoticeEnding| NoticeOver {
        events: Vec::new(),
        end: NoticeEnd {
            ending,
            ..end.clone()
        },
        callback: callback.clone().map(|owed| OwedCallback {
            body: format!("<request>{}</request>", ending.as_str()),
            ..owed
        }),
    };
    let if_called_off = notice
        .as_ref()
        .filter(|_| choice.is_none())
        .map(|end| CalledOff {
            cancelled: over(end, NoticeEnding::Cancelled),
            resolved: over(end, NoticeEnding::Resolved),
        });
    EndedCall {
        events: Vec::new(),
        notice,
        if_called_off: if_called_off.map(Box::new),
        outcome,
        choice,
        voice: Some("anna".to_owned()),
        trunk: Some("east".to_owned()),
        tries: claimed.tries + 1,
        dialled_at: Some(at),
        rang_at: None,
        answered_at: (outcome == Outcome::Talked).then_some(at),
        ended_at: at + SignedDuration::from_millis(1500),
        sip_code: Some(200),
        reason: None,
        legs: vec![],
        bill_day: "2027-01-15".parse().unwrap(),
        callback,
        claimed,
    }
}
