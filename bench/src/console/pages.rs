//! Every page of the console, asked for again and again.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use jiff::SignedDuration;

use crate::accepts::customer::BenchCustomer;
use crate::accepts::history::PastCall;
use crate::console_browser::ConsoleBrowser;
use crate::latency::{Latencies, Spread};

/// What the list of callbacks says to an address that it cannot read.
const MISUNDERSTOOD: &str = "Something in the address of this page";

/// What one page took.
#[derive(Debug)]
pub struct PageTimes {
    pub name: &'static str,
    pub times: Spread,
    pub bytes: usize,
}

/// Every page with an address of its own, in the order of the menu.
fn pages(customer: &BenchCustomer, past: &PastCall, newest: &str) -> Vec<(&'static str, String)> {
    let (account, app) = (&customer.credentials.sid, &customer.app);
    let (sid, number) = (&past.sid, &past.called);
    let long_ago = customer.clock.wall() - SignedDuration::from_hours(24 * 90);
    let to = long_ago.strftime("%Y-%m-%dT%H:%M");
    let day = (long_ago.date()).to_string();
    vec![
        ("Now", "/".to_owned()),
        ("Calls", "/calls".to_owned()),
        ("Calls, alive", "/calls?which=alive".to_owned()),
        ("Calls of an account", format!("/calls?account={account}")),
        ("Calls of an application", format!("/calls?app={app}")),
        ("Calls to a number", format!("/calls?number={number}")),
        (
            "Calls to a number that has none",
            "/calls?number=13999999999".to_owned(),
        ),
        ("Calls until three months ago", format!("/calls?to={to}")),
        (
            "Calls that failed at the trunk",
            "/calls?which=trunk-failure".to_owned(),
        ),
        (
            "Calls over a trunk that is not there",
            "/calls?trunk=nowhere".to_owned(),
        ),
        (
            "Calls of an account with user data that none has",
            format!("/calls?account={account}&user_data=nothing"),
        ),
        (
            "Calls, a page from the middle",
            format!("/calls?before={sid}"),
        ),
        ("One call, old", format!("/calls/{sid}")),
        ("One call, new", format!("/calls/{newest}")),
        ("Callbacks", "/callbacks".to_owned()),
        ("Callbacks given up", "/callbacks?state=given-up".to_owned()),
        (
            "Callbacks of a receiver",
            "/callbacks?host=receiver-3.example".to_owned(),
        ),
        (
            "Callbacks of a receiver that has none",
            "/callbacks?host=nowhere.example:443".to_owned(),
        ),
        (
            "Callbacks of an application that has none",
            format!("/callbacks?app={}", "f".repeat(32)),
        ),
        (
            "Callbacks superseded",
            "/callbacks?state=superseded".to_owned(),
        ),
        ("Callbacks waiting", "/callbacks?state=waiting".to_owned()),
        (
            "Callbacks being delivered",
            "/callbacks?state=delivering".to_owned(),
        ),
        ("Accounts", "/accounts".to_owned()),
        (
            "Accounts, found by name",
            "/accounts?find=Customer+7".to_owned(),
        ),
        ("One account", format!("/accounts/{account}")),
        ("One application", format!("/apps/{app}")),
        ("Lists", format!("/accounts/{account}/lists")),
        ("Do not call", format!("/accounts/{account}/do-not-call")),
        ("Audio files", "/audio".to_owned()),
        ("Audio files of an application", format!("/audio?app={app}")),
        ("Trunks", "/trunks".to_owned()),
        ("Dialling", "/dialling".to_owned()),
        ("Intakes", "/intakes".to_owned()),
        ("Bills", "/bills".to_owned()),
        ("One day's bills", format!("/bills/{day}")),
        ("Try it", "/try".to_owned()),
        ("Health", "/health".to_owned()),
        ("Settings", "/settings".to_owned()),
        ("Audit", "/audit".to_owned()),
    ]
}

/// In rounds over all pages, so that what disturbs the machine meets all of them.
pub async fn measure(
    browser: &mut ConsoleBrowser,
    customer: &BenchCustomer,
    past: &PastCall,
    rounds: u32,
) -> anyhow::Result<Vec<PageTimes>> {
    let first = browser.page("/calls").await?;
    let newest = first.text.split("href=\"/calls/").nth(1);
    let newest = newest.and_then(|rest| rest.split('"').next());
    let newest = newest.context("the list of calls is empty")?.to_owned();
    let pages = pages(customer, past, &newest);
    let mut times: HashMap<&str, (Latencies, usize)> = HashMap::new();
    for _ in 0..rounds {
        for (name, path) in &pages {
            let seen = browser.page(path).await?;
            // A page that only says what is wrong is another one.
            let is_refused =
                seen.text.contains("role=\"alert\"") || seen.text.contains(MISUNDERSTOOD);
            ensure!(!is_refused, "{path} is not understood");
            let (latencies, bytes) = times.entry(name).or_default();
            latencies.add(seen.time);
            *bytes = seen.bytes;
        }
    }
    let measured = pages.iter().filter_map(|(name, _)| {
        let (latencies, bytes) = times.remove(name)?;
        Some(PageTimes {
            name,
            times: latencies.spread(),
            bytes,
        })
    });
    Ok(measured.collect())
}
