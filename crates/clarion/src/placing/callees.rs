//! Whom a call may be made to: its own numbers and those of its lists, by what the platform allows and what the database knows.

use super::CallPlacing;
use crate::config::Config;
use crate::domain::account::Account;
use crate::domain::call_list::{CallList, ListName, ListedNumber};
use crate::domain::notice::{Notice, Recipient};
use crate::domain::phone_number::PhoneNumber;
use crate::domain::route;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::wording::wording;
use crate::store::{HEARING, LISTS, NOTICES, unavailable};

impl CallPlacing {
    /// Everybody whom a call may be made to, `to` first.
    pub async fn callees(
        &self,
        account: &Account,
        to: &Recipient,
        notice: Option<&Notice>,
    ) -> Result<Vec<Recipient>, Refusal> {
        let callees = match notice {
            Some(notice) => self.find_callees(account, notice).await?,
            None => vec![to.clone()],
        };
        self.willing(account, callees).await
    }

    /// Everybody whom a notice calls.
    async fn find_callees(
        &self,
        account: &Account,
        notice: &Notice,
    ) -> Result<Vec<Recipient>, Refusal> {
        self.check_nodes(notice)?;
        if notice.lists.is_empty() {
            return Ok(notice.numbers.clone());
        }
        let names = notice.list_names();
        let lists = self.lists(account, &names).await?;
        for name in &names {
            if !lists.iter().any(|list| list.name == *name) {
                let rule = wording!(
                    "backupTo: {name} must be a list of this account, and there is none of that name",
                    "账户没有名为 {name} 的号码列表"
                );
                return Err(Refusal::worded(StatusCode::FieldWrong, &rule));
            }
        }
        let mut recipients = notice.recipients(&lists, &self.config.numbers);
        recipients.retain(|to| notice.names(&to.number) || self.may_call(to));
        Ok(recipients)
    }

    /// Those of the lists that there are.
    pub async fn lists(
        &self,
        account: &Account,
        names: &[ListName],
    ) -> Result<Vec<CallList>, Refusal> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let lists = self.store.lists_named(&account.sid, names).await;
        lists.map_err(|error| unavailable(&error))
    }

    /// Whether a number may be called now because of something that nobody watches over: no emergency number is, even where requests may name it.
    pub fn check_callee(
        &self,
        text: &str,
        shown: Option<&str>,
        account: &Account,
    ) -> Result<(), Refusal> {
        let to = recipient("to", text, shown, account, &self.config)?;
        to.number.check_no_emergency("to", &self.config.numbers)?;
        if self.barred.contains(to.number.digits()) {
            return Err(barred("to"));
        }
        Ok(())
    }

    /// The first number of a list that may be called now.
    pub fn first_of<'a>(
        &self,
        list: &'a CallList,
        shown: Option<&str>,
        account: &Account,
    ) -> Option<&'a str> {
        let may_call =
            |listed: &&ListedNumber| self.check_callee(&listed.called, shown, account).is_ok();
        let first = list.numbers.iter().find(may_call);
        first.map(|listed| listed.called.as_str())
    }

    /// Refuses notices that a server of an earlier version might take.
    fn check_nodes(&self, notice: &Notice) -> Result<(), Refusal> {
        let oldest = self.oldest_node();
        let message = if oldest < NOTICES {
            "redialling, backup numbers and times are not offered while a server of an earlier version is running"
        } else if oldest < LISTS && !notice.lists.is_empty() {
            "backupTo: lists are not offered while a server of an earlier version is running"
        } else if oldest < HEARING && notice.machine.is_some() {
            "machineDetect is not offered while a server of an earlier version is running"
        } else {
            return Ok(());
        };
        Err(Refusal::new(StatusCode::NotOffered, message))
    }

    /// Whether a number of a list may be called. One that was allowed when the list was written and is not any more makes way for the others: a list is
    /// used at night by requests that nobody can correct then.
    fn may_call(&self, to: &Recipient) -> bool {
        let plan = &self.config.numbers;
        let routes = self.config.trunks.iter().map(|trunk| &trunk.route);
        to.number.check_allowed(plan).is_ok()
            && to.number.check_no_emergency("backupTo", plan).is_ok()
            && route::is_carried(routes, to.ends())
            && !self.barred.contains(to.number.digits())
    }

    /// Those of them who want to be called. One that an operator has barred is a mistake of whoever names it. One on the account's do-not-call list
    /// makes way for the others, because its owner may have put it there: the request is refused only where there is no other.
    async fn willing(
        &self,
        account: &Account,
        mut callees: Vec<Recipient>,
    ) -> Result<Vec<Recipient>, Refusal> {
        for (place, to) in callees.iter().enumerate() {
            if self.barred.contains(to.number.digits()) {
                return Err(barred(if place == 0 { "to" } else { "backupTo" }));
            }
        }
        if !account.has_do_not_call {
            return Ok(callees);
        }
        let digits: Vec<_> = callees.iter().map(|to| to.number.digits()).collect();
        let unwanted = self.store.on_do_not_call(&account.sid, &digits).await;
        let unwanted = unwanted.map_err(|error| unavailable(&error))?;
        let rule = if callees.len() == 1 {
            wording!(
                "to: this number is on the do-not-call list of the account",
                "该号码在账户的免打扰名单中"
            )
        } else {
            wording!(
                "to: this number and all of backupTo are on the do-not-call list of the account",
                "该号码和所有备用号码都在账户的免打扰名单中"
            )
        };
        callees.retain(|to| !unwanted.contains(to.number.digits()));
        if callees.is_empty() {
            return Err(Refusal::worded(StatusCode::CalledNotAllowed, &rule));
        }
        Ok(callees)
    }
}

fn barred(field: &str) -> Refusal {
    let rule = wording!("this number does not want to be called", "该号码已禁呼");
    let refusal = Refusal::worded(StatusCode::CalledNotAllowed, &rule);
    refusal.about(&format!("{field}:"))
}

/// A number in a field, as it may be called: its form, what the platform calls, and who carries it. `shown` is the number that the request wants to show.
pub fn recipient(
    field: &str,
    text: &str,
    shown: Option<&str>,
    account: &Account,
    config: &Config,
) -> Result<Recipient, Refusal> {
    let in_field = |refusal: Refusal| refusal.in_field("to", field);
    let number = PhoneNumber::parse(text, &config.numbers).map_err(in_field)?;
    number.check_allowed(&config.numbers).map_err(in_field)?;
    if field != "to" {
        number.check_no_emergency(field, &config.numbers)?;
    }
    let to = Recipient {
        called: text.to_owned(),
        callee: config.numbers.callee(&number),
        caller: account.caller(shown, &number, &config.numbers),
        number,
    };
    let routes = config.trunks.iter().map(|trunk| &trunk.route);
    if !route::is_carried(routes, to.ends()) {
        let refusal = Refusal::from(StatusCode::NoRoute);
        return Err(match field {
            "to" => refusal,
            _ => refusal.about(&format!("{field}:")),
        });
    }
    Ok(to)
}
