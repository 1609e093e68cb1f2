//! `clarion check` as an operator runs it: the real program, real parts that work, and real parts that do not.

mod certificates;
mod databases;
pub mod trunks;

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use clarion::store::Database;
use supervisor::Supervisor;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::sip_peer::SipPeer;
use crate::support::{PATIENCE, account, application, free_port};

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
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&config, private).unwrap();
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
        clarion::private_files::folder(&self.data()).unwrap();
        let store = database.open(&Supervisor::new()).await.unwrap();
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

async fn friendly_peer() -> SipPeer {
    SipPeer::start(|_| Some((200, String::new()))).await
}

fn set_mode(path: &std::path::Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).unwrap();
}

/// Files and folders outside data_dir that the settings name.
#[tokio::test]
async fn secrets_recordings_and_a_library_that_others_can_reach_are_problems() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (password, key, own_key) = (at("password"), at("key"), at("own_key"));
    let (record, natural) = (at("record"), at("natural"));
    let library = natural.join("libonnxruntime.so");
    std::fs::create_dir(&record).unwrap();
    std::fs::create_dir(&natural).unwrap();
    for file in [&password, &key, &own_key, &library] {
        std::fs::write(file, "secret\n").unwrap();
    }
    let secrets = format!(
        "user = \"u\"\npassword_file = {password:?}\ncertificate = \"own\"\nprivate_key = {own_key:?}"
    );
    let lab = trunk("lab", "127.0.0.1:9", &secrets);
    let loopback = format!(
        "[[trunk]]\nname = \"self\"\nloopback = true\nrecord = {record:?}\nchannels = 1\ncalls_per_second = 1\nprefixes = [\"852\"]\n"
    );
    let voice = format!(
        "[[voice]]\nname = \"cloud\"\nkind = \"json\"\nurl = \"http://127.0.0.1:9/\"\nkey_file = {key:?}\n"
    );
    let speech = format!("[speech]\nnatural_folder = {natural:?}\n");
    let site = Site::new(&format!("{speech}{lab}{loopback}{voice}"));
    let places = [&password, &key, &own_key, &record, &natural, &library];
    let modes = |modes: [u32; 6]| {
        for (place, mode) in places.iter().zip(modes) {
            set_mode(place, mode);
        }
    };
    modes([0o604, 0o640, 0o640, 0o755, 0o755, 0o646]);
    let said = site.check().await;
    said.problem("privacy", "password_file of trunk lab");
    said.problem("privacy", "record of trunk self");
    said.problem("privacy", "can change");
    assert!(!said.text.contains("key_file of voice"), "{}", said.text);
    assert!(!said.text.contains("private_key of"), "{}", said.text);
    modes([0o600, 0o644, 0o644, 0o700, 0o757, 0o644]);
    let said = site.check().await;
    said.problem("privacy", "key_file of voice cloud");
    said.problem("privacy", "private_key of trunk lab");
    said.problem("privacy", "can change");
    // Everybody may read the library.
    modes([0o640, 0o600, 0o600, 0o750, 0o755, 0o644]);
    let said = site.check().await;
    assert!(!said.text.contains("privacy"), "{}", said.text);
}

#[tokio::test]
async fn what_others_can_read_is_a_problem() {
    let trunk = trunk("lab", "127.0.0.1:9", "user = \"u\"\npassword = \"secret\"");
    let site = Site::new(&trunk);
    std::fs::create_dir_all(site.data()).unwrap();
    set_mode(&site.data(), 0o755);
    set_mode(&site.config, 0o644);
    let said = site.check().await;
    said.problem("privacy", "data_dir");
    said.problem("privacy", "password of trunk lab");
    assert!(!said.text.contains("secret\""));
    set_mode(&site.data(), 0o750);
    set_mode(&site.config, 0o640);
    let said = site.check().await;
    said.holds("ok", "privacy", "others cannot read it");
    assert!(!said.text.contains("problem  privacy"), "{}", said.text);
}

#[tokio::test]
async fn a_password_in_a_file_of_its_own_is_no_secret_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "secret\n").unwrap();
    set_mode(&file, 0o600);
    let more = format!("user = \"u\"\npassword_file = {file:?}");
    let site = Site::new(&trunk("lab", "127.0.0.1:9", &more));
    let said = site.check().await;
    assert!(!said.text.contains("privacy"), "{}", said.text);
    std::fs::write(&file, "two\nlines\n").unwrap();
    let said = site.check().await;
    said.problem("configuration", "password_file");
    said.problem("configuration", "must be one line");
}

#[tokio::test]
async fn caps_for_callees_are_recommended_until_they_are_set() {
    let said = Site::new("").check().await;
    said.holds("warning", "callees", "may be called without end");
    assert!(said.text.contains("callee_caps = \"considerate\""));
    let said = Site::new("[dispatch]\ncallee_caps = \"considerate\"")
        .check()
        .await;
    said.holds("ok", "callees", "1 calls a minute, 5 an hour and 20 a day");
}

#[tokio::test]
async fn plain_http_without_a_trusted_proxy_is_a_problem() {
    let site = Site::new("[http]\nplain = true");
    site.check().await.problem("http", "http.trusted_proxies");
    let site = Site::new("[http]\nplain = true\ntrusted_proxies = [\"127.0.0.1\"]");
    let said = site.check().await;
    assert!(!said.text.contains("http.plain without"), "{}", said.text);
}

#[tokio::test]
async fn audio_files_without_bytes_and_broken_pages_are_found() {
    let site = Site::new("");
    let database = Database::Sqlite(site.data().join("clarion.db"));
    site.with_account(&database).await;
    let wav = site.folder.path().join("a.wav");
    let tune = sound::wav::mono_16_bit(&vec![100; 8000], sound::RATE);
    std::fs::write(&wav, tune).unwrap();
    let added = site.command(&["audio", "add", wav.to_str().unwrap()]);
    assert!({ added }.output().await.unwrap().status.success());
    site.check().await.holds("ok", "audio files", "1 are there");
    let voices = site.data().join("voices");
    std::fs::rename(&voices, site.data().join("elsewhere")).unwrap();
    std::fs::create_dir(&voices).unwrap();
    site.check()
        .await
        .problem("audio files", "1 of 1 are missing");
    // A page in the middle of the file is overwritten.
    let file = site.data().join("clarion.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = (bytes.len() / 4096 / 2) * 4096;
    bytes[middle..middle + 4096].fill(0x5a);
    std::fs::write(&file, bytes).unwrap();
    site.check().await.problem("database", "is damaged");
}

#[tokio::test]
async fn a_sound_installation_passes_before_its_first_start_and_is_left_as_it_was() {
    let peer = friendly_peer().await;
    let settings = format!(
        "time_zone = \"Asia/Shanghai\"\n[http]\nlisten = [\"127.0.0.1:{}\"]\n[console]\nlisten = []\n{}",
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
    // Whether that is enough depends on the machine.
    assert!(said.text.contains("GiB free"), "{}", said.text);
    said.holds("ok", "open files", "are wanted");
    said.holds("ok", "certificate", "made at the first start");
    said.holds("ok", "speech", "Chinese by espeak: ");
    said.holds("ok", "speech", "English by espeak: ");
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
        "time_zone = \"Asia/Shanghai\"\n[http]\nlisten = [\"127.0.0.1:{http}\"]\n[console]\nlisten = []\n[log]\nfilter = \"error\"\n[media]\nports = \"{first}-{}\"\n{}",
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
        "[http]\nlisten = [\"{}\"]\n[console]\nlisten = []\n{}",
        listener.local_addr().unwrap(),
        trunk("lab", &peer.address.to_string(), &bind)
    );
    let said = Site::new(&settings).check().await;
    let whose = format!("(process {})", std::process::id());
    said.problem("server", &whose);
    said.problem("trunk lab", &whose);
}

#[tokio::test]
async fn a_voice_that_does_not_speak_is_named_with_the_remedy() {
    let said = Site::new("[speech]\nprogram = \"no-such-voice\"\n")
        .check()
        .await;
    said.problem("speech", "no-such-voice cannot be started");
    said.problem("speech", "apt-get install espeak-ng");
    let said = Site::new("[speech]\ncommand = [\"false\"]\n").check().await;
    said.holds("warning", "speech", "espeak stands in");
    said.has_no_problem();
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
async fn what_would_only_be_noticed_at_the_start_is_noticed_before() {
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = elsewhere.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let folder = elsewhere.path();
    let wrong = format!(
        "[log]\nfilter = \"clarion=loud\"\n[media]\nbind = \"here\"\n{}{}",
        trunk("lab", "127.0.0.1:9", "codecs = [\"OPUS\"]"),
        trunk("odd", "127.0.0.1:9", "transport = \"carrier-pigeon\"")
    );
    let said = Site::new(&wrong).check().await;
    said.problem(
        "configuration",
        "log.filter: `clarion=loud` is not a filter",
    );
    said.problem("configuration", "media.bind: `here` is not an address");
    said.problem("configuration", "\"lab\": codecs: there is no OPUS");
    said.problem("configuration", "\"odd\": transport: ");
    said.problem("configuration", "udp, tcp and tls are");
    let settings = format!("[callbacks]\nca_file = {file:?}\n[bills]\nfolder = {folder:?}\n");
    let said = Site::new(&settings).check().await;
    said.holds("ok", "disk", "bills.folder: ");
    std::fs::write(
        &file,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let said = Site::new(&settings).check().await;
    said.problem("configuration", "callbacks.ca_file: cannot read");
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
