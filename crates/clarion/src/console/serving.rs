//! The console's own listeners. Calls are made whether or not operators can look at them: an address that cannot be had is tried again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use supervisor::{Supervisor, TaskGuard, Watch};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::{Console, routes};
use crate::config::{Config, HttpConfig};
use crate::http::Front;

/// Operators are few.
const CONNECTIONS: usize = 256;
const CONNECTIONS_OF_ADDRESS: usize = 128;
/// From one try to listen for operators to the next.
const PAUSE: Duration = Duration::from_secs(5);

/// Listens for operators. Returns the addresses that could be had at once, and the tasks of all of them.
pub async fn serve(
    config: &Config,
    console: Console,
    tls: Option<TlsAcceptor>,
    stopped: &watch::Receiver<bool>,
    supervisor: &Supervisor,
) -> (Vec<SocketAddr>, Vec<TaskGuard>) {
    let limits = HttpConfig {
        max_connections: CONNECTIONS,
        max_connections_of_address: CONNECTIONS_OF_ADDRESS,
        ..config.http.clone()
    };
    let router = routes::router(Arc::new(console));
    let front = Arc::new(Front::new(router, tls, &limits));
    let (mut reached, mut listeners) = (Vec::new(), Vec::new());
    for address in config.console.listen.iter().copied() {
        let bound = TcpListener::bind(address).await;
        let bound = bound.inspect_err(|error| {
            tracing::warn!(%error, %address, "the console cannot be reached there (console.listen); it is tried again");
        });
        let mut bound = bound.ok();
        let local = bound.as_ref().and_then(|bound| bound.local_addr().ok());
        reached.extend(local);
        // Where any port was good enough, it stays the one that operators know.
        let address = local.unwrap_or(address);
        let (front, stopped) = (Arc::clone(&front), stopped.clone());
        listeners.push(supervisor.restart("console-listener", None, move |watch| {
            let (front, stopped, bound) = (Arc::clone(&front), stopped.clone(), bound.take());
            async move {
                let listener = match bound {
                    Some(bound) => bound,
                    None => listen_again(address, &watch, stopped.clone()).await?,
                };
                front.serve(listener, watch, stopped).await;
                Some(())
            }
        }));
    }
    (reached, listeners)
}

/// `None` if the server stops before the address can be had.
async fn listen_again(
    address: SocketAddr,
    watch: &Watch,
    mut stopped: watch::Receiver<bool>,
) -> Option<TcpListener> {
    loop {
        watch.heartbeat();
        if let Ok(listener) = TcpListener::bind(address).await {
            return Some(listener);
        }
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return None,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}
