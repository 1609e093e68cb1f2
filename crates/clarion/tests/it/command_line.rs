//! The command line as an operator and as a script uses it, beside a running server.

mod intakes;
mod lists;
mod voices;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

use crate::support::{APP, SID, TOKEN, TestServer, WAITING_TRUNK, eventually, status_code};

pub async fn clarion(server: &TestServer, arguments: &[&str]) -> Output {
    program(server, arguments).output().await.unwrap()
}

fn program(server: &TestServer, arguments: &[&str]) -> Command {
    let config = server.folder.path().join("clarion.toml");
    std::fs::write(
        &config,
        format!(
            "data_dir = {:?}\n{WAITING_TRUNK}",
            server.folder.path().join("data")
        ),
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_clarion"));
    command.arg("--config").arg(config).args(arguments);
    command
}

async fn json(server: &TestServer, arguments: &[&str]) -> Value {
    let output = clarion(server, &[arguments, &["--json"]].concat()).await;
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn error(server: &TestServer, arguments: &[&str]) -> String {
    let output = clarion(server, arguments).await;
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn existing_credentials_are_brought_along_and_work_at_once() {
    let server = TestServer::start().await;
    let (sid, token, app) = ("1".repeat(32), "2".repeat(32), "3".repeat(32));
    let added = json(
        &server,
        &[
            "account", "add", "--sid", &sid, "--token", &token, "--name", "Shop",
        ],
    )
    .await;
    assert_eq!(
        (&added["accountSid"], &added["authToken"]),
        (&sid.clone().into(), &token.clone().into())
    );
    json(
        &server,
        &["app", "add", "--account", &sid, "--app-id", &app],
    )
    .await;
    let credentials = clarion::client::ApiCredentials {
        sid: sid.parse().unwrap(),
        token: token.parse().unwrap(),
    };
    let signature = credentials.sign(&server.clock.wall());
    let body = format!("{{\"appId\":\"{app}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}");
    let mut connection = server.client().connect().await.unwrap();
    let answer = connection
        .operation(
            &credentials,
            &signature,
            "Calls/LandingCalls",
            "application/json",
            Some(body),
        )
        .await
        .unwrap();
    assert_eq!(status_code(&answer), "000000");
}

#[tokio::test]
async fn a_token_is_shown_once() {
    let server = TestServer::start().await;
    let added = json(&server, &["account", "add", "--name", "Shop"]).await;
    let (sid, token) = (
        added["accountSid"].as_str().unwrap(),
        added["authToken"].as_str().unwrap(),
    );
    assert_eq!((sid.len(), token.len()), (32, 32));
    for arguments in [
        &["account", "show", sid][..],
        &["account", "list"],
        &["account", "set", sid, "--name", "Other"],
    ] {
        let output = clarion(&server, arguments).await;
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(
            printed.contains(sid) && !printed.contains(token),
            "{printed}"
        );
    }
    let rotated = json(&server, &["account", "rotate-token", sid]).await;
    assert_ne!(rotated["authToken"], added["authToken"]);
}

#[tokio::test]
async fn a_change_is_honoured_by_the_running_server() {
    let server = TestServer::start().await;
    let answers = async |code: &'static str| {
        eventually(code, async || {
            status_code(&server.ask("AccountInfo", "xml", None).await) == code
        })
        .await;
    };
    answers("000000").await;
    json(&server, &["account", "suspend", SID]).await;
    answers("111139").await;
    json(
        &server,
        &[
            "account",
            "set",
            SID,
            "--state",
            "active",
            "--allow-ips",
            "192.0.2.1,198.51.100.0/24",
        ],
    )
    .await;
    answers("111115").await;
    json(&server, &["account", "set", SID, "--allow-ips", "none"]).await;
    answers("000000").await;
    json(&server, &["app", "set", APP, "--state", "disabled"]).await;
    eventually("111177", async || {
        status_code(
            &server
                .call_xml("<to>13800000000</to><mediaTxt>x</mediaTxt>")
                .await,
        ) == "111177"
    })
    .await;
}

#[tokio::test]
async fn every_setting_of_an_account_can_be_set_and_taken_away() {
    let server = TestServer::start().await;
    let set = json(
        &server,
        &[
            "account",
            "set",
            SID,
            "--name",
            "名字",
            "--bill-download",
            "on",
            "--custom-display-number",
            "on",
            "--display-numbers",
            "+864001234567,+86400*",
            "--requests-per-second",
            "10",
            "--requests-at-once",
            "5",
            "--calls-per-second",
            "2",
            "--calls-at-once",
            "30",
            "--balance",
            "100.5",
            "--spending-limit",
            "1000",
            "--call-hours",
            "1-5 0800-2100;6,7 1000-1800",
            "--urgent-outside-hours",
            "on",
        ],
    )
    .await;
    assert_eq!(
        set["permissions"],
        serde_json::json!({ "billDownload": true, "customDisplayNumber": true, "urgentOutsideHours": true })
    );
    assert_eq!(set["callHours"], "1,2,3,4,5 0800-2100;6,7 1000-1800");
    assert_eq!(
        set["displayNumbers"],
        serde_json::json!(["+864001234567", "+86400*"])
    );
    assert_eq!(
        (&set["balance"], &set["spendingLimit"]),
        (&"100.50".into(), &"1000.00".into())
    );
    assert_eq!(set["limits"]["callsAtOnce"], 30);
    assert_eq!(
        json(&server, &["account", "show", SID]).await["name"],
        "名字"
    );
    let unset = json(
        &server,
        &[
            "account",
            "set",
            SID,
            "--bill-download",
            "off",
            "--display-numbers",
            "none",
            "--requests-per-second",
            "default",
            "--balance",
            "none",
            "--call-hours",
            "none",
        ],
    )
    .await;
    assert_eq!(unset["callHours"], Value::Null);
    assert_eq!(
        (&unset["balance"], &unset["limits"]["requestsPerSecond"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(unset["displayNumbers"], serde_json::json!([]));
    let secret = json(
        &server,
        &["app", "add", "--account", SID, "--sign-callbacks"],
    )
    .await;
    assert!(
        secret["callbackSecret"]
            .as_str()
            .unwrap()
            .starts_with("whsec_")
    );
    assert_eq!(
        json(&server, &["app", "list", "--account", SID])
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn an_empty_list_of_addresses_does_not_open_an_account() {
    let server = TestServer::start().await;
    let narrow = ["account", "set", SID, "--allow-ips", "192.0.2.1"];
    json(&server, &narrow).await;
    let allowed = async || {
        let account = server.store.account(&SID.parse().unwrap()).await.unwrap();
        account.unwrap().allowed_networks.len()
    };
    for empty in ["", " ", ","] {
        let said = error(&server, &["account", "set", SID, "--allow-ips", empty]).await;
        assert!(said.contains("--allow-ips is empty: write none"), "{said}");
        assert_eq!(allowed().await, 1, "{empty:?}");
    }
    json(&server, &["account", "set", SID, "--allow-ips", "none"]).await;
    assert_eq!(allowed().await, 0);
}

#[tokio::test]
async fn mistakes_are_named() {
    let server = TestServer::start().await;
    let nobody = "f".repeat(32);
    for (arguments, said) in [
        (
            &["account", "show", &nobody][..],
            "there is no account ffff",
        ),
        (&["account", "show", "short"], "32 letters or digits"),
        (&["account", "add", "--sid", SID], "exists already"),
        (
            &["account", "set", SID, "--state", "asleep"],
            "active, not-activated, suspended, closed",
        ),
        (
            &["account", "set", SID, "--display-numbers", "abc"],
            "not a number pattern",
        ),
        (
            &["account", "set", SID, "--allow-ips", "nowhere"],
            "not an address",
        ),
        (
            &["account", "set", SID, "--allow-ips", ""],
            "--allow-ips is empty: write none",
        ),
        (
            &["account", "set", SID, "--display-numbers", " , "],
            "--display-numbers is empty: write none",
        ),
        (
            &["account", "set", SID, "--requests-per-second", "0"],
            "must be from 1",
        ),
        (
            &["account", "set", SID, "--balance", "1.2345678"],
            "six decimals",
        ),
        (
            &["account", "set", SID, "--bill-download", "maybe"],
            "on or off",
        ),
        (&["app", "add", "--account", &nobody], "there is no account"),
        (
            &["app", "list", "--account", &nobody],
            "there is no account",
        ),
        (
            &["app", "set", &nobody, "--name", "x"],
            "there is no application",
        ),
        (&["app", "set", APP, "--callback-secret", "short"], "whsec_"),
    ] {
        let message = error(&server, arguments).await;
        assert!(message.contains(said), "{arguments:?}: {message}");
        assert!(
            !message.contains(TOKEN) && !message.contains("panicked"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let clarion = async |file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_clarion"))
            .arg("--config")
            .arg(file)
            .arg("serve")
            .output()
            .await
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let file = folder.path().join("mistaken.toml");
    assert!(
        clarion(&file)
            .await
            .contains("cannot read the configuration")
    );
    std::fs::write(&file, "[http]\nlissen = []\n").unwrap();
    let message = clarion(&file).await;
    assert!(
        message.contains("mistaken.toml") && message.contains("did you mean `http.listen`?"),
        "{message}"
    );
}

#[tokio::test]
async fn the_default_configuration_is_printed_and_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let printed = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("config")
        .output()
        .await
        .unwrap();
    let file = folder.path().join("clarion.toml");
    std::fs::write(&file, &printed.stdout).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .args(["--config", file.to_str().unwrap(), "account", "list"])
        .current_dir(folder.path())
        .output()
        .await
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "none\n");
    assert!(Path::new(&folder.path().join("clarion-data/clarion.db")).exists());
}
