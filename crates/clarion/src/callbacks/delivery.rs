//! Delivers a callback once: sends one POST and judges its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use jiff::{SignedDuration, Timestamp};

use crate::config::CallbacksConfig;
use crate::domain::callback::{ClaimedCallback, DeliveryResult, judge, requested_wait, sign};
use crate::outgoing::address_policy::AddressPolicy;
use crate::outgoing::resolver::Resolve;
use crate::outgoing::{HttpClient, HttpResponse, RequestDeadline, SendError, trusted_roots};

/// How many bytes of the answer are searched for a statuscode.
const READ: usize = 8192;
/// How many bytes of the answer are kept for the operator.
const KEPT: usize = 500;

/// The result of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookResponse {
    pub verdict: DeliveryResult,
    pub status: Option<u16>,
    pub error: Option<String>,
    pub answer: Option<String>,
    /// The wait that the receiver asked for.
    pub asked: Option<SignedDuration>,
}

impl From<SendError> for WebhookResponse {
    fn from(error: SendError) -> Self {
        let (verdict, error) = match error {
            SendError::Blocked(address) => (
                DeliveryResult::Blocked,
                format!("{address} is neither public nor in callbacks.allowed_networks"),
            ),
            SendError::Unreachable(error) => (DeliveryResult::Unreachable, error),
            SendError::TlsFailed(error) => (DeliveryResult::TlsFailed, error),
            SendError::TimedOut(_) => (DeliveryResult::TimedOut, error.to_string()),
            SendError::Broken(_) | SendError::TooLong(_) => {
                (DeliveryResult::Broken, error.to_string())
            }
        };
        Self {
            verdict,
            status: None,
            error: Some(error),
            answer: None,
            asked: None,
        }
    }
}

#[derive(Debug)]
pub struct WebhookSender {
    client: HttpClient,
    time: Duration,
}

impl WebhookSender {
    pub fn new(config: &CallbacksConfig, resolver: Arc<dyn Resolve>) -> anyhow::Result<Self> {
        let roots = trusted_roots(config.ca_file.as_deref()).context("callbacks.ca_file")?;
        let policy = AddressPolicy::PublicAnd(config.allowed_networks.clone());
        let user_agent = config.user_agent.clone();
        Ok(Self {
            client: HttpClient::new(roots, policy, resolver, user_agent)?,
            time: config.time_limit,
        })
    }

    /// Delivers a callback, if there is a place at the address to which its URL leads; `None` if there is none. It never fails: every failure
    /// is a response with a verdict.
    pub async fn deliver(
        &self,
        callback: &ClaimedCallback,
        now: Timestamp,
        has_place: impl FnOnce(IpAddr) -> bool,
    ) -> Option<WebhookResponse> {
        let (account, limit) = (callback.account.as_str(), RequestDeadline::new(self.time));
        let found = self.client.find(account, callback.url.as_str(), limit);
        let destination = match found.await {
            Ok(destination) => destination,
            Err(error) => return Some(error.into()),
        };
        if !has_place(destination.address) {
            return None;
        }
        let (headers, body) = (headers(callback, now), Bytes::from(callback.body.clone()));
        let sent = self.client.post_to(&destination, headers, body, limit);
        Some(match sent.await {
            Ok(response) => read(response, now).await,
            Err(error) => error.into(),
        })
    }
}

fn headers(callback: &ClaimedCallback, now: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let content_type = if callback.lease.key.is_silence() {
        "application/json"
    } else {
        "text/plain"
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert("webhook-timestamp", now.as_second().into());
    let signature = callback
        .secret
        .as_ref()
        .map(|secret| sign(secret, &callback.webhook_id, now, &callback.body));
    let texts = [
        ("webhook-id", Some(callback.webhook_id.clone())),
        ("webhook-signature", signature),
    ];
    for (name, text) in texts {
        // We make both texts, of characters that a header may contain.
        if let Some(Ok(value)) = text.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Reads a response. A body that breaks off does not change its status.
async fn read(response: HttpResponse, now: Timestamp) -> WebhookResponse {
    let status = response.status;
    let retry_after = response.headers.get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok());
    let asked = requested_wait(status, retry_after, now);
    let bytes = response.read_beginning(READ).await;
    let (verdict, error) = judge(status, &String::from_utf8_lossy(&bytes));
    WebhookResponse {
        verdict,
        status: Some(status),
        error,
        answer: Some(kept(&bytes)).filter(|text| !text.is_empty()),
        asked,
    }
}

/// Returns the first bytes as text that every database accepts and that cannot control a terminal.
fn kept(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]);
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars()
        .map(|c| {
            if harmless(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}
