//! `[[trunk]]`, read once: its routing in the types of `domain`, its SIP in those of `phone`. `check`, dispatch and phone use the same
//! value.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use phone::signalling::{Host, SignallingConfig, TlsFiles, Transport};
use phone::trunk::{Identity, NumberForm, RedirectHosts, SipTrunkConfig};
use toml::Table;

use super::named_tables::read_named;
use super::section::{Mistake, Section};
use super::trunk_credentials::{PasswordPlace, credentials, password};
use super::trunk_media::media;
use super::values::{PemFiles, parse_network};
use crate::domain::call_window::CallWindow;
use crate::domain::prefix::Prefix;
use crate::domain::response_policy::{ResponsePolicy, ResponseRule};
use crate::domain::route::{Rewrite, TrunkRoute};

/// Every setting of a trunk with its default.
pub const TRUNK_DEFAULTS: &str = include_str!("trunk.default.toml");

const LONGEST: u32 = 86_400;

/// One trunk as the operator describes it.
#[derive(Debug, Clone)]
pub struct TrunkSettings {
    /// The name of the trunk, and which numbers it carries, in which form and in which order.
    pub route: TrunkRoute,
    /// Calls at once, and calls started per second, of all nodes together.
    pub channels: u32,
    pub calls_per_second: u32,
    /// Our own end of the trunk.
    pub endpoint: EndpointSettings,
    /// For a loopback trunk the host is this machine. Its port is known only after its telephone has started.
    pub sip: SipTrunkConfig,
    /// All calls of the trunk use one pair of ports.
    pub shared_port: bool,
    pub loopback: Option<LoopbackSettings>,
    /// What becomes of calls that it refuses.
    pub policy: ResponsePolicy,
    pub health: TrunkHealthSettings,
    pub password_place: PasswordPlace,
}

/// When a trunk whose calls fail is left alone, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct TrunkHealthSettings {
    /// Different numbers in a row that it refused.
    pub refusals: u32,
    /// From one call that tries it to the next, where it refuses every number.
    pub refusal_pause: Duration,
    /// Different numbers in a row to which it said nothing.
    pub timeouts: u32,
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

/// Where SIP is sent from and received at.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    pub transport: Transport,
    pub bind: SocketAddr,
    /// The address that the trunk is told instead, if it differs.
    pub advertised: Option<SocketAddr>,
    /// The authorities of the peer's certificate, and our own certificate. Both are read only for TLS.
    pub ca: PathBuf,
    pub certificate: Option<PemFiles>,
}

/// A trunk that leads to a telephone in the server itself, for trying things out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopbackSettings {
    /// Folder for recordings of the sound that this telephone hears.
    pub record: Option<PathBuf>,
}

impl TrunkSettings {
    pub fn name(&self) -> &str {
        &self.route.name
    }

    /// Returns the host to which the packets go; the first, where the trunk has several.
    pub fn peer(&self) -> &Host {
        self.sip.proxy.as_ref().unwrap_or(&self.sip.host)
    }

    /// Returns all hosts to which packets may go.
    pub fn peers(&self) -> impl Iterator<Item = &Host> {
        std::iter::once(self.peer()).chain(&self.sip.more_hosts)
    }

    pub fn transport(&self) -> Transport {
        self.endpoint.transport
    }

    /// Returns our endpoint as `phone` starts it. Certificates are read only here, because not every command that reads settings may read
    /// the key.
    pub fn signalling(&self) -> anyhow::Result<SignallingConfig> {
        let endpoint = &self.endpoint;
        let mut signalling = SignallingConfig::new(endpoint.transport, endpoint.bind);
        signalling.user_agent = format!("Clarion/{}", env!("CARGO_PKG_VERSION"));
        signalling.advertised = endpoint.advertised;
        if endpoint.transport == Transport::Tls {
            signalling.tls = self.tls_files()?;
        }
        Ok(signalling)
    }

    /// Reads the files for TLS. The peer's certificate must name the host to which the packets go.
    fn tls_files(&self) -> anyhow::Result<TlsFiles> {
        let read = |path: &Path| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let own = match &self.endpoint.certificate {
            Some(files) => Some((read(&files.certificate)?, read(&files.private_key)?)),
            None => None,
        };
        Ok(TlsFiles {
            authorities: read(&self.endpoint.ca)?,
            peer_name: Some(self.peer().name.clone()),
            own,
        })
    }
}

/// Reads all trunks, in the order of the file. A wrong trunk adds its mistakes.
pub(super) fn read_all(tables: Vec<Table>, mistakes: &mut Vec<Mistake>) -> Vec<TrunkSettings> {
    read_named(
        "trunk",
        TRUNK_DEFAULTS,
        tables,
        mistakes,
        read,
        TrunkSettings::name,
    )
}

fn read(section: &mut Section) -> Result<TrunkSettings, Mistake> {
    let route = route(section)?;
    let loopback = loopback(section)?;
    let channels = section.number("channels", 0..=u32::MAX)?;
    let calls_per_second = section.number("calls_per_second", 0..=u32::MAX)?;
    if calls_per_second == 0 && channels > 0 {
        return Err(section.mistake("calls_per_second", "must be at least 1"));
    }
    let (password, password_place) = password(section)?;
    Ok(TrunkSettings {
        endpoint: endpoint(section, loopback.is_some())?,
        sip: sip(section, &route, loopback.is_some(), password)?,
        password_place,
        shared_port: section.flag("shared_port")?,
        policy: policy(section)?,
        health: health(section)?,
        route,
        channels,
        calls_per_second,
        loopback,
    })
}

fn health(section: &mut Section) -> Result<TrunkHealthSettings, Mistake> {
    let first_pause = section.seconds("pause_seconds", 1..=LONGEST)?;
    let longest_pause = section.seconds("longest_pause_seconds", 1..=LONGEST)?;
    if longest_pause < first_pause {
        let rule = "must not be shorter than pause_seconds";
        return Err(section.mistake("longest_pause_seconds", rule));
    }
    Ok(TrunkHealthSettings {
        refusals: section.number("refusals", 1..=10_000)?,
        refusal_pause: section.seconds("refusal_pause_seconds", 1..=LONGEST)?,
        timeouts: section.number("timeouts", 1..=10_000)?,
        first_pause,
        longest_pause,
    })
}

fn policy(section: &mut Section) -> Result<ResponsePolicy, Mistake> {
    let kind = section.parsed("carrier")?;
    let own = section.elements("responses", response_rule)?;
    Ok(ResponsePolicy::new(own, kind))
}

/// `{ code = "603", phrase = "suspended", then = "trunk-down" }`. Code and Q.850 cause may be ranges.
fn response_rule(section: &mut Section) -> Result<ResponseRule, Mistake> {
    let codes = section.number_or_text("code", |text| range(text, &(300..=699)))?;
    let q850 = if section.has("q850") {
        Some(section.number_or_text("q850", |text| range(text, &(1..=127)))?)
    } else {
        None
    };
    let phrase = if section.has("phrase") {
        section.text_or_none("phrase")?
    } else {
        None
    };
    let then = section.parsed("then")?;
    Ok(ResponseRule {
        codes,
        q850,
        phrase,
        then,
    })
}

/// `503`, or `500-599`.
fn range<T>(text: &str, within: &RangeInclusive<T>) -> Result<RangeInclusive<T>, String>
where
    T: FromStr + PartialOrd + Copy + std::fmt::Display,
{
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<T>().ok();
    let read = number(first).zip(number(last));
    let read = read
        .filter(|(first, last)| first <= last && within.contains(first) && within.contains(last));
    read.map(|(first, last)| first..=last).ok_or_else(|| {
        let (least, most) = (within.start(), within.end());
        format!("`{text}` is no number from {least} to {most}, nor a range of them such as {least}-{most}")
    })
}

fn loopback(section: &mut Section) -> Result<Option<LoopbackSettings>, Mistake> {
    let record = section.path_or_none("record")?;
    let loopback = section.flag("loopback")?;
    Ok(loopback.then_some(LoopbackSettings { record }))
}

fn route(section: &mut Section) -> Result<TrunkRoute, Mistake> {
    let prefixes = section.list("prefixes", prefix)?;
    if prefixes.is_empty() {
        let rule = "name what may be called, such as [\"86\"]; [\"\"] is everything";
        return Err(section.mistake("prefixes", rule));
    }
    Ok(TrunkRoute {
        name: section.parsed_by("name", word)?,
        prefixes,
        priority: section.number("priority", 0..=u32::MAX)?,
        weight: section.number("weight", 0..=1_000_000)?,
        rewrite: section.elements("rewrite", rewrite)?,
        caller_rewrite: section.elements("caller_rewrite", rewrite)?,
        caller: section.text_or_none("caller")?,
        callers: section.list("callers", prefix)?,
        hours: section.parsed_or_none("hours", CallWindow::from_str)?,
    })
}

fn prefix(text: &str) -> Result<Prefix, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = text.parse::<Prefix>().ok().filter(|_| digits);
    prefix.ok_or_else(|| format!("`{text}` must be digits, country code first"))
}

fn word(text: &str) -> Result<String, &'static str> {
    let of_a_word = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.is_empty() || !text.chars().all(of_a_word) {
        return Err("must be a word of letters, digits, - _ .");
    }
    Ok(text.to_owned())
}

fn rewrite(section: &mut Section) -> Result<Rewrite, Mistake> {
    let (from, to) = (section.text("from")?, section.text("to")?);
    Rewrite::new(from, to).map_err(|rule| section.mistake("from", rule))
}

fn endpoint(section: &mut Section, loopback: bool) -> Result<EndpointSettings, Mistake> {
    let socket = |text: &str| {
        text.parse::<SocketAddr>()
            .map_err(|_| format!("`{text}` is not an address with a port such as 192.0.2.7:5060"))
    };
    let bind = section.parsed_by("bind", socket)?;
    Ok(EndpointSettings {
        transport: section.parsed("transport")?,
        bind: if loopback {
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
        } else {
            bind
        },
        advertised: section.parsed_or_none("advertised", socket)?,
        ca: section.text("ca")?.into(),
        certificate: PemFiles::read(section)?,
    })
}

fn sip(
    section: &mut Section,
    route: &TrunkRoute,
    loopback: bool,
    password: String,
) -> Result<SipTrunkConfig, Mistake> {
    let host = section.parsed_or_none("host", str::parse::<Host>)?;
    let host = match (host, loopback) {
        (Some(host), false) => host,
        (None, true) => Host {
            name: Ipv4Addr::LOCALHOST.to_string(),
            port: None,
        },
        _ => return Err(section.mistake("host", "name a host, or set loopback = true")),
    };
    let more_hosts = section.list("hosts", str::parse::<Host>)?;
    let proxy = section.parsed_or_none("proxy", str::parse::<Host>)?;
    if !more_hosts.is_empty() && (loopback || proxy.is_some()) {
        let rule = "have no place beside proxy or loopback";
        return Err(section.mistake("hosts", rule));
    }
    let credentials = credentials(section, password)?;
    let register = section.seconds_or_none("register_seconds", LONGEST)?;
    if register.is_some()
        && credentials
            .as_ref()
            .is_none_or(|own| own.password.is_empty())
    {
        let rule = "a registration needs user and password";
        return Err(section.mistake("register_seconds", rule));
    }
    let ask_every = section.seconds_or_none("options_seconds", LONGEST)?;
    let sip = SipTrunkConfig {
        more_hosts,
        proxy,
        peer_networks: section.list("peer_networks", parse_network)?,
        domain: section.text_or_none("domain")?,
        credentials,
        register,
        ask_every: ask_every.filter(|_| !loopback),
        keep_alive: section.seconds_or_none("keepalive_seconds", LONGEST)?,
        identity: Identity {
            from_user: section.text_or_none("from_user")?,
            asserted: section.flag("asserted_identity")?,
            preferred: section.flag("preferred_identity")?,
            privacy: section.parsed_or_none("privacy", header_value)?,
            diversion: section.text_or_none("diversion")?,
            from_domain: section.text_or_none("from_domain")?,
            contact_user: section.text_or_none("contact_user")?,
            form: number_form(section)?,
            display_name: section.parsed_or_none("display_name", display_name)?,
        },
        headers: section.elements("headers", own_header)?,
        follow_redirects: section.flag("follow_redirects")?,
        redirect_hosts: redirect_hosts(section)?,
        session_interval: section.seconds_or_none("session_seconds", LONGEST)?,
        progress_time: section.seconds_or_none("progress_seconds", LONGEST)?,
        media: media(section, loopback)?,
        ..SipTrunkConfig::new(&route.name, host)
    };
    let without_context = sip.identity.form == NumberForm::Tel { context: None };
    let is_address = sip
        .domain_name()
        .parse::<Host>()
        .is_ok_and(|host| host.address().is_some());
    if without_context && is_address && !route.writes_global_numbers() {
        let rule = "name a domain or a beginning of numbers such as +86: numbers without + need it";
        return Err(section.mistake("phone_context", rule));
    }
    Ok(sip)
}

/// Hosts beside those of the trunk; `*` is every host.
fn redirect_hosts(section: &mut Section) -> Result<RedirectHosts, Mistake> {
    let hosts = section.list("redirect_hosts", |text| match text {
        "*" => Ok(None),
        text => text.parse::<Host>().map(Some),
    })?;
    let these: Option<Vec<Host>> = hosts.into_iter().collect();
    Ok(these.map_or(RedirectHosts::Any, RedirectHosts::These))
}

fn number_form(section: &mut Section) -> Result<NumberForm, Mistake> {
    let context = section.parsed_or_none("phone_context", phone_context)?;
    section.parsed_by("number_form", |text| match text {
        "sip" => Ok(NumberForm::Sip),
        "sip-phone" => Ok(NumberForm::SipPhone),
        "tel" => Ok(NumberForm::Tel {
            context: context.clone(),
        }),
        _ => Err(format!("`{text}` is none of sip, sip-phone, tel")),
    })
}

/// A domain, or the beginning of global numbers (RFC 3966 section 5.1.5).
fn phone_context(text: &str) -> Result<String, String> {
    let begins_numbers = text.strip_prefix('+').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    // The last part of a domain begins with a letter; an address does not.
    let last = text.rsplit('.').next().unwrap_or_default();
    let is_domain = last.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.parse::<Host>().is_ok_and(|host| host.port.is_none());
    if begins_numbers || is_domain {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is neither a domain nor a beginning of numbers such as +86"
    ))
}

/// Headers that every INVITE has by itself, or that settings of their own make, with their short forms; and those that would ask peers for what we
/// do not do.
const OUR_HEADERS: [&str; 35] = [
    "accept",
    "allow",
    "authorization",
    "c",
    "call-id",
    "contact",
    "content-length",
    "content-type",
    "cseq",
    "diversion",
    "expires",
    "f",
    "from",
    "i",
    "k",
    "l",
    "m",
    "max-forwards",
    "min-se",
    "p-asserted-identity",
    "p-preferred-identity",
    "privacy",
    "proxy-authorization",
    "proxy-require",
    "record-route",
    "require",
    "route",
    "session-expires",
    "supported",
    "t",
    "to",
    "user-agent",
    "v",
    "via",
    "x",
];

fn own_header(section: &mut Section) -> Result<(String, String), Mistake> {
    let name = section.parsed_by("name", |name| {
        let of_a_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte);
        if name.is_empty() || !name.bytes().all(of_a_token) {
            return Err("must be the name of a header, such as X-Customer");
        }
        if OUR_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err("is a header that Clarion writes itself");
        }
        Ok(name.to_owned())
    })?;
    let value = section.parsed_by("value", header_value)?;
    Ok((name, value))
}

/// It stands between quotes.
fn display_name(text: &str) -> Result<String, &'static str> {
    if text.contains(['"', '\\']) || text.contains(char::is_control) {
        return Err("must be one line of text without quotes and backslashes");
    }
    Ok(text.to_owned())
}

fn header_value(text: &str) -> Result<String, &'static str> {
    if text.contains(char::is_control) {
        return Err("must be one line of text");
    }
    Ok(text.to_owned())
}
