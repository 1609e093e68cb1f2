//! `clarion audit`: who changed what and when; and who runs this program, by which command, as the trail knows them.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::print;
use crate::clock::Clock;
use crate::config::Login;
use crate::domain::audit::{Actor, AuditEntry, AuditFilter};
use crate::management::Management;
use crate::management::change::{self, quoted};

/// Options whose values are secrets, unless they name a file.
const SECRETS: [&str; 3] = ["--token", "--callback-secret", "--password"];
/// Options of `clarion call place` whose values are between a customer and a callee, or may have a secret of a customer in them.
const PRIVATE: [&str; 10] = [
    "--media-txt",
    "--mediaTxt",
    "--input-dtmf-prompt",
    "--inputDtmfPrompt",
    "--user-data",
    "--userData",
    "--resp-url",
    "--respUrl",
    "--call-state-url",
    "--callStateUrl",
];
const USERS: &str = "/etc/passwd";

#[derive(Debug, Args)]
pub struct Audit {
    /// Only changes that name this: a command, an account, a number
    about: Option<String>,
    /// Only changes since this moment, such as 2026-11-15T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// Only changes by this operator or user of the machine
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Number of changes at most
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(audit: Audit, management: &Management) -> anyhow::Result<()> {
    let filter = AuditFilter {
        since: audit.since,
        before: None,
        by: audit.by,
        about: audit.about,
        limit: audit.limit,
    };
    let changes = management.changes(filter).await?;
    let changes: Vec<_> = changes.into_iter().map(|line| line.entry).collect();
    if audit.json {
        print(true, &changes.iter().map(describe).collect());
        return Ok(());
    }
    if changes.is_empty() {
        println!("none");
    }
    for change in changes {
        println!("{}", line(&change, management.clock()));
    }
    Ok(())
}

fn describe(entry: &AuditEntry) -> Value {
    json!({
        "at": entry.at.to_string(),
        "operator": entry.actor.operator,
        "systemUser": entry.actor.system_user,
        "address": entry.actor.address,
        "action": entry.action,
        "detail": entry.detail,
        "failure": entry.failure,
    })
}

fn line(entry: &AuditEntry, clock: &Clock) -> String {
    let at = entry.at.to_zoned(clock.zone().clone());
    let actor = &entry.actor;
    let who = actor.operator.as_deref().or(actor.system_user.as_deref());
    let from = actor.address.as_ref().map(|from| format!(" from {from}"));
    let failed = entry.failure.as_ref();
    let failed = failed.map(|why| format!("  (not done, or not all of it: {why})"));
    format!(
        "{}  {}{}  {}{}",
        at.strftime("%Y-%m-%d %H:%M:%S"),
        who.unwrap_or("-"),
        from.unwrap_or_default(),
        entry.detail,
        failed.unwrap_or_default()
    )
}

/// The command line of this process as it is noted.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    without_secrets(words.map(|word| word.to_string_lossy().into_owned()))
}

/// The command line as one text. A value that is a secret is left out; the name of the file that it came from is not.
fn without_secrets(words: impl Iterator<Item = String>) -> String {
    let (mut line, mut option) = (Vec::new(), String::new());
    for word in words {
        let named = word.split_once('=').filter(|(name, _)| is_hidden(name));
        line.push(match named {
            _ if is_hidden(&option) => shown(&option, &word),
            Some((name, value)) => format!("{name}={}", shown(name, value)),
            None => quoted(&word),
        });
        option = word;
    }
    change::cut(line.join(" "))
}

fn is_hidden(option: &str) -> bool {
    SECRETS.contains(&option) || PRIVATE.contains(&option)
}

fn shown(option: &str, value: &str) -> String {
    let is_place = value.starts_with('@') || ["-", "none"].contains(&value);
    if is_place && SECRETS.contains(&option) {
        return quoted(value);
    }
    change::HIDDEN.to_owned()
}

/// Whoever runs this process.
pub fn this_user() -> Actor {
    let login = Login::of_this_process();
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string(USERS).unwrap_or_default();
    let name = user_name(&users, id).unwrap_or_else(|| format!("user {id}"));
    Actor {
        operator: None,
        system_user: Some(match login.sudo_user {
            Some(sudo_user) => format!("{sudo_user} as {name}"),
            None => name,
        }),
        address: login.address,
    }
}

fn user_name(users: &str, id: u32) -> Option<String> {
    let id = id.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, third) = (fields.next()?, fields.nth(1)?);
        (third == id).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_noted() {
        let noted = |line: &str| without_secrets(line.split('|').map(str::to_owned));
        for (line, wanted) in [
            (
                "account|add|--token|0123|--name|a b",
                "account add --token (hidden) --name \"a b\"",
            ),
            (
                "app|set|x|--callback-secret=whsec_1",
                "app set x --callback-secret=(hidden)",
            ),
            (
                "call|place|--to|13800000001|--media-txt|your code is 12",
                "call place --to 13800000001 --media-txt (hidden)",
            ),
            (
                "call|place|--mediaTxt=@home|--resp-url=http://x/?key=1",
                "call place --mediaTxt=(hidden) --resp-url=(hidden)",
            ),
            ("account|add|--token|@file", "account add --token @file"),
            ("account|add|--token|-", "account add --token -"),
            (
                "app|set|x|--callback-secret|none",
                "app set x --callback-secret none",
            ),
            (
                "account|add|--token|--token",
                "account add --token (hidden)",
            ),
            (
                "call|bar|+8613800000000|\n",
                "call bar +8613800000000 \"\\n\"",
            ),
        ] {
            assert_eq!(noted(line), wanted);
        }
        assert!(noted(&"字".repeat(9000)).chars().count() < 5000);
    }

    #[test]
    fn a_user_has_a_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nli:x:1000:1000::/home/li:/bin/sh\nbroken\n";
        assert_eq!(user_name(users, 1000).as_deref(), Some("li"));
        assert_eq!(user_name(users, 7), None);
    }
}
