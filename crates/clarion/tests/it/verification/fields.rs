//! Every field of a code, in both formats: what is accepted, and what is refused with which code and which words.

use clarion::domain::prompt::Prompt;

use super::{stored_prompt, verify};
use crate::audio_files::{upload, wav};
use crate::calls::stage::Stage;
use crate::support::{APP, TestServer, call_sid, status_code};

const TO: &str = "\"to\":\"13800000001\"";

#[tokio::test]
async fn wrong_fields_are_named() {
    let server = TestServer::start().await;
    for (fields, code, words) in [
        ("", "108023", "verifyCode is required"),
        (",\"verifyCode\":\"\"", "108023", "verifyCode is required"),
        (",\"verifyCode\":\"123\"", "108034", "4 to 8"),
        (",\"verifyCode\":\"123456789\"", "108034", "4 to 8"),
        (",\"verifyCode\":\"12-4\"", "108023", "verifyCode"),
        (",\"verifyCode\":\"一二三四\"", "108023", "verifyCode"),
        (",\"verifyCode\":{}", "108023", "verifyCode"),
        (",\"verifyCode\":\"1234\",\"lang\":\"fr\"", "108023", "lang"),
        (
            ",\"verifyCode\":\"1234\",\"playTimes\":\"4\"",
            "108036",
            "playTimes",
        ),
        (
            ",\"verifyCode\":\"1234\",\"playTimes\":\"0\"",
            "108036",
            "playTimes",
        ),
        (
            ",\"verifyCode\":\"1234\",\"respUrl\":\"ftp://a\"",
            "190003",
            "respUrl",
        ),
        (
            ",\"verifyCode\":\"1234\",\"maxCallTime\":\"x\"",
            "108023",
            "maxCallTime",
        ),
        (
            ",\"verifyCode\":\"1234\",\"welcomePrompt\":\"a.mp3\"",
            "108023",
            "welcomePrompt",
        ),
        (
            ",\"verifyCode\":\"1234\",\"welcomePrompt\":\"a.wav\"",
            "190001",
            "welcomePrompt",
        ),
        (
            ",\"playVerifyCode\":\"../a.wav\"",
            "108023",
            "playVerifyCode",
        ),
        (",\"playVerifyCode\":\"a.wav\"", "190001", "playVerifyCode"),
    ] {
        let answer = verify(&server, &format!("{TO}{fields}")).await;
        assert_eq!(status_code(&answer), code, "{fields}: {answer}");
        assert!(answer.contains(words), "{fields}: {answer}");
    }
    for (to, code) in [("", "108023"), ("110", "108035"), ("138", "108023")] {
        let fields = format!("\"to\":\"{to}\",\"verifyCode\":\"1234\"");
        let answer = verify(&server, &fields).await;
        assert_eq!(status_code(&answer), code, "{to}: {answer}");
    }
    assert_eq!(server.store.queue_depth().await.unwrap().0, 0);
}

#[tokio::test]
async fn good_fields_are_accepted_in_both_formats() {
    let server = TestServer::start().await;
    for fields in [
        "\"verifyCode\":\"1234\"",
        "\"verifyCode\":1234",
        "\"verifyCode\":\"ABCdef89\",\"lang\":\"EN\",\"playTimes\":\"3\"",
        // It is not effective, and so not checked.
        "\"verifyCode\":\"1\",\"lang\":\"fr\",\"playVerifyCode\":\"ccp_marketingcall.wav\"",
        "\"verifyCode\":\"1234\",\"welcomePrompt\":\"ccp_marketingcall.wav;ccp_marketingcall.wav\"",
        "\"verifyCode\":\"1234\",\"callStateUrl\":\"http://a\",\"callStatePush\":\"1\",\"unknown\":{\"a\":1}",
    ] {
        let answer = verify(&server, &format!("{TO},{fields}")).await;
        assert_eq!(status_code(&answer), "000000", "{fields}: {answer}");
        let wanted =
            answer.starts_with("{\"statusCode\":\"000000\",\"VoiceVerify\":{\"callSid\":\"");
        assert!(wanted, "{answer}");
    }
    let xml = format!(
        "<?xml version='1.0' encoding='utf-8'?><VoiceVerify><appId>{APP}</appId><verifyCode>a1b2c3</verifyCode><playTimes>2</playTimes>\
         <to>13800000001</to><respUrl>http://h/cb?a=1&b=2</respUrl><displayNum></displayNum><lang>zh</lang></VoiceVerify>"
    );
    let answer = server.ask("Calls/VoiceVerify", "xml", Some(&xml)).await;
    let sid = call_sid(&answer);
    let wanted = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response><statusCode>000000</statusCode><VoiceVerify><callSid>{sid}</callSid><dateCreated>"
    );
    assert!(answer.starts_with(&wanted), "{answer}");
    assert!(
        answer.ends_with(&format!(
            "</dateCreated><orderid>{sid}</orderid></VoiceVerify></Response>"
        )),
        "{answer}"
    );
    let other = xml.replace("VoiceVerify>", "LandingCall>");
    let answer = server.ask("Calls/VoiceVerify", "xml", Some(&other)).await;
    assert_eq!(status_code(&answer), "112613", "{answer}");
}

/// What is said before the code, and instead of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_stand_before_the_code_or_for_it() {
    // Nothing is dialled: the prompts stay as they are.
    let stage = Stage::on("", "").await;
    let server = &stage.server;
    for name in ["welcome.wav", "one.wav", "two.wav"] {
        let answer = upload(server, name, &wav(1000)).await;
        assert_eq!(status_code(&answer), "000000", "{answer}");
    }
    let prompt = async |fields: &str| {
        let answer = verify(server, &format!("{TO},{fields}")).await;
        assert_eq!(status_code(&answer), "000000", "{answer}");
        let stored = stored_prompt(&stage, &call_sid(&answer).parse().unwrap()).await;
        let prompt: Prompt = serde_json::from_str(&stored).unwrap();
        let names: Vec<_> = prompt
            .files
            .iter()
            .map(|file| file.name.to_string())
            .collect();
        (
            prompt.speech.map(|speech| speech.text),
            names,
            prompt.code.map(|code| code.reveal().to_owned()),
        )
    };
    let none = || Vec::<String>::new();
    assert_eq!(
        prompt("\"verifyCode\":\"ab12\"").await,
        (
            Some("您好，您的验证码是：".into()),
            none(),
            Some("AB12".into())
        )
    );
    assert_eq!(
        prompt("\"verifyCode\":\"1234\",\"lang\":\"en\"").await,
        (
            Some("Hello. Your verification code is:".into()),
            none(),
            Some("1234".into())
        )
    );
    assert_eq!(
        prompt("\"verifyCode\":\"1234\",\"welcomePrompt\":\"welcome.wav\"").await,
        (None, vec!["welcome.wav".into()], Some("1234".into()))
    );
    assert_eq!(
        prompt("\"verifyCode\":\"1234\",\"welcomePrompt\":\"welcome.wav\",\"playVerifyCode\":\"one.wav;two.wav\"").await,
        (None, vec!["welcome.wav".into(), "one.wav".into(), "two.wav".into()], None)
    );
}
