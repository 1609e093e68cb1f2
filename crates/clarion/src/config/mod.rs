//! Settings: the compiled-in defaults, then the operator's file, then the environment. The only place that reads the environment.

mod overlay;
mod sections;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::tz::TimeZone;
use serde::Deserialize;
use toml::{Table, Value};

use self::overlay::{from_variable, nested, overlay};
pub use self::sections::{
    AudioFilesConfig, BillJsonKey, BillsConfig, CallbacksConfig, CallsConfig, DispatchConfig,
    HttpConfig, LimitsConfig, LogConfig, LogFormat, MediaConfig, PromptsConfig, RatesConfig,
    SpeechConfig, parse_network,
};
use crate::domain::phone_number::NumberingPlan;
use crate::domain::route::TrunkConfig;
use crate::store::Database;

/// Every setting with its default and one comment: the reference is the program.
pub const DEFAULTS: &str = include_str!("../../../../config.default.toml");
/// Read when no file is named and this one is there.
const USUAL_FILE: &str = "clarion.toml";
const ENVIRONMENT: &str = "CLARION_";
const FILE_VARIABLE: &str = "CLARION_CONFIG";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub data_dir: PathBuf,
    pub min_free_mb: u64,
    database: String,
    time_zone: String,
    pub http: HttpConfig,
    pub limits: LimitsConfig,
    pub calls: CallsConfig,
    pub callbacks: CallbacksConfig,
    pub numbers: NumberingPlan,
    pub audio_files: AudioFilesConfig,
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

    pub fn audio_folder(&self) -> PathBuf {
        if self.audio_files.folder.as_os_str().is_empty() {
            return self.data_dir.join("voices");
        }
        self.audio_files.folder.clone()
    }

    pub fn bills_folder(&self) -> PathBuf {
        if self.bills.folder.as_os_str().is_empty() {
            return self.data_dir.join("bills");
        }
        self.bills.folder.clone()
    }

    fn check(&self) -> anyhow::Result<()> {
        self.database().map_err(anyhow::Error::msg)?;
        self.time_zone()?;
        self.http.check()?;
        self.callbacks.check()?;
        self.speech.check()?;
        self.audio_files.check()?;
        self.rates.check()?;
        self.bills.check()?;
        self.dispatch.check()?;
        self.rtp_ports()?;
        self.check_numbers()?;
        self.check_trunks()
    }

    fn check_numbers(&self) -> anyhow::Result<()> {
        let numbers = &self.numbers;
        let digits = numbers.country_code.bytes().all(|b| b.is_ascii_digit());
        if numbers.country_code.is_empty() || !digits {
            bail!("numbers.country_code must be digits, such as 86");
        }
        if !numbers.default_caller.is_empty() && numbers.default_caller().is_none() {
            bail!(
                "numbers.default_caller: `{}` is not a telephone number",
                numbers.default_caller
            );
        }
        Ok(())
    }

    fn check_trunks(&self) -> anyhow::Result<()> {
        for (place, trunk) in self.trunks.iter().enumerate() {
            trunk
                .check()
                .map_err(|why| anyhow::anyhow!("trunk {}: {why}", trunk.name))?;
            let before = &self.trunks[..place];
            if before.iter().any(|other| other.name == trunk.name) {
                bail!("trunk {}: there are two of this name", trunk.name);
            }
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
        assert!(error("[dispatch]\nlease_seconds = 1", &[]).contains("dispatch.lease_seconds"));
        assert!(error("[dispatch]\nring_seconds = 0", &[]).contains("dispatch.ring_seconds"));
    }
}
