//! Every route of the console, as its own table lists them: none answers a stranger, and none changes anything for who may not.

use clarion::clock::Clock;
use clarion::console::{ConsoleRoute, RouteAccess, routes};
use clarion::domain::audit::AuditFilter;
use clarion::domain::call_state::CallState;
use clarion::domain::intake::{Intake, IntakeFormat, IntakeSettings, IntakeToken};
use clarion::domain::operator::OperatorRole;

use super::add_operators;
use super::visitor::{Answer, Visitor};
use crate::support::{APP, SID, TestServer, call_sid};

/// An intake that calls a number.
fn intake(clock: &Clock) -> Intake {
    Intake {
        name: "shop".parse().unwrap(),
        app: APP.parse().unwrap(),
        format: IntakeFormat::Json,
        token: IntakeToken::new([7; 32]).hash(),
        settings: IntakeSettings {
            to: vec!["13800000001".parse().unwrap()],
            ..IntakeSettings::default()
        },
        created_at: clock.now(),
        updated_at: clock.now(),
    }
}

/// A server with operators, an intake, and a call that waits.
async fn server() -> (TestServer, String) {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
        store.add_intake(intake(clock)).await.unwrap();
    })
    .await;
    let answer = server
        .call_json("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
        .await;
    let sid = call_sid(&answer);
    (server, sid)
}

/// An address of the route.
fn address(route: &ConsoleRoute, sid: &str) -> String {
    let is_of_account = route.path.starts_with("/accounts/");
    let sid = if is_of_account { SID } else { sid };
    let path = route.path.replace("{sid}", sid).replace("{code}", "zh");
    let path = path.replace("{day}", "2026-11-15").replace("{app}", APP);
    let path = path.replace("{name}", "console.css").replace("{id}", APP);
    path.replace("{intake}", "shop")
}

fn is_change(route: &ConsoleRoute) -> bool {
    route.method != "GET"
}

/// What nobody may change who may not.
async fn is_untouched(server: &TestServer, sid: &str) {
    let record = server.store.call_record(&sid.parse().unwrap()).await;
    let record = record.unwrap().unwrap();
    assert_eq!(record.state, CallState::Queued);
    let filter = AuditFilter {
        limit: 9,
        ..AuditFilter::default()
    };
    let noted = server.store.changes(filter).await.unwrap();
    assert!(noted.is_empty(), "{noted:?}");
}

#[tokio::test]
async fn no_route_answers_who_is_not_signed_in() {
    let (server, sid) = server().await;
    let mut stranger = Visitor::new(&server);
    let guarded = routes().into_iter();
    let guarded = guarded.filter(|route| route.access != RouteAccess::Anybody);
    let mut count = 0;
    for route in guarded {
        count += 1;
        let path = address(&route, &sid);
        let answer = if is_change(&route) {
            stranger.post(&path, &[("token", "x")]).await
        } else {
            stranger.get(&path).await
        };
        if path.starts_with("/events/") {
            // A page that is still open learns it.
            assert_eq!(answer.body, "event: signed-out\ndata: yes\n\n", "{path}");
        } else {
            assert!(answer.leads_to_sign_in(), "{path}: {}", answer.status);
        }
        assert!(!answer.body.contains("13800000000"), "{path}");
        // A cookie that somebody has made up is no sign-in.
        stranger
            .cookies
            .insert("__Host-clarion".into(), "0".repeat(64));
        assert!(stranger.get("/").await.leads_to_sign_in());
        stranger.cookies.clear();
    }
    assert!(count >= 9, "{count} routes are guarded");
    assert!(stranger.get("/nowhere").await.leads_to_sign_in());
    is_untouched(&server, &sid).await;
}

#[tokio::test]
async fn a_viewer_sees_every_page_and_changes_nothing() {
    let (server, sid) = server().await;
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    let token = viewer.token().await;
    let of_admin = Visitor::signed_in(&server, "admin").await.token().await;
    let page = viewer.get(&format!("/calls/{sid}")).await.body;
    assert!(page.contains("+8613800000000") && !page.contains("/cancel"));
    let admin_only = RouteAccess::Role(OperatorRole::Admin);
    for route in routes() {
        let path = address(&route, &sid);
        if route.access == admin_only {
            assert!(is_change(&route), "{path}: pages are for viewers too");
            for token in [&token, &of_admin] {
                let answer = viewer.post(&path, &[("token", token)]).await;
                assert_eq!(answer.status, 403, "{path}");
            }
        } else if !is_change(&route) && !path.starts_with("/events/") {
            let answer = viewer.get(&path).await;
            let is_there = [200, 303].contains(&answer.status);
            // The files of these are named by queries.
            let is_named = ["/assets/", "/audio/"].iter();
            let is_named = is_named.clone().any(|start| path.starts_with(start));
            assert!(is_there || is_named, "{path}: {}", answer.status);
        }
        let is_for_viewers = route.access == RouteAccess::Role(OperatorRole::Viewer);
        if is_for_viewers && is_change(&route) && path != "/sign-out" {
            // What is sent there changes nothing.
            let answer = viewer.post(&path, &[("token", &token)]).await;
            assert_ne!(answer.status, 403, "{path}");
        }
        // By no other method either.
        for method in ["PUT", "PATCH", "DELETE"] {
            let answer = viewer.ask(method, &path, &[], "").await;
            assert!([403, 405].contains(&answer.status), "{method} {path}");
        }
    }
    assert_eq!(viewer.get("/nowhere").await.status, 404);
    is_untouched(&server, &sid).await;
}

#[tokio::test]
async fn a_change_wants_the_token_of_its_own_sign_in_and_a_page_of_our_own() {
    let (server, sid) = server().await;
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let (own, other) = (
        admin.token().await,
        Visitor::signed_in(&server, "admin").await.token().await,
    );
    let of_viewer = Visitor::signed_in(&server, "viewer").await.token().await;
    assert_ne!(own, other, "each sign-in has its own");
    let origin = admin.origin();
    let changes = routes().into_iter().filter(is_change);
    for route in changes.filter(|route| route.access != RouteAccess::Anybody) {
        let path = address(&route, &sid);
        let refused =
            |answer: &Answer, what: &str| assert_eq!(answer.status, 403, "{path}: {what}");
        for token in ["", "x", &other, &of_viewer, &own[1..]] {
            let answer = admin.post(&path, &[("token", token)]).await;
            refused(&answer, "a wrong token");
        }
        refused(&admin.post(&path, &[]).await, "no token");
        for headers in [
            &[][..],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site"), ("origin", &origin)],
        ] {
            let answer = admin.post_with(&path, &[("token", &own)], headers).await;
            refused(&answer, "a foreign page");
        }
        // A form that is too long, or none.
        let long = "x".repeat(100_000);
        let answer = admin.post(&path, &[("token", &own), ("x", &long)]).await;
        assert_eq!(answer.status, 400, "{path}");
        let json = [("content-type", "application/json"), ("origin", &origin)];
        let answer = admin.ask("POST", &path, &json, "{}").await;
        assert_eq!(answer.status, 400, "{path}");
    }
    let foreign = [("origin", "https://evil.example")];
    let fields = [("name", "admin"), ("password", super::PASSWORD)];
    let answer = Visitor::new(&server)
        .post_with("/sign-in", &fields, &foreign)
        .await;
    assert_eq!(answer.status, 403, "nobody is signed in by another site");
    is_untouched(&server, &sid).await;
    // As browsers of these days say it.
    let fetched = [("sec-fetch-site", "same-origin"), ("origin", "null")];
    let path = format!("/calls/{sid}/cancel");
    let answer = admin.post_with(&path, &[("token", &own)], &fetched).await;
    assert!(answer.leads_to(&format!("/calls/{sid}?done=cancelled")));
}

#[tokio::test]
async fn every_answer_tells_the_browser_to_trust_nothing_else() {
    let (server, sid) = server().await;
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let mut stranger = Visitor::new(&server);
    let page = admin.get("/").await.body;
    let asset = |ending: &str| {
        let parts = page.split('"');
        let mut assets = parts.filter(|part| part.starts_with("/assets/"));
        assets
            .find(|part| part.ends_with(ending))
            .unwrap()
            .to_owned()
    };
    let assets = [".css", ".js", ".svg"].map(asset);
    let mut paths: Vec<_> = routes()
        .iter()
        .filter(|route| !is_change(route) && !route.path.starts_with("/events/"))
        .map(|route| address(route, &sid))
        .collect();
    paths.extend(assets.iter().cloned());
    paths.push("/nowhere".to_owned());
    for path in &paths {
        for answer in [admin.get(path).await, stranger.get(path).await] {
            let policy = answer.header("content-security-policy");
            let wanted = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";
            assert_eq!(policy, wanted, "{path}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("referrer-policy"), "no-referrer");
            if assets.contains(path) {
                assert!(answer.header("cache-control").contains("immutable"));
                let known = [("if-none-match", answer.header("etag"))];
                assert_eq!(stranger.ask("GET", path, &known, "").await.status, 304);
            } else {
                assert_eq!(answer.header("cache-control"), "no-store", "{path}");
            }
            // Nothing inline: no script but the file, no style but the sheet, no handler.
            let body = &answer.body;
            if answer.header("content-type").starts_with("text/html") {
                assert_eq!(body.matches("<script").count(), 1, "{path}");
                assert!(body.contains("<script src=\"/assets/"), "{path}");
                for inline in [
                    "<style",
                    " style=",
                    " onclick=",
                    " onload=",
                    "javascript:",
                    "http://",
                ] {
                    assert!(!body.contains(inline), "{path} has {inline}");
                }
            }
        }
    }
}
