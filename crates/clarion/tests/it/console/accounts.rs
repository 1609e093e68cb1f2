//! Accounts and what belongs to them: what an admin changes in the console is what the verbs of the command line see, and what is refused changes nothing.

use std::sync::Arc;

use clarion::client::ApiCredentials;
use clarion::config::Config;
use clarion::domain::account::{AccountChange, AccountSid, AccountState};
use clarion::domain::audit::{Actor, AuditEntry, AuditFilter};
use clarion::management::Management;
use clarion::management::settings::Settings;

use super::visitor::{Answer, Visitor};
use super::{PASSWORD, add_operators};
use crate::support::child::Installation;
use crate::support::raw::Door;
use crate::support::{APP, SID, TOKEN, TestServer, clock, eventually, free_port, status_code};

/// A server, an admin of it, and the verbs that the command line uses.
struct Desk {
    server: TestServer,
    admin: Visitor,
    token: String,
    verbs: Management,
}

impl Desk {
    async fn open() -> Self {
        let server = TestServer::start_prepared("", async |store, clock| {
            add_operators(store, clock).await;
        })
        .await;
        let mut admin = Visitor::signed_in(&server, "admin").await;
        let config = Arc::new(Config::from_parts("", &[]).unwrap());
        let (store, clock) = (Arc::clone(&server.store), server.clock.clone());
        Self {
            token: admin.token().await,
            verbs: Management::new(store, config, clock, Actor::default()),
            admin,
            server,
        }
    }

    /// Sends a form of the admin.
    async fn sends(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut all = vec![("token", self.token.as_str())];
        all.extend(fields);
        self.admin.post(path, &all).await
    }

    async fn noted(&self) -> Vec<AuditEntry> {
        let filter = AuditFilter {
            limit: 99,
            ..AuditFilter::default()
        };
        let lines = self.verbs.changes(filter).await.unwrap();
        lines.into_iter().map(|line| line.entry).collect()
    }
}

fn sid() -> AccountSid {
    SID.parse().unwrap()
}

fn path(rest: &str) -> String {
    format!("/accounts/{SID}{rest}")
}

/// What a page shows as a secret under this name.
fn shown_secret(body: &str, label: &str) -> String {
    let rest = body.split(&format!("<dt>{label}</dt>")).nth(1).unwrap();
    let rest = rest.split("<code>").nth(1).unwrap();
    rest.split("</code>").next().unwrap().to_owned()
}

#[tokio::test]
async fn an_account_of_the_console_is_one_of_the_command_line_and_may_request_calls() {
    let mut desk = Desk::open().await;
    let added = desk.sends("/accounts", &[("name", "City Hospital")]).await;
    assert_eq!(added.status, 200, "{}", added.body);
    let new: AccountSid = shown_secret(&added.body, "Account sid").parse().unwrap();
    let token = shown_secret(&added.body, "Auth token");
    let account = desk.verbs.account(&new).await.unwrap();
    assert_eq!(account.name, "City Hospital");
    assert_eq!(account.auth_token.reveal(), token);
    let listed = desk.admin.get("/accounts?find=city").await.body;
    assert!(listed.contains(&format!("href=\"/accounts/{new}\"")));
    assert!(!listed.contains(SID), "only what was looked for");
    let page = desk.admin.get(&format!("/accounts/{new}")).await.body;
    assert!(page.contains("City Hospital") && !page.contains(&token));
    assert!(page.contains("without an application cannot request calls"));

    let apps = format!("/accounts/{new}/apps");
    let signed = [("name", "Reminders"), ("sign-callbacks", "yes")];
    let answer = desk.sends(&apps, &signed).await;
    let secret = shown_secret(&answer.body, "Callback secret");
    assert!(secret.starts_with("whsec_"));
    let plain = desk.sends(&apps, &[("name", "")]).await;
    assert_eq!(plain.status, 303);
    let known = desk.verbs.applications(&new).await.unwrap();
    let names: Vec<_> = known.iter().map(|app| app.name.as_str()).collect();
    assert!(names.contains(&"Reminders") && names.contains(&"unnamed"));
    let page = desk.admin.get(plain.header("location")).await.body;
    assert!(page.contains("The application is added.") && page.contains("City Hospital"));

    let app = known.iter().find(|app| app.callback_secret.is_some());
    let again = format!("/apps/{}/secret", app.unwrap().id);
    let fresh = shown_secret(&desk.sends(&again, &[]).await.body, "Callback secret");
    assert!(fresh.starts_with("whsec_") && fresh != secret);
    let stored = desk.verbs.application(&app.unwrap().id).await.unwrap();
    assert_eq!(stored.callback_secret.unwrap().reveal(), fresh);
    let trail = desk.admin.get("/audit").await.body;
    assert!(trail.contains("app rotate-secret") && !trail.contains(&fresh));
    let body = format!(
        "{{\"appId\":\"{}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}",
        app.unwrap().id
    );
    let credentials = ApiCredentials {
        sid: new,
        token: token.parse().unwrap(),
    };
    let answer = asked(&desk.server, &credentials, &body).await;
    assert_eq!(status_code(&answer), "000000", "{answer}");
    for entry in desk.noted().await {
        assert_eq!(entry.actor.operator.as_deref(), Some("admin"));
        assert!(!entry.detail.contains(&token) && !entry.detail.contains(&secret));
    }
}

/// The answer to a request of a call.
async fn asked(server: &TestServer, credentials: &ApiCredentials, body: &str) -> String {
    let mut connection = server.client().connect().await.unwrap();
    let signature = credentials.sign(&server.clock.wall());
    let (operation, json) = ("Calls/LandingCalls", "application/json");
    let body = Some(body.to_owned());
    let answer = connection.operation(credentials, &signature, operation, json, body);
    answer.await.unwrap()
}

#[tokio::test]
async fn an_account_keeps_the_sid_and_token_that_it_brings_and_no_other_gets_them() {
    let mut desk = Desk::open().await;
    let (sid, token) = ("a".repeat(32), "b".repeat(32));
    let brought = [("name", "Old"), ("sid", &*sid), ("auth-token", &*token)];
    let added = desk.sends("/accounts", &brought).await;
    assert_eq!(shown_secret(&added.body, "Auth token"), token);
    let again = desk.sends("/accounts", &brought).await;
    assert_eq!(again.status, 409);
    assert!(again.body.contains("exists already") && again.body.contains(&sid));
    assert!(!again.body.contains(&token), "a secret is typed anew");
    let wrong = [("name", "<Old>"), ("sid", "x")];
    let answer = desk.sends("/accounts", &wrong).await;
    assert_eq!(answer.status, 422);
    assert!(
        answer
            .body
            .contains("Account sid: an account sid must be 32 letters or digits")
    );
    assert!(
        answer.body.contains("value=\"&#60;Old&#62;\""),
        "it is kept"
    );
    assert_eq!(desk.verbs.accounts().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_wrong_setting_names_field_and_rule_and_changes_nothing() {
    let mut desk = Desk::open().await;
    let before = desk.verbs.account(&sid()).await.unwrap();
    for (field, text, said, in_chinese) in [
        (
            "calls-at-once",
            "7 or so",
            "Calls at once must be a whole number from 1 to 1000000.",
            "“并发呼叫数”应为 1 到 1000000 之间的整数。",
        ),
        (
            "call-hours",
            "at night",
            "Calls are made: `at night` is no window",
            "“允许呼叫的时段”填写有误：",
        ),
        (
            "allow-ips",
            " , ",
            "Addresses of requests has nothing between its commas.",
            "“IP 白名单”的逗号之间没有内容",
        ),
        (
            "state",
            "asleep",
            "State: choose one of those that are offered.",
            "“状态”只能从选项中选择。",
        ),
        (
            "balance",
            "much",
            "Balance: `much` is not an amount",
            "“余额”填写有误：",
        ),
    ] {
        let fields = [("name", "New name"), (field, text)];
        let answer = desk.sends(&path(""), &fields).await;
        assert_eq!(answer.status, 422, "{field}");
        assert!(answer.body.contains(said), "{said}: {}", answer.body);
        assert!(answer.body.contains("role=\"alert\""));
        assert!(answer.body.contains("value=\"New name\""), "it is kept");
        if field != "state" {
            let kept = format!(" value=\"{text}\"");
            assert!(answer.body.contains(&kept), "{field} is kept");
            let marked = format!(
                "name=\"{field}\" aria-describedby=\"settings-{field}-hint\" aria-invalid=\"true\""
            );
            assert!(answer.body.contains(&marked), "{field}");
        }
        desk.admin.language = "zh";
        let answer = desk.sends(&path(""), &fields).await;
        assert!(answer.body.contains(in_chinese), "{}", answer.body);
        desk.admin.language = "en";
    }
    assert_eq!(desk.verbs.account(&sid()).await.unwrap(), before);
    assert!(desk.noted().await.is_empty(), "nothing was tried");
}

#[tokio::test]
async fn what_was_changed_on_the_form_is_changed_and_nothing_else() {
    let mut desk = Desk::open().await;
    // The name has what a page can only show by its name; somebody else sets a limit meanwhile.
    let odd = "A\u{202e}B\u{1b}";
    let named = AccountChange::from_texts([("name", odd), ("calls-at-once", "9")]);
    desk.server.change_account(named.unwrap()).await;
    let fields = [
        ("name", "A⟨U+202E⟩B␛"),
        ("was-name", "A⟨U+202E⟩B␛"),
        ("calls-at-once", "3"),
        ("was-calls-at-once", "3"),
        ("requests-at-once", ""),
        ("was-requests-at-once", ""),
        ("call-hours", "1-5 0800-2100"),
        ("was-call-hours", ""),
        ("bill-download", "on"),
        ("was-bill-download", "off"),
    ];
    let answer = desk.sends(&path(""), &fields).await;
    assert!(answer.leads_to(&path("?done=saved")), "{}", answer.body);
    let account = desk.verbs.account(&sid()).await.unwrap();
    assert_eq!(account.name, odd);
    assert_eq!(account.limits.calls_at_once, Some(9));
    assert!(account.permissions.bill_download && account.call_hours.is_some());
    let noted = desk.noted().await;
    assert_eq!(noted.len(), 1);
    let line = format!("account set {SID} --bill-download on --call-hours \"1,2,3,4,5 0800-2100\"");
    assert_eq!(noted[0].detail, line);
    // Left empty, a value is taken away.
    let fields = [("call-hours", ""), ("was-call-hours", "x")];
    desk.sends(&path(""), &fields).await;
    let account = desk.verbs.account(&sid()).await.unwrap();
    assert_eq!(account.call_hours, None);
    let answer = desk
        .sends(&path(""), &[("name", "x"), ("was-name", "x")])
        .await;
    assert!(answer.leads_to(&path("?done=unchanged")));
    assert_eq!(desk.noted().await.len(), 2);

    let secret = format!("whsec_{}", "A".repeat(32));
    let app = format!("/apps/{APP}");
    let fields = [("callback-secret", &*secret), ("calls-per-second", "4")];
    let answer = desk.sends(&app, &fields).await;
    assert!(answer.leads_to(&format!("{app}?done=saved")));
    let page = desk.admin.get(&app).await.body;
    assert!(!page.contains(&secret) && page.contains(" value=\"4\""));
    let wrong = [("callback-secret", "whsec_short")];
    let answer = desk.sends(&app, &wrong).await;
    assert_eq!(answer.status, 422);
    assert!(
        answer
            .body
            .contains("Callback secret: a callback secret is")
    );
    assert!(!answer.body.contains("whsec_short"));
    let application = desk.verbs.application(&APP.parse().unwrap()).await.unwrap();
    assert_eq!(application.callback_secret.unwrap().reveal(), secret);
    assert!(
        desk.noted()
            .await
            .iter()
            .all(|one| !one.detail.contains(&secret))
    );
}

#[tokio::test]
async fn an_account_is_suspended_and_resumed_and_has_rates() {
    let mut desk = Desk::open().await;
    let answer = desk.sends(&path("/suspend"), &[("hang-up", "yes")]).await;
    assert!(answer.leads_to(&path("?done=suspended-hung-up")));
    let account = desk.verbs.account(&sid()).await.unwrap();
    assert_eq!(account.state, AccountState::Suspended);
    let page = desk.admin.get(&path("?done=suspended-hung-up")).await.body;
    assert!(page.contains("its calls are being hung up") && page.contains("/resume\""));
    let answer = desk.sends(&path("/resume"), &[]).await;
    assert!(answer.leads_to(&path("?done=resumed")));
    let rate = [
        ("prefix", "+86138"),
        ("price", "0.055"),
        ("unit", "60"),
        ("unanswered", "0"),
    ];
    let answer = desk.sends(&path("/rates"), &rate).await;
    assert!(answer.leads_to(&path("?done=rate-set")), "{}", answer.body);
    let rates = desk.verbs.rates(Some(&sid())).await.unwrap();
    assert_eq!(
        (rates.len(), rates[0].price.to_string()),
        (1, "0.055".into())
    );
    assert!(desk.admin.get(&path("")).await.body.contains("+86138"));
    let dear = [
        ("prefix", "*"),
        ("price", "0.1"),
        ("unit", "0"),
        ("unanswered", "0"),
    ];
    let answer = desk.sends(&path("/rates"), &dear).await;
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("a unit has 1 to 86400 seconds"));
    let wrong = [
        ("prefix", "x"),
        ("price", "0.1"),
        ("unit", "60"),
        ("unanswered", "0"),
    ];
    let answer = desk.sends(&path("/rates"), &wrong).await;
    assert!(answer.body.contains("Prefix: `x` is not a prefix"));
    let answer = desk
        .sends(&path("/rates/remove"), &[("prefix", "+86138")])
        .await;
    assert!(answer.leads_to(&path("?done=rate-removed")));
    assert!(desk.verbs.rates(Some(&sid())).await.unwrap().is_empty());
    let noted = desk.noted().await;
    let told: Vec<_> = noted.iter().map(|entry| entry.detail.as_str()).collect();
    assert!(told.contains(&&*format!("account suspend {SID} --hang-up")));
    assert!(told.contains(&&*format!("account set {SID} --state active")));
}

#[tokio::test]
async fn a_list_is_written_one_number_a_line_and_read_as_the_command_line_reads_it() {
    let mut desk = Desk::open().await;
    let numbers = "13800000000=Li Wei\r\n\r\n 13800000001 \r\n";
    let list = [("name", "night"), ("numbers", numbers)];
    let answer = desk.sends(&path("/lists"), &list).await;
    assert!(
        answer.leads_to(&path("/lists?done=list-added")),
        "{}",
        answer.body
    );
    let known = desk
        .verbs
        .list(&sid(), &"night".parse().unwrap())
        .await
        .unwrap();
    let written: Vec<_> = known.numbers.iter().map(ToString::to_string).collect();
    assert_eq!(written, ["13800000000=Li Wei", "13800000001"]);
    let page = desk.admin.get(&path("/lists")).await.body;
    assert!(page.contains("@night") && page.contains("13800000000=Li Wei\n13800000001</textarea>"));
    let again = desk.sends(&path("/lists"), &list).await;
    assert_eq!(again.status, 409);
    assert!(again.body.contains("exists already"));
    for (name, numbers, said) in [
        (
            "night shift",
            "13800000000",
            "Name of the list: the name of a list must be",
        ),
        ("day", "", "a list must have 1 to 20 numbers, but has 0"),
        ("day", "13800000000\n138", "number &#34;138&#34;"),
    ] {
        let fields = [("name", name), ("numbers", numbers)];
        let answer = desk.sends(&path("/lists"), &fields).await;
        assert_eq!(answer.status, 422);
        assert!(answer.body.contains(said), "{said}: {}", answer.body);
        assert!(answer.body.contains(&format!("value=\"{name}\"")));
    }
    let wrong = [("name", "night"), ("numbers", "nobody")];
    let answer = desk.sends(&path("/lists/set"), &wrong).await;
    assert_eq!(answer.status, 422);
    assert!(
        answer
            .body
            .contains("<details id=\"edit-list-night\" open>")
    );
    assert!(answer.body.contains("nobody</textarea>"), "it is kept");
    let right = [("name", "night"), ("numbers", "13800000002=王芳")];
    let answer = desk.sends(&path("/lists/set"), &right).await;
    assert!(answer.leads_to(&path("/lists?done=list-set")));
    let known = desk.verbs.lists(&sid()).await.unwrap();
    assert_eq!(known[0].numbers[0].person.as_deref(), Some("王芳"));
    let answer = desk
        .sends(&path("/lists/remove"), &[("name", "night")])
        .await;
    assert!(answer.leads_to(&path("/lists?done=list-removed")));
    assert!(desk.verbs.lists(&sid()).await.unwrap().is_empty());
}

#[tokio::test]
async fn numbers_are_put_on_the_do_not_call_list_looked_up_paged_exported_and_taken_off() {
    let mut desk = Desk::open().await;
    let list = path("/do-not-call");
    let answer = desk.sends(&list, &[("number", "13800000000")]).await;
    assert!(answer.leads_to(&path("/do-not-call?done=number-added")));
    let answer = desk.sends(&list, &[("number", "+8613800000000")]).await;
    assert!(answer.leads_to(&path("/do-not-call?done=unchanged")));
    let answer = desk.sends(&list, &[("number", "138")]).await;
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("value=\"138\""), "it is kept");
    let lines: Vec<_> = (0..60).map(|last| format!("138000001{last:02}")).collect();
    let pasted = format!("{}\r\n\r\n01052823298-7\r\nnobody\r\n", lines.join("\r\n"));
    let import = path("/do-not-call/import");
    let answer = desk.sends(&import, &[("numbers", &*pasted)]).await;
    assert_eq!(answer.status, 422);
    for said in [
        "60 added, 0 there already; 2 lines have no number for the list:",
        "Line 62: the number must have no extension",
        "Line 63: ",
        "nobody\n</textarea>",
    ] {
        assert!(answer.body.contains(said), "{said}: {}", answer.body);
    }
    let answer = desk
        .sends(&import, &[("numbers", &*lines.join("\n"))])
        .await;
    assert!(answer.leads_to(&path("/do-not-call?done=imported")));
    let known = desk
        .verbs
        .do_not_call_page(&sid(), None, 100)
        .await
        .unwrap();
    assert_eq!(known.len(), 61);

    let first = desk.admin.get(&list).await.body;
    assert!(first.contains("+8613800000000") && first.contains("+8613800000148"));
    assert!(!first.contains("+8613800000149"), "fifty a page");
    let next = path("/do-not-call?after=%2B8613800000148");
    assert!(first.contains(&next) && first.contains("rel=\"next\""));
    let second = desk.admin.get(&next).await.body;
    assert!(second.contains("+8613800000149") && second.contains("+8613800000159"));
    assert!(!second.contains("rel=\"next\""));
    let found = desk
        .admin
        .get(&path("/do-not-call?number=13800000107"))
        .await
        .body;
    assert!(found.contains("+8613800000107 is on the list.") && found.contains("an import"));
    let missing = desk
        .admin
        .get(&path("/do-not-call?number=13900000000"))
        .await
        .body;
    assert!(missing.contains("+8613900000000 is not on the list."));
    let wrong = desk.admin.get(&path("/do-not-call?number=x")).await;
    assert_eq!(wrong.status, 422);

    let file = desk.admin.get(&path("/do-not-call.txt")).await;
    assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    assert!(file.header("content-disposition").starts_with("attachment"));
    let listed: Vec<_> = file.body.lines().collect();
    let known: Vec<_> = known
        .iter()
        .map(|entry| format!("+{}", entry.digits))
        .collect();
    assert_eq!(listed, known);
    let remove = path("/do-not-call/remove");
    let answer = desk.sends(&remove, &[("number", "+8613800000000")]).await;
    assert!(answer.leads_to(&path("/do-not-call?done=number-removed")));
    let known = desk
        .verbs
        .look_up_do_not_call(&sid(), "13800000000")
        .await
        .unwrap();
    assert_eq!(known.entry, None);
}

#[tokio::test]
async fn a_viewer_sees_settings_and_lists_and_is_offered_no_form() {
    let mut desk = Desk::open().await;
    desk.sends(
        &path("/lists"),
        &[("name", "night"), ("numbers", "13800000000")],
    )
    .await;
    desk.sends(&path("/do-not-call"), &[("number", "13800000000")])
        .await;
    let mut viewer = Visitor::signed_in(&desk.server, "viewer").await;
    for (page, wanted) in [
        ("/accounts".to_owned(), SID),
        (path(""), "the platform’s default"),
        (format!("/apps/{APP}"), "Callback secret"),
        (path("/lists"), "@night"),
        (path("/do-not-call"), "+8613800000000"),
    ] {
        let body = viewer.get(&page).await.body;
        assert!(body.contains(wanted), "{page}");
        let forms = body.matches("method=\"post\"").count();
        assert_eq!(forms, 1, "{page}: nothing but the sign-out");
    }
    for missing in [
        format!("/accounts/{}", "f".repeat(32)),
        format!("/accounts/{}/lists", "f".repeat(32)),
        format!("/accounts/{}/do-not-call", "f".repeat(32)),
        format!("/accounts/{}/do-not-call.txt", "f".repeat(32)),
        format!("/apps/{}", "f".repeat(32)),
        "/accounts/x".to_owned(),
    ] {
        assert_eq!(viewer.get(&missing).await.status, 404, "{missing}");
    }
}

/// A server of its own, whose whole log is kept: the new token is in the answer and nowhere else.
#[tokio::test]
async fn a_new_token_is_shown_once_works_and_is_in_no_log_trail_or_address() {
    let installation = Installation::new(None).await;
    let (port, log) = (free_port(), installation.folder.path().join("log"));
    let (file, listen) = (
        std::fs::File::create(&log).unwrap(),
        format!("[\"127.0.0.1:{port}\"]"),
    );
    let server = installation
        .start_by(|serve| {
            let serve = serve.stderr(file).env("CLARION_CONSOLE__LISTEN", listen);
            serve.env("CLARION_LOG__FILTER", "trace")
        })
        .await;
    let add = [
        "operator",
        "add",
        "admin",
        "--role",
        "admin",
        "--password",
        PASSWORD,
    ];
    installation.says(&add).await;
    let mut admin = Visitor::at(Door {
        address: ([127, 0, 0, 1], port).into(),
        ca: server.door.ca.clone(),
    });
    assert!(admin.sign_in("admin", PASSWORD).await.leads_to("/"));
    let form_token = admin.token().await;
    let answer = admin.post(&path("/token"), &[("token", &form_token)]).await;
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, "no-store")
    );
    let fresh = shown_secret(&answer.body, "Auth token");
    assert_eq!(answer.body.matches(&fresh).count(), 1, "once");
    assert!(!admin.get(&path("")).await.body.contains(&fresh));
    assert_eq!(
        admin.get(&path("/token")).await.status,
        405,
        "nothing to come back to"
    );

    let client = &server.client;
    let code = async |token: &str| {
        let credentials = ApiCredentials {
            sid: sid(),
            token: token.parse().unwrap(),
        };
        let signature = credentials.sign(&clock().wall());
        let mut connection = client.connect().await.unwrap();
        let (operation, json) = ("AccountInfo", "application/json");
        let answer = connection.operation(&credentials, &signature, operation, json, None);
        status_code(&answer.await.unwrap()).to_owned()
    };
    eventually("the old token is refused", async || {
        code(TOKEN).await != "000000"
    })
    .await;
    assert_eq!(code(&fresh).await, "000000");
    let trail = installation.says(&["audit"]).await;
    assert!(
        trail.contains(&format!("account rotate-token {SID}")),
        "{trail}"
    );
    assert!(!trail.contains(&fresh));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.len() > 1000 && !log.contains(&fresh), "the log has it");
}
