//! The sockets of an HTTP voice: plain HTTP to an address that the operator has named.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use sound::speech::SpeechTransport;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use url::Url;

/// Called on a thread of the prompt renderer, works on the runtime.
pub struct PlainHttp(pub Handle);

impl SpeechTransport for PlainHttp {
    fn post(
        &self,
        url: &str,
        json: String,
        byte_limit: usize,
        time: Duration,
    ) -> Result<Vec<u8>, String> {
        let work = async {
            tokio::time::timeout(time, post(url, json, byte_limit))
                .await
                .map_err(|_| format!("no answer within {time:?}"))?
                .map_err(|error| format!("{error:#}"))
        };
        self.0.block_on(work)
    }
}

async fn post(url: &str, json: String, byte_limit: usize) -> anyhow::Result<Vec<u8>> {
    let url: Url = url.parse()?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = Request::post(path)
        .header(HOST, format!("{host}:{port}"))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "audio/wav")
        .body(Full::new(Bytes::from(json)))?;
    let answer = sender.send_request(request).await?;
    anyhow::ensure!(answer.status() == 200, "HTTP status {}", answer.status());
    // A megabyte too much is not read to its end.
    let body = Limited::new(answer.into_body(), byte_limit).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(body.to_bytes().to_vec())
}
