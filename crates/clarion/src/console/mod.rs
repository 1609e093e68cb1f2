//! The console: what operators see and do with a browser. Pages are written here, as HTML that works without script; a script of our own replaces live parts.
//!
//! `routes` has every address on one screen, `guard` decides who may ask, `named` gives calls the names of whose they are. What is asked and changed goes through `management`, as on the command line. It has no SQL and no rules of its own, asks
//! no other host for anything, and sends nothing that is not escaped (`escaper`).

mod accounts;
mod assets;
mod audio;
mod audit;
mod bills;
mod byte_range;
mod call;
mod callbacks;
mod calls;
mod cookies;
mod dialling;
mod escaper;
mod events;
mod export;
mod field_words;
mod guard;
mod hands;
mod headers;
mod health;
mod intakes;
mod ladder;
mod language;
mod local_address;
mod lockout;
mod named;
mod now;
mod page;
mod page_forms;
mod preferences;
mod refusal;
mod refusal_page;
mod route_access;
mod routes;
mod secrets;
mod sent_form;
mod sentence;
mod serving;
mod setting_meanings;
mod settings;
mod shown;
mod sign_in;
mod timeline;
mod times;
mod trunks;
mod try_it;
mod visit;
mod waveform;
mod words;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

pub use self::cookies::value as cookie_value;
use self::escaper::typed;
use self::events::OpenStreams;
use self::health::Examination;
pub use self::language::PageLanguage;
use self::lockout::Lockout;
use self::named::Names;
use self::refusal::Refused;
pub use self::route_access::RouteAccess;
pub use self::routes::{ConsoleRoute, routes};
pub use self::sent_form::dissect as dissect_form;
pub use self::serving::serve;
use self::sign_in::VerifyingPlaces;
use self::visit::Visit;
use crate::clock::Clock;
use crate::config::ConsoleConfig;
use crate::domain::operator::OperatorName;
use crate::fair_places::{FairPlace, FairPlaces};
use crate::management::Management;

/// Files that are downloaded at once, by all operators and by one: each reads all calls.
const EXPORTS: usize = 2;
const EXPORTS_OF_OPERATOR: usize = 1;
/// Forms with files that are read at once.
const UPLOADS: usize = 2;
/// Sounds that are in memory at once, until they are sent: each may last for many minutes.
const SOUNDS: usize = 4;

/// Everything that the handlers use.
#[derive(Debug)]
pub struct Console {
    /// As nobody: what changes something is done as the visitor (`Console::acting`).
    management: Management,
    names: Names,
    /// That of the applications, for calls that operators try.
    api: Router,
    /// The version of the interface that it answers.
    version: String,
    clock: Clock,
    settings: ConsoleConfig,
    /// Time for the body of a request.
    body_time: Duration,
    lockout: Lockout,
    verifying: VerifyingPlaces,
    streams: OpenStreams,
    exports: FairPlaces,
    /// Forms with files, which are held in memory.
    uploads: Semaphore,
    sounds: Arc<Semaphore>,
    /// Recounts of days: they take a while.
    recounting: Semaphore,
    examination: Examination,
    /// Streams end when the server does.
    stopped: watch::Receiver<bool>,
}

impl Console {
    pub fn new(management: Management, api: Router, stopped: watch::Receiver<bool>) -> Self {
        let config = management.config();
        let settings = config.console.clone();
        Self {
            clock: management.clock().clone(),
            names: Names::default(),
            api,
            version: config
                .http
                .soft_versions
                .first()
                .cloned()
                .unwrap_or_default(),
            lockout: Lockout::new(&settings),
            settings,
            body_time: config.http.body_time,
            verifying: VerifyingPlaces::default(),
            streams: OpenStreams::default(),
            exports: FairPlaces::new(EXPORTS, EXPORTS_OF_OPERATOR),
            uploads: Semaphore::new(UPLOADS),
            sounds: Arc::new(Semaphore::new(SOUNDS)),
            recounting: Semaphore::new(1),
            examination: Examination::default(),
            stopped,
            management,
        }
    }

    /// What the visitor does is noted under their name.
    fn acting(&self, visit: &Visit) -> Management {
        self.management.acting_as(visit.actor())
    }

    /// The place of a download, if the visitor has none already and one is left.
    async fn export_place(&self, visit: &Visit) -> Result<FairPlace, Refused> {
        let operator = visit.operator.as_ref().map(|operator| &operator.name);
        let operator = operator.map_or("", OperatorName::as_str);
        let place = self.exports.take(operator, Instant::now()).await;
        place.map_err(|_| Refused::Busy)
    }

    /// When a sign-in of then expires, if it is used now.
    fn expiry(&self, created_at: Timestamp, now: Timestamp) -> Timestamp {
        let later = |time: Timestamp, by| time.saturating_add(by).unwrap_or(time);
        let whole = later(created_at, self.settings.longest);
        later(now, self.settings.idle).min(whole)
    }
}
