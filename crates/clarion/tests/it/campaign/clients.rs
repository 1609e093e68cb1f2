//! Clients that repeat a request, with its `requestId`, until they know what became of it: at another node if need be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clarion::client::Client;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::lives::{Redials, World, fields};
use crate::support::child::Caller;
use crate::support::{APP, PATIENCE, eventually, status_code};

const CLIENTS: u64 = 3;
/// One call in so many is called off.
const CALLED_OFF: u32 = 12;
/// Between the answer to one request and the next.
const PAUSE: Duration = Duration::from_millis(40);
/// Somebody who has heard nothing for this long asks elsewhere.
const GIVES_UP_AFTER: Duration = Duration::from_secs(3);
/// Refusals that pass: the database is away, or it is not known what it did, or its disk is full, or the same request is being answered elsewhere.
const PASSING: [&str; 4] = ["111000", "111111", "190013", "190014"];

/// Where each node can be reached, if it lives.
pub type Doors = Arc<Mutex<Vec<Option<Client>>>>;

pub struct Clients {
    accepted: Arc<Mutex<Vec<String>>>,
    enough: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

struct Requester {
    name: u64,
    doors: Doors,
    url: String,
    rng: StdRng,
    caller: Option<Caller>,
    requests: Arc<AtomicU32>,
    called_off: Arc<Mutex<BTreeMap<String, bool>>>,
}

impl Clients {
    pub fn start(world: &World, doors: &Doors, seed: u64) -> Self {
        let enough = watch::Sender::new(false);
        let mut clients = JoinSet::new();
        for name in 0..CLIENTS {
            let mut requester = Requester {
                name,
                doors: Arc::clone(doors),
                url: world.receiver.url(),
                rng: StdRng::seed_from_u64(seed ^ (name + 1)),
                caller: None,
                requests: Arc::clone(&world.requests),
                called_off: Arc::clone(&world.called_off),
            };
            let (accepted, enough) = (Arc::clone(&world.accepted), enough.subscribe());
            clients.spawn(async move {
                while !*enough.borrow() {
                    let sid = requester.place().await;
                    accepted.lock().unwrap().push(sid.clone());
                    tokio::time::sleep(PAUSE).await;
                    if requester.rng.random_ratio(1, CALLED_OFF) {
                        requester.call_off(&sid).await;
                    }
                }
            });
        }
        Self {
            accepted: Arc::clone(&world.accepted),
            enough,
            tasks: clients,
        }
    }

    /// Waits until calls are being accepted.
    pub async fn some_more(&self) {
        let accepted = || self.accepted.lock().unwrap().len();
        let before = accepted();
        eventually("calls are accepted", async || accepted() > before + 5).await;
    }

    /// Every request is answered in the end.
    pub async fn finish(mut self) {
        self.enough.send_replace(true);
        let answered = async {
            while let Some(client) = self.tasks.join_next().await {
                client.unwrap();
            }
        };
        let answered = tokio::time::timeout(PATIENCE, answered).await;
        answered.expect("every request is answered");
    }
}

impl Requester {
    /// One request. Whoever hears nothing asks again, until there is a callSid.
    async fn place(&mut self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", self.name);
        let fields = format!(
            "{},\"requestId\":\"{id}\"",
            fields(number, &self.url, Redials::Some)
        );
        loop {
            let asked = tokio::time::timeout(GIVES_UP_AFTER, self.ask(&fields)).await;
            match asked {
                Ok(Ok(Ok(sid))) => return sid,
                Ok(Ok(Err(code))) => assert!(PASSING.contains(&code.as_str()), "refused: {code}"),
                Ok(Err(_)) | Err(_) => self.caller = None,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks until it is known whether the call will end or was over.
    async fn call_off(&mut self, sid: &str) {
        let called_off = Arc::clone(&self.called_off);
        let note = |will_end| {
            let mut called_off = called_off.lock().unwrap();
            called_off.insert(sid.to_owned(), will_end);
        };
        note(false);
        let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{sid}\"}}");
        let will_end = loop {
            let asked = async {
                self.caller()
                    .await?
                    .operation("Calls/CallCancel", &body)
                    .await
            };
            match tokio::time::timeout(GIVES_UP_AFTER, asked).await {
                Ok(Ok(answer)) => match status_code(&answer) {
                    "000000" => break true,
                    "190011" => break false,
                    code => assert!(PASSING.contains(&code), "refused: {answer}"),
                },
                Ok(Err(_)) | Err(_) => self.caller = None,
            }
            tokio::time::sleep(PAUSE).await;
        };
        note(will_end);
    }

    async fn ask(&mut self, fields: &str) -> anyhow::Result<Result<String, String>> {
        self.caller().await?.try_to_place(fields).await
    }

    async fn caller(&mut self) -> anyhow::Result<&mut Caller> {
        if self.caller.is_none() {
            let door = self.door().ok_or(anyhow::anyhow!("no node lives"))?;
            self.caller = Some(Caller::connect(&door).await?);
        }
        Ok(self.caller.as_mut().expect("it is connected"))
    }

    fn door(&mut self) -> Option<Client> {
        let doors = self.doors.lock().unwrap();
        let open: Vec<_> = doors.iter().flatten().collect();
        let chosen = self.rng.random_range(0..open.len().max(1));
        open.get(chosen).map(|door| (*door).clone())
    }
}
