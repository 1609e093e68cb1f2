//! What every store promises: one suite, run on SQLite and on PostgreSQL.

mod accounts;
mod audio_files;
mod barred_numbers;
mod call_lists;
mod callback_turns;
mod callbacks;
mod calls;
mod do_not_call;
mod events;
mod intakes;
mod migrations;
mod operators;
mod readiness;
mod said_once;
mod supervision;
mod views;

use std::sync::Arc;

use clarion::domain::call::{CallKind, NewCall, Priority, Queueing};
use clarion::domain::callback::RespUrl;
use clarion::domain::claim::Lane;
use clarion::domain::lexicon::Reading;
use clarion::domain::phone_number::PhoneNumber;
use clarion::domain::prompt::{AudioFile, ContentId, Prompt, Speech};
use clarion::domain::request_key::AcceptedCall;
use clarion::domain::route::RouteKey;
use clarion::store::{Database, Store};
use jiff::{SignedDuration, Timestamp};
use supervisor::Supervisor;

use crate::support::{APP, SID, account, application};

pub async fn open(database: &Database) -> Arc<dyn Store> {
    database.open(&Supervisor::new()).await.unwrap()
}

pub async fn with_account(database: &Database) -> Arc<dyn Store> {
    let store = open(database).await;
    store.add_account(account()).await.unwrap();
    store.add_application(application()).await.unwrap();
    store
}

pub fn queueing() -> Queueing {
    Queueing {
        route: RouteKey::default(),
        priority: Priority::USUAL,
        pause: SignedDuration::ZERO,
        valid_for: SignedDuration::from_hours(1),
        patience: None,
    }
}

/// Such a call, as it is to be accepted.
pub fn order(call: NewCall) -> AcceptedCall {
    order_queued(call, queueing())
}

pub fn order_queued(call: NewCall, queueing: Queueing) -> AcceptedCall {
    AcceptedCall {
        event: None,
        call,
        queueing,
        request: None,
    }
}

/// The lane of such a call.
pub fn lane() -> Lane {
    Lane {
        app: APP.parse().unwrap(),
        route: queueing().route,
        priority: queueing().priority,
    }
}

pub fn call(number: u128) -> NewCall {
    let accepted_at: Timestamp = "2026-11-15T02:35:09.123Z".parse().unwrap();
    NewCall {
        notice: None,
        kind: CallKind::Notification,
        sid: format!("{number:032x}").parse().unwrap(),
        account: SID.parse().unwrap(),
        app: APP.parse().unwrap(),
        accepted_at,
        called: "+86 138".into(),
        number: PhoneNumber::from_stored("8613800000000".into(), Some("3627".into())),
        callee: "8613800000000".into(),
        caller: Some("864001234567".into()),
        prompt: Prompt {
            speech: Some(Speech {
                text: "你好 <&>\"'".into(),
                speed: -500,
                volume: 20,
                pitch: 1,
                background: 6,
                voice: Some("anna".parse().unwrap()),
                readings: vec![Reading::parse("你", "您").unwrap()],
            }),
            files: vec![AudioFile {
                name: "a.wav".parse().unwrap(),
                content: ContentId::test_file(),
            }],
            code: None,
            plays: 3,
        },
        max_talk: Some(60),
        resp_url: Some(RespUrl::parse("http://h/cb?a=1&b=2").unwrap()),
        user_data: Some("数据\r\n\t🎉".into()),
        events: None,
    }
}
