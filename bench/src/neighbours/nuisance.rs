//! An account that does its worst, within what the API lets it do: costly texts, uploads that are large and uploads that drip, receivers that never
//! answer, events to them, numbers that ring for ever, alerts and requests as fast as they are answered, connections on which nothing is said. In a process of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use clarion::client::{ApiCredentials, Client, Connection};
use clarion::clock::Clock;
use clarion::domain::account::{AccountSid, AppId, AuthToken};
use clarion::domain::intake::IntakeToken;
use http_body_util::BodyExt;
use jiff::tz::TimeZone;
use phone::test_phone::Script;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::accepts::customer::BenchCustomer;
use crate::server::BenchServer;

/// Where its alerts come in.
pub const INTAKE: &str = "noise";
/// Its numbers begin with this.
const NUMBERS: &str = "139";
const SILENT_RECEIVERS: usize = 200;
const IDLE_CONNECTIONS: usize = 60;
const DRIPPING_UPLOADS: usize = 8;
const ASKERS: usize = 8;
const COSTLY_ASKERS: usize = 4;
/// Each changes its language so often.
const CHANGES: usize = 400;
/// A connection that was closed is opened again after this.
const PAUSE: Duration = Duration::from_millis(50);
/// One alert of so many is as long as an alert may be.
const ALERTS_FOR_A_LONG_ONE: u64 = 50;
const LONG_ALERT: usize = 4 << 20;
const DRIP: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Args)]
pub struct Nuisance {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long)]
    ca: PathBuf,
    #[arg(long)]
    sid: AccountSid,
    #[arg(long)]
    token: AuthToken,
    #[arg(long)]
    app: AppId,
    /// Of the intake that it has (`INTAKE`)
    #[arg(long)]
    intake_token: String,
    /// Only these
    #[arg(long, value_delimiter = ',')]
    noise: Vec<NoiseKind>,
}

/// What an account can do to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NoiseKind {
    /// Calls as fast as they are answered
    Requests,
    /// Calls with texts that change their language
    Texts,
    /// Files of a megabyte
    Uploads,
    /// Uploads that drip
    Drips,
    /// Connections on which nothing is said
    Silence,
    /// Wrong signatures
    Lies,
    /// Calls whose events go to receivers that never answer
    Events,
    /// Alerts, each of an incident of its own, and now and then a long one
    Alerts,
}

/// What the telephone does when one of its numbers is called.
pub fn script(number: &str) -> Option<Script> {
    let last = number.strip_prefix(NUMBERS)?.bytes().last()?;
    Some(match last {
        b'0'..=b'4' => Script::never_answer(),
        b'5' | b'6' => Script::refuse(503),
        b'7' => Script::refuse(486),
        b'8' => Script::hang_up_after(Duration::from_millis(200)),
        _ => Script::answer(),
    })
}

impl Nuisance {
    /// In a process of its own, until what is returned is dropped.
    pub fn start(
        server: &BenchServer,
        customer: &BenchCustomer,
        intake_token: &IntakeToken,
        noise: &[NoiseKind],
    ) -> anyhow::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("nuisance");
        command.arg("--address").arg(server.address.to_string());
        command.arg("--ca").arg(&server.ca);
        command.arg("--sid").arg(customer.credentials.sid.as_str());
        command
            .arg("--token")
            .arg(customer.credentials.token.reveal());
        command.arg("--app").arg(customer.app.as_str());
        command.arg("--intake-token").arg(intake_token.reveal());
        for kind in noise.iter().filter_map(NoiseKind::to_possible_value) {
            command.arg("--noise").arg(kind.get_name());
        }
        Ok(command.kill_on_drop(true).spawn()?)
    }

    /// How many do it at once.
    fn count(&self, kind: NoiseKind) -> usize {
        let count = match kind {
            NoiseKind::Requests | NoiseKind::Events | NoiseKind::Alerts => ASKERS,
            NoiseKind::Texts => COSTLY_ASKERS,
            NoiseKind::Drips => DRIPPING_UPLOADS,
            NoiseKind::Silence => IDLE_CONNECTIONS,
            NoiseKind::Uploads | NoiseKind::Lies => 1,
        };
        if self.noise.is_empty() || self.noise.contains(&kind) {
            count
        } else {
            0
        }
    }

    pub async fn run(self) -> anyhow::Result<()> {
        let kinds = NoiseKind::value_variants();
        let counts: Vec<_> = kinds
            .iter()
            .map(|kind| (*kind, self.count(*kind)))
            .collect();
        let trouble = Trouble {
            client: Client::new(self.address, &self.ca)?,
            credentials: ApiCredentials {
                sid: self.sid,
                token: self.token,
            },
            clock: Clock::new(TimeZone::system()),
            app: self.app,
            intake_token: self.intake_token,
            orders: AtomicU64::new(0),
        };
        let trouble: &'static Trouble = Box::leak(Box::new(trouble));
        let mut receivers = Vec::new();
        for _ in 0..SILENT_RECEIVERS {
            receivers.push(TcpListener::bind("127.0.0.1:0").await?);
        }
        let ports = receivers
            .iter()
            .map(|silent| Ok(silent.local_addr()?.port()));
        let ports: Vec<u16> = ports.collect::<anyhow::Result<_>>()?;
        let ports: &'static [u16] = ports.leak();
        let mut tasks = JoinSet::new();
        for (kind, count) in counts {
            for _ in 0..count {
                match kind {
                    NoiseKind::Requests => tasks.spawn(again_and_again(|| {
                        trouble.ask(ports, Watched::No, |_| "hello".to_owned())
                    })),
                    NoiseKind::Events => tasks.spawn(again_and_again(|| {
                        trouble.ask(ports, Watched::Yes, |_| "hello".to_owned())
                    })),
                    NoiseKind::Alerts => tasks.spawn(again_and_again(|| trouble.alert())),
                    NoiseKind::Texts => tasks.spawn(again_and_again(|| {
                        trouble.ask(ports, Watched::No, costly_text)
                    })),
                    NoiseKind::Uploads => tasks.spawn(again_and_again(|| trouble.upload())),
                    NoiseKind::Drips => tasks.spawn(again_and_again(|| trouble.drip())),
                    NoiseKind::Silence => tasks.spawn(again_and_again(|| trouble.say_nothing())),
                    NoiseKind::Lies => tasks.spawn(again_and_again(|| trouble.lie())),
                };
            }
        }
        tasks.join_next().await.context("somebody works")??;
        Ok(())
    }
}

/// Whatever goes wrong is what the server does about it.
async fn again_and_again<F: Future<Output = anyhow::Result<()>>>(trouble: impl Fn() -> F) {
    loop {
        let _ = trouble().await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// No two alike: none comes from the cache.
fn costly_text(order: u64) -> String {
    format!("{order}{}", "好a".repeat(CHANGES / 2))
}

/// An incident that nobody has had, in Alertmanager's words.
fn alert(order: u64) -> String {
    let mut body = format!(
        r#"{{"version":"4","groupKey":"g{order}","status":"firing","alerts":[{{"labels":{{"alertname":"Noise"}}}}"#
    );
    if order.is_multiple_of(ALERTS_FOR_A_LONG_ONE) {
        let more = ",{}";
        body.push_str(&more.repeat((LONG_ALERT - 1000) / more.len()));
    }
    body.push_str("]}");
    body
}

/// Whether somebody is told of each step of a call.
#[derive(Debug, Clone, Copy)]
enum Watched {
    No,
    Yes,
}

struct Trouble {
    client: Client,
    credentials: ApiCredentials,
    clock: Clock,
    app: AppId,
    intake_token: String,
    orders: AtomicU64,
}

impl Trouble {
    fn next_order(&self) -> u64 {
        self.orders.fetch_add(1, Ordering::Relaxed)
    }

    async fn place(&self, connection: &mut Connection, body: String) -> anyhow::Result<String> {
        let signature = self.credentials.sign(&self.clock.wall());
        let (operation, form) = ("Calls/LandingCalls", "application/json");
        connection
            .operation(&self.credentials, &signature, operation, form, Some(body))
            .await
    }

    /// Calls, as fast as they are answered.
    async fn ask(
        &self,
        ports: &[u16],
        watched: Watched,
        text: impl Fn(u64) -> String,
    ) -> anyhow::Result<()> {
        let mut connection = self.client.connect().await?;
        loop {
            let order = self.next_order();
            let port = ports[usize::try_from(order)? % ports.len()];
            let events = match watched {
                Watched::Yes => format!(r#","callStateUrl":"http://127.0.0.1:{port}/events""#),
                Watched::No => String::new(),
            };
            let body = format!(
                r#"{{"appId":"{}","to":"{NUMBERS}{order:08}","mediaTxt":"{}","respUrl":"http://127.0.0.1:{port}/"{events}}}"#,
                self.app,
                text(order)
            );
            self.place(&mut connection, body).await?;
        }
    }

    /// Alerts as fast as they are answered.
    async fn alert(&self) -> anyhow::Result<()> {
        let mut connection = self.client.connect().await?;
        let path = format!("/intake/{INTAKE}");
        let bearer = format!("Bearer {}", self.intake_token);
        loop {
            let headers = [("authorization", bearer.as_str())];
            let body = alert(self.next_order());
            let answer = connection.exchange("POST", &path, &headers, body).await?;
            answer.into_body().collect().await?;
        }
    }

    /// Files of a megabyte, one after the other, in place of each other.
    async fn upload(&self) -> anyhow::Result<()> {
        let mut connection = self.client.connect().await?;
        loop {
            let order = self.next_order();
            let strength = i16::try_from(order % 30_000)?;
            let bytes = Bytes::from(sound::wav::mono_16_bit(
                &vec![strength; 500_000],
                sound::RATE,
            ));
            let signature = self.credentials.sign(&self.clock.wall());
            connection
                .upload(&self.credentials, &signature, &self.app, "a.wav", bytes)
                .await?;
        }
    }

    /// A byte now and then.
    async fn drip(&self) -> anyhow::Result<()> {
        let mut stream = self.client.open().await?;
        let signature = self.credentials.sign(&self.clock.wall());
        let head = format!(
            "POST /2013-12-26/Accounts/{}/Calls/MediaFileUpload?sig={}&appid={}&filename=d.wav HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: {}\r\nContent-Length: 1000000\r\n\r\n",
            self.credentials.sid, signature.sig, self.app, signature.authorization
        );
        stream.write_all(head.as_bytes()).await?;
        loop {
            stream.write_all(b"R").await?;
            stream.flush().await?;
            tokio::time::sleep(DRIP).await;
        }
    }

    async fn say_nothing(&self) -> anyhow::Result<()> {
        let mut stream = self.client.open().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
        Ok(())
    }

    /// Requests with a wrong signature.
    async fn lie(&self) -> anyhow::Result<()> {
        let mut connection = self.client.connect().await?;
        let mut liar = self.credentials.clone();
        liar.token = "f".repeat(32).parse().map_err(anyhow::Error::msg)?;
        loop {
            let signature = liar.sign(&self.clock.wall());
            connection
                .operation(&liar, &signature, "AccountInfo", "application/json", None)
                .await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_numbers_of_its_own_and_texts_that_are_never_the_same() {
        assert!(script("13800000003").is_none());
        assert_eq!(script("13900000003"), Some(Script::never_answer()));
        assert_ne!(alert(1), alert(2));
        assert!(alert(1).len() < 200);
        assert!((LONG_ALERT / 2..LONG_ALERT).contains(&alert(ALERTS_FOR_A_LONG_ONE).len()));
        assert_ne!(costly_text(1), costly_text(2));
        assert_eq!(costly_text(1).chars().count(), 1 + CHANGES);
    }
}
