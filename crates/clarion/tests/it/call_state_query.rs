//! `QueryCallState`: as the client libraries write it, and to the address that they name.

use clarion::domain::call_state::CallState;

use crate::calls::stage::Stage;
use crate::support::{APP, TestServer, call_sid, eventually, status_code};

const NOBODY: &str = "26111502350900001000000000000000";

async fn waiting() -> (TestServer, String) {
    let server = TestServer::start().await;
    let answer = server
        .call_json("\"to\":\"13800000001\",\"mediaTxt\":\"x\"")
        .await;
    let sid = call_sid(&answer);
    (server, sid)
}

#[tokio::test]
async fn every_form_in_which_clients_ask_is_understood() {
    let (server, sid) = waiting().await;
    for (format, body) in [
        (
            "xml",
            format!(
                "<Request><Appid>{APP}</Appid><QueryCallState callid=\"{sid}\" action=\"\"/></Request>"
            ),
        ),
        (
            "xml",
            format!(
                "<?xml version='1.0'?>\n<Request>\n<Appid>{APP}</Appid>\n<QueryCallState callid='{sid}'></QueryCallState>\n</Request>"
            ),
        ),
        // One client library does not close it.
        (
            "xml",
            format!("<Request><Appid>{APP}</Appid><QueryCallState callid=\"{sid}\"></Request>"),
        ),
        (
            "xml",
            format!("<Request><QueryCallState callid=\"{sid}\"><appId>{APP}</appId></Request>"),
        ),
        (
            "json",
            format!("{{\"Appid\":\"{APP}\",\"QueryCallState\":{{\"callid\":\"{sid}\"}}}}"),
        ),
        (
            "json",
            format!("{{'appid':'{APP}','QueryCallState':{{'callid':'{sid}','action':''}}}}"),
        ),
        // Another sends the object as a text.
        (
            "json",
            format!(
                "{{\"Appid\":\"{APP}\",\"QueryCallState\":\"{{\\\"callid\\\":\\\"{sid}\\\"}}\"}}"
            ),
        ),
        (
            "json",
            format!("{{\"Appid\":\"{APP}\",\"QueryCallState\":\"{{'callid':'{sid}'}}\"}}"),
        ),
    ] {
        let answer = server
            .ask("ivr/call?callid=ignored", format, Some(&body))
            .await;
        let wanted = match format {
            "xml" => {
                format!("<QueryCallState><callid>{sid}</callid><state>1</state></QueryCallState>")
            }
            _ => format!("\"QueryCallState\":{{\"callid\":\"{sid}\",\"state\":\"1\"}}"),
        };
        assert!(answer.contains(&wanted), "{body}: {answer}");
    }
    // The query names it where the body does not.
    for body in [
        format!("{{\"Appid\":\"{APP}\",\"QueryCallState\":null}}"),
        format!("{{\"Appid\":\"{APP}\",\"QueryCallState\":\"\"}}"),
    ] {
        let answer = server
            .ask(&format!("ivr/call?callid={sid}"), "json", Some(&body))
            .await;
        assert!(answer.contains("\"state\":\"1\""), "{answer}");
    }
    let body = format!("<Request><Appid>{APP}</Appid><QueryCallState/></Request>");
    let answer = server
        .ask(&format!("ivr/call?callid={sid}"), "xml", Some(&body))
        .await;
    assert!(answer.contains("<state>1</state>"), "{answer}");
}

#[tokio::test]
async fn wrong_questions_are_named() {
    let (server, sid) = waiting().await;
    for (body, code, words) in [
        (
            format!("<Request><Appid>{APP}</Appid></Request>"),
            "108023",
            "callid",
        ),
        (
            format!("<Request><QueryCallState callid='{sid}'/></Request>"),
            "111169",
            "appId",
        ),
        (
            format!("<Request><Appid>{APP}</Appid><QueryCallState callid='{NOBODY}'/></Request>"),
            "190006",
            "",
        ),
        (
            format!(
                "<Request><Appid>{APP}</Appid><QueryCallState callid='{sid}' action='ftp://h'/></Request>"
            ),
            "190003",
            "action",
        ),
        (
            format!("<Request><Appid>{APP}<QueryCallState callid='{sid}'></Request>"),
            "112613",
            "",
        ),
        ("<Request>".to_owned(), "112613", ""),
    ] {
        let answer = server.ask("ivr/call", "xml", Some(&body)).await;
        assert_eq!(status_code(&answer), code, "{body}: {answer}");
        assert!(answer.contains(words), "{answer}");
    }
    for state in ["\"no object\"", "[]", "{\"callid\":\"a\",\"callid\":\"b\"}"] {
        let body = format!("{{\"Appid\":\"{APP}\",\"QueryCallState\":{state}}}");
        let answer = server.ask("ivr/call", "json", Some(&body)).await;
        assert_eq!(status_code(&answer), "110141", "{state}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_that_is_named_gets_the_same() {
    let stage = Stage::new("").await;
    let (server, url) = (&stage.server, stage.receiver.url());
    let answer = server
        .call_json("\"to\":\"13800000001\",\"mediaTxt\":\"x\"")
        .await;
    let sid = call_sid(&answer);
    eventually("it is over", async || {
        let record = stage.record(&sid.parse().unwrap()).await;
        record.state == CallState::Ended
    })
    .await;
    // The second is how the vendor's PHP client writes it: a blank before the equals sign, and no reference for the ampersand.
    let bodies = [
        format!(
            "<QueryCallState callid=\"{sid}\" action=\"{}\"/>",
            url.replace('&', "&amp;")
        ),
        format!("<QueryCallState callid ='{sid}' action='{url}'/>"),
    ];
    for (asked, element) in (1..).zip(bodies) {
        let body = format!("<Request><Appid>{APP}</Appid>{element}</Request>");
        let answer = server.ask("ivr/call", "xml", Some(&body)).await;
        assert!(answer.contains("<state>0</state>"), "{element}: {answer}");
        let received = stage.receiver.has_received(asked).await;
        let got = &received[asked - 1];
        let first = got.head.lines().next().unwrap();
        let path = url.splitn(4, '/').nth(3).unwrap();
        assert_eq!(first, format!("POST /{path} HTTP/1.1"), "{element}");
        assert_eq!(
            got.body,
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Request><action>QueryCallState</action><callid>{sid}</callid><state>0</state></Request>"
            )
        );
        assert_eq!(
            got.header("webhook-id"),
            Some(&*format!("msg_{sid}_{asked}"))
        );
    }
}
