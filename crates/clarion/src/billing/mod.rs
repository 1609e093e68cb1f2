//! Bills as files: `close` closes the day, `write` writes each application's lines to a file that never changes again, and a client that
//! may have the file gets a token. `retention` forgets bills and tokens when their time is over.
//!
//! The bytes of a closed day's file follow from its lines alone. So nothing here needs to be done exactly once: two nodes that write the
//! same file write the same bytes.

pub mod close;
pub mod import;
pub mod retention;
pub mod stream;
pub mod verify;
mod write;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{anyhow, ensure};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::{BillsConfig, Config};
use crate::disk_room::{DiskRoom, RoomFor};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::bill::keywords::Keywords;
use crate::domain::bill::{BillFile, BillOf, calendar};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::FairPlaces;
use crate::private_files;
use crate::random;
use crate::seldom::Seldom;
use crate::store::bills::BillToken;
use crate::store::{Store, StoreError};

/// How long a request waits for a file that does not exist yet. After that the file is still made, for the next request.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of files that are made at once, of all and of one account: each reads a whole day.
const AT_ONCE: usize = 2;
const AT_ONCE_OF_ACCOUNT: usize = 1;
/// How long a file waits for its place: all that others may ask for is made in this time.
const PLACE_TIME: Duration = Duration::from_secs(12 * 3600);

/// Held by each request that makes a file or waits for it.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The bytes of a file while it is read.
pub type ByteChunks = BoxStream<'static, object_store::Result<Bytes>>;

#[derive(Debug)]
pub struct Billing {
    store: Arc<dyn Store>,
    objects: Arc<dyn ObjectStore>,
    /// The folder of the objects, where a killed process may have left files aside.
    folder: std::path::PathBuf,
    clock: Clock,
    settings: BillsConfig,
    turns: Mutex<HashMap<(BillOf, String), Turn>>,
    places: FairPlaces,
    /// Of the disk of the folder.
    disk: DiskRoom,
    /// Of the files that are checked, and made again.
    checks: Mutex<HashMap<String, Turn>>,
}

/// A file that a client may have, and the token for it.
#[derive(Debug)]
pub struct Granted {
    pub file: BillFile,
    pub token: String,
}

/// Why a filtered file is not made.
#[derive(Debug, Error)]
#[error("{0}")]
struct NoSpace(Refusal);

impl Billing {
    pub fn open(config: &Config, store: Arc<dyn Store>, clock: Clock) -> anyhow::Result<Self> {
        let folder = config.bills.folder.clone();
        private_files::folder(&folder)?;
        // A file is written aside, synced and renamed, and its folder is synced: when a write returns, the file is durable.
        let objects = LocalFileSystem::new_with_prefix(&folder)?
            .with_fsync(true)
            .with_automatic_cleanup(true); // no folders of days that are forgotten
        Ok(Self {
            store,
            objects: Arc::new(objects),
            folder,
            clock,
            settings: config.bills.clone(),
            turns: Mutex::default(),
            places: FairPlaces::new(AT_ONCE, AT_ONCE_OF_ACCOUNT),
            disk: DiskRoom::for_files(config, "bills.folder", config.bills.folder.clone()),
            checks: Mutex::default(),
        })
    }

    fn grace(&self) -> SignedDuration {
        self.settings.grace
    }

    /// Grants the previous day's bill, or the part of it that the keywords match.
    pub async fn request(
        self: &Arc<Self>,
        account: &AccountSid,
        app: &AppId,
        keywords: Option<Keywords>,
    ) -> Result<Granted, Refusal> {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let day = calendar::previous_day(now, zone);
        if calendar::last_due(now, zone, self.grace()) < day {
            return Err(Refusal::new(
                StatusCode::BillNotAvailable,
                format!("the bill of {day} is closing: please ask again in a few minutes"),
            ));
        }
        let of = BillOf {
            account: account.clone(),
            app: app.clone(),
            day,
        };
        let this = Arc::clone(self);
        let made = tokio::spawn(async move { this.make_and_grant(of, keywords).await });
        match tokio::time::timeout(PATIENCE, made).await {
            Ok(Ok(granted)) => granted,
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(Refusal::new(
                StatusCode::BillNotAvailable,
                format!(
                    "the bill of {day} is long and still closing: please ask again in a few minutes"
                ),
            )),
        }
    }

    async fn make_and_grant(
        &self,
        of: BillOf,
        keywords: Option<Keywords>,
    ) -> Result<Granted, Refusal> {
        let words = keywords.as_ref().map_or("", Keywords::as_str);
        // From here on other requests count this file, although it does not exist yet.
        let _asked = self.turn(&of, words);
        if keywords.is_some() {
            self.check_room(&of, words).await?;
        }
        if self.store.first_open_day().await.map_err(|e| failed(&e))? <= of.day {
            let closed = self.store.close_day(of.day, self.clock.now()).await;
            closed.map_err(|error| failed(&error))?;
        }
        // A filtered file may expire after it was found and before it is granted. It is then made anew.
        for _ in 0..3 {
            let file = self.file(&of, keywords.as_ref()).await;
            let file = file.map_err(refused)?;
            if let Some(token) = self.grant(&file).await.map_err(refused)? {
                return Ok(Granted { file, token });
            }
        }
        Err(StatusCode::UnknownError.into())
    }

    /// Limits the filters of a bill: each costs a look at the whole day, and a file that is kept for a while.
    async fn check_room(&self, of: &BillOf, words: &str) -> Result<(), Refusal> {
        let files = self.store.bill_files(of.day).await;
        let files = files.map_err(|error| failed(&error))?;
        let of_app = files.into_iter().filter(|file| file.of.app == of.app);
        let mut others: HashSet<String> = of_app.map(|file| file.keywords).collect();
        others.extend(self.in_the_making(of));
        others.retain(|other| !other.is_empty() && other != words);
        if others.len() >= self.settings.max_filtered_files {
            return Err(Refusal::new(
                StatusCode::TooManyRequests,
                "keywords: too many different conditions for one bill",
            ));
        }
        Ok(())
    }

    /// Makes a token for a file. The token is shown only once; only its hash is stored.
    async fn grant(&self, file: &BillFile) -> anyhow::Result<Option<String>> {
        let token = random::id();
        let good = self
            .store
            .add_bill_token(BillToken {
                hash: hash_of(&token),
                file_id: file.id.clone(),
                account: file.of.account.clone(),
                expires_at: self.token_expiry(),
            })
            .await?;
        Ok(good.then_some(token))
    }

    fn token_expiry(&self) -> Timestamp {
        self.clock.now() + self.settings.token_life
    }

    /// Returns the file that a token is valid for.
    pub async fn file_of_token(&self, token: &str) -> anyhow::Result<Option<BillFile>> {
        let now = self.clock.now();
        Ok(self.store.file_of_token(&hash_of(token), now).await?)
    }

    /// Returns the file of a bill whose day is closed, and makes it if it does not exist.
    pub async fn file(&self, of: &BillOf, keywords: Option<&Keywords>) -> anyhow::Result<BillFile> {
        let words = keywords.map_or("", Keywords::as_str);
        if let Some(file) = self.there(of, words).await? {
            return Ok(file);
        }
        let turn = self.turn(of, words);
        let _turn = turn.lock().await;
        if let Some(file) = self.there(of, words).await? {
            return Ok(file);
        }
        // The file of a whole bill, which is made once, does not wait for all that its account asks for beside it.
        let whose = match keywords {
            Some(_) => of.account.as_str(),
            None => of.app.as_str(),
        };
        let place = self.places.take(whose, Instant::now() + PLACE_TIME).await;
        let _place = place.map_err(|_| anyhow!("there was no place to make a bill"))?;
        self.make(of, keywords).await
    }

    async fn there(&self, of: &BillOf, words: &str) -> anyhow::Result<Option<BillFile>> {
        let Some(file) = self.store.bill_file(of, words).await? else {
            return Ok(None);
        };
        match self.objects.head(&Path::from(file.object.as_str())).await {
            // The file was truncated by somebody or by the disk, so it is made anew.
            Ok(there) if there.size != file.bytes => Ok(None),
            Ok(_) => Ok(Some(file)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn make(&self, of: &BillOf, keywords: Option<&Keywords>) -> anyhow::Result<BillFile> {
        let words = keywords.map_or("", Keywords::as_str);
        let id = random::id();
        let known = self.store.bill_file(of, words).await?;
        if known.is_none() && keywords.is_some() {
            self.check_space(of).await?;
        }
        let object = match (&known, keywords) {
            (Some(known), _) => known.object.clone(),
            (None, None) => format!("{}/{}.csv", of.day, of.app),
            (None, Some(_)) => format!("{}/{}-{id}.csv", of.day, of.app),
        };
        let place = Path::from(object.as_str());
        let written = write::write(self, of, keywords.cloned(), &place, known.as_ref()).await?;
        if let Some(known) = known {
            return Ok(known);
        }
        let file = BillFile {
            id,
            of: of.clone(),
            keywords: words.to_owned(),
            object,
            bytes: written.bytes,
            totals: written.totals,
            sha256: written.sha256,
            made_at: self.clock.now(),
            expires_at: keywords.map(|_| self.token_expiry()),
        };
        let recorded = self.store.record_bill_file(file.clone()).await?;
        if recorded.object != file.object {
            self.objects.delete(&place).await?;
        }
        Ok(recorded)
    }

    /// Whether one more filtered file of an account may take room. They are made one after the other, so that none is left out of the count.
    async fn check_space(&self, of: &BillOf) -> anyhow::Result<()> {
        self.disk.check(RoomFor::Files).await.map_err(NoSpace)?;
        let Some(limit) = self.settings.filtered_bytes else {
            return Ok(());
        };
        let files = self.store.bill_files(of.day).await?;
        let own = files.iter().filter(|file| file.of.account == of.account);
        let filtered = own.filter(|file| !file.keywords.is_empty());
        if filtered.map(|file| file.bytes).sum::<u64>() >= limit {
            let problem =
                "keywords: the files of this account for other conditions are too long together";
            return Err(NoSpace(Refusal::new(StatusCode::TooManyRequests, problem)).into());
        }
        Ok(())
    }

    /// Returns the turn of a file. The first request makes the file; the others wait and find it.
    fn turn(&self, of: &BillOf, words: &str) -> Turn {
        let key = (of.clone(), words.to_owned());
        Arc::clone(self.taken_turns().entry(key).or_default())
    }

    /// Returns the keywords of the files of this bill that are being made now.
    fn in_the_making(&self, of: &BillOf) -> Vec<String> {
        let turns = self.taken_turns();
        let of_bill = turns.keys().filter(|(bill, _)| bill == of);
        of_bill.map(|(_, words)| words.clone()).collect()
    }

    fn taken_turns(&self) -> MutexGuard<'_, HashMap<(BillOf, String), Turn>> {
        let mut turns = self
            .turns
            .lock()
            .expect("nobody panics while holding the list");
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns
    }

    /// Whoever reads a file waits for nobody who reads another one.
    fn check_turn(&self, file: &BillFile) -> Turn {
        let mut turns = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(file.object.clone()).or_default())
    }

    /// Reads the bytes of a file, or some of them. If the file is missing, as on a node with a folder of its own, or is not what was recorded, it is
    /// made first: the lines of a closed day do not change.
    pub async fn read(&self, file: &BillFile, range: Range<u64>) -> anyhow::Result<ByteChunks> {
        // Whatever the file system says of a file can be put back after a change, so the bytes themselves are looked at each time. One at a time for a
        // file: many small parts of a long bill do not take all processors.
        let turn = self.check_turn(file);
        let _turn = turn.lock().await;
        if !self.is_as_recorded(file).await? {
            let keywords = Keywords::parse(&file.keywords)
                .map_err(|refusal| anyhow::anyhow!(refusal.message))?;
            self.file(&file.of, keywords.as_ref()).await?;
            ensure!(
                self.is_as_recorded(file).await?,
                "the lines of the day do not make the file that was recorded"
            );
        }
        Ok(self.open_file(file, range).await?)
    }

    /// Whether the file is there and has the recorded hash. One that has another is put aside.
    async fn is_as_recorded(&self, file: &BillFile) -> anyhow::Result<bool> {
        let place = Path::from(file.object.as_str());
        match self.objects.head(&place).await {
            Ok(_) => {}
            Err(object_store::Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if self.hash_of_file(file).await? == file.sha256 {
            return Ok(true);
        }
        tracing::error!(
            file = file.object,
            "a bill file has changed since it was made; it is made again"
        );
        let aside = Path::from(format!("{}.changed", file.object));
        self.objects.rename(&place, &aside).await?;
        Ok(false)
    }

    async fn open_file(
        &self,
        file: &BillFile,
        range: Range<u64>,
    ) -> Result<ByteChunks, object_store::Error> {
        if range.is_empty() {
            return Ok(futures_util::stream::empty().boxed());
        }
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let place = Path::from(file.object.as_str());
        let found = self.objects.get_opts(&place, options).await?;
        Ok(found.into_stream())
    }
}

fn hash_of(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

/// Returns the refusal for the client, who is told where there is no room.
fn refused(error: anyhow::Error) -> Refusal {
    if let Some(StoreError::NoRoom) = error.downcast_ref() {
        return StatusCode::NoRoom.into();
    }
    match error.downcast::<NoSpace>() {
        Ok(NoSpace(refusal)) => refusal,
        Err(error) => failed(&error),
    }
}

/// Returns the refusal for the client. The cause is for the log.
fn failed(error: &dyn std::fmt::Display) -> Refusal {
    static FAILURES: Seldom = Seldom::new();
    if let Some(unsaid) = FAILURES.say() {
        tracing::error!(%error, unsaid, "a bill could not be given");
    }
    StatusCode::UnknownError.into()
}
