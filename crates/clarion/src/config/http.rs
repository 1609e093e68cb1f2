//! `[http]`: where clients connect, and how much they may send.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::section::{Mistake, Section};
use super::values::{HttpUrl, PemFiles, parse_network};

/// Largest value of a limit. A limit of 0 does not mean "no limit": nothing would be served.
const LARGEST: u32 = 1_000_000;
/// Clients may rely on a body of this size. A smaller limit would refuse fields that are within their own limits.
const SMALLEST_BODY: usize = 1024;
const LARGEST_BODY: usize = 1 << 30;

#[derive(Debug, Clone)]
pub struct HttpConfig {
    pub listen: Vec<SocketAddr>,
    pub plain: bool,
    /// `None` makes our own CA and certificate.
    pub certificate: Option<PemFiles>,
    pub host_names: Vec<String>,
    pub trusted_proxies: Vec<IpNet>,
    pub soft_versions: Vec<String>,
    pub public_url: Option<HttpUrl>,
    pub metrics_networks: Vec<IpNet>,
    pub max_connections: usize,
    pub max_connections_of_address: usize,
    pub head_time: Duration,
    pub body_time: Duration,
    pub stop_time: Duration,
    pub max_headers: usize,
    pub max_header_bytes: u32,
    pub max_body_bytes: usize,
    /// Of alerts at an intake.
    pub max_alert_bytes: usize,
}

impl HttpConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let max_connections = section.number("max_connections", 1..=LARGEST as usize)?;
        let of_address = section.number("max_connections_of_address", 0..=LARGEST as usize)?;
        Ok(Self {
            listen: listen(section)?,
            plain: section.flag("plain")?,
            certificate: PemFiles::read(section)?,
            host_names: section.list("host_names", host_name)?,
            trusted_proxies: section.list("trusted_proxies", parse_network)?,
            soft_versions: section.list("soft_versions", path_segment)?,
            public_url: public_url(section)?,
            metrics_networks: section.list("metrics_networks", parse_network)?,
            max_connections,
            max_connections_of_address: match of_address {
                0 => max_connections.div_ceil(2),
                limit => limit,
            },
            head_time: section.seconds("head_seconds", 1..=LARGEST)?,
            body_time: section.seconds("body_seconds", 1..=LARGEST)?,
            stop_time: section.seconds("stop_seconds", 0..=LARGEST)?,
            max_headers: section.number("max_headers", 0..=LARGEST as usize)?,
            max_header_bytes: section.number("max_header_bytes", 0..=u32::MAX)?,
            max_body_bytes: section.number("max_body_bytes", SMALLEST_BODY..=LARGEST_BODY)?,
            max_alert_bytes: section.number("max_alert_bytes", SMALLEST_BODY..=LARGEST_BODY)?,
        })
    }
}

fn listen(section: &mut Section) -> Result<Vec<SocketAddr>, Mistake> {
    let addresses = section.list("listen", |text| {
        text.parse()
            .map_err(|_| format!("`{text}` is not an address with a port such as 0.0.0.0:8883"))
    })?;
    if addresses.is_empty() {
        return Err(section.mistake("listen", "name at least one address"));
    }
    Ok(addresses)
}

fn public_url(section: &mut Section) -> Result<Option<HttpUrl>, Mistake> {
    let url: Option<HttpUrl> = section.parsed_or_none("public_url", str::parse)?;
    match url {
        Some(url) if !url.ends_with_path() => {
            Err(section.mistake("public_url", "must have neither ? nor #"))
        }
        url => Ok(url),
    }
}

fn host_name(text: &str) -> Result<String, String> {
    let of_a_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.:*".contains(letter);
    if text.is_empty() || !text.chars().all(of_a_name) {
        return Err(format!("`{text}` is neither a name nor an address"));
    }
    Ok(text.to_owned())
}

fn path_segment(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '?', '#']) {
        return Err(format!("`{text}` cannot be the first part of a path"));
    }
    Ok(text.to_owned())
}
