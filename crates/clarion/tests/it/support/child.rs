//! The real program in a process of its own, for tests that kill it or measure its use of resources.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use clarion::client::{ApiCredentials, Client, Connection, Signature};
use clarion::domain::account::AccountChange;
use clarion::store::Database;
use supervisor::Supervisor;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::raw::Door;
use super::{
    APP, PATIENCE, SID, TOKEN, WAITING_TRUNK, ZONE, account, application, call_sid, clock,
    status_code,
};

/// A folder with settings, and a database with an account that has very high limits of requests.
pub struct Installation {
    pub folder: tempfile::TempDir,
    pub database: Database,
    config: PathBuf,
}

impl Installation {
    /// Uses PostgreSQL if an address is given, SQLite otherwise.
    pub async fn new(postgres: Option<String>) -> Self {
        Self::with_settings(postgres, WAITING_TRUNK).await
    }

    /// Uses settings of the test, trunks among them.
    pub async fn with_settings(postgres: Option<String>, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let url =
            postgres.unwrap_or_else(|| format!("sqlite:{}", path.join("clarion.db").display()));
        let config = write_config(path, &url, settings);
        let database = Database::parse(&url).unwrap();
        let store = database.open(&Supervisor::new()).await.unwrap();
        store.add_account(account()).await.unwrap();
        store.add_application(application()).await.unwrap();
        let plenty = Some(Some(1_000_000));
        let limits = AccountChange {
            requests_per_second: plenty,
            requests_at_once: plenty,
            ..AccountChange::default()
        };
        store
            .change_account(&SID.parse().unwrap(), limits)
            .await
            .unwrap();
        store.close().await;
        Self {
            folder,
            database,
            config,
        }
    }

    /// Returns an installation that has only settings: with PostgreSQL if an address is given, with SQLite otherwise.
    pub fn empty(postgres: &str) -> Self {
        Self::empty_with(postgres, WAITING_TRUNK)
    }

    /// The same, with settings of the test.
    pub fn empty_with(postgres: &str, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("sqlite:{}", folder.path().join("clarion.db").display());
        let url = if postgres.is_empty() { &file } else { postgres };
        Self {
            config: write_config(folder.path(), url, settings),
            database: Database::parse(url).unwrap(),
            folder,
        }
    }

    /// Returns a second node on the same database, with files of its own.
    pub fn another_node(&self, settings: &str) -> Self {
        let Database::Postgres(config) = &self.database else {
            panic!("nodes share a PostgreSQL");
        };
        Self::node_at(config.url(), settings)
    }

    /// Returns a node on a database that somebody else has filled.
    pub fn node_at(url: &str, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            config: write_config(folder.path(), url, settings),
            database: Database::parse(url).unwrap(),
            folder,
        }
    }

    pub async fn start(&self) -> ChildServer {
        self.start_with(&[]).await
    }

    pub async fn start_with(&self, environment: &[(&str, &PathBuf)]) -> ChildServer {
        self.start_by(|serve| serve.envs(environment.iter().copied()))
            .await
    }

    /// Starts the server after `change` has changed its command.
    pub async fn start_by(&self, change: impl FnOnce(&mut Command) -> &mut Command) -> ChildServer {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_clarion"));
        serve
            .arg("--config")
            .arg(&self.config)
            .arg("serve")
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut process = change(&mut serve).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        // The server must not block on its further output.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let address: SocketAddr = first
            .split("https://")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let door = Door {
            address,
            ca: self.folder.path().join("tls/ca.pem"),
        };
        let client = Client::new(address, &door.ca).unwrap();
        ChildServer {
            process,
            client,
            door,
        }
    }

    /// What a command of the program says; it must succeed.
    pub async fn says(&self, arguments: &[&str]) -> String {
        let output = self.clarion(arguments).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the command line with the same settings, beside the server or without it.
    pub async fn clarion(&self, arguments: &[&str]) -> std::process::Output {
        self.clarion_with(arguments, &[]).await
    }

    pub async fn clarion_with(
        &self,
        arguments: &[&str],
        environment: &[(&str, &PathBuf)],
    ) -> std::process::Output {
        Command::new(env!("CARGO_BIN_EXE_clarion"))
            .arg("--config")
            .arg(&self.config)
            .args(arguments)
            .envs(environment.iter().copied())
            .output()
            .await
            .unwrap()
    }

    pub async fn holds(&self, sids: &[String]) -> Result<(), String> {
        let store = self.database.open(&Supervisor::new()).await.unwrap();
        for sid in sids {
            let progress = store
                .call_progress(&SID.parse().unwrap(), &sid.parse().unwrap())
                .await
                .unwrap();
            if progress.is_none() {
                return Err(format!("call {sid} was accepted and is lost"));
            }
        }
        store.close().await;
        Ok(())
    }
}

fn write_config(folder: &Path, database: &str, settings: &str) -> PathBuf {
    let config = folder.join("clarion.toml");
    let text = format!(
        "data_dir = {folder:?}\ndatabase = {database:?}\ntime_zone = {ZONE:?}\n[http]\nlisten = [\"127.0.0.1:0\"]\n[console]\nlisten = []\n[log]\nfilter = \"error\"\n{settings}"
    );
    std::fs::write(&config, text).unwrap();
    config
}

pub struct ChildServer {
    pub process: Child,
    pub client: Client,
    pub door: Door,
}

impl ChildServer {
    pub async fn metrics(&self) -> String {
        let mut connection = self.client.connect().await.unwrap();
        connection.get("/metrics").await.unwrap().1
    }

    /// Returns the value of one series, such as `clarion_calls{state="answered"}`.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let text = self.metrics().await;
        let value = |line: &str| line.strip_prefix(series)?.trim().parse().ok();
        text.lines().find_map(value)
    }

    /// Returns the resident memory now, in bytes.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the most memory that the process has held so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> u64 {
        let id = self.process.id().expect("it is running");
        let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            << 10
    }
}

/// A client that places calls one after the other on one connection.
pub struct Caller {
    connection: Connection,
    credentials: ApiCredentials,
    signature: Signature,
}

impl Caller {
    pub async fn connect(client: &Client) -> anyhow::Result<Self> {
        let credentials = ApiCredentials {
            sid: SID.parse().unwrap(),
            token: TOKEN.parse().unwrap(),
        };
        let signature = credentials.sign(&clock().wall());
        Ok(Self {
            connection: client.connect().await?,
            credentials,
            signature,
        })
    }

    async fn ask(&mut self) -> anyhow::Result<String> {
        self.ask_for("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
            .await
    }

    async fn ask_for(&mut self, fields: &str) -> anyhow::Result<String> {
        let body = format!("{{\"appId\":\"{APP}\",{fields}}}");
        self.connection
            .operation(
                &self.credentials,
                &self.signature,
                "Calls/LandingCalls",
                "application/json",
                Some(body),
            )
            .await
    }

    /// Places a call with these fields. Returns an error if the connection is gone.
    pub async fn place(&mut self, fields: &str) -> anyhow::Result<String> {
        let placed = self.try_to_place(fields).await?;
        Ok(placed.expect("it is accepted"))
    }

    /// Asks for a call with these fields: its callSid, or the statusCode of the refusal. Returns an error if the connection is gone.
    pub async fn try_to_place(&mut self, fields: &str) -> anyhow::Result<Result<String, String>> {
        let answer = self.ask_for(fields).await?;
        Ok(match status_code(&answer) {
            "000000" => Ok(call_sid(&answer)),
            refused => Err(refused.to_owned()),
        })
    }

    /// Places a call. Returns its callSid, or an error if the connection is gone.
    pub async fn place_call(&mut self) -> anyhow::Result<String> {
        let answer = self.ask().await?;
        assert_eq!(status_code(&answer), "000000", "{answer}");
        Ok(call_sid(&answer))
    }

    /// Places a call. Returns its callSid if the call was accepted.
    pub async fn try_call(&mut self) -> Option<String> {
        let answer = self.ask().await.unwrap();
        (status_code(&answer) == "000000").then(|| call_sid(&answer))
    }

    /// Places a call that must be refused. Returns the statusCode.
    pub async fn refused(&mut self) -> String {
        let answer = self.ask().await.unwrap();
        assert_ne!(status_code(&answer), "000000", "{answer}");
        status_code(&answer).to_owned()
    }

    /// The answer to any other operation, in JSON.
    pub async fn operation(&mut self, operation: &str, body: &str) -> anyhow::Result<String> {
        self.connection
            .operation(
                &self.credentials,
                &self.signature,
                operation,
                "application/json",
                Some(body.to_owned()),
            )
            .await
    }

    /// What the server says about a call; an error when the connection is gone.
    pub async fn call_result(&mut self, sid: &str) -> anyhow::Result<String> {
        self.connection
            .operation(
                &self.credentials,
                &self.signature,
                &format!("CallResult?callsid={sid}"),
                "application/json",
                None,
            )
            .await
    }

    /// Places calls until the connection breaks, noting each that was accepted.
    pub async fn place_calls(client: &Client, accepted: &Mutex<Vec<String>>) {
        let Ok(mut caller) = Self::connect(client).await else {
            return;
        };
        while let Ok(sid) = caller.place_call().await {
            accepted.lock().unwrap().push(sid);
        }
    }
}
