//! An operator's browser, as the server sees it: signs in, asks for pages over a connection that it keeps, and watches the live part of one.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clarion::client::{Client, Connection};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use crate::accepts::site::Site;
use crate::server::{self, BenchServer};

/// Settings of a server whose console can be reached.
pub const OPEN_CONSOLE: &str = "[console]\nlisten = ['127.0.0.1:0']\n";
const OPERATOR: &str = "bench";
const PASSWORD: &str = "only-on-loopback-2026";
/// The live part of the first page.
const LIVE: &str = "/events/now";

/// An operator who has signed in.
pub struct ConsoleBrowser {
    connection: Connection,
    cookie: String,
}

/// What a page was.
#[derive(Debug)]
pub struct SeenPage {
    pub time: Duration,
    pub bytes: usize,
    pub text: String,
}

impl ConsoleBrowser {
    /// Makes an operator, as one does on the machine of the server.
    pub fn add_operator(site: &Site) -> anyhow::Result<()> {
        let mut command = site.command(&server::program()?)?;
        command.args(["operator", "add", OPERATOR, "--password", PASSWORD]);
        let output = command.output()?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "no operator could be made: {told}");
        Ok(())
    }

    pub async fn sign_in(console: &Client) -> anyhow::Result<Self> {
        let mut connection = console.connect().await?;
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("sec-fetch-site", "same-origin"),
        ];
        let form = format!("name={OPERATOR}&password={PASSWORD}");
        let answer = connection
            .exchange("POST", "/sign-in", &headers, form)
            .await?;
        let cookie = answer.headers().get("set-cookie");
        let cookie = cookie.and_then(|cookie| cookie.to_str().ok());
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.map(str::to_owned);
        // The connection can be used again once the answer was read.
        answer.into_body().collect().await?;
        Ok(Self {
            connection,
            cookie: cookie.context("the console lets nobody in")?,
        })
    }

    async fn ask(&mut self, path: &str) -> anyhow::Result<Incoming> {
        let headers = [("cookie", self.cookie.as_str())];
        let asked = self
            .connection
            .exchange("GET", path, &headers, String::new());
        let answer = asked.await?;
        let status = answer.status();
        ensure!(status.as_u16() == 200, "{path} answers {status}");
        Ok(answer.into_body())
    }

    /// A page, from the request to its last byte.
    pub async fn page(&mut self, path: &str) -> anyhow::Result<SeenPage> {
        let began = Instant::now();
        let body = self.ask(path).await?.collect().await?.to_bytes();
        let time = began.elapsed();
        Ok(SeenPage {
            time,
            bytes: body.len(),
            text: String::from_utf8_lossy(&body).into_owned(),
        })
    }

    /// Watches the live part of the first page, and tells how often it has changed when the connection ends.
    async fn watch(mut self, seen: tokio::sync::watch::Sender<u64>) -> anyhow::Result<()> {
        self.page("/").await?;
        let mut body = self.ask(LIVE).await?;
        while let Some(frame) = body.frame().await {
            frame?;
            seen.send_modify(|seen| *seen += 1);
        }
        Ok(())
    }
}

/// Operators who look on.
#[derive(Debug)]
pub struct ConsoleWatchers {
    watching: JoinSet<anyhow::Result<()>>,
    seen: Vec<tokio::sync::watch::Receiver<u64>>,
}

impl ConsoleWatchers {
    /// So many, each of whom has seen something.
    pub async fn open(server: &mut BenchServer, site: &Site, number: u16) -> anyhow::Result<Self> {
        let mut watchers = Self {
            watching: JoinSet::new(),
            seen: Vec::new(),
        };
        if number == 0 {
            return Ok(watchers);
        }
        // It may be there already, from the last round on this database.
        let _ = ConsoleBrowser::add_operator(site);
        let console = server.console().await?;
        for _ in 0..number {
            let browser = ConsoleBrowser::sign_in(&console).await?;
            let (send, mut seen) = tokio::sync::watch::channel(0);
            watchers.watching.spawn(browser.watch(send));
            seen.wait_for(|seen| *seen > 0).await?;
            watchers.seen.push(seen);
        }
        Ok(watchers)
    }

    /// All of them go, if none had gone before and each has seen something new.
    pub async fn close(mut self) -> anyhow::Result<()> {
        if let Some(ended) = self.watching.try_join_next() {
            ended??;
            anyhow::bail!("a live part of the console has ended");
        }
        let all = self.seen.iter().all(|seen| *seen.borrow() > 1);
        ensure!(all, "the console stood still");
        self.watching.shutdown().await;
        Ok(())
    }
}
