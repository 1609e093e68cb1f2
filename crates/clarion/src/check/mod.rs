//! Everything that an operator wants to know before the first call, and whenever something seems wrong: for `clarion check` and for the console.
//!
//! The check changes nothing: it makes no schema, binds no port that a server wants, and replaces no registration of a running server. So
//! it may run beside a server as well as before the first start.

mod certificate;
mod database;
mod doors;
mod finding;
mod machine;
mod media;
mod privacy;
mod sockets;
mod speech;
mod trunks;

use std::path::Path;
use std::sync::Arc;

pub use self::certificate::names_of as names_of_certificate;
pub use self::finding::{CheckSubject, Finding, FindingLevel};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::wording::{Wording, wording};

/// Another clock, and by how many seconds this machine is ahead of it.
#[derive(Debug, Clone)]
pub struct OtherClock {
    name: Wording,
    ahead: f64,
}

impl OtherClock {
    fn new(name: Wording, theirs: jiff::Timestamp, ours: jiff::Timestamp) -> Self {
        Self {
            name,
            ahead: ours.duration_since(theirs).as_secs_f64(),
        }
    }
}

/// Where findings are told, as soon as there are some.
pub type Telling<'a> = &'a mut (dyn FnMut(Vec<Finding>) + Send);

/// Examines a machine with these settings, which may serve at this moment. `file` is where they were read from.
pub async fn examine(config: &Arc<Config>, file: Option<&Path>, tell: Telling<'_>) {
    let database = &config.database;
    let clock = Clock::new(config.time_zone());
    tell(vec![Finding::ok(
        CheckSubject::Configuration,
        wording!("can be read, and holds together", "可以读取，且没有矛盾"),
    )]);
    tell(privacy::settings(config, file).into_iter().collect());
    tell(privacy::named_places(config));
    tell(doors::parts(config));
    let serving = doors::serving_process(config, database);
    tell(doors::server(config, serving));
    let (findings, mut clocks) = database::check(database, config, &clock).await;
    tell(findings);
    tell(machine::disk(config, database));
    tell(vec![machine::files(config, serving)]);
    tell(certificate::check(config, &clock));
    tell(speech::check(config).await);
    tell(media::check(config, serving));
    let (findings, others) = trunks::check(config, serving, &clock).await;
    tell(findings);
    clocks.extend(others);
    tell(machine::clock(config, &clocks));
    tell(doors::policy(config));
}
