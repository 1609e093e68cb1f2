//! What a call costs.

use clarion::domain::bill::rating::Charge;
use clarion::domain::outcome::Outcome;
use clarion::domain::request_key::Accepted;
use clarion::store::Database;

use super::{NUMBER, account, funds, limit, now, rate};
use crate::store_contract::order;
use crate::store_contract::with_account;
use crate::support::bills::{call, claim, ended, line_of, money, talk};

contract! {
    the_longest_prefix_counts_and_the_accounts_own_rate_before_the_platforms,
    a_call_costs_what_its_rate_says_with_and_without_a_reservation,
}

async fn the_longest_prefix_counts_and_the_accounts_own_rate_before_the_platforms(
    database: Database,
) {
    let store = with_account(&database).await;
    let fee = async |digits: &str| talk(&*store, digits, 61, now()).await.fee.to_string();
    assert_eq!(fee(NUMBER).await, "0.00", "without a rate");
    let defaults = vec![rate("*", 60, "1", "0"), rate("+86138", 60, "2", "0")];
    store.set_default_rates(defaults.clone()).await.unwrap();
    assert_eq!(fee(NUMBER).await, "4.00");
    assert_eq!(fee("8613900000000").await, "2.00");
    for own in [
        rate("+86", 1, "0.001", "0"),
        rate("+861380", 30, "0.1", "0"),
    ] {
        store.set_rate(&account(), own).await.unwrap();
    }
    assert_eq!(fee(NUMBER).await, "0.30");
    assert_eq!(fee("8613900000000").await, "0.061");
    assert_eq!(fee("14155550100").await, "2.00", "the platform's");
    assert_eq!(store.rates(Some(&account())).await.unwrap().len(), 2);
    assert_eq!(store.rates(None).await.unwrap(), defaults);
    let prefix = "+861380".parse().unwrap();
    assert!(store.remove_rate(&account(), &prefix).await.unwrap());
    assert!(!store.remove_rate(&account(), &prefix).await.unwrap());
    assert_eq!(fee(NUMBER).await, "0.061");
}

async fn a_call_costs_what_its_rate_says_with_and_without_a_reservation(database: Database) {
    let store = with_account(&database).await;
    for rate in [
        rate("*", 60, "0.055", "0"),
        rate("*", 1, "0.000001", "0.01"),
        rate("*", 7, "0", "0.02"),
    ] {
        store.set_rate(&account(), rate.clone()).await.unwrap();
        for limited in [false, true] {
            limit(&*store, limited.then_some("1000"), None).await;
            for (talk, outcome) in [
                (Some(0), Outcome::Talked),
                (Some(1), Outcome::Talked),
                (Some(60), Outcome::Talked),
                (Some(61), Outcome::Interrupted),
                (None, Outcome::Busy),
                (None, Outcome::Expired),
            ] {
                let call = call(NUMBER, now());
                let sid = call.sid.clone();
                if limited {
                    let accepted = store
                        .accept_call_within_limits(order(call), 600)
                        .await
                        .unwrap();
                    assert_eq!(accepted, Ok(Accepted::New));
                } else {
                    store.accept_call(order(call)).await.unwrap();
                }
                let claimed = claim(&*store, 1).await.remove(0);
                let end = ended(&claimed, talk, outcome, now());
                assert!(store.end_call(end).await.unwrap());
                let line = line_of(&*store, sid.as_str(), now()).await;
                let seconds = u32::try_from(talk.unwrap_or(0)).unwrap();
                let wanted = rate.charge(talk.is_some(), seconds, outcome);
                let charge = Charge {
                    units: line.units,
                    rate: line.rate,
                    fee: line.fee,
                };
                assert_eq!(charge, wanted, "{rate:?} {talk:?} {outcome:?} {limited}");
            }
        }
    }
    assert_eq!(funds(&*store).await.reserved, money("0"));
}
