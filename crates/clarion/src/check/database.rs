//! Checks the database: whether it exists, is ours and can be written, and what the operator has switched in it.

use std::sync::Arc;

use super::OtherClock;
use super::finding::Finding;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::audit::Actor;
use crate::management::{Management, ManagementError};
use crate::store::{Database, DatabaseRoute, Inspection};

const SUBJECT: &str = "database";

pub async fn check(
    database: &Database,
    config: &Arc<Config>,
    clock: &Clock,
) -> (Vec<Finding>, Vec<OtherClock>) {
    let before = clock.now();
    let found = match database.inspect().await {
        Ok(found) => found,
        Err(error) => {
            let problem = Finding::problem(
                SUBJECT,
                format!("{database} cannot be used: {error:#}"),
                "see that it runs, that the address and password in `database` are right, and that this user may write to it",
            );
            return (vec![problem], Vec::new());
        }
    };
    let after = clock.now();
    // The database made its answer between our question and the arrival of the answer.
    let middle = before + after.duration_since(before) / 2;
    let clocks = found
        .now
        .map(|now| OtherClock::new("the database", now, middle));
    let mut findings = vec![schema(database, &found)];
    findings.extend(found.route.iter().flat_map(route));
    findings.extend(found.dangers.iter().map(|danger| {
        let remedy = "correct its settings (postgresql.conf), or name another database";
        Finding::problem(SUBJECT, format!("{database}: {danger}"), remedy)
    }));
    findings.extend(found.damage.iter().map(|damage| {
        let remedy =
            "stop the server, keep the file, and restore the last backup (docs/operating.md)";
        Finding::problem(SUBJECT, format!("{database} is damaged: {damage}"), remedy)
    }));
    if found.version >= found.wanted && found.is_usable {
        findings.extend(contents(config).await);
    }
    (findings, clocks.into_iter().collect())
}

/// How it was reached, and what of that is not as it should be.
fn route(route: &DatabaseRoute) -> Vec<Finding> {
    let host = &route.host;
    let remedy = "write sslmode=verify-full and sslrootcert into `database` (docs/operating.md)";
    let mut findings = vec![match &route.encryption {
        Some(version) if route.verified => Finding::ok(
            SUBJECT,
            format!("{host} is reached by {version}; its certificate is verified"),
        ),
        Some(version) if route.on_this_machine => {
            Finding::ok(SUBJECT, format!("{host} is reached by {version}"))
        }
        Some(version) => Finding::warning(
            SUBJECT,
            format!("{host} is reached by {version}, but nobody verifies that it is {host}"),
            remedy,
        ),
        None if route.on_this_machine => {
            Finding::ok(SUBJECT, format!("{host} is reached on this machine"))
        }
        None => Finding::warning(
            SUBJECT,
            format!(
                "{host} is reached without encryption: tokens and numbers can be read on the way"
            ),
            remedy,
        ),
    }];
    findings.extend(route.hosts.iter().map(|(name, found)| match found {
        Ok(kind) => Finding::ok(SUBJECT, format!("{name}: {kind}")),
        Err(problem) => Finding::warning(
            SUBJECT,
            format!("{name} cannot be asked: {problem}"),
            "without it, there is one host less to go on with when another fails",
        ),
    }));
    findings
}

fn schema(database: &Database, found: &Inspection) -> Finding {
    let (version, wanted) = (found.version, found.wanted);
    if !found.is_usable {
        return Finding::problem(
            SUBJECT,
            format!("{database} has schema {version}, this program knows {wanted}"),
            "use the newer program that wrote it, or restore the backup from before the upgrade",
        );
    }
    Finding::ok(
        SUBJECT,
        match version {
            0 => format!("{database} is empty; the first start makes schema {wanted}"),
            _ if version < wanted => format!(
                "{database} has schema {version}; the next start brings it to {wanted} (back it up first)"
            ),
            _ if version > wanted => format!(
                "{database} has schema {version}, which is newer than this program ({wanted}) and was made for it too"
            ),
            _ => format!("{database} has schema {version} and can be written"),
        },
    )
}

/// Checks the contents. The schema is the one that we know, so opening the database changes nothing.
async fn contents(config: &Arc<Config>) -> Vec<Finding> {
    let management = match Management::open(Arc::clone(config), Actor::default()).await {
        Ok(management) => management,
        Err(error) => {
            let remedy = "see the message";
            return vec![Finding::problem(SUBJECT, format!("{error:#}"), remedy)];
        }
    };
    let findings = switches_and_accounts(&management).await;
    let missing = missing_audio_files(&management).await;
    management.close().await;
    let findings = findings.map(|findings| findings.into_iter().chain(missing).collect());
    findings.unwrap_or_else(|error| {
        vec![Finding::problem(
            SUBJECT,
            error.to_string(),
            "the database answers, but not to this: look into its log",
        )]
    })
}

async fn switches_and_accounts(management: &Management) -> Result<Vec<Finding>, ManagementError> {
    let mut findings = Vec::new();
    if management.is_stopped().await? {
        findings.push(Finding::warning(
            "dialling",
            "stopped by the operator: calls are accepted and wait",
            "`clarion call resume`",
        ));
    }
    for trunk in management.trunks().await? {
        if trunk.is_drained {
            let name = trunk.settings.name();
            findings.push(Finding::warning(
                format!("trunk {name}"),
                "drained by the operator: it gets no calls",
                format!("`clarion trunk open {name}`"),
            ));
        }
    }
    let accounts = management.accounts().await?;
    let applications = management.all_applications().await?.len();
    findings.push(if applications == 0 {
        Finding::warning(
            "accounts",
            format!(
                "{} accounts, no application: nobody can place a call",
                accounts.len()
            ),
            "`clarion account add`, then `clarion app add --account SID`",
        )
    } else {
        let counts = format!("{} accounts, {applications} applications", accounts.len());
        Finding::ok("accounts", counts)
    });
    Ok(findings)
}

/// Audio files that have a name but no bytes: a call that wants one fails.
async fn missing_audio_files(management: &Management) -> Option<Finding> {
    let folder = &management.config().audio_files.folder;
    // Where the folder is missing, no file was ever added; opening it would make it.
    if !folder.is_dir() {
        return None;
    }
    let (count, missing) = management.missing_audio().await.ok()?;
    let Some(first) = missing.first() else {
        return Some(Finding::ok("audio files", format!("{count} are there")));
    };
    Some(Finding::problem(
        "audio files",
        format!(
            "{} of {count} are missing in {}, such as {}",
            missing.len(),
            folder.display(),
            first.as_str()
        ),
        "restore the folder from a backup, or add the files again (`clarion audio add`, or an upload of the same name)",
    ))
}
