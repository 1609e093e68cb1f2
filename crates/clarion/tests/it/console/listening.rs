//! Where the console can be reached, by a server of its own with operators of the command line.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::PASSWORD;
use crate::support::child::Installation;
use crate::support::{eventually, free_port};

/// The answer to a request, as it comes.
async fn exchange(port: u16, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn operators_are_managed_by_the_command_line_and_sign_in_over_plain_http_on_this_machine() {
    let installation = Installation::new(None).await;
    let port = free_port();
    let listen = format!("[\"127.0.0.1:{port}\"]");
    let _server = installation
        .start_by(|serve| {
            let serve = serve.env("CLARION_CONSOLE__LISTEN", listen);
            serve.env("CLARION_CONSOLE__PLAIN", "true")
        })
        .await;
    let made = installation
        .says(&["operator", "add", "li", "--json"])
        .await;
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(
        (&made["name"], &made["role"]),
        (&"li".into(), &"viewer".into())
    );
    assert_eq!(made["password"].as_str().unwrap().len(), 24);
    let again = installation.clarion(&["operator", "add", "li"]).await;
    assert!(!again.status.success(), "there is one of that name");
    let file = installation.folder.path().join("password");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let given = format!("@{}", file.display());
    let set = [
        "operator",
        "set",
        "li",
        "--role",
        "admin",
        "--password",
        &given,
    ];
    assert!(!installation.says(&set).await.contains("password"));
    let nothing = installation.clarion(&["operator", "set", "li"]).await;
    assert!(!nothing.status.success(), "what is to be changed?");
    let short = ["operator", "add", "wang", "--password", "short"];
    assert!(!installation.clarion(&short).await.status.success());
    let written_out = ["operator", "add", "wang", "--password", PASSWORD];
    installation.says(&written_out).await;

    let body = format!("name=li&password={}", PASSWORD.replace(' ', "+"));
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(port, &head).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    let cookie = answer.split("set-cookie: ").nth(1).unwrap();
    let cookie = cookie.lines().next().unwrap();
    assert!(cookie.starts_with("clarion="), "{cookie}");
    assert!(cookie.contains("SameSite=Strict") && !cookie.contains("Secure"));
    let foreign = head.replace("origin: http:", "origin: https:");
    let answer = exchange(port, &foreign).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    let listed = installation.says(&["operator", "list"]).await;
    assert!(
        listed.contains("li") && listed.contains("admin"),
        "{listed}"
    );
    installation.says(&["operator", "remove", "li"]).await;
    assert!(
        !installation
            .clarion(&["operator", "remove", "li"])
            .await
            .status
            .success()
    );
    let trail = installation.says(&["audit", "operator"]).await;
    for wanted in [
        "operator add li",
        "--role admin --password @",
        "operator remove li",
        "--password (hidden)",
    ] {
        assert!(trail.contains(wanted), "{wanted}: {trail}");
    }
}

#[tokio::test]
async fn an_address_that_somebody_else_has_keeps_no_server_from_its_calls_and_is_had_later() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let installation = Installation::new(None).await;
    let listen = format!("[\"127.0.0.1:{port}\"]");
    let server = installation
        .start_by(|serve| {
            let serve = serve.env("CLARION_CONSOLE__LISTEN", listen);
            serve.env("CLARION_CONSOLE__PLAIN", "true")
        })
        .await;
    let mut connection = server.client.connect().await.unwrap();
    assert_eq!(connection.get("/healthz").await.unwrap().0, 200);
    drop(taken);
    let request =
        format!("GET /sign-in HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    eventually("the console is reached", async || {
        let answer = exchange(port, &request).await;
        answer.is_some_and(|answer| answer.contains("clarion operator add"))
    })
    .await;
}
