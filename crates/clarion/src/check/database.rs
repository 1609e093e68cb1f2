//! Checks the database: whether it exists, is ours and can be written, and what the operator has switched in it.

use std::sync::Arc;

use super::OtherClock;
use super::finding::{CheckSubject, Finding};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::audit::Actor;
use crate::domain::wording::wording;
use crate::management::{Management, ManagementError};
use crate::store::{Database, DatabaseRoute, Inspection};

const SUBJECT: CheckSubject = CheckSubject::Database;

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
                wording!("{database} cannot be used", "{database} 无法使用")
                    .because(format!("{error:#}")),
                wording!(
                    "see that it runs, that the address and password in `database` are right, and that this user may write to it",
                    "确认数据库正在运行，`database` 中的地址和密码正确，且当前用户有写权限"
                ),
            );
            return (vec![problem], Vec::new());
        }
    };
    let after = clock.now();
    // The database made its answer between our question and the arrival of the answer.
    let middle = before + after.duration_since(before) / 2;
    let clocks = found
        .now
        .map(|now| OtherClock::new(wording!("the database", "数据库"), now, middle));
    let mut findings = vec![schema(database, &found)];
    findings.extend(found.route.iter().flat_map(route));
    findings.extend(found.dangers.iter().map(|danger| {
        let found = wording!("{database}: {danger}", "数据库 {database} {danger}"; danger);
        let remedy = wording!(
            "correct its settings (postgresql.conf), or name another database",
            "修改数据库参数（postgresql.conf），或改用其他数据库"
        );
        Finding::problem(SUBJECT, found, remedy)
    }));
    findings.extend(found.damage.iter().map(|damage| {
        let found = wording!("{database} is damaged", "{database} 已损坏").because(damage);
        let remedy = wording!(
            "stop the server, keep the file, and restore the last backup (docs/operating.md)",
            "停止服务，保留该文件，恢复最近一次备份（docs/operating.md）"
        );
        Finding::problem(SUBJECT, found, remedy)
    }));
    if found.version >= found.wanted && found.is_usable {
        findings.extend(contents(config).await);
    }
    (findings, clocks.into_iter().collect())
}

/// How it was reached, and what of that is not as it should be.
fn route(route: &DatabaseRoute) -> Vec<Finding> {
    let host = &route.host;
    let remedy = wording!(
        "write sslmode=verify-full and sslrootcert into `database` (docs/operating.md)",
        "在 `database` 中加上 sslmode=verify-full 和 sslrootcert（docs/operating.md）"
    );
    let mut findings = vec![match &route.encryption {
        Some(version) if route.verified => Finding::ok(
            SUBJECT,
            wording!(
                "{host} is reached by {version}; its certificate is verified",
                "通过 {version} 连接 {host}，已校验证书"
            ),
        ),
        Some(version) if route.on_this_machine => Finding::ok(
            SUBJECT,
            wording!(
                "{host} is reached by {version}",
                "通过 {version} 连接 {host}"
            ),
        ),
        Some(version) => Finding::warning(
            SUBJECT,
            wording!(
                "{host} is reached by {version}, but nobody verifies that it is {host}",
                "通过 {version} 连接 {host}，但未校验对方身份"
            ),
            remedy,
        ),
        None if route.on_this_machine => Finding::ok(
            SUBJECT,
            wording!("{host} is reached on this machine", "在本机内连接 {host}"),
        ),
        None => Finding::warning(
            SUBJECT,
            wording!(
                "{host} is reached without encryption: tokens and numbers can be read on the way",
                "与 {host} 的连接未加密：令牌和号码在传输途中可能被窃取"
            ),
            remedy,
        ),
    }];
    findings.extend(route.hosts.iter().map(|(name, found)| match found {
        Ok(kind) => Finding::ok(
            SUBJECT,
            wording!("{name}: {kind}", "主机 {name}：{kind}"; kind),
        ),
        Err(problem) => Finding::warning(
            SUBJECT,
            wording!("{name} cannot be asked", "无法查询 {name}").because(problem),
            wording!(
                "without it, there is one host less to go on with when another fails",
                "缺少这台主机，其他主机故障时就少一台可切换"
            ),
        ),
    }));
    findings
}

fn schema(database: &Database, found: &Inspection) -> Finding {
    let (version, wanted) = (found.version, found.wanted);
    if !found.is_usable {
        return Finding::problem(
            SUBJECT,
            wording!(
                "{database} has schema {version}, this program knows {wanted}",
                "{database} 的结构版本为 {version}，本程序支持的版本为 {wanted}"
            ),
            wording!(
                "use the newer program that wrote it, or restore the backup from before the upgrade",
                "改用写入该数据的新版程序，或恢复升级前的备份"
            ),
        );
    }
    Finding::ok(
        SUBJECT,
        match version {
            0 => wording!(
                "{database} is empty; the first start makes schema {wanted}",
                "{database} 为空，首次启动时创建结构版本 {wanted}"
            ),
            _ if version < wanted => wording!(
                "{database} has schema {version}; the next start brings it to {wanted} (back it up first)",
                "{database} 的结构版本为 {version}，下次启动时升级到 {wanted}（请先备份）"
            ),
            _ if version > wanted => wording!(
                "{database} has schema {version}, which is newer than this program ({wanted}) and was made for it too",
                "{database} 的结构版本为 {version}，比本程序的 {wanted} 新，但与本程序兼容"
            ),
            _ => wording!(
                "{database} has schema {version} and can be written",
                "{database} 的结构版本为 {version}，可以写入"
            ),
        },
    )
}

/// Checks the contents. The schema is the one that we know, so opening the database changes nothing.
async fn contents(config: &Arc<Config>) -> Vec<Finding> {
    let management = match Management::open(Arc::clone(config), Actor::default()).await {
        Ok(management) => management,
        Err(error) => {
            return vec![Finding::problem(
                SUBJECT,
                wording!("cannot be opened", "无法打开数据库").because(format!("{error:#}")),
                wording!("see the message", "请根据该报错处理"),
            )];
        }
    };
    let findings = switches_and_accounts(&management).await;
    let missing = missing_audio_files(&management).await;
    management.close().await;
    let findings = findings.map(|findings| findings.into_iter().chain(missing).collect());
    findings.unwrap_or_else(|error| {
        vec![Finding::problem(
            SUBJECT,
            wording!("cannot be asked", "查询失败").because(error),
            wording!(
                "the database answers, but not to this: look into its log",
                "数据库有应答，但该查询失败，请查看数据库日志"
            ),
        )]
    })
}

async fn switches_and_accounts(management: &Management) -> Result<Vec<Finding>, ManagementError> {
    let mut findings = Vec::new();
    if management.is_stopped().await? {
        findings.push(Finding::warning(
            CheckSubject::Dialling,
            wording!(
                "stopped by the operator: calls are accepted and wait",
                "操作员已停止外呼：请求照常受理，呼叫在队列中等待"
            ),
            wording!("`clarion call resume`", "执行 `clarion call resume`"),
        ));
    }
    for trunk in management.trunks().await? {
        if trunk.is_drained {
            let name = trunk.settings.name();
            findings.push(Finding::warning(
                CheckSubject::Trunk(name.to_owned()),
                wording!(
                    "drained by the operator: it gets no calls",
                    "操作员已排空该中继，不再承接新呼叫"
                ),
                wording!(
                    "`clarion trunk open {name}`",
                    "执行 `clarion trunk open {name}`"
                ),
            ));
        }
    }
    let accounts = management.accounts().await?.len();
    let applications = management.all_applications().await?.len();
    findings.push(if applications == 0 {
        Finding::warning(
            CheckSubject::Accounts,
            wording!(
                "{accounts} accounts, no application: nobody can place a call",
                "{accounts} 个账户，没有应用，无法发起呼叫"
            ),
            wording!(
                "`clarion account add`, then `clarion app add --account SID`",
                "执行 `clarion account add`，再执行 `clarion app add --account SID`"
            ),
        )
    } else {
        let counts = wording!(
            "{accounts} accounts, {applications} applications",
            "{accounts} 个账户，{applications} 个应用"
        );
        Finding::ok(CheckSubject::Accounts, counts)
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
        let found = wording!("{count} are there", "共 {count} 个，均存在");
        return Some(Finding::ok(CheckSubject::AudioFiles, found));
    };
    let (gone, first, place) = (missing.len(), first.as_str(), folder.display());
    Some(Finding::problem(
        CheckSubject::AudioFiles,
        wording!(
            "{gone} of {count} are missing in {place}, such as {first}",
            "{place} 中缺少 {gone} 个（共 {count} 个），例如 {first}"
        ),
        wording!(
            "restore the folder from a backup, or add the files again (`clarion audio add`, or an upload of the same name)",
            "从备份恢复该目录，或重新添加这些文件（`clarion audio add`，或上传同名文件）"
        ),
    ))
}
