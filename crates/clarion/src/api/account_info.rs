//! `GET …/AccountInfo`: the account as its owner sees it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::Api;
use super::request::Authenticated;
use super::wire::Content;
use crate::domain::money::Money;

pub async fn show(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    let account = &request.account;
    let created = account.created_at.to_zoned(api.clock.zone().clone());
    request.answer(&Ok(Content::Group(
        "Account",
        vec![
            ("friendlyName", account.name.clone()),
            ("status", account.state.as_str().to_owned()),
            // Clients expect a number here, even if the operator keeps no balance.
            (
                "balance",
                account.balance.unwrap_or(Money::ZERO).to_string(),
            ),
            (
                "dateCreated",
                created.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            ),
        ],
    )))
}
