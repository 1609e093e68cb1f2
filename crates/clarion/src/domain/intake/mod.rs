//! Intakes: addresses at which monitoring tools bring alerts, each with a secret of its own. What an alert says is read elsewhere (`intakes`).

pub mod change;
pub mod incident;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::account::AppId;
use super::call_list::ListName;
use super::number_pattern::NumberPattern;
use super::prompt::CodeLanguage;
use super::status_code::{Refusal, StatusCode};
use super::wording::{Wording, wording};

const LONGEST_NAME: usize = 32;
/// So many incidents of an intake are open at once.
pub const MAX_INCIDENTS: u32 = 10_000;

/// The name of an intake, which stands in its address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntakeName(String);

impl IntakeName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IntakeName {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(wording!(
            "the name of an intake must be 1 to {LONGEST_NAME} letters, digits, '-' or '_'",
            "接入点名称为 1 到 {LONGEST_NAME} 位字母、数字、- 或 _"
        ))
    }
}

impl fmt::Display for IntakeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose alerts it understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntakeFormat {
    Alertmanager,
    Grafana,
    Zabbix,
    UptimeKuma,
    SmsEagle,
    Json,
}

impl IntakeFormat {
    pub const ALL: [Self; 6] = [
        Self::Alertmanager,
        Self::Grafana,
        Self::Zabbix,
        Self::UptimeKuma,
        Self::SmsEagle,
        Self::Json,
    ];
    pub const WORDS: &'static [&'static str] = &[
        "alertmanager",
        "grafana",
        "zabbix",
        "uptime-kuma",
        "smseagle",
        "json",
    ];

    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The path of its address. The clients of one format know a path of their own.
    pub fn path(self, name: &IntakeName) -> String {
        match self {
            Self::SmsEagle => "/api/v2/calls/tts".to_owned(),
            _ => format!("/intake/{name}"),
        }
    }
}

impl FromStr for IntakeFormat {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| {
            let words = Self::WORDS.join(", ");
            wording!("write one of: {words}", "应为以下之一：{words}")
        })
    }
}

/// What shows that a request may use an intake. It never appears in logs, and the database has only a hash of it.
#[derive(Clone, PartialEq, Eq)]
pub struct IntakeToken(String);

impl IntakeToken {
    /// So much randomness that its hash needs no salt and no slowness.
    pub fn new(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// As a request has it.
    pub fn given(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// To show it once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash(hex::encode(Sha256::digest(&self.0)))
    }
}

impl fmt::Debug for IntakeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IntakeToken")
    }
}

#[derive(Debug, Clone)]
pub struct TokenHash(String);

impl TokenHash {
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn fits(&self, token: &IntakeToken) -> bool {
        self.0.as_bytes().ct_eq(token.hash().0.as_bytes()).into()
    }
}

/// Whom an intake calls: a number as the operator wrote it, or a list of the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum IntakeTarget {
    Number(String),
    List(ListName),
}

impl IntakeTarget {
    pub fn number(&self) -> Option<&str> {
        match self {
            Self::Number(number) => Some(number),
            Self::List(_) => None,
        }
    }

    pub fn list(&self) -> Option<&ListName> {
        match self {
            Self::Number(_) => None,
            Self::List(name) => Some(name),
        }
    }
}

impl FromStr for IntakeTarget {
    type Err = Wording;

    /// Whether a number may be called is for the numbering plan to say.
    fn from_str(text: &str) -> Result<Self, Wording> {
        match text.strip_prefix('@') {
            Some(name) => name.parse().map(Self::List),
            None => Ok(Self::Number(text.to_owned())),
        }
    }
}

impl TryFrom<String> for IntakeTarget {
    type Error = Wording;

    fn try_from(text: String) -> Result<Self, Wording> {
        text.parse()
    }
}

impl From<IntakeTarget> for String {
    fn from(target: IntakeTarget) -> Self {
        target.to_string()
    }
}

impl fmt::Display for IntakeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(number),
            Self::List(name) => name.fmt(f),
        }
    }
}

/// The silence that callees may ask Alertmanager for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilenceSettings {
    pub key: char,
    /// Where Alertmanager is, without a path of its API.
    pub url: String,
    pub minutes: u32,
}

/// What an operator says about an intake. It is stored as JSON; what a later version adds has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntakeSettings {
    /// The template of what is said; `None`: the usual one of its format.
    pub text: Option<String>,
    /// `None`: that of the alert.
    pub language: Option<CodeLanguage>,
    /// Whom it calls where an alert names nobody, in the order of their turns.
    pub to: Vec<IntakeTarget>,
    /// The numbers that an alert may name.
    pub allowed_numbers: Vec<NumberPattern>,
    /// The label of an alert that says whom to call.
    pub to_label: Option<String>,
    /// Where alerts may come from; empty: from anywhere.
    pub networks: Vec<IpNet>,
    /// An incident of which nothing was heard for so long is closed, in minutes.
    pub close_after: u32,
    /// An alert that joins an incident makes a new notice.
    pub calls_for_new_alerts: bool,
    /// A text that says that something works again closes its incident and calls nobody.
    pub skips_recoveries: bool,
    pub silence_key: Option<char>,
    pub silence_url: Option<String>,
    pub silence_minutes: u32,
    /// Fields of a LandingCall, by their names.
    pub plan: BTreeMap<String, String>,
}

/// The fields of a LandingCall that an intake may have for all its notices.
pub const PLAN_FIELDS: [&str; 17] = [
    "confirmDtmf",
    "waitDtmfTime",
    "replayDtmf",
    "stopDtmf",
    "redialTimes",
    "redialInterval",
    "redialOn",
    "backupAfter",
    "callWindow",
    "validTime",
    "priority",
    "ringTime",
    "playTimes",
    "displayNum",
    "maxCallTime",
    "respUrl",
    "callStateUrl",
];

/// The codes that a refusal at an intake has most of the time.
pub const REFUSAL_CODES: [StatusCode; 14] = [
    StatusCode::IntakeInvalid,
    StatusCode::AddressNotAllowed,
    StatusCode::AccountSuspended,
    StatusCode::BodyFormat,
    StatusCode::DataTooLong,
    StatusCode::FieldWrong,
    StatusCode::CalledNotAllowed,
    StatusCode::NoRoute,
    StatusCode::TooManyCallsToNumber,
    StatusCode::BalanceInsufficient,
    StatusCode::SpendingLimit,
    StatusCode::TooManyRequests,
    StatusCode::UnknownError,
    StatusCode::NoRoom,
];

/// After a day in which no alert came, an incident is over.
const USUAL_CLOSING: u32 = 24 * 60;
const USUAL_SILENCE: u32 = 60;

impl Default for IntakeSettings {
    /// Everybody is called three times, until somebody presses 1.
    fn default() -> Self {
        let plan = [
            ("confirmDtmf", "1"),
            ("replayDtmf", "0"),
            ("redialTimes", "2"),
        ];
        Self {
            text: None,
            language: None,
            to: Vec::new(),
            allowed_numbers: Vec::new(),
            to_label: None,
            networks: Vec::new(),
            close_after: USUAL_CLOSING,
            calls_for_new_alerts: false,
            skips_recoveries: true,
            silence_key: None,
            silence_url: None,
            silence_minutes: USUAL_SILENCE,
            plan: plan
                .map(|(field, value)| (field.to_owned(), value.to_owned()))
                .into(),
        }
    }
}

impl IntakeSettings {
    /// Where both key and address are there.
    pub fn silence(&self) -> Option<SilenceSettings> {
        Some(SilenceSettings {
            key: self.silence_key?,
            url: self.silence_url.clone()?,
            minutes: self.silence_minutes,
        })
    }

    pub fn closes_after(&self) -> SignedDuration {
        SignedDuration::from_mins(self.close_after.into())
    }

    pub fn to_stored(&self) -> String {
        serde_json::to_string(self).expect("it has only text keys")
    }

    pub fn from_stored(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

#[derive(Debug, Clone)]
pub struct Intake {
    pub name: IntakeName,
    pub app: AppId,
    pub format: IntakeFormat,
    pub token: TokenHash,
    pub settings: IntakeSettings,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Intake {
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        let networks = &self.settings.networks;
        if networks.is_empty() || networks.iter().any(|net| net.contains(&address)) {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::AddressNotAllowed,
            "alerts from this IP address are not taken by the intake (its setting networks)",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back() {
        let settings = IntakeSettings {
            text: Some("{{ what }}".to_owned()),
            language: Some(CodeLanguage::English),
            to: vec!["@night".parse().unwrap(), "13800000001".parse().unwrap()],
            allowed_numbers: vec!["+86138*".parse().unwrap()],
            to_label: Some("oncall".to_owned()),
            networks: vec!["192.0.2.0/24".parse().unwrap()],
            silence_key: Some('9'),
            silence_url: Some("http://alerts.example:9093".to_owned()),
            ..IntakeSettings::default()
        };
        for settings in [settings, IntakeSettings::default()] {
            let read = IntakeSettings::from_stored(&settings.to_stored()).unwrap();
            assert_eq!(read, settings);
        }
    }

    #[test]
    fn a_token_fits_its_own_hash_and_prints_nothing() {
        let token = IntakeToken::new([7; 32]);
        assert!(token.hash().fits(&IntakeToken::given(token.reveal())));
        assert!(!token.hash().fits(&IntakeToken::new([8; 32])));
        assert!(!token.hash().fits(&IntakeToken::given("")));
        assert!(!token.hash().as_str().contains(token.reveal()));
        assert_eq!(format!("{token:?}"), "IntakeToken");
    }

    #[test]
    fn formats_read_back_and_names_fit_into_addresses() {
        for format in IntakeFormat::ALL {
            assert_eq!(format.as_str().parse(), Ok(format));
        }
        assert!("night-shift_2".parse::<IntakeName>().is_ok());
        for name in ["", "a b", "a/b", "@a", "é", &"n".repeat(33)] {
            assert!(name.parse::<IntakeName>().is_err(), "{name}");
        }
    }
}
