//! `kill -9` with calls in every state, again and again: whatever was accepted ends once, is billed once and reported once, nobody is dialled in
//! two lives of the process, and no leg stays up. A short run here; `make crash` runs hundreds of rounds (`CRASH_ROUNDS`).

pub mod checker;
mod events;
mod money;
mod plans;
mod records;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clarion::domain::account::AccountChange;
use clarion::domain::call_list::CallList;
use clarion::domain::call_record::{CallFilter, CallLife};
use clarion::domain::callback::CallbackState;
use clarion::domain::money::Money;
use clarion::domain::outcome::Outcome;
use clarion::store::{CallbackFilter, Database, Store};
use g711::Codec;
use jiff::{SignedDuration, Timestamp};
use phone::call::MediaConfig;
use phone::signalling::{SignallingConfig, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig, Then};
use supervisor::Supervisor;
use tokio::task::JoinSet;

use self::checker::{History, violations};
use self::events::{ToldEvent, element};
use self::money::spending;
use self::plans::NoticeStory;
pub use self::records::records;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::{SID, call_list, eventually_within, numbering_plan, postgres, tone};

/// Within this time something of what is under way comes to its end.
const DRAIN: Duration = Duration::from_secs(120);
const CLIENTS: usize = 4;
/// The last tone that a callee hears who has confirmed.
const THANKS: f64 = 880.0;
/// Others who are called where nobody answers, in every other call.
const BACKUPS: usize = 2;
/// Lists of the account: notices that share one wait for each other.
const LISTS: u32 = 100;
/// `calls.expire_seconds`.
const EXPIRE: SignedDuration = SignedDuration::from_hours(1);
/// Of the account.
const BALANCE: &str = "1000000";
/// Between the clocks of processes of one machine, and the milliseconds of a database.
const SAME_CLOCK: SignedDuration = SignedDuration::from_millis(10);

fn rounds() -> usize {
    std::env::var("CRASH_ROUNDS").map_or(3, |rounds| {
        rounds.parse().expect("CRASH_ROUNDS is a number")
    })
}

/// The world around Clarion: a telephone, a receiver, and clients.
pub struct World {
    telephone: TestPhone,
    /// callSid and number.
    dialled: Arc<Mutex<Vec<(String, String)>>>,
    /// The same of callees who heard that their confirmation was understood.
    thanked: Arc<Mutex<Vec<(String, String)>>>,
    pub receiver: Receiver,
    pub accepted: Arc<Mutex<Vec<String>>>,
    /// Requests that were made.
    pub requests: Arc<AtomicU32>,
    /// Notices that try their numbers again and were accepted.
    redialling: Arc<AtomicU32>,
    /// callSids of calls that somebody has called off, and whether they were told that it will end.
    pub called_off: Arc<Mutex<BTreeMap<String, bool>>>,
}

impl World {
    pub async fn new() -> Self {
        let here = std::net::Ipv4Addr::LOCALHOST;
        let config = TestPhoneConfig {
            sip: SignallingConfig::new(Transport::Udp, (here, 0).into()),
            media: MediaConfig::new(here.into(), 30_000..=39_999),
            codecs: Codec::ALL.to_vec(),
            credentials: None,
        };
        let (telephone, mut heard) = TestPhone::start(&Supervisor::new(), &config, somebody)
            .await
            .unwrap();
        let dialled = Arc::new(Mutex::new(Vec::new()));
        let thanked = Arc::new(Mutex::new(Vec::new()));
        let (note, note_thanks) = (Arc::clone(&dialled), Arc::clone(&thanked));
        tokio::spawn(async move {
            while let Some(call) = heard.recv().await {
                // `callSid-try@clarion`
                let sid = call.call_id.split('-').next().unwrap().to_owned();
                if tone::is_heard(&tone::of_call(&call), THANKS) {
                    let number = call.number.clone();
                    note_thanks.lock().unwrap().push((sid.clone(), number));
                }
                note.lock().unwrap().push((sid, call.number));
            }
        });
        Self {
            telephone,
            dialled,
            thanked,
            receiver: Receiver::start(vec![ok()]).await,
            accepted: Arc::default(),
            requests: Arc::default(),
            redialling: Arc::default(),
            called_off: Arc::default(),
        }
    }

    /// Gives the account enough for every call, and its lists. Before the first one.
    pub async fn prepare(database: &Database) {
        let store = database.open(&Supervisor::new()).await.unwrap();
        let change = AccountChange {
            balance: Some(Some(BALANCE.parse().unwrap())),
            ..AccountChange::default()
        };
        store
            .change_account(&SID.parse().unwrap(), change)
            .await
            .unwrap();
        for list in lists() {
            store.add_list(list).await.unwrap();
        }
        store.close().await;
    }

    pub fn settings(&self) -> String {
        format!(
            "[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\ntime_limit_seconds = 2\nlease_seconds = 4\n[media]\nbind = \"127.0.0.1\"\n[calls]\nkey_confirm_en = \"\"\nkey_thanks_en = \"\"\n\
             [rates]\ndefault = [{{ prefix = \"*\", unit_seconds = 1, price = \"0.01\", unanswered = \"0.003\" }}]\n\
             [dispatch]\nring_seconds = 1\nlease_seconds = 3\nlead_in_ms = 100\n\
             calls_at_once = 1000\ncalls_per_second = 1000\n[[trunk]]\nname = \"telephone\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\n\
             channels = 600\ncalls_per_second = 1000\nprefixes = [\"\"]\n",
            self.telephone.contact()
        )
    }

    /// Clients that place calls of every kind until the server is gone, which it is at a random moment.
    async fn load_until_killed(&self, mut server: ChildServer, redials: Redials) {
        let mut clients = JoinSet::new();
        let before = self.accepted.lock().unwrap().len();
        for _ in 0..CLIENTS {
            let (client, accepted) = (server.client.clone(), Arc::clone(&self.accepted));
            let (requests, redialling) = (Arc::clone(&self.requests), Arc::clone(&self.redialling));
            let url = self.receiver.url();
            clients.spawn(async move {
                let Ok(mut caller) = Caller::connect(&client).await else {
                    return;
                };
                loop {
                    let number = requests.fetch_add(1, Ordering::Relaxed);
                    let Ok(sid) = caller.place(&fields(number, &url, redials)).await else {
                        return;
                    };
                    accepted.lock().unwrap().push(sid);
                    if redials.concern(number) {
                        redialling.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::time::sleep(Duration::from_millis(15)).await;
                }
            });
        }
        eventually_within(DRAIN, "load", async || {
            let is_redialling = self.redialling.load(Ordering::Relaxed) > 0;
            is_redialling && self.accepted.lock().unwrap().len() > before + CLIENTS
        })
        .await;
        let [random] = clarion::random::bytes::<1>();
        tokio::time::sleep(Duration::from_millis(u64::from(random) * 6)).await;
        server.process.kill().await.unwrap();
        while clients.join_next().await.is_some() {}
    }

    /// Waits until everything has come to its end, and tells the whole history.
    pub async fn history(&self, database: &Database, clocks_apart: SignedDuration) -> History {
        let store = database.open(&Supervisor::new()).await.unwrap();
        // However slow the machine is, as long as it goes on.
        let mut last = (String::new(), Instant::now());
        while let Some(what) = under_way(&*store).await {
            if what != last.0 {
                last = (what, Instant::now());
            }
            assert!(last.1.elapsed() < DRAIN, "still: {}", last.0);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let waited_since = Instant::now();
        while self.telephone.open().0 > 0 {
            let dialogs = || self.telephone.open_dialogs();
            assert!(
                waited_since.elapsed() < DRAIN,
                "legs are up: {:?}",
                dialogs()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let records = records(database).await;
        let lists = lists();
        let mut notices = BTreeMap::new();
        for sid in records.keys() {
            let mut story = story(&*store, sid, &lists, clocks_apart).await;
            if let Some(story) = &mut story {
                story.was_cancelled = self.called_off.lock().unwrap().contains_key(sid);
            }
            notices.extend(story.map(|story| (sid.clone(), story)));
        }
        let willing = willing_after_stop(&*store, &notices).await;
        store.close().await;
        let counted = records::attempts(database).await;
        let told = notices.iter();
        let told = told.map(|(sid, story)| (sid.clone(), story.attempts.len() as u64));
        assert_eq!(
            counted,
            told.collect::<BTreeMap<_, _>>(),
            "the store tells what is there"
        );
        let balance: Money = BALANCE.parse().unwrap();
        let money = spending(database, balance.millionths()).await;
        let (mut callbacks, mut events) = (Vec::new(), Vec::new());
        for received in self.receiver.received() {
            let sid = element(&received.body, "callSid").unwrap().to_owned();
            let webhook_id = received.header("webhook-id").unwrap().to_owned();
            let body = received.body;
            if element(&body, "action") == Some("CallState") {
                events.push(ToldEvent {
                    sid,
                    webhook_id,
                    body,
                });
            } else {
                callbacks.push((sid, webhook_id, body));
            }
        }
        let called_off = self.called_off.lock().unwrap();
        let called_off = called_off.iter().filter(|(_, will_end)| **will_end);
        let called_off = called_off.map(|(sid, _)| sid.clone()).collect();
        let dialled = self.dialled.lock().unwrap();
        let dialled = dialled.iter().map(|(sid, number)| {
            if notices.contains_key(sid) {
                format!("{sid} {number}")
            } else {
                sid.clone()
            }
        });
        History {
            accepted: self.accepted.lock().unwrap().clone(),
            dialled: dialled.collect(),
            notices,
            thanked: self.thanked.lock().unwrap().clone(),
            refused: Vec::new(),
            callbacks,
            events,
            called_off,
            willing,
            money: Some(money),
            records,
            legs_up: self.telephone.open().0,
        }
    }
}

/// A notice that is over, as the store tells it.
async fn story(
    store: &dyn Store,
    sid: &str,
    lists: &[CallList],
    clocks_apart: SignedDuration,
) -> Option<NoticeStory> {
    let sid = sid.parse().unwrap();
    let record = store.call_record(&sid).await.unwrap().unwrap();
    let notice = record.notice.as_deref()?.clone();
    Some(NoticeStory {
        numbers: notice.recipients(lists, &numbering_plan()),
        notice,
        attempts: store.call_history(&sid).await.unwrap().attempts,
        ending: record.ending,
        ended_at: record.ended_at.unwrap(),
        expires_at: record.accepted_at + EXPIRE,
        was_cancelled: false,
        clocks_apart,
    })
}

/// callSid and number of those who wanted no more calls and are not on the list of numbers that get none.
async fn willing_after_stop(
    store: &dyn Store,
    notices: &BTreeMap<String, NoticeStory>,
) -> Vec<(String, String)> {
    let stopped = notices.iter().flat_map(|(sid, story)| {
        let stopped = story
            .attempts
            .iter()
            .filter(|one| one.outcome == Outcome::Stopped);
        stopped.map(move |one| (sid.clone(), one.to.digits().to_owned()))
    });
    let mut stopped: Vec<_> = stopped.collect();
    let digits: Vec<_> = stopped.iter().map(|(_, number)| number.as_str()).collect();
    let account = SID.parse().unwrap();
    let unwilling = store.on_do_not_call(&account, &digits).await.unwrap();
    stopped.retain(|(_, number)| !unwilling.contains(number));
    stopped
}

/// What has not come to its end. A call that ends owes a callback: so calls are looked at first.
async fn under_way(store: &dyn Store) -> Option<String> {
    let filter = CallFilter {
        life: CallLife::Alive,
        limit: 5,
        ..CallFilter::default()
    };
    let calls = store.list_calls(filter).await.unwrap().calls;
    if !calls.is_empty() {
        let (waiting, _) = store.queue_depth().await.unwrap();
        return Some(format!("{waiting} calls wait; the newest: {calls:#?}"));
    }
    let backlog = store.callback_backlog().await.unwrap();
    if backlog.waiting == 0 {
        return None;
    }
    let mut owed = Vec::new();
    for state in [CallbackState::Waiting, CallbackState::Delivering] {
        let filter = CallbackFilter {
            state: Some(state),
            limit: 5,
            ..CallbackFilter::default()
        };
        owed.extend(store.callbacks(filter).await.unwrap().callbacks);
    }
    Some(format!("{backlog:?} {owed:#?}"))
}

/// Some pick up after a moment; machines do in the very moment in which they are called.
fn somebody(number: &str) -> Script {
    let mut script = Script::of_number(number);
    if let Then::Answer { after, .. } = &mut script.then
        && number.ends_with("0001")
    {
        *after = Duration::from_millis(300);
    }
    // When the message has surely begun, and before nobody waits for a key any more.
    script.listens = Duration::from_secs(1);
    script
}

/// Whether some of the notices try their numbers again, after the shortest pause that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redials {
    Some,
    /// Nobody needs to wait for them.
    None,
}

impl Redials {
    /// Whether the request of this number is one that tries its numbers again.
    fn concern(self, number: u32) -> bool {
        self == Self::Some && number.is_multiple_of(8)
    }
}

/// Lists of the account, each of people who are busy, answer and confirm.
fn lists() -> Vec<CallList> {
    let list = |number: u32| {
        let kinds = ["0002", "0001", "0012"];
        let numbers = kinds.map(|kind| format!("136{number:04}{kind}"));
        let numbers: Vec<_> = numbers.iter().map(String::as_str).collect();
        call_list(&list_name(number), &numbers, Timestamp::UNIX_EPOCH)
    };
    (0..LISTS).map(list).collect()
}

fn list_name(number: u32) -> String {
    format!("team{}", number % LISTS)
}

/// The request of this number: a call of one of the kinds that the telephone knows, each to somebody else.
pub fn fields(number: u32, url: &str, redials: Redials) -> String {
    let kind = |place: usize| ["0001", "0002", "0003", "0004", "0005", "0001", "0012"][place % 7];
    let place = number as usize;
    let to = |place| format!("138{:04}{}", number % 10_000, kind(place));
    let backups: Vec<_> = (1..=BACKUPS).map(|more| to(place + more)).collect();
    // Every other one goes on to somebody else where nobody answers, or where nobody confirms.
    let backups = backups.join(";");
    // One who wants no more calls is nobody else's number.
    let stopping = format!("137{:04}0013", number % 10_000);
    let team = list_name(number / 8);
    let keys = ",\"confirmDtmf\":\"1\",\"waitDtmfTime\":\"3\",\"stopDtmf\":\"9\"";
    let notice = match place % 8 {
        0 | 4 => format!(",\"backupTo\":\"{backups}\""),
        2 => format!(",\"backupTo\":\"{stopping};{backups}\"{keys}"),
        6 => format!(",\"backupTo\":\"@{team}\"{keys}"),
        _ => String::new(),
    };
    // Some watch what becomes of it.
    let watch = if place.is_multiple_of(3) {
        format!(",\"callStateUrl\":\"{url}\"")
    } else {
        String::new()
    };
    let (to, notice) = if redials.concern(number) {
        // Nobody answers, and those who have not declined are called once more, in turn.
        let of_kind = |kind| format!("138{:04}{kind}", number % 10_000);
        let (busy, silent, declining) = (of_kind("0002"), of_kind("0003"), of_kind("0004"));
        let again = format!(
            ",\"backupTo\":\"{silent};{declining}\",\"backupAfter\":\"1\",\"redialTimes\":\"1\",\"redialInterval\":\"10\""
        );
        (busy, again)
    } else {
        (to(place), notice)
    };
    format!("\"to\":\"{to}\",\"mediaTxt\":\"hello\",\"respUrl\":\"{url}\"{notice}{watch}")
}

/// Also where the process that dialled it is gone.
async fn every_dialled_call_has_a_leg(database: &Database, history: &History) {
    let store = database.open(&Supervisor::new()).await.unwrap();
    for name in &history.accepted {
        let sid = name.parse().unwrap();
        let record = store.call_record(&sid).await.unwrap().unwrap();
        let story = store.call_history(&sid).await.unwrap();
        let outcomes: Vec<_> = story.attempts.iter().map(|one| one.outcome).collect();
        if history.notices.contains_key(name) {
            let whole = record.outcome.unwrap();
            assert!(outcomes.contains(&whole), "{outcomes:?} {record:?}");
        } else {
            assert_eq!(outcomes, Vec::from_iter(record.outcome), "{record:?}");
        }
        for attempt in &story.attempts {
            let has_leg = story.legs_of(attempt.number).next().is_some();
            assert!(has_leg || attempt.dialled_at.is_none(), "{attempt:?}");
        }
    }
    store.close().await;
}

async fn judge(world: &World, installation: &Installation, lives: usize) {
    let history = world.history(&installation.database, SAME_CLOCK).await;
    let wrong = violations(&history);
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    every_dialled_call_has_a_leg(&installation.database, &history).await;
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for (outcome, _) in history.records.values() {
        *outcomes
            .entry(outcome.as_deref().unwrap_or("none"))
            .or_default() += 1;
    }
    println!(
        "{lives} lives, {} calls accepted, {} dialled, {} thanked for a key, {} callbacks, on {}: {outcomes:?}",
        history.accepted.len(),
        history.dialled.len(),
        history.thanked.len(),
        history.callbacks.len(),
        installation.database
    );
    assert!(
        !history.thanked.is_empty(),
        "somebody has confirmed and heard so"
    );
    let mut notices = history.notices.values();
    assert!(
        notices.any(|story| story.attempts.len() > 1 + BACKUPS),
        "somebody was tried again"
    );
}

/// Not in the last rounds: their pauses pass while the server dies again.
fn redials(round: usize) -> Redials {
    if round == 0 || round + 2 < rounds() {
        Redials::Some
    } else {
        Redials::None
    }
}

async fn die_again_and_again(postgres: Option<String>) {
    let world = World::new().await;
    let installation = Installation::with_settings(postgres, &world.settings()).await;
    World::prepare(&installation.database).await;
    for round in 0..rounds() {
        let server = installation.start().await;
        world.load_until_killed(server, redials(round)).await;
    }
    let last = installation.start().await;
    judge(&world, &installation, rounds() + 1).await;
    drop(last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_however_often_the_server_dies_on_sqlite() {
    die_again_and_again(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_however_often_the_server_dies_on_postgres() {
    die_again_and_again(Some(postgres::empty_database().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_when_one_of_two_nodes_dies() {
    let world = World::new().await;
    let url = postgres::empty_database().await;
    let first = Installation::with_settings(Some(url.clone()), &world.settings()).await;
    World::prepare(&first.database).await;
    let second = first.another_node(&world.settings());
    let surviving = second.start().await;
    for round in 0..rounds() {
        let server = first.start().await;
        world.load_until_killed(server, redials(round)).await;
    }
    judge(&world, &first, rounds() + 1).await;
    drop(surviving);
}
