//! `clarion check` as an operator runs it: the real program, real parts that work, and real parts that do not.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clarion::store::Database;
use phone::call::MediaConfig;
use phone::codec::Codec;
use phone::signalling::{SignallingConfig, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::sip_peer::SipPeer;
use crate::support::{PATIENCE, account, application, postgres};

/// A folder with a configuration; nothing else has been made.
struct Site {
    folder: TempDir,
    config: PathBuf,
}

/// What the check said.
struct Said {
    succeeded: bool,
    text: String,
    error: String,
}

impl Said {
    /// The line of this level about this subject that holds these words.
    fn holds(&self, level: &str, subject: &str, words: &str) {
        let beginning = format!("{level:<8} {subject:<14} ");
        let mut lines = self.text.lines();
        assert!(
            lines.any(|line| line.starts_with(&beginning) && line.contains(words)),
            "no `{beginning}…{words}` in:\n{}{}",
            self.text,
            self.error
        );
    }

    fn problem(&self, subject: &str, words: &str) {
        self.holds("problem", subject, words);
        assert!(
            !self.succeeded,
            "a problem, and yet success:\n{}",
            self.text
        );
    }

    fn has_no_problem(&self) {
        assert!(
            self.succeeded && !self.text.contains("problem "),
            "{}{}",
            self.text,
            self.error
        );
    }
}

impl Site {
    /// `settings` are top-level lines and tables; data is kept on the disk of the build, as /tmp may be memory.
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let config = folder.path().join("clarion.toml");
        let data = folder.path().join("data");
        std::fs::write(&config, format!("data_dir = {data:?}\n{settings}\n")).unwrap();
        Self { folder, config }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clarion"));
        command.arg("--config").arg(&self.config).args(arguments);
        command.kill_on_drop(true);
        command
    }

    async fn check(&self) -> Said {
        self.check_with(&[]).await
    }

    async fn check_with(&self, more: &[&str]) -> Said {
        let arguments = [&["check"][..], more].concat();
        let output = self.command(&arguments).output().await.unwrap();
        Said {
            succeeded: output.status.success(),
            text: String::from_utf8(output.stdout).unwrap(),
            error: String::from_utf8(output.stderr).unwrap(),
        }
    }

    async fn serve(&self) -> Child {
        let mut process = self
            .command(&["serve"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        assert!(first.unwrap().unwrap().unwrap().contains("serves"));
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        process
    }

    async fn with_account(&self, database: &Database) {
        std::fs::create_dir_all(self.data()).unwrap();
        let store = database.open().await.unwrap();
        store.add_account(account()).await.unwrap();
        store.add_application(application()).await.unwrap();
        store.close().await;
    }
}

fn trunk(name: &str, host: &str, more: &str) -> String {
    format!(
        "[[trunk]]\nname = \"{name}\"\nhost = \"{host}\"\nchannels = 10\ncalls_per_second = 5\nprefixes = [\"86\"]\n{more}\n"
    )
}

fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

async fn friendly_peer() -> SipPeer {
    SipPeer::start(|_| Some((200, String::new()))).await
}

#[tokio::test]
async fn a_sound_installation_passes_before_its_first_start_and_is_left_as_it_was() {
    let peer = friendly_peer().await;
    let settings = format!(
        "time_zone = \"Asia/Shanghai\"\n[http]\nlisten = [\"127.0.0.1:{}\"]\n{}",
        free_port(),
        trunk("lab", &peer.address.to_string(), "")
    );
    let site = Site::new(&settings);
    let said = site.check().await;
    said.has_no_problem();
    said.holds("ok", "configuration", "holds together");
    said.holds("ok", "server", "is not running here");
    said.holds("ok", "database", "is empty; the first start makes schema");
    said.holds("ok", "disk", "syncs 4 KiB in");
    said.holds("ok", "disk", "GiB free");
    said.holds("ok", "open files", "are wanted");
    said.holds("ok", "certificate", "made at the first start");
    said.holds("ok", "speech", "Chinese: ");
    said.holds("ok", "speech", "English: ");
    said.holds(
        "ok",
        "sound ports",
        "hold 5000 calls; the trunks have 10 channels",
    );
    said.holds(
        "ok",
        "trunk lab",
        &format!("{} answers OPTIONS with 200 in", peer.address),
    );
    said.holds("ok", "time zone", "Asia/Shanghai");
    said.holds("ok", "dialling", "open to +86");
    said.holds("ok", "emergency", "110");
    said.holds("warning", "bills", "http.public_url is empty");
    assert!(
        !said.text.contains('\x1b'),
        "colours where there is no terminal"
    );
    assert!(!site.data().exists(), "the check has made something");
    assert_eq!(peer.methods(), ["OPTIONS"]);
}

#[tokio::test]
async fn beside_a_running_server_its_own_ports_are_as_they_should_be() {
    let peer = friendly_peer().await;
    let (http, sip) = (free_port(), free_port());
    let more = format!(
        "bind = \"127.0.0.1:{sip}\"\nuser = \"u\"\npassword = \"p\"\nregister_seconds = 300"
    );
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let first = stranger.local_addr().unwrap().port() & !1;
    let settings = format!(
        "time_zone = \"Asia/Shanghai\"\n[http]\nlisten = [\"127.0.0.1:{http}\"]\n[log]\nfilter = \"error\"\n[media]\nports = \"{first}-{}\"\n{}",
        first.saturating_add(99),
        trunk("lab", &peer.address.to_string(), &more)
    );
    let site = Site::new(&settings);
    let server = site.serve().await;
    let said = site.check().await;
    said.has_no_problem();
    let id = server.id().unwrap();
    said.holds("ok", "server", &format!("is running (process {id})"));
    said.holds("ok", "database", "and can be written");
    said.holds("ok", "certificate", "is valid until");
    said.holds("ok", "certificate", "ca.pem to clients that verify");
    said.holds("ok", "open files", "the running server's limit");
    said.holds(
        "ok",
        "trunk lab",
        "registration is left to the running server",
    );
    said.holds("warning", "accounts", "clarion account add");
    // Somebody else's port in our range is another matter.
    let whose = format!("(process {})", std::process::id());
    said.holds("warning", "sound ports", &whose);
    drop(server);
}

#[tokio::test]
async fn a_port_that_somebody_else_has_is_named_with_its_holder() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sip = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = friendly_peer().await;
    let bind = format!("bind = \"{}\"", sip.local_addr().unwrap());
    let settings = format!(
        "[http]\nlisten = [\"{}\"]\n{}",
        listener.local_addr().unwrap(),
        trunk("lab", &peer.address.to_string(), &bind)
    );
    let said = Site::new(&settings).check().await;
    let whose = format!("(process {})", std::process::id());
    said.problem("server", &whose);
    said.problem("trunk lab", &whose);
}

#[tokio::test]
async fn trunks_that_are_not_there_are_told_apart() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let shut = SipPeer::start(|_| Some((503, String::new()))).await;
    let closed = free_port();
    let mut settings = String::new();
    for (name, host, more) in [
        ("silent", silent.local_addr().unwrap().to_string(), ""),
        ("shut", shut.address.to_string(), ""),
        (
            "closed",
            format!("127.0.0.1:{closed}"),
            "transport = \"tcp\"",
        ),
        ("nameless", "nowhere.invalid".to_owned(), ""),
        (
            "odd",
            "127.0.0.1:5060".to_owned(),
            "transport = \"carrier-pigeon\"",
        ),
    ] {
        write!(settings, "{}", trunk(name, &host, more)).unwrap();
    }
    let said = Site::new(&settings).check().await;
    said.problem("trunk silent", "does not answer OPTIONS → see the address");
    said.problem("trunk shut", "answers 503");
    said.problem("trunk closed", "cannot be reached");
    said.problem(
        "trunk nameless",
        "nowhere.invalid cannot be looked up (SRV, A, AAAA)",
    );
    said.problem("trunk odd", "udp, tcp and tls are");
    let problems = said
        .text
        .lines()
        .filter(|line| line.starts_with("problem "))
        .count();
    assert_eq!(
        said.error,
        format!("clarion: {problems} problems were found\n")
    );
}

/// Certificate and key of an authority, and of somebody at 127.0.0.1 whom it vouches for.
fn authority() -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&own, &issuer).unwrap();
    (ca, certificate.pem(), own.serialize_pem())
}

#[tokio::test]
async fn a_trunk_over_tls_must_show_a_certificate_that_we_trust() {
    let (ca, certificate, key) = authority();
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut sip = SignallingConfig::new(Transport::Tls, SocketAddr::new(here, 0));
    sip.tls.own = Some((certificate.into_bytes(), key.into_bytes()));
    let settings = TestPhoneConfig {
        sip,
        media: MediaConfig::new(here, 40_000..=40_099),
        codecs: Codec::ALL.to_vec(),
        credentials: None,
    };
    let (telephone, _heard) = TestPhone::start(&settings, Script::of_number)
        .await
        .unwrap();
    let files = tempfile::tempdir().unwrap();
    let (trusted, other) = (files.path().join("ca.pem"), files.path().join("other.pem"));
    std::fs::write(&trusted, ca).unwrap();
    std::fs::write(&other, authority().0).unwrap();
    let check = async |authorities: &Path| {
        let more = format!("transport = \"tls\"\nca = {authorities:?}");
        let settings = trunk("secure", &telephone.contact().to_string(), &more);
        Site::new(&settings).check().await
    };
    let said = check(&trusted).await;
    said.holds("ok", "trunk secure", "answers OPTIONS with 200");
    said.has_no_problem();
    check(&other)
        .await
        .problem("trunk secure", "cannot be reached");
    let nowhere = files.path().join("nowhere.pem");
    check(&nowhere)
        .await
        .problem("trunk secure", "name readable PEM files in `ca`");
}

#[tokio::test]
async fn a_registration_is_tried_and_taken_back() {
    let friendly = friendly_peer().await;
    let strict = SipPeer::start(|method| match method {
        "REGISTER" => Some((403, String::new())),
        _ => Some((200, String::new())),
    })
    .await;
    let more = "user = \"u\"\npassword = \"p\"\nregister_seconds = 300";
    let mut settings = trunk("friendly", &friendly.address.to_string(), more);
    settings.push_str(&trunk("strict", &strict.address.to_string(), more));
    let said = Site::new(&settings).check().await;
    said.holds("ok", "trunk friendly", "takes our registration");
    said.problem("trunk strict", "refuses our registration with 403");
    assert_eq!(friendly.methods(), ["OPTIONS", "REGISTER", "REGISTER"]);
    let last = friendly.requests.lock().unwrap().last().unwrap().clone();
    assert!(last.contains("Expires: 0"), "{last}");
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_seen_by_what_the_trunk_says() {
    let date = |hours: i64| {
        #[expect(clippy::disallowed_methods, reason = "a peer has a clock of its own")]
        let now = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours);
        let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT");
        Some((200, format!("Date: {date}")))
    };
    let right = SipPeer::start(move |_| date(0)).await;
    let wrong = SipPeer::start(move |_| date(1)).await;
    let said = Site::new(&trunk("right", &right.address.to_string(), ""))
        .check()
        .await;
    said.holds("ok", "clock", "agrees with trunk right");
    let said = Site::new(&trunk("wrong", &wrong.address.to_string(), ""))
        .check()
        .await;
    said.problem("clock", "s ahead of trunk wrong");
}

fn certificate(site: &Path, name: &str, years: (i32, i32)) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    let (pem, private) = (site.join("a.pem"), site.join("a.key"));
    std::fs::write(&pem, certificate.pem()).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o600)).unwrap();
    format!("[http]\ncertificate = {pem:?}\nprivate_key = {private:?}\n")
}

#[tokio::test]
async fn a_certificate_that_clients_will_not_like_is_named() {
    let files = tempfile::tempdir().unwrap();
    let check = async |settings: &str| Site::new(settings).check().await;
    let good = certificate(files.path(), "voice.example.com", (2020, 2120));
    let url = "public_url = \"https://voice.example.com:8883\"\n";
    let said = check(&format!("{good}{url}")).await;
    said.holds("ok", "certificate", "is valid until 2120-01-01");
    said.holds("ok", "certificate", "names voice.example.com");
    said.has_no_problem();
    let elsewhere = "public_url = \"https://calls.example.com\"\n";
    let said = check(&format!("{good}{elsewhere}")).await;
    said.problem("certificate", "clients come to calls.example.com");
    std::fs::set_permissions(files.path().join("a.key"), PermissionsExt::from_mode(0o644)).unwrap();
    check(&good)
        .await
        .problem("certificate", "is open to others (mode 644) → chmod 600");
    let old = certificate(files.path(), "voice.example.com", (2020, 2021));
    check(&old)
        .await
        .problem("certificate", "has expired on 2021-01-01");
    let early = certificate(files.path(), "voice.example.com", (2100, 2121));
    check(&early)
        .await
        .problem("certificate", "is valid only from 2100-01-01");
    let other = KeyPair::generate().unwrap();
    std::fs::write(files.path().join("a.key"), other.serialize_pem()).unwrap();
    check(&good)
        .await
        .problem("certificate", "do not fit together");
    std::fs::remove_file(files.path().join("a.pem")).unwrap();
    check(&good)
        .await
        .problem("certificate", "cannot read the certificate");
}

#[tokio::test]
async fn a_voice_that_does_not_speak_is_named_with_the_remedy() {
    let said = Site::new("[speech]\nprogram = \"no-such-voice\"\n")
        .check()
        .await;
    said.problem("speech", "no-such-voice cannot be started");
    said.problem("speech", "apt-get install espeak-ng");
    let said = Site::new("[speech]\ncommand = [\"false\"]\n").check().await;
    said.holds("warning", "speech", "the embedded one stands in");
    said.has_no_problem();
}

#[tokio::test]
async fn a_postgresql_is_looked_into_and_not_changed() {
    let url = postgres::empty_database().await;
    let site = Site::new(&format!("database = {url:?}\n"));
    let said = site.check().await;
    said.has_no_problem();
    said.holds("ok", "database", "is empty; the first start makes schema");
    said.holds("ok", "clock", "agrees with the database");
    let client = postgres::connect(&url).await;
    let tables = client.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", &[]);
    assert!(
        tables.await.unwrap().is_empty(),
        "the check has made tables"
    );

    site.with_account(&Database::parse(&url).unwrap()).await;
    let said = site.check().await;
    said.holds("ok", "database", "and can be written");
    said.holds("ok", "accounts", "1 accounts, 1 applications");

    let newer = "INSERT INTO schema_migrations (version) VALUES (999)";
    client.batch_execute(newer).await.unwrap();
    site.check()
        .await
        .problem("database", "has schema 999, this program knows");

    let mut nowhere = url::Url::parse(&url).unwrap();
    nowhere.set_port(Some(free_port())).unwrap();
    let said = Site::new(&format!("database = \"{nowhere}\"\n"))
        .check()
        .await;
    said.problem("database", "cannot be used");
}

#[tokio::test]
async fn a_server_on_a_postgresql_is_found_by_its_port() {
    let url = postgres::empty_database().await;
    let settings = format!(
        "database = {url:?}\n[http]\nlisten = [\"127.0.0.1:{}\"]\n[log]\nfilter = \"error\"\n",
        free_port()
    );
    let site = Site::new(&settings);
    let server = site.serve().await;
    let said = site.check().await;
    said.has_no_problem();
    let process = format!("is running (process {})", server.id().unwrap());
    said.holds("ok", "server", &process);
    drop(server);
}

#[tokio::test]
async fn a_database_file_of_a_newer_program_or_of_no_program_is_refused() {
    let site = Site::new("");
    let database = Database::Sqlite(site.data().join("clarion.db"));
    site.with_account(&database).await;
    let said = site.check().await;
    said.has_no_problem();
    said.holds("ok", "accounts", "1 accounts, 1 applications");
    let db = rusqlite::Connection::open(site.data().join("clarion.db")).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    site.check().await.problem("database", "has schema 999");
    std::fs::write(
        site.data().join("clarion.db"),
        "this is not a database at all, but a text",
    )
    .unwrap();
    site.check().await.problem("database", "cannot be used");
}

#[tokio::test]
async fn what_the_operator_has_switched_is_told() {
    let site = Site::new(&trunk(
        "lab",
        "127.0.0.1:9",
        "options_seconds = 0\ntransport = \"tcp\"",
    ));
    for arguments in [&["call", "stop-all"][..], &["trunk", "drain", "lab"]] {
        assert!(
            site.command(arguments)
                .stdout(Stdio::null())
                .status()
                .await
                .unwrap()
                .success()
        );
    }
    let said = site.check().await;
    said.holds("warning", "dialling", "`clarion call resume`");
    said.holds("warning", "trunk lab", "`clarion trunk open lab`");
}

#[tokio::test]
async fn settings_that_are_read_but_unwise_are_told() {
    let said = Site::new("").check().await;
    said.holds("warning", "dialling", "closed: no trunk is configured");
    said.has_no_problem();
    let wide = "[callbacks]\nallowed_networks = [\"10.0.0.0/8\"]\n[numbers]\nemergency = []\n[media]\nports = \"20000-20005\"\n\
        [http]\nmetrics_networks = [\"0.0.0.0/0\"]\n[[trunk]]\nname = \"a\"\nloopback = true\nchannels = 10\ncalls_per_second = 1\nprefixes = [\"\"]\n";
    let said = Site::new(wide).check().await;
    said.holds("warning", "callbacks", "10.0.0.0/8");
    said.holds("warning", "emergency", "numbers.emergency");
    said.holds("warning", "metrics", "open to everybody");
    said.holds("warning", "dialling", "nobody is really called");
    said.problem(
        "sound ports",
        "hold 3 calls; the trunks have 10 channels → widen media.ports",
    );
}

#[tokio::test]
async fn a_mistake_in_the_configuration_is_the_one_problem() {
    let said = Site::new("[http]\nlissen = []\n").check().await;
    said.problem("configuration", "did you mean `http.listen`?");
    assert_eq!(said.text.lines().count(), 1, "{}", said.text);
    assert!(
        said.error.contains("one problem was found"),
        "{}",
        said.error
    );
}

#[tokio::test]
async fn scripts_read_it_as_json() {
    let said = Site::new("[speech]\nprogram = \"no-such-voice\"\n")
        .check_with(&["--json"])
        .await;
    assert!(!said.succeeded);
    let findings: Vec<serde_json::Value> = serde_json::from_str(&said.text).unwrap();
    let speech = findings
        .iter()
        .find(|finding| finding["check"] == "speech")
        .unwrap();
    assert_eq!(speech["level"], "problem");
    assert!(speech["remedy"].as_str().unwrap().contains("espeak-ng"));
    assert!(
        findings
            .iter()
            .any(|finding| finding["remedy"].is_null() && finding["level"] == "ok")
    );
}
