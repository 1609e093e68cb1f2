//! The page for those who come from another platform: its commands, in both languages, on a machine that has what they bring along.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

use clarion::domain::account::AccountSid;
use clarion::domain::call_record::CallFilter;
use clarion::domain::outcome::Outcome;
use clarion::domain::prompt::AudioOwner;
use clarion::store::Database;
use supervisor::Supervisor;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::audio_files::wav;
use crate::documents::blocks::{blocks, documents};
use crate::support::{APP, PATIENCE, SID, TOKEN, free_port};

/// The shell blocks of a page.
fn commands(page: &str) -> String {
    let pages = documents();
    let (name, text) = pages.iter().find(|(name, _)| name == page).unwrap();
    let blocks = blocks(name, text).into_iter();
    let blocks = blocks.filter(|block| block.language == "sh");
    blocks.map(|block| block.text).collect()
}

/// A folder of voice files as it comes from a Chinese Windows.
fn voice_files(folder: &Path) {
    let inner = folder.join("voice-files/sub");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(folder.join("voice-files/greeting.wav"), wav(1000)).unwrap();
    let (gbk, ..) = encoding_rs::GBK.encode("通知.wav");
    std::fs::write(inner.join(std::ffi::OsStr::from_bytes(&gbk)), wav(2000)).unwrap();
    std::fs::write(folder.join("voice-files/.hidden.wav"), "nothing").unwrap();
}

async fn bash(folder: &Path, commands: &str) -> std::process::Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_clarion")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    Command::new("bash")
        .args(["-euo", "pipefail", "-c", commands])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .envs([("ACCOUNT_SID", SID), ("AUTH_TOKEN", TOKEN), ("APP_ID", APP)])
        .output()
        .await
        .unwrap()
}

/// The server and the trunk, for which the page sends its reader to the README: the trunk of the README, and a port that is free here.
async fn after_the_steps_of_the_readme(folder: &Path) -> Child {
    let pages = documents();
    let (name, readme) = pages.iter().find(|(name, _)| name == "README.md").unwrap();
    let settings = blocks(name, readme).into_iter();
    let settings = settings.filter(|block| block.file() == Some("clarion.toml"));
    let settings: String = settings.map(|block| block.text).collect();
    assert!(settings.contains("loopback = true"), "{settings}");
    // Two servers at once cannot both have the usual port of the console, and `clarion check` would say so.
    let listen = format!(
        "[console]\nlisten = []\n[http]\nlisten = [\"127.0.0.1:{}\"]\n",
        free_port()
    );
    std::fs::write(folder.join("clarion.toml"), listen + &settings).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("serve")
        .current_dir(folder)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    let first = first.expect("it starts").unwrap().unwrap_or_default();
    assert!(first.contains("https://"), "{first}");
    server
}

async fn the_way_works(page: &str) {
    // On the disk of the build, as /tmp may be memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    voice_files(folder.path());
    let _server = after_the_steps_of_the_readme(folder.path()).await;
    let output = bash(folder.path(), &commands(page)).await;
    let said = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{error}");
    let database = Database::Sqlite(folder.path().join("clarion-data/clarion.db"));
    let store = database.open(&Supervisor::new()).await.unwrap();
    let sid: AccountSid = SID.parse().unwrap();
    let account = store.account(&sid).await.unwrap().unwrap();
    assert_eq!(account.auth_token.reveal(), TOKEN);
    assert!(account.permissions.bill_download && account.permissions.custom_display_number);
    assert_eq!(account.display_numbers.len(), 1);
    let owner = AudioOwner::Application(APP.parse().unwrap());
    let files = store.audio_files_of(&owner).await.unwrap();
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["greeting.wav", "通知.wav"]);
    // One real call was made, of one of these files.
    let calls = store
        .list_calls(CallFilter {
            limit: 10,
            ..CallFilter::default()
        })
        .await
        .unwrap();
    let outcomes: Vec<_> = calls.calls.iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Some(Outcome::Talked)]);
    assert_eq!(calls.calls[0].number.digits(), "8613800000001");
    store.close().await;
}

#[tokio::test]
async fn the_english_page_leads_to_a_platform_that_clients_know() {
    the_way_works("docs/migrating.md").await;
}

#[tokio::test]
async fn the_chinese_page_leads_to_a_platform_that_clients_know() {
    the_way_works("docs/migrating.zh-CN.md").await;
}

#[tokio::test]
async fn a_folder_is_imported_file_by_file_and_what_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    voice_files(folder.path());
    let files = folder.path().join("voice-files");
    std::fs::write(files.join("broken.wav"), "RIFF").unwrap();
    std::fs::write(files.join("greeting.mp3"), "ID3").unwrap();
    std::fs::write(files.join("sub/greeting.wav"), wav(500)).unwrap();
    // A link that leads in a circle, something that is no file, and a name that nobody can read.
    std::os::unix::fs::symlink(".", files.join("circle")).unwrap();
    let mut make_pipe = std::process::Command::new("mkfifo");
    let made = make_pipe.arg(files.join("pipe.wav")).status();
    assert!(made.unwrap().success());
    let unreadable = files.join(std::ffi::OsStr::from_bytes(b"\xff\xff.wav"));
    std::fs::write(&unreadable, wav(100)).unwrap();
    let prepare = "clarion account add --sid $ACCOUNT_SID --token $AUTH_TOKEN; clarion app add --account $ACCOUNT_SID --app-id $APP_ID";
    assert!(bash(folder.path(), prepare).await.status.success());
    let import = async |more: &str| {
        let command = format!("clarion audio import --app $APP_ID voice-files --json {more}");
        let output = bash(folder.path(), &command).await;
        let results: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let results = results.iter().map(|one| {
            let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            (word("name"), word("result"))
        });
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), results.collect::<Vec<_>>(), error)
    };
    let wanted = |greeting: &str, notice: &str| {
        [
            ("broken.wav", "refused"),
            ("greeting.mp3", "refused"),
            ("greeting.wav", greeting),
            ("通知.wav", notice),
            ("\u{fffd}\u{fffd}.wav", "refused"),
        ]
        .map(|(name, result)| (name.to_owned(), result.to_owned()))
        .to_vec()
    };
    let (success, results, error) = import("--dry-run").await;
    assert_eq!((success, results), (false, wanted("refused", "added")));
    for words in [
        "broken.wav: ",
        "only .wav files",
        "several files have this name",
        "4 of 5 files were not imported",
        "neither UTF-8 nor GBK",
    ] {
        assert!(error.contains(words), "{error}");
    }
    let (_, results, _) = import("").await;
    assert_eq!(
        results,
        wanted("refused", "added"),
        "the trial added nothing"
    );
    std::fs::remove_file(files.join("sub/greeting.wav")).unwrap();
    let (_, results, _) = import("").await;
    assert_eq!(results, wanted("added", "unchanged"));
    std::fs::write(files.join("greeting.wav"), wav(700)).unwrap();
    for name in ["broken.wav", "greeting.mp3"] {
        std::fs::remove_file(files.join(name)).unwrap();
    }
    std::fs::remove_file(unreadable).unwrap();
    let (success, results, error) = import("").await;
    assert_eq!(
        results,
        wanted("replaced", "unchanged")[2..4].to_vec(),
        "{error}"
    );
    assert!(success);
    let missing = bash(folder.path(), "clarion audio import --app $APP_ID nowhere").await;
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nowhere"));
}
