//! The application that asks for calls: at a steady pace, whether or not the ones before are done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clarion::client::{ApiCredentials, Connection, Signature};
use clarion::domain::account::AppId;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::ledger::Ledger;
use crate::accepts::customer::BenchCustomer;
use crate::server::BenchServer;

/// Every number is called once in a run, so that none waits for another.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
/// Where the text has a place for a number (`{n}`), so many jobs have the same.
const SAME_TEXT: u64 = 10;

#[derive(Debug)]
pub struct LoadApplication {
    asker: Arc<Asker>,
    asked: AtomicBool,
}

#[derive(Debug)]
struct Asker {
    connections: Vec<Mutex<Connection>>,
    credentials: ApiCredentials,
    signature: Signature,
    app: AppId,
    ledger: Arc<Ledger>,
    text: String,
    url: String,
}

impl LoadApplication {
    pub async fn connect(
        servers: &[BenchServer],
        customer: &BenchCustomer,
        ledger: &Arc<Ledger>,
        text: &str,
        url: &str,
        connections: usize,
    ) -> anyhow::Result<Self> {
        let mut open = Vec::new();
        for server in servers.iter().cycle().take(connections.max(servers.len())) {
            open.push(Mutex::new(server.client.connect().await?));
        }
        let asker = Asker {
            connections: open,
            credentials: customer.credentials.clone(),
            signature: customer.credentials.sign(&customer.clock.wall()),
            app: customer.app.clone(),
            ledger: Arc::clone(ledger),
            text: text.to_owned(),
            url: url.to_owned(),
        };
        Ok(Self {
            asker: Arc::new(asker),
            asked: AtomicBool::new(false),
        })
    }

    pub async fn ask(&self) -> anyhow::Result<()> {
        self.asker.ask(0, Instant::now()).await
    }

    /// So many a second; how long it took until the last was accepted.
    pub async fn ask_at(&self, rate: u32, seconds: u32) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let mut asking = JoinSet::new();
        for index in 0..rate * seconds {
            let due = begun + Duration::from_secs_f64(f64::from(index) / f64::from(rate));
            tokio::time::sleep_until(due.into()).await;
            let asker = Arc::clone(&self.asker);
            asking.spawn(async move { asker.ask(index as usize, Instant::now()).await });
        }
        let mut result = Ok(());
        while let Some(asked) = asking.join_next().await {
            let asked = asked
                .context("asking does not panic")
                .and_then(|asked| asked);
            result = result.and(asked);
        }
        self.asked.store(true, Ordering::Relaxed);
        result.map(|()| begun.elapsed())
    }

    pub fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Asker {
    /// Time counts from when the request was due, waiting for a free connection included.
    async fn ask(&self, index: usize, due: Instant) -> anyhow::Result<()> {
        let place = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let number = format!("138{place:08}");
        let text = self.text.replace("{n}", &(place / SAME_TEXT).to_string());
        let body = format!(
            r#"{{"appId":"{}","to":"{number}","mediaTxt":"{text}","respUrl":"{}","userData":"job {place}"}}"#,
            self.app, self.url
        );
        self.ledger.open(&number, due);
        let mut connection = self.connections[index % self.connections.len()]
            .lock()
            .await;
        let answer = connection
            .operation(
                &self.credentials,
                &self.signature,
                "Calls/LandingCalls",
                "application/json",
                Some(body),
            )
            .await?;
        let now = Instant::now();
        ensure!(answer.contains("\"000000\""), "not accepted: {answer}");
        self.ledger.record(&number, |job| job.accepted = Some(now));
        Ok(())
    }
}
