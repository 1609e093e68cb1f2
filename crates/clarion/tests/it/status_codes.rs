//! Every status code is produced here through HTTPS, or named with the test that produces it.

use std::collections::HashMap;

use clarion::domain::account::{AccountChange, AccountState, AppState, ApplicationChange};
use clarion::domain::bill::rating::{Prefix, Rate};
use clarion::domain::money::Money;
use clarion::domain::status_code::StatusCode;

use crate::support::raw::read_answer;
use crate::support::{APP, SID, TestServer, eventually, status_code};

/// Codes that other tests produce by means that this one has not: the test that does it is named.
const ELSEWHERE: &[(StatusCode, &str)] = &[
    (
        StatusCode::BillNotAvailable,
        "bills::a_day_is_closing_until_its_grace_time_is_over",
    ),
    (
        StatusCode::BillTokenInvalid,
        "bills::a_token_that_is_not_good_tells_nothing",
    ),
    (
        StatusCode::TooManyRequests,
        "limits::requests_beyond_an_accounts_limits_are_refused",
    ),
    (
        StatusCode::VoiceFileUnplayable,
        "audio_files::what_cannot_be_taken_is_refused_with_its_code_and_reason",
    ),
    (
        StatusCode::NoRoute,
        "calls::a_number_that_no_trunk_covers_is_refused",
    ),
    (
        StatusCode::TooManyCallsToNumber,
        "limits::a_callee_who_has_had_the_calls_of_the_day_is_not_called_again",
    ),
    (
        StatusCode::RequestIdUsed,
        "requests::a_name_that_was_used_for_another_request_is_refused",
    ),
    (
        StatusCode::VerifyCodeLength,
        "verification::fields::wrong_fields_are_named",
    ),
    (
        StatusCode::CallOver,
        "call_cancel::a_call_that_waits_is_taken_back_on_sqlite",
    ),
    (
        StatusCode::IntakeInvalid,
        "alerting::hostile::an_unknown_token_is_refused_like_an_unknown_intake_and_counted",
    ),
    (
        StatusCode::UnknownError,
        "outage::a_database_that_is_gone_is_told_as_unknown_error_and_nothing_is_accepted",
    ),
    (
        StatusCode::NoRoom,
        "disk::a_disk_that_is_nearly_full_refuses_files_and_calls_with_a_code",
    ),
    (
        StatusCode::AudioQuota,
        "audio_quotas::replaced_files_count_until_they_are_swept",
    ),
    (
        StatusCode::AcceptUnknown,
        "silence::a_call_whose_commit_is_never_answered_is_told_as_unknown_and_is_there_once",
    ),
];

struct Request {
    target: String,
    headers: String,
    body: String,
}

impl Request {
    async fn code(&self, server: &TestServer, method: &str) -> String {
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{}",
            self.target,
            self.headers,
            self.body.len(),
            self.body
        );
        let answer = server.send_raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        status_code(&answer).to_owned()
    }
}

/// A request that is right, for spoiling.
fn right(server: &TestServer, operation: &str, body: &str) -> Request {
    let signature = server.sign();
    Request {
        target: format!(
            "/2013-12-26/Accounts/{SID}/{operation}?sig={}",
            signature.sig
        ),
        headers: format!(
            "Authorization: {}\r\nAccept: application/json\r\nContent-Type: application/json\r\n",
            signature.authorization
        ),
        body: body.to_owned(),
    }
}

fn landing(fields: &str) -> String {
    format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"{fields}}}")
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of all codes")]
async fn every_code_is_produced() {
    let server = TestServer::start().await;
    let mut seen: HashMap<&'static str, String> = HashMap::new();
    let mut see = |wanted: StatusCode, got: String| {
        assert_eq!(got, wanted.code(), "{wanted:?}");
        seen.insert(wanted.code(), got);
    };

    let post = async |body: &str| {
        right(&server, "Calls/LandingCalls", body)
            .code(&server, "POST")
            .await
    };
    let auth = async |decoded: &str, sig: &str| {
        use base64::{Engine, prelude::BASE64_STANDARD};
        let request = Request {
            target: format!("/2013-12-26/Accounts/{SID}/AccountInfo?sig={sig}"),
            headers: format!("Authorization: {}\r\n", BASE64_STANDARD.encode(decoded)),
            body: String::new(),
        };
        request.code(&server, "GET").await
    };
    let stamp = server.clock.wall().strftime("%Y%m%d%H%M%S").to_string();
    let request = |target: &str, headers: &str| Request {
        target: target.to_owned(),
        headers: headers.to_owned(),
        body: String::new(),
    };
    let account_info = format!("/2013-12-26/Accounts/{SID}/AccountInfo");

    see(StatusCode::Success, post(&landing("")).await);
    see(
        StatusCode::AccountMalformed,
        request("/2013-12-26/Accounts/x/AccountInfo", "")
            .code(&server, "GET")
            .await,
    );
    see(
        StatusCode::AuthorizationEmpty,
        request(&account_info, "").code(&server, "GET").await,
    );
    see(
        StatusCode::AuthorizationNotBase64,
        request(&account_info, "Authorization: *\r\n")
            .code(&server, "GET")
            .await,
    );
    see(StatusCode::AuthorizationMalformed, auth("x", "").await);
    see(StatusCode::AuthorizationIdEmpty, auth(":x", "").await);
    see(
        StatusCode::TimestampEmpty,
        auth(&format!("{SID}:"), "").await,
    );
    see(
        StatusCode::TimestampMalformed,
        auth(&format!("{SID}:x"), "").await,
    );
    see(
        StatusCode::TimestampExpired,
        auth(&format!("{SID}:20200101000000"), "").await,
    );
    see(
        StatusCode::AuthorizationIdDiffers,
        auth(&format!("x:{stamp}"), "").await,
    );
    see(
        StatusCode::SigEmpty,
        auth(&format!("{SID}:{stamp}"), "").await,
    );
    see(
        StatusCode::SigWrong,
        auth(&format!("{SID}:{stamp}"), "x").await,
    );
    let mut wrong_version = right(&server, "AccountInfo", "");
    wrong_version.target = wrong_version.target.replace("2013-12-26", "2099-12-31");
    see(
        StatusCode::SoftVersionWrong,
        wrong_version.code(&server, "GET").await,
    );

    for (body, code) in [
        (String::new(), StatusCode::BodyFormat),
        ("{}".to_owned(), StatusCode::AppIdEmpty),
        ("{\"appId\":\"-\"}".to_owned(), StatusCode::AppIdCharacters),
        ("{\"appId\":\"a\"}".to_owned(), StatusCode::AppIdLength),
        (
            format!("{{\"appId\":\"{}\"}}", "f".repeat(32)),
            StatusCode::AppMissing,
        ),
        (
            landing("").replace("13800000000", "x"),
            StatusCode::FieldWrong,
        ),
        (
            landing("").replace("13800000000", "110"),
            StatusCode::CalledNotAllowed,
        ),
        (landing(",\"playTimes\":\"4\""), StatusCode::PlayTimesRange),
        (
            landing("").replace("\"mediaTxt\":\"x\"", "\"mediaTxt\":\"\""),
            StatusCode::NothingToPlay,
        ),
        (
            landing(&format!(",\"userData\":\"{}\"", "x".repeat(5000))),
            StatusCode::DataTooLong,
        ),
        (
            landing(&format!(",\"unknown\":\"{}\"", "x".repeat(70_000))),
            StatusCode::DataTooLong,
        ),
        (
            landing(",\"mediaName\":\"unknown.wav\""),
            StatusCode::VoiceFileMissing,
        ),
        (
            landing(",\"respUrl\":\"ftp://h/\""),
            StatusCode::RespUrlUnacceptable,
        ),
    ] {
        see(code, post(&body).await);
    }
    let mut xml = right(&server, "Calls/LandingCalls", "<LandingCall>");
    xml.headers = xml.headers.replace("json", "xml");
    see(StatusCode::XmlUnreadable, xml.code(&server, "POST").await);
    let bill = format!("{{\"appId\":\"{APP}\",\"date\":\"day\"}}");
    see(
        StatusCode::PermissionMissing,
        right(&server, "BillRecords", &bill)
            .code(&server, "POST")
            .await,
    );
    let mut result = right(&server, "CallResult", "");
    result.target = format!("{}&callsid={SID}", result.target);
    see(StatusCode::CallUnknown, result.code(&server, "GET").await);
    see(
        StatusCode::NotOffered,
        right(&server, "ivr/createconf", "{}")
            .code(&server, "POST")
            .await,
    );
    see(
        StatusCode::NotOffered,
        right(&server, "Calls/LandingCalls", "")
            .code(&server, "DELETE")
            .await,
    );

    let foreign = crate::support::application_of_another_account(&server).await;
    see(
        StatusCode::AppMissing,
        post(&landing("").replace(APP, foreign.as_str())).await,
    );
    for (state, code) in [
        (AppState::Deleted, StatusCode::AppDeleted),
        (AppState::Disabled, StatusCode::AppDisabled),
    ] {
        server
            .change_application(ApplicationChange {
                state: Some(state),
                ..ApplicationChange::default()
            })
            .await;
        eventually(code.code(), async || {
            post(&landing("")).await == code.code()
        })
        .await;
        see(code, code.code().to_owned());
    }
    let price = Rate {
        prefix: Prefix::default(),
        unit_seconds: 60,
        price: "1".parse().unwrap(),
        unanswered: Money::ZERO,
    };
    let sid = SID.parse().unwrap();
    server.store.set_rate(&sid, price).await.unwrap();
    server
        .change_application(ApplicationChange {
            state: Some(AppState::Active),
            ..ApplicationChange::default()
        })
        .await;
    for (balance, spending_limit, code) in [
        (Some(Money::ZERO), None, StatusCode::BalanceInsufficient),
        (None, Some(Money::ZERO), StatusCode::SpendingLimit),
        (None, None, StatusCode::Success),
    ] {
        server
            .change_account(AccountChange {
                balance: Some(balance),
                spending_limit: Some(spending_limit),
                ..AccountChange::default()
            })
            .await;
        eventually(code.code(), async || {
            post(&landing("")).await == code.code()
        })
        .await;
        see(code, code.code().to_owned());
    }
    for (change, code) in [
        (
            AccountChange {
                allowed_networks: Some(vec!["192.0.2.1/32".parse().unwrap()]),
                ..AccountChange::default()
            },
            StatusCode::AddressNotAllowed,
        ),
        (
            state_change(AccountState::NotActivated),
            StatusCode::AccountNotActivated,
        ),
        (
            state_change(AccountState::Suspended),
            StatusCode::AccountSuspended,
        ),
        (
            state_change(AccountState::Closed),
            StatusCode::AccountClosed,
        ),
    ] {
        server.change_account(change).await;
        eventually(code.code(), async || {
            post(&landing("")).await == code.code()
        })
        .await;
        see(code, code.code().to_owned());
    }

    for code in StatusCode::ALL {
        let elsewhere = ELSEWHERE.iter().any(|(elsewhere, _)| elsewhere == code);
        assert!(
            seen.contains_key(code.code()) != elsewhere,
            "{code:?}: produced here, or named with the test that does it, and not both"
        );
    }
}

fn state_change(state: AccountState) -> AccountChange {
    AccountChange {
        state: Some(state),
        allowed_networks: Some(vec![]),
        ..AccountChange::default()
    }
}

#[tokio::test]
async fn an_operation_that_is_not_offered_is_refused_after_authentication() {
    let server = TestServer::start().await;
    let unsigned = format!(
        "POST /2013-12-26/Accounts/{SID}/SMS/TemplateSMS HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(
        status_code(&server.send_raw(unsigned.as_bytes()).await),
        "111101"
    );
    for (method, operation) in [
        ("POST", "SMS/TemplateSMS"),
        ("PUT", "BillRecords"),
        ("OPTIONS", "AccountInfo"),
        ("PATCH", "Calls/LandingCalls/"),
    ] {
        assert_eq!(
            right(&server, operation, "{}").code(&server, method).await,
            "190008",
            "{method} {operation}"
        );
    }
    // Outside the tree, HTTP speaks for itself.
    let answer = server
        .send_raw(b"GET /nothing HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let mut stream = server.door().tls(&[]).await;
    tokio::io::AsyncWriteExt::write_all(
        &mut stream,
        b"POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    )
    .await
    .unwrap();
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 405"));
}
