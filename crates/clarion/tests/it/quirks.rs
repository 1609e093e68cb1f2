//! What real clients do that a compatible server must survive, beyond what the fixtures show.

mod understood;

use crate::support::{APP, SID, TestServer, call_sid, status_code};

/// The answer to a landing call with these headers and this body, whatever they are.
async fn post(server: &TestServer, headers: &str, body: &str) -> String {
    let signature = server.sign();
    let request = format!(
        "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls/?x=1&sig={}&y=%20 HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: {}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        signature.sig,
        signature.authorization,
        body.len()
    );
    server.send_raw(request.as_bytes()).await
}

fn xml_body() -> String {
    format!(
        "<LandingCall><appId>{APP}</appId><to>13800000000</to><mediaTxt>x</mediaTxt></LandingCall>"
    )
}

fn json_body() -> String {
    format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}")
}

#[tokio::test]
async fn the_answers_format_follows_accept_then_the_body() {
    let server = TestServer::start().await;
    let json = "content-type: application/json;charset=utf-8";
    let xml = "content-type: application/xml;charset=utf-8";
    for (headers, body, expected) in [
        ("", xml_body(), xml),
        ("", json_body(), xml),
        ("Content-Type: application/json\r\n", json_body(), xml),
        ("Accept: application/json\r\n", xml_body(), json),
        ("Accept: application/json;\r\n", json_body(), json),
        (
            "Accept: application/xml;charset=utf-8;\r\n",
            json_body(),
            xml,
        ),
        ("Accept: */*\r\n", json_body(), json),
        ("Accept: */*\r\n", xml_body(), xml),
        (
            "Accept: */*\r\nContent-Type: application/json;charset=utf-8\r\n",
            json_body(),
            json,
        ),
        (
            "Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\n",
            json_body(),
            json,
        ),
        (
            "ACCEPT:APPLICATION/JSON\r\nCONTENT-TYPE:APPLICATION/XML;CHARSET=UTF-8\r\n",
            xml_body(),
            json,
        ),
    ] {
        let answer = post(&server, headers, &body).await;
        assert!(answer.contains(expected), "{headers:?} {body}: {answer}");
        call_sid(&answer);
    }
    // A request without a body, and a refusal before anything of the body was looked at.
    let unsigned = format!(
        "POST /2013-12-26/Accounts/{SID}/AccountInfo HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    assert!(server.send_raw(unsigned.as_bytes()).await.contains(json));
    let unsigned = format!(
        "GET /2013-12-26/Accounts/{SID}/AccountInfo HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n"
    );
    assert!(server.send_raw(unsigned.as_bytes()).await.contains(xml));
}

#[tokio::test]
async fn a_content_type_that_is_neither_is_refused() {
    let server = TestServer::start().await;
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let answer = post(
            &server,
            &format!("Content-Type: {content_type}\r\n"),
            &json_body(),
        )
        .await;
        assert_eq!(status_code(&answer), "110141", "{content_type}");
    }
    assert_eq!(status_code(&post(&server, "", "what?").await), "110141");
    assert_eq!(
        status_code(
            &post(
                &server,
                "Content-Type: text/xml; charset=utf-8\r\n",
                &xml_body()
            )
            .await
        ),
        "000000"
    );
}

#[tokio::test]
async fn json_as_people_write_it_is_understood() {
    let server = TestServer::start().await;
    let headers = "Accept: application/json\r\nContent-Type: application/json\r\n";
    for body in [
        format!("{{'appId':'{APP}','to':'13800000000','mediaTxt':'say \"hi\"'}}"),
        format!("{{'appId':'{APP}','to':'13800000000','mediaTxt':'it\\'s'}}"),
        format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"it's\"}}"),
        format!("{{\"appId\":\"{APP}\",\"to\":13800000000,\"mediaTxt\":\"one\ntwo\tthree\r\n\"}}"),
        format!(
            "{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"\\u4f60\\u597d \\u003c\"}}"
        ),
        format!(
            " \r\n{{ \"appId\" : \"{APP}\" , \"to\" : \"13800000000\" , \"mediaTxt\" : \"x\" , \"more\" : {{ \"a\" : [ 1 ] }} }} ;\n"
        ),
        format!("\u{feff}{}", json_body()),
    ] {
        let answer = post(&server, headers, &body).await;
        assert_eq!(status_code(&answer), "000000", "{body}: {answer}");
    }
}

#[tokio::test]
async fn xml_as_people_write_it_is_understood() {
    let server = TestServer::start().await;
    let inside = format!("<appId>{APP}</appId><to>13800000000</to>");
    for body in [
        format!(
            "<?xml version=\"1.0\" encoding='UTF8'?>\r\n<LandingCall>{inside}<mediaTxt>x</mediaTxt></LandingCall>"
        ),
        format!(
            "<?xml version=\"1.0\" encoding='GBK'?><LandingCall>{inside}<mediaTxt>x</mediaTxt></LandingCall>;\r\n\r\n"
        ),
        format!(
            "\r\n\t <LandingCall>\r\n\t{inside}\r\n<mediaTxt>a & b &amp; c &lt; &#20320;&#x597d; &nbsp; &;</mediaTxt>\t</LandingCall> \n;"
        ),
        format!(
            "<LandingCall xmlns=\"urn:x\">{inside}<mediaTxt><![CDATA[<你好> & so on]]></mediaTxt><!-- note --></LandingCall>"
        ),
        format!(
            "<LandingCall>{inside}<mediaName type='1'>ccp_marketingcall.wav</mediaName></LandingCall>"
        ),
        format!(
            "<LandingCall>{inside}<mediaName>ccp_marketingcall.wav</mediaName><mediaNameType>1</mediaNameType></LandingCall>"
        ),
        // The attribute wins, whichever comes first.
        format!(
            "<LandingCall>{inside}<mediaNameType>9</mediaNameType><mediaName type=\"0\">ccp_marketingcall.wav</mediaName></LandingCall>"
        ),
        format!(
            "<LandingCall>{inside}<mediaTxt>x</mediaTxt><mediaName/><playTimes></playTimes><respUrl/><unknown a='1'><b/></unknown></LandingCall>"
        ),
        format!(
            "<LandingCall>{inside}<mediaTxt>x</mediaTxt><respUrl>http://h/cb?a=1&b=2&lt=3</respUrl></LandingCall>"
        ),
    ] {
        let answer = post(&server, "", &body).await;
        assert_eq!(status_code(&answer), "000000", "{body}: {answer}");
    }
    let wrong_type = format!(
        "<LandingCall>{inside}<mediaName type='2'>ccp_marketingcall.wav</mediaName></LandingCall>"
    );
    assert_eq!(status_code(&post(&server, "", &wrong_type).await), "108023");
}

#[tokio::test]
async fn what_must_be_refused_is_refused() {
    let server = TestServer::start().await;
    let inside = format!("<appId>{APP}</appId><to>13800000000</to><mediaTxt>x</mediaTxt>");
    for body in [
        format!("<!DOCTYPE LandingCall><LandingCall>{inside}</LandingCall>"),
        format!("<LandingCall>{inside}<to>13900000000</to></LandingCall>"),
        format!("<LandingCall>{inside}<a><b><c/></b></a></LandingCall>"),
        format!("<LandingCall>{inside}<userData>\u{1}</userData></LandingCall>"),
        format!("<LandingCall>{inside}<userData>&#0;</userData></LandingCall>"),
        format!("<LandingCall>{inside}</LandingCall><LandingCall/>"),
        format!("<LandingCall>{inside}</LandingCall>more"),
        format!("<Something>{inside}</Something>"),
        format!("<LandingCall>{inside}"),
        format!("<LandingCall>{inside}</Landing>"),
        String::new(),
    ] {
        let answer = post(&server, "Content-Type: application/xml\r\n", &body).await;
        assert_eq!(status_code(&answer), "112613", "{body}: {answer}");
    }
    let members = format!("\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"");
    for body in [
        format!("{{{members},\"to\":\"13900000000\"}}"),
        format!("{{{members},\"userData\":\"\\u0000\"}}"),
        format!("{{{members},\"userData\":\"\u{7}\"}}"),
        format!("{{{members}}} {{}}"),
        format!("{{{members}"),
        format!("[{{{members}}}]"),
        "null".to_owned(),
        String::new(),
    ] {
        let answer = post(&server, "Content-Type: application/json\r\n", &body).await;
        assert_eq!(status_code(&answer), "110141", "{body}: {answer}");
    }
}

#[tokio::test]
async fn call_result_and_account_info_are_answered_by_get_and_post_in_both_formats() {
    let server = TestServer::start().await;
    let sid = call_sid(
        &server
            .call_xml("<to>13800000000</to><mediaTxt>x</mediaTxt>")
            .await,
    );
    let expected_xml = "<Response><statusCode>000000</statusCode><CallResult><state>3</state><callTime>0</callTime><duration>0</duration></CallResult></Response>";
    let expected_json = "{\"statusCode\":\"000000\",\"CallResult\":{\"state\":\"3\",\"callTime\":\"0\",\"duration\":\"0\"}}";
    let query = format!("CallResult?callsid={sid}");
    assert!(
        server
            .ask(&query, "xml", None)
            .await
            .ends_with(expected_xml)
    );
    assert_eq!(server.ask(&query, "json", None).await, expected_json);
    assert_eq!(server.ask(&query, "json", Some("")).await, expected_json);
    assert_eq!(
        server
            .ask(
                "CallResult/",
                "json",
                Some(&format!("{{\"callSid\":\"{sid}\"}}"))
            )
            .await,
        expected_json
    );
    let by_body = format!("<CallResult><callsid>{sid}</callsid></CallResult>");
    assert!(
        server
            .ask("CallResult", "xml", Some(&by_body))
            .await
            .ends_with(expected_xml)
    );
    assert_eq!(
        status_code(&server.ask("CallResult", "json", None).await),
        "108023"
    );
    assert_eq!(
        status_code(&server.ask("CallResult?callsid=x", "json", None).await),
        "190006"
    );
    insta::assert_snapshot!(server.ask("AccountInfo", "json", None).await, @r#"{"statusCode":"000000","Account":{"friendlyName":"Test","status":"active","type":"main","dateCreated":"2026-01-02 11:04:05","dateUpdated":"2026-01-02 11:04:05"}}"#);
    insta::assert_snapshot!(server.ask("AccountInfo", "xml", None).await, @r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Response><statusCode>000000</statusCode><Account><friendlyName>Test</friendlyName><status>active</status><type>main</type><dateCreated>2026-01-02 11:04:05</dateCreated><dateUpdated>2026-01-02 11:04:05</dateUpdated></Account></Response>"#);
}

#[tokio::test]
async fn a_landing_call_is_answered_to_the_letter() {
    let server = TestServer::start().await;
    let answer = server
        .call_xml("<to>13800000000</to><mediaTxt>x</mediaTxt>")
        .await;
    let sid = call_sid(&answer);
    assert!(sid.len() == 32 && sid.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let created = answer
        .split("<dateCreated>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", created).unwrap();
    // The callSid begins with the same moment.
    let digits: String = created
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(char::from)
        .collect();
    assert_eq!(&sid[..12], &digits[2..]);
    assert_eq!(
        answer,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response><statusCode>000000</statusCode><LandingCall><callSid>{sid}</callSid><dateCreated>{created}</dateCreated><orderid>{sid}</orderid></LandingCall></Response>"
        )
    );
    let answer = server
        .call_json("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
        .await;
    let value: serde_json::Value = serde_json::from_str(&answer).unwrap();
    // Anything else at the top level crashes the vendor's Java client.
    assert_eq!(
        value.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["statusCode", "LandingCall"]
    );
    assert_eq!(
        value["LandingCall"]["orderid"],
        value["LandingCall"]["callSid"]
    );
}

#[tokio::test]
async fn bill_records_knows_only_the_previous_day() {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    for (date, code) in [
        ("day", "000000"),
        ("DAY", "000000"),
        ("Day", "000000"),
        ("week", "108023"),
        ("month", "108023"),
        ("", "108023"),
        ("2026-11-14", "108023"),
    ] {
        let body = format!(
            "<BillRecords><appId>{APP}</appId><date>{date}</date><keywords></keywords></BillRecords>"
        );
        let answer = server.ask("BillRecords/", "xml", Some(&body)).await;
        assert_eq!(status_code(&answer), code, "{date}: {answer}");
    }
    let without = server
        .ask("BillRecords", "json", Some("{\"date\":\"day\"}"))
        .await;
    assert_eq!(status_code(&without), "111169");
}
