//! Intakes in the console: a token is shown once, settings are tried before they are saved, and the preview says what an alert would come to.

use clarion::domain::audit::AuditFilter;
use clarion::domain::intake::IntakeToken;

use super::add_operators;
use super::visitor::{Answer, Visitor};
use crate::support::{APP, TestServer};

struct Desk {
    server: TestServer,
    admin: Visitor,
    token: String,
}

impl Desk {
    async fn open() -> Self {
        let server = TestServer::start_prepared("", async |store, clock| {
            add_operators(store, clock).await;
        })
        .await;
        let mut admin = Visitor::signed_in(&server, "admin").await;
        Self {
            token: admin.token().await,
            admin,
            server,
        }
    }

    async fn sends(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut all = vec![("token", self.token.as_str())];
        all.extend(fields);
        self.admin.post(path, &all).await
    }

    /// What is shown once.
    async fn adds(&mut self) -> String {
        let fields = [
            ("app", APP),
            ("name", "prod"),
            ("format", "alertmanager"),
            ("to", "13800000001"),
        ];
        let added = self.sends("/intakes", &fields).await;
        assert_eq!(added.status, 200, "{}", added.body);
        secret(&added.body)
    }
}

/// The token on the page that shows it.
fn secret(body: &str) -> String {
    let rest = body.split("<dt>Token</dt>").nth(1).unwrap();
    let rest = rest.split("<code>").nth(1).unwrap();
    rest.split("</code>").next().unwrap().to_owned()
}

#[tokio::test]
async fn an_intake_of_the_console_takes_alerts_by_the_token_that_was_shown_once() {
    let mut desk = Desk::open().await;
    let token = desk.adds().await;
    let given = IntakeToken::given(&token);
    let found = desk.server.store.intake_of_token(&given);
    assert_eq!(found.await.unwrap().unwrap().name.as_str(), "prod");
    for page in ["/intakes", "/intakes/prod", "/audit"] {
        let page = desk.admin.get(page).await.body;
        assert!(page.contains("prod") && !page.contains(&token));
    }
    let rotated = desk.sends("/intakes/prod/token", &[]).await;
    let new = secret(&rotated.body);
    assert_ne!(new, token);
    let called = desk.sends("/intakes/prod/test", &[]).await;
    assert_eq!(called.status, 303, "{}", called.body);
    assert!(called.header("location").starts_with("/calls/"));
    let removed = desk.sends("/intakes/prod/remove", &[]).await;
    assert!(removed.leads_to("/intakes?done=intake-removed"));
    let filter = AuditFilter {
        limit: 9,
        ..AuditFilter::default()
    };
    let noted = desk.server.store.changes(filter).await.unwrap();
    let noted: Vec<_> = noted
        .iter()
        .rev()
        .map(|line| line.entry.detail.as_str())
        .collect();
    let added = format!("intake add prod --app {APP} --format alertmanager --to 13800000001");
    assert_eq!(
        noted,
        [
            added.as_str(),
            "intake rotate-token prod",
            "intake test prod --call",
            "intake remove prod"
        ]
    );
}

#[tokio::test]
async fn a_template_is_shown_before_it_is_saved_and_refused_if_it_fails() {
    let mut desk = Desk::open().await;
    desk.adds().await;
    let page = desk.admin.get("/intakes/prod").await.body;
    assert!(
        page.contains("Critical alert. Host out of memory, on db-1.example.com"),
        "{page}"
    );
    let template = [
        ("text", "Up! {{ alerts[0].where | host }}"),
        ("was-text", ""),
    ];
    let preview = [&template[..], &[("do", "preview")]].concat();
    let shown = desk.sends("/intakes/prod", &preview).await;
    assert_eq!(shown.status, 200);
    assert!(
        shown.body.contains("Up! db-1.example.com"),
        "{}",
        shown.body
    );
    assert!(
        shown.body.contains("{{ alerts[0].where | host }}"),
        "what was typed stays"
    );
    let text = async |desk: &Desk| {
        let intake = desk.server.store.intake(&"prod".parse().unwrap()).await;
        intake.unwrap().unwrap().settings.text
    };
    assert_eq!(text(&desk).await, None, "nothing is saved");
    let payload =
        r#"{"groupKey":"g","status":"firing","alerts":[{"labels":{"instance":"oven:80"}}]}"#;
    let own = [&preview[..], &[("payload", payload)]].concat();
    assert!(
        desk.sends("/intakes/prod", &own)
            .await
            .body
            .contains("Up! oven")
    );
    let saved = desk.sends("/intakes/prod", &template).await;
    assert!(saved.leads_to("/intakes/prod?done=saved"), "{}", saved.body);
    let wrong = [("text", "{{ oh"), ("was-text", "x")];
    let refused = desk.sends("/intakes/prod", &wrong).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("{{ oh"), "what was typed stays");
    assert_eq!(
        text(&desk).await.as_deref(),
        Some("Up! {{ alerts[0].where | host }}")
    );
    let cleared = [("text", ""), ("was-text", "x")];
    desk.sends("/intakes/prod", &cleared).await;
    assert_eq!(text(&desk).await, None, "the usual one again");
}
