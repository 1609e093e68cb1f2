//! *Intakes*: where alerts come in. The page of one has its settings, what they make of an alert, and the incidents that are open.

use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};

use super::Console;
use super::page::{Frame, MenuPlace, html_with, led_to};
use super::page_forms::{
    self, FieldChoice, FormError, FormField, PageForms, SettingGroup, change_of, groups,
    setting_mistake,
};
use super::refusal::Refused;
use super::secrets::{self, SecretRow};
use super::sentence::Sentence;
use super::times::Moment;
use super::visit::Visit;
use super::words::Words;
use crate::domain::account::AppId;
use crate::domain::intake::change::IntakeChange;
use crate::domain::intake::incident::Incident;
use crate::domain::intake::{Intake, IntakeFormat, IntakeName, IntakeToken};
use crate::management::settings::Settings;
use crate::management::{NewIntake, TriedAlert};

const ADDRESS: &str = "/intakes";
const ADD: &str = "add";
const SETTINGS: &str = "settings";
/// Lines of the form for an alert.
const PAYLOAD_ROWS: u8 = 8;

#[derive(Template)]
#[template(path = "console/intakes.html")]
struct IntakesPage {
    frame: Frame,
    forms: PageForms,
    rows: Vec<IntakeRow>,
    add: Vec<FormField>,
    /// What an intake belongs to.
    apps: Vec<AppChoice>,
}

struct IntakeRow {
    name: String,
    format: &'static str,
    to: String,
    updated: Moment,
}

struct AppChoice {
    id: String,
    name: String,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "console/intake.html")]
struct IntakePage {
    frame: Frame,
    forms: PageForms,
    address: String,
    name: String,
    path: String,
    format: &'static str,
    app: String,
    app_id: String,
    updated: Moment,
    settings: Vec<SettingGroup>,
    payload: FormField,
    preview: Vec<PreviewRow>,
    /// Why there is no preview.
    no_preview: Option<Sentence>,
    incidents: Vec<IncidentRow>,
}

struct PreviewRow {
    key: String,
    text: Option<String>,
    callees: String,
    failure: Option<String>,
    not_called: Option<Sentence>,
}

struct IncidentRow {
    key: String,
    opened: Moment,
    seen: Moment,
    notices: u32,
    call: Option<String>,
}

fn name_of(visit: &Visit) -> Result<IntakeName, Refused> {
    let name = visit.path_value("intake").parse();
    name.map_err(|_| Refused::NotFound)
}

fn address_of(name: &IntakeName) -> String {
    format!("{ADDRESS}/{name}")
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    list_page(&console, &visit, PageForms::default()).await
}

async fn list_page(
    console: &Console,
    visit: &Visit,
    forms: PageForms,
) -> Result<Response, Refused> {
    let words = visit.language.words();
    let row = |intake: Intake| IntakeRow {
        name: intake.name.to_string(),
        format: intake.format.as_str(),
        to: shown_targets(&intake),
        updated: Moment::new(intake.updated_at, &console.clock, words),
    };
    let intakes = console.management.intakes().await?;
    let apps = console.management.usable_applications().await?;
    let chosen = forms.value(ADD, "app", "");
    let app = |app: crate::domain::account::Application| AppChoice {
        is_chosen: app.id.as_str() == chosen,
        id: app.id.to_string(),
        name: app.name,
    };
    let frame = Frame::new(console, visit, MenuPlace::Intakes, words.intakes_title);
    let page = IntakesPage {
        frame,
        rows: intakes.into_iter().map(row).collect(),
        add: new_fields(&forms, words),
        apps: apps.into_iter().map(app).collect(),
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

fn shown_targets(intake: &Intake) -> String {
    let to = intake.settings.to.iter().map(ToString::to_string);
    to.collect::<Vec<_>>().join(", ")
}

fn new_fields(forms: &PageForms, words: &'static Words) -> Vec<FormField> {
    let line = |name, label, hint| forms.line(ADD, name, label, hint, "");
    let format = |value: &'static str| FieldChoice { value, word: value };
    let formats = IntakeFormat::WORDS.iter().copied().map(format).collect();
    vec![
        line("name", words.intake_name, words.intake_name_hint),
        line("format", words.intake_format, words.intake_format_hint).one_of(formats),
        line("to", words.set_intake_to, words.set_intake_to_hint),
    ]
}

/// The new intake with its token, which is on this page alone.
pub async fn create(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let app: AppId = visit.field("app").parse().map_err(|_| Refused::BadForm)?;
    let words = visit.language.words();
    let add = async {
        let to = Some(visit.field("to").trim()).filter(|to| !to.is_empty());
        let settings = IntakeChange::from_texts(to.map(|to| ("to", to)));
        let new = NewIntake {
            name: page_forms::read(&visit, "name", words.intake_name)?,
            app,
            format: page_forms::read(&visit, "format", words.intake_format)?,
            settings: settings
                .map_err(|error| setting_mistake(&error, words.set_intake_to, words))?,
        };
        Ok::<_, FormError>(console.acting(&visit).add_intake(new).await?)
    };
    match add.await {
        Ok((intake, token)) => Ok(shown_once(
            &console,
            &visit,
            &intake,
            &token,
            words.intake_added,
        )),
        Err(error) => {
            let forms = PageForms::refused(&visit, ADD, error)?;
            list_page(&console, &visit, forms).await
        }
    }
}

fn shown_once(
    console: &Console,
    visit: &Visit,
    intake: &Intake,
    token: &IntakeToken,
    title: &'static str,
) -> Response {
    let words = visit.language.words();
    let rows = vec![
        SecretRow::new(words.intake_path, &intake.format.path(&intake.name)),
        SecretRow::new(words.intake_token, token.reveal()),
    ];
    let onward = address_of(&intake.name);
    secrets::show_once(console, visit, MenuPlace::Intakes, title, rows, onward)
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let change = IntakeChange::default();
    page(&console, &visit, PageForms::default(), change).await
}

/// The page, with what these settings would make of the alert.
async fn page(
    console: &Console,
    visit: &Visit,
    forms: PageForms,
    change: IntakeChange,
) -> Result<Response, Refused> {
    let (name, words) = (name_of(visit)?, visit.language.words());
    let management = &console.management;
    let intake = management.intake(&name).await?;
    let app = management.application(&intake.app).await?;
    let payload = Some(visit.field("payload").trim()).filter(|payload| !payload.is_empty());
    let body = payload.map(str::as_bytes);
    let (preview, no_preview) = match management.preview_intake(&name, change, body).await {
        Ok(tried) => {
            let row = |tried| PreviewRow::new(tried, words);
            (tried.iter().map(row).collect(), None)
        }
        Err(error) if error.is_refusal() => {
            (Vec::new(), Some(Sentence::of(words, &error.wording())))
        }
        Err(error) => return Err(error.into()),
    };
    let incidents = management.incidents(&name).await?;
    let frame = Frame::new(console, visit, MenuPlace::Intakes, name.as_str());
    let payload = forms.line(
        SETTINGS,
        "payload",
        words.intake_payload,
        words.intake_payload_hint,
        "",
    );
    let page = IntakePage {
        address: address_of(&name),
        frame: frame.at(address_of(&name)),
        path: intake.format.path(&name),
        name: name.to_string(),
        format: intake.format.as_str(),
        app: app.name,
        app_id: app.id.to_string(),
        updated: Moment::new(intake.updated_at, &console.clock, words),
        settings: groups(&IntakeChange::of(&intake), &forms, words),
        payload: payload.of_lines(PAYLOAD_ROWS),
        preview,
        no_preview,
        incidents: incidents
            .iter()
            .map(|incident| IncidentRow::new(incident, console, words))
            .collect(),
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

impl PreviewRow {
    fn new(tried: &TriedAlert, words: &Words) -> Self {
        let notice = tried.notice.as_ref();
        let not_called = notice.and_then(|notice| notice.not_called.as_ref());
        Self {
            key: tried.key.clone(),
            text: notice.map(|notice| notice.text.clone()),
            callees: notice.map_or_else(String::new, |notice| notice.callees.join(", ")),
            failure: notice.and_then(|notice| notice.failure.clone()),
            not_called: not_called.map(|why| Sentence::of(words, why)),
        }
    }
}

impl IncidentRow {
    fn new(incident: &Incident, console: &Console, words: &Words) -> Self {
        Self {
            key: incident.key.as_str().to_owned(),
            opened: Moment::new(incident.opened_at, &console.clock, words),
            seen: Moment::new(incident.seen_at, &console.clock, words),
            notices: incident.notices,
            call: incident.call.as_ref().map(ToString::to_string),
        }
    }
}

/// Saves the settings, or only shows what they would make of an alert.
pub async fn set(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let name = name_of(&visit)?;
    let change = match change_of::<IntakeChange>(&visit) {
        Ok(change) => change,
        Err(error) => return refused(&console, &visit, error).await,
    };
    if visit.field("do") == "preview" {
        let forms = PageForms::kept(&visit, SETTINGS);
        return page(&console, &visit, forms, change.unwrap_or_default()).await;
    }
    let Some(change) = change else {
        return Ok(led_to(&address_of(&name), "unchanged"));
    };
    match console.acting(&visit).set_intake(&name, change).await {
        Ok(_) => Ok(led_to(&address_of(&name), "saved")),
        Err(error) => refused(&console, &visit, error.into()).await,
    }
}

async fn refused(
    console: &Console,
    visit: &Arc<Visit>,
    error: FormError,
) -> Result<Response, Refused> {
    let forms = PageForms::refused(visit, SETTINGS, error)?;
    page(console, visit, forms, IntakeChange::default()).await
}

pub async fn rotate_token(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (name, words) = (name_of(&visit)?, visit.language.words());
    let rotated = console.acting(&visit).rotate_intake_token(&name).await?;
    let (intake, token) = rotated;
    Ok(shown_once(
        &console,
        &visit,
        &intake,
        &token,
        words.intake_rotated,
    ))
}

pub async fn remove(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let name = name_of(&visit)?;
    console.acting(&visit).remove_intake(&name).await?;
    Ok(led_to(ADDRESS, "intake-removed"))
}

/// Calls the people of the intake with the sample, and leads to the call.
pub async fn test(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let name = name_of(&visit)?;
    let tried = console.acting(&visit).test_intake(&name, None).await?;
    let call = tried
        .iter()
        .find_map(|tried| tried.notice.as_ref()?.call.clone());
    Ok(match call {
        Some(call) => Redirect::to(&format!("/calls/{call}?done=requested")).into_response(),
        None => led_to(&address_of(&name), "unchanged"),
    })
}
