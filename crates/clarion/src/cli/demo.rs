//! `clarion demo`: the whole job on this machine, as a newcomer would want to see it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Client, Credentials};
use crate::clock::Clock;
use crate::random;

const XML: &str = "application/xml";
const JSON: &str = "application/json";
const START: Duration = Duration::from_secs(20);

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
        let clock = Clock::new(jiff::tz::TimeZone::system());
        let stage = Stage::prepare(folder)?;

        step("A server on an embedded database");
        let mut server = stage.start().await?;

        step("An account and an application, made beside the running server");
        let account = stage
            .command(&["account", "add", "--name", "Demo", "--json"])
            .await?;
        let credentials = Credentials {
            sid: text(&account, "accountSid")?
                .parse()
                .map_err(anyhow::Error::msg)?,
            token: text(&account, "authToken")?
                .parse()
                .map_err(anyhow::Error::msg)?,
        };
        let app = stage
            .command(&[
                "app",
                "add",
                "--account",
                credentials.sid.as_str(),
                "--name",
                "Demo",
                "--json",
            ])
            .await?;
        let app_id = text(&app, "appId")?;
        println!("  account {}  application {app_id}", credentials.sid);

        step("A voice notification in XML, over HTTPS");
        let mut connection = server.client(&stage)?.connect().await?;
        let signature = credentials.sign(&clock.wall());
        let body = format!(
            "<?xml version='1.0' encoding='utf-8'?><LandingCall><appId>{app_id}</appId><to>13800000000</to>\
             <mediaTxt>您的订单已发货。Your order is on its way.</mediaTxt><playTimes>2</playTimes></LandingCall>"
        );
        println!(
            "  POST /2013-12-26/Accounts/{}/Calls/LandingCalls/?sig={}",
            credentials.sid, signature.sig
        );
        println!("  {body}");
        let answer = connection
            .operation(
                &credentials,
                &signature,
                "Calls/LandingCalls/",
                XML,
                Some(body),
            )
            .await?;
        println!("→ {answer}");
        let first = call_sid(&answer, "<callSid>", '<')?;

        step("The same in JSON");
        let body = format!(
            r#"{{"appId":"{app_id}","to":"01052823298-3627","mediaName":"ccp_marketingcall.wav","mediaNameType":"1"}}"#
        );
        println!("  {body}");
        let answer = connection
            .operation(
                &credentials,
                &signature,
                "Calls/LandingCalls/",
                JSON,
                Some(body),
            )
            .await?;
        println!("→ {answer}");
        let second = call_sid(&answer, r#""callSid":""#, '"')?;

        step("kill -9, and a new start: what was accepted is still there");
        server.process.kill().await?;
        println!("  killed");
        let server = stage.start().await?;
        let mut connection = server.client(&stage)?.connect().await?;
        for sid in [&first, &second] {
            let signature = credentials.sign(&clock.wall());
            let operation = format!("CallResult?callsid={sid}");
            let answer = connection
                .operation(&credentials, &signature, &operation, XML, None)
                .await?;
            println!("  {sid} → {answer}");
            ensure!(
                answer.contains("<statusCode>000000</statusCode>"),
                "call {sid} is not in the store any more"
            );
        }
        println!("  (state 3: accepted, and waiting in the queue)");
        self.finish(server, &stage).await
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

fn step(title: &str) {
    println!("\n■ {title}");
}

/// Where the demonstration takes place: a folder with a configuration of its own, and this very program.
struct Stage<'a> {
    folder: &'a Path,
    program: PathBuf,
    config: PathBuf,
}

impl<'a> Stage<'a> {
    fn prepare(folder: &'a Path) -> anyhow::Result<Self> {
        let config = folder.join("clarion.toml");
        let data = folder.join("data");
        std::fs::write(
            &config,
            format!(
                "data_dir = \"{}\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n[log]\nfilter = \"warn\"\n\
                 [[trunk]]\nname = \"waiting\"\nhost = \"127.0.0.1:9\"\noptions_seconds = 0\nprefixes = [\"\"]\n",
                data.display()
            ),
        )?;
        Ok(Self {
            folder,
            program: std::env::current_exe()?,
            config,
        })
    }

    fn ca(&self) -> PathBuf {
        self.folder.join("data/tls/ca.pem")
    }

    /// Starts the server in a process of its own, so that it can be killed like one.
    async fn start(&self) -> anyhow::Result<RunningServer> {
        let mut process = Command::new(&self.program)
            .arg("--config")
            .arg(&self.config)
            .arg("serve")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines =
            BufReader::new(process.stdout.take().context("standard output is a pipe")?).lines();
        let first = tokio::time::timeout(START, lines.next_line())
            .await
            .context("the server does not start")??;
        let first = first.context("the server ended at once")?;
        println!("  {first}");
        let address = first
            .split("https://")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let address = address.context("the server names no address")?.parse()?;
        // Whatever else it prints must not block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(RunningServer { process, address })
    }

    /// Runs one of our own commands, as an operator would, and reads its JSON.
    async fn command(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        println!("  clarion {}", arguments.join(" "));
        let output = Command::new(&self.program)
            .arg("--config")
            .arg(&self.config)
            .args(arguments)
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

struct RunningServer {
    process: Child,
    address: SocketAddr,
}

impl RunningServer {
    fn client(&self, stage: &Stage<'_>) -> anyhow::Result<Client> {
        Client::new(self.address, &stage.ca())
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
