//! Resolves names by the operating system. It is behind a trait, so that a test can use a lying resolver.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::fair_places::FairPlaces;

/// Maximum number of look-ups at once, of all and for one account. A look-up holds a thread for as long as the operating system takes, even if
/// nobody waits for it any more: names whose servers are silent must leave look-ups for the names of others.
const LOOKUPS: usize = 64;
const LOOKUPS_EACH: usize = 16;

/// Longer than anyone waits for a request.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

#[async_trait]
pub trait Resolve: Send + Sync + fmt::Debug {
    /// `whose` request it is: they share the look-ups.
    async fn resolve(&self, whose: &str, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

#[derive(Debug)]
pub struct SystemResolver {
    turns: FairPlaces,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            turns: FairPlaces::new(LOOKUPS, LOOKUPS_EACH),
        }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, whose: &str, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let turn = self.turns.take(whose, Instant::now() + LONGEST_WAIT).await;
        let turn = turn.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let name = name.to_owned();
        let look_up = move || {
            let _turn = turn;
            (name.as_str(), port)
                .to_socket_addrs()
                .map(Iterator::collect)
        };
        tokio::task::spawn_blocking(look_up)
            .await
            .map_err(io::Error::other)?
    }
}
