//! Requests a second and at once, per account.

use clarion::domain::account::AccountChange;
use tokio::io::AsyncWriteExt;

use crate::support::raw::read_answer;
use crate::support::{SID, TestServer, eventually, status_code};

#[tokio::test]
async fn requests_beyond_an_accounts_limits_are_refused() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 5\nrequests_at_once = 1000\n")
            .await;
    let mut codes = Vec::new();
    for _ in 0..20 {
        codes.push(status_code(&server.ask("AccountInfo", "json", None).await).to_owned());
    }
    // The bucket holds five; at most a few more drip in while the twenty are sent.
    assert!(codes[..5].iter().all(|code| code == "000000"), "{codes:?}");
    assert!(codes.iter().any(|code| code == "111111"), "{codes:?}");
    // The account's own limit takes the place of the platform's.
    let own = AccountChange {
        requests_per_second: Some(Some(100_000)),
        ..AccountChange::default()
    };
    server.change_account(own).await;
    eventually(
        "twenty at once are within the account's own limit",
        async || {
            let mut good = true;
            for _ in 0..20 {
                good &= status_code(&server.ask("AccountInfo", "json", None).await) == "000000";
            }
            good
        },
    )
    .await;
}

#[tokio::test]
async fn a_request_under_way_takes_a_place_until_it_is_answered() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 1000\nrequests_at_once = 1\n")
            .await;
    let signature = server.sign();
    // Its head has arrived, its body has not: it is under way.
    let head = format!(
        "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: h\r\nAuthorization: {}\r\nContent-Length: 2\r\n\r\n",
        signature.sig, signature.authorization
    );
    let mut slow = server.door().tls(&[]).await;
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.flush().await.unwrap();
    eventually("the place is taken", async || {
        status_code(&server.ask("AccountInfo", "json", None).await) == "111111"
    })
    .await;
    slow.write_all(b"{}").await.unwrap();
    assert_eq!(status_code(&read_answer(&mut slow).await), "111169");
    eventually("the place is free again", async || {
        status_code(&server.ask("AccountInfo", "json", None).await) == "000000"
    })
    .await;
}

#[tokio::test]
async fn one_accounts_limit_is_not_anothers() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 1\nrequests_at_once = 1000\n")
            .await;
    let mut other = crate::support::account();
    other.sid = "f".repeat(32).parse().unwrap();
    server.store.add_account(other.clone()).await.unwrap();
    eventually("the first account's limit", async || {
        status_code(&server.ask("AccountInfo", "json", None).await) == "111111"
    })
    .await;
    let credentials = clarion::client::Credentials {
        sid: other.sid,
        token: other.auth_token,
    };
    let signature = credentials.sign(&server.clock.wall());
    let mut connection = server.client().connect().await.unwrap();
    let answer = connection
        .operation(
            &credentials,
            &signature,
            "AccountInfo",
            "application/json",
            None,
        )
        .await
        .unwrap();
    assert_eq!(status_code(&answer), "000000");
}
