//! What a request may say of a notice, and what not.

use clarion::domain::account::AccountChange;

use super::{HELLO, TIMES};
use crate::calls::stage::Stage;
use crate::support::{self, APP};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_fields_are_refused_by_name_and_nothing_is_queued() {
    let stage = Stage::new("").await;
    for (field, value) in [
        ("redialTimes", "11"),
        ("redialTimes", "-1"),
        ("redialTimes", "two"),
        ("redialInterval", "9"),
        ("redialInterval", "60;"),
        ("redialInterval", "10;10;10;10;10;10;10;10;10;10;10"),
        ("redialInterval", "86401"),
        ("redialOn", "busy;never"),
        ("backupTo", "138"),
        ("backupTo", "110"),
        ("backupAfter", "0"),
        ("backupAfter", "12"),
        ("startTime", "2026-11-20"),
        ("startTime", "20261332000000"),
        ("startTime", "20991120000000"),
        ("callWindow", "8-9 0800-2000"),
        ("callWindow", "0800"),
        ("validTime", "0"),
        ("validTime", "2592001"),
        ("priority", "0"),
        ("priority", "10"),
        ("ringTime", "9"),
        ("ringTime", "121"),
        ("machineDetect", "4"),
    ] {
        let fields = format!("\"to\":\"13800000001\",{HELLO},\"{field}\":\"{value}\"");
        let answer = stage.server.call_json(&fields).await;
        let code = if value == "110" { "108035" } else { "108023" };
        assert_eq!(support::status_code(&answer), code, "{field}={value}");
        assert!(answer.contains(field), "{field}={value}: {answer}");
        let body = format!(
            "<LandingCall><appId>{APP}</appId><to>13800000001</to><mediaTxt>hello</mediaTxt><{field}>{value}</{field}></LandingCall>"
        );
        let answer = stage
            .server
            .ask("Calls/LandingCalls", "xml", Some(&body))
            .await;
        let code = format!("<statusCode>{code}</statusCode>");
        assert!(answer.contains(&code), "{field}={value}: {answer}");
        assert!(answer.contains(field), "{field}={value}: {answer}");
    }
    let (queued, _) = stage.server.store.queue_depth().await.unwrap();
    assert_eq!(queued, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_belongs_to_the_fields_of_its_notice_too() {
    let stage = Stage::new(TIMES).await;
    let fields =
        |more: &str| format!("\"to\":\"13800000003\",{HELLO},\"requestId\":\"alarm-7\"{more}");
    let first = stage
        .server
        .call_json(&fields(",\"redialTimes\":\"2\""))
        .await;
    let again = stage
        .server
        .call_json(&fields(",\"redialTimes\":\"2\""))
        .await;
    assert_eq!(support::call_sid(&first), support::call_sid(&again));
    let other = stage
        .server
        .call_json(&fields(",\"redialTimes\":\"3\""))
        .await;
    assert!(other.contains("190010"), "{other}");
    // Nor does it matter what the account may do meanwhile.
    let urgent =
        format!("\"to\":\"13800000003\",{HELLO},\"requestId\":\"alarm-8\",\"priority\":\"1\"");
    let first = stage.server.call_json(&urgent).await;
    let allow = AccountChange {
        urgent_outside_hours: Some(true),
        ..AccountChange::default()
    };
    stage.server.change_account(allow).await;
    let again = stage.server.call_json(&urgent).await;
    assert_eq!(support::call_sid(&first), support::call_sid(&again));
    let plain = stage.server.call_json(&fields("")).await;
    assert!(plain.contains("190010"), "{plain}");
}
