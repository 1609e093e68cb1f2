//! Who asks for calls in this bench, and what for: the same calls over HTTPS, raw, and in the history.

use std::sync::atomic::{AtomicU64, Ordering};

use clarion::client::ApiCredentials;
use clarion::clock::Clock;
use clarion::domain::account::{
    Account, AccountLimits, AccountState, AppId, AppLimits, AppState, Application, Permissions,
};
use clarion::domain::call::{CallKind, CallSid, NewCall, Priority, Queueing};
use clarion::domain::callback::RespUrl;
use clarion::domain::lexicon::Lexicon;
use clarion::domain::phone_number::PhoneNumber;
use clarion::domain::prompt::{Prompt, Speech};
use clarion::domain::request_key::AcceptedCall;
use clarion::domain::route::RouteKey;
use clarion::random;
use jiff::SignedDuration;

/// The highest that an account's limits go: the store is to be the limit here.
pub const NO_LIMIT: u32 = 1_000_000;
const TEXT: &str = "您的订单已发货，请留意查收。Your order is on its way.";
pub const RESP_URL: &str = "https://shop.example/voice/status";
pub const EXPIRES_AFTER: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug)]
pub struct BenchCustomer {
    pub credentials: ApiCredentials,
    pub app: AppId,
    pub clock: Clock,
    orders: AtomicU64,
}

impl BenchCustomer {
    pub fn new(clock: Clock) -> Self {
        Self {
            credentials: ApiCredentials {
                sid: random::id()
                    .parse()
                    .expect("hex digits are an account's id"),
                token: random::id().parse().expect("hex digits are a token"),
            },
            app: random::id()
                .parse()
                .expect("hex digits are an application's id"),
            clock,
            orders: AtomicU64::new(0),
        }
    }

    pub fn account(&self) -> Account {
        Account {
            sid: self.credentials.sid.clone(),
            name: "Bench".to_owned(),
            auth_token: self.credentials.token.clone(),
            state: AccountState::Active,
            permissions: Permissions::default(),
            limits: AccountLimits {
                requests_per_second: Some(NO_LIMIT),
                requests_at_once: Some(NO_LIMIT),
                ..AccountLimits::default()
            },
            balance: None,
            spending_limit: None,
            call_hours: None,
            display_numbers: Vec::new(),
            allowed_networks: Vec::new(),
            has_do_not_call: false,
            created_at: self.clock.now(),
            updated_at: self.clock.now(),
        }
    }

    pub fn application(&self) -> Application {
        Application {
            limits: AppLimits::default(),
            id: self.app.clone(),
            account: self.credentials.sid.clone(),
            name: "Bench".to_owned(),
            state: AppState::Active,
            callback_secret: None,
            created_at: self.clock.now(),
            bill_json_key: None,
            voice: None,
            lexicon: Lexicon::default(),
        }
    }

    /// The same customer, for another task.
    pub fn as_asker(&self) -> Self {
        Self {
            credentials: self.credentials.clone(),
            app: self.app.clone(),
            clock: self.clock.clone(),
            orders: AtomicU64::new(0),
        }
    }

    /// How many calls were asked for so far.
    pub fn orders(&self) -> u64 {
        self.orders.load(Ordering::Relaxed)
    }

    /// The next call has a number that is so much higher.
    pub fn skip_orders(&self, orders: u64) {
        self.orders.fetch_add(orders, Ordering::Relaxed);
    }

    fn next_order(&self) -> u64 {
        self.orders.fetch_add(1, Ordering::Relaxed)
    }

    /// A request's body in JSON.
    pub fn body(&self) -> String {
        let order = self.next_order();
        format!(
            r#"{{"appId":"{}","to":"{}","mediaTxt":"{TEXT}","playTimes":"2","respUrl":"{RESP_URL}","userData":"{}"}}"#,
            self.app,
            called(order),
            user_data(order),
        )
    }

    /// The call that a request with such a body becomes, as it is to be accepted.
    pub fn order(&self) -> AcceptedCall {
        AcceptedCall {
            event: None,
            call: self.call(),
            queueing: queueing(),
            request: None,
        }
    }

    /// The call that a request with such a body becomes.
    pub fn call(&self) -> NewCall {
        let (order, now) = (self.next_order(), self.clock.wall());
        NewCall {
            notice: None,
            kind: CallKind::Notification,
            sid: CallSid::new(&now, random::bytes()),
            account: self.credentials.sid.clone(),
            app: self.app.clone(),
            accepted_at: now.timestamp(),
            called: called(order),
            number: PhoneNumber::from_stored(number(order), None),
            callee: number(order),
            caller: None,
            prompt: prompt(),
            max_talk: None,
            resp_url: Some(RespUrl::from_stored(RESP_URL.to_owned())),
            user_data: Some(user_data(order)),
            events: None,
        }
    }
}

fn queueing() -> Queueing {
    Queueing {
        route: RouteKey::default(),
        priority: Priority::USUAL,
        pause: SignedDuration::ZERO,
        valid_for: EXPIRES_AFTER,
        patience: None,
    }
}

pub fn prompt() -> Prompt {
    Prompt {
        speech: Some(Speech::plain(TEXT)),
        files: Vec::new(),
        code: None,
        plays: 2,
    }
}

pub fn called(order: u64) -> String {
    format!("138{:08}", order % 100_000_000)
}

/// As the numbering plan of the defaults reads it.
pub fn number(order: u64) -> String {
    format!("86{}", called(order))
}

pub fn user_data(order: u64) -> String {
    format!("order {order:012}")
}
