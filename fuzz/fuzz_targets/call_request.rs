//! Any bytes as the body of a request for a call: every field that the platform knows is read by its rule, up to what asks the database. The first byte says in
//! which format.

#![no_main]

use std::sync::LazyLock;

use clarion::api::dissect;
use clarion::api::wire::BodyFormat;
use clarion::config::Config;
use clarion::domain::account::{Account, AccountLimits, AccountState, Permissions};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

static CONFIG: LazyLock<Config> =
    LazyLock::new(|| Config::from_parts(dissect::SETTINGS, &[]).unwrap());
static ACCOUNT: LazyLock<Account> = LazyLock::new(|| Account {
    sid: "0123456789abcdef0123456789abcdef".parse().unwrap(),
    name: "fuzz".into(),
    auth_token: "fedcba9876543210fedcba9876543210".parse().unwrap(),
    state: AccountState::Active,
    permissions: Permissions::default(),
    limits: AccountLimits::default(),
    balance: None,
    spending_limit: None,
    call_hours: "1-5 0800-2100".parse().ok(),
    display_numbers: Vec::new(),
    allowed_networks: Vec::new(),
    has_do_not_call: false,
    created_at: Timestamp::UNIX_EPOCH,
    updated_at: Timestamp::UNIX_EPOCH,
});

fuzz_target!(|input: &[u8]| {
    let Some((format, body)) = input.split_first() else {
        return;
    };
    let format = match format {
        b'x' => BodyFormat::Xml,
        _ => BodyFormat::Json,
    };
    dissect::call_request(format, body, &ACCOUNT, &CONFIG);
});
