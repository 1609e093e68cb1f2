//! Who may ask: every check, its code, and the order in which the checks are made.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clarion::api::auth::SAME_TIME;
use clarion::client::ApiCredentials;
use clarion::domain::account::{AccountChange, AccountState};
use jiff::SignedDuration;
use md5::{Digest, Md5};
use tokio::process::Command;

use crate::support::child::Installation;
use crate::support::{SID, TOKEN, TestServer, clock, eventually, status_code};

/// A request that is right in every point; a test spoils one or two.
struct Attempt {
    version: String,
    sid: String,
    authorization: Option<String>,
    sig: Option<String>,
}

impl Attempt {
    fn stamped(stamp: &str) -> Self {
        let mut md5 = Md5::new();
        md5.update(format!("{SID}{TOKEN}{stamp}"));
        Self {
            version: "2013-12-26".into(),
            sid: SID.into(),
            authorization: Some(BASE64_STANDARD.encode(format!("{SID}:{stamp}"))),
            sig: Some(hex::encode_upper(md5.finalize())),
        }
    }

    fn now(server: &TestServer) -> Self {
        Self::stamped(&server.clock.wall().strftime("%Y%m%d%H%M%S").to_string())
    }

    fn authorization(mut self, decoded: &str) -> Self {
        self.authorization = Some(BASE64_STANDARD.encode(decoded));
        self
    }

    fn request(&self) -> String {
        let query = self
            .sig
            .as_ref()
            .map_or(String::new(), |sig| format!("?sig={sig}"));
        let authorization = self
            .authorization
            .as_ref()
            .map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
        format!(
            "GET /{}/Accounts/{}/AccountInfo{query} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n",
            self.version, self.sid
        )
    }

    async fn code(&self, server: &TestServer) -> String {
        let answer = server.send_raw(self.request().as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        status_code(&answer).to_owned()
    }
}

#[tokio::test]
async fn each_check_has_its_code() {
    let server = TestServer::start().await;
    let right = || Attempt::now(&server);
    let stamp = server.clock.wall().strftime("%Y%m%d%H%M%S").to_string();
    let with = |change: fn(&mut Attempt)| {
        let mut attempt = right();
        change(&mut attempt);
        attempt
    };
    let cases = [
        (right(), "000000"),
        (with(|a| a.sid = "short".into()), "111100"),
        (with(|a| a.sid = String::new()), "111100"),
        (
            with(|a| a.sid = "0123456789abcdef0123456789abcde-".into()),
            "111100",
        ),
        (with(|a| a.authorization = None), "111101"),
        (with(|a| a.authorization = Some(String::new())), "111101"),
        (with(|a| a.authorization = Some("***".into())), "111102"),
        (right().authorization("no colon"), "111103"),
        (right().authorization(&format!(":{stamp}")), "111104"),
        (right().authorization(&format!("{SID}:")), "111105"),
        (
            right().authorization(&format!("{SID}:2026-11-15")),
            "111113",
        ),
        (
            right().authorization(&format!("{SID}:20261315000000")),
            "111113",
        ),
        (
            right().authorization(&format!("{SID}:20200101000000")),
            "111106",
        ),
        (
            right().authorization(&format!("{}:{stamp}", "f".repeat(32))),
            "111107",
        ),
        (with(|a| a.sig = None), "111108"),
        (with(|a| a.sig = Some(String::new())), "111108"),
        (with(|a| a.sig = Some("0".repeat(32))), "111109"),
        (with(|a| a.sig = Some("short".into())), "111109"),
        (with(|a| a.version = "2099-01-01".into()), "111110"),
    ];
    for (attempt, code) in cases {
        assert_eq!(attempt.code(&server).await, code);
    }
}

#[tokio::test]
async fn checks_are_made_in_the_documented_order() {
    let server = TestServer::start().await;
    // Everything is wrong at first; each step mends the first thing that was complained about.
    let mut attempt = Attempt {
        version: "2099-01-01".into(),
        sid: "x".into(),
        authorization: None,
        sig: None,
    };
    let stamp = server.clock.wall().strftime("%Y%m%d%H%M%S").to_string();
    server
        .change_account(AccountChange {
            state: Some(AccountState::Suspended),
            allowed_networks: Some(vec!["192.0.2.0/24".parse().unwrap()]),
            ..AccountChange::default()
        })
        .await;
    assert_eq!(attempt.code(&server).await, "111100");
    attempt.sid = SID.into();
    assert_eq!(attempt.code(&server).await, "111101");
    for (authorization, code) in [
        ("!".to_owned(), "111102"),
        (BASE64_STANDARD.encode("x"), "111103"),
        (BASE64_STANDARD.encode(":"), "111104"),
        (BASE64_STANDARD.encode("x:"), "111105"),
        (BASE64_STANDARD.encode("x:y"), "111113"),
        (BASE64_STANDARD.encode("x:20200101000000"), "111106"),
        (BASE64_STANDARD.encode(format!("x:{stamp}")), "111107"),
        (BASE64_STANDARD.encode(format!("{SID}:{stamp}")), "111108"),
    ] {
        attempt.authorization = Some(authorization);
        assert_eq!(attempt.code(&server).await, code);
    }
    attempt.sig = Some("wrong".into());
    assert_eq!(attempt.code(&server).await, "111109");
    attempt.sig = Attempt::stamped(&stamp).sig;
    assert_eq!(attempt.code(&server).await, "111110");
    attempt.version = "2013-03-22".into();
    assert_eq!(attempt.code(&server).await, "111115");
    server
        .change_account(AccountChange {
            allowed_networks: Some(vec![]),
            ..AccountChange::default()
        })
        .await;
    eventually("the network is allowed", async || {
        attempt.code(&server).await == "111139"
    })
    .await;
    server
        .change_account(AccountChange {
            state: Some(AccountState::Active),
            ..AccountChange::default()
        })
        .await;
    eventually("the account is active", async || {
        attempt.code(&server).await == "000000"
    })
    .await;
}

#[tokio::test]
async fn a_stamp_is_good_for_a_day_either_way() {
    let server = TestServer::start().await;
    let at = |shift: SignedDuration| {
        let time = server.clock.wall() + shift;
        Attempt::stamped(&time.strftime("%Y%m%d%H%M%S").to_string())
    };
    let (minute, day) = (SignedDuration::from_mins(1), SignedDuration::from_hours(24));
    assert_eq!(at(day - minute).code(&server).await, "000000");
    assert_eq!(at(-day + minute).code(&server).await, "000000");
    assert_eq!(at(day + minute).code(&server).await, "111106");
    assert_eq!(at(-day - minute).code(&server).await, "111106");
    // A client that makes one stamp and uses it again and again.
    let reused = at(-SignedDuration::from_hours(12));
    assert_eq!(reused.code(&server).await, "000000");
    assert_eq!(reused.code(&server).await, "000000");
}

#[tokio::test]
async fn a_lower_case_sig_and_unpadded_base64_are_understood() {
    let server = TestServer::start().await;
    let mut attempt = Attempt::now(&server);
    attempt.sig = attempt.sig.map(|sig| sig.to_lowercase());
    attempt.authorization = attempt
        .authorization
        .map(|text| text.trim_end_matches('=').to_owned());
    assert_eq!(attempt.code(&server).await, "000000");
}

#[tokio::test]
async fn an_unknown_account_is_answered_as_a_wrong_sig_is() {
    let server = TestServer::start().await;
    let mut wrong = Attempt::now(&server);
    wrong.sig = Some("0".repeat(32));
    let (nobody, stamp) = ("f".repeat(32), server.clock.wall());
    let header = format!("{nobody}:{}", stamp.strftime("%Y%m%d%H%M%S"));
    let mut unknown = Attempt::now(&server).authorization(&header);
    unknown.sid = nobody;
    let mut told = Vec::new();
    for attempt in [wrong, unknown] {
        let request = attempt.request().replace("Connection: close\r\n", "");
        let (answer, time) = server.door().shortest_answer(&request).await;
        assert_eq!(status_code(&answer), "111109");
        assert!(time >= SAME_TIME, "after {time:?}");
        told.push(answer.split_once("\r\n\r\n").unwrap().1.to_owned());
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn account_states_refuse_with_their_codes_within_a_second() {
    let server = TestServer::start().await;
    for (state, code) in [
        (AccountState::NotActivated, "111138"),
        (AccountState::Suspended, "111139"),
        (AccountState::Closed, "111140"),
        (AccountState::Active, "000000"),
    ] {
        let attempt = Attempt::now(&server);
        server
            .change_account(AccountChange {
                state: Some(state),
                ..AccountChange::default()
            })
            .await;
        let changed = tokio::time::Instant::now();
        loop {
            // However long a request takes: one that begins later than this is judged by the new state.
            let begun = changed.elapsed();
            if attempt.code(&server).await == code {
                break;
            }
            assert!(begun.as_millis() < 2000, "{code} after {begun:?}");
        }
    }
}

#[tokio::test]
async fn a_rotated_token_works_at_once_and_the_old_one_stops_within_a_second() {
    let server = TestServer::start().await;
    let old = Attempt::now(&server);
    assert_eq!(old.code(&server).await, "000000");
    let new_token = "11111111111111111111111111111111";
    server
        .change_account(AccountChange {
            auth_token: Some(new_token.parse().unwrap()),
            ..AccountChange::default()
        })
        .await;
    let new = ApiCredentials {
        sid: SID.parse().unwrap(),
        token: new_token.parse().unwrap(),
    };
    let mut connection = server.client().connect().await.unwrap();
    let signature = new.sign(&server.clock.wall());
    let answer = connection
        .operation(&new, &signature, "AccountInfo", "application/json", None)
        .await
        .unwrap();
    assert_eq!(status_code(&answer), "000000");
    eventually("the old token", async || {
        old.code(&server).await == "111109"
    })
    .await;
}

/// A wrong sig is a line of the log that fail2ban reads, in both formats, and so is a token of a bill that is none. A right one and other refusals are not.
#[tokio::test]
async fn wrong_signatures_are_logged_for_fail2ban_to_read() {
    let filter = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/fail2ban/clarion.filter.conf"
    );
    for format in ["text", "json"] {
        let settings = format!("format = \"{format}\"");
        let installation = Installation::with_settings(None, &settings).await;
        let path = installation.folder.path().join("log");
        let log = std::fs::File::create(&path).unwrap();
        let server = installation
            .start_by(|serve| serve.stderr(log).env("CLARION_LOG__FILTER", "warn"))
            .await;
        let stamp = clock().wall().strftime("%Y%m%d%H%M%S").to_string();
        let right = Attempt::stamped(&stamp);
        let with_sig = |sig| Attempt {
            sig,
            ..Attempt::stamped(&stamp)
        };
        let (wrong, empty) = (|| with_sig(Some("0".repeat(32))), with_sig(None));
        for (attempt, code) in [
            (wrong(), "111109"),
            (right, "000000"),
            (wrong(), "111109"),
            (empty, "111108"),
            (wrong(), "111109"),
        ] {
            let answer = server.door.send_raw(attempt.request().as_bytes()).await;
            assert_eq!(status_code(&answer), code);
        }
        let token = "0".repeat(32);
        let guess = format!("GET /bills/{token}?token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = server.door.send_raw(guess.as_bytes()).await;
        assert_eq!(status_code(&answer), "190009");
        drop(server);
        let judge = Command::new("fail2ban-regex")
            .arg(&path)
            .arg(filter)
            .output();
        let judged = judge
            .await
            .expect("fail2ban-regex: `make setup` installs it");
        let judged = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.contains(" 4 matched"), "{format}: {judged}");
    }
}
