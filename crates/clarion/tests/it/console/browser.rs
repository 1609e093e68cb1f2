//! Operators with a real browser: Debian's Chromium, driven by the scripts in `tests/browser`. The server, the telephone and the receiver of callbacks are real too.
//! `make console-pictures` has the screens photographed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clarion::domain::account::{AccountChange, ApplicationChange};
use clarion::domain::bill::calendar;
use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::do_not_call::DoNotCallSource;
use phone::test_phone::Script;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::{PASSWORD, add_intake, add_operators, billed};
use crate::audio_files::wav;
use crate::calls::stage::{Stage, report_of};
use crate::support::telephone::Telephone;
use crate::support::{SID, call_list, eventually};

/// Bytes before the samples of a WAV file.
const WAV_HEAD: usize = 44;

/// A server with a telephone that behaves by the last digits of its number.
struct Scene {
    stage: Stage,
    telephone: Telephone,
}

impl Scene {
    async fn new() -> Self {
        let telephone = Telephone::start(Script::of_number).await;
        let stage = Stage::on(&telephone.wide_trunk("provider", ""), "").await;
        let server = &stage.server;
        add_operators(&*server.store, &server.clock).await;
        let account = AccountChange {
            name: Some("City Hospital 市立医院".to_owned()),
            ..AccountChange::default()
        };
        server.change_account(account).await;
        let app = ApplicationChange {
            name: Some("Appointments 预约提醒".to_owned()),
            ..ApplicationChange::default()
        };
        server.change_application(app).await;
        let (now, store) = (server.clock.now(), &server.store);
        let people = [
            "13800000000=李伟",
            "01052823298-3627=Night desk",
            "13800000001",
        ];
        let list = call_list("night", &people, now);
        store.add_list(list).await.unwrap();
        let unwanted = vec!["8613900000000".to_owned(), "8613900000001".to_owned()];
        let (account, by) = (SID.parse().unwrap(), DoNotCallSource::Operator);
        let added = store.add_do_not_call(&account, unwanted, by, now);
        added.await.unwrap();
        let key = "{}/{severity=\"critical\"}:{alertname=\"HostOutOfMemory\"}";
        add_intake(server, key).await;
        let keywords = "<img src=x onerror=alert(1)>&amp;订单-".repeat(8);
        for keywords in ["", keywords.as_str()] {
            let mut file = billed("2026-01-05", keywords);
            file.id = format!("{:0>32}", keywords.len());
            server.store.record_bill_file(file).await.unwrap();
        }
        Self { stage, telephone }
    }

    /// Runs a script, and does what it asks for, until it has succeeded.
    async fn play(&self, script: &str, pictures: Option<&Path>) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = here.join("../../target/browser/node_modules");
        assert!(
            modules.join("playwright-core").exists() && modules.join("axe-core").exists(),
            "the npm packages of the browser tests are missing: run `make setup`"
        );
        let address = format!("https://localhost:{}", self.stage.server.console.port());
        let mut node = Command::new("node");
        node.arg(here.join("tests/browser").join(script))
            .env("NODE_PATH", modules)
            .env("CHROMIUM", chromium())
            .env("CONSOLE_ADDRESS", address)
            .env("CONSOLE_PASSWORD", PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = pictures {
            node.env("PICTURES", folder);
        }
        let mut process = node.spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        let mut wishes = BufReader::new(process.stdout.take().unwrap()).lines();
        while let Some(wish) = wishes.next_line().await.unwrap() {
            let wish = serde_json::from_str(&wish).unwrap();
            let answer = self.grant(&wish).await;
            input
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .unwrap();
        }
        let output = process.wait_with_output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {told}");
    }

    /// `call`: places a call, and waits for its report if it shall have ended. `over`: waits until a call has ended. `callbacks`: how often a call was reported; more often than `more`.
    async fn grant(&self, wish: &Value) -> String {
        if let Some(number) = wish["call"].as_str() {
            let text = "\"mediaTxt\":\"您好，明天上午九点半复诊，请携带医保卡。\",\"userData\":\"visit-4711\"";
            let sid = self.stage.call(number, text).await;
            if wish["ended"] == true {
                self.stage.is_in(&sid, CallState::Ended).await;
                report_of(&self.stage.receiver, &sid).await;
            }
            return sid.to_string();
        }
        if wish["wav"] == true {
            return BASE64_STANDARD.encode(wav(9000));
        }
        if wish["close"] == true {
            return self.close_today().await;
        }
        if let Some(sid) = wish["over"].as_str() {
            self.stage
                .is_in(&sid.parse().unwrap(), CallState::Ended)
                .await;
            return String::new();
        }
        if let Some(sid) = wish["heard"].as_str() {
            let file = BASE64_STANDARD.decode(wish["bytes"].as_str().unwrap());
            return self.was_heard(sid, &file.unwrap()).await.to_string();
        }
        let sid: CallSid = wish["callbacks"].as_str().unwrap().parse().unwrap();
        let reports = || {
            let received = self.stage.receiver.received();
            let own = received
                .iter()
                .filter(|one| one.body.contains(sid.as_str()));
            own.count()
        };
        if let Some(least) = wish["more"].as_u64() {
            eventually("the callback is sent again", async || {
                reports() as u64 > least
            })
            .await;
        }
        reports().to_string()
    }

    /// Lets a day pass, and closes the one that was today.
    async fn close_today(&self) -> String {
        let server = &self.stage.server;
        let day = calendar::day_of(server.clock.now(), server.clock.zone());
        server.clock.shift(jiff::SignedDuration::from_hours(25));
        server.close_day(day).await;
        day.to_string()
    }

    /// Whether the callee has heard the samples of a WAV file, one after the other.
    async fn was_heard(&self, sid: &str, file: &[u8]) -> bool {
        let heard = self.telephone.has_heard(&sid.parse().unwrap()).await;
        let mut recorded = Vec::new();
        heard.write_wav(&mut recorded).unwrap();
        let (heard, said) = (&recorded[WAV_HEAD..], &file[WAV_HEAD..]);
        // What was played may have silence before it, and ends with a whole packet.
        said.len() > 16_000 && heard.windows(said.len()).any(|part| part == said)
    }
}

fn chromium() -> PathBuf {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].map(PathBuf::from);
    let found = places.into_iter().find(|path| path.exists());
    found.expect("Chromium is missing: run `make setup`")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_watches_calls_ends_one_and_sends_a_callback_again() {
    Scene::new().await.play("a_shift.js", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_adds_an_account_sets_a_limit_renews_the_token_and_writes_a_list() {
    Scene::new().await.play("accounts.js", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_places_a_call_uploads_a_file_and_downloads_a_bill() {
    Scene::new().await.play("a_desk.js", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_screen_is_accessible_in_both_languages_and_fits_into_a_telephone() {
    let pictures = std::env::var_os("CONSOLE_PICTURES").map(PathBuf::from);
    if let Some(folder) = &pictures {
        std::fs::create_dir_all(folder).unwrap();
    }
    let scene = Scene::new().await;
    scene.play("screens.js", pictures.as_deref()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_work_without_script_and_by_the_keyboard_alone() {
    Scene::new().await.play("plain.js", None).await;
}
