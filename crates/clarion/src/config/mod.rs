//! Settings: the compiled-in defaults, then the operator's file, then the environment. Only this module reads the environment and the
//! settings. A `Config` holds values of the types that the program uses, and cannot be wrong.

mod audio_files;
mod bills;
mod callbacks;
mod caller;
mod calls;
mod console;
mod database;
mod dispatch;
mod http;
mod limits;
mod log;
mod media;
mod named_tables;
mod numbers;
mod overlay;
mod postgres;
mod prompts;
mod rates;
mod section;
mod shown;
mod speech;
mod suggestion;
#[cfg(test)]
mod tests;
mod trunk;
mod trunk_credentials;
mod trunk_media;
mod values;
mod voice;

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use phone::call::MediaConfig;
use toml::Table;

pub use self::audio_files::{AudioFilesConfig, LeastRate};
pub use self::bills::BillsConfig;
pub use self::callbacks::CallbacksConfig;
pub use self::caller::Login;
pub use self::calls::{CallsConfig, KeySentences, PlatformSentences};
pub use self::console::ConsoleConfig;
pub use self::database::Database;
pub use self::dispatch::DispatchConfig;
pub use self::http::HttpConfig;
pub use self::limits::LimitsConfig;
pub use self::log::{LogConfig, LogFormat};
use self::overlay::{from_variable, nested, overlay};
pub use self::postgres::{
    ChannelBinding, DatabasePassword, HostOrder, Keepalive, PostgresAddress, PostgresConfig,
    PostgresHost, PostgresTls, RootCertificates, SessionTarget, SslMode, SslNegotiation,
    StatementDeadlines, UserFile,
};
pub use self::prompts::PromptsConfig;
pub use self::rates::RatesConfig;
use self::section::{LARGEST_MIB, Mistake, Section};
pub use self::shown::{HIDDEN, ShownSetting};
pub use self::speech::{SpeechConfig, SpeechService};
pub use self::trunk::{
    EndpointSettings, LoopbackSettings, TRUNK_DEFAULTS, TrunkHealthSettings, TrunkSettings,
};
pub use self::trunk_credentials::PasswordPlace;
pub use self::values::{
    HttpUrl, PemFiles, parse_codec, parse_network, parse_ports, read_secret, secret_in,
};
pub use self::voice::{SpeechServer, VOICE_DEFAULTS, VoiceKind, VoiceSettings, VoicesConfig};
use crate::domain::numbering_plan::NumberingPlan;
use crate::domain::wording::{Wording, wording};

/// Every setting with its default and one comment. The program is thus the reference.
pub const DEFAULTS: &str = include_str!("../../../../config.default.toml");
/// Is read if no file is named and this one exists.
const USUAL_FILE: &str = "clarion.toml";
const ENVIRONMENT: &str = "CLARION_";
const FILE_VARIABLE: &str = "CLARION_CONFIG";

#[derive(Debug, Clone)]
pub struct Config {
    pub data_dir: PathBuf,
    /// The server is not ready if data_dir has less free space than this. 0 means that it is not checked.
    pub min_free_bytes: u64,
    pub database: Database,
    named_time_zone: Option<TimeZone>,
    pub http: HttpConfig,
    pub console: ConsoleConfig,
    pub limits: LimitsConfig,
    pub calls: CallsConfig,
    pub callbacks: CallbacksConfig,
    pub numbers: NumberingPlan,
    pub audio_files: AudioFilesConfig,
    pub speech: SpeechConfig,
    pub voices: VoicesConfig,
    pub prompts: PromptsConfig,
    pub rates: RatesConfig,
    pub bills: BillsConfig,
    pub dispatch: DispatchConfig,
    pub media: MediaConfig,
    pub trunks: Vec<TrunkSettings>,
    pub log: LogConfig,
    /// As they were read, for people.
    pub shown: Vec<ShownSetting>,
}

/// The mistakes in the settings, one line each, with the file or variable, the table, the key and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// So many seconds of talk are paid for in advance, where money is a limit.
    pub fn reserved_talk(&self) -> u32 {
        let limit = self.rates.reserve.min(self.calls.max_talk);
        u32::try_from(limit.as_secs()).unwrap_or(u32::MAX)
    }

    /// Loads the settings of this process from defaults, file and environment.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let environment: Vec<_> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(ENVIRONMENT))
            .collect();
        let Some(path) = Self::file(file) else {
            return Self::from_parts("", &environment);
        };
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let path = path.display();
            ConfigError(vec![format!(
                "cannot read the configuration {path}: {error}"
            )])
        })?;
        read(Some(&path), &text, &environment)
    }

    /// The file that the settings are read from: the one that is told, that of the environment, or the usual one.
    pub fn file(told: Option<&Path>) -> Option<PathBuf> {
        let named = || std::env::var_os(FILE_VARIABLE).map(PathBuf::from);
        let usual = || Some(PathBuf::from(USUAL_FILE)).filter(|path| path.exists());
        told.map(Path::to_owned).or_else(named).or_else(usual)
    }

    /// The settings whose values are secrets and that are not read from files of their own.
    pub fn secrets(&self) -> Vec<Wording> {
        let with_password =
            |trunk: &&TrunkSettings| trunk.password_place == PasswordPlace::Settings;
        let trunks = self.trunks.iter().filter(with_password);
        let mut secrets: Vec<_> = trunks
            .map(TrunkSettings::name)
            .map(|name| wording!("password of trunk {name}", "中继 {name} 的 password"))
            .collect();
        let has_password = self.database.has_password();
        secrets.extend(has_password.then(|| Wording::named("database")));
        secrets
    }

    /// The files of secrets that the settings name, and what they are to whoever has named them.
    pub fn secret_files(&self) -> Vec<(Wording, &Path)> {
        let passwords = self
            .trunks
            .iter()
            .filter_map(|trunk| match &trunk.password_place {
                PasswordPlace::File(file) => {
                    let name = trunk.name();
                    let what = wording!(
                        "password_file of trunk {name}",
                        "中继 {name} 的 password_file"
                    );
                    Some((what, file.as_path()))
                }
                PasswordPlace::Settings | PasswordPlace::Nowhere => None,
            });
        let keys = self.voices.iter().filter_map(|voice| {
            let (name, file) = (&voice.name, voice.kind.key_file()?);
            let what = wording!("key_file of voice {name}", "发音人 {name} 的 key_file");
            Some((what, file))
        });
        let own_keys = self.trunks.iter().filter_map(|trunk| {
            let files = trunk.endpoint.certificate.as_ref()?;
            let name = trunk.name();
            let what = wording!("private_key of trunk {name}", "中继 {name} 的 private_key");
            Some((what, files.private_key.as_path()))
        });
        passwords.chain(keys).chain(own_keys).collect()
    }

    /// Lays a file's text and variables, both already read, over the defaults.
    pub fn from_parts(file: &str, environment: &[(String, String)]) -> Result<Self, ConfigError> {
        read(None, file, environment)
    }

    /// Returns whether the operator has named a time zone. Otherwise the system's is used.
    pub fn has_time_zone(&self) -> bool {
        self.named_time_zone.is_some()
    }

    pub fn time_zone(&self) -> TimeZone {
        let named = self.named_time_zone.clone();
        named.unwrap_or_else(TimeZone::system)
    }
}

fn read(
    file: Option<&Path>,
    text: &str,
    environment: &[(String, String)],
) -> Result<Config, ConfigError> {
    let variables: Vec<_> = environment
        .iter()
        .filter(|(name, _)| name != FILE_VARIABLE)
        .map(|(name, value)| (name.as_str(), path_of(name), value.as_str()))
        .collect();
    let place = |mistake: &Mistake| {
        let set = variables.iter().find(|(_, path, _)| *path == mistake.path);
        match (set, file) {
            (Some((name, ..)), _) => format!("in the variable {name}: {}", mistake.text),
            (None, Some(file)) => format!("in {}: {}", file.display(), mistake.text),
            (None, None) => mistake.text.clone(),
        }
    };
    let defaults: Table = DEFAULTS.parse().expect("the defaults are tested");
    let mut settings = defaults.clone();
    let mut mistakes = Vec::new();
    match text.parse::<Table>() {
        Ok(written) => overlay(&mut settings, written, "", &mut mistakes),
        Err(error) => mistakes.push(Mistake {
            path: String::new(),
            text: error.to_string(),
        }),
    }
    for (_, path, value) in &variables {
        let wrapped = nested(path, from_variable(&defaults, path, value));
        overlay(&mut settings, wrapped, "", &mut mistakes);
    }
    let shown = shown::shown(&settings, &defaults);
    let read = read_tables(settings, shown, &mut mistakes);
    match read {
        Some(config) if mistakes.is_empty() => Ok(config),
        _ => Err(ConfigError(mistakes.iter().map(place).collect())),
    }
}

/// Returns the setting that a variable sets: `http.listen` for `CLARION_HTTP__LISTEN`.
fn path_of(variable: &str) -> String {
    variable[ENVIRONMENT.len()..]
        .to_ascii_lowercase()
        .replace("__", ".")
}

/// Reads every table, so that all mistakes are reported at once. Returns `None` if there was one.
fn read_tables(
    settings: Table,
    shown: Vec<ShownSetting>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Config> {
    let mut root = Section::root(settings);
    let mut kept = Collector { mistakes };
    let data_dir = kept.one(root.text("data_dir").map(PathBuf::from));
    let near = data_dir.clone().unwrap_or_default();
    let min_free = kept.one(root.number("min_free_mb", 0..=LARGEST_MIB));
    let database = kept.one(root.parsed_or_none("database", Database::parse));
    let time_zone = kept.one(root.parsed_or_none("time_zone", |name| {
        TimeZone::get(name)
            .map_err(|_| format!("`{name}` is not an IANA time zone such as Asia/Shanghai"))
    }));
    let http = kept.table(&mut root, "http", HttpConfig::read);
    let console = kept.table(&mut root, "console", ConsoleConfig::read);
    let limits = kept.table(&mut root, "limits", LimitsConfig::read);
    let calls = kept.table(&mut root, "calls", CallsConfig::read);
    let callbacks = kept.table(&mut root, "callbacks", CallbacksConfig::read);
    let numbers = kept.table(&mut root, "numbers", numbers::read);
    let audio_files = kept.table(&mut root, "audio_files", |section| {
        AudioFilesConfig::read(section, &near)
    });
    let speech = kept.table(&mut root, "speech", |section| {
        SpeechConfig::read(section, &near)
    });
    let prompts = kept.table(&mut root, "prompts", PromptsConfig::read);
    let rates = kept.table(&mut root, "rates", RatesConfig::read);
    let bills = kept.table(&mut root, "bills", |section| {
        BillsConfig::read(section, &near)
    });
    let dispatch = kept.table(&mut root, "dispatch", DispatchConfig::read);
    let media = kept.table(&mut root, "media", media::read);
    let deadlines = kept.table(&mut root, "store", StatementDeadlines::read);
    let log = kept.table(&mut root, "log", LogConfig::read);
    let trunks = kept.one(root.tables("trunk"))?;
    let trunks = trunk::read_all(trunks, kept.mistakes);
    let voices = kept.one(root.tables("voice"))?;
    let voices = voice::read_all(voices, speech.as_ref(), kept.mistakes);
    kept.one(root.finish())?;
    Some(Config {
        data_dir: data_dir?,
        min_free_bytes: min_free? << 20,
        database: database?
            .unwrap_or_else(|| Database::Sqlite(near.join("clarion.db")))
            .with_deadlines(deadlines?),
        named_time_zone: time_zone?,
        http: http?,
        console: console?,
        limits: limits?,
        calls: calls?,
        callbacks: callbacks?,
        numbers: numbers?,
        audio_files: audio_files?,
        speech: speech?,
        voices,
        prompts: prompts?,
        rates: rates?,
        bills: bills?,
        dispatch: dispatch?,
        media: media?,
        trunks,
        log: log?,
        shown,
    })
}

/// Collects the mistakes, so that reading goes on with the next table.
struct Collector<'a> {
    mistakes: &'a mut Vec<Mistake>,
}

impl Collector<'_> {
    fn one<T>(&mut self, read: Result<T, Mistake>) -> Option<T> {
        read.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }

    fn table<T>(
        &mut self,
        root: &mut Section,
        key: &str,
        read: impl Fn(&mut Section) -> Result<T, Mistake>,
    ) -> Option<T> {
        let whole = root.section(key).and_then(|mut section| {
            let read = read(&mut section)?;
            section.finish()?;
            Ok(read)
        });
        self.one(whole)
    }
}
