//! The application's side that is told how a call ended: reads the callback, notes it, says thank you.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::ledger::Ledger;

const THANKS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 52\r\nconnection: close\r\n\r\n<Response><statuscode>000000</statuscode></Response>";

#[derive(Debug)]
pub struct CallbackReceiver {
    address: SocketAddr,
    /// Ends with this.
    _serving: JoinSet<()>,
}

impl CallbackReceiver {
    pub async fn start(ledger: &Arc<Ledger>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let ledger = Arc::clone(ledger);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ledger = Arc::clone(&ledger);
                tokio::spawn(async move {
                    // One that does not come whole is not noted, and so its job is not done.
                    let _ = take(stream, &ledger).await;
                });
            }
        });
        Ok(Self {
            address,
            _serving: serving,
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}/status", self.address)
    }
}

async fn take(mut stream: TcpStream, ledger: &Ledger) -> anyhow::Result<()> {
    let mut bytes = Vec::with_capacity(2048);
    while !bytes.ends_with(b"</request>") {
        let count = stream.read_buf(&mut bytes).await?;
        anyhow::ensure!(count > 0, "cut off");
    }
    let now = Instant::now();
    let text = std::str::from_utf8(&bytes)?;
    let (number, state) = (element(text, "number")?, element(text, "state")?);
    ledger.record(number, |job| {
        job.told.get_or_insert(now);
        if state == "0" {
            job.good += 1;
        } else {
            job.bad += 1;
        }
    });
    stream.write_all(THANKS).await?;
    Ok(stream.shutdown().await?)
}

fn element<'a>(text: &'a str, name: &str) -> anyhow::Result<&'a str> {
    let open = format!("<{name}>");
    let rest = text.split_once(&open).context("an element is missing")?.1;
    Ok(rest.split('<').next().unwrap_or_default())
}
