//! One of the two versions that are compared: its programs, and a database that its own `clarion` has made.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::accepts::customer::{BenchCustomer, NO_LIMIT};
use crate::accepts::site::Site;
use crate::options::DatabaseKind;

#[derive(Debug)]
pub struct Side {
    pub name: String,
    /// The server and its commands.
    pub clarion: PathBuf,
    /// The bench of that version: the calling engine is linked into it.
    pub bench: PathBuf,
}

impl Side {
    /// The programs in `folder`, which were built together.
    pub fn of(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let program = |file: &str| {
            let path = std::path::absolute(folder.join(file))?;
            ensure!(path.is_file(), "there is no {}", path.display());
            Ok(path)
        };
        Ok(Self {
            name: name.to_owned(),
            clarion: program("clarion")?,
            bench: program("clarion-bench")?,
        })
    }

    /// A new database with one customer. The version's own commands make it, because schemas differ between versions.
    pub async fn open(
        &self,
        kind: &DatabaseKind,
        folder: &Path,
        customer: &BenchCustomer,
    ) -> anyhow::Result<Site> {
        let site = Site::new(kind, folder)?;
        site.make().await?;
        let limit = NO_LIMIT.to_string();
        let sid = customer.credentials.sid.as_str();
        let token = customer.credentials.token.reveal();
        let mut account = self.command(&site)?;
        account
            .args(["account", "add", "--sid", sid, "--token", token])
            .args(["--requests-per-second", &limit])
            .args(["--requests-at-once", &limit]);
        finish(&mut account)?;
        let app = customer.app.as_str();
        let mut application = self.command(&site)?;
        application.args(["app", "add", "--account", sid, "--app-id", app]);
        finish(&mut application)?;
        Ok(site)
    }

    /// A command of `clarion` on the database of `site`.
    pub fn command(&self, site: &Site) -> anyhow::Result<Command> {
        site.command(&self.clarion)
    }
}

/// Lets a command run to its end; what it prints is shown only if it fails.
pub fn finish(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}
