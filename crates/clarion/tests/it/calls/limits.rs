//! How many calls are under way, and whose turn it is: trunks, accounts and callees are never given more than they are to have, and what is
//! over a limit waits in order.

use std::time::{Duration, Instant};

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;

use super::stage::{Customer, Stage, field, on_postgres};
use crate::support::telephone::Telephone;
use crate::support::{eventually, eventually_within};

const MOBILE: &str = "13900000000";
const HELLO: &str = "\"mediaTxt\":\"hello\"";
const DRAIN: Duration = Duration::from_secs(180);

async fn place(customer: &mut Customer, from: u32, count: u32) -> Vec<CallSid> {
    let mut placed = Vec::new();
    for number in from..from + count {
        placed.push(customer.call(&format!("139{number:08}"), HELLO).await);
    }
    placed
}

async fn reported(stage: &Stage, count: usize) {
    eventually_within(DRAIN, "every call is reported", async || {
        stage.receiver.received().len() >= count
    })
    .await;
    for received in stage.receiver.received() {
        assert_eq!(field(&received.body, "state"), "0", "{}", received.body);
    }
}

async fn fill_three_channels(database: &str) {
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(400))).await;
    let trunk = telephone.trunk("narrow", "channels = 3\ncalls_per_second = 100");
    let stage = Stage::on(&trunk, database).await;
    let mut customer = Customer::first(&stage).await;
    place(&mut customer, 0, 15).await;
    reported(&stage, 15).await;
    assert_eq!(telephone.peak_concurrency(), 3, "all channels, and no more");
    assert_eq!(telephone.dialled().len(), 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_never_carries_more_calls_than_it_has_channels() {
    fill_three_channels("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_never_carries_more_calls_than_it_has_channels_on_postgres() {
    fill_three_channels(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_given_no_more_calls_a_second_than_it_takes() {
    const RATE: u32 = 4;
    let telephone = Telephone::that(Script::hang_up_after(Duration::ZERO)).await;
    let trunk = telephone.trunk(
        "slow",
        &format!("channels = 100\ncalls_per_second = {RATE}"),
    );
    let stage = Stage::on(&trunk, "").await;
    let mut customer = Customer::first(&stage).await;
    place(&mut customer, 0, 20).await;
    reported(&stage, 20).await;
    let times: Vec<Instant> = telephone.dialled().iter().map(|call| call.at).collect();
    // A second's worth may be saved up while nothing is to do; from then on it is so many a second, however it is looked at.
    for (place, from) in times.iter().enumerate() {
        for (count, until) in times[place..].iter().enumerate().skip(1) {
            // And another second for INVITEs that are seen late on a busy machine, and then together.
            let allowed = f64::from(RATE) * (2.1 + (*until - *from).as_secs_f64());
            assert!(
                (count + 1) as f64 <= allowed + 1.0,
                "{} calls within {:?}",
                count + 1,
                *until - *from
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_has_no_more_calls_under_way_than_it_may() {
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(400))).await;
    let stage = Stage::on(&telephone.wide_trunk("wide", ""), "").await;
    let mut bounded = Customer::another(&stage, 1, |account| {
        account.limits.calls_at_once = Some(2);
    })
    .await;
    place(&mut bounded, 0, 8).await;
    reported(&stage, 8).await;
    assert_eq!(telephone.peak_concurrency(), 2);
}

async fn call_one_callee_again_and_again(database: &str) {
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(200))).await;
    let stage = Stage::on(&telephone.wide_trunk("wide", ""), database).await;
    let mut customer = Customer::first(&stage).await;
    let mut placed = Vec::new();
    for _ in 0..4 {
        placed.push(customer.call("13900000000", HELLO).await);
    }
    reported(&stage, 4).await;
    assert_eq!(telephone.peak_concurrency(), 1);
    let mut heard = telephone.heard();
    heard.sort_by_key(|call| call.invited);
    let order: Vec<&str> = heard.iter().map(|call| &call.call_id[..32]).collect();
    let wanted: Vec<&str> = placed.iter().map(CallSid::as_str).collect();
    assert_eq!(order, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_callee_has_one_call_at_a_time_and_all_of_them_in_order() {
    call_one_callee_again_and_again("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_callee_has_one_call_at_a_time_and_all_of_them_in_order_on_postgres() {
    call_one_callee_again_and_again(&on_postgres().await).await;
}

async fn call_one_mobile_by_thirteen_extensions(database: &str) {
    let telephone = Telephone::start(|number| match number {
        mobile if mobile.ends_with(MOBILE) => Script::never_answer(),
        _ => Script::answer(),
    })
    .await;
    let stage = Stage::on(&telephone.wide_trunk("wide", ""), database).await;
    let mut customer = Customer::first(&stage).await;
    for extension in 0..13 {
        let number = format!("{MOBILE}-{extension}");
        customer.call(&number, HELLO).await;
    }
    // Whatever waits before it and may be dialled is dialled before it.
    customer.call("13900000001", HELLO).await;
    reported(&stage, 1).await;
    let dialled = telephone.dialled();
    let mobile = dialled.iter().filter(|call| call.number.ends_with(MOBILE));
    assert_eq!(mobile.count(), 1, "{dialled:?}");
    assert_eq!(dialled.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_mobile_by_thirteen_extensions_is_one_call_at_a_time() {
    call_one_mobile_by_thirteen_extensions("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_mobile_by_thirteen_extensions_is_one_call_at_a_time_on_postgres() {
    call_one_mobile_by_thirteen_extensions(&on_postgres().await).await;
}

async fn place_one_beside_a_hundred(database: &str) {
    const CHANNELS: usize = 2;
    // Long beside the time that a request takes on a busy machine: the channels are not given away anew many times meanwhile.
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_secs(1))).await;
    let trunk = telephone.trunk(
        "narrow",
        &format!("channels = {CHANNELS}\ncalls_per_second = 100"),
    );
    let stage = Stage::on(&trunk, database).await;
    let mut busy = Customer::first(&stage).await;
    let mut other = Customer::another(&stage, 1, |_| {}).await;
    let many = place(&mut busy, 0, 100).await;
    let before = telephone.dialled().len();
    let single = other.call("13800000000", HELLO).await;
    stage.report_of(&single).await;
    let dialled = telephone.dialled();
    let place = dialled
        .iter()
        .position(|call| call.number == "+8613800000000")
        .unwrap();
    assert!(before < 90, "the others are still waiting: {before}");
    // What was under way or claimed already, and one turn of the other account.
    let ahead = place - before;
    assert!(ahead <= 2 * CHANNELS + 1, "{ahead} calls went before it");
    for sid in many {
        stage.server.store.cancel_call(&sid).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_call_does_not_wait_behind_the_hundred_of_another_account() {
    place_one_beside_a_hundred("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_call_does_not_wait_behind_the_hundred_of_another_account_on_postgres() {
    place_one_beside_a_hundred(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_for_too_long_is_given_up_and_never_dialled() {
    let telephone = Telephone::that(Script::never_answer()).await;
    let trunk = telephone.trunk("narrow", "channels = 1\ncalls_per_second = 10");
    let stage = Stage::on(&trunk, "[calls]\nexpire_seconds = 2").await;
    let ringing = stage.call("13900000000", HELLO).await;
    stage.is_in(&ringing, CallState::Ringing).await;
    let waiting = stage.call("13900000001", HELLO).await;
    let report = stage.report_of(&waiting).await;
    assert_eq!(
        (field(&report, "state"), field(&report, "duration")),
        ("2", "0")
    );
    let record = stage.record(&waiting).await;
    assert_eq!(
        (record.outcome, record.tries, record.dialled_at),
        (Some(Outcome::Expired), 0, None)
    );
    let waited = record.ended_at.unwrap().duration_since(record.accepted_at);
    assert!(waited.as_secs() >= 2, "{waited:?}");
    // Waiting in the queue is what expires; a call that rings goes on.
    assert_eq!(stage.record(&ringing).await.state, CallState::Ringing);
    assert_eq!(telephone.dialled().len(), 1);
    stage.server.store.cancel_call(&ringing).await.unwrap();
    eventually("it is hung up", async || telephone.heard().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_channel_is_dialled_in_the_order_of_its_acceptance() {
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(100))).await;
    let trunk = telephone.trunk("single", "channels = 1\ncalls_per_second = 100");
    let stage = Stage::on(&trunk, "").await;
    let mut customer = Customer::first(&stage).await;
    // Calls that wait for their prompt are overtaken: here it is ready when the second one comes.
    let mut placed = place(&mut customer, 0, 1).await;
    reported(&stage, 1).await;
    placed.extend(place(&mut customer, 1, 29).await);
    reported(&stage, placed.len()).await;
    let mut heard = telephone.heard();
    heard.sort_by_key(|call| call.invited);
    let order: Vec<usize> = heard
        .iter()
        .map(|call| {
            placed
                .iter()
                .position(|sid| call.call_id.starts_with(sid.as_str()))
                .unwrap()
        })
        .collect();
    assert!(order.is_sorted(), "{order:?}");
}
