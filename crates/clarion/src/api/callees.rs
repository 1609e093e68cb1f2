//! Whom a request calls: its own numbers and those of its lists, and whether they may be called. What a request says by itself was checked before
//! (`notice_fields`); here is what the database knows.

use super::Api;
use super::directory::unavailable;
use crate::domain::account::Account;
use crate::domain::notice::{Notice, Recipient};
use crate::domain::route;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::{LISTS, NOTICES};

/// Everybody whom a notice calls, `to` first.
pub async fn find(
    api: &Api,
    account: &Account,
    notice: &Notice,
) -> Result<Vec<Recipient>, Refusal> {
    check_nodes(api, notice)?;
    if notice.lists.is_empty() {
        return Ok(notice.numbers.clone());
    }
    let names = notice.list_names();
    let lists = api.store.lists_named(&account.sid, &names).await;
    let lists = lists.map_err(|error| unavailable(&error))?;
    for name in &names {
        if !lists.iter().any(|list| list.name == *name) {
            return Err(Refusal::field(format!(
                "backupTo: {name} must be a list of this account, and there is none of that name"
            )));
        }
    }
    let mut recipients = notice.recipients(&lists, &api.config.numbers);
    recipients.retain(|to| notice.names(&to.number) || may_call(api, to));
    Ok(recipients)
}

/// Refuses notices that a server of an earlier version might take.
fn check_nodes(api: &Api, notice: &Notice) -> Result<(), Refusal> {
    let oldest = api.store.oldest_node();
    let message = if oldest < NOTICES {
        "redialling, backup numbers and times are not offered while a server of an earlier version is running"
    } else if oldest < LISTS && !notice.lists.is_empty() {
        "backupTo: lists are not offered while a server of an earlier version is running"
    } else {
        return Ok(());
    };
    Err(Refusal::new(StatusCode::NotOffered, message))
}

/// Whether a number of a list may be called. One that was allowed when the list was written and is not any more makes way for the others: a list is used
/// at night by requests that nobody can correct then.
fn may_call(api: &Api, to: &Recipient) -> bool {
    let plan = &api.config.numbers;
    let routes = api.config.trunks.iter().map(|trunk| &trunk.route);
    to.number.check_allowed(plan).is_ok()
        && to.number.check_no_emergency("backupTo", plan).is_ok()
        && route::is_carried(routes, to.ends())
        && !api.barred.contains(to.number.digits())
}

/// Those of them who want to be called. One that an operator has barred is a mistake of whoever names it. One on the account's do-not-call list
/// makes way for the others, because its owner may have put it there: the request is refused only where there is no other.
pub async fn willing(
    api: &Api,
    account: &Account,
    mut callees: Vec<Recipient>,
) -> Result<Vec<Recipient>, Refusal> {
    let refused = |message: String| Err(Refusal::new(StatusCode::CalledNotAllowed, message));
    for (place, to) in callees.iter().enumerate() {
        if api.barred.contains(to.number.digits()) {
            let field = if place == 0 { "to" } else { "backupTo" };
            return refused(format!("{field}: this number does not want to be called"));
        }
    }
    if !account.has_do_not_call {
        return Ok(callees);
    }
    let digits: Vec<_> = callees.iter().map(|to| to.number.digits()).collect();
    let unwanted = api.store.on_do_not_call(&account.sid, &digits).await;
    let unwanted = unwanted.map_err(|error| unavailable(&error))?;
    let message = match callees.len() {
        1 => "to: this number is on the do-not-call list of the account",
        _ => "to: this number and all of backupTo are on the do-not-call list of the account",
    };
    callees.retain(|to| !unwanted.contains(to.number.digits()));
    if callees.is_empty() {
        return refused(message.to_owned());
    }
    Ok(callees)
}
