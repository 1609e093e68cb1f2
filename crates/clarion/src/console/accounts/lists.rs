//! *Lists*: numbers that an account keeps under a name, in the order of their turns. They are written one a line, as the command line takes them.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;

use super::{address_of, shown_name, sid_of};
use crate::console::Console;
use crate::console::page::{Frame, MenuPlace, html_with, led_to};
use crate::console::page_forms::{self, FormError, FormField, PageForms};
use crate::console::refusal::Refused;
use crate::console::times::Moment;
use crate::console::visit::Visit;
use crate::console::words::{Words, fill};
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName, ListedNumber};
use crate::management::WrittenList;

const ADD: &str = "add";
/// Lines of a form for the numbers of a list.
const ROWS: u8 = 6;

#[derive(Template)]
#[template(path = "console/lists.html")]
struct ListsPage {
    frame: Frame,
    forms: PageForms,
    sid: String,
    account: String,
    lists: Vec<ListRow>,
    add: [FormField; 2],
}

struct ListRow {
    name: ListName,
    /// The name of the form that changes it, and what it is called.
    form: String,
    edit: String,
    changed: Moment,
    numbers: Vec<ListedNumber>,
    field: FormField,
}

fn address(sid: &AccountSid) -> String {
    format!("{}/lists", address_of(sid))
}

fn form_of(name: &ListName) -> String {
    format!("list-{}", name.as_str())
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, PageForms::default()).await
}

async fn page(console: &Console, visit: &Visit, forms: PageForms) -> Result<Response, Refused> {
    let (sid, words) = (sid_of(visit)?, visit.language.words());
    let account = console.management.account(&sid).await?;
    let lists = console.management.lists(&sid).await?;
    let row = |list: CallList| ListRow {
        form: form_of(&list.name),
        edit: fill(words.list_edit, &[("name", &list.name.to_string())]),
        changed: Moment::new(list.updated_at, &console.clock, words),
        field: numbers_field(&forms, &form_of(&list.name), &list.numbers, words),
        name: list.name,
        numbers: list.numbers,
    };
    let frame = Frame::new(console, visit, MenuPlace::Accounts, words.lists_title);
    let page = ListsPage {
        frame: frame.at(address(&sid)),
        sid: sid.to_string(),
        account: shown_name(&account.name, sid.as_str()),
        lists: lists.into_iter().map(row).collect(),
        add: [
            forms.line(ADD, "name", words.list_name, words.list_name_hint, ""),
            numbers_field(&forms, ADD, &[], words),
        ],
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

fn numbers_field(
    forms: &PageForms,
    form: &str,
    numbers: &[ListedNumber],
    words: &'static Words,
) -> FormField {
    let written: Vec<_> = numbers.iter().map(ListedNumber::to_string).collect();
    let (label, hint) = (words.list_numbers, words.list_numbers_hint);
    let field = forms.line(form, "numbers", label, hint, &written.join("\n"));
    field.of_lines(ROWS)
}

fn written(visit: &Visit, account: &AccountSid, name: ListName) -> WrittenList {
    let lines = visit.field("numbers").lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    WrittenList {
        account: account.clone(),
        name,
        numbers: lines.map(str::to_owned).collect(),
    }
}

/// The list that a form is about.
fn named(visit: &Visit) -> Result<ListName, Refused> {
    let name = visit.field("name").parse();
    name.map_err(|_| Refused::BadForm)
}

pub async fn add(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    let add = async {
        let label = visit.language.words().list_name;
        let name = page_forms::read(&visit, "name", label)?;
        let list = written(&visit, &sid, name);
        console.acting(&visit).add_list(list).await?;
        Ok::<_, FormError>(())
    };
    match add.await {
        Ok(()) => Ok(led_to(&address(&sid), "list-added")),
        Err(error) => {
            let forms = PageForms::refused(&visit, ADD, error)?;
            page(&console, &visit, forms).await
        }
    }
}

pub async fn set(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (sid, name) = (sid_of(&visit)?, named(&visit)?);
    let form = form_of(&name);
    let list = written(&visit, &sid, name);
    match console.acting(&visit).set_list(list).await {
        Ok(_) => Ok(led_to(&address(&sid), "list-set")),
        Err(error) => {
            let forms = PageForms::refused(&visit, form, error.into())?;
            page(&console, &visit, forms).await
        }
    }
}

pub async fn remove(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (sid, name) = (sid_of(&visit)?, named(&visit)?);
    console.acting(&visit).remove_list(&sid, &name).await?;
    Ok(led_to(&address(&sid), "list-removed"))
}
