//! Ten times what the trunk can carry: what was accepted ends properly and in order, and the calls that are under way sound as they do on any day.
//!
//! A short run here; `make soak` offers it for a minute (`OVERLOAD_SECONDS`).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use clarion::domain::account::Account;
use clarion::store::Store;
use phone::test_phone::Script;
use supervisor::Supervisor;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::calls::stage::{self, Customer, field};
use crate::lives::checker::{History, violations};
use crate::lives::records;
use crate::support::child::{ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{all_is_over, clock, eventually_within};

/// What the trunk carries: calls at once, and as many a second, because each lasts about that long.
const LIMIT: u32 = 10;
const TIMES: u32 = 10;
const CUSTOMERS: u8 = 2;

/// How long `make soak` wants it to last.
fn wanted_seconds() -> Option<u32> {
    let wanted = std::env::var("OVERLOAD_SECONDS").ok()?;
    Some(wanted.parse().expect("OVERLOAD_SECONDS is a number"))
}

fn seconds() -> u32 {
    wanted_seconds().unwrap_or(4)
}

/// Calls wait for no longer than this: the queue of an overload that lasts is longer than anybody's patience.
fn patience() -> u32 {
    2 * seconds()
}

struct World {
    telephone: Telephone,
    receiver: Receiver,
    store: std::sync::Arc<dyn Store>,
    server: ChildServer,
    installation: Installation,
    /// Of each customer the numbers that were called, in the order of their acceptance, and the callSids.
    accepted: Vec<Vec<(String, String)>>,
}

/// How many packets were sent, and how many of them left late.
#[derive(Debug, Clone, Copy, Default)]
struct Packets {
    sent: f64,
    late: f64,
}

impl Packets {
    fn share(self, before: Self) -> f64 {
        (self.late - before.late) / (self.sent - before.sent).max(1.0)
    }
}

impl World {
    async fn new() -> Self {
        let telephone = Telephone::that(Script::answer()).await;
        let limit = format!("channels = {LIMIT}\ncalls_per_second = {LIMIT}");
        let more = format!(
            "[calls]\nexpire_seconds = {}\n[dispatch]\nlead_in_ms = 200\ncalls_at_once = 1000\ncalls_per_second = 1000",
            patience()
        );
        let settings = stage::settings(&more, &telephone.trunk("narrow", &limit));
        let installation = Installation::with_settings(None, &settings).await;
        let store = installation
            .database
            .open(&Supervisor::new())
            .await
            .unwrap();
        let many = |account: &mut Account| {
            account.limits.requests_per_second = Some(1_000_000);
            account.limits.requests_at_once = Some(1_000_000);
        };
        for digit in 1..=CUSTOMERS {
            stage::register(&*store, digit, many).await;
        }
        Self {
            telephone,
            receiver: Receiver::start(vec![ok()]).await,
            store,
            server: installation.start().await,
            installation,
            accepted: vec![Vec::new(); usize::from(CUSTOMERS)],
        }
    }

    /// So many calls a second, shared out among the customers, whether or not the ones before are dialled; then waits for all to end.
    async fn offer(&mut self, rate: u32, seconds: u32) {
        let now = clock().wall();
        let each = rate / u32::from(CUSTOMERS);
        let begun = Instant::now();
        let mut placing = JoinSet::new();
        for digit in 1..=CUSTOMERS {
            let sid = format!("{digit:032}");
            let url = self.receiver.url();
            let mut customer = Customer::connect(&self.server.client, &sid, &sid, &now, url).await;
            let first = u32::try_from(self.accepted[usize::from(digit - 1)].len()).unwrap();
            placing.spawn(async move {
                let mut placed = Vec::new();
                for index in 0..each * seconds {
                    let due = Duration::from_secs_f64(f64::from(index) / f64::from(each));
                    tokio::time::sleep_until(begun + due).await;
                    let number = format!("13{digit}{:08}", first + index);
                    let sid = customer.call(&number, "\"mediaTxt\":\"hello\"").await;
                    placed.push((format!("+86{number}"), sid.to_string()));
                }
                (digit, placed)
            });
        }
        while let Some(placed) = placing.join_next().await {
            let (digit, placed) = placed.unwrap();
            self.accepted[usize::from(digit - 1)].extend(placed);
        }
        self.nothing_is_left().await;
    }

    async fn nothing_is_left(&self) {
        let limit = Duration::from_secs(u64::from(patience()) * 2 + 60);
        eventually_within(limit, "everything has ended and is reported", async || {
            all_is_over(&*self.store).await
        })
        .await;
    }

    async fn packets(&self) -> Packets {
        let mut connection = self.server.client.connect().await.unwrap();
        let (status, text) = connection.get("/metrics").await.unwrap();
        assert_eq!(status, 200, "{text}");
        let value = |name: &str| {
            let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
            text.lines().find_map(number).unwrap_or(0.0)
        };
        Packets {
            sent: value("clarion_media_packets_total"),
            late: value("clarion_media_packets_late_total"),
        }
    }

    async fn history(&self) -> History {
        let sid = |call_id: &str| call_id.split('-').next().unwrap().to_owned();
        let callbacks = self.receiver.received().into_iter().map(|received| {
            let id = received.header("webhook-id").unwrap().to_owned();
            (
                field(&received.body, "callSid").to_owned(),
                id,
                received.body,
            )
        });
        let accepted = self.accepted.iter().flatten();
        History {
            accepted: accepted.map(|(_, sid)| sid.clone()).collect(),
            dialled: self
                .telephone
                .heard()
                .iter()
                .map(|call| sid(&call.call_id))
                .collect(),
            callbacks: callbacks.collect(),
            records: records(&self.installation.database).await,
            legs_up: self.telephone.open().0,
            ..History::default()
        }
    }

    /// How many calls a second were dialled from one place in their sequence on, and the longest pause between two.
    fn pace(&self, from: usize) -> (f64, Duration) {
        let times: Vec<_> = self.telephone.dialled()[from..]
            .iter()
            .map(|call| call.at)
            .collect();
        let time = times[times.len() - 1] - times[0];
        let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
        let count = u32::try_from(times.len() - 1).unwrap();
        (
            f64::from(count) / time.as_secs_f64(),
            pauses.max().unwrap_or_default(),
        )
    }

    /// By how many calls of the same customer that were accepted later a call was overtaken, at most.
    fn worst_overtaking(&self) -> usize {
        let mut worst = 0;
        for accepted in &self.accepted {
            let places = accepted.iter().enumerate();
            let places: HashMap<&str, usize> = places
                .map(|(place, (number, _))| (number.as_str(), place))
                .collect();
            let dialled = self.telephone.dialled();
            let order: Vec<usize> = dialled
                .iter()
                .filter_map(|call| places.get(call.number.as_str()).copied())
                .collect();
            for (at, place) in order.iter().enumerate() {
                let later = order[..at].iter().filter(|before| *before > place).count();
                worst = worst.max(later);
            }
        }
        worst
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_limit_spoils_nothing_that_was_accepted() {
    let mut world = World::new().await;
    let start = world.packets().await;
    world.offer(LIMIT, seconds()).await;
    let before = world.packets().await;
    let first = world.telephone.dialled().len();
    world.offer(LIMIT * TIMES, seconds()).await;
    let overloaded = world.packets().await;
    let (pace, pause) = world.pace(first);
    world.offer(LIMIT, seconds()).await;
    let after = world.packets().await;

    eventually_within(Duration::from_secs(40), "no leg is up", async || {
        world.telephone.open().0 == 0
    })
    .await;
    let history = world.history().await;
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for (outcome, _) in history.records.values() {
        *outcomes
            .entry(outcome.as_deref().unwrap_or("none"))
            .or_default() += 1;
    }
    // The machine's own unrest shows in the runs on either side too.
    let normal = before.share(start).max(after.share(overloaded));
    let then = overloaded.share(before);
    println!(
        "{} s at {TIMES} times the limit: {outcomes:?}, {pace:.1} dialled a second with a pause of {pause:?} at most, {} at once at most, overtaken by {} at most; \
         late packets {:.2} % ({:.2} % at the limit)",
        seconds(),
        world.telephone.peak_concurrency(),
        world.worst_overtaking(),
        then * 100.0,
        normal * 100.0
    );
    assert_eq!(violations(&history), Vec::<String>::new());
    let known = ["talked", "expired"];
    assert!(
        outcomes.keys().all(|word| known.contains(word)),
        "{outcomes:?}"
    );
    assert!(outcomes["expired"] > 0, "the trunk was overloaded");
    assert!(world.telephone.peak_concurrency() <= LIMIT as usize);
    let overtaken = world.worst_overtaking();
    // Those that are claimed together start together.
    assert!(overtaken <= LIMIT as usize, "overtaken by {overtaken}");
    // Speeds say something on a machine that does nothing else: `make soak` has one.
    let is_soak = wanted_seconds().is_some();
    let is_quick = pace > f64::from(LIMIT) / 2.0;
    assert!(is_quick || !is_soak, "{pace:.1} calls a second");
    assert!(
        then <= 2.0 * normal + 0.03 || !is_soak,
        "{:.2} % of the packets were late, {:.2} % at the limit",
        then * 100.0,
        normal * 100.0
    );
    world.store.close().await;
}
