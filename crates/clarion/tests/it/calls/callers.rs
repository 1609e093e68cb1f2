//! The number that the callee is shown: what stood in the INVITE, in From and in P-Asserted-Identity.

use clarion::domain::account::Permissions;
use clarion::domain::number_pattern::NumberPattern;

use super::stage::{Customer, Stage};
use crate::support::exchange::{Exchange, find_header, header};

const DEFAULT: &str = "+864008888888";

/// The user of an address such as `"Clarion" <sip:+8613800000000@host>;tag=1`.
fn user(address: &str) -> &str {
    let user = address.split("sip:").nth(1).unwrap();
    user.split('@').next().unwrap()
}

async fn hall(exchange: &Exchange, more: &str) -> Stage {
    let trunk = format!(
        "[[trunk]]\nname = \"exchange\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"\"]\n{more}\n",
        exchange.address
    );
    Stage::on(&trunk, "[numbers]\ndefault_caller = \"4008888888\"").await
}

/// What is shown to the callee when this customer wishes to show that number.
async fn shown(
    exchange: &Exchange,
    stage: &Stage,
    customer: &mut Customer,
    requested: &str,
    calls: usize,
) -> (String, Option<String>) {
    let extra = format!("\"mediaTxt\":\"hello\",\"displayNum\":\"{requested}\"");
    let sid = customer.call("13800000000", &extra).await;
    let invites = exchange.has_seen(calls).await;
    let invite = &invites[calls - 1];
    assert!(header(invite, "Call-ID").starts_with(sid.as_str()));
    // One callee is called once at a time: the next call waits for the end of this one.
    stage.report_of(&sid).await;
    let asserted = find_header(invite, "P-Asserted-Identity");
    (
        user(header(invite, "From")).to_owned(),
        asserted.map(|asserted| user(asserted).to_owned()),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_shown_with_permission_and_within_the_rules_else_the_default() {
    let exchange = Exchange::that_refuses_with("486 Busy Here").await;
    let stage = hall(&exchange, "asserted_identity = true").await;
    let rules: Vec<NumberPattern> =
        vec!["+864001234567".parse().unwrap(), "+86138*".parse().unwrap()];
    let mut permitted = Customer::another(&stage, 1, |account| {
        account.display_numbers.clone_from(&rules);
        account.permissions = Permissions {
            custom_display_number: true,
            ..Permissions::default()
        };
    })
    .await;
    let mut others = Customer::another(&stage, 2, |account| account.display_numbers = rules).await;
    let mut calls = 0;
    for (requested, expected) in [
        ("4001234567", "+864001234567"),
        ("+8613811111111", "+8613811111111"),
        ("13811111111", "+8613811111111"),
        // Outside the rules, not a number, equal to the callee in whatever way it is written, and none at all.
        ("4007654321", DEFAULT),
        ("nonsense", DEFAULT),
        ("13800000000", DEFAULT),
        ("008613800000000", DEFAULT),
        ("", DEFAULT),
    ] {
        calls += 1;
        let shown = shown(&exchange, &stage, &mut permitted, requested, calls).await;
        assert_eq!(
            shown,
            (expected.to_owned(), Some(expected.to_owned())),
            "{requested}"
        );
    }
    // Without the permission nothing but the default is shown, and that is no error.
    for requested in ["4001234567", ""] {
        calls += 1;
        let shown = shown(&exchange, &stage, &mut others, requested, calls).await;
        assert_eq!(
            shown,
            (DEFAULT.to_owned(), Some(DEFAULT.to_owned())),
            "{requested}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_wants_its_customer_in_from_is_told_the_number_in_the_other_place() {
    let exchange = Exchange::that_refuses_with("486 Busy Here").await;
    let stage = hall(
        &exchange,
        "asserted_identity = true\nfrom_user = \"customer7\"\ncaller_rewrite = [{ from = \"86\", to = \"0\" }]",
    )
    .await;
    let mut customer = Customer::first(&stage).await;
    let shown = shown(&exchange, &stage, &mut customer, "", 1).await;
    assert_eq!(
        shown,
        ("customer7".to_owned(), Some("04008888888".to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_told_the_number_in_from_alone_unless_it_wants_more() {
    let exchange = Exchange::that_refuses_with("486 Busy Here").await;
    let stage = hall(&exchange, "").await;
    let mut customer = Customer::first(&stage).await;
    let shown = shown(&exchange, &stage, &mut customer, "", 1).await;
    assert_eq!(shown, (DEFAULT.to_owned(), None));
}
