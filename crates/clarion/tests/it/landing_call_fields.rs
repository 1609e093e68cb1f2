//! Every field of a voice notification: lowest, highest, just outside, empty, absent, wrong type; in XML and in JSON.

use clarion::domain::account::AppState;
use clarion::domain::account::ApplicationChange;

use crate::support::{APP, TestServer, eventually, status_code};

const GOOD: &str = "000000";
const FIELD: &str = "108023";

/// A request with the fields of `base`, and with `field` set to `value` (`None`: left out).
#[derive(Debug, Clone, Copy)]
struct Case {
    base: Base,
    field: &'static str,
    value: Option<&'static str>,
    code: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Base {
    /// Speaks a text.
    Text,
    /// Plays a file; a text would be ignored.
    File,
    /// Both, one after the other.
    Together,
}

impl Base {
    fn fields(self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("appId", APP.to_owned()), ("to", "13800000000".to_owned())];
        if matches!(self, Self::File | Self::Together) {
            fields.push(("mediaName", "ccp_marketingcall.wav".to_owned()));
        }
        if matches!(self, Self::Text | Self::Together) {
            fields.push(("mediaTxt", "你好".to_owned()));
        }
        if matches!(self, Self::Together) {
            fields.push(("playMode", "1".to_owned()));
        }
        fields
    }
}

impl Case {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = self.base.fields();
        fields.retain(|(name, _)| *name != self.field);
        fields.extend(self.value.map(|value| (self.field, value.to_owned())));
        fields
    }

    fn xml(&self) -> String {
        let inside: String = self
            .fields()
            .iter()
            .map(|(name, value)| format!("<{name}>{value}</{name}>"))
            .collect();
        format!("<LandingCall>{inside}</LandingCall>")
    }

    fn json(&self) -> String {
        let fields: serde_json::Map<_, _> = self
            .fields()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        serde_json::Value::from(fields).to_string()
    }
}

fn case(base: Base, field: &'static str, value: &'static str, code: &'static str) -> Case {
    Case {
        base,
        field,
        value: Some(value),
        code,
    }
}

fn absent(base: Base, field: &'static str, code: &'static str) -> Case {
    Case {
        base,
        field,
        value: None,
        code,
    }
}

async fn check(cases: impl IntoIterator<Item = Case>) {
    let server = Box::pin(TestServer::start()).await;
    for case in cases {
        for (format, body) in [("xml", case.xml()), ("json", case.json())] {
            let answer = server.ask("Calls/LandingCalls", format, Some(&body)).await;
            assert_eq!(
                status_code(&answer),
                case.code,
                "{format} {case:?}: {answer}"
            );
            if case.code == FIELD {
                assert!(
                    answer.contains(case.field),
                    "{case:?} is not named: {answer}"
                );
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn app_id() {
    check([
        case(Base::Text, "appId", APP, GOOD),
        case(Base::Text, "appId", "", "111169"),
        absent(Base::Text, "appId", "111169"),
        case(
            Base::Text,
            "appId",
            "aaaabbbb-ccccddddeeeeffff0000111",
            "111170",
        ),
        case(Base::Text, "appId", "应用", "111170"),
        case(
            Base::Text,
            "appId",
            "aaaabbbbccccddddeeeeffff0000111",
            "111171",
        ),
        case(
            Base::Text,
            "appId",
            "aaaabbbbccccddddeeeeffff000011111",
            "111171",
        ),
        case(
            Base::Text,
            "appId",
            "ffffffffffffffffffffffffffffffff",
            "111181",
        ),
    ])
    .await;
}

#[tokio::test]
async fn to() {
    check([
        case(Base::Text, "to", "13800000000", GOOD),
        case(Base::Text, "to", "01052823298", GOOD),
        case(Base::Text, "to", "01052823298-3627", GOOD),
        case(Base::Text, "to", "008613800000000", GOOD),
        case(Base::Text, "to", "+8613800000000", GOOD),
        case(Base::Text, "to", "  13800000000  ", GOOD),
        case(Base::Text, "to", "", FIELD),
        absent(Base::Text, "to", FIELD),
        case(Base::Text, "to", "52823298", FIELD),
        case(Base::Text, "to", "12", FIELD),
        case(Base::Text, "to", "+1234567890123456", FIELD),
        case(Base::Text, "to", "abc", FIELD),
        case(Base::Text, "to", "13800000000,13900000000", FIELD),
        case(Base::Text, "to", "01052823298-", FIELD),
        case(Base::Text, "to", "01052823298-1234567890123", FIELD),
        case(Base::Text, "to", "110", "108035"),
        case(Base::Text, "to", "+86110", "108035"),
        case(Base::Text, "to", "16812345", "108035"),
    ])
    .await;
}

#[tokio::test]
async fn media_name_and_media_txt() {
    let files = "ccp_marketingcall.wav;".repeat(16);
    let too_many = "ccp_marketingcall.wav;".repeat(17);
    let (longest, too_long) = ("好".repeat(2000), "好".repeat(2001));
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let (files, too_many, longest, too_long) =
        (leak(files), leak(too_many), leak(longest), leak(too_long));
    check([
        case(Base::File, "mediaName", "ccp_marketingcall.wav", GOOD),
        case(Base::File, "mediaName", files, GOOD),
        case(Base::File, "mediaName", too_many, "110062"),
        case(Base::File, "mediaName", "", "110081"),
        case(Base::File, "mediaName", " ; ;", "110081"),
        absent(Base::File, "mediaName", "110081"),
        case(Base::File, "mediaName", "unknown.wav", "190001"),
        case(
            Base::File,
            "mediaName",
            "ccp_marketingcall.wav;unknown.wav",
            "190001",
        ),
        case(Base::File, "mediaName", "../secret.wav", FIELD),
        case(Base::File, "mediaName", "song.mp3", FIELD),
        case(Base::Text, "mediaTxt", longest, GOOD),
        case(Base::Text, "mediaTxt", too_long, "110062"),
        case(Base::Text, "mediaTxt", "", "110081"),
        case(Base::Text, "mediaTxt", "   ", "110081"),
        absent(Base::Text, "mediaTxt", "110081"),
        // Ignored beside a file, unless both are to be played.
        case(Base::File, "mediaTxt", too_long, GOOD),
        case(Base::Together, "mediaTxt", too_long, "110062"),
        absent(Base::Together, "mediaTxt", GOOD),
        absent(Base::Together, "mediaName", GOOD),
    ])
    .await;
}

#[tokio::test]
async fn media_name_type_and_play_mode() {
    for field in ["mediaNameType", "playMode"] {
        check([
            case(Base::File, field, "0", GOOD),
            case(Base::File, field, "1", GOOD),
            case(Base::File, field, "", GOOD),
            absent(Base::File, field, GOOD),
            case(Base::File, field, "2", FIELD),
            case(Base::File, field, "-1", FIELD),
            case(Base::File, field, "yes", FIELD),
        ])
        .await;
    }
}

#[tokio::test]
async fn play_times() {
    check([
        case(Base::Text, "playTimes", "1", GOOD),
        case(Base::Text, "playTimes", "3", GOOD),
        case(Base::Text, "playTimes", "", GOOD),
        absent(Base::Text, "playTimes", GOOD),
        case(Base::Text, "playTimes", "0", "108036"),
        case(Base::Text, "playTimes", "4", "108036"),
        case(Base::Text, "playTimes", "-1", "108036"),
        case(Base::Text, "playTimes", "1.5", "108036"),
        case(Base::Text, "playTimes", "1e999", "108036"),
        case(Base::Text, "playTimes", "twice", "108036"),
    ])
    .await;
}

#[tokio::test]
async fn voice_options() {
    for (field, older, lowest, highest, below, above) in [
        ("txtSpeed", "speed", "-500", "500", "-501", "501"),
        ("txtVolume", "volume", "-20", "20", "-21", "21"),
        ("txtPitch", "pitch", "-500", "500", "-501", "501"),
        ("txtBgsound", "bgsound", "0", "6", "-1", "7"),
    ] {
        for name in [field, older] {
            check([
                case(Base::Text, name, lowest, GOOD),
                case(Base::Text, name, highest, GOOD),
                case(Base::Text, name, "0", GOOD),
                case(Base::Text, name, "", GOOD),
                absent(Base::Text, name, GOOD),
                case(Base::Text, name, below, FIELD),
                case(Base::Text, name, above, FIELD),
                case(Base::Text, name, "1.5", FIELD),
                case(Base::Text, name, "loud", FIELD),
                case(Base::Text, name, "99999999999999999999", FIELD),
                // Judged only when the text is effective.
                case(Base::File, name, above, GOOD),
                case(Base::Together, name, above, FIELD),
            ])
            .await;
        }
    }
}

#[tokio::test]
async fn voice() {
    check([
        case(Base::Text, "voice", "espeak", GOOD),
        case(Base::Text, "voice", "", GOOD),
        absent(Base::Text, "voice", GOOD),
        case(Base::Text, "voice", "nobody", FIELD),
        case(Base::Text, "voice", "no body", FIELD),
        case(Base::Together, "voice", "nobody", FIELD),
        case(Base::File, "voice", "nobody", GOOD),
    ])
    .await;
}

#[tokio::test]
async fn todays_name_wins_over_the_older_one() {
    let server = TestServer::start().await;
    let ask = async |options: &str| {
        let answer = server
            .call_xml(&format!(
                "<to>13800000000</to><mediaTxt>x</mediaTxt>{options}"
            ))
            .await;
        status_code(&answer).to_owned()
    };
    assert_eq!(ask("<txtSpeed>1</txtSpeed><speed>999</speed>").await, GOOD);
    assert_eq!(ask("<speed>999</speed><txtSpeed>1</txtSpeed>").await, GOOD);
    assert_eq!(ask("<speed>1</speed><txtSpeed>999</txtSpeed>").await, FIELD);
    assert_eq!(
        ask("<speed>999</speed><txtSpeed></txtSpeed>").await,
        FIELD,
        "an empty one is as good as absent"
    );
}

#[tokio::test]
async fn display_num_is_never_an_error() {
    check([
        case(Base::Text, "displayNum", "4001234567", GOOD),
        case(Base::Text, "displayNum", "13800000000", GOOD),
        case(Base::Text, "displayNum", "", GOOD),
        absent(Base::Text, "displayNum", GOOD),
        case(Base::Text, "displayNum", "not a number", GOOD),
    ])
    .await;
}

#[tokio::test]
async fn resp_url() {
    let long: &'static str = Box::leak(format!("http://h/{}", "a".repeat(2048)).into_boxed_str());
    check([
        case(Base::Text, "respUrl", "http://example.com/cb?a=1", GOOD),
        case(Base::Text, "respUrl", "https://example.com:8443/cb", GOOD),
        case(Base::Text, "respUrl", "http://127.0.0.1:9/cb", GOOD),
        case(Base::Text, "respUrl", "", GOOD),
        absent(Base::Text, "respUrl", GOOD),
        case(Base::Text, "respUrl", "example.com/cb", "190003"),
        case(Base::Text, "respUrl", "ftp://example.com/", "190003"),
        case(
            Base::Text,
            "respUrl",
            "http://user:secret@example.com/",
            "190003",
        ),
        case(Base::Text, "respUrl", long, "110062"),
    ])
    .await;
}

#[tokio::test]
async fn user_data() {
    let longest: &'static str = Box::leak("a".repeat(4096).into_boxed_str());
    let too_long: &'static str = Box::leak("a".repeat(4097).into_boxed_str());
    let too_many_bytes: &'static str = Box::leak("好".repeat(1366).into_boxed_str());
    check([
        case(Base::Text, "userData", "order 17", GOOD),
        case(Base::Text, "userData", longest, GOOD),
        case(Base::Text, "userData", "", GOOD),
        absent(Base::Text, "userData", GOOD),
        case(Base::Text, "userData", too_long, "110062"),
        case(Base::Text, "userData", too_many_bytes, "110062"),
    ])
    .await;
}

#[tokio::test]
async fn max_call_time() {
    check([
        case(Base::Text, "maxCallTime", "60", GOOD),
        case(Base::Text, "maxCallTime", "0", GOOD),
        case(Base::Text, "maxCallTime", "999999", GOOD),
        case(Base::Text, "maxCallTime", "", GOOD),
        absent(Base::Text, "maxCallTime", GOOD),
        case(Base::Text, "maxCallTime", "-1", FIELD),
        case(Base::Text, "maxCallTime", "soon", FIELD),
    ])
    .await;
}

#[tokio::test]
async fn a_structure_where_a_text_belongs_is_refused_and_named() {
    let server = TestServer::start().await;
    for field in [
        "to",
        "mediaName",
        "mediaTxt",
        "playTimes",
        "userData",
        "respUrl",
        "displayNum",
    ] {
        let base = [("appId", APP), ("to", "13800000000"), ("mediaTxt", "x")];
        let others = || base.iter().filter(|(name, _)| *name != field);
        let xml: String = others()
            .map(|(name, value)| format!("<{name}>{value}</{name}>"))
            .collect();
        let xml = format!("<LandingCall>{xml}<{field}><b>1</b></{field}></LandingCall>");
        for (format, body) in [
            ("xml", xml),
            (
                "json",
                format!("{{{}\"{field}\":{{\"b\":1}}}}", json_members(others())),
            ),
            (
                "json",
                format!("{{{}\"{field}\":[1]}}", json_members(others())),
            ),
            (
                "json",
                format!("{{{}\"{field}\":true}}", json_members(others())),
            ),
        ] {
            let answer = server.ask("Calls/LandingCalls", format, Some(&body)).await;
            assert_eq!(status_code(&answer), FIELD, "{body}: {answer}");
            assert!(answer.contains(field), "{answer}");
        }
    }
}

fn json_members<'a>(fields: impl Iterator<Item = &'a (&'static str, &'static str)>) -> String {
    fields
        .map(|(name, value)| format!("\"{name}\":\"{value}\","))
        .collect()
}

#[tokio::test]
async fn numbers_in_json_are_taken_as_they_are_written() {
    let server = TestServer::start().await;
    for (fields, code) in [
        (
            r#""to":13800000000,"mediaTxt":"x","playTimes":2,"txtSpeed":-500,"txtBgsound":6"#,
            GOOD,
        ),
        (
            r#""to":13800000000,"mediaTxt":"x","playTimes":2.0"#,
            "108036",
        ),
        (
            r#""to":13800000000,"mediaTxt":"x","playTimes":1e999"#,
            "108036",
        ),
        (r#""to":13800000000,"mediaTxt":"x","txtSpeed":1e999"#, FIELD),
        (r#""to":1.38e10,"mediaTxt":"x""#, FIELD),
        (
            r#""to":13800000000,"mediaTxt":null,"mediaName":null"#,
            "110081",
        ),
        (
            r#""to":13800000000,"mediaTxt":"x","playTimes":null,"userData":null"#,
            GOOD,
        ),
    ] {
        let answer = server.call_json(fields).await;
        assert_eq!(status_code(&answer), code, "{fields}: {answer}");
    }
}

#[tokio::test]
async fn an_application_must_be_active_and_of_this_account() {
    let server = TestServer::start().await;
    let code = async || {
        status_code(
            &server
                .call_xml("<to>13800000000</to><mediaTxt>x</mediaTxt>")
                .await,
        )
        .to_owned()
    };
    for (state, expected) in [
        (AppState::Disabled, "111177"),
        (AppState::Deleted, "111176"),
        (AppState::Active, GOOD),
    ] {
        server
            .change_application(ApplicationChange {
                state: Some(state),
                ..ApplicationChange::default()
            })
            .await;
        eventually(expected, async || code().await == expected).await;
    }
    // One of another account is answered as one that does not exist.
    let foreign = crate::support::application_of_another_account(&server).await;
    let mut told = Vec::new();
    for app in [foreign.to_string(), "d".repeat(32)] {
        let body = format!(
            "<LandingCall><appId>{app}</appId><to>13800000000</to><mediaTxt>x</mediaTxt></LandingCall>"
        );
        told.push(server.ask("Calls/LandingCalls", "xml", Some(&body)).await);
    }
    assert_eq!(status_code(&told[0]), "111181");
    assert_eq!(told[0], told[1]);
}
