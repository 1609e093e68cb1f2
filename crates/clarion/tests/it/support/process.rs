//! The real program in a process of its own, for tests that look at the process or end it.

use std::process::Stdio;

use clarion::config::Config;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::raw::Door;
use super::{PATIENCE, account, application};

/// Killed when it is dropped.
pub struct ServerProcess {
    pub door: Door,
    child: Child,
    _folder: TempDir,
}

impl ServerProcess {
    /// `clarion serve` with one account and one application, and settings of its own on top of the test defaults.
    pub async fn start_with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let text = format!("data_dir = {data:?}\ntime_zone = \"Asia/Shanghai\"\n{settings}");
        let file = folder.path().join("clarion.toml");
        std::fs::write(&file, &text).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        let config = Config::from_parts(&text, &[]).unwrap();
        let store = config.database().unwrap().open().await.unwrap();
        store.add_account(account()).await.unwrap();
        store.add_application(application()).await.unwrap();
        store.close().await;

        let mut child = Command::new(env!("CARGO_BIN_EXE_clarion"))
            .arg("--config")
            .arg(&file)
            .arg("serve")
            .env("CLARION_HTTP__LISTEN", "[\"127.0.0.1:0\"]")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // Clarion serves https://127.0.0.1:PORT from …
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.expect("the server starts").unwrap().unwrap();
        let address = line.split("https://").nth(1).unwrap();
        let address = address.split(' ').next().unwrap().parse().unwrap();
        let ca = data.join("tls/ca.pem");
        Self {
            door: Door { address, ca },
            child,
            _folder: folder,
        }
    }

    /// The most memory that the process has held so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let id = self.child.id().expect("it is running");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kibibytes.parse::<u64>().unwrap() << 10
    }
}
