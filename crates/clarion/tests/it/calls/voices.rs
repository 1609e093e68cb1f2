//! Voices by name, through the front door: who speaks a call, who stands in, and what the record says of it. The speech server is one of this
//! test's own, which does what real ones do, right and wrong.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use clarion::domain::account::ApplicationChange;
use clarion::domain::call::CallSid;
use clarion::domain::lexicon::{LexiconChange, Reading};
use phone::test_phone::Script;
use sound::wav::mono_16_bit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::stage::Stage;
use crate::audio_files::wav;
use crate::support::child::{Caller, Installation};
use crate::support::telephone::Telephone;
use crate::support::{APP, eventually, status_code};

/// How a speech server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// A stream whose length is not known.
    Well,
    /// Never.
    Slowly,
    Wrongly,
    /// The connection ends in the middle of the sound.
    Brokenly,
    /// The sound ends in the middle of the sound, and the answer is complete.
    Partly,
    /// The connection ends in the middle of a sound that does not tell how long it is, in an answer that does not either.
    Vaguely,
    Endlessly,
    Silently,
}

struct SpeechServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl SpeechServer {
    async fn that(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        let noted = Arc::clone(&requests);
        serving.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                open.spawn(serve(stream, speaks, Arc::clone(&noted)));
            }
        });
        Self {
            address,
            requests,
            _serving: serving,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// As a voice that is tried once and for a second.
    fn voice(&self, name: &str, more: &str) -> String {
        format!(
            "[[voice]]\nname = {name:?}\nkind = \"openai\"\nurl = \"http://{}/v1\"\nmodel = \"m\"\nspeaker = \"anna\"\nseconds = 1\n{more}\n",
            self.address
        )
    }
}

async fn serve(mut stream: TcpStream, speaks: Speaks, requests: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while !request.ends_with(b"}") {
        match stream.read(&mut part).await {
            Ok(read @ 1..) => request.extend_from_slice(&part[..read]),
            _ => return,
        }
    }
    requests
        .lock()
        .unwrap()
        .push(String::from_utf8(request).unwrap());
    let mut sound = wav(3000);
    let length = match speaks {
        Speaks::Slowly => std::future::pending().await,
        Speaks::Wrongly => {
            sound = b"{\"error\":\"no such model\"}".to_vec();
            sound.len()
        }
        Speaks::Well => {
            sound[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
            sound[40..44].copy_from_slice(&2_000_000_000_u32.to_le_bytes());
            sound.len()
        }
        Speaks::Brokenly => {
            let whole = sound.len();
            sound.truncate(9000);
            whole
        }
        Speaks::Vaguely => {
            sound[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
            sound.truncate(9000);
            sound.len()
        }
        Speaks::Partly => {
            sound.truncate(9000);
            sound.len()
        }
        Speaks::Silently => {
            sound = mono_16_bit(&[0; 8000], 8000);
            sound.len()
        }
        Speaks::Endlessly => 1 << 30,
    };
    let head = match speaks {
        Speaks::Vaguely => "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned(),
        _ => format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"),
    };
    let _ = stream.write_all(&[head.as_bytes(), &sound].concat()).await;
    while speaks == Speaks::Endlessly && stream.write_all(&[0; 1 << 13]).await.is_ok() {}
}

/// Who spoke the text of a call that has ended.
async fn voice_of(stage: &Stage, sid: &CallSid) -> Option<String> {
    stage.report_of(sid).await;
    let history = stage.server.store.call_history(sid).await.unwrap();
    assert_eq!(history.attempts.len(), 1);
    history.attempts[0].voice.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_spoken_by_the_voice_it_asks_for_and_its_record_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-hush\n").unwrap();
    let server = SpeechServer::that(Speaks::Well).await;
    let voices = server.voice("anna", &format!("key_file = {key:?}"));
    let stage = Stage::new(&format!(
        "{voices}[[voice]]\nname = \"deep\"\nkind = \"espeak\"\nenglish_voice = \"en-gb\"\n"
    ))
    .await;
    for (extra, expected) in [
        ("", "anna"),
        (",\"voice\":\"deep\"", "deep"),
        (",\"voice\":\"espeak\"", "espeak"),
    ] {
        let fields = format!("\"mediaTxt\":\"You owe $5\",\"txtSpeed\":\"500\"{extra}");
        let sid = stage.call("13800000001", &fields).await;
        assert_eq!(voice_of(&stage, &sid).await.as_deref(), Some(expected));
    }
    let asked = server.requests();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].starts_with("POST /v1/audio/speech HTTP/1.1\r\n"));
    assert!(
        asked[0].contains("authorization: Bearer sk-hush\r\n"),
        "{asked:?}"
    );
    let (_, body) = asked[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(body).unwrap(),
        serde_json::json!({
            "model": "m", "input": "You owe five dollars", "voice": "anna", "response_format": "wav", "speed": 2.0
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_speech_server_does_the_call_is_spoken_by_the_one_that_stands_in() {
    for speaks in [
        Speaks::Slowly,
        Speaks::Wrongly,
        Speaks::Brokenly,
        Speaks::Partly,
        Speaks::Vaguely,
        Speaks::Endlessly,
        Speaks::Silently,
    ] {
        let server = SpeechServer::that(speaks).await;
        let stage = Stage::new(&server.voice("anna", "")).await;
        let sid = stage.call("13800000001", "\"mediaTxt\":\"hello\"").await;
        let spoken_by = voice_of(&stage, &sid).await;
        assert_eq!(spoken_by.as_deref(), Some("espeak"), "{speaks:?}");
        assert_eq!(server.requests().len(), 1, "{speaks:?}");
        let heard = stage.recording(&sid).await;
        assert!(heard.len() > 8_000, "{speaks:?}: {} bytes", heard.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voice_that_nobody_knows_is_refused_by_field_and_rule() {
    let server = SpeechServer::that(Speaks::Well).await;
    let stage = Stage::new(&server.voice("anna", "")).await;
    let ask = async |fields: &str| {
        let fields = format!("\"to\":\"13800000001\",{fields}");
        stage.server.call_json(&fields).await
    };
    for name in ["nobody", "a b", "Anna"] {
        let answer = ask(&format!("\"mediaTxt\":\"hello\",\"voice\":\"{name}\"")).await;
        assert_eq!(status_code(&answer), "108023", "{answer}");
        assert!(answer.contains("voice: "), "{answer}");
    }
    let answer = ask("\"mediaTxt\":\"hello\",\"voice\":\"nobody\"").await;
    assert!(
        answer.contains("there are: anna, natural, espeak"),
        "{answer}"
    );
    // A file has no voice.
    let answer = ask("\"mediaName\":\"ccp_marketingcall.wav\",\"voice\":\"nobody\"").await;
    assert_eq!(status_code(&answer), "000000", "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_has_a_voice_and_words_of_its_own() {
    let server = SpeechServer::that(Speaks::Well).await;
    let voices = "[[voice]]\nname = \"deep\"\nkind = \"espeak\"\n".to_owned();
    let stage = Stage::new(&(voices + &server.voice("anna", ""))).await;
    let change = |voice: &str, lexicon| ApplicationChange {
        voice: Some(Some(voice.parse().unwrap())),
        lexicon,
        ..ApplicationChange::default()
    };
    let reading = Reading::parse("k8s", "the cluster").unwrap();
    let changed = change("anna", LexiconChange::Add(reading));
    let app = APP.parse().unwrap();
    let store = &stage.server.store;
    store.change_application(&app, changed).await.unwrap();
    let call = async |text: &str, extra: &str| {
        let fields = format!("\"mediaTxt\":\"{text}\"{extra}");
        stage.call("13800000001", &fields).await
    };
    // A server knows of it within a second.
    let mut number = 0;
    eventually("the application speaks by anna", async || {
        number += 1;
        let sid = call(&format!("K8S is down, {number}"), "").await;
        voice_of(&stage, &sid).await.as_deref() == Some("anna")
    })
    .await;
    let asked = server.requests();
    assert!(asked[0].contains("\"the cluster is down, "), "{asked:?}");
    let sid = call("k8s", ",\"voice\":\"deep\"").await;
    assert_eq!(voice_of(&stage, &sid).await.as_deref(), Some("deep"));
    assert_eq!(server.requests().len(), 1);
    let stored = store.accepted_call(&sid).await.unwrap().unwrap();
    let speech = stored.prompt.speech.unwrap();
    assert_eq!((speech.text.as_str(), speech.readings.len()), ("k8s", 1));
}

/// What the platform says beside a file is said by the voice of the request, or of the application.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_a_key_beside_a_file_has_the_voice_that_was_chosen() {
    let server = SpeechServer::that(Speaks::Well).await;
    let voices = "[[voice]]\nname = \"deep\"\nkind = \"espeak\"\n".to_owned();
    let stage = Stage::new(&(voices + &server.voice("anna", ""))).await;
    let call = async |voice: &str| {
        let fields = format!(
            "\"mediaName\":\"ccp_marketingcall.wav\",\"confirmDtmf\":\"1\",\"waitDtmfTime\":\"1\"{voice}"
        );
        let sid = stage.call("13800000001", &fields).await;
        stage.report_of(&sid).await;
    };
    call("").await;
    assert_eq!(server.requests(), Vec::<String>::new());
    call(",\"voice\":\"anna\"").await;
    let asked = server.requests();
    assert!(!asked.is_empty(), "the question is asked by anna");
    let change = ApplicationChange {
        voice: Some(Some("anna".parse().unwrap())),
        ..ApplicationChange::default()
    };
    let app = APP.parse().unwrap();
    let store = &stage.server.store;
    store.change_application(&app, change).await.unwrap();
    eventually("the application asks by anna", async || {
        let sid = stage
            .call(
                "13800000001",
                "\"mediaName\":\"ccp_marketingcall.wav\",\"confirmDtmf\":\"1\",\"waitDtmfTime\":\"1\"",
            )
            .await;
        let stored = store.accepted_call(&sid).await.unwrap().unwrap();
        let voice = stored.keys().and_then(|keys| keys.voice.as_ref());
        voice.map(ToString::to_string).as_deref() == Some("anna")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_voices_do_and_what_is_rendered_ahead_is_counted() {
    let server = SpeechServer::that(Speaks::Well).await;
    let silent = SpeechServer::that(Speaks::Silently).await;
    let telephone = Telephone::that(Script::answer()).await;
    let mute = silent.voice("mute", "");
    let voices = format!("{}{mute}", server.voice("anna", ""));
    let settings = format!("{}{voices}", telephone.wide_trunk("telephone", ""));
    let installation = Installation::with_settings(None, &settings).await;
    let child = installation.start().await;
    let mut caller = Caller::connect(&child.client).await.unwrap();
    for (number, voice) in ["anna", "mute", "mute"].into_iter().enumerate() {
        let fields = format!(
            "\"to\":\"1380000000{number}\",\"mediaTxt\":\"text {number}\",\"voice\":\"{voice}\""
        );
        caller.place(&fields).await.unwrap();
    }
    let texts = |voice, result| {
        format!("clarion_voice_texts_total{{voice=\"{voice}\",result=\"{result}\"}}")
    };
    for (series, expected) in [
        (texts("anna", "spoken"), 1.0),
        (texts("mute", "failed"), 2.0),
        (texts("espeak", "spoken"), 2.0),
        (
            "clarion_voice_characters_total{voice=\"anna\"}".to_owned(),
            "text zero".len() as f64,
        ),
        (
            "clarion_prompts_prerendered_total{result=\"rendered\"}".to_owned(),
            3.0,
        ),
    ] {
        // A slow machine may render again what has stood in.
        eventually(&series, async || {
            let counted = child.metric(&series).await;
            counted.is_some_and(|counted| counted >= expected)
        })
        .await;
    }
    assert_eq!(child.metric(&texts("anna", "spoken")).await, Some(1.0));
    let waiting = child.metric("clarion_prompts_prerender_waiting").await;
    assert_eq!(waiting, Some(0.0));
}
