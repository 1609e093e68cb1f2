//! The sections of the settings, each with its own rules. What a setting means is said beside its default (`config.default.toml`).

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use ipnet::IpNet;
use jiff::SignedDuration;
use serde::Deserialize;

use crate::domain::bill::rating::{Rate, WrittenRate};
use crate::domain::callback::RetrySchedule;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatchConfig {
    pub max_calls: u32,
    pub calls_at_once: u32,
    pub calls_per_second: u32,
    pub callee_per_minute: u32,
    pub callee_per_hour: u32,
    pub callee_per_day: u32,
    pub ring_seconds: u32,
    pub lead_in_ms: u32,
    pub extension_wait_ms: u32,
    pub retry_seconds: u32,
    pub longest_retry_seconds: u32,
    pub redial_after_crash: bool,
    pub stop_seconds: u32,
    pub lease_seconds: u32,
}

impl DispatchConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        // A lease is renewed five times in its life, and an INVITE wants half a second of it left.
        if !(2..=3600).contains(&self.lease_seconds) {
            bail!("dispatch.lease_seconds must be from 2 to 3600");
        }
        if !(1..=600).contains(&self.ring_seconds) {
            bail!("dispatch.ring_seconds must be from 1 to 600");
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaConfig {
    pub bind: String,
    pub advertised: String,
    pub ports: String,
    pub dscp: u8,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    pub listen: Vec<SocketAddr>,
    pub plain: bool,
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    pub host_names: Vec<String>,
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<IpNet>,
    pub soft_versions: Vec<String>,
    pub public_url: String,
    #[serde(deserialize_with = "networks")]
    pub metrics_networks: Vec<IpNet>,
    pub max_connections: usize,
    pub head_seconds: u64,
    pub body_seconds: u64,
    pub stop_seconds: u64,
    pub max_headers: usize,
    pub max_header_bytes: u32,
    pub max_body_bytes: usize,
}

impl HttpConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.certificate.as_os_str().is_empty() != self.private_key.as_os_str().is_empty() {
            bail!("http.certificate and http.private_key: name both, or none to have them made");
        }
        if self.listen.is_empty() {
            bail!("http.listen: name at least one address");
        }
        let address = &self.public_url;
        let http = address.starts_with("https://") || address.starts_with("http://");
        if !address.is_empty() && (!http || address.contains(['?', '#'])) {
            bail!("http.public_url must be an address such as https://voice.example.com:8883");
        }
        // None of these means "no limit" when it is 0: nothing would be served at all.
        for (name, value) in [
            ("max_connections", self.max_connections as u64),
            ("head_seconds", self.head_seconds),
            ("body_seconds", self.body_seconds),
        ] {
            if !(1..=1_000_000).contains(&value) {
                bail!("http.{name} must be from 1 to 1000000");
            }
        }
        // What clients may rely on; a smaller body would refuse fields that are within their own limits.
        if self.max_body_bytes < 1024 {
            bail!("http.max_body_bytes must be at least 1024");
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    pub requests_per_second: u32,
    pub requests_at_once: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallsConfig {
    pub max_files: usize,
    pub max_text_characters: usize,
    pub max_user_data_bytes: usize,
    pub max_talk_seconds: u32,
    pub expire_seconds: u32,
    pub retention_days: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AudioFilesConfig {
    pub(super) folder: PathBuf,
    pub max_upload_bytes: usize,
    pub upload_seconds: u64,
    pub uploads_at_once: usize,
    pub max_seconds: u32,
    pub max_files: usize,
}

impl AudioFilesConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.uploads_at_once == 0 {
            bail!("audio_files.uploads_at_once must be at least 1");
        }
        Ok(())
    }

    pub fn limits(&self) -> sound::wav::WavLimits {
        sound::wav::WavLimits {
            bytes: self.max_upload_bytes,
            seconds: self.max_seconds,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallbacksConfig {
    pub concurrency: u32,
    pub per_host: u32,
    pub time_limit_seconds: u64,
    pub retry_seconds: Vec<f64>,
    pub jitter: f64,
    pub max_retry_after_seconds: u32,
    #[serde(deserialize_with = "networks")]
    pub allowed_networks: Vec<IpNet>,
    pub ca_file: PathBuf,
    pub user_agent: String,
    pub lease_seconds: u32,
    pub poll_seconds: u64,
    pub stop_seconds: u64,
}

impl CallbacksConfig {
    pub fn schedule(&self) -> RetrySchedule {
        let wait = |seconds: &f64| SignedDuration::try_from_secs_f64(*seconds).unwrap_or_default();
        RetrySchedule {
            waits: self.retry_seconds.iter().map(wait).collect(),
            jitter: self.jitter,
            longest_asked: SignedDuration::from_secs(self.max_retry_after_seconds.into()),
        }
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("concurrency", u64::from(self.concurrency)),
            ("per_host", self.per_host.into()),
            ("time_limit_seconds", self.time_limit_seconds),
            ("poll_seconds", self.poll_seconds),
        ] {
            if !(1..=10_000).contains(&value) {
                bail!("callbacks.{name} must be from 1 to 10000");
            }
        }
        // A month: more than anyone waits for.
        if !self
            .retry_seconds
            .iter()
            .all(|wait| (0.0..=2_678_400.0).contains(wait))
        {
            bail!("callbacks.retry_seconds must be from 0 to 2678400 each");
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            bail!("callbacks.jitter must be from 0.0 to 1.0");
        }
        if u64::from(self.lease_seconds) < self.time_limit_seconds + 2 {
            bail!(
                "callbacks.lease_seconds must be at least 2 more than callbacks.time_limit_seconds"
            );
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeechConfig {
    pub program: String,
    pub chinese_voice: String,
    pub english_voice: String,
    pub command: Vec<String>,
    pub url: String,
    pub version: String,
    pub tries: u32,
    pub seconds: u64,
}

impl SpeechConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if !self.url.is_empty() && !self.url.starts_with("http://") {
            bail!("speech.url must begin with http://; for https, name a command that asks for it");
        }
        if !self.url.is_empty() && !self.command.is_empty() {
            bail!("speech.command and speech.url: name one of them");
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptsConfig {
    pub workers: usize,
    pub max_waiting: usize,
    pub memory_mb: u64,
    pub disk_mb: u64,
    pub gap_ms: u64,
    pub failure_seconds: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatesConfig {
    default: Vec<WrittenRate>,
    pub reserve_seconds: u32,
}

impl RatesConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.defaults()?;
        if self.reserve_seconds == 0 {
            bail!("rates.reserve_seconds must be at least 1");
        }
        Ok(())
    }

    pub fn defaults(&self) -> anyhow::Result<Vec<Rate>> {
        let rates = self.default.iter().map(WrittenRate::read);
        rates
            .collect::<Result<_, _>>()
            .map_err(|problem| anyhow::anyhow!("rates.default: {problem}"))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BillsConfig {
    pub(super) folder: PathBuf,
    pub grace_seconds: u32,
    pub retention_days: u32,
    pub token_hours: u32,
    pub bill_json_key: BillJsonKey,
    pub max_filtered_files: usize,
}

impl BillsConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (name, value, least, limit) in [
            ("retention_days", self.retention_days, 3, 36_500),
            ("token_hours", self.token_hours, 1, 8760),
            ("grace_seconds", self.grace_seconds, 0, 43_200),
        ] {
            if !(least..=limit).contains(&value) {
                bail!("bills.{name} must be from {least} to {limit}");
            }
        }
        Ok(())
    }
}

/// How the download address is named in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum BillJsonKey {
    #[serde(rename = "downurl")]
    LowerCase,
    #[serde(rename = "downUrl")]
    AsInXml,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    pub filter: String,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

/// Networks, where a single address stands for itself.
fn networks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts
        .iter()
        .map(|text| parse_network(text).map_err(serde::de::Error::custom))
        .collect()
}

pub fn parse_network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| {
            format!(
                "`{text}` is not an address such as 192.0.2.7 or a network such as 192.0.2.0/24"
            )
        })
}
