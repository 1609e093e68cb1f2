//! What the application is told: the callback to the letter, and its own data unchanged.

use jiff::tz::TimeZone;
use phone::test_phone::Script;

use super::stage::{Stage, field};
use crate::support::ZONE;
use crate::support::telephone::Telephone;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callback_is_as_documented_to_the_letter() {
    let telephone = Telephone::that(Script::hang_up_after(std::time::Duration::from_millis(
        1200,
    )))
    .await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), "").await;
    let sid = stage
        .call(
            "+8613800000001",
            "\"mediaName\":\"ccp_marketingcall.wav\",\"userData\":\"order=7&paid=<yes>\"",
        )
        .await;
    let body = stage.report_of(&sid).await;
    let record = stage.record(&sid).await;
    let (answered, ended) = (record.answered_at.unwrap(), record.ended_at.unwrap());
    let zone = TimeZone::get(ZONE).unwrap();
    let stamp = |time: jiff::Timestamp| {
        let wall = time.to_zoned(zone.clone()).datetime();
        format!(
            "{:04}{:02}{:02}{:02}{:02}{:02}",
            wall.year(),
            wall.month(),
            wall.day(),
            wall.hour(),
            wall.minute(),
            wall.second()
        )
    };
    let seconds = (ended.as_millisecond() - answered.as_millisecond() + 999) / 1000;
    assert!(seconds >= 2, "{seconds} s");
    assert_eq!(
        body,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>SellingCall</action><number>+8613800000001</number><callSid>{sid}</callSid>\
             <state>0</state><starttime>{}</starttime><endtime>{}</endtime><duration>{seconds}</duration>\
             <userData>order=7&amp;paid=&lt;yes&gt;</userData></request>",
            stamp(answered),
            stamp(ended)
        )
    );
    let received = &stage.receiver.received()[0];
    assert!(
        received
            .head
            .starts_with("POST /cb?a=1&token=secret HTTP/1.1\r\n"),
        "{}",
        received.head
    );
    assert_eq!(received.header("content-type"), Some("text/plain"));
    let length = body.len().to_string();
    assert_eq!(received.header("content-length"), Some(length.as_str()));
    assert!(
        received
            .header("webhook-id")
            .unwrap()
            .contains(sid.as_str())
    );
    // The same is told to whoever asks.
    let asked = format!("CallResult?callsid={sid}");
    let answer = stage.server.ask(&asked, "xml", None).await;
    assert!(
        answer.ends_with(&format!(
            "<CallResult><state>0</state><callTime>{seconds}</callTime><duration>{seconds}</duration></CallResult></Response>"
        )),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_user_data_there_is_no_element_of_that_name() {
    let stage = Stage::new("").await;
    let sid = stage.call("13800000002", "\"mediaTxt\":\"x\"").await;
    let body = stage.report_of(&sid).await;
    assert!(body.ends_with("<duration>0</duration></request>"), "{body}");
}

/// As a receiver reads it back.
fn unescaped(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#13;", "\r"),
        ("&amp;", "&"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (written, meant)| {
            text.replace(written, meant)
        })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_data_comes_back_unchanged() {
    let stage = Stage::new("").await;
    // 22 bytes a time: 186 times and four more are as many as may be sent.
    let long = "<&>\"数据'\\{} 订单;".repeat(186) + "wxyz";
    assert_eq!(long.len(), 4096);
    let kinds = [
        "<&>\"",
        "&amp;lt;",
        "]]>",
        "  两头的空白  ",
        "a\tb\nc",
        &long,
    ];
    for data in kinds {
        let extra = format!(
            "\"mediaTxt\":\"x\",\"userData\":{}",
            serde_json::to_string(data).unwrap()
        );
        let sid = stage.call("13800000004", &extra).await;
        let body = stage.report_of(&sid).await;
        assert_eq!(unescaped(field(&body, "userData")), data);
        assert_eq!(stage.bill_line(&sid).await.user_data.as_deref(), Some(data));
    }
    let escaped = long.replace('&', "&amp;").replace('<', "&lt;");
    let url = stage.receiver.url().replace('&', "&amp;");
    let answer = stage
        .server
        .call_xml(&format!(
            "<to>13800000002</to><mediaTxt>x</mediaTxt><respUrl>{url}</respUrl><userData>{escaped}</userData>"
        ))
        .await;
    let sid = crate::support::call_sid(&answer).parse().unwrap();
    let body = stage.report_of(&sid).await;
    assert_eq!(unescaped(field(&body, "userData")), long);
}
