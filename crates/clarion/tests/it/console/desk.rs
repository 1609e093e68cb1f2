//! What operators look after: callbacks, bills, trunks, audio files, settings, the health of the node; and calls that they try.

use clarion::domain::bill::{BillFile, calendar};
use clarion::domain::call_state::CallState;
use hyper::body::Bytes;
use jiff::ToSpan;
use phone::test_phone::Script;

use super::visitor::Visitor;
use super::{add_operators, billed};
use crate::audio_files::wav;
use crate::calls::stage::{Stage, settings};
use crate::support::receiver::{Receiver, answer, ok};
use crate::support::telephone::Telephone;
use crate::support::{APP, SID, TestServer, call_sid, eventually, execute};

async fn staged(script: Script, settings: &str) -> (Stage, Telephone) {
    let telephone = Telephone::that(script).await;
    let stage = Stage::on(&telephone.wide_trunk("provider", ""), settings).await;
    add_operators(&*stage.server.store, &stage.server.clock).await;
    (stage, telephone)
}

#[tokio::test]
async fn a_call_is_tried_shown_as_a_request_and_made_again() {
    let (stage, _telephone) = staged(Script::answer(), "").await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    let page = admin.get("/try").await.body;
    for wanted in [
        "name=\"redialTimes\"",
        "name=\"confirmDtmf\"",
        "Called number",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let text = "<b>好</b> & 'x'";
    let mut fields = vec![
        ("token", token.as_str()),
        ("appId", APP),
        ("to", "13800000000"),
        ("mediaTxt", text),
    ];
    // Whoever may not call may see the request.
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    let of_viewer = viewer.token().await;
    let page = viewer.get("/try").await.body;
    assert!(page.contains("formaction=\"/try/show\"") && !page.contains("id=\"place\""));
    let mut asked = fields.clone();
    asked[0].1 = &of_viewer;
    for shown in [
        admin.post("/try/show", &fields).await,
        viewer.post("/try/show", &asked).await,
    ] {
        assert_eq!(shown.status, 200);
        for wanted in [
            "id=\"as-json\"",
            "id=\"as-xml\"",
            "md5sum",
            "LandingCall",
            SID,
            "https://localhost:",
            "/2013-12-26/Accounts/$SID/Calls/LandingCalls?sig=$SIG",
        ] {
            assert!(shown.body.contains(wanted), "{wanted}");
        }
        assert!(!shown.body.contains("<b>好"), "what was typed is a text");
    }
    assert_eq!(stage.server.store.queue_depth().await.unwrap().0, 0);
    // What the API refuses is told, and what was typed is still there.
    fields[2].1 = "not a number";
    let refused = admin.post("/try", &fields).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("role=\"alert\"") && refused.body.contains("not a number"));
    fields[2].1 = "13800000000";
    let placed = admin.post("/try", &fields).await;
    assert_eq!(placed.status, 303, "{}", placed.body);
    let sid = placed.header("location");
    let sid = sid.trim_start_matches("/calls/").split('?').next().unwrap();
    let sid = sid.parse().unwrap();
    stage.is_in(&sid, CallState::Ended).await;
    // The sound is what a callee hears, as a picture and as a file.
    let sound = admin.get(&format!("/calls/{sid}/sound.wav")).await;
    assert_eq!(sound.header("content-type"), "audio/wav");
    assert!(sound.bytes.len() > 8000 && sound.bytes.starts_with(b"RIFF"));
    in_parts(&mut admin, &format!("/calls/{sid}/sound.wav"), &sound.bytes).await;
    // A call that asks for a key asks for it there too.
    let mut asking = fields.clone();
    asking.push(("confirmDtmf", "1"));
    let placed = admin.post("/try", &asking).await;
    let asks = placed.header("location").split('?').next().unwrap();
    let longer = admin.get(&format!("{asks}/sound.wav")).await;
    assert!(longer.bytes.len() > sound.bytes.len() + 16_000);
    let wave = admin.get(&format!("/calls/{sid}/wave.svg")).await;
    assert!(wave.body.starts_with("<svg") && wave.header("content-type") == "image/svg+xml");
    let again = admin
        .post(&format!("/calls/{sid}/again"), &[("token", &token)])
        .await;
    assert_eq!(again.status, 303, "{}", again.body);
    let location = again.header("location").to_owned();
    assert!(location.ends_with("?done=placed") && !location.contains(sid.as_str()));
    let trail = admin.get("/audit").await.body;
    assert!(trail.contains("call place --app") && trail.contains(&format!("call again {sid}")));
    assert!(
        !trail.contains('好'),
        "what is said is between a customer and a callee"
    );
}

/// Players ask for parts of a sound.
async fn in_parts(admin: &mut Visitor, path: &str, sound: &Bytes) {
    let all = sound.len();
    let range = [("range", "bytes=1000-1999")];
    let part = admin.ask("GET", path, &range, "").await;
    assert_eq!((part.status, &part.bytes), (206, &sound.slice(1000..2000)));
    assert_eq!(
        part.header("content-range"),
        format!("bytes 1000-1999/{all}")
    );
    let behind = format!("bytes={all}-");
    let none = admin.ask("GET", path, &[("range", &behind)], "").await;
    assert_eq!(
        (none.status, none.header("content-range")),
        (416, &*format!("bytes */{all}"))
    );
}

#[tokio::test]
async fn what_is_typed_comes_back_as_it_was_typed_in_either_language() {
    let (stage, _telephone) = staged(Script::answer(), "").await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    // Line breaks, joiners and marks of direction.
    let typed = "\n一\r\n二\u{200d}\u{202e}";
    let as_typed = [
        ("token", token.as_str()),
        ("appId", APP),
        ("mediaTxt", typed),
    ];
    let shown = admin.post("/try/show", &as_typed).await.body;
    let value = shown.split("name=\"mediaTxt\"").nth(1).unwrap();
    let value = value.split_once(">\n").unwrap().1;
    assert!(
        value.starts_with("\n一\n二\u{200d}\u{202e}</textarea>"),
        "{value}"
    );
    assert!(shown.contains("\\n一\\n二"), "and is sent so: {shown}");
    // Its other language has an address that can be looked at.
    let language = shown.split("href=\"/language/").nth(1).unwrap();
    let language = format!("/language/{}", language.split('"').next().unwrap());
    let chosen = admin.get(&language).await;
    assert!(chosen.leads_to("/try"), "{language}");
}

#[tokio::test]
async fn audio_files_are_uploaded_heard_and_removed() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
    })
    .await;
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let token = admin.token().await;
    let fields = [("token", token.as_str()), ("app", APP)];
    let sound = wav(9000);
    let added = admin.upload("/audio", &fields, "你好 1.wav", &sound).await;
    assert!(
        added.leads_to(&format!("/audio?app={APP}&done=added")),
        "{}",
        added.body
    );
    let page = admin.get(&format!("/audio?app={APP}")).await.body;
    assert!(page.contains("你好 1.wav") && page.contains("/audio/wave.svg?"));
    let heard = admin
        .get(&format!(
            "/audio/sound.wav?app={APP}&name=%E4%BD%A0%E5%A5%BD+1.wav"
        ))
        .await;
    assert_eq!(heard.status, 200);
    // A-law and back: as long, and nearly as loud.
    assert!(heard.bytes.len().abs_diff(sound.len()) < 2000);
    // What is no sound is refused by its name, and what was there stays.
    let refused = admin.upload("/audio", &fields, "x.wav", b"no sound").await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("x.wav"), "{}", refused.body);
    let nothing = admin.post("/audio", &fields).await;
    assert_eq!(nothing.status, 422);
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    let of_viewer = viewer.token().await;
    let fields = [("token", of_viewer.as_str()), ("app", APP)];
    let answer = viewer.upload("/audio", &fields, "y.wav", &sound).await;
    assert_eq!(answer.status, 403);
    assert!(
        !viewer
            .get(&format!("/audio?app={APP}"))
            .await
            .body
            .contains("id=\"upload\"")
    );
    let fields = [
        ("token", token.as_str()),
        ("app", APP),
        ("name", "你好 1.wav"),
    ];
    let removed = admin.post("/audio/remove", &fields).await;
    assert_eq!(removed.status, 303);
    let page = admin.get(&format!("/audio?app={APP}")).await.body;
    assert!(!page.contains("/audio/wave.svg?"));
}

#[tokio::test]
async fn a_failing_receiver_is_seen_and_sent_to_again() {
    let telephone = Telephone::that(Script::answer()).await;
    let settings = settings("", &telephone.wide_trunk("provider", ""));
    let settings = settings.replace("[callbacks]\n", "[callbacks]\nretry_seconds = [1]\n");
    let server = TestServer::start_with(&settings).await;
    add_operators(&*server.store, &server.clock).await;
    let failure = || answer(500, "", "no");
    let receiver = Receiver::start(vec![failure(), failure(), ok()]).await;
    let fields = format!(
        "\"to\":\"13800000000\",\"mediaTxt\":\"x\",\"respUrl\":\"{}\"",
        receiver.url()
    );
    let sid = call_sid(&server.call_json(&fields).await);
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let token = admin.token().await;
    eventually("the callback is given up", async || {
        let page = admin.get("/callbacks?state=given-up").await.body;
        page.contains(sid.as_str())
    })
    .await;
    let receiver = receiver.address.to_string();
    let since = "2020-01-01T00:00";
    let nobody = [("token", token.as_str()), ("since", since)];
    let refused = admin.post("/callbacks/resend-all", &nobody).await;
    assert!(refused.body.contains("Name a receiver or an application"));
    let wrong = [
        ("token", token.as_str()),
        ("host", &receiver),
        ("since", "x"),
    ];
    let refused = admin.post("/callbacks/resend-all", &wrong).await;
    assert!(refused.body.contains("Write a time as"));
    // What was typed is still there.
    assert!(refused.body.contains(&format!("value=\"{receiver}\"")));
    let chosen = [
        ("token", token.as_str()),
        ("since", "x"),
        ("from", "delivered"),
    ];
    let refused = admin.post("/callbacks/resend-all", &chosen).await;
    assert!(
        refused
            .body
            .contains("<option value=\"delivered\" selected>")
    );
    let fields = [
        ("token", token.as_str()),
        ("host", &receiver),
        ("since", since),
    ];
    let done = admin.post("/callbacks/resend-all", &fields).await;
    assert!(
        done.body.contains("1 callbacks are due now."),
        "{}",
        done.body
    );
    eventually("it is delivered", async || {
        let page = admin.get("/callbacks?state=delivered").await.body;
        page.contains(sid.as_str())
    })
    .await;
    let key = [("token", token.as_str()), ("key", sid.as_str())];
    let again = admin.post("/callbacks/resend", &key).await;
    assert!(again.leads_to("/callbacks?done=resent"));
}

/// Callbacks to `other:80` that were given up, and before and after them one to `rare:80`: more of them than one request of the console looks at.
const GIVEN_UP: u32 = 200_002;

async fn give_up_many(server: &TestServer) {
    // Some at a time, so that the server can write too.
    let some = 20_000;
    for first in (1..=GIVEN_UP).step_by(some as usize) {
        let last = GIVEN_UP.min(first + some - 1);
        let many = format!(
            "INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, owed_at, finished_at) \
             WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}) \
             SELECT printf('26%030d', n), 0, '{APP}', 'msg_' || n, CASE WHEN n IN (1, {GIVEN_UP}) THEN 'rare:80' ELSE 'other:80' END, \
               'http://rare/', 'x', 3, 0, 0 FROM numbers"
        );
        execute(&server.database, &many).await;
    }
}

#[tokio::test]
async fn sending_many_again_goes_on_where_it_stopped() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
    })
    .await;
    give_up_many(&server).await;
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let token = admin.token().await;
    let mut fields = vec![
        ("token", token.as_str()),
        ("host", "rare:80"),
        ("since", "2020-01-01T00:00"),
        ("from", "given-up"),
    ];
    let path = "/callbacks/resend-all";
    let part = admin.post(path, &fields).await.body;
    assert!(part.contains("1 callbacks are due now. That was only a part"));
    let after = part.split("name=\"after\" value=\"").nth(1).unwrap();
    let after = after.split('"').next().unwrap();
    assert_eq!(after, format!("26{:030}", GIVEN_UP - 2));
    for (name, value) in &fields[1..] {
        assert!(part.contains(&format!("name=\"{name}\" value=\"{value}\"")));
    }
    fields.push(("after", after));
    let rest = admin.post(path, &fields).await.body;
    assert!(rest.contains("1 callbacks are due now.") && !rest.contains("resend-on"));
    let trail = admin.get("/audit").await.body;
    assert!(trail.contains(&format!("--after {after}")), "{trail}");
    fields.pop();
    fields.push(("after", "<b>"));
    assert_eq!(admin.post(path, &fields).await.status, 400);
}

#[tokio::test]
async fn a_rare_callback_is_searched_for_a_stretch_at_a_time() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
    })
    .await;
    give_up_many(&server).await;
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    let page = viewer.get("/callbacks?host=rare%3A80").await.body;
    let until = format!("26{:030}", GIVEN_UP - 5_000 + 1);
    let further = format!("/callbacks?host=rare%3A80&#38;before={until}");
    assert!(page.contains(&format!("href=\"/calls/26{GIVEN_UP:030}\"")));
    assert!(
        page.contains("Search further") && page.contains(&further),
        "{page}"
    );
    let said = crate::command_line::clarion(
        &server,
        &["callback", "list", "--host", "rare:80", "--json"],
    )
    .await;
    let told = String::from_utf8_lossy(&said.stderr);
    assert!(
        told.contains(&format!("add --before {until} to search further")),
        "{told}"
    );
    let next = viewer
        .get(&format!("/callbacks?host=rare%3A80&before={until}"))
        .await;
    assert!(next.body.contains("No callbacks here.") && next.body.contains("Search further"));
}

#[tokio::test]
async fn a_trunk_is_drained_and_used_again() {
    let (stage, _telephone) = staged(Script::answer(), "").await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    let fields = [("token", token.as_str())];
    assert!(admin.get("/trunks").await.body.contains("provider"));
    let drained = admin.post("/trunks/provider/drain", &fields).await;
    assert!(drained.leads_to("/trunks?done=drained"));
    eventually("it is seen", async || {
        admin.get("/trunks").await.body.contains(">drained<")
    })
    .await;
    let opened = admin.post("/trunks/provider/open", &fields).await;
    assert!(opened.leads_to("/trunks?done=opened"));
    eventually("it is used", async || {
        admin.get("/trunks").await.body.contains(">up<")
    })
    .await;
    eventually("the newest change comes first", async || {
        let page = admin.get("/trunks").await.body;
        let history = page.split("How it has fared").nth(1).unwrap();
        let (up, drained) = (history.find(">up<"), history.find(">drained<"));
        up.is_some() && up < drained
    })
    .await;
    let missing = admin.post("/trunks/nowhere/drain", &fields).await;
    assert_eq!(missing.status, 409);
    assert!(missing.body.contains("there is no trunk nowhere"));
}

#[tokio::test]
async fn a_trunk_is_tested_with_a_call_that_goes_over_it_alone() {
    let (usual, tested) = (
        Telephone::that(Script::answer()).await,
        Telephone::that(Script::answer()).await,
    );
    let trunks = [
        usual.wide_trunk("usual", "priority = 1\n"),
        tested
            .wide_trunk("tested", "priority = 9\n")
            .replace("prefixes = [\"\"]", "prefixes = [\"86\"]"),
    ];
    let stage = Stage::on(&trunks.concat(), "").await;
    add_operators(&*stage.server.store, &stage.server.clock).await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    let fields = |number| {
        let call = [("trunk", "tested"), ("app", APP), ("number", number)];
        [&[("token", token.as_str())][..], &call].concat()
    };
    let path = "/trunks/test";
    for (number, said) in [
        ("nobody", "to must be one telephone number"),
        ("+441632960001", "tested does not carry"),
    ] {
        let refused = admin.post(path, &fields(number)).await;
        assert_eq!(refused.status, 422, "{number}");
        assert!(refused.body.contains("role=\"alert\""), "{number}");
        assert!(refused.body.contains(said), "{number}: {}", refused.body);
        assert!(refused.body.contains(&format!("value=\"{number}\"")));
        assert!(refused.body.contains("<option selected>tested</option>"));
    }
    let placed = admin.post(path, &fields("13800000000")).await;
    assert_eq!(placed.status, 303, "{}", placed.body);
    let sid = placed.header("location").trim_start_matches("/calls/");
    let sid = sid.split('?').next().unwrap().parse().unwrap();
    stage.is_in(&sid, CallState::Ended).await;
    let record = stage.server.store.call_record(&sid).await.unwrap().unwrap();
    assert_eq!(record.trunk.as_deref(), Some("tested"));
    // It is billed like any other.
    let lines = stage.server.store.bill_lines_of(&sid).await.unwrap();
    assert_eq!(lines.len(), 1);
    let trail = admin.get("/audit").await.body;
    assert!(trail.contains(&format!("trunk test tested 13800000000 --app {APP}")));
}

#[tokio::test]
async fn dialling_is_stopped_and_resumed_and_numbers_are_barred() {
    let (stage, _telephone) = staged(Script::answer(), "").await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    let fields = [("token", token.as_str())];
    let stopped = admin.post("/dialling/stop", &fields).await;
    assert!(stopped.leads_to("/dialling?done=stopped"));
    let page = admin.get("/dialling").await.body;
    assert!(page.contains("Resume dialling") && page.contains("stopped on all nodes"));
    eventually("the first page says so", async || {
        admin.get("/").await.body.contains("Dialling is stopped.")
    })
    .await;
    let resumed = admin.post("/dialling/resume", &fields).await;
    assert!(resumed.leads_to("/dialling?done=dialling"));
    assert!(admin.get("/dialling").await.body.contains("Stop dialling"));
    let number = |number| [("token", token.as_str()), ("number", number)];
    let barred = admin.post("/dialling/bar", &number("13800000000")).await;
    assert!(barred.leads_to("/dialling?done=barred"), "{}", barred.body);
    let again = admin.post("/dialling/bar", &number("13800000000")).await;
    assert!(again.leads_to("/dialling?done=unchanged"));
    let wrong = admin.post("/dialling/bar", &number("<b>")).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("role=\"alert\"") && !wrong.body.contains("<b>"));
    let page = admin.get("/dialling?find=0000").await.body;
    assert!(page.contains("+8613800000000"));
    let page = admin.get("/dialling?find=1111").await.body;
    assert!(page.contains("No barred number has these digits."));
    let gone = admin
        .post("/dialling/unbar", &number("+8613800000000"))
        .await;
    assert!(gone.leads_to("/dialling?done=unbarred"));
    assert!(
        admin
            .get("/dialling")
            .await
            .body
            .contains("No number is barred.")
    );
}

#[tokio::test]
async fn a_day_is_shown_verified_and_downloaded() {
    let (stage, _telephone) = staged(Script::answer(), "").await;
    let sid = stage
        .call("13800000000", "\"mediaTxt\":\"x\",\"userData\":\"=1+1\"")
        .await;
    stage.is_in(&sid, CallState::Ended).await;
    let server = &stage.server;
    let day = calendar::day_of(server.clock.now(), server.clock.zone());
    server.clock.shift(jiff::SignedDuration::from_hours(48));
    server.close_day(day).await;
    let mut viewer = Visitor::signed_in(server, "viewer").await;
    let token = viewer.token().await;
    let list = viewer.get("/bills").await.body;
    assert!(list.contains(&format!("/bills/{day}")), "{list}");
    let page = viewer.get(&format!("/bills/{day}")).await.body;
    assert!(page.contains(APP) && page.contains("By account"));
    let verified = viewer
        .post(&format!("/bills/{day}/verify"), &[("token", &token)])
        .await;
    assert!(
        verified.body.contains("All is right: 1 lines"),
        "{}",
        verified.body
    );
    let file = viewer.get(&format!("/bills/{day}/{APP}")).await;
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert!(file.body.contains(sid.as_str()) && !file.body.contains(",=1+1"));
    // A client has asked for parts of it, one of which has no lines.
    for (keywords, query, lines) in [
        ("type=14 outcome=talked", "type%3D14+outcome%3Dtalked", 1),
        ("type=13", "type%3D13", 0),
    ] {
        let id = lines.to_string().repeat(32);
        let part = BillFile {
            id,
            ..billed(&day.to_string(), keywords)
        };
        server.store.record_bill_file(part).await.unwrap();
        let link = format!("/bills/{day}/{APP}?keywords={query}");
        let page = viewer.get(&format!("/bills/{day}")).await.body;
        assert!(page.contains(&format!("\"{link}\"")), "{page}");
        let part = viewer.get(&link).await;
        assert!(part.header("content-disposition").contains("-part.csv"));
        assert_eq!(part.body.lines().count(), 1 + lines, "{keywords}");
    }
    let long = "x".repeat(300);
    let refused = viewer
        .get(&format!("/bills/{day}/{APP}?keywords={long}"))
        .await;
    assert_eq!(refused.status, 404);
    let before = day.saturating_sub(400.days());
    let nothing = viewer.get(&format!("/bills/{before}")).await.body;
    assert!(nothing.contains("Nobody was billed on this day."));
    assert_eq!(viewer.get("/bills/x").await.status, 404);
}

#[tokio::test]
async fn a_node_tells_what_is_wrong_with_it_and_shows_what_others_tell() {
    let server = TestServer::start().await;
    add_operators(&*server.store, &server.clock).await;
    server.management().drain_trunk("waiting").await.unwrap();
    let drained = "[{\"trunk\":{\"name\":\"waiting\",\"state\":\"drained\"}}]";
    eventually("it has told that its trunk is drained", async || {
        let nodes = server.store.nodes().await.unwrap();
        nodes
            .iter()
            .any(|node| node.concerns.as_deref() == Some(drained))
    })
    .await;
    let other = "INSERT INTO nodes (node, steady_since, heartbeat_at, lease_until, schema_version, concerns) \
        SELECT 'node-other', steady_since, heartbeat_at, lease_until + 3600000, schema_version, \
        '[{\"trunk\":{\"name\":\"north\",\"state\":{\"down\":{\"why\":\"<b>\"}}}},\"of a later version\"]' FROM nodes";
    execute(&server.database, other).await;
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    eventually("it shows what the other one tells", async || {
        let page = viewer.get("/").await.body;
        let told = "Node node-other: Trunk north carries no calls: ";
        assert!(page.contains("Trunk waiting carries no calls") && !page.contains("<b>"));
        page.contains(told)
    })
    .await;
}

#[tokio::test]
async fn settings_and_health_are_told_without_secrets() {
    let (stage, _telephone) = staged(Script::answer(), "min_free_mb = 63\n").await;
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    let all = viewer.get("/settings").await.body;
    assert!(all.contains("<code>[callbacks]</code>") && all.contains("Addresses to listen on."));
    let changed = viewer.get("/settings?which=changed").await.body;
    assert!(changed.contains("min_free_mb") && !changed.contains("soft_versions"));
    eventually("the node is ready", async || {
        let health = viewer.get("/health").await.body;
        health.contains("This node is ready.")
    })
    .await;
    eventually("the examination is over", async || {
        let health = viewer.get("/health").await.body;
        let is_over = health.contains("Examined") && !health.contains("data-live");
        is_over && health.contains("configuration") && health.contains("database")
    })
    .await;
    viewer.language = "zh";
    let health = viewer.get("/health").await.body;
    assert!(health.contains("本节点已就绪"));
}

#[tokio::test]
async fn filters_of_calls_stand_in_the_address() {
    let (stage, _telephone) = staged(Script::answer(), "").await;
    let first = stage
        .call("13800000000", "\"mediaTxt\":\"x\",\"userData\":\"needle\"")
        .await;
    let second = stage.call("13800000001", "\"mediaTxt\":\"x\"").await;
    for sid in [&first, &second] {
        stage.is_in(sid, CallState::Ended).await;
    }
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    let finds = async |viewer: &mut Visitor, query: &str| {
        let page = viewer.get(&format!("/calls?{query}")).await.body;
        [&first, &second].map(|sid| page.contains(&format!("href=\"/calls/{sid}\"")))
    };
    let mut check = async |query: &str, wanted: [bool; 2]| {
        assert_eq!(finds(&mut viewer, query).await, wanted, "{query}");
    };
    check("number=13800000001", [false, true]).await;
    check("which=talked", [true, true]).await;
    check("which=busy", [false, false]).await;
    check("user_data=needle", [true, false]).await;
    check("trunk=provider", [true, true]).await;
    check("trunk=other", [false, false]).await;
    check(&format!("app={APP}"), [true, true]).await;
    check("from=2020-01-01T00%3A00", [true, true]).await;
    check("to=2020-01-01T00%3A00", [false, false]).await;
    for (query, problem) in [
        ("from=yesterday", "Write a time as"),
        ("number=x", "That cannot be a number"),
        ("which=odd", "There is no such state"),
    ] {
        let page = viewer.get(&format!("/calls?{query}")).await.body;
        assert!(page.contains(problem), "{query}");
    }
    let csv = viewer.get("/calls.csv?user_data=needle").await.body;
    assert!(csv.contains(first.as_str()) && !csv.contains(second.as_str()));
}
