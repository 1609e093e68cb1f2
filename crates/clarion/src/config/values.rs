//! Values that several settings and options share, parsed from text.

use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use g711::Codec;
use ipnet::IpNet;
use url::Url;

use super::section::{Mistake, Section};
use crate::domain::wording::{Wording, wording};

/// Parses a network. A single address is a network of its own.
pub fn parse_network(text: &str) -> Result<IpNet, Wording> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| {
            wording!(
                "`{text}` is not an address such as 192.0.2.7 or a network such as 192.0.2.0/24",
                "`{text}` 不是 IP 地址（如 192.0.2.7）或网段（如 192.0.2.0/24）"
            )
        })
}

/// Parses the first and the last port of a range.
pub fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let ports = text.split_once('-');
    let parsed = ports.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match parsed {
        Some((first, last)) if first < last => Ok(first..=last),
        _ => Err("write two ports, such as 20000-29999".to_owned()),
    }
}

pub fn parse_codec(text: &str) -> Result<Codec, String> {
    Codec::by_name(text).ok_or_else(|| format!("there is no {text}; PCMA and PCMU are spoken"))
}

pub(super) fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not an address such as 203.0.113.7"))
}

/// A web address, kept as it was written, because others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    written: String,
    url: Url,
}

impl HttpUrl {
    pub fn as_str(&self) -> &str {
        &self.written
    }

    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns whether nothing follows the path.
    pub fn ends_with_path(&self) -> bool {
        self.url.query().is_none() && self.url.fragment().is_none()
    }

    /// Returns whether it names a server and nothing below it.
    pub fn is_bare(&self) -> bool {
        let has_user = !self.url.username().is_empty() || self.url.password().is_some();
        self.ends_with_path() && self.url.path() == "/" && !has_user
    }

    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// Returns the host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or("").trim_matches(['[', ']'])
    }
}

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an address such as https://voice.example.com:8883");
        let url = Url::parse(text).map_err(|_| wrong())?;
        let begins_well = text.starts_with("https://") || text.starts_with("http://");
        if !begins_well || !url.has_host() {
            return Err(wrong());
        }
        Ok(Self {
            written: text.to_owned(),
            url,
        })
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A certificate chain and its private key, as PEM files. The code that uses the files reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PemFiles {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
}

impl PemFiles {
    /// Takes the settings `certificate` and `private_key`.
    pub(super) fn read(section: &mut Section) -> Result<Option<Self>, Mistake> {
        let certificate = section.path_or_none("certificate")?;
        let private_key = section.path_or_none("private_key")?;
        match (certificate, private_key) {
            (Some(certificate), Some(private_key)) => Ok(Some(Self {
                certificate,
                private_key,
            })),
            (None, None) => Ok(None),
            _ => Err(section.mistake(
                "certificate",
                "name it together with private_key, or neither of them",
            )),
        }
    }
}

/// No secret is longer.
const LONGEST_SECRET: u64 = 4096;

/// Reads a secret from a file of its own.
pub fn secret_in(file: &Path) -> Result<String, String> {
    let opened = std::fs::File::open(file).map_err(|error| format!("cannot read it: {error}"));
    let secret = opened.and_then(read_secret);
    secret.map_err(|rule| format!("{}: {rule}", file.display()))
}

/// Reads a secret: one line, without its end.
pub fn read_secret(from: impl Read) -> Result<String, String> {
    let mut text = String::new();
    let read = from.take(LONGEST_SECRET).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read it: {error}"))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() || secret.contains(['\r', '\n']) {
        return Err("must be one line".to_owned());
    }
    Ok(secret.to_owned())
}
