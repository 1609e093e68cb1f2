//! A database file that is damaged under a running server: the process ends, says what to do, and has promised nothing that cannot be recovered.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use clarion::store::sqlite;
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::document::{documented, sh};
use crate::support::{PATIENCE, eventually};

const OLD_CALLS: usize = 300;
/// Of SQLite, and what every file of ours has.
const PAGE: usize = 4096;
/// The same, as places in a file are counted.
const PAGE_BYTES: u64 = 4096;
const DAMAGED: &str = "the database file is damaged";

/// A server on a database that holds some calls already, all of them in the file itself.
struct DamagedSite {
    installation: Installation,
    server: ChildServer,
    log: JoinHandle<String>,
    /// Accepted before; the row of the middle one lies in the middle of these pages.
    old: Vec<String>,
    pages: Vec<u32>,
    /// Accepted by the server that is damaged.
    new: Arc<Mutex<Vec<String>>>,
}

impl DamagedSite {
    /// `prepare` changes the database before the server is started.
    async fn start(prepare: &str) -> Self {
        let installation = Installation::new(None).await;
        let old = place_old_calls(&installation).await;
        let pages = prepare_file(&installation, prepare);
        let mut server = installation
            .start_by(|serve| serve.stderr(Stdio::piped()))
            .await;
        let mut errors = server.process.stderr.take().unwrap();
        let log = tokio::spawn(async move {
            let mut text = String::new();
            errors.read_to_string(&mut text).await.unwrap();
            text
        });
        Self {
            installation,
            server,
            log,
            old,
            pages,
            new: Arc::default(),
        }
    }

    /// A client places calls until the server is gone.
    async fn accepts_calls(&self) {
        let (client, accepted) = (self.server.client.clone(), Arc::clone(&self.new));
        tokio::spawn(async move { Caller::place_calls(&client, &accepted).await });
        eventually("calls are accepted", async || {
            !self.new.lock().unwrap().is_empty()
        })
        .await;
    }

    fn lost_call(&self) -> &str {
        &self.old[OLD_CALLS / 2]
    }

    /// Overwrites the pages around the row of the lost call.
    fn damage_pages(&self) {
        let third = self.pages.len() / 3;
        let file = open(&self.installation);
        for page in &self.pages[third..2 * third] {
            let noise = [0xa5; PAGE];
            file.write_all_at(&noise, u64::from(page - 1) * PAGE_BYTES)
                .unwrap();
        }
    }

    /// The server ends as it must; every call that it has accepted can be recovered from what it leaves behind.
    async fn ends_and_has_lost_nothing_new(mut self) {
        let ended = tokio::time::timeout(PATIENCE, self.server.process.wait()).await;
        let log = self.log.await.unwrap();
        assert_eq!(ended.unwrap().unwrap().code(), Some(74), "{log}");
        assert!(log.contains(DAMAGED), "{log}");
        assert!(
            log.contains("\"A damaged database\" in docs/operating.md"),
            "{log}"
        );
        let restored = Installation::empty("");
        let safe = tempfile::tempdir().unwrap();
        let places = [
            (
                "/var/lib/clarion",
                self.installation.folder.path().to_str().unwrap(),
            ),
            ("/srv/backup/clarion", safe.path().to_str().unwrap()),
        ];
        sh(&documented("recover-sqlite", &places)).await;
        let recovered = safe.path().join("recovered.db");
        std::fs::copy(recovered, restored.folder.path().join("clarion.db")).unwrap();
        let new = self.new.lock().unwrap().clone();
        restored.holds(&new).await.unwrap();
    }
}

fn path(installation: &Installation) -> PathBuf {
    installation.folder.path().join("clarion.db")
}

fn open(installation: &Installation) -> File {
    let file = OpenOptions::new().write(true).open(path(installation));
    file.unwrap()
}

async fn place_old_calls(installation: &Installation) -> Vec<String> {
    let mut server = installation.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let mut old = Vec::new();
    for _ in 0..OLD_CALLS {
        old.push(caller.place_call().await.unwrap());
    }
    server.process.kill().await.unwrap();
    old
}

/// Has everything in the file and nothing in the log. Returns the pages with the rows of the calls, in order.
fn prepare_file(installation: &Installation, change: &str) -> Vec<u32> {
    let db = sqlite::connect(&path(installation)).unwrap();
    db.execute_batch(change).unwrap();
    let pages =
        "SELECT pageno FROM dbstat WHERE name = 'calls' AND pagetype = 'leaf' ORDER BY path";
    let mut statement = db.prepare(pages).unwrap();
    let pages = statement.query_map([], |row| row.get(0)).unwrap();
    let pages = pages.collect::<Result<_, _>>().unwrap();
    drop(statement);
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    pages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_a_reader_finds_ends_the_process() {
    let site = DamagedSite::start("").await;
    site.accepts_calls().await;
    let mut caller = Caller::connect(&site.server.client).await.unwrap();
    site.damage_pages();
    let asked = caller.call_result(site.lost_call()).await;
    assert!(asked.is_err(), "no answer can be trusted: {asked:?}");
    site.ends_and_has_lost_nothing_new().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_the_writer_finds_ends_the_process() {
    let site = DamagedSite::start("").await;
    site.accepts_calls().await;
    site.damage_pages();
    // The server ends this call, and has to change its row for that.
    let db = sqlite::connect(&path(&site.installation)).unwrap();
    let expire = "UPDATE call_queue SET expires_at = 0 WHERE call_sid = ?1";
    assert_eq!(db.execute(expire, [site.lost_call()]).unwrap(), 1);
    drop(db);
    site.ends_and_has_lost_nothing_new().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_the_checkpoint_finds_ends_the_process() {
    // The end of the file holds what nobody reads, and without calls nothing is put behind it.
    let filler = "CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(16777216))";
    let site = DamagedSite::start(filler).await;
    let file = open(&site.installation);
    let bytes = file.metadata().unwrap().len();
    file.set_len(bytes - (12 << 20)).unwrap();
    site.ends_and_has_lost_nothing_new().await;
}

#[tokio::test]
async fn no_server_starts_on_a_damaged_file() {
    let installation = Installation::new(None).await;
    std::fs::write(path(&installation), [0xa5; PAGE]).unwrap();
    let output = installation.clarion(&["serve"]).await;
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(74), "{log}");
    assert!(log.contains(DAMAGED), "{log}");
}
