//! `clarion demo`: the whole job on this machine, as a newcomer would want to see it.

mod stage;
mod waveform;

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;

use self::stage::{Receiver, RunningServer, Stage};
use crate::client::{Connection, Credentials};
use crate::clock::Clock;
use crate::random;

const XML: &str = "application/xml";
const JSON: &str = "application/json";
/// A call of the demonstration is over long before this.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Demo {
    /// Leave the server running and its folder in place
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub async fn run(self) -> anyhow::Result<()> {
        let folder = std::env::temp_dir().join(format!("clarion-demo-{}", random::id()));
        std::fs::create_dir(&folder)?;
        let result = self.show(&folder).await;
        if !self.keep {
            let _ = std::fs::remove_dir_all(&folder);
        }
        result
    }

    async fn show(&self, folder: &Path) -> anyhow::Result<()> {
        let stage = Stage::prepare(folder)?;
        step(
            "A server on an embedded database, with a trunk that leads to a telephone in the same machine",
        );
        let server = stage.start().await?;
        step("An account and an application, made beside the running server");
        let mut customer = Customer::sign_up(&stage, &server).await?;
        let mut receiver = Receiver::start().await?;

        step("A voice notification in XML over HTTPS, in Chinese and English");
        let body = format!(
            "<?xml version='1.0' encoding='utf-8'?><LandingCall><appId>{}</appId><to>13800000001</to>\
             <mediaTxt>您的订单已发货。Your order is on its way.</mediaTxt><respUrl>{}</respUrl><userData>order 42</userData></LandingCall>",
            customer.app_id, receiver.url
        );
        let answer = customer.place(XML, body).await?;
        let first = call_sid(&answer, "<callSid>", '<')?;
        customer.watch(&first).await?;
        hear(&stage, &first).await?;
        step("The callback that arrived");
        println!("  {}", receiver.next(PATIENCE).await?);

        step("The same in JSON, to a number that is busy");
        let body = format!(
            r#"{{"appId":"{}","to":"13800000002","mediaName":"ccp_marketingcall.wav","mediaNameType":"1","respUrl":"{}"}}"#,
            customer.app_id, receiver.url
        );
        let answer = customer.place(JSON, body).await?;
        let second = call_sid(&answer, r#""callSid":""#, '"')?;
        customer.watch(&second).await?;
        println!("  callback: {}", receiver.next(PATIENCE).await?);

        step(
            "kill -9 while a telephone rings, and a new start: nothing is lost, nobody is called twice",
        );
        let server = self
            .crash(&stage, server, &mut customer, &mut receiver)
            .await?;
        self.finish(server, &stage).await
    }

    async fn crash(
        &self,
        stage: &Stage<'_>,
        mut server: RunningServer,
        customer: &mut Customer,
        receiver: &mut Receiver,
    ) -> anyhow::Result<RunningServer> {
        let body = format!(
            r#"{{"appId":"{}","to":"13800000003","mediaTxt":"hello","respUrl":"{}"}}"#,
            customer.app_id, receiver.url
        );
        let answer = customer.place(JSON, body).await?;
        let third = call_sid(&answer, r#""callSid":""#, '"')?;
        customer.until(&third, |state| state == "4").await?;
        server.process.kill().await?;
        println!("  killed");
        let server = stage.start().await?;
        customer.connect(stage, &server).await?;
        customer.watch(&third).await?;
        println!("  callback: {}", receiver.next(PATIENCE).await?);
        Ok(server)
    }

    async fn finish(&self, mut server: RunningServer, stage: &Stage<'_>) -> anyhow::Result<()> {
        if self.keep {
            println!(
                "\nThe server goes on at https://{} with everything in {}",
                server.address,
                stage.folder.display()
            );
            println!("CA file for clients: {}", stage.ca().display());
            println!("Press Ctrl-C to stop it.");
            tokio::select! {
                status = server.process.wait() => bail!("the server ended: {}", status?),
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        server.process.kill().await?;
        println!("\nDone. Next: `make test`, or `clarion --help`.");
        Ok(())
    }
}

/// Somebody with an account, an application and a connection.
struct Customer {
    credentials: Credentials,
    app_id: String,
    clock: Clock,
    connection: Connection,
}

impl Customer {
    async fn sign_up(stage: &Stage<'_>, server: &RunningServer) -> anyhow::Result<Self> {
        let account = stage
            .command(&["account", "add", "--name", "Demo", "--json"])
            .await?;
        let read = |name| text(&account, name);
        let credentials = Credentials {
            sid: read("accountSid")?.parse().map_err(anyhow::Error::msg)?,
            token: read("authToken")?.parse().map_err(anyhow::Error::msg)?,
        };
        let sid = credentials.sid.as_str();
        let app = stage
            .command(&["app", "add", "--account", sid, "--name", "Demo", "--json"])
            .await?;
        let app_id = text(&app, "appId")?.to_owned();
        println!("  account {sid}  application {app_id}");
        Ok(Self {
            connection: server.client(stage)?.connect().await?,
            credentials,
            app_id,
            clock: Clock::new(jiff::tz::TimeZone::system()),
        })
    }

    async fn connect(&mut self, stage: &Stage<'_>, server: &RunningServer) -> anyhow::Result<()> {
        self.connection = server.client(stage)?.connect().await?;
        Ok(())
    }

    async fn place(&mut self, format: &str, body: String) -> anyhow::Result<String> {
        let signature = self.credentials.sign(&self.clock.wall());
        println!(
            "  POST /2013-12-26/Accounts/{}/Calls/LandingCalls/?sig={}",
            self.credentials.sid, signature.sig
        );
        println!("  {body}");
        let answer = self
            .connection
            .operation(
                &self.credentials,
                &signature,
                "Calls/LandingCalls/",
                format,
                Some(body),
            )
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

    /// Asks for the result until its state is one that was waited for, and tells each change.
    async fn until(&mut self, sid: &str, reached: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let began = Instant::now();
        let mut told = String::new();
        loop {
            let answer = self.result(sid).await?;
            let state = answer
                .split("<state>")
                .nth(1)
                .and_then(|rest| rest.split('<').next())
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
    async fn watch(&mut self, sid: &str) -> anyhow::Result<()> {
        let answer = self
            .until(sid, |state| matches!(state, "0" | "1" | "2"))
            .await?;
        println!("  CallResult → {answer}");
        Ok(())
    }
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

/// What the callee heard.
async fn hear(stage: &Stage<'_>, sid: &str) -> anyhow::Result<()> {
    step("What the callee heard");
    let path = stage.folder.join("heard").join(format!("{sid}.wav"));
    let began = Instant::now();
    let wav = loop {
        match std::fs::read(&path) {
            Ok(wav) => break wav,
            Err(error) => ensure!(began.elapsed() < PATIENCE, "no recording: {error}"),
        }
        tokio::time::sleep(LOOK).await;
    };
    let samples = waveform::samples(&wav);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let seconds = samples.len() as f64 / 8000.0;
    println!("  {} ({seconds:.1} s)", path.display());
    println!("  {}", waveform::picture(&samples, 72));
    Ok(())
}

fn step(title: &str) {
    if std::io::stdout().is_terminal() {
        println!("\n\x1b[1;36m■ {title}\x1b[0m");
    } else {
        println!("\n■ {title}");
    }
}

fn text<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    value[name]
        .as_str()
        .with_context(|| format!("no {name} in {value}"))
}

/// The callSid in an answer, which must have 32 characters.
fn call_sid(answer: &str, before: &str, after: char) -> anyhow::Result<String> {
    let sid = answer
        .split(before)
        .nth(1)
        .and_then(|rest| rest.split(after).next());
    let sid = sid.with_context(|| format!("the call was not accepted: {answer}"))?;
    ensure!(sid.len() == 32, "a callSid has 32 characters: {sid}");
    Ok(sid.to_owned())
}
