//! The server under measurement: the real program in a process of its own, as an operator would run it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use clarion::client::{Client, Connection};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(60);
/// Calls are accepted for it and stay in the queue: it has no channels.
pub const WAITING_TRUNK: &str =
    "[[trunk]]\nname = 'waiting'\nhost = '127.0.0.1:9'\noptions_seconds = 0\nprefixes = ['']\n";

#[derive(Debug)]
pub struct BenchServer {
    process: Child,
    pub client: Client,
    pub address: SocketAddr,
    pub ca: PathBuf,
    /// For asking about the server beside the load.
    watch: Connection,
    /// Where operators find it, as soon as the server says so.
    console: oneshot::Receiver<SocketAddr>,
}

impl BenchServer {
    /// Starts a server on `database`, with its other files in `folder`. It accepts everything and dials nothing.
    pub async fn start(folder: &Path, database: &str) -> anyhow::Result<Self> {
        Self::start_with(&program()?, folder, database, WAITING_TRUNK).await
    }

    /// Another `clarion` than the one of this build, or with settings of its own, trunks among them.
    pub async fn start_with(
        program: &Path,
        folder: &Path,
        database: &str,
        settings: &str,
    ) -> anyhow::Result<Self> {
        let mut command = command(program, folder, database, settings)?;
        Self::spawn(&mut command, folder).await
    }

    /// The server of this build, with a log by this filter in JSON, a line each entry. It waits for whoever reads its log.
    pub async fn start_telling(
        folder: &Path,
        database: &str,
        filter: &str,
    ) -> anyhow::Result<(Self, std::fs::File)> {
        let mut command = command(&program()?, folder, database, WAITING_TRUNK)?;
        command
            .env("CLARION_LOG__FILTER", filter)
            .env("CLARION_LOG__FORMAT", "json")
            .stderr(Stdio::piped());
        let mut server = Self::spawn(&mut command, folder).await?;
        let log = server.process.stderr.take();
        let log = log.context("standard error is a pipe")?.into_owned_fd()?;
        Ok((server, log.into()))
    }

    async fn spawn(command: &mut Command, folder: &Path) -> anyhow::Result<Self> {
        let mut process = command.spawn()?;
        let output = process.stdout.take().context("standard output is a pipe")?;
        let mut lines = BufReader::new(output).lines();
        let line = tokio::time::timeout(START, lines.next_line())
            .await
            .context("the server does not start")??
            .context("the server ended at once")?;
        // Whatever else it prints must not block it.
        let (say_console, console) = oneshot::channel();
        tokio::spawn(async move {
            let mut say_console = Some(say_console);
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(found) = address(&line)
                    && let Some(say) = say_console.take()
                {
                    let _ = say.send(found);
                }
            }
        });
        let (api, ca) = (address(&line)?, folder.join("data/tls/ca.pem"));
        let client = Client::new(api, &ca)?;
        let watch = client.connect().await?;
        Ok(Self {
            process,
            client,
            address: api,
            ca,
            watch,
            console,
        })
    }

    /// A client of the console. Its settings must have opened it.
    pub async fn console(&mut self) -> anyhow::Result<Client> {
        let address = tokio::time::timeout(START, &mut self.console);
        let address = address.await.context("the console does not open")??;
        Client::new(address, &self.ca)
    }

    pub fn id(&self) -> anyhow::Result<u32> {
        self.process.id().context("the server has ended")
    }

    /// What the server says about itself now.
    pub async fn metrics(&mut self) -> anyhow::Result<Metrics> {
        let (status, text) = self.watch.get("/metrics").await?;
        ensure!(status == 200, "/metrics answers {status}: {text}");
        Ok(Metrics(text))
    }

    /// At once, with whatever it is doing.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }

    /// In an orderly way, so that the database is as a real restart would leave it.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.process.id().context("the server has ended")?;
        let id = Pid::from_raw(id.cast_signed()).context("a process has a number")?;
        kill_process(id, Signal::TERM)?;
        // An open connection would be waited for.
        drop(self.watch);
        let status = tokio::time::timeout(STOP, self.process.wait())
            .await
            .context("the server does not stop")??;
        ensure!(status.success(), "the server ended badly: {status}");
        Ok(())
    }
}

fn command(
    program: &Path,
    folder: &Path,
    database: &str,
    settings: &str,
) -> anyhow::Result<Command> {
    let config = folder.join("clarion.toml");
    let console = if settings.contains("[console]") || !knows_operators(program) {
        ""
    } else {
        "[console]\nlisten = []\n"
    };
    std::fs::write(
        &config,
        format!(
            "data_dir = '{}'\ndatabase = '{database}'\n[http]\nlisten = ['127.0.0.1:0']\n{console}[log]\nfilter = 'warn'\n{settings}",
            folder.join("data").display()
        ),
    )?;
    let mut command = Command::new(program);
    command
        .arg("--config")
        .arg(&config)
        .arg("serve")
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

/// An earlier version has no console, and refuses settings for it.
fn knows_operators(program: &Path) -> bool {
    let help = std::process::Command::new(program).arg("--help").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("operator"))
}

#[derive(Debug)]
pub struct Metrics(String);

impl Metrics {
    /// Zero where the server has not counted any yet.
    pub fn value(&self, name: &str) -> f64 {
        let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        self.0.lines().find_map(number).unwrap_or_default()
    }
}

/// The `clarion` that was built together with this program.
pub fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("clarion");
    ensure!(
        program.exists(),
        "there is no {}: build the whole workspace in the same profile first",
        program.display()
    );
    Ok(program)
}

/// From the line `Clarion serves https://ADDRESS from DATABASE`, or `Operators find the console at https://ADDRESS`.
fn address(line: &str) -> anyhow::Result<SocketAddr> {
    let address = line
        .split_once("https://")
        .and_then(|(_, rest)| rest.split(' ').next())
        .context("the server names no address")?;
    Ok(address.parse()?)
}
