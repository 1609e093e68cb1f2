//! A customer with an account, an application and a connection, who requests calls and the bill as a client does.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustls::RootCertStore;
use serde_json::Value;
use url::Url;

use super::stage::{DemoStage, RunningServer};
use crate::client::{ApiCredentials, Client, Connection};
use crate::clock::Clock;
use crate::domain::money::Money;
use crate::outgoing::add_roots;

pub const XML: &str = "application/xml";
pub const JSON: &str = "application/json";
/// A call of the demonstration is over long before this.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const LOOK: Duration = Duration::from_millis(200);

/// The rate of the customer's calls. Its units are short, so that a short call has more than one.
pub const PRICE: &str = "0.03";
pub const UNIT_SECONDS: u32 = 3;
pub const UNANSWERED: &str = "0.01";

pub struct DemoCustomer {
    pub app_id: String,
    /// The accepted calls, in their order.
    pub calls: Vec<String>,
    credentials: ApiCredentials,
    clock: Clock,
    connection: Connection,
    ca: PathBuf,
}

/// The result query's answer about a call that is over.
pub struct CallEnd {
    pub state: char,
    pub seconds: u32,
    /// One for a simple call; all but the last were not answered.
    pub attempts: u32,
}

impl CallEnd {
    /// Returns the cost of the call by the customer's rate.
    pub fn fee(&self) -> anyhow::Result<Money> {
        let money = |text: &str| text.parse::<Money>().map_err(anyhow::Error::msg);
        let last = match self.state {
            '0' => money(PRICE)?.times(self.seconds.div_ceil(UNIT_SECONDS).max(1)),
            '1' => money(UNANSWERED)?,
            _ => Money::ZERO,
        };
        Ok(last.plus(money(UNANSWERED)?.times(self.attempts - 1)))
    }
}

impl DemoCustomer {
    pub async fn sign_up(stage: &DemoStage<'_>, server: &RunningServer) -> anyhow::Result<Self> {
        let account = ["account", "add", "--name", "Demo", "--bill-download", "on"];
        let account = stage.command(&[&account[..], &["--json"]].concat()).await?;
        let read = |name| text(&account, name);
        let credentials = ApiCredentials {
            sid: read("accountSid")?.parse().map_err(anyhow::Error::msg)?,
            token: read("authToken")?.parse().map_err(anyhow::Error::msg)?,
        };
        let sid = credentials.sid.as_str();
        let app = stage
            .command(&["app", "add", "--account", sid, "--name", "Demo", "--json"])
            .await?;
        let unit = UNIT_SECONDS.to_string();
        let rate = ["rate", "set", "--account", sid, "+86", PRICE, "--unit"];
        let rest = [&unit, "--unanswered", UNANSWERED, "--json"];
        stage.command(&[&rate[..], &rest[..]].concat()).await?;
        let app_id = text(&app, "appId")?.to_owned();
        println!("  account {sid}  application {app_id}");
        println!("  {PRICE} for every {UNIT_SECONDS} s that have begun, {UNANSWERED} unanswered");
        Ok(Self {
            connection: server.client(stage)?.connect().await?,
            credentials,
            app_id,
            calls: Vec::new(),
            clock: stage.clock.clone(),
            ca: stage.ca(),
        })
    }

    pub async fn connect(
        &mut self,
        stage: &DemoStage<'_>,
        server: &RunningServer,
    ) -> anyhow::Result<()> {
        self.connection = server.client(stage)?.connect().await?;
        Ok(())
    }

    /// Requests a notification. Returns its callSid.
    pub async fn place(&mut self, format: &str, body: String) -> anyhow::Result<String> {
        self.call("Calls/LandingCalls/", format, body).await
    }

    /// Requests that a code be said. Returns the callSid.
    pub async fn verify(&mut self, body: String) -> anyhow::Result<String> {
        self.call("Calls/VoiceVerify", JSON, body).await
    }

    /// Requests a call. Its callSid must have 32 characters.
    async fn call(
        &mut self,
        operation: &str,
        format: &str,
        body: String,
    ) -> anyhow::Result<String> {
        let answer = self.post(operation, format, body).await?;
        let (before, after) = match format {
            XML => ("<callSid>", '<'),
            _ => (r#""callSid":""#, '"'),
        };
        let sid = between(&answer, before, after)
            .with_context(|| format!("the call was not accepted: {answer}"))?;
        ensure!(sid.len() == 32, "a callSid has 32 characters: {sid}");
        self.calls.push(sid.to_owned());
        Ok(sid.to_owned())
    }

    /// Asks for yesterday's bill, and fetches it at the address that the answer names and that is printed.
    pub async fn bill(&mut self) -> anyhow::Result<String> {
        let body = format!(r#"{{"appId":"{}","date":"day"}}"#, self.app_id);
        let answer = self.post("BillRecords", JSON, body).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        let (url, token) = (text(&answer, "downurl")?, text(&answer, "token")?);
        let address = format!("{url}?token={token}");
        println!("  GET {address}");
        let (status, file) = fetch(&address, &self.ca).await?;
        ensure!(status == 200, "the download answers {status}: {file}");
        Ok(file)
    }

    async fn post(
        &mut self,
        operation: &str,
        format: &str,
        body: String,
    ) -> anyhow::Result<String> {
        let signature = self.credentials.sign(&self.clock.wall());
        println!(
            "  POST /2013-12-26/Accounts/{}/{operation}?sig={}",
            self.credentials.sid, signature.sig
        );
        println!("  {body}");
        let answer = self
            .connection
            .operation(&self.credentials, &signature, operation, format, Some(body))
            .await?;
        println!("→ {answer}");
        Ok(answer)
    }

    async fn result(&mut self, sid: &str) -> anyhow::Result<String> {
        let signature = self.credentials.sign(&self.clock.wall());
        let operation = format!("CallResult?callsid={sid}");
        self.connection
            .operation(&self.credentials, &signature, &operation, XML, None)
            .await
    }

    /// Returns the result of a call that is over.
    pub async fn end_of(&mut self, sid: &str) -> anyhow::Result<CallEnd> {
        let answer = self.result(sid).await?;
        let read = |name: &str| between(&answer, name, '<').context("the result is whole");
        Ok(CallEnd {
            state: read("<state>")?.parse()?,
            seconds: read("<duration>")?.parse()?,
            attempts: between(&answer, "<attempts>", '<').map_or(Ok(1), str::parse)?,
        })
    }

    /// Asks for the result until its state is the awaited one, and prints each change.
    pub async fn until(
        &mut self,
        sid: &str,
        reached: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        let began = Instant::now();
        let mut told = String::new();
        loop {
            let answer = self.result(sid).await?;
            let state = between(&answer, "<state>", '<')
                .with_context(|| format!("no state in {answer}"))?
                .to_owned();
            if state != told {
                println!(
                    "  {:4.1} s  {}",
                    began.elapsed().as_secs_f64(),
                    meaning(&state)
                );
                told.clone_from(&state);
            }
            if reached(&state) {
                return Ok(answer);
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "the call does not come to an end"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Follows a call to its end, and shows the result query.
    pub async fn watch(&mut self, sid: &str) -> anyhow::Result<()> {
        let answer = self
            .until(sid, |state| matches!(state, "0" | "1" | "2"))
            .await?;
        println!("  CallResult → {answer}");
        Ok(())
    }
}

/// Fetches an address as it stands, on a connection of its own, as somebody does who has nothing but the address and the CA file.
async fn fetch(address: &str, ca: &Path) -> anyhow::Result<(u16, String)> {
    let url = Url::parse(address)?;
    let name = url.host_str().context("an address has a host")?;
    let mut roots = RootCertStore::empty();
    add_roots(&mut roots, ca)?;
    let target = &url[url::Position::BeforePath..];
    let mut failed = anyhow::anyhow!("{name} has no address");
    let port = url
        .port_or_known_default()
        .context("an address has a port")?;
    for place in tokio::net::lookup_host((name, port)).await? {
        let client = Client::named(name, place, Some(roots.clone()))?;
        match client.connect().await {
            Ok(mut connection) => return connection.get(target).await,
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn meaning(state: &str) -> &'static str {
    match state {
        "0" => "over: it was answered",
        "1" => "over: it was not answered",
        "2" => "over: it failed",
        "3" => "accepted, waiting in the queue",
        "4" => "dialling or ringing",
        "5" => "talking",
        _ => "unknown",
    }
}

pub fn between<'a>(text: &'a str, before: &str, after: char) -> Option<&'a str> {
    text.split_once(before)?.1.split(after).next()
}

fn text<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    value[name]
        .as_str()
        .with_context(|| format!("no {name} in {value}"))
}
