//! The nodes and their database: started, hurt, and started again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clarion::store::Database;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use super::Setup;
use super::clients::Doors;
use crate::disk::failing_disk;
use crate::support::child::{ChildServer, Installation};
use crate::support::cluster::Cluster;
use crate::support::proxy::Proxy;
use crate::support::{eventually, postgres, preload};

/// The database of each: PostgreSQL, with a proxy before it for each node.
pub struct Shared {
    cluster: Cluster,
    /// Past the proxies.
    pub url: String,
    pub disk: Disk,
}

/// A disk that is full while the file says so.
pub struct Disk {
    library: PathBuf,
    fault: PathBuf,
    _folder: tempfile::TempDir,
}

struct Node {
    installation: Installation,
    proxy: Option<Proxy>,
    life: Option<ChildServer>,
    /// As the database knows this life.
    id: Option<String>,
}

pub struct Nodes {
    all: Vec<Node>,
    shared: Option<Shared>,
    /// The disk of the nodes themselves.
    disk: Disk,
    doors: Doors,
    pub ended_by_themselves: usize,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = failing_disk(folder.path());
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        Self {
            library,
            fault: folder.path().join("fault"),
            _folder: folder,
        }
    }

    pub fn fill(&self) {
        std::fs::write(&self.fault, "full").unwrap();
    }

    pub fn free(&self) {
        std::fs::remove_file(&self.fault).unwrap();
    }
}

impl Shared {
    pub async fn start() -> Self {
        let disk = Disk::new();
        let access = "host all all 127.0.0.1/32 trust\n";
        let cluster = Cluster::start_with("max_connections = 200", access, &[], |server| {
            on_disk(server, &disk, "/data/");
        });
        let cluster = cluster.await;
        let url = cluster.url("clarion");
        Self { cluster, url, disk }
    }

    async fn start_again(&mut self) {
        let disk = &self.disk;
        let again = self
            .cluster
            .start_again(|server| on_disk(server, disk, "/data/"));
        again.await;
    }

    /// A server without room for its log starts again by itself, or ends if there is no room for that either.
    pub async fn recover(&mut self) {
        while !self.cluster.is_well().await {
            if self.cluster.0.has_ended() {
                self.start_again().await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The rows that each living node has.
    async fn ids(&self) -> Vec<String> {
        let client = postgres::connect(&self.url).await;
        // The names of those that have left stay for a while.
        let living = "SELECT node FROM nodes WHERE lease_until > extract(epoch FROM clock_timestamp()) * 1000";
        let rows = client.query(living, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn held_by(&self, node: &str) -> i64 {
        let client = postgres::connect(&self.url).await;
        let count = "SELECT count(*) FROM call_queue WHERE node = $1";
        client.query_one(count, &[&node]).await.unwrap().get(0)
    }
}

fn on_disk(command: &mut Command, disk: &Disk, files: &str) {
    command.env("LD_PRELOAD", preload(&disk.library));
    command.env("DISK_FAULT", &disk.fault);
    command.env("DISK_FAULT_FILES", files);
}

impl Node {
    /// What the file says is what its clock is off by.
    fn clock(&self) -> PathBuf {
        self.installation.folder.path().join("faketime")
    }

    fn set_clock(&self, seconds: i64) {
        let new = self.clock().with_extension("new");
        std::fs::write(&new, format!("{:+}s\n", own_shift() + seconds)).unwrap();
        std::fs::rename(new, self.clock()).unwrap();
    }

    async fn start(&mut self, disk: &Disk) {
        self.set_clock(0);
        let (clock, faketime) = (self.clock(), faketime());
        let life = self.installation.start_by(|serve| {
            on_disk(serve, disk, "clarion.db");
            let libraries = format!("{} {}", disk.library.display(), faketime.display());
            serve
                .env("LD_PRELOAD", libraries)
                .env_remove("FAKETIME")
                .env("FAKETIME_TIMESTAMP_FILE", clock)
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("FAKETIME_FORCE_MONOTONIC_FIX", "0")
        });
        self.life = Some(life.await);
    }
}

fn faketime() -> PathBuf {
    let mut places = std::fs::read_dir("/usr/lib").unwrap();
    let library = |folder: &Path| folder.join("faketime/libfaketimeMT.so.1");
    let found = places.find_map(|place| {
        let library = library(&place.ok()?.path());
        library.exists().then_some(library)
    });
    found.expect("libfaketime, which scripts/setup installs")
}

/// By how much this test's own clock is off, in scripts/test-anytime.
fn own_shift() -> i64 {
    let shift = std::env::var("FAKETIME").unwrap_or_default();
    let seconds = shift.trim_end_matches('s');
    seconds.parse().unwrap_or(0)
}

impl Nodes {
    pub async fn start(setup: Setup, settings: &str) -> Self {
        let settings = format!("{settings}[store]\nstatement_seconds = 2\n");
        let (nodes, shared) = match setup {
            Setup::Sqlite => {
                let installation = Installation::with_settings(None, &settings).await;
                (vec![Node::new(installation, None)], None)
            }
            Setup::Postgres(count) => {
                let shared = Shared::start().await;
                let mut nodes = Vec::new();
                for number in 0..count {
                    let proxy = Proxy::before(&shared.url).await;
                    let url = proxy.url(&shared.url);
                    let installation = if number == 0 {
                        Installation::with_settings(Some(url), &settings).await
                    } else {
                        Installation::node_at(&url, &settings)
                    };
                    nodes.push(Node::new(installation, Some(proxy)));
                }
                (nodes, Some(shared))
            }
        };
        let mut all = Self {
            doors: Arc::new(Mutex::new(nodes.iter().map(|_| None).collect())),
            all: nodes,
            shared,
            disk: Disk::new(),
            ended_by_themselves: 0,
        };
        all.revive().await;
        all
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn doors(&self) -> &Doors {
        &self.doors
    }

    pub fn database(&self) -> &Database {
        &self.all[0].installation.database
    }

    pub fn proxies(&self, of: Option<usize>) -> Vec<&Proxy> {
        let hit = |number: &usize| of.is_none_or(|of| of == *number);
        let hit = (0..self.all.len()).filter(hit);
        hit.filter_map(|number| self.all[number].proxy.as_ref())
            .collect()
    }

    /// Starts every node that is not there.
    pub async fn revive(&mut self) {
        for number in 0..self.all.len() {
            let node = &mut self.all[number];
            if let Some(life) = &mut node.life {
                if life.process.try_wait().unwrap().is_none() {
                    continue;
                }
                self.ended_by_themselves += 1;
            }
            let before = match &self.shared {
                Some(shared) => shared.ids().await,
                None => Vec::new(),
            };
            node.start(&self.disk).await;
            if let Some(shared) = &self.shared {
                let ids = shared.ids().await;
                node.id = ids.into_iter().find(|id| !before.contains(id));
            }
            let door = node.life.as_ref().map(|life| life.client.clone());
            self.doors.lock().unwrap()[number] = door;
        }
    }

    /// The id of the life that is over.
    pub async fn kill(&mut self, number: usize) -> Option<String> {
        self.doors.lock().unwrap()[number] = None;
        let node = &mut self.all[number];
        if let Some(mut life) = node.life.take() {
            life.process.kill().await.unwrap();
        }
        node.id.take()
    }

    pub async fn terminate(&mut self, number: usize) {
        self.signal(number, Signal::TERM);
        self.doors.lock().unwrap()[number] = None;
        if let Some(mut life) = self.all[number].life.take() {
            let ended = tokio::time::timeout(crate::support::PATIENCE, life.process.wait());
            ended.await.expect("it stops").unwrap();
        }
    }

    /// The id of the life that gets it.
    pub fn signal(&mut self, number: usize, signal: Signal) -> Option<String> {
        let node = &self.all[number];
        let id = node.life.as_ref().and_then(|life| life.process.id())?;
        kill_process(Pid::from_raw(id.cast_signed())?, signal).unwrap();
        node.id.clone()
    }

    /// How long a lost node still held calls, where others are there to take them.
    pub async fn taken_over(&self, lost: Option<String>) -> Option<Duration> {
        let shared = self.shared.as_ref().filter(|_| self.all.len() > 1)?;
        let lost = lost?;
        if shared.held_by(&lost).await == 0 {
            return None;
        }
        let began = Instant::now();
        eventually("its calls are taken over", async || {
            shared.held_by(&lost).await == 0
        })
        .await;
        Some(began.elapsed())
    }

    pub async fn jump(&mut self, number: usize, seconds: i64, time: Duration) {
        self.all[number].set_clock(seconds);
        tokio::time::sleep(time).await;
        self.all[number].set_clock(0);
    }

    pub async fn fill_disk(&mut self, time: Duration) {
        let disk = match &self.shared {
            Some(shared) => &shared.disk,
            None => &self.disk,
        };
        disk.fill();
        tokio::time::sleep(time).await;
        disk.free();
        if let Some(shared) = &mut self.shared {
            shared.recover().await;
        }
    }

    pub async fn kill_database(&mut self, time: Duration) {
        if let Some(shared) = &mut self.shared {
            shared.cluster.0.stop().await;
            tokio::time::sleep(time).await;
            shared.start_again().await;
        }
    }
}

impl Node {
    fn new(installation: Installation, proxy: Option<Proxy>) -> Self {
        Self {
            installation,
            proxy,
            life: None,
            id: None,
        }
    }
}
