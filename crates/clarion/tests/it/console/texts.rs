//! Texts that customers write are shown as texts, whatever is in them: on every page, and in every cell of a spreadsheet.

use clarion::domain::account::{AccountChange, ApplicationChange};
use clarion::domain::audit::{Actor, AuditEntry};
use clarion::domain::call::CallSid;
use clarion::management::OfferedFile;

use super::visitor::Visitor;
use super::{add_intake, add_operators, billed};
use crate::calls::stage::Stage;
use crate::support::receiver::{Receiver, answer};
use crate::support::{APP, SID, TestServer, call_list, call_sid, eventually};

/// Markup, quotes, a way out of an attribute, marks of direction, control characters.
const HOSTILE: &str =
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;\u{202e}gpj\u{200f}\u{1b}[31m";

/// Nothing of it is there but as text. In the fields of forms stands what would be sent, marks of direction included.
fn is_harmless(body: &str, where_from: &str) {
    for raw in ["<script>a", "<img src=x", "\u{1b}", "\0"] {
        assert!(!body.contains(raw), "{where_from} has {raw:?}");
    }
    let shown = without(&without(body, "value=\"", "\""), "<textarea", "</textarea>");
    for raw in ["\u{202e}", "\u{200f}"] {
        assert!(!shown.contains(raw), "{where_from} has {raw:?}");
    }
}

/// The text without what stands between these two.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| {
        whole + part.split_once(end).map_or("", |(_, rest)| rest)
    })
}

/// Every page, and addresses that are hostile themselves.
fn places(sid: &CallSid) -> Vec<String> {
    vec![
        "/".to_owned(),
        "/calls".to_owned(),
        format!("/calls/{sid}"),
        "/accounts".to_owned(),
        "/accounts?find=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        format!("/accounts/{SID}"),
        format!("/accounts/{SID}/lists"),
        format!("/accounts/{SID}/do-not-call"),
        format!("/accounts/{SID}/do-not-call?number=%22%3E%3Cscript%3Ealert(1)%1B"),
        format!("/apps/{APP}"),
        "/audit".to_owned(),
        "/audit?about=%3Cscript%3Ealert(1)%E2%80%AE%00".to_owned(),
        "/calls?account=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/calls?sid=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/calls?number=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/calls?user_data=%22%3E%3Cscript%3Ealert(1)%1B&trunk=%E2%80%AE".to_owned(),
        "/calls?from=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/callbacks".to_owned(),
        "/callbacks?host=%22%3E%3Cscript%3Ealert(1)%E2%80%AE%1B".to_owned(),
        "/audio".to_owned(),
        format!("/audio?app={APP}"),
        "/audio?app=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/intakes".to_owned(),
        "/intakes/prod".to_owned(),
        format!("/events/calls/{sid}"),
        "/health".to_owned(),
        "/bills".to_owned(),
        "/bills/2026-01-05".to_owned(),
        "/bills/%3Cscript%3Ealert(1)".to_owned(),
        "/try".to_owned(),
        "/dialling".to_owned(),
        "/trunks".to_owned(),
        "/settings?which=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/sign-in?next=%22%3E%3Cscript%3Ealert(1)%1B".to_owned(),
        "/nowhere/%3Cscript%3Ealert(1)".to_owned(),
    ]
}

#[tokio::test]
async fn hostile_texts_are_shown_as_texts_on_every_page() {
    let stage = Stage::prepared("", async |store, clock| {
        add_operators(store, clock).await;
        let entry = AuditEntry {
            at: clock.now(),
            actor: Actor {
                operator: Some(format!("{HOSTILE}\0")),
                system_user: None,
                address: Some(HOSTILE.to_owned()),
            },
            action: "call bar".to_owned(),
            detail: format!("{HOSTILE}\0"),
            failure: Some(HOSTILE.to_owned()),
        };
        store.note_change(entry).await.unwrap();
    })
    .await;
    let server = &stage.server;
    let named = AccountChange {
        name: Some(format!("A {HOSTILE}\0")),
        ..AccountChange::default()
    };
    server.change_account(named).await;
    let named = ApplicationChange {
        name: Some(format!("B {HOSTILE}\0")),
        ..ApplicationChange::default()
    };
    server.change_application(named).await;
    let people = call_list(
        "night",
        &["13800000000=<script>alert(1)\u{202e}"],
        server.clock.now(),
    );
    server.store.add_list(people).await.unwrap();
    add_intake(server, HOSTILE).await;
    // The API takes no control characters.
    let data = HOSTILE.replace('\u{1b}', "") + &"\u{202e}字".repeat(600);
    assert!(data.len() > 3600);
    let data = serde_json::to_string(&data).unwrap();
    let name = serde_json::to_string("<script>alert(1)</script>\"'><img src=x>\u{202e}").unwrap();
    let fields = format!(
        "\"mediaTxt\":\"<script>alert(1)</script>\",\"userData\":{data},\"requestId\":{name}"
    );
    let sid = stage.call("13800000000", &fields).await;
    stage.report_of(&sid).await;
    // And what a receiver of the customer answers.
    let answers = Receiver::start(vec![answer(500, "", HOSTILE)]).await;
    let fields = format!(
        "\"mediaTxt\":\"x\",\"callStateUrl\":\"{0}\",\"respUrl\":\"{0}/<script>alert(1)?x='><img src=x>\"",
        answers.url()
    );
    let told = stage
        .server
        .call_json(&format!("\"to\":\"13800000001\",{fields}"))
        .await;
    let refused: CallSid = call_sid(&told).parse().unwrap();
    eventually("an answer is recorded", async || {
        let found = server.management().call_story(&refused).await.unwrap();
        found
            .seen
            .callback
            .is_some_and(|callback| callback.attempts > 0)
    })
    .await;
    let mut admin = Visitor::signed_in(server, "admin").await;
    let page = admin.get(&format!("/calls/{refused}")).await.body;
    assert!(
        page.contains("&#60;script&#62;alert(1)"),
        "the answer is shown: {page}"
    );
    let bill = billed("2026-01-05", HOSTILE);
    server.store.record_bill_file(bill).await.unwrap();
    let page = admin.get("/bills/2026-01-05").await.body;
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
    let mut paths = places(&sid);
    hostile_file_names_are_texts(server, &mut admin).await;
    paths.push(format!("/calls/{refused}"));
    for path in paths {
        let mut stranger = Visitor::new(server);
        for visitor in [&mut admin, &mut stranger] {
            for language in ["en", "zh"] {
                visitor.language = language;
                let answer = visitor.get(&path).await;
                is_harmless(&answer.body, &path);
            }
        }
    }
    admin.language = "en";
    let page = admin.get(&format!("/calls/{sid}")).await.body;
    assert!(page.contains("A &#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;"));
    assert!(
        page.contains("⟨U+202E⟩gpj⟨U+200F⟩␛[31m␀"),
        "what is not seen is named"
    );
    assert!(
        page.matches("⟨U+202E⟩字").count() >= 600,
        "userData as it is"
    );
    assert!(!page.contains("alert(1)&lt;"), "nothing is escaped twice");
    forms_are_harmless(server, &mut admin).await;
}

/// On the page, in the addresses of its sound and its waveform, and for whoever follows those.
async fn hostile_file_names_are_texts(server: &TestServer, admin: &mut Visitor) {
    let file = add_file(server).await;
    let page = admin.get(&format!("/audio?app={APP}")).await.body;
    assert!(
        page.contains("<bdi>&#60;b&#62;&#34;&#39;&#38;⟨U+202E⟩.wav</bdi>"),
        "{page}"
    );
    for kind in ["sound.wav", "wave.svg"] {
        let address = format!("/audio/{kind}?app={APP}&#38;{file}");
        assert!(page.contains(&address), "{page}");
        let answer = admin.get(&address.replace("&#38;", "&")).await;
        assert_eq!(answer.status, 200, "{kind}");
    }
}

/// A file whose name has everything that a name may have. The query that tells its name.
async fn add_file(server: &TestServer) -> String {
    let name = "<b>\"'&\u{202e}.wav";
    let wav = sound::wav::mono_16_bit(&[500; 4000], sound::RATE);
    let file = OfferedFile {
        name: name.to_owned(),
        bytes: Ok(wav.into()),
    };
    let (app, names) = (APP.parse().unwrap(), [name.to_owned()]);
    let management = server.management();
    let added = management.add_audio(Some(app), &names, [file].into_iter());
    added.await.unwrap();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("name", name).finish()
}

/// What was typed comes back as text.
async fn forms_are_harmless(server: &TestServer, admin: &mut Visitor) {
    let wrong = [("name", HOSTILE), ("password", HOSTILE), ("next", HOSTILE)];
    let answer = Visitor::new(server).post("/sign-in", &wrong).await;
    assert_eq!(answer.status, 403);
    is_harmless(&answer.body, "the form after a wrong password");
    let token = admin.token().await;
    let typed = [
        ("token", &*token),
        ("appId", APP),
        ("to", HOSTILE),
        ("mediaTxt", HOSTILE),
        ("respUrl", HOSTILE),
    ];
    let shown = admin.post("/try/show", &typed).await;
    assert_eq!(shown.status, 200);
    is_harmless(&shown.body, "the request that is shown");
    for (path, field) in [
        ("/accounts".to_owned(), "sid"),
        (format!("/accounts/{SID}"), "balance"),
        (format!("/accounts/{SID}/rates"), "prefix"),
        (format!("/accounts/{SID}/lists"), "name"),
        (format!("/accounts/{SID}/do-not-call"), "number"),
        (format!("/accounts/{SID}/do-not-call/import"), "numbers"),
        (format!("/apps/{APP}"), "calls-at-once"),
    ] {
        let typed = format!("{HOSTILE}\0");
        let fields = [("token", &*token), (field, &*typed)];
        let answer = admin.post(&path, &fields).await;
        assert_eq!(answer.status, 422, "{path}");
        is_harmless(&answer.body, &path);
    }
}

#[tokio::test]
async fn a_file_for_a_spreadsheet_has_no_formulas() {
    let stage = Stage::prepared("", async |store, clock| {
        add_operators(store, clock).await;
    })
    .await;
    let named = AccountChange {
        name: Some("=cmd|'/c calc'!A1".to_owned()),
        ..AccountChange::default()
    };
    stage.server.change_account(named).await;
    let mut sids = Vec::new();
    for _ in 0..3 {
        sids.push(stage.call("13800000000", "\"mediaTxt\":\"x\"").await);
    }
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    let answer = viewer.get("/calls.csv").await;
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    let text = answer.body.strip_prefix('\u{feff}').unwrap();
    let rows = clarion::domain::bill::csv::read(text).unwrap();
    assert_eq!(rows[0].1[0], "callSid");
    let listed: Vec<_> = rows[1..]
        .iter()
        .map(|(_, cells)| cells[0].as_str())
        .collect();
    let mut wanted: Vec<_> = sids.iter().map(ToString::to_string).collect();
    wanted.sort_by(|one, other| other.cmp(one));
    assert_eq!(listed, wanted, "the newest first");
    for (_, cells) in &rows[1..] {
        assert_eq!(cells[2], "'=cmd|'/c calc'!A1");
        assert_eq!(cells[6], "'+8613800000000");
    }
}
