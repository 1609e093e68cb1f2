//! Accounts, their applications, and what their calls cost.

use std::collections::HashSet;

use super::change::NotedChange;
use super::{Management, ManagementError, settings};
use crate::domain::account::{
    Account, AccountChange, AccountLimits, AccountSid, AccountState, AppId, AppLimits, AppState,
    Application, ApplicationChange, AuthToken, CallbackSecret, Permissions,
};
use crate::domain::bill::rating::{Funds, Prefix, Rate};
use crate::domain::lexicon::Lexicon;
use crate::random;

/// What a new account or application is called that was given no name.
pub const UNNAMED: &str = "unnamed";

/// An account that is to be made.
#[derive(Debug, Default)]
pub struct NewAccount {
    /// `None`: a new one.
    pub sid: Option<AccountSid>,
    /// `None`: a random one.
    pub token: Option<AuthToken>,
    pub settings: AccountChange,
}

/// An application that is to be made.
#[derive(Debug)]
pub struct NewApplication {
    pub account: AccountSid,
    /// `None`: a new one.
    pub id: Option<AppId>,
    /// Empty: it has none.
    pub name: String,
    /// With a new secret.
    pub signs_callbacks: bool,
}

/// Accounts.
impl Management {
    pub async fn accounts(&self) -> Result<Vec<Account>, ManagementError> {
        Ok(self.store.accounts().await?)
    }

    pub async fn account(&self, sid: &AccountSid) -> Result<Account, ManagementError> {
        let found = self.store.account(sid).await?;
        found.ok_or_else(|| ManagementError::missing(format!("account {sid}")))
    }

    /// What an account has spent and may still spend.
    pub async fn funds(&self, sid: &AccountSid) -> Result<Option<Funds>, ManagementError> {
        Ok(self.store.funds(sid).await?)
    }

    /// The account as it is now, with its token, which is never shown again.
    pub async fn add_account(&self, new: NewAccount) -> Result<Account, ManagementError> {
        let now = self.clock.now();
        let mut change = NotedChange::new("account add").with_any("sid", new.sid.as_ref());
        if new.token.is_some() {
            change = change.with_secret("token");
        }
        let change = settings::noted(change, &new.settings);
        let mut account = Account {
            sid: new.sid.unwrap_or_else(new_account_sid),
            name: UNNAMED.to_owned(),
            auth_token: new.token.unwrap_or_else(new_token),
            state: AccountState::Active,
            permissions: Permissions::default(),
            limits: AccountLimits::default(),
            balance: None,
            spending_limit: None,
            call_hours: None,
            display_numbers: Vec::new(),
            allowed_networks: Vec::new(),
            has_do_not_call: false,
            created_at: now,
            updated_at: now,
        };
        account.apply(new.settings);
        let add = self.store.add_account(account.clone());
        self.noted(change, add).await?;
        Ok(account)
    }

    pub async fn set_account(
        &self,
        sid: &AccountSid,
        settings: AccountChange,
    ) -> Result<Account, ManagementError> {
        let change = settings::noted(NotedChange::new("account set").on(sid), &settings);
        self.change_account(sid, settings, change).await
    }

    /// Refuses its requests from now on. With `hang_up`, its calls that ring or talk are ended too: how many there are to end.
    pub async fn suspend_account(
        &self,
        sid: &AccountSid,
        hang_up: bool,
    ) -> Result<(Account, Option<u64>), ManagementError> {
        let change = NotedChange::new("account suspend").on(sid);
        let change = change.where_so("hang-up", hang_up);
        let suspended = AccountChange {
            state: Some(AccountState::Suspended),
            changed_at: Some(self.clock.now()),
            ..AccountChange::default()
        };
        let suspend = async {
            let account = self.store.change_account(sid, suspended).await?;
            if !hang_up {
                return Ok((account, None));
            }
            let to_end = self.store.cancel_calls_of(sid).await?;
            Ok::<_, ManagementError>((account, Some(to_end)))
        };
        self.noted(change, suspend).await
    }

    /// The account with its new token, which is never shown again.
    pub async fn rotate_token(
        &self,
        sid: &AccountSid,
        token: Option<AuthToken>,
    ) -> Result<Account, ManagementError> {
        let mut change = NotedChange::new("account rotate-token").on(sid);
        if token.is_some() {
            change = change.with_secret("token");
        }
        let rotated = AccountChange {
            auth_token: Some(token.unwrap_or_else(new_token)),
            ..AccountChange::default()
        };
        self.change_account(sid, rotated, change).await
    }

    async fn change_account(
        &self,
        sid: &AccountSid,
        mut wanted: AccountChange,
        change: NotedChange,
    ) -> Result<Account, ManagementError> {
        wanted.changed_at = Some(self.clock.now());
        self.noted(change, self.store.change_account(sid, wanted))
            .await
    }
}

/// Applications.
impl Management {
    pub async fn application(&self, id: &AppId) -> Result<Application, ManagementError> {
        let found = self.store.application(id).await?;
        found.ok_or_else(|| ManagementError::missing(format!("application {id}")))
    }

    pub async fn applications(
        &self,
        account: &AccountSid,
    ) -> Result<Vec<Application>, ManagementError> {
        self.account(account).await?;
        Ok(self.store.applications(Some(account)).await?)
    }

    /// Those of every account.
    pub async fn all_applications(&self) -> Result<Vec<Application>, ManagementError> {
        Ok(self.store.applications(None).await?)
    }

    /// Those that may request calls.
    pub async fn usable_applications(&self) -> Result<Vec<Application>, ManagementError> {
        let accounts = self.store.accounts().await?.into_iter();
        let active = accounts.filter(|account| account.state == AccountState::Active);
        let active: HashSet<_> = active.map(|account| account.sid).collect();
        let mut usable = self.store.applications(None).await?;
        usable.retain(|app| app.state == AppState::Active && active.contains(&app.account));
        Ok(usable)
    }

    /// The application with its secret, if it has one, which is never shown again.
    pub async fn add_application(
        &self,
        new: NewApplication,
    ) -> Result<Application, ManagementError> {
        let name = Some(new.name).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| UNNAMED.to_owned());
        let change = NotedChange::new("app add")
            .with("account", &new.account)
            .with_any("app-id", new.id.as_ref())
            .with("name", &name)
            .where_so("sign-callbacks", new.signs_callbacks);
        let application = Application {
            id: new.id.unwrap_or_else(new_app_id),
            account: new.account,
            name,
            state: AppState::Active,
            callback_secret: new.signs_callbacks.then(new_callback_secret),
            limits: AppLimits::default(),
            created_at: self.clock.now(),
            bill_json_key: None,
            voice: None,
            lexicon: Lexicon::default(),
        };
        let add = self.store.add_application(application.clone());
        self.noted(change, add).await?;
        Ok(application)
    }

    /// Its callbacks are signed with a new secret, which is never shown again.
    pub async fn rotate_callback_secret(&self, id: &AppId) -> Result<Application, ManagementError> {
        let change = NotedChange::new("app rotate-secret").on(id);
        let rotated = ApplicationChange {
            callback_secret: Some(Some(new_callback_secret())),
            ..ApplicationChange::default()
        };
        let set = self.store.change_application(id, rotated);
        self.noted(change, set).await
    }

    pub async fn set_application(
        &self,
        id: &AppId,
        settings: ApplicationChange,
    ) -> Result<Application, ManagementError> {
        let change = settings::noted(NotedChange::new("app set").on(id), &settings);
        let set = async {
            if let Some(Some(voice)) = &settings.voice {
                let known = self.config.voices.check_name(voice.as_str());
                known.map_err(ManagementError::rule)?;
            }
            Ok::<_, ManagementError>(self.store.change_application(id, settings).await?)
        };
        self.noted(change, set).await
    }
}

/// Rates.
impl Management {
    /// Those of the settings, where no account is named.
    pub async fn rates(&self, account: Option<&AccountSid>) -> Result<Vec<Rate>, ManagementError> {
        if let Some(account) = account {
            self.account(account).await?;
        }
        Ok(self.store.rates(account).await?)
    }

    pub async fn set_rate(
        &self,
        account: &AccountSid,
        rate: Rate,
    ) -> Result<Rate, ManagementError> {
        let change = NotedChange::new("rate set")
            .with("account", account)
            .on(&rate.prefix)
            .on(rate.price)
            .with("unit", rate.unit_seconds)
            .with("unanswered", rate.unanswered);
        let set = async {
            let rate = rate.check().map_err(ManagementError::rule)?;
            self.account(account).await?;
            self.store.set_rate(account, rate.clone()).await?;
            Ok::<_, ManagementError>(rate)
        };
        self.noted(change, set).await
    }

    pub async fn remove_rate(
        &self,
        account: &AccountSid,
        prefix: &Prefix,
    ) -> Result<(), ManagementError> {
        let change = NotedChange::new("rate remove").with("account", account);
        let remove = async {
            if self.store.remove_rate(account, prefix).await? {
                return Ok(());
            }
            let rate = format!("rate {prefix} of account {account}");
            Err(ManagementError::missing(rate))
        };
        self.noted(change.on(prefix), remove).await
    }
}

fn new_account_sid() -> AccountSid {
    random::id().parse().expect("hex digits are an id")
}

fn new_callback_secret() -> CallbackSecret {
    CallbackSecret::from_key(&random::bytes())
}

fn new_app_id() -> AppId {
    random::id().parse().expect("hex digits are an id")
}

fn new_token() -> AuthToken {
    random::id().parse().expect("hex digits are a token")
}
