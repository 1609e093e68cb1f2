//! What may still be written while the reserve is given up: nothing new first, then nothing but the ends and the progress of calls.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use supervisor::Supervisor;

use super::SqliteStore;
use crate::domain::account::AccountSid;
use crate::domain::claim::NodeId;
use crate::domain::do_not_call::DoNotCallSource;
use crate::store::bills::BillToken;
use crate::store::migrations::SchemaRight;
use crate::store::{
    BillBook, CallQueue, CallbackClaim, CallbackQueue, DoNotCallBook, Records, Store, StoreError,
    WriteProbe,
};

const BYTES: u64 = 100_000;

struct Site {
    _folder: tempfile::TempDir,
    store: Arc<SqliteStore>,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clarion.db");
        let supervisor = Supervisor::new();
        let store = SqliteStore::open(&path, SchemaRight::Migrate, &supervisor).await;
        let store = Arc::new(store.unwrap());
        store.keep_reserve(BYTES);
        store.backlog.reserve.look_after();
        Self {
            _folder: folder,
            store,
        }
    }

    /// What of these is written: what begins something, what is beside the calls, and what belongs to them.
    async fn written(&self) -> [bool; 3] {
        let (store, now) = (&self.store, Timestamp::UNIX_EPOCH);
        let account: AccountSid = "a".repeat(32).parse().unwrap();
        let token = BillToken {
            hash: "hash".to_owned(),
            file_id: "file".to_owned(),
            account: account.clone(),
            expires_at: now,
        };
        let begun = [
            is_written(store.ready().await),
            is_written(store.add_bill_token(token).await),
        ];
        let claim = CallbackClaim {
            node: "node".to_owned(),
            lease: SignedDuration::ZERO,
            shares: Vec::new(),
        };
        let numbers = vec!["8613800000000".to_owned()];
        let added = store.add_do_not_call(&account, numbers, DoNotCallSource::Operator, now);
        let beside = [
            is_written(store.claim_callbacks(claim).await),
            is_written(store.record_attempts(Vec::new()).await),
            is_written(added.await),
            is_written(store.bar_number("8613800000000", true, now).await),
        ];
        let node = NodeId::new([1; 8]);
        let of_calls = [
            is_written(store.heartbeat(&node, now, SignedDuration::ZERO).await),
            is_written(store.cancel_calls_of(&account).await),
        ];
        [all_alike(&begun), all_alike(&beside), all_alike(&of_calls)]
    }
}

/// False if it was refused for want of room.
fn is_written<T>(result: Result<T, StoreError>) -> bool {
    match result {
        Ok(_) => true,
        Err(StoreError::NoRoom) => false,
        Err(error) => panic!("{error}"),
    }
}

fn all_alike(written: &[bool]) -> bool {
    assert!(written.iter().all(|one| *one == written[0]), "{written:?}");
    written[0]
}

#[tokio::test]
async fn what_is_no_end_of_a_call_leaves_the_last_half_of_the_reserve_alone() {
    let site = Site::new().await;
    let reserve = &site.store.backlog.reserve;
    assert_eq!(site.written().await, [true, true, true]);
    reserve.give_up();
    assert_eq!(site.written().await, [false, true, true]);
    reserve.give_up();
    assert_eq!(site.written().await, [false, false, true]);
    site.store.close().await;
}

/// Whatever was handed in before the disk was full, and is looked at only then.
#[tokio::test]
async fn what_waits_for_the_writer_while_the_disk_becomes_full_is_refused_then() {
    let site = Site::new().await;
    let backlog = Arc::clone(&site.store.backlog);
    let fill = move |_: &Connection| {
        backlog.reserve.give_up();
        backlog.reserve.give_up();
        Ok(())
    };
    let (filled, begun, beside, of_calls) = tokio::join!(
        site.store.write(fill),
        site.store.begin(|_| Ok(())),
        site.store.write_beside(|_| Ok(())),
        site.store.write(|_| Ok(())),
    );
    filled.unwrap();
    assert!(!is_written(begun) && !is_written(beside) && is_written(of_calls));
    site.store.close().await;
}
