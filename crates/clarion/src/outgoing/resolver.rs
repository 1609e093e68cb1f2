//! Resolves names by the operating system. It is behind a trait, so that a test can use a lying resolver.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Maximum number of look-ups at once. A look-up holds a thread for as long as the operating system takes, even if nobody waits for it any
/// more.
const LOOKUPS: usize = 64;

#[async_trait]
pub trait Resolve: Send + Sync + fmt::Debug {
    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

#[derive(Debug)]
pub struct SystemResolver {
    turns: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let turns = Arc::clone(&self.turns);
        let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
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
