//! Numbers that an account keeps: the lists that notices call, and those that it must not call.

use std::io::{BufRead, Read};

use anyhow::Context;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName, ListedNumber};
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource, parse_number};
use crate::domain::wording::{Wording, wording};

/// Numbers that are added together.
const BATCH: usize = 5_000;
/// In bytes. A mistyped name may be a disk image.
const LONGEST_LINE: u64 = 1_000;

/// A list as it is written: numbers, each with a name if there is one, such as `13800000000=Li Wei`.
#[derive(Debug, Clone)]
pub struct WrittenList {
    pub account: AccountSid,
    pub name: ListName,
    pub numbers: Vec<String>,
}

impl WrittenList {
    fn change(&self, action: &'static str) -> NotedChange {
        let change = NotedChange::new(action).with("account", &self.account);
        change.on(self.name.as_str()).on_all(&self.numbers)
    }
}

/// Lists.
impl Management {
    /// By their names.
    pub async fn lists(&self, account: &AccountSid) -> Result<Vec<CallList>, ManagementError> {
        self.account(account).await?;
        Ok(self.store.lists(account).await?)
    }

    pub async fn list(
        &self,
        account: &AccountSid,
        name: &ListName,
    ) -> Result<CallList, ManagementError> {
        let lists = self.store.lists_named(account, std::slice::from_ref(name));
        let missing = || ManagementError::missing(format!("list {name} of account {account}"));
        lists.await?.into_iter().next().ok_or_else(missing)
    }

    pub async fn add_list(&self, written: WrittenList) -> Result<CallList, ManagementError> {
        let add = async {
            let list = self.read_list(&written)?;
            self.store.add_list(list).await?;
            self.list(&written.account, &written.name).await
        };
        self.noted(written.change("list add"), add).await
    }

    /// The numbers of a list become these.
    pub async fn set_list(&self, written: WrittenList) -> Result<CallList, ManagementError> {
        let set = async {
            let list = self.read_list(&written)?;
            self.store.set_list(list).await?;
            self.list(&written.account, &written.name).await
        };
        self.noted(written.change("list set"), set).await
    }

    pub async fn remove_list(
        &self,
        account: &AccountSid,
        name: &ListName,
    ) -> Result<(), ManagementError> {
        let change = NotedChange::new("list remove")
            .with("account", account)
            .on(name.as_str());
        self.noted(change, self.store.remove_list(account, name))
            .await
    }

    fn read_list(&self, written: &WrittenList) -> Result<CallList, ManagementError> {
        let numbers = written.numbers.iter();
        let numbers = numbers.map(|text| ListedNumber::parse(text, &self.config.numbers));
        let (account, name) = (written.account.clone(), written.name.clone());
        let list = numbers
            .collect::<Result<_, _>>()
            .and_then(|numbers| CallList::new(account, name, numbers, self.clock.now()));
        list.map_err(ManagementError::rule)
    }
}

/// A number that was put on a do-not-call list, or taken off it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoNotCallChange {
    pub digits: String,
    /// False if it was so before.
    pub is_new: bool,
}

/// A number that was looked up in a do-not-call list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoNotCallLookup {
    pub digits: String,
    /// `None` if it is not on the list.
    pub entry: Option<DoNotCallEntry>,
}

/// What became of the lines of a file.
#[derive(Debug, Default)]
pub struct DoNotCallImport {
    pub added: u64,
    pub known: u64,
    /// Lines with no number that can be on the list, and why.
    pub wrong: Vec<(usize, Wording)>,
}

impl DoNotCallImport {
    /// Why not all of it was done.
    pub fn failure(&self) -> Option<String> {
        let wrong = self.wrong.len();
        let all = self.added + self.known + wrong as u64;
        (wrong > 0).then(|| {
            format!("{wrong} of {all} lines have no number for the list; the others are on it")
        })
    }
}

/// Do-not-call lists.
impl Management {
    pub async fn add_do_not_call(
        &self,
        account: &AccountSid,
        numbers: &[String],
    ) -> Result<Vec<DoNotCallChange>, ManagementError> {
        let change = NotedChange::new("do-not-call add").with("account", account);
        let add = async {
            let mut changes = Vec::new();
            for digits in self.read_unwanted(account, numbers).await? {
                let (one, source) = (vec![digits.clone()], DoNotCallSource::Operator);
                let now = self.clock.now();
                let added = self
                    .store
                    .add_do_not_call(account, one, source, now)
                    .await?;
                let is_new = added == 1;
                changes.push(DoNotCallChange { digits, is_new });
            }
            Ok::<_, ManagementError>(changes)
        };
        self.noted(change.on_all(numbers), add).await
    }

    pub async fn remove_do_not_call(
        &self,
        account: &AccountSid,
        numbers: &[String],
    ) -> Result<Vec<DoNotCallChange>, ManagementError> {
        let change = NotedChange::new("do-not-call remove").with("account", account);
        let remove = async {
            let mut changes = Vec::new();
            for digits in self.read_unwanted(account, numbers).await? {
                let is_new = self.store.remove_do_not_call(account, &digits).await?;
                changes.push(DoNotCallChange { digits, is_new });
            }
            Ok::<_, ManagementError>(changes)
        };
        self.noted(change.on_all(numbers), remove).await
    }

    /// Adds the numbers of a file, one a line; empty lines are skipped. What was added before the database or the file fails stays. `name` is that of the
    /// file.
    pub async fn import_do_not_call(
        &self,
        account: &AccountSid,
        name: &str,
        lines: impl BufRead + Send,
    ) -> Result<DoNotCallImport, ManagementError> {
        let change = NotedChange::new("do-not-call import").with("account", account);
        let import = self.import_lines(account, lines);
        self.noted_unless(change.on(name), import, DoNotCallImport::failure)
            .await
    }

    async fn import_lines(
        &self,
        account: &AccountSid,
        mut lines: impl BufRead + Send,
    ) -> Result<DoNotCallImport, ManagementError> {
        self.account(account).await?;
        let mut report = DoNotCallImport::default();
        let mut numbers = Vec::with_capacity(BATCH);
        let mut line = Vec::new();
        for place in 1.. {
            line.clear();
            let read = (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line);
            match read.with_context(|| format!("cannot read line {place}"))? as u64 {
                0 => break,
                LONGEST_LINE => {
                    return Err(ManagementError::rule(wording!(
                        "line {place} is too long: this is no file of numbers",
                        "第 {place} 行过长，不是号码文件"
                    )));
                }
                _ => {}
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() {
                continue;
            }
            match parse_number(text, &self.config.numbers) {
                Ok(digits) => numbers.push(digits),
                Err(rule) => report.wrong.push((place, rule)),
            }
            if numbers.len() == BATCH {
                let batch = std::mem::replace(&mut numbers, Vec::with_capacity(BATCH));
                self.import_batch(account, batch, &mut report).await?;
            }
        }
        self.import_batch(account, numbers, &mut report).await?;
        Ok(report)
    }

    async fn import_batch(
        &self,
        account: &AccountSid,
        numbers: Vec<String>,
        report: &mut DoNotCallImport,
    ) -> Result<(), ManagementError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let (count, source) = (numbers.len() as u64, DoNotCallSource::Import);
        let now = self.clock.now();
        let added = self.store.add_do_not_call(account, numbers, source, now);
        let added = added.await?;
        report.added += added;
        report.known += count - added;
        Ok(())
    }

    /// Whether a number is on the list, and since when.
    pub async fn look_up_do_not_call(
        &self,
        account: &AccountSid,
        number: &str,
    ) -> Result<DoNotCallLookup, ManagementError> {
        self.account(account).await?;
        let digits = self.read_unwanted_number(number)?;
        let entry = self.store.do_not_call_entry(account, &digits).await?;
        Ok(DoNotCallLookup { digits, entry })
    }

    /// A page of the list in the order of the numbers, after this one.
    pub async fn do_not_call_page(
        &self,
        account: &AccountSid,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DoNotCallEntry>, ManagementError> {
        self.account(account).await?;
        let after = after.map(|number| self.read_unwanted_number(number));
        let after = after.transpose()?.unwrap_or_default();
        Ok(self.store.do_not_call_page(account, &after, limit).await?)
    }

    async fn read_unwanted(
        &self,
        account: &AccountSid,
        numbers: &[String],
    ) -> Result<Vec<String>, ManagementError> {
        let numbers = numbers.iter().map(|text| self.read_unwanted_number(text));
        let numbers = numbers.collect::<Result<_, _>>()?;
        self.account(account).await?;
        Ok(numbers)
    }

    fn read_unwanted_number(&self, text: &str) -> Result<String, ManagementError> {
        let digits = parse_number(text, &self.config.numbers);
        digits.map_err(|rule| {
            ManagementError::rule(wording!("{text:?}: {rule}", "号码 {text:?}：{rule}"; rule))
        })
    }
}
