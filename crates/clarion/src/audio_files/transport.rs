//! Sends the requests to an HTTP voice, with the server's one HTTP client, to an address that the operator has named.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use sound::speech::SpeechTransport;
use tokio::runtime::Handle;

use crate::outgoing::address_policy::AddressPolicy;
use crate::outgoing::resolver::SystemResolver;
use crate::outgoing::{HttpClient, trusted_roots};

/// Is called on a thread of the prompt renderer, and does its work on the runtime.
#[derive(Debug)]
pub struct SpeechClient {
    client: HttpClient,
    runtime: Handle,
}

impl SpeechClient {
    pub fn new(ca_file: Option<&Path>, runtime: Handle) -> anyhow::Result<Self> {
        let client = HttpClient::new(
            trusted_roots(ca_file).context("speech.ca_file")?,
            AddressPolicy::Any,
            Arc::new(SystemResolver::default()),
            HeaderValue::from_static("Clarion"),
        )?;
        Ok(Self { client, runtime })
    }

    async fn ask(
        &self,
        url: &str,
        json: String,
        byte_limit: usize,
        time: Duration,
    ) -> anyhow::Result<Vec<u8>> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("audio/wav"));
        let response = self
            .client
            .post("the operator", url, headers, json.into(), time)
            .await?;
        ensure!(response.status == 200, "HTTP status {}", response.status);
        Ok(response.read_whole(byte_limit).await?)
    }
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
