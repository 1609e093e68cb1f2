//! Who may request calls: main accounts, their applications, permissions and limits.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::Serialize;

use super::call_window::CallWindow;
use super::lexicon::{Lexicon, LexiconChange};
use super::money::Money;
use super::number_pattern::NumberPattern;
use super::numbering_plan::NumberingPlan;
use super::phone_number::PhoneNumber;
use super::status_code::{Refusal, StatusCode};
use super::voice_name::VoiceName;
use super::wording::{Wording, wording};

/// Identifiers and tokens of this API are always 32 letters or digits.
pub const ID_LENGTH: usize = 32;

fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

macro_rules! id_of_32 {
    ($(#[$doc:meta])* $name:ident, $english:literal, $chinese:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Wording;

            fn from_str(text: &str) -> Result<Self, Wording> {
                if is_id(text) {
                    return Ok(Self(text.to_owned()));
                }
                let (what, count) = (wording!($english, $chinese), text.chars().count());
                Err(wording!(
                    "{what} must be 32 letters or digits, but has {count} characters or others among them",
                    "{what}应为 32 位字母或数字，现有 {count} 个字符，或含有其他字符"; what
                ))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_of_32!(
    /// The main account's identifier.
    AccountSid, "an account sid", "账户 sid "
);
id_of_32!(
    /// An application's identifier.
    AppId, "an application id", "应用 id "
);

impl AppId {
    /// Reads the appId of a request. Each mistake has a code of its own.
    pub fn from_request(text: &str) -> Result<Self, Refusal> {
        if text.is_empty() {
            return Err(StatusCode::AppIdEmpty.into());
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(StatusCode::AppIdCharacters.into());
        }
        text.parse().map_err(|_| StatusCode::AppIdLength.into())
    }
}

/// The account's secret. It is kept in clear text, because `sig` is an MD5 over it. It never appears in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthToken(String);

impl AuthToken {
    /// Returns the token, to show it to the operator once, to store it, and to compute a `sig`.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for AuthToken {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        // The message does not contain the text, which may be a secret with a typing error.
        if is_id(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(wording!(
                "an auth token must be 32 letters or digits",
                "令牌应为 32 位字母或数字"
            ))
        }
    }
}

impl fmt::Debug for AuthToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthToken(…)")
    }
}

macro_rules! named_states {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(format!("`{text}` is not one of: {}", Self::WORDS.join(", "))),
                }
            }
        }
    };
}

named_states! {
    AccountState { Active = "active", NotActivated = "not-activated", Suspended = "suspended", Closed = "closed" }
}

named_states! {
    AppState { Active = "active", Disabled = "disabled", Deleted = "deleted" }
}

/// Functions that an account may use only if the platform switches them on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Permissions {
    pub bill_download: bool,
    pub custom_display_number: bool,
    /// Calls of priority 1 may be made outside the account's hours.
    pub urgent_outside_hours: bool,
}

/// Limits of one account. `None` means the platform's default from the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AccountLimits {
    pub requests_per_second: Option<u32>,
    pub requests_at_once: Option<u32>,
    pub calls_per_second: Option<u32>,
    pub calls_at_once: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub sid: AccountSid,
    pub name: String,
    pub auth_token: AuthToken,
    pub state: AccountState,
    pub permissions: Permissions,
    pub limits: AccountLimits,
    /// Prepaid money, or `None` if the operator keeps no balance.
    pub balance: Option<Money>,
    pub spending_limit: Option<Money>,
    /// The hours in which its calls may be made, or `None` for any.
    pub call_hours: Option<CallWindow>,
    /// Numbers that this account may show to the called party.
    pub display_numbers: Vec<NumberPattern>,
    /// Networks that requests may come from. An empty list means any.
    pub allowed_networks: Vec<IpNet>,
    /// There are numbers on its do-not-call list. It is read with the account, and not written with it.
    pub has_do_not_call: bool,
    pub created_at: Timestamp,
    /// By an operator. What calls cost is no change.
    pub updated_at: Timestamp,
}

impl Account {
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        let allowed = self.allowed_networks.is_empty()
            || self
                .allowed_networks
                .iter()
                .any(|net| net.contains(&address));
        if allowed {
            Ok(())
        } else {
            Err(StatusCode::AddressNotAllowed.into())
        }
    }

    pub fn check_state(&self) -> Result<(), Refusal> {
        match self.state {
            AccountState::Active => Ok(()),
            AccountState::NotActivated => Err(StatusCode::AccountNotActivated.into()),
            AccountState::Suspended => Err(StatusCode::AccountSuspended.into()),
            AccountState::Closed => Err(StatusCode::AccountClosed.into()),
        }
    }

    /// Returns the number that is shown to the called party. It is the requested one if the account may choose, the number is within its
    /// rules, and it is not the called number itself; otherwise, without an error, it is the platform's.
    pub fn caller(
        &self,
        requested: Option<&str>,
        called: &PhoneNumber,
        plan: &NumberingPlan,
    ) -> Option<String> {
        plan.caller(self.shown(requested, plan), called)
    }

    /// The requested number, if the account may choose and the number is within its rules.
    pub fn shown(&self, requested: Option<&str>, plan: &NumberingPlan) -> Option<String> {
        let number = PhoneNumber::parse(requested?, plan).ok()?;
        let mut rules = self.display_numbers.iter();
        let is_allowed = self.permissions.custom_display_number
            && number.extension().is_none()
            && rules.any(|pattern| pattern.matches(number.digits()));
        is_allowed.then(|| number.digits().to_owned())
    }

    pub fn apply(&mut self, change: AccountChange) {
        fn set<T>(target: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *target = value;
            }
        }
        set(&mut self.name, change.name);
        set(&mut self.auth_token, change.auth_token);
        set(&mut self.state, change.state);
        set(&mut self.permissions.bill_download, change.bill_download);
        set(
            &mut self.permissions.custom_display_number,
            change.custom_display_number,
        );
        set(
            &mut self.limits.requests_per_second,
            change.requests_per_second,
        );
        set(&mut self.limits.requests_at_once, change.requests_at_once);
        set(&mut self.limits.calls_per_second, change.calls_per_second);
        set(&mut self.limits.calls_at_once, change.calls_at_once);
        set(&mut self.balance, change.balance);
        set(&mut self.spending_limit, change.spending_limit);
        set(&mut self.call_hours, change.call_hours);
        set(
            &mut self.permissions.urgent_outside_hours,
            change.urgent_outside_hours,
        );
        set(&mut self.display_numbers, change.display_numbers);
        set(&mut self.allowed_networks, change.allowed_networks);
        set(&mut self.updated_at, change.changed_at);
    }
}

/// An operator's change of an account. `None` leaves a value as it is. The change is applied inside the store's transaction, so that two
/// operators who change different values at once lose nothing.
#[derive(Debug, Clone, Default)]
pub struct AccountChange {
    pub name: Option<String>,
    pub auth_token: Option<AuthToken>,
    pub state: Option<AccountState>,
    pub bill_download: Option<bool>,
    pub custom_display_number: Option<bool>,
    pub requests_per_second: Option<Option<u32>>,
    pub requests_at_once: Option<Option<u32>>,
    pub calls_per_second: Option<Option<u32>>,
    pub calls_at_once: Option<Option<u32>>,
    pub balance: Option<Option<Money>>,
    pub spending_limit: Option<Option<Money>>,
    pub call_hours: Option<Option<CallWindow>>,
    pub urgent_outside_hours: Option<bool>,
    pub display_numbers: Option<Vec<NumberPattern>>,
    pub allowed_networks: Option<Vec<IpNet>>,
    pub changed_at: Option<Timestamp>,
}

impl AccountChange {
    /// What would make any account into this one, but for its token.
    pub fn of(account: &Account) -> Self {
        let (permissions, limits) = (account.permissions, account.limits);
        Self {
            name: Some(account.name.clone()),
            auth_token: None,
            state: Some(account.state),
            bill_download: Some(permissions.bill_download),
            custom_display_number: Some(permissions.custom_display_number),
            requests_per_second: Some(limits.requests_per_second),
            requests_at_once: Some(limits.requests_at_once),
            calls_per_second: Some(limits.calls_per_second),
            calls_at_once: Some(limits.calls_at_once),
            balance: Some(account.balance),
            spending_limit: Some(account.spending_limit),
            call_hours: Some(account.call_hours.clone()),
            urgent_outside_hours: Some(permissions.urgent_outside_hours),
            display_numbers: Some(account.display_numbers.clone()),
            allowed_networks: Some(account.allowed_networks.clone()),
            changed_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub id: AppId,
    pub account: AccountSid,
    pub name: String,
    pub state: AppState,
    /// Signs this application's callbacks, if it is set.
    pub callback_secret: Option<CallbackSecret>,
    pub limits: AppLimits,
    pub created_at: Timestamp,
    /// `None` means the platform's.
    pub bill_json_key: Option<BillJsonKey>,
    /// Who speaks its texts. `None` means the platform's first voice of the language.
    pub voice: Option<VoiceName>,
    pub lexicon: Lexicon,
}

named_states! {
    /// What an answer in JSON calls the address of a bill. The contract has the first; one client library knows only the second.
    BillJsonKey { LowerCase = "downurl", AsInXml = "downUrl" }
}

/// Limits of one application, beside those of its account. `None` means that only the account's limit applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AppLimits {
    pub calls_per_second: Option<u32>,
    pub calls_at_once: Option<u32>,
}

impl Application {
    /// Checks that `account` may use this application now.
    pub fn check_usable_by(&self, account: &AccountSid) -> Result<(), Refusal> {
        // Whoever asks does not learn that another account has it.
        if self.account != *account {
            return Err(StatusCode::AppMissing.into());
        }
        match self.state {
            AppState::Active => Ok(()),
            AppState::Disabled => Err(StatusCode::AppDisabled.into()),
            AppState::Deleted => Err(StatusCode::AppDeleted.into()),
        }
    }

    pub fn apply(&mut self, change: ApplicationChange) {
        if let Some(name) = change.name {
            self.name = name;
        }
        if let Some(state) = change.state {
            self.state = state;
        }
        if let Some(secret) = change.callback_secret {
            self.callback_secret = secret;
        }
        if let Some(limit) = change.calls_per_second {
            self.limits.calls_per_second = limit;
        }
        if let Some(limit) = change.calls_at_once {
            self.limits.calls_at_once = limit;
        }
        if let Some(key) = change.bill_json_key {
            self.bill_json_key = key;
        }
        if let Some(voice) = change.voice {
            self.voice = voice;
        }
        self.lexicon.apply(change.lexicon);
    }
}

#[derive(Debug, Clone, Default)]
pub struct ApplicationChange {
    pub name: Option<String>,
    pub state: Option<AppState>,
    pub callback_secret: Option<Option<CallbackSecret>>,
    pub calls_per_second: Option<Option<u32>>,
    pub calls_at_once: Option<Option<u32>>,
    pub bill_json_key: Option<Option<BillJsonKey>>,
    pub voice: Option<Option<VoiceName>>,
    pub lexicon: LexiconChange,
}

impl ApplicationChange {
    /// What would make any application of its account into this one, but for its lexicon.
    pub fn of(application: &Application) -> Self {
        Self {
            name: Some(application.name.clone()),
            state: Some(application.state),
            callback_secret: Some(application.callback_secret.clone()),
            calls_per_second: Some(application.limits.calls_per_second),
            calls_at_once: Some(application.limits.calls_at_once),
            bill_json_key: Some(application.bill_json_key),
            voice: Some(application.voice.clone()),
            lexicon: LexiconChange::default(),
        }
    }
}

/// The key that signs callbacks (Standard Webhooks): 24 to 64 bytes, written as `whsec_` and Base64.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackSecret(String);

impl CallbackSecret {
    pub fn from_key(key: &[u8; 32]) -> Self {
        use base64::{Engine, prelude::BASE64_STANDARD};
        Self(format!("whsec_{}", BASE64_STANDARD.encode(key)))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the bytes of the key.
    pub fn key(&self) -> Vec<u8> {
        decode_key(&self.0).unwrap_or_default()
    }
}

fn decode_key(text: &str) -> Option<Vec<u8>> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let body = text.strip_prefix("whsec_")?;
    BASE64_STANDARD.decode(body).ok()
}

impl FromStr for CallbackSecret {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        match decode_key(text) {
            Some(key) if (24..=64).contains(&key.len()) => Ok(Self(text.to_owned())),
            _ => Err(wording!(
                "a callback secret is `whsec_` followed by 24 to 64 bytes in Base64",
                "回调签名密钥由 `whsec_` 加 Base64 编码的 24 到 64 个字节组成"
            )),
        }
    }
}

impl fmt::Debug for CallbackSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackSecret(…)")
    }
}

/// An account without anything special, for tests.
#[cfg(test)]
pub fn test_account(sid: AccountSid) -> Account {
    Account {
        sid,
        name: "Test".to_owned(),
        auth_token: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        state: AccountState::Active,
        permissions: Permissions::default(),
        limits: AccountLimits::default(),
        balance: None,
        spending_limit: None,
        call_hours: None,
        display_numbers: Vec::new(),
        allowed_networks: Vec::new(),
        has_do_not_call: false,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_themselves() {
        let token: AuthToken = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let secret = CallbackSecret::from_key(&[7; 32]);
        assert_eq!(
            format!("{token:?} {secret:?}"),
            "AuthToken(…) CallbackSecret(…)"
        );
        let error = "0123456789abcdef-typo".parse::<AuthToken>().unwrap_err();
        assert!(!format!("{error:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn a_caller_number_is_chosen_only_within_permission_and_rules() {
        let plan = NumberingPlan {
            default_caller: Some("864008888888".into()),
            ..NumberingPlan::china()
        };
        let called = PhoneNumber::parse("13800000000", &plan).unwrap();
        let mut account = test_account("0123456789abcdef0123456789abcdef".parse().unwrap());
        account.permissions.custom_display_number = true;
        account.display_numbers =
            vec!["+864001234567".parse().unwrap(), "+86138*".parse().unwrap()];
        let caller =
            |account: &Account, requested| account.caller(requested, &called, &plan).unwrap();
        assert_eq!(caller(&account, Some("4001234567")), "864001234567");
        assert_eq!(caller(&account, Some("+8613811111111")), "8613811111111");
        for requested in [
            None,
            Some("4007654321"),
            Some("13800000000"),
            Some("nonsense"),
            Some("4001234567-1"),
        ] {
            assert_eq!(caller(&account, requested), "864008888888", "{requested:?}");
        }
        account.permissions.custom_display_number = false;
        assert_eq!(caller(&account, Some("4001234567")), "864008888888");
        let own = PhoneNumber::parse("4008888888", &plan).unwrap();
        assert_eq!(
            account.caller(None, &own, &plan),
            None,
            "nobody sees their own"
        );
    }

    #[test]
    fn each_way_for_an_app_id_to_be_wrong_has_its_code() {
        let code = |text| AppId::from_request(text).unwrap_err().code;
        assert_eq!(code(""), StatusCode::AppIdEmpty);
        assert_eq!(code("aaaa-bbbb"), StatusCode::AppIdCharacters);
        assert_eq!(code("abc"), StatusCode::AppIdLength);
        assert_eq!(code(&"a".repeat(33)), StatusCode::AppIdLength);
        assert!(AppId::from_request(&"a".repeat(32)).is_ok());
    }
}
