//! Uploads that drip: they have places of their account only, and a least rate.

use clarion::client::ApiCredentials;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::audio_files::wav;
use crate::calls::stage::register;
use crate::support::{APP, PATIENCE, SID, TOKEN, TestServer, eventually, status_code};

/// An upload of which the head has been sent, and some of the body.
struct Upload {
    stream: TlsStream<TcpStream>,
    heard: String,
}

impl Upload {
    async fn begin(server: &TestServer, sid: &str, app: &str, body: &[u8], length: usize) -> Self {
        let credentials = ApiCredentials {
            sid: sid.parse().unwrap(),
            token: TOKEN.parse().unwrap(),
        };
        let signature = credentials.sign(&server.clock.wall());
        let head = format!(
            "POST /2013-12-26/Accounts/{sid}/Calls/MediaFileUpload?sig={}&appid={app}&filename=a.wav HTTP/1.1\r\nHost: localhost\r\n\
             Connection: close\r\nExpect: 100-continue\r\nAuthorization: {}\r\nContent-Length: {length}\r\n\r\n",
            signature.sig, signature.authorization,
        );
        let mut stream = server.door().tls(&[]).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        stream.flush().await.unwrap();
        Self {
            stream,
            heard: String::new(),
        }
    }

    /// Of an account, a body that does not end.
    async fn dripping(server: &TestServer) -> Self {
        Self::begin(server, SID, APP, b"RIFF", 1_000_000).await
    }

    /// Reads what has come, for a moment.
    async fn listen(&mut self) {
        let mut bytes = [0; 4096];
        let moment = std::time::Duration::from_millis(1);
        if let Ok(Ok(count)) = timeout(moment, self.stream.read(&mut bytes)).await {
            self.heard
                .push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    /// The server reads the body of whoever has a place, and says so.
    fn has_place(&self) -> bool {
        self.heard.contains("100 Continue")
    }

    async fn answer(mut self) -> String {
        eventually("an answer", async || {
            self.listen().await;
            self.heard.contains("</statusCode>")
        })
        .await;
        self.heard
    }
}

async fn with_places(uploads: &mut [Upload]) -> usize {
    for upload in &mut *uploads {
        upload.listen().await;
    }
    uploads.iter().filter(|upload| upload.has_place()).count()
}

#[tokio::test]
async fn eight_dripping_uploads_of_an_account_leave_places_for_another() {
    let patient = format!(
        "[audio_files]\nupload_seconds = {0}\nupload_grace_seconds = {0}\n",
        2 * PATIENCE.as_secs()
    );
    let server = TestServer::start_with(&patient).await;
    let other = register(&*server.store, 7, |_| {}).await;
    let mut dripping = Vec::new();
    for _ in 0..8 {
        dripping.push(Upload::dripping(&server).await);
    }
    eventually("two of them are read", async || {
        with_places(&mut dripping).await == 2
    })
    .await;
    let file = wav(1000);
    let upload = Upload::begin(&server, &other, &other, &file, file.len()).await;
    let answer = upload.answer().await;
    assert_eq!(status_code(&answer), "000000", "{answer}");
    assert_eq!(with_places(&mut dripping).await, 2, "the others wait");
    // When one goes away, the next of them has its place.
    let gone = dripping.iter().position(Upload::has_place).unwrap();
    drop(dripping.remove(gone));
    eventually("the next one is read", async || {
        with_places(&mut dripping).await == 2
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_is_slower_than_the_least_rate_is_refused_with_the_rule() {
    let settings =
        "[audio_files]\nupload_grace_seconds = 1\nmin_upload_bytes_per_second = 100000\n";
    let server = TestServer::start_with(settings).await;
    let answer = Upload::dripping(&server).await.answer().await;
    assert_eq!(status_code(&answer), "110141", "{answer}");
    let rule = "after 1 seconds, at least 100000 bytes a second";
    assert!(answer.contains(rule), "{answer}");
    // What arrives in time is taken, and what has been cut left its place.
    let file = wav(1000);
    for _ in 0..3 {
        let upload = Upload::begin(&server, SID, APP, &file, file.len()).await;
        assert_eq!(status_code(&upload.answer().await), "000000");
    }
}

#[tokio::test]
async fn an_upload_that_finds_no_place_in_time_is_told_so() {
    let settings = "[audio_files]\nupload_seconds = 1\nuploads_per_account = 1\n";
    let server = TestServer::start_with(settings).await;
    let mut first = [Upload::dripping(&server).await];
    eventually("the first is read", async || {
        with_places(&mut first).await == 1
    })
    .await;
    // Some of them may have the place one after the other, but not all.
    let others = (0..12).map(|_| async { Upload::dripping(&server).await.answer().await });
    let mut refused = 0;
    for answer in futures_util::future::join_all(others).await {
        if status_code(&answer) == "111111" {
            let rule = "at most 1 uploads of an account are in progress at once";
            assert!(answer.contains(rule), "{answer}");
            refused += 1;
        }
    }
    assert!(refused > 0);
}
