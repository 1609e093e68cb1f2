//! Sends the requests to an HTTP voice, with the server's one HTTP client, to an address that the operator has named.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use sound::speech::SpeechTransport;
use sound::wav::Wav;
use tokio::runtime::Handle;

use crate::config::{SpeechServer, secret_in};
use crate::outgoing::address_policy::AddressPolicy;
use crate::outgoing::resolver::SystemResolver;
use crate::outgoing::{HttpClient, trusted_roots};

/// Is called on a thread of the prompt renderer, and does its work on the runtime.
#[derive(Debug)]
pub struct SpeechClient {
    client: HttpClient,
    /// The key among them does not print itself.
    headers: HeaderMap,
    runtime: Handle,
}

impl SpeechClient {
    /// The key is read once, from its file.
    pub fn new(server: &SpeechServer, runtime: Handle) -> anyhow::Result<Self> {
        let client = HttpClient::new(
            trusted_roots(server.ca_file.as_deref()).context("ca_file")?,
            AddressPolicy::Any,
            Arc::new(SystemResolver::default()),
            HeaderValue::from_static("Clarion"),
        )?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("audio/wav"));
        if let Some(file) = &server.key_file {
            headers.insert(AUTHORIZATION, bearer(file)?);
        }
        Ok(Self {
            client,
            headers,
            runtime,
        })
    }

    async fn ask(
        &self,
        url: &str,
        json: String,
        byte_limit: usize,
        time: Duration,
    ) -> anyhow::Result<Vec<u8>> {
        let headers = self.headers.clone();
        let response = self
            .client
            .post("the operator", url, headers, json.into(), time)
            .await?;
        ensure!(response.status == 200, "HTTP status {}", response.status);
        let ends = [CONTENT_LENGTH, TRANSFER_ENCODING];
        let has_end = ends.iter().any(|end| response.headers.contains_key(end));
        let sound = response.read_whole(byte_limit).await?;
        // What the connection's end has ended may be the half of a sentence, and would be kept.
        ensure!(
            has_end || Wav::is_whole(&sound),
            "neither the answer nor the sound tells how long it is, so it may be cut off"
        );
        Ok(sound)
    }
}

fn bearer(file: &Path) -> anyhow::Result<HeaderValue> {
    let key = secret_in(file).map_err(|rule| anyhow!("key_file: {rule}"))?;
    let value = HeaderValue::try_from(format!("Bearer {key}"));
    // What is wrong with it would show a part of it.
    let mut value = value.map_err(|_| anyhow!("key_file: {} holds no key", file.display()))?;
    value.set_sensitive(true);
    Ok(value)
}

impl SpeechTransport for SpeechClient {
    fn post(
        &self,
        url: &str,
        json: String,
        byte_limit: usize,
        time: Duration,
    ) -> Result<Vec<u8>, String> {
        let asked = self.runtime.block_on(self.ask(url, json, byte_limit, time));
        asked.map_err(|error| format!("{error:#}"))
    }
}
