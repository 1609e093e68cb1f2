//! Voice files through the front door: uploaded, found, replaced while calls want the old one, refused, played.

use std::io::{Cursor, Write};
use std::path::Path;

use clarion::audio_files::sweep::Sweep;
use clarion::audio_files::{AudioFiles, prompts};
use clarion::config::Config;
use clarion::domain::account::{AppState, ApplicationChange};
use clarion::domain::prompt::{AudioOwner, ContentId, Prompt};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sound::renderer::Requester;
use sound::wav::mono_16_bit;
use supervisor::Supervisor;
use tokio::process::Command;

use crate::support::receiver::{Receiver, answer};
use crate::support::{
    APP, SID, TestServer, app_id, application_of_another_account, call_sid, status_code,
};

const ANYONE: Requester<'static> = Requester("anyone");

/// A second of a tone; the strength tells one from another.
pub fn wav(strength: i16) -> Vec<u8> {
    tone(strength, 8000)
}

/// A tone of so many samples, at 8 kHz.
fn tone(strength: i16, length: i16) -> Vec<u8> {
    let wave = |at: i16| {
        if at / 10 % 2 == 0 {
            strength
        } else {
            -strength
        }
    };
    mono_16_bit(&(0..length).map(wave).collect::<Vec<_>>(), 8000)
}

pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

async fn ask(server: &TestServer, method: &str, query: &str, accept: &str, body: &[u8]) -> String {
    let signature = server.sign();
    let head = format!(
        "{method} /2013-12-26/Accounts/{SID}/Calls/MediaFileUpload?sig={}&{query} HTTP/1.1\r\nHost: localhost:8883\r\nConnection: close\r\n\
         Accept: application/{accept}\r\nContent-Type: application/octet-stream;charset=utf-8;\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n",
        signature.sig,
        signature.authorization,
        body.len()
    );
    let answer = server.send_raw(&[head.as_bytes(), body].concat()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    answer
}

pub async fn upload(server: &TestServer, name: &str, body: &[u8]) -> String {
    ask(
        server,
        "POST",
        &format!("appid={APP}&filename={name}"),
        "xml",
        body,
    )
    .await
}

async fn play(server: &TestServer, name: &str) -> String {
    server
        .call_xml(&format!(
            "<to>13800000000</to><mediaName>{name}</mediaName>"
        ))
        .await
}

/// The prompt as it was stored with the call.
fn stored_prompt(server: &TestServer, sid: &str) -> Prompt {
    let file = server.folder.path().join("data/clarion.db");
    let text: String = rusqlite::Connection::open(file)
        .unwrap()
        .query_row(
            "SELECT prompt FROM calls WHERE call_sid = ?",
            [sid],
            |row| row.get(0),
        )
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

fn config(server: &TestServer) -> Config {
    let data = server.folder.path().join("data");
    Config::from_parts(&format!("data_dir = {data:?}\n"), &[]).unwrap()
}

#[tokio::test]
async fn an_uploaded_file_is_found_by_calls_and_can_be_fetched_again() {
    let server = TestServer::start().await;
    assert_eq!(status_code(&play(&server, "a.wav").await), "190001");
    let answer = upload(&server, "a.wav", &wav(8000)).await;
    assert_eq!(status_code(&answer), "000000", "{answer}");
    assert!(
        answer.ends_with(&format!(
            "<Response><statusCode>000000</statusCode><downloadUrl>https://localhost:8883/2013-12-26/Accounts/{SID}/Calls/MediaFileUpload?appid={APP}&amp;filename=a.wav</downloadUrl></Response>"
        )),
        "{answer}"
    );
    call_sid(&play(&server, "a.wav").await);
    // Names of the platform are others.
    let platform = "<to>13800000000</to><mediaName type=\"1\">a.wav</mediaName>";
    assert_eq!(status_code(&server.call_xml(platform).await), "190001");
    let fetched = ask(
        &server,
        "GET",
        &format!("appid={APP}&filename=a.wav"),
        "xml",
        b"",
    )
    .await;
    assert!(
        fetched.contains("audio/wav") && fetched.contains("RIFF"),
        "{}",
        &fetched[..200]
    );
    let missing = ask(
        &server,
        "GET",
        &format!("appid={APP}&filename=b.wav"),
        "xml",
        b"",
    )
    .await;
    assert_eq!(status_code(&missing), "190001");
    // As long as an upload may be.
    let long = mono_16_bit(&vec![0; 9_999_978], 8000);
    assert_eq!(long.len(), 20_000_000);
    assert_eq!(
        status_code(&upload(&server, "long.wav", &long).await),
        "000000"
    );
    // Nothing but the code stands in a JSON answer.
    let answer = ask(
        &server,
        "POST",
        &format!("appid={APP}&filename=a.wav"),
        "json",
        &wav(1),
    )
    .await;
    assert!(
        answer.ends_with("\r\n\r\n{\"statusCode\":\"000000\"}"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_zip_adds_all_its_files_or_none() {
    let server = TestServer::start().await;
    let good = zip(&[("a.wav", &wav(1)), ("欢迎.wav", &wav(2))]);
    assert_eq!(
        status_code(&upload(&server, "files.zip", &good).await),
        "000000"
    );
    call_sid(&play(&server, "a.wav;欢迎.wav").await);
    for (files, code) in [
        (zip(&[("c.wav", &wav(1)), ("d.wav", b"no sound")]), "190002"),
        (zip(&[("c.wav", &wav(1)), ("../d.wav", &wav(1))]), "190002"),
        (
            zip(&[("c.wav", &wav(1)), ("d.wav", &vec![0; 20_000_001])]),
            "110062",
        ),
        (b"not a zip".to_vec(), "190002"),
    ] {
        assert_eq!(
            status_code(&upload(&server, "files.zip", &files).await),
            code
        );
    }
    assert_eq!(status_code(&play(&server, "c.wav").await), "190001");
    let owner = AudioOwner::Application(app_id());
    assert_eq!(server.store.audio_files_of(&owner).await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_with_its_code_and_reason() {
    let server = TestServer::start_with("[audio_files]\nmax_files = 2\n").await;
    let foreign = application_of_another_account(&server).await;
    let good = wav(1);
    let long = vec![b'x'; 20_000_001];
    for (query, body, code, reason) in [
        (
            format!("appid={APP}&filename=a.wav"),
            b"".as_slice(),
            "190002",
            "a.wav: the file is empty",
        ),
        (
            format!("appid={APP}&filename=a.wav"),
            b"ID3",
            "190002",
            "a.wav: this is an MP3 file",
        ),
        (
            format!("appid={APP}&filename=a.wav"),
            &long,
            "110062",
            "the body is longer than 20000000 bytes",
        ),
        (
            format!("appid={APP}"),
            &good,
            "108023",
            "filename is required",
        ),
        (
            format!("appid={APP}&filename=a.mp3"),
            &good,
            "108023",
            "filename: a voice file is named",
        ),
        (
            format!("appid={APP}&filename=..%2Fa.wav"),
            &good,
            "108023",
            "without a path",
        ),
        (
            "filename=a.wav".into(),
            &good,
            "111169",
            "appId is required",
        ),
        ("appid=x&filename=a.wav".into(), &good, "111171", ""),
        (
            format!("appid={}&filename=a.wav", "0".repeat(32)),
            &good,
            "111181",
            "",
        ),
        (
            format!("appid={foreign}&filename=a.wav"),
            &good,
            "111181",
            "",
        ),
    ] {
        let answer = ask(&server, "POST", &query, "xml", body).await;
        assert_eq!(status_code(&answer), code, "{query}: {answer}");
        assert!(answer.contains(reason), "{query}: {answer}");
    }
    let change = ApplicationChange {
        state: Some(AppState::Disabled),
        ..Default::default()
    };
    for (name, code) in [
        ("a.wav", "000000"),
        ("b.wav", "000000"),
        ("a.wav", "000000"),
        ("c.wav", "110062"),
    ] {
        assert_eq!(
            status_code(&upload(&server, name, &good).await),
            code,
            "{name}"
        );
    }
    server.change_application(change).await;
    crate::support::eventually("the application is disabled", async || {
        status_code(&upload(&server, "a.wav", &good).await) == "111177"
    })
    .await;
}

#[tokio::test]
async fn a_call_keeps_the_file_as_it_was_when_it_was_accepted() {
    let server = TestServer::start().await;
    upload(&server, "a.wav", &tone(8000, 16_000)).await;
    let before = call_sid(&play(&server, "a.wav").await);
    upload(&server, "a.wav", &tone(8000, 4000)).await;
    let after = call_sid(&play(&server, "a.wav").await);
    let owner = AudioOwner::Application(app_id());
    server
        .store
        .remove_audio_file(&owner, &"a.wav".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(status_code(&play(&server, "a.wav").await), "190001");

    let config = config(&server);
    let (files, renderer) = (
        AudioFiles::open(&config).unwrap(),
        prompts::open(&Supervisor::new(), &config).unwrap(),
    );
    let mut lengths = Vec::new();
    for sid in [before, after] {
        let prompt = stored_prompt(&server, &sid);
        let list = prompts::make_ready(&renderer, &files, ANYONE, &prompt)
            .await
            .unwrap();
        lengths.push(list.heard().len());
    }
    assert_eq!(lengths[0] - lengths[1], 12_000, "{lengths:?}");
}

pub fn written_at(config: &Config, content: &ContentId) -> Timestamp {
    let name = content.as_str();
    let file = config.audio_files.folder.join(&name[..2]).join(name);
    let modified = std::fs::metadata(file).unwrap().modified().unwrap();
    modified.try_into().unwrap()
}

#[tokio::test]
async fn bytes_go_when_no_name_means_them_and_no_waiting_call_wants_them() {
    let server = TestServer::start().await;
    let (files, store) = (AudioFiles::open(&config(&server)).unwrap(), &*server.store);
    for strength in [1, 2, 3] {
        upload(&server, "a.wav", &wav(strength)).await;
        if strength == 2 {
            call_sid(&play(&server, "a.wav").await);
        }
    }
    let contents = [1, 2, 3].map(|strength| ContentId::of(&wav(strength)));
    let mut sweep = Sweep::default();
    // By the files' own times: the clock that stamps them is not the server's.
    let written = written_at(&config(&server), &contents[0]);
    let later = written + SignedDuration::from_hours(2);
    // Too young, then unused for the first time, then gone.
    for (now, removed) in [(written, 0), (later, 0), (later, 1), (later, 0)] {
        assert_eq!(sweep.step(&files, store, now).await.unwrap(), removed);
    }
    assert!(files.read(&contents[0]).await.is_err());
    assert_eq!(files.read(&contents[1]).await.unwrap(), wav(2));
    assert_eq!(files.read(&contents[2]).await.unwrap(), wav(3));
    let owner = AudioOwner::Application(app_id());
    store
        .remove_audio_file(&owner, &"a.wav".parse().unwrap())
        .await
        .unwrap();
    for removed in [0, 1] {
        assert_eq!(sweep.step(&files, store, later).await.unwrap(), removed);
    }
}

#[tokio::test]
async fn the_test_file_is_found_unless_the_application_has_its_own() {
    let server = TestServer::start().await;
    let content = async |server: &TestServer| {
        let sid = call_sid(&play(server, "ccp_marketingcall.wav").await);
        stored_prompt(server, &sid).files[0]
            .content
            .as_str()
            .to_owned()
    };
    assert_eq!(content(&server).await, "builtin:ccp_marketingcall.wav");
    upload(&server, "ccp_marketingcall.wav", &wav(1)).await;
    assert_eq!(content(&server).await.len(), 64);
}

#[tokio::test]
async fn a_prompt_is_text_then_files_repeated() {
    let server = TestServer::start().await;
    upload(&server, "a.wav", &wav(8000)).await;
    let fields = "<to>13800000000</to><mediaName>a.wav</mediaName><mediaTxt>hello</mediaTxt><playMode>1</playMode><playTimes>2</playTimes>";
    let sid = call_sid(&server.call_xml(fields).await);
    let config = config(&server);
    let (files, renderer) = (
        AudioFiles::open(&config).unwrap(),
        prompts::open(&Supervisor::new(), &config).unwrap(),
    );
    let prompt = stored_prompt(&server, &sid);
    let list = prompts::make_ready(&renderer, &files, ANYONE, &prompt)
        .await
        .unwrap();
    let steps: Vec<_> = list.steps().collect();
    assert_eq!(steps.len(), 5, "{}", steps.len());
    assert!(
        matches!(steps[1], sound::PlaylistItem::Sound(file) if (file.seconds() - 1.0).abs() < 1e-9)
    );
    assert_eq!(
        steps[2],
        sound::PlaylistItem::Silence(std::time::Duration::from_secs(1))
    );
    assert_eq!(steps[0], steps[3]);
}

#[tokio::test]
async fn a_voice_behind_http_speaks() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/speak?voice=a", listener.local_addr().unwrap());
    let voice = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let mut length = 0;
        while !request[..length].ends_with(b"}") {
            length += stream.read(&mut request[length..]).await.unwrap();
        }
        let wav = wav(3000);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", wav.len());
        stream
            .write_all(&[head.as_bytes(), &wav].concat())
            .await
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("data_dir = {:?}\n[speech]\nurl = {url:?}\n", folder.path());
    let config = Config::from_parts(&settings, &[]).unwrap();
    let (files, renderer) = (
        AudioFiles::open(&config).unwrap(),
        prompts::open(&Supervisor::new(), &config).unwrap(),
    );
    let prompt: Prompt = serde_json::from_str(
        r#"{"speech":{"text":"你好","speed":1,"volume":0,"pitch":2,"background":0},"plays":1}"#,
    )
    .unwrap();
    let list = prompts::make_ready(&renderer, &files, ANYONE, &prompt)
        .await
        .unwrap();
    assert!((list.seconds() - 1.0).abs() < 1e-9);
    let asked = voice.await.unwrap();
    assert!(
        asked.starts_with("POST /speak?voice=a HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked.ends_with(r#"{"text":"你好","speed":1,"pitch":2}"#),
        "{asked}"
    );
    let settings = "[speech]\nurl = \"ftp://voice.example\"\n";
    assert!(Config::from_parts(settings, &[]).is_err());
}

#[tokio::test]
async fn an_https_voice_is_asked_only_where_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let voice = Receiver::start_tls(vec![answer(503, "", "")], folder.path()).await;
    let trusted = format!("ca_file = {:?}\n", voice.certificate.as_ref().unwrap());
    for (trust, asked) in [("", 0), (trusted.as_str(), 1)] {
        let url = format!("https://localhost:{}/", voice.address.port());
        let settings = format!(
            "data_dir = {:?}\n[prompts]\ndisk_mb = 0\n[speech]\ntries = 1\nurl = {url:?}\n{trust}",
            folder.path()
        );
        let config = Config::from_parts(&settings, &[]).unwrap();
        let files = AudioFiles::open(&config).unwrap();
        let renderer = prompts::open(&Supervisor::new(), &config).unwrap();
        let prompt: Prompt = serde_json::from_str(
            r#"{"speech":{"text":"hello","speed":0,"volume":0,"pitch":0,"background":0},"plays":1}"#,
        )
        .unwrap();
        // The embedded voice stands in either way.
        let list = prompts::make_ready(&renderer, &files, ANYONE, &prompt).await;
        assert!(list.unwrap().seconds() > 0.2);
        assert_eq!(voice.has_received(asked).await.len(), asked);
    }
}

async fn clarion(server: &TestServer, arguments: &[&str]) -> Result<String, String> {
    let config = server.folder.path().join("clarion.toml");
    std::fs::write(
        &config,
        format!("data_dir = {:?}\n", server.folder.path().join("data")),
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("--config")
        .arg(config)
        .arg("audio")
        .args(arguments)
        .output()
        .await
        .unwrap();
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).unwrap());
    }
    Err(String::from_utf8(output.stderr).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn an_operator_adds_lists_plays_and_removes_voice_files() {
    let server = TestServer::start().await;
    let folder = server.folder.path();
    let (file, archive, out) = (
        folder.join("common.wav"),
        folder.join("more.zip"),
        folder.join("out.wav"),
    );
    std::fs::write(&file, wav(5000)).unwrap();
    std::fs::write(&archive, zip(&[("b.wav", &wav(1)), ("c.wav", &wav(2))])).unwrap();
    let added = clarion(&server, &["add", text(&file), text(&archive), "--json"])
        .await
        .unwrap();
    let added: Value = serde_json::from_str(&added).unwrap();
    assert_eq!(added.as_array().unwrap().len(), 3);
    assert_eq!(
        (&added[0]["name"], &added[0]["milliseconds"]),
        (&"common.wav".into(), &1000.into())
    );
    // A running server knows it at once.
    let platform = "<to>13800000000</to><mediaName type=\"1\">common.wav</mediaName>";
    call_sid(&server.call_xml(platform).await);
    assert_eq!(status_code(&play(&server, "common.wav").await), "190001");
    clarion(&server, &["add", "--app", APP, text(&file)])
        .await
        .unwrap();
    call_sid(&play(&server, "common.wav").await);

    clarion(&server, &["play", "common.wav", "--out", text(&out)])
        .await
        .unwrap();
    assert_eq!(std::fs::read(&out).unwrap().len(), 44 + 16_000);
    clarion(
        &server,
        &[
            "play",
            "--text",
            "您好 hello",
            "--speed",
            "-100",
            "--background",
            "3",
            "--out",
            text(&out),
        ],
    )
    .await
    .unwrap();
    assert!(std::fs::read(&out).unwrap().len() > 32_000);
    clarion(
        &server,
        &["play", "ccp_marketingcall.wav", "--out", text(&out)],
    )
    .await
    .unwrap();

    clarion(&server, &["remove", "common.wav"]).await.unwrap();
    assert_eq!(status_code(&server.call_xml(platform).await), "190001");
    let list = clarion(&server, &["list"]).await.unwrap();
    assert!(
        list.contains("b.wav") && list.contains("c.wav") && !list.contains("common.wav"),
        "{list}"
    );
    for (arguments, reason) in [
        (
            ["remove", "common.wav"].as_slice(),
            "there is no audio file common.wav",
        ),
        (&["remove", "../x.wav"], "without a path"),
        (
            &["play", "gone.wav", "--out", "x"],
            "there is no audio file gone.wav",
        ),
        (&["add", "/no/such.wav"], "cannot read /no/such.wav"),
        (
            &["list", "--app", "00000000000000000000000000000000"],
            "there is no application",
        ),
        (&["play"], "required"),
    ] {
        let said = clarion(&server, arguments).await.unwrap_err();
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
}
