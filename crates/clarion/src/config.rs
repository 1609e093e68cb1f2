//! Settings: the compiled-in defaults, then the operator's file, then the environment. The only place that reads the environment.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ipnet::IpNet;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde::Deserialize;
use toml::{Table, Value};

use crate::domain::bill::rating::{Rate, WrittenRate};
use crate::domain::callback::RetrySchedule;
use crate::domain::phone_number::NumberingPlan;
use crate::domain::route::TrunkConfig;
use crate::store::Database;

/// Every setting with its default and one comment: the reference is the program.
pub const DEFAULTS: &str = include_str!("../../../config.default.toml");
/// Read when no file is named and this one is there.
const USUAL_FILE: &str = "clarion.toml";
const ENVIRONMENT: &str = "CLARION_";
const FILE_VARIABLE: &str = "CLARION_CONFIG";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub data_dir: PathBuf,
    database: String,
    time_zone: String,
    pub http: HttpConfig,
    pub limits: LimitsConfig,
    pub calls: CallsConfig,
    pub callbacks: CallbacksConfig,
    pub numbers: NumberingPlan,
    pub voices: VoicesConfig,
    pub speech: SpeechConfig,
    pub prompts: PromptsConfig,
    pub rates: RatesConfig,
    pub bills: BillsConfig,
    pub dispatch: DispatchConfig,
    pub media: MediaConfig,
    #[serde(rename = "trunk")]
    pub trunks: Vec<TrunkConfig>,
    pub log: LogConfig,
}

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
pub struct VoicesConfig {
    folder: PathBuf,
    pub max_upload_bytes: usize,
    pub upload_seconds: u64,
    pub uploads_at_once: usize,
    pub max_seconds: u32,
    pub max_files: usize,
}

impl VoicesConfig {
    pub fn limits(&self) -> sound::wav::Limits {
        sound::wav::Limits {
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

    fn check(&self) -> anyhow::Result<()> {
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
    folder: PathBuf,
    pub grace_seconds: u32,
    pub retention_days: u32,
    pub token_hours: u32,
    pub bill_json_key: BillJsonKey,
    pub max_filtered_files: usize,
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

impl Config {
    /// The settings of this process: defaults, file, environment.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let environment: Vec<_> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(ENVIRONMENT))
            .collect();
        let named = environment.iter().find(|(name, _)| name == FILE_VARIABLE);
        let path = file
            .map(Path::to_owned)
            .or_else(|| named.map(|(_, path)| PathBuf::from(path)))
            .or_else(|| Some(PathBuf::from(USUAL_FILE)).filter(|path| path.exists()));
        let text = match &path {
            None => String::new(),
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the configuration {}", path.display()))?,
        };
        Self::from_parts(&text, &environment).with_context(|| {
            path.map_or("in the settings".to_owned(), |path| {
                format!("in {}", path.display())
            })
        })
    }

    /// Defaults overlaid with a file's text and with variables, both already read.
    pub fn from_parts(file: &str, environment: &[(String, String)]) -> anyhow::Result<Self> {
        let defaults: Table = DEFAULTS
            .parse()
            .expect("the default configuration is tested");
        let mut settings = defaults.clone();
        overlay(&mut settings, file.parse::<Table>()?, "")?;
        for (name, value) in environment.iter().filter(|(name, _)| name != FILE_VARIABLE) {
            let path = name[ENVIRONMENT.len()..]
                .to_ascii_lowercase()
                .replace("__", ".");
            let wrapped = nested(&path, from_variable(&defaults, &path, value));
            overlay(&mut settings, wrapped, "")
                .with_context(|| format!("in the variable {name}"))?;
        }
        let config: Self = Value::Table(settings).try_into()?;
        config.check()?;
        Ok(config)
    }

    pub fn voices_folder(&self) -> PathBuf {
        if self.voices.folder.as_os_str().is_empty() {
            return self.data_dir.join("voices");
        }
        self.voices.folder.clone()
    }

    pub fn bills_folder(&self) -> PathBuf {
        if self.bills.folder.as_os_str().is_empty() {
            return self.data_dir.join("bills");
        }
        self.bills.folder.clone()
    }

    fn check_bills(&self) -> anyhow::Result<()> {
        self.rates.defaults()?;
        if self.rates.reserve_seconds == 0 {
            bail!("rates.reserve_seconds must be at least 1");
        }
        let address = &self.http.public_url;
        let http = address.starts_with("https://") || address.starts_with("http://");
        if !address.is_empty() && (!http || address.contains(['?', '#'])) {
            bail!("http.public_url must be an address such as https://voice.example.com:8883");
        }
        for (name, value, most) in [
            ("bills.retention_days", self.bills.retention_days, 36_500),
            ("bills.token_hours", self.bills.token_hours, 8760),
        ] {
            if !(1..=most).contains(&value) {
                bail!("{name} must be from 1 to {most}");
            }
        }
        if self.bills.retention_days < 3 || self.bills.grace_seconds > 43_200 {
            bail!("bills: retention_days must be at least 3, grace_seconds at most 43200");
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        self.check_bills()?;
        self.database().map_err(anyhow::Error::msg)?;
        self.time_zone()?;
        self.callbacks.check()?;
        if self.http.certificate.as_os_str().is_empty()
            != self.http.private_key.as_os_str().is_empty()
        {
            bail!("http.certificate and http.private_key: name both, or none to have them made");
        }
        if !self.speech.url.is_empty() && !self.speech.url.starts_with("http://") {
            bail!("speech.url must begin with http://; for https, name a command that asks for it");
        }
        if !self.speech.url.is_empty() && !self.speech.command.is_empty() {
            bail!("speech.command and speech.url: name one of them");
        }
        if self.voices.uploads_at_once == 0 {
            bail!("voices.uploads_at_once must be at least 1");
        }
        if self.http.listen.is_empty() {
            bail!("http.listen: name at least one address");
        }
        if self.numbers.country_code.is_empty()
            || !self
                .numbers
                .country_code
                .bytes()
                .all(|b| b.is_ascii_digit())
        {
            bail!("numbers.country_code must be digits, such as 86");
        }
        if !self.numbers.default_caller.is_empty() && self.numbers.default_caller().is_none() {
            bail!(
                "numbers.default_caller: `{}` is not a telephone number",
                self.numbers.default_caller
            );
        }
        for (place, trunk) in self.trunks.iter().enumerate() {
            trunk
                .check()
                .map_err(|why| anyhow::anyhow!("trunk {}: {why}", trunk.name))?;
            if self.trunks[..place]
                .iter()
                .any(|other| other.name == trunk.name)
            {
                bail!("trunk {}: there are two of this name", trunk.name);
            }
        }
        self.rtp_ports()?;
        // None of these means "no limit" when it is 0: nothing would be served at all.
        for (name, value) in [
            ("http.max_connections", self.http.max_connections as u64),
            ("http.head_seconds", self.http.head_seconds),
            ("http.body_seconds", self.http.body_seconds),
        ] {
            if !(1..=1_000_000).contains(&value) {
                bail!("{name} must be from 1 to 1000000");
            }
        }
        // What clients may rely on; a smaller body would refuse fields that are within their own limits.
        if self.http.max_body_bytes < 1024 {
            bail!("http.max_body_bytes must be at least 1024");
        }
        Ok(())
    }

    pub fn rtp_ports(&self) -> anyhow::Result<std::ops::RangeInclusive<u16>> {
        let ports = self.media.ports.split_once('-');
        let parsed =
            ports.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        match parsed {
            Some((first, last)) if first < last => Ok(first..=last),
            _ => bail!("media.ports: write two ports, such as 20000-29999"),
        }
    }

    pub fn database(&self) -> Result<Database, String> {
        if self.database.is_empty() {
            return Ok(Database::Sqlite(self.data_dir.join("clarion.db")));
        }
        Database::parse(&self.database)
    }

    /// Named by the operator, rather than the system's.
    pub fn has_time_zone(&self) -> bool {
        !self.time_zone.is_empty()
    }

    pub fn time_zone(&self) -> anyhow::Result<TimeZone> {
        if self.time_zone.is_empty() {
            return Ok(TimeZone::system());
        }
        TimeZone::get(&self.time_zone).with_context(|| {
            format!(
                "time_zone: `{}` is not an IANA time zone such as Asia/Shanghai",
                self.time_zone
            )
        })
    }
}

/// Lays `over` on top of `base`. The defaults name every setting, so a name that is not there is a mistake.
fn overlay(base: &mut Table, over: Table, path: &str) -> anyhow::Result<()> {
    for (name, value) in over {
        let full = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match (base.get_mut(&name), value) {
            (None, _) => bail!(
                "there is no setting `{full}`{}",
                suggestion(base, &name, path)
            ),
            (Some(Value::Table(inner)), Value::Table(value)) => overlay(inner, value, &full)?,
            (Some(Value::Table(_)), _) => {
                bail!("`{full}` is a section, not a setting: write [{full}]")
            }
            (Some(slot), value) if slot.same_type(&value) => *slot = value,
            (Some(slot), value) => bail!(
                "`{full}` must be of type {}, not {}",
                slot.type_str(),
                value.type_str()
            ),
        }
    }
    Ok(())
}

fn suggestion(known: &Table, name: &str, path: &str) -> String {
    let nearest = known
        .keys()
        .map(|key| (strsim::jaro_winkler(key, name), key))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, key)) if likeness > 0.6 && path.is_empty() => {
            format!("; did you mean `{key}`?")
        }
        Some((likeness, key)) if likeness > 0.6 => format!("; did you mean `{path}.{key}`?"),
        _ => format!(
            "; known here are: {}",
            known.keys().cloned().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A variable's text as a value of the type that the default has.
fn from_variable(defaults: &Table, path: &str, text: &str) -> Value {
    let default = path
        .split('.')
        .try_fold(&Value::Table(defaults.clone()), |value, name| {
            value.get(name)
        })
        .cloned();
    match default {
        Some(Value::String(_)) | None => Value::String(text.to_owned()),
        Some(_) => {
            let parsed = format!("value = {text}")
                .parse::<Table>()
                .ok()
                .and_then(|mut table| table.remove("value"));
            parsed.unwrap_or_else(|| Value::String(text.to_owned()))
        }
    }
}

fn nested(path: &str, value: Value) -> Table {
    let (name, inner) = match path.split_once('.') {
        None => (path, value),
        Some((name, rest)) => (name, Value::Table(nested(rest, value))),
    };
    Table::from_iter([(name.to_owned(), inner)])
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

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, environment: &[(&str, &str)]) -> anyhow::Result<Config> {
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Config::from_parts(file, &environment)
    }

    fn error(file: &str, environment: &[(&str, &str)]) -> String {
        format!("{:#}", load(file, environment).unwrap_err())
    }

    #[test]
    fn the_defaults_are_complete_and_sound() {
        let config = load("", &[]).unwrap();
        assert_eq!(config.http.soft_versions, ["2013-12-26", "2013-03-22"]);
        assert_eq!(config.callbacks.schedule().waits.len(), 9);
        assert_eq!(
            config.database().unwrap(),
            Database::Sqlite("clarion-data/clarion.db".into())
        );
    }

    #[test]
    fn every_setting_has_a_comment() {
        let mut explained = false;
        for line in DEFAULTS.lines() {
            let is_setting = line.contains(" = ");
            assert!(!is_setting || line.starts_with('#') || explained, "{line}");
            explained = line.starts_with('#') || (explained && is_setting);
        }
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_defaults() {
        let file =
            "time_zone = \"Asia/Shanghai\"\n[http]\nlisten = [\"127.0.0.1:1\"]\nmax_headers = 7";
        let environment = [
            ("CLARION_HTTP__LISTEN", "[\"127.0.0.1:2\"]"),
            ("CLARION_DATA_DIR", "/srv/x"),
        ];
        let config = load(file, &environment).unwrap();
        assert_eq!(config.http.listen, ["127.0.0.1:2".parse().unwrap()]);
        assert_eq!(
            (config.http.max_headers, config.data_dir),
            (7, PathBuf::from("/srv/x"))
        );
    }

    #[test]
    fn a_mistake_is_named_and_the_nearest_setting_suggested() {
        assert_eq!(
            error("[http]\nlissen = 1", &[]),
            "there is no setting `http.lissen`; did you mean `http.listen`?"
        );
        assert!(error("[htp]\n", &[]).contains("did you mean `http`?"));
        assert!(error("", &[("CLARION_HTTP__LISSEN", "1")]).contains("CLARION_HTTP__LISSEN"));
        assert!(
            error("[http]\nmax_headers = \"many\"", &[])
                .contains("`http.max_headers` must be of type integer")
        );
        assert!(error("time_zone = \"Peking\"", &[]).contains("IANA"));
        assert!(error("database = \"mysql:x\"", &[]).contains("sqlite:"));
        assert!(error("[http]\ncertificate = \"x\"", &[]).contains("private_key"));
        assert!(error("[numbers]\ndefault_caller = \"x\"", &[]).contains("default_caller"));
        assert!(error("[http]\nhead_seconds = 0", &[]).contains("http.head_seconds must be"));
        assert!(error("[http]\nmax_connections = 9000000000000000000", &[]).contains("from 1 to"));
        assert!(error("[callbacks]\nper_host = 0", &[]).contains("callbacks.per_host must be"));
        assert!(error("[callbacks]\nlease_seconds = 16", &[]).contains("at least 2 more"));
        assert!(error("[callbacks]\nretry_seconds = [-1]", &[]).contains("retry_seconds"));
        assert!(error("[callbacks]\njitter = 2.0", &[]).contains("jitter"));
        assert!(error("[http]\ntrusted_proxies = [\"nowhere\"]", &[]).contains("nowhere"));
    }
}
