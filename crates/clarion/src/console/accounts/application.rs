//! *One application*: its settings. Its secret is shown once, when it is made.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::account_forms::APPLICATION;
use super::{account, app_of, shown_name, sid_of};
use crate::console::Console;
use crate::console::page::{Frame, MenuPlace, html_with, led_to};
use crate::console::page_forms::{FormError, PageForms, SettingGroup, change_of, groups};
use crate::console::refusal::Refused;
use crate::console::secrets::{self, SecretRow};
use crate::console::shown::{Mark, app_mark};
use crate::console::times::Moment;
use crate::console::visit::Visit;
use crate::domain::account::{AppId, Application, ApplicationChange};
use crate::management::NewApplication;

#[derive(Template)]
#[template(path = "console/application.html")]
struct ApplicationPage {
    frame: Frame,
    forms: PageForms,
    id: String,
    name: String,
    mark: Mark,
    created: Moment,
    account: String,
    account_sid: String,
    settings: Vec<SettingGroup>,
}

fn address_of(id: &AppId) -> String {
    format!("/apps/{id}")
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, PageForms::default()).await
}

async fn page(console: &Console, visit: &Visit, forms: PageForms) -> Result<Response, Refused> {
    let (id, words) = (app_of(visit)?, visit.language.words());
    let app = console.management.application(&id).await?;
    let account = console.management.account(&app.account).await?;
    let name = shown_name(&app.name, id.as_str());
    let frame = Frame::new(console, visit, MenuPlace::Accounts, name.as_str());
    let page = ApplicationPage {
        frame: frame.at(address_of(&id)),
        id: id.to_string(),
        mark: app_mark(app.state, words),
        created: Moment::new(app.created_at, &console.clock, words),
        account: shown_name(&account.name, account.sid.as_str()),
        account_sid: account.sid.to_string(),
        settings: groups(&ApplicationChange::of(&app), &forms, words),
        name,
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

pub async fn set(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let id = app_of(&visit)?;
    let save = async {
        let Some(change) = change_of::<ApplicationChange>(&visit)? else {
            return Ok("unchanged");
        };
        console.acting(&visit).set_application(&id, change).await?;
        Ok::<_, FormError>("saved")
    };
    match save.await {
        Ok(done) => Ok(led_to(&address_of(&id), done)),
        Err(error) => {
            let forms = PageForms::refused(&visit, "settings", error)?;
            page(&console, &visit, forms).await
        }
    }
}

pub async fn create(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    // An account that is not there is no mistake in the form.
    console.management.account(&sid).await?;
    let new = NewApplication {
        account: sid,
        id: None,
        name: visit.field("name").trim().to_owned(),
        signs_callbacks: visit.field("sign-callbacks") == "yes",
    };
    match console.acting(&visit).add_application(new).await {
        Ok(app) => Ok(added(&console, &visit, &app)),
        Err(error) => account::refused(&console, &visit, APPLICATION, error.into()).await,
    }
}

/// The new secret is on this page alone.
pub async fn rotate_secret(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let id = app_of(&visit)?;
    let app = console.acting(&visit).rotate_callback_secret(&id).await?;
    let title = visit.language.words().app_rotated;
    Ok(shown_once(&console, &visit, &app, title))
}

fn added(console: &Console, visit: &Visit, app: &Application) -> Response {
    shown_once(console, visit, app, visit.language.words().app_added)
}

/// The page of the application, where it has no secret.
fn shown_once(
    console: &Console,
    visit: &Visit,
    app: &Application,
    title: &'static str,
) -> Response {
    let words = visit.language.words();
    let Some(secret) = &app.callback_secret else {
        return led_to(&address_of(&app.id), "app-added");
    };
    let rows = vec![
        SecretRow::new(words.app_id, app.id.as_str()),
        SecretRow::new(words.set_secret, secret.reveal()),
    ];
    let (place, onward) = (MenuPlace::Accounts, address_of(&app.id));
    secrets::show_once(console, visit, place, title, rows, onward)
}
