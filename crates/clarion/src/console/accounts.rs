//! *Accounts*: who may request calls. `account` has the page of one, `application` that of an application; lists and numbers that are not called have their own.

pub mod account;
mod account_forms;
pub mod application;
pub mod do_not_call;
pub mod lists;
pub mod rates;

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::Console;
use super::page::{Frame, MenuPlace, html_with};
use super::page_forms::{self, FieldMistake, FormError, FormField, PageForms};
use super::refusal::Refused;
use super::secrets::{self, SecretRow};
use super::shown::{Mark, account_mark};
use super::times::Moment;
use super::visit::Visit;
use super::words::{Words, fill};
use crate::domain::account::{Account, AccountChange, AccountSid, AppId};
use crate::management::NewAccount;
use crate::management::settings::Settings;

/// Accounts of a page. Who has more looks for the name.
const SHOWN: usize = 200;
const ADDRESS: &str = "/accounts";
const ADD: &str = "add";

#[derive(Template)]
#[template(path = "console/accounts.html")]
struct AccountsPage {
    frame: Frame,
    forms: PageForms,
    /// What was looked for.
    find: String,
    rows: Vec<AccountRow>,
    more: Option<String>,
    name: FormField,
    /// What an account brings along from another platform.
    brought: [FormField; 2],
}

struct AccountRow {
    sid: String,
    name: String,
    mark: Mark,
    apps: u64,
    balance: String,
    created: Moment,
}

/// The account that the address names.
fn sid_of(visit: &Visit) -> Result<AccountSid, Refused> {
    let sid = visit.path_value("sid").parse();
    sid.map_err(|_| Refused::NotFound)
}

/// The application that the address names.
fn app_of(visit: &Visit) -> Result<AppId, Refused> {
    let id = visit.path_value("id").parse();
    id.map_err(|_| Refused::NotFound)
}

fn address_of(sid: &AccountSid) -> String {
    format!("{ADDRESS}/{sid}")
}

/// Who has no name is called by the id.
fn shown_name(name: &str, id: &str) -> String {
    let named = Some(name).filter(|name| !name.trim().is_empty());
    named.unwrap_or(id).to_owned()
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, PageForms::default()).await
}

async fn page(console: &Console, visit: &Visit, forms: PageForms) -> Result<Response, Refused> {
    let words = visit.language.words();
    let find = visit.query("find").unwrap_or_default();
    let mut found = console.management.accounts().await?;
    found.retain(|account| is_meant(account, &find));
    let is_cut = found.len() > SHOWN;
    found.truncate(SHOWN);
    let mut apps: HashMap<AccountSid, u64> = HashMap::new();
    for app in console.management.all_applications().await? {
        *apps.entry(app.account).or_default() += 1;
    }
    let row = |account: &Account| AccountRow {
        sid: account.sid.to_string(),
        name: shown_name(&account.name, account.sid.as_str()),
        mark: account_mark(account.state, words),
        balance: account
            .balance
            .map_or_else(String::new, |money| money.to_string()),
        apps: apps.get(&account.sid).copied().unwrap_or_default(),
        created: Moment::new(account.created_at, &console.clock, words),
    };
    let page = AccountsPage {
        frame: Frame::new(console, visit, MenuPlace::Accounts, words.accounts_title),
        find,
        rows: found.iter().map(row).collect(),
        more: is_cut.then(|| fill(words.accounts_more, &[("n", &SHOWN.to_string())])),
        name: forms.line(ADD, "name", words.set_name, words.account_name_hint, ""),
        brought: brought(&forms, words),
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

fn brought(forms: &PageForms, words: &'static Words) -> [FormField; 2] {
    let token = forms.line(
        ADD,
        "auth-token",
        words.account_token,
        words.account_token_hint,
        "",
    );
    [
        forms.line(ADD, "sid", words.account_sid, words.account_sid_hint, ""),
        token.secret(),
    ]
}

/// By a part of its name, in any case, or of its sid.
fn is_meant(account: &Account, find: &str) -> bool {
    let find = find.to_lowercase();
    account.name.to_lowercase().contains(&find) || account.sid.as_str().contains(&find)
}

/// The new account with its token, which is on this page alone.
pub async fn create(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let new = match read_new(&visit, words) {
        Ok(new) => new,
        Err(mistake) => return refused(&console, &visit, mistake.into()).await,
    };
    match console.acting(&visit).add_account(new).await {
        Ok(account) => Ok(account_token(
            &console,
            &visit,
            &account,
            words.account_added,
        )),
        Err(error) => refused(&console, &visit, error.into()).await,
    }
}

async fn refused(
    console: &Console,
    visit: &Arc<Visit>,
    error: FormError,
) -> Result<Response, Refused> {
    let forms = PageForms::refused(visit, ADD, error)?;
    page(console, visit, forms).await
}

fn read_new(visit: &Visit, words: &Words) -> Result<NewAccount, FieldMistake> {
    let name = Some(visit.field("name").trim()).filter(|name| !name.is_empty());
    let settings = AccountChange::from_texts(name.map(|name| ("name", name)));
    Ok(NewAccount {
        sid: page_forms::read_any(visit, "sid", words.account_sid)?,
        token: page_forms::read_any(visit, "auth-token", words.account_token)?,
        // Any text is a name.
        settings: settings.unwrap_or_default(),
    })
}

/// The page that shows a token once.
fn account_token(
    console: &Console,
    visit: &Visit,
    account: &Account,
    title: &'static str,
) -> Response {
    let words = visit.language.words();
    let rows = vec![
        SecretRow::new(words.account_sid, account.sid.as_str()),
        SecretRow::new(words.account_token, account.auth_token.reveal()),
    ];
    let (place, onward) = (MenuPlace::Accounts, address_of(&account.sid));
    secrets::show_once(console, visit, place, title, rows, onward)
}
