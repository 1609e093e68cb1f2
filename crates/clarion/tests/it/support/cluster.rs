//! PostgreSQL clusters with settings of their own: with TLS, a primary with its standby; and programs that run beside them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{eventually, free_port};

/// A program of PostgreSQL's, as its user: the server refuses to run as root.
fn as_owner(program: &str, folder: &Path) -> Command {
    let root = rustix::process::geteuid().is_root();
    let mut command = if root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.arg("--").arg(program);
        command
    } else {
        Command::new(program)
    };
    // The owner may not be allowed to stand where we stand.
    command.current_dir(folder).kill_on_drop(true);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn program(name: &str) -> String {
    let bin = std::env::var("TEST_POSTGRES_BIN").expect("run by scripts/with-postgres");
    Path::new(&bin).join(name).display().to_string()
}

/// A folder that PostgreSQL's user owns.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    give_away(folder.path());
    folder
}

/// The files of a server must be its own.
fn give_away(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let given = std::process::Command::new("chown")
            .args(["-R", "postgres:postgres"])
            .arg(path)
            .status();
        assert!(given.unwrap().success());
    }
}

/// A process that ends with the test.
pub struct Daemon {
    process: Child,
    pub port: u16,
    pub folder: TempDir,
}

impl Daemon {
    async fn start(mut command: Command, port: u16, folder: TempDir) -> Self {
        let process = command.spawn().unwrap();
        eventually("it listens", async || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        })
        .await;
        Self {
            process,
            port,
            folder,
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = self.process.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(id, signal);
        }
    }

    /// The settings are read anew.
    pub fn reload(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// At once, as by a power cut.
    pub async fn stop(&mut self) {
        self.signal(rustix::process::Signal::QUIT);
        self.process.wait().await.unwrap();
    }
}

impl Drop for Daemon {
    /// Of a killed server the children would live on for a while.
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::QUIT);
    }
}

pub struct Cluster(pub Daemon);

fn postgres(folder: &Path, port: u16) -> Command {
    let mut server = as_owner(&program("postgres"), folder);
    server.args(["-D", "data", "-c", "listen_addresses=127.0.0.1"]);
    server.args(["-c", "unix_socket_directories=", "-p", &port.to_string()]);
    server
}

impl Cluster {
    /// `settings` are those of postgresql.conf, `access` the lines of pg_hba.conf. Files in the folder `data` are the server's.
    pub async fn start(settings: &str, access: &str, files: &[(&str, &str)]) -> Self {
        Self::start_with(settings, access, files, |_| {}).await
    }

    /// The same, after `change` has changed the command.
    pub async fn start_with(
        settings: &str,
        access: &str,
        files: &[(&str, &str)],
        change: impl Fn(&mut Command),
    ) -> Self {
        let folder = folder();
        let made = as_owner(&program("initdb"), folder.path())
            .args(["-D", "data", "-U", "clarion", "--auth=trust"])
            .args(["--encoding=UTF8", "--locale=C", "--no-sync"])
            .output();
        let made = made.await.unwrap();
        assert!(made.status.success(), "initdb: {made:?}");
        let data = folder.path().join("data");
        std::fs::write(data.join("pg_hba.conf"), access).unwrap();
        let conf = data.join("postgresql.auto.conf");
        std::fs::write(conf, format!("fsync = off\n{settings}\n")).unwrap();
        for (name, text) in files {
            write_private(&data.join(name), text);
        }
        give_away(&data);
        Self::run_with(folder, change).await
    }

    async fn run(folder: TempDir) -> Self {
        Self::run_with(folder, |_| {}).await
    }

    /// Runs the server in this folder after `change` has changed its command.
    async fn run_with(folder: TempDir, change: impl Fn(&mut Command)) -> Self {
        let port = free_port();
        let mut server = postgres(folder.path(), port);
        change(&mut server);
        let cluster = Self(Daemon::start(server, port, folder).await);
        cluster.lets_somebody_in().await;
        cluster
    }

    async fn lets_somebody_in(&self) {
        eventually("it lets somebody in", async || self.is_well().await).await;
    }

    pub async fn is_well(&self) -> bool {
        let plain = format!("{}?sslmode=disable", self.url("clarion"));
        match tokio_postgres::connect(&plain, tokio_postgres::NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                client.batch_execute("SELECT 1").await.is_ok()
            }
            // It speaks, which is enough.
            Err(error) => error.code().is_some_and(|code| code.code() == "28000"),
        }
    }

    pub fn url(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.0.port)
    }

    /// A server that follows this one.
    pub async fn standby(&self) -> Self {
        let folder = folder();
        let port = self.0.port.to_string();
        let copied = as_owner(&program("pg_basebackup"), folder.path())
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "clarion"])
            .args(["-D", "data", "-R", "--checkpoint=fast", "--no-sync"])
            .status();
        assert!(copied.await.unwrap().success(), "pg_basebackup");
        Self::run(folder).await
    }

    /// After it was stopped, in the same place.
    pub async fn start_again(&mut self, change: impl Fn(&mut Command)) {
        let mut server = postgres(self.0.folder.path(), self.0.port);
        change(&mut server);
        self.0.process = server.spawn().unwrap();
        self.lets_somebody_in().await;
    }

    pub async fn execute(&self, statements: &str) {
        let client = super::postgres::connect(&self.url("clarion")).await;
        client.batch_execute(statements).await.unwrap();
    }

    /// Replaces a file of the server's and has it read anew.
    pub fn replace(&self, name: &str, text: &str) {
        let path = self.0.folder.path().join("data").join(name);
        write_private(&path, text);
        give_away(&path);
        self.0.reload();
    }
}

pub fn write_private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// PgBouncer before the cluster of these tests, in one of its modes.
pub async fn pgbouncer(mode: &str) -> Daemon {
    let cluster = std::env::var("TEST_POSTGRES_URL").expect("run by scripts/with-postgres");
    let cluster = url::Url::parse(&cluster).unwrap();
    let (folder, port) = (folder(), free_port());
    let config: PathBuf = folder.path().join("pgbouncer.ini");
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={} user=clarion\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\npool_mode = {mode}\n",
        cluster.port().unwrap()
    );
    std::fs::write(&config, text).unwrap();
    give_away(&config);
    let mut command = as_owner("pgbouncer", folder.path());
    command.arg(&config);
    Daemon::start(command, port, folder).await
}
