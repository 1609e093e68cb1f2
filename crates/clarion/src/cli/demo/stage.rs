//! The stage of the demonstration: a folder with settings of its own, this program as the server, and a receiver of its callbacks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::clock::Clock;
use crate::domain::bill::calendar;

const START: Duration = Duration::from_secs(20);
const STOP: Duration = Duration::from_secs(20);
/// The day is surely closed this long after midnight: the grace time of the settings, and a little more.
const MORNING: SignedDuration = SignedDuration::from_secs(5 * 60 + 10);
/// The calls might fall into two days if midnight is this near.
const EVENING: SignedDuration = SignedDuration::from_mins(10);
/// A callback is short. No more than this is read.
const LONGEST_REPORT: usize = 64 * 1024;

pub struct DemoStage<'a> {
    pub folder: &'a Path,
    /// The demonstration's own clock. It is the machine's clock until it is moved.
    pub clock: Clock,
    /// How far the clock has been moved.
    ahead: SignedDuration,
    program: PathBuf,
    config: PathBuf,
}

impl<'a> DemoStage<'a> {
    pub fn prepare(folder: &'a Path) -> anyhow::Result<Self> {
        let config = folder.join("clarion.toml");
        let data = folder.join("data");
        std::fs::write(
            &config,
            format!(
                "data_dir = \"{}\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n[console]\nlisten = []\n[log]\nfilter = \"warn\"\n\
                 [callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n\
                 [[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 10\ncalls_per_second = 10\nprefixes = [\"86\"]\nrecord = \"{}\"\n",
                data.display(),
                folder.join("heard").display()
            ),
        )?;
        let mut stage = Self {
            folder,
            clock: Clock::new(TimeZone::system()),
            ahead: SignedDuration::ZERO,
            program: std::env::current_exe()?,
            config,
        };
        let now = stage.clock.now();
        let tomorrow = calendar::begins(stage.today().tomorrow()?, stage.clock.zone());
        if tomorrow.duration_since(now) < EVENING {
            stage.move_clock(EVENING);
        }
        Ok(stage)
    }

    fn today(&self) -> Date {
        calendar::day_of(self.clock.now(), self.clock.zone())
    }

    fn move_clock(&mut self, by: SignedDuration) {
        self.ahead += by;
        self.clock.shift(by);
    }

    /// Sets the clock back to the machine's.
    pub fn reset_clock(&mut self) {
        self.move_clock(-self.ahead);
    }

    /// Moves the clock into the first minutes of the next day. Returns the day that is then over.
    pub fn pass_midnight(&mut self) -> anyhow::Result<Date> {
        let today = self.today();
        let midnight = calendar::begins(today.tomorrow()?, self.clock.zone());
        // In whole seconds, because the server gets whole seconds.
        let wait = midnight.duration_since(self.clock.now()) + MORNING;
        self.move_clock(SignedDuration::from_secs(wait.as_secs()));
        Ok(today)
    }

    pub fn ca(&self) -> PathBuf {
        self.folder.join("data/tls/ca.pem")
    }

    /// Starts the server in a process of its own, so that it can be killed.
    pub async fn start(&self) -> anyhow::Result<RunningServer> {
        let mut process = Command::new(&self.program)
            .arg("--config")
            .arg(&self.config)
            .args(["serve", "--demo-clock-ahead"])
            .arg(self.ahead.as_secs().to_string())
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
        // The server must not block on its further output.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(RunningServer { process, address })
    }

    /// Runs one of our own commands, as an operator would, and reads its JSON.
    pub async fn command(&self, arguments: &[&str]) -> anyhow::Result<Value> {
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

pub struct RunningServer {
    pub process: Child,
    pub address: SocketAddr,
}

impl RunningServer {
    pub fn client(&self, stage: &DemoStage<'_>) -> anyhow::Result<Client> {
        Client::new(self.address, &stage.ca())
    }

    /// Stops the server in order, as a shutdown of the machine does.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.process.id().context("the server has ended")?;
        let id = Pid::from_raw(id.cast_signed()).context("a process has a number")?;
        kill_process(id, Signal::TERM)?;
        let status = tokio::time::timeout(STOP, self.process.wait())
            .await
            .context("the server does not stop")??;
        ensure!(status.success(), "the server ended badly: {status}");
        Ok(())
    }
}

/// Receives the callbacks that the server sends.
pub struct DemoReceiver {
    pub url: String,
    reports: mpsc::UnboundedReceiver<String>,
}

impl DemoReceiver {
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/callback", listener.local_addr()?);
        let (told, reports) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let told = told.clone();
                tokio::spawn(async move {
                    if let Ok(report) = receive(stream).await {
                        let _ = told.send(report);
                    }
                });
            }
        });
        Ok(Self { url, reports })
    }

    pub async fn next(&mut self, patience: Duration) -> anyhow::Result<String> {
        tokio::time::timeout(patience, self.reports.recv())
            .await
            .context("no callback came")?
            .context("nobody sends callbacks any more")
    }
}

/// Reads one POST and answers it.
async fn receive(mut stream: TcpStream) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await?;
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())?
            })?;
            (body.len() >= length).then(|| body.to_owned())
        });
        if let Some(body) = whole {
            let thanks = "<Response><statuscode>000000</statuscode></Response>";
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{thanks}",
                thanks.len()
            );
            stream.write_all(answer.as_bytes()).await?;
            return Ok(body);
        }
        ensure!(read > 0 && bytes.len() < LONGEST_REPORT, "not a report");
    }
}
