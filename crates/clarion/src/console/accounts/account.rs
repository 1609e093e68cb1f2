//! *One account*: its settings, its money, its rates and its applications; and what an admin may do about it.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::account_forms::{RateRow, app_name_field, rate_fields};
use super::{account_token, address_of, shown_name, sid_of};
use crate::console::Console;
use crate::console::page::{Frame, MenuPlace, html_with, led_to};
use crate::console::page_forms::{
    FormError, FormField, PageForms, SettingGroup, change_of, groups,
};
use crate::console::refusal::Refused;
use crate::console::shown::{Mark, account_mark, app_mark};
use crate::console::times::Moment;
use crate::console::visit::Visit;
use crate::console::words::Words;
use crate::domain::account::{Account, AccountChange, AccountSid, AccountState, Application};
use crate::domain::bill::rating::Funds;

#[derive(Template)]
#[template(path = "console/account.html")]
struct AccountPage {
    frame: Frame,
    forms: PageForms,
    sid: String,
    name: String,
    mark: Mark,
    is_suspended: bool,
    created: Moment,
    updated: Moment,
    money: Vec<(&'static str, String)>,
    settings: Vec<SettingGroup>,
    rates: Vec<RateRow>,
    rate_fields: [FormField; 4],
    apps: Vec<AppRow>,
    app_name: FormField,
}

struct AppRow {
    id: String,
    name: String,
    mark: Mark,
    created: Moment,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, PageForms::default()).await
}

/// The page again, with a form of it that was refused.
pub(super) async fn refused(
    console: &Console,
    visit: &Arc<Visit>,
    form: &str,
    error: FormError,
) -> Result<Response, Refused> {
    let forms = PageForms::refused(visit, form, error)?;
    page(console, visit, forms).await
}

async fn page(console: &Console, visit: &Visit, forms: PageForms) -> Result<Response, Refused> {
    let (sid, words) = (sid_of(visit)?, visit.language.words());
    let management = &console.management;
    let account = management.account(&sid).await?;
    let funds = management.funds(&sid).await?;
    let rates = management.rates(Some(&sid)).await?;
    let apps = management.applications(&sid).await?;
    let moment = |time| Moment::new(time, &console.clock, words);
    let app = |app: &Application| AppRow {
        id: app.id.to_string(),
        name: shown_name(&app.name, app.id.as_str()),
        mark: app_mark(app.state, words),
        created: moment(app.created_at),
    };
    let name = shown_name(&account.name, sid.as_str());
    let frame = Frame::new(console, visit, MenuPlace::Accounts, name.as_str());
    let page = AccountPage {
        frame: frame.at(address_of(&sid)),
        sid: sid.to_string(),
        mark: account_mark(account.state, words),
        is_suspended: account.state == AccountState::Suspended,
        created: moment(account.created_at),
        updated: moment(account.updated_at),
        money: money(&account, funds, words),
        settings: groups(&AccountChange::of(&account), &forms, words),
        rates: rates.iter().map(RateRow::new).collect(),
        rate_fields: rate_fields(&forms, words),
        apps: apps.iter().map(app).collect(),
        app_name: app_name_field(&forms, words),
        name,
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

/// What the account has and has spent.
fn money(
    account: &Account,
    funds: Option<Funds>,
    words: &'static Words,
) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let balance = funds.map_or(account.balance, |funds| funds.balance);
    if let Some(balance) = balance {
        rows.push((words.set_balance, balance.to_string()));
    }
    if let Some(funds) = funds {
        rows.push((words.money_spent, funds.spent.to_string()));
        rows.push((words.money_reserved, funds.reserved.to_string()));
    }
    rows
}

pub async fn set(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    match save(&console, &visit, &sid).await {
        Ok(done) => Ok(led_to(&address_of(&sid), done)),
        Err(error) => refused(&console, &visit, "settings", error).await,
    }
}

async fn save(
    console: &Console,
    visit: &Visit,
    sid: &AccountSid,
) -> Result<&'static str, FormError> {
    let Some(change) = change_of::<AccountChange>(visit)? else {
        return Ok("unchanged");
    };
    console.acting(visit).set_account(sid, change).await?;
    Ok("saved")
}

pub async fn suspend(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (sid, hang_up) = (sid_of(&visit)?, visit.field("hang-up") == "yes");
    let management = console.acting(&visit);
    management.suspend_account(&sid, hang_up).await?;
    let done = if hang_up {
        "suspended-hung-up"
    } else {
        "suspended"
    };
    Ok(led_to(&address_of(&sid), done))
}

pub async fn resume(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    let active = AccountChange {
        state: Some(AccountState::Active),
        ..AccountChange::default()
    };
    console.acting(&visit).set_account(&sid, active).await?;
    Ok(led_to(&address_of(&sid), "resumed"))
}

/// The new token is on this page alone.
pub async fn rotate_token(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    let rotated = console.acting(&visit).rotate_token(&sid, None).await?;
    let title = visit.language.words().account_rotated;
    Ok(account_token(&console, &visit, &rotated, title))
}
