//! Voices and lexicons as an operator keeps them, and what a callee would hear.

use serde_json::json;
use sound::wav::{Wav, WavLimits};

use super::{clarion, error, json};
use crate::support::{APP, TestServer};

/// The samples of a preview, as they are played.
async fn preview(server: &TestServer, arguments: &[&str]) -> (String, Vec<f32>) {
    let file = server.folder.path().join("preview.wav");
    let out = ["--out", file.to_str().unwrap()];
    let told = clarion(server, &[&["voice", "preview"], arguments, &out].concat()).await;
    let complaint = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{arguments:?}: {complaint}");
    let bytes = std::fs::read(&file).unwrap();
    let wav = Wav::read(&bytes, &WavLimits::default()).unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    (told, wav.for_the_line())
}

#[tokio::test]
async fn a_preview_is_what_the_callee_hears_of_a_text() {
    let server = TestServer::start().await;
    let (told, usual) = preview(&server, &["The pump has stopped."]).await;
    let seconds = usual.len() as f64 / 8000.0;
    assert!((0.8..3.0).contains(&seconds), "{seconds} s");
    assert!(
        told.starts_with(&format!("espeak spoke {seconds:.1} s into ")),
        "{told}"
    );
    let loudness = sound::level::active_rms(&usual);
    let (_, slow) = preview(&server, &["The pump has stopped.", "--speed", "-300"]).await;
    assert!(slow.len() > usual.len() * 11 / 10);
    let (_, quiet) = preview(&server, &["The pump has stopped.", "--volume", "-20"]).await;
    assert!(sound::level::active_rms(&quiet) < loudness / 2.0);
    let unknown = error(&server, &["voice", "preview", "x", "--voice", "nobody"]).await;
    assert!(unknown.contains("there are: natural, espeak"), "{unknown}");
    let voices = json(&server, &["voice", "list"]).await;
    let embedded =
        json!({ "name": "espeak", "kind": "espeak", "language": "any", "place": "this machine" });
    assert_eq!(voices.as_array().unwrap().last(), Some(&embedded));
}

#[tokio::test]
async fn a_word_of_a_lexicon_is_added_listed_heard_and_removed() {
    let server = TestServer::start().await;
    let of = ["--app", APP];
    let lexicon = |words: &[&'static str]| [&["lexicon"], &words[..1], &of, &words[1..]].concat();
    let added = clarion(&server, &lexicon(&["add", "k8s", "the cluster"])).await;
    assert_eq!(added.stdout, b"k8s is said: the cluster\n");
    assert_eq!(
        json(&server, &lexicon(&["list"])).await,
        json!([{ "word": "k8s", "said": "the cluster" }])
    );
    let (_, said) = preview(&server, &["K8S is down.", "--app", APP]).await;
    let (_, expected) = preview(&server, &["the cluster is down."]).await;
    let (_, without) = preview(&server, &["K8S is down."]).await;
    assert_eq!(said, expected);
    assert_ne!(said, without);
    clarion(&server, &lexicon(&["add", "k8s", "kubernetes"])).await;
    assert_eq!(
        json(&server, &lexicon(&["list"])).await[0]["said"],
        "kubernetes"
    );
    let wrong = error(&server, &lexicon(&["add", "k8s", " "])).await;
    assert!(wrong.contains("1 to 200"), "{wrong}");
    let removed = clarion(&server, &lexicon(&["remove", "k8s"])).await;
    assert_eq!(removed.stdout, b"k8s is said as it is written\n");
    let again = error(&server, &lexicon(&["remove", "k8s"])).await;
    assert!(again.contains("there is no word \"k8s\""), "{again}");
    let trail = json(&server, &["audit"]).await.to_string();
    assert!(trail.contains("lexicon add") && trail.contains("lexicon remove"));
}
