//! A real Prometheus and a real Alertmanager, set up as `docs/alerting.md` says: a rule fires, and the telephone rings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clarion::domain::intake::IntakeFormat;
use clarion::domain::notice::ending::NoticeEnding;
use g711::Codec;
use phone::test_phone::{HeardCall, Script};
use serde_json::Value;
use sound::speech::{Espeak, Speaker};
use sound::{Utterance, VoiceChoice, VoiceOptions};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{Intake, counted};
use crate::calls::stage::{Stage, field};
use crate::documents::blocks::blocks;
use crate::listener::{Grammar, understood};
use crate::support::receiver::{Receiver, answer};
use crate::support::telephone::Telephone;
use crate::support::{PATIENCE, eventually, free_port};

const GUIDE: &str = include_str!("../../../../../docs/alerting.md");
const FIRST: &str = "13800000001";
const SECOND: &str = "13800000002";
/// Keys count from the first sample of the message, which begins after a moment of silence.
const IN_THE_MESSAGE: Duration = Duration::from_secs(2);
/// Once the message has been heard to its end.
const AFTER_THE_MESSAGE: Duration = Duration::from_secs(9);

/// A file of the guide, with these of its words replaced.
fn of_guide(name: &str, words: &[(&str, &str)]) -> String {
    let blocks = blocks("docs/alerting.md", GUIDE);
    let block = blocks.iter().find(|block| block.file() == Some(name));
    let mut text = block.unwrap().text.clone();
    for (before, after) in words {
        assert!(text.contains(before), "{name} has no {before}");
        text = text.replace(before, after);
    }
    text
}

/// A program out of its Debian package (`scripts/setup`).
fn program(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/alerting");
    let program = target.join(name);
    assert!(program.exists(), "{name} is missing: run `make setup`");
    program
}

struct Monitoring {
    _programs: [Child; 2],
    alertmanager: SocketAddr,
    /// What is watched: it can be reached or not.
    shop: Watched,
    stock: Watched,
}

/// A target of Prometheus at a fixed address.
struct Watched {
    address: SocketAddr,
    target: Option<Receiver>,
}

impl Watched {
    async fn start() -> Self {
        let target = Receiver::start(vec![answer(200, "content-type: text/plain\r\n", "x 1\n")]);
        let target = target.await;
        Self {
            address: target.address,
            target: Some(target),
        }
    }

    fn stop(&mut self) {
        self.target = None;
    }

    async fn start_again(&mut self) {
        let manners = vec![answer(200, "content-type: text/plain\r\n", "x 1\n")];
        self.target = Some(Receiver::start_at(self.address, manners).await);
    }
}

fn spawn(program: &Path, folder: &TempDir, arguments: &[String]) -> Child {
    Command::new(program)
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

impl Monitoring {
    /// As the guide says, with times that a test can wait for.
    async fn start(folder: &TempDir, stage: &Stage, intake: &Intake<'_>, own: u16) -> Self {
        let (shop, stock) = (Watched::start().await, Watched::start().await);
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        let url = format!("https://localhost:{}", stage.server.address.port());
        let ca = stage.server.ca.display().to_string();
        let alertmanager = of_guide(
            "alertmanager.yml",
            &[
                ("https://clarion.example.com:8883", &url),
                ("/etc/prometheus/clarion-ca.pem", &ca),
                ("TOKEN", &intake.token),
                ("group_wait: 30s", "group_wait: 100ms"),
                ("group_interval: 5m", "group_interval: 1s"),
                ("repeat_interval: 1h", "repeat_interval: 1s"),
            ],
        );
        write("alertmanager.yml", &alertmanager);
        // One scrape that a busy machine is too slow for is no outage.
        let rules = of_guide("alerts.yml", &[("for: 1m", "for: 3s")]);
        // The same for another target.
        let second = rules.replace("shop", "stock").replace("Shop", "Stock");
        write("alerts.yml", &rules);
        write("more.yml", &second);
        let targets = format!("\"{}\"", shop.address);
        let more = "  - alerts.yml\n  - more.yml\nalerting:";
        let job = format!(
            "scrape_configs:\n  - job_name: stock\n    static_configs:\n      - targets: [\"{}\"]\n",
            stock.address
        );
        let prometheus = of_guide(
            "prometheus.yml",
            &[
                ("localhost:9093", &format!("127.0.0.1:{own}")),
                ("\"localhost:9100\"", &targets),
                ("scrape_interval: 15s", "scrape_interval: 1s"),
                ("evaluation_interval: 15s", "evaluation_interval: 1s"),
                ("  - alerts.yml\nalerting:", more),
                ("scrape_configs:\n", &job),
            ],
        );
        write("prometheus.yml", &prometheus);
        let listen = |port: u16| format!("--web.listen-address=127.0.0.1:{port}");
        let programs = [
            spawn(
                &program("prometheus-alertmanager"),
                folder,
                &[
                    "--config.file=alertmanager.yml".to_owned(),
                    "--storage.path=alertmanager".to_owned(),
                    "--cluster.listen-address=".to_owned(),
                    listen(own),
                ],
            ),
            spawn(
                &program("prometheus"),
                folder,
                &[
                    "--config.file=prometheus.yml".to_owned(),
                    "--storage.tsdb.path=prometheus".to_owned(),
                    listen(free_port()),
                ],
            ),
        ];
        Self {
            _programs: programs,
            alertmanager: SocketAddr::from(([127, 0, 0, 1], own)),
            shop,
            stock,
        }
    }

    /// What Alertmanager itself says of its silences; nothing while it does not answer.
    async fn silences(&self) -> Vec<Value> {
        let url = format!("http://{}/api/v2/silences", self.alertmanager);
        let output = Command::new("curl").args(["--silent", &url]).output().await;
        let silences: Option<Vec<Value>> = serde_json::from_slice(&output.unwrap().stdout).ok();
        let mut silences = silences.unwrap_or_default();
        silences.retain(|silence| silence["status"]["state"] == "active");
        silences
    }
}

/// How the two people behave, which changes.
#[derive(Clone)]
struct People(Arc<Mutex<[Script; 2]>>);

impl People {
    fn behave(&self, first: Script, second: Script) {
        *self.0.lock().unwrap() = [first, second];
    }
}

fn presses(key: &str, after: Duration) -> Script {
    Script {
        listens: after,
        ..Script::press(key)
    }
}

/// The beginning of the message, as long as this text is.
fn message(heard: &HeardCall, text: &str) -> Vec<f32> {
    let speaker = Speaker::new(Vec::new(), Arc::new(Espeak::default()), PATIENCE);
    let utterance = Utterance {
        text: text.to_owned(),
        options: VoiceOptions::default(),
    };
    let spoken = speaker.speak(&utterance, &VoiceChoice::default());
    let length = spoken.unwrap().samples.len();
    let sound = heard.sound();
    let decoded = sound.iter().map(|byte| Codec::Pcma.decode(*byte));
    let samples: Vec<f32> = decoded.map(|sample| f32::from(sample) / 32_768.0).collect();
    let begins = samples
        .iter()
        .position(|sample| sample.abs() > 0.02)
        .unwrap();
    let ends = (begins + length + 1600).min(samples.len());
    samples[begins.saturating_sub(800)..ends].to_vec()
}

fn dialled(telephone: &Telephone, number: &str) -> usize {
    let dialled = telephone.dialled().into_iter();
    dialled
        .filter(|one| one.number.ends_with(&number[1..]))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_fires_and_the_telephone_rings_until_somebody_confirms() {
    let people = People(Arc::new(Mutex::new([Script::answer(), Script::answer()])));
    let script = people.clone();
    let telephone = Telephone::start(move |number| {
        let scripts = script.0.lock().unwrap();
        scripts[usize::from(number.ends_with(&SECOND[1..]))].clone()
    })
    .await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), "").await;
    let (report, own) = (stage.receiver.url(), free_port());
    let alertmanager = format!("http://127.0.0.1:{own}");
    let to = format!("{FIRST},{SECOND}");
    let settings = [
        ("to", to.as_str()),
        ("redial-times", "none"),
        ("confirm-dtmf", "2"),
        ("silence-key", "1"),
        ("silence-url", alertmanager.as_str()),
        ("resp-url", report.as_str()),
    ];
    let intake = Intake::add(&stage.server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let folder = tempfile::tempdir().unwrap();
    let mut monitoring = Monitoring::start(&folder, &stage, &intake, own).await;

    is_heard_and_silenced(&mut monitoring, &people, &telephone).await;
    let calls = dialled(&telephone, FIRST);
    ends_while_the_second_waits(&mut monitoring, &people, &telephone, &stage).await;
    assert_eq!(dialled(&telephone, FIRST), calls + 1);
    rings_again_until_confirmed(&mut monitoring, &people, &telephone, &stage).await;
}

/// The shop is down: the first person hears so, and presses the key for a silence.
async fn is_heard_and_silenced(
    monitoring: &mut Monitoring,
    people: &People,
    telephone: &Telephone,
) {
    people.behave(presses("1", AFTER_THE_MESSAGE), Script::answer());
    monitoring.shop.stop();
    eventually("a telephone has rung and was hung up", async || {
        telephone.heard().len() == 1
    })
    .await;
    let heard = telephone.heard().remove(0);
    // Then it says where, and since when.
    let sound = message(&heard, "Critical alert. The shop is down.");
    let grammar = Grammar {
        rule: "(critical | minor | serious) alert the (shop | stock | mail | door) is (down | up | full | open)".to_owned(),
        is_adapted: true,
    };
    let understood = tokio::task::spawn_blocking(move || understood(&grammar, &[sound]));
    assert_eq!(
        understood.await.unwrap(),
        ["critical alert the shop is down"]
    );
    eventually("the silence is there", async || {
        !monitoring.silences().await.is_empty()
    })
    .await;
    let silence = monitoring.silences().await.remove(0);
    let matchers = silence["matchers"].as_array().unwrap();
    assert_eq!(matchers.len(), 1, "exactly the group's labels: {silence}");
    assert_eq!(matchers[0]["name"], "alertname");
    assert_eq!(matchers[0]["value"], "ShopDown");
    assert_eq!(matchers[0]["isRegex"], false);
}

/// The stock is down: the first person is busy, the second does not answer. Then it is over.
async fn ends_while_the_second_waits(
    monitoring: &mut Monitoring,
    people: &People,
    telephone: &Telephone,
    stage: &Stage,
) {
    people.behave(Script::refuse(486), Script::never_answer());
    monitoring.stock.stop();
    eventually("the second person is called", async || {
        dialled(telephone, SECOND) == 1
    })
    .await;
    monitoring.stock.start_again().await;
    let reports = stage.receiver.has_received(2).await;
    let report = &reports[1].body;
    assert_eq!(field(report, "ended"), NoticeEnding::Resolved.as_str());
    assert_eq!(field(report, "state"), "1");
}

/// It comes again. While nobody confirms, repeats call; afterwards they do not.
async fn rings_again_until_confirmed(
    monitoring: &mut Monitoring,
    people: &People,
    telephone: &Telephone,
    stage: &Stage,
) {
    people.behave(Script::refuse(486), Script::refuse(603));
    let before = dialled(telephone, FIRST);
    monitoring.stock.stop();
    eventually(
        "a second outage rings again, and so does its repeat",
        async || dialled(telephone, FIRST) >= before + 2,
    )
    .await;
    people.behave(presses("2", IN_THE_MESSAGE), Script::refuse(603));
    let confirmed = async || {
        let received = stage.receiver.received().into_iter();
        received
            .filter(|report| field(&report.body, "ended") == "confirmed")
            .count()
    };
    // The first outage was confirmed too.
    eventually("somebody confirms", async || confirmed().await == 2).await;
    let (calls, known) = (
        dialled(telephone, FIRST),
        "clarion_intake_incidents_total{result=\"known\"}",
    );
    let before = counted(&stage.server, known).await;
    eventually("it is repeated", async || {
        counted(&stage.server, known).await >= before + 2.0
    })
    .await;
    assert_eq!(dialled(telephone, FIRST), calls);
}
