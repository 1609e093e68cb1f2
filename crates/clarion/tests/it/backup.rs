//! Backup and restore, by the very commands of docs/operating.md, while clients place calls.

use std::sync::{Arc, Mutex};

use clarion::store::Database;
use tokio::task::JoinSet;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::document::{documented, sh};
use crate::support::{eventually, postgres};

const CALLS: usize = 200;

/// Clients that place calls until they are dropped.
struct Load {
    accepted: Arc<Mutex<Vec<String>>>,
    _clients: JoinSet<()>,
}

impl Load {
    async fn on(server: &ChildServer) -> Self {
        let accepted = Arc::<Mutex<Vec<String>>>::default();
        let mut clients = JoinSet::new();
        for _ in 0..4 {
            let (client, accepted) = (server.client.clone(), Arc::clone(&accepted));
            clients.spawn(async move { Caller::place_calls(&client, &accepted).await });
        }
        let load = Self {
            accepted,
            _clients: clients,
        };
        load.grows_by(CALLS).await;
        load
    }

    fn accepted(&self) -> Vec<String> {
        self.accepted.lock().unwrap().clone()
    }

    async fn grows_by(&self, more: usize) {
        let wanted = self.accepted().len() + more;
        eventually("calls are accepted", async || {
            self.accepted().len() >= wanted
        })
        .await;
    }
}

/// The restored server has every call, takes new ones, and does not dial the old ones before the operator has looked.
async fn is_whole(restored: &Installation, accepted: &[String]) {
    let stopped = restored.clarion(&["call", "stop-all"]).await;
    assert!(stopped.status.success(), "{stopped:?}");
    restored.holds(accepted).await.unwrap();
    let server = restored.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let new = caller.place_call().await.unwrap();
    restored.holds(&[new]).await.unwrap();
    let check = restored.clarion(&["check", "--json"]).await;
    let findings: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    let stopped = |finding: &serde_json::Value| {
        finding["check"] == "dialling" && finding["found"].as_str().unwrap().contains("stopped")
    };
    assert!(
        findings.as_array().unwrap().iter().any(stopped),
        "{findings}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_server_is_backed_up_under_load_and_restored_elsewhere() {
    let site = Installation::new(None).await;
    let server = site.start().await;
    let load = Load::on(&server).await;
    let safe = tempfile::tempdir().unwrap();
    let backup = safe.path().join("backup");
    std::fs::create_dir_all(site.folder.path().join("voices")).unwrap();
    std::fs::write(site.folder.path().join("voices/one"), "sound").unwrap();

    let before = load.accepted();
    let (data, kept) = (
        site.folder.path().to_str().unwrap(),
        backup.to_str().unwrap(),
    );
    let places = [("/var/lib/clarion", data), ("/srv/backup/clarion", kept)];
    sh(&documented("backup-sqlite", &places)).await;
    load.grows_by(CALLS).await;
    drop((load, server));

    // A new place: only what the backup holds is there.
    let new = Installation::empty("");
    let folder = new.folder.path().to_str().unwrap();
    let places = [("/var/lib/clarion", folder), ("/srv/backup/clarion", kept)];
    sh(&documented("restore-sqlite", &places)).await;
    is_whole(&new, &before).await;
    let voice = std::fs::read(new.folder.path().join("voices/one")).unwrap();
    assert_eq!(voice, b"sound");
    let ca = |site: &Installation| std::fs::read(site.folder.path().join("tls/ca.pem")).unwrap();
    assert_eq!(
        ca(&new),
        ca(&site),
        "clients trust the restored server as they did the old one"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgresql_is_dumped_under_load_and_restored_elsewhere() {
    let url = postgres::empty_database().await;
    let site = Installation::new(Some(url.clone())).await;
    let server = site.start().await;
    let load = Load::on(&server).await;
    let safe = tempfile::tempdir().unwrap();
    let backup = safe.path().join("backup");

    let before = load.accepted();
    let data = site.folder.path().to_str().unwrap();
    let kept = backup.to_str().unwrap();
    let old = "postgres://clarion:secret@db.example/clarion";
    let places = [
        ("/var/lib/clarion", data),
        ("/srv/backup/clarion", kept),
        (old, url.as_str()),
    ];
    sh(&documented("backup-postgres", &places)).await;
    load.grows_by(CALLS).await;
    drop((load, server));

    let fresh = postgres::empty_database().await;
    let new = Installation::empty(&fresh);
    let folder = new.folder.path().to_str().unwrap();
    let places = [
        ("/var/lib/clarion", folder),
        ("/srv/backup/clarion", kept),
        (old, fresh.as_str()),
    ];
    sh(&documented("restore-postgres", &places)).await;
    assert_eq!(new.database, Database::parse(&fresh).unwrap());
    is_whole(&new, &before).await;
}
