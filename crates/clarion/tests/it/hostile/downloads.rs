//! Downloads that nobody reads: an HTTP/2 client whose window stays closed takes the head of an answer, and never its body.

use std::collections::VecDeque;

use axum::http::Request;
use bytes::Bytes;
use clarion::client::ApiCredentials;
use clarion::domain::account::AccountSid;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::RecvStream;
use h2::client::{self, ResponseFuture, SendRequest};
use supervisor::Supervisor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::alerting::counted;
use crate::bills::morning_after;
use crate::calls::stage::register;
use crate::support::child::Installation;
use crate::support::raw::Door;
use crate::support::{APP, PATIENCE, SID, TOKEN, clock, eventually, status_code};

/// As many as one address may have that nobody has authenticated, and more than are answered in a second.
const CONNECTIONS: usize = 40;
/// So many an account has at once.
const PLACES: usize = 4;
/// Of the files that are asked for, all together have a hundred times their length.
const LIMIT: u64 = 32 << 20;

/// A client that takes no byte of any body.
struct Closed {
    send: SendRequest<Bytes>,
}

impl Closed {
    async fn connect(door: &Door) -> Self {
        let stream = door.tls(&[b"h2"]).await;
        let mut builder = client::Builder::new();
        let (send, connection) = builder
            .initial_window_size(0)
            .handshake(stream)
            .await
            .unwrap();
        tokio::spawn(connection);
        Self { send }
    }

    async fn ask(&self, target: &str, authorization: &str) -> ResponseFuture {
        let request = Request::get(format!("https://localhost{target}"))
            .header("accept", "application/json")
            .header("accept-encoding", "gzip")
            .header("authorization", authorization);
        let mut ready = self.send.clone().ready().await.unwrap();
        let request = request.body(()).unwrap();
        let (answer, _) = ready.send_request(request, true).unwrap();
        answer
    }

    async fn ask_for_many(
        &self,
        count: usize,
        target: &str,
        authorization: &str,
    ) -> FuturesUnordered<ResponseFuture> {
        let asked = FuturesUnordered::new();
        for _ in 0..count {
            asked.push(self.ask(target, authorization).await);
        }
        asked
    }
}

/// The status of the next answer that comes, and its body, which waits.
async fn next(asked: &mut FuturesUnordered<ResponseFuture>) -> (u16, RecvStream) {
    let (head, body) = asked.next().await.unwrap().unwrap().into_parts();
    (head.status.as_u16(), body)
}

/// The target of a signed request for a file, and its header.
fn signed(account: &str, app: &str) -> (String, String) {
    let credentials = ApiCredentials {
        sid: account.parse::<AccountSid>().unwrap(),
        token: TOKEN.parse().unwrap(),
    };
    let signature = credentials.sign(&clock().wall());
    let target = format!(
        "/2013-12-26/Accounts/{account}/Calls/MediaFileUpload?sig={}&appid={app}&filename=a.wav",
        signature.sig
    );
    (target, signature.authorization)
}

/// Adds a file of so many samples to an application.
async fn add(installation: &Installation, app: &str, samples: usize) -> Vec<u8> {
    let folder = installation.folder.path().join(app);
    std::fs::create_dir(&folder).unwrap();
    let (file, wav) = (folder.join("a.wav"), vec![1; samples]);
    let wav = sound::wav::mono_16_bit(&wav, sound::RATE);
    std::fs::write(&file, &wav).unwrap();
    let add = ["audio", "add", "--app", app, file.to_str().unwrap()];
    installation.says(&add).await;
    wav
}

/// The whole answer to a client that reads.
async fn read(door: &Door, target: &str, authorization: &str) -> Vec<u8> {
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n"
    );
    let (mut stream, mut answer) = (door.tls(&[]).await, Vec::new());
    stream.write_all(request.as_bytes()).await.unwrap();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
    read.await.expect("a whole answer").unwrap();
    answer
}

#[tokio::test]
async fn a_hundred_downloads_that_nobody_reads_take_little_memory_and_no_place_of_others() {
    let installation = Installation::new(None).await;
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    let other = register(&*store, 7, |_| {}).await;
    store.close().await;
    add(&installation, APP, 9_000_000).await;
    let theirs = add(&installation, &other, 8000).await;
    let server = installation
        .start_by(|serve| serve.env("CLARION_HTTP__BODY_SECONDS", "600"))
        .await;
    let whole = async || {
        let (target, authorization) = signed(&other, &other);
        let answer = read(&server.door, &target, &authorization).await;
        assert!(answer.ends_with(&theirs), "{} bytes", answer.len());
    };
    whole().await;
    let before = server.peak_memory();

    let (target, authorization) = signed(SID, APP);
    let client = Closed::connect(&server.door).await;
    let mut asked = client.ask_for_many(100, &target, &authorization).await;
    let mut unread = VecDeque::new();
    for _ in 0..PLACES {
        let (status, body) = next(&mut asked).await;
        assert_eq!(status, 200);
        unread.push_back(body);
    }
    whole().await;
    // When one goes away, the next has its place.
    drop(unread.pop_front());
    assert_eq!(next(&mut asked).await.0, 200);
    let grown = server.peak_memory() - before;
    println!("{} MiB, then {} MiB more", before >> 20, grown >> 20);
    assert!(grown < LIMIT, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn a_token_of_a_bill_opens_only_so_many_downloads_at_once() {
    let server = morning_after("[http]\nbody_seconds = 2\nhead_seconds = 60\n").await;
    let target = server.bill("").await.target();
    let client = Closed::connect(&server.door()).await;
    let mut asked = client.ask_for_many(PLACES + 1, &target, "").await;
    let (mut unread, mut refused) = (Vec::new(), 0);
    for _ in 0..=PLACES {
        match next(&mut asked).await {
            (200, body) => unread.push(body),
            (429, _) => refused += 1,
            (status, _) => panic!("{status}"),
        }
    }
    assert_eq!((unread.len(), refused), (PLACES, 1));
    let told = server.fetch("GET", &target, "Accept: application/json\r\n");
    let told = told.await;
    assert_eq!((told.status, status_code(told.text())), (429, "111111"));
    assert!(told.text().contains("4 downloads of an account"));
    drop(unread);
    eventually("there are places again", async || {
        server.get(&target).await.status == 200
    })
    .await;
}

/// They cost a look into the database each, as wrong signatures do.
#[tokio::test]
async fn a_flood_of_made_up_tokens_is_counted_and_answered_slowly() {
    let server = morning_after("").await;
    let good = server.bill("").await.target();
    let path = good.split('?').next().unwrap();
    let series = "clarion_failed_logins_total";
    let (before, began) = (counted(&server, series).await, Instant::now());
    let guess = async |number: usize| {
        let told = server.get(&format!("{path}?token={number:032x}")).await;
        assert_eq!((told.status, status_code(told.text())), (403, "190009"));
        began.elapsed()
    };
    let guesses = futures_util::stream::iter(0..120).map(guess);
    let times: Vec<_> = guesses.buffer_unordered(CONNECTIONS).collect().await;
    // Fifty, and fifty more for every second that it has taken.
    let at_once = 50.0 + 50.0 * began.elapsed().as_secs_f64();
    let quick = times.iter().filter(|time| time.as_secs() < 1);
    assert!(quick.count() as f64 <= at_once);
    assert!(counted(&server, series).await >= before + 120.0);
    assert_eq!(server.get(&good).await.status, 200);
}
