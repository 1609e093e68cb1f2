//! `GET …/AccountInfo`: the account as its owner sees it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;

use super::Api;
use super::request::Authenticated;
use super::wire::{AnswerForm, Content, Field};

pub const ANSWER: AnswerForm = AnswerForm {
    group: Some("Account"),
    fields: &[
        Field::required("friendlyName", "Name of the account."),
        Field::required("status", "active; an account in another state is refused."),
        Field::required("type", "main: there are no others."),
        Field::optional(
            "balance",
            "",
            "What is left of it, where the operator keeps one for the account.",
        ),
        Field::required(
            "dateCreated",
            "When it was made: yyyy-MM-dd HH:mm:ss in the platform's zone.",
        ),
        Field::required("dateUpdated", "When it was last changed, in the same form."),
    ],
};

pub async fn show(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    let account = &request.account;
    let time = |time: Timestamp| {
        let local = time.to_zoned(api.clock.zone().clone());
        local.strftime("%Y-%m-%d %H:%M:%S").to_string()
    };
    let mut values = vec![
        ("friendlyName", account.name.clone()),
        ("status", account.state.as_str().to_owned()),
        // There are no others.
        ("type", "main".to_owned()),
    ];
    // Where the operator keeps no balance, 0.00 would say that it is used up.
    let balance = account.balance.map(|balance| balance.to_string());
    values.extend(balance.map(|balance| ("balance", balance)));
    values.push(("dateCreated", time(account.created_at)));
    values.push(("dateUpdated", time(account.updated_at)));
    request.answer(&Ok(Content::Group("Account", values)))
}
