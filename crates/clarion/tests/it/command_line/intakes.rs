//! Intakes as an operator keeps them: made with a token that is shown once, shown, changed, tried and removed.

use serde_json::json;

use super::{clarion, error, json};
use crate::support::{APP, TestServer};

#[tokio::test]
async fn an_intake_is_made_shown_changed_tried_and_removed() {
    let server = TestServer::start().await;
    let add = [
        "intake",
        "add",
        "shop",
        "--app",
        APP,
        "--format",
        "json",
        "--to",
        "13800000001",
    ];
    let added = json(&server, &add).await;
    let token = added["token"].as_str().unwrap().to_owned();
    assert_eq!((token.len(), &added["path"]), (64, &json!("/intake/shop")));
    assert_eq!(added["settings"]["confirm-dtmf"], "1");
    let again = error(&server, &add).await;
    assert!(again.contains("intake shop exists already"), "{again}");
    let set = [
        "intake",
        "set",
        "shop",
        "--redial-times",
        "4",
        "--text",
        "Hear: {{ text }}",
    ];
    assert_eq!(json(&server, &set).await["settings"]["redial-times"], "4");
    let wrong = ["intake", "set", "shop", "--redial-times", "44"];
    let wrong = error(&server, &wrong).await;
    assert!(
        wrong.contains("redialTimes must be a whole number"),
        "{wrong}"
    );
    let shown = json(&server, &["intake", "show", "shop"]).await;
    assert_eq!(shown["settings"]["redial-times"], "4");
    assert_eq!(shown["incidents"], json!([]));
    assert!(!shown.to_string().contains(&token));
    let tried = json(&server, &["intake", "test", "shop"]).await;
    assert_eq!(tried[0]["text"], "Hear: The cold store is too warm: 9.5 °C");
    assert_eq!(tried[0]["to"], json!(["13800000001"]));
    assert_eq!(tried[0]["callSid"], json!(null));
    let payload = server.folder.path().join("alert.json");
    std::fs::write(&payload, r#"{"text":"x","to":"13900000001"}"#).unwrap();
    let foreign = [
        "intake",
        "test",
        "shop",
        "--payload",
        payload.to_str().unwrap(),
    ];
    let foreign = error(&server, &foreign).await;
    assert!(foreign.contains("allow-numbers"), "{foreign}");
    let called = json(&server, &["intake", "test", "shop", "--call"]).await;
    assert_eq!(called[0]["callSid"].as_str().unwrap().len(), 32);
    let rotated = json(&server, &["intake", "rotate-token", "shop"]).await;
    assert_ne!(rotated["token"], token);
    let listed = json(&server, &["intake", "list"]).await;
    assert_eq!(listed[0]["name"], "shop");
    let removed = clarion(&server, &["intake", "remove", "shop"]).await;
    assert_eq!(removed.stdout, b"the intake shop is removed\n");
    assert_eq!(json(&server, &["intake", "list"]).await, json!([]));
}
