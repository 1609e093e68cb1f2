//! Signing in and out: who guesses is locked out, who is gone is signed out, and nobody learns which names there are.

use clarion::domain::operator::{OperatorChange, OperatorRole};
use clarion::passwords;
use jiff::SignedDuration;

use super::visitor::Visitor;
use super::{PASSWORD, add_operator, add_operators};
use crate::support::{TestServer, eventually, execute};

async fn server(settings: &str) -> TestServer {
    TestServer::start_prepared(settings, async |store, clock| {
        add_operators(store, clock).await;
    })
    .await
}

#[tokio::test]
async fn without_an_operator_the_console_shows_how_to_add_one_and_nothing_else() {
    let server = TestServer::start().await;
    let mut visitor = Visitor::new(&server);
    for path in ["/", "/calls", "/audit", "/calls.csv"] {
        assert!(visitor.get(path).await.leads_to_sign_in(), "{path}");
    }
    let page = visitor.get("/sign-in").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("clarion operator add li --role admin"));
    assert!(!page.body.contains("password\" type"), "there is no form");
    let refused = visitor.sign_in("admin", PASSWORD).await;
    assert_eq!(refused.status, 403);
    // As soon as there is one.
    add_operator(&*server.store, &server.clock, OperatorRole::Viewer).await;
    let page = visitor.get("/sign-in").await.body;
    assert!(page.contains("type=\"password\""));
    assert!(visitor.sign_in("viewer", PASSWORD).await.leads_to("/"));
}

#[tokio::test]
async fn a_sign_in_is_kept_by_a_cookie_of_this_host_alone_and_ends_when_it_is_ended() {
    let server = server("").await;
    let mut visitor = Visitor::new(&server);
    let answer = visitor.sign_in("admin", PASSWORD).await;
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("__Host-clarion="), "{cookie}");
    for wanted in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Secure"] {
        assert!(cookie.contains(wanted), "{cookie}");
    }
    assert!(!cookie.contains("Domain"));
    assert_eq!(visitor.get("/").await.status, 200);
    let (kept, token) = (visitor.cookies.clone(), visitor.token().await);
    // Signing in again makes a new one, and the one before ends.
    visitor.sign_in("admin", PASSWORD).await;
    assert_ne!(visitor.cookies, kept);
    assert_ne!(visitor.token().await, token);
    let (again, token) = (visitor.cookies.clone(), visitor.token().await);
    visitor.cookies = kept;
    assert!(visitor.get("/").await.leads_to_sign_in());
    visitor.cookies = again.clone();
    let answer = visitor.post("/sign-out", &[("token", &token)]).await;
    assert!(answer.leads_to("/sign-in"));
    assert!(visitor.cookies.is_empty(), "the browser forgets it");
    visitor.cookies = again;
    assert!(
        visitor.get("/").await.leads_to_sign_in(),
        "and so does the server"
    );
}

#[tokio::test]
async fn whoever_signs_in_comes_to_where_they_wanted_and_to_no_other_server() {
    let server = server("").await;
    let mut visitor = Visitor::new(&server);
    let answer = visitor.get("/calls?account=a&which=alive").await;
    let place = answer.header("location").to_owned();
    assert_eq!(
        place,
        "/sign-in?next=%2Fcalls%3Faccount%3Da%26which%3Dalive"
    );
    let page = visitor.get(&place).await.body;
    assert!(page.contains("name=\"next\" value=\"/calls?account=a&#38;which=alive\""));
    for (next, wanted) in [
        ("/calls?account=a", "/calls?account=a"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
    ] {
        let fields = [("name", "admin"), ("password", PASSWORD), ("next", next)];
        let answer = visitor.post("/sign-in", &fields).await;
        assert!(answer.leads_to(wanted), "{next}");
    }
    let answer = visitor.get("/language/zh?back=//evil.example").await;
    assert!(answer.leads_to("/"));
}

#[tokio::test]
async fn a_name_is_locked_out_whatever_password_comes_then() {
    let server = server("[console]\nfailures_of_name = 3\n").await;
    let mut visitor = Visitor::new(&server);
    for name in ["admin", "nobody"] {
        for _ in 0..3 {
            let wrong = visitor.sign_in(name, "wrong password").await;
            assert_eq!(wrong.status, 403);
            assert!(wrong.body.contains("Name or password is wrong."));
        }
        let locked = visitor.sign_in(name, PASSWORD).await;
        assert_eq!(locked.status, 429, "{name}");
        assert!(locked.body.contains("Too many wrong passwords."));
        assert!(!locked.header("retry-after").is_empty());
        assert!(visitor.cookies.is_empty());
    }
    assert!(visitor.sign_in("viewer", PASSWORD).await.leads_to("/"));
}

#[tokio::test]
async fn a_password_that_nobody_looked_at_is_no_failure() {
    let server = server("[console]\nfailures_of_name = 3\nfailures_of_address = 4\n").await;
    let mut visitor = Visitor::new(&server);
    execute(&server.database, "ALTER TABLE operators RENAME TO gone").await;
    for _ in 0..6 {
        assert_eq!(visitor.sign_in("admin", PASSWORD).await.status, 503);
    }
    execute(&server.database, "ALTER TABLE gone RENAME TO operators").await;
    assert!(visitor.sign_in("admin", PASSWORD).await.leads_to("/"));
    // A name that is locked costs its address nothing.
    for _ in 0..3 {
        let wrong = visitor.sign_in("nobody", "wrong password").await;
        assert_eq!(wrong.status, 403);
    }
    for _ in 0..6 {
        assert_eq!(visitor.sign_in("nobody", PASSWORD).await.status, 429);
    }
    assert!(visitor.sign_in("viewer", PASSWORD).await.leads_to("/"));
}

#[tokio::test]
async fn an_address_is_locked_out_and_let_in_again_after_a_while() {
    let settings = "[console]\nfailures_of_name = 100\nfailures_of_address = 3\nlock_seconds = 1\n";
    let server = server(settings).await;
    let mut visitor = Visitor::new(&server);
    // On a slow machine a lock may be over before it is seen; then another one follows.
    eventually("the address is locked", async || {
        visitor.sign_in("somebody", "wrong password").await.status == 429
    })
    .await;
    eventually("the address is free", async || {
        visitor.sign_in("admin", PASSWORD).await.leads_to("/")
    })
    .await;
}

#[tokio::test]
async fn a_new_password_or_the_end_of_an_operator_ends_its_sign_ins() {
    let server = server("").await;
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    let name = "admin".parse().unwrap();
    let renewed = OperatorChange {
        role: None,
        password: Some(passwords::hash(&"another password".parse().unwrap())),
        at: server.clock.now(),
    };
    server.store.change_operator(&name, renewed).await.unwrap();
    assert!(admin.get("/").await.leads_to_sign_in());
    assert_eq!(admin.sign_in("admin", PASSWORD).await.status, 403);
    assert!(
        admin
            .sign_in("admin", "another password")
            .await
            .leads_to("/")
    );
    assert_eq!(viewer.get("/").await.status, 200);
    let name = "viewer".parse().unwrap();
    server.store.remove_operator(&name).await.unwrap();
    assert!(viewer.get("/").await.leads_to_sign_in());
}

#[tokio::test]
async fn who_does_nothing_for_an_hour_or_stays_for_half_a_day_signs_in_again() {
    let server = server("").await;
    let mut visitor = Visitor::signed_in(&server, "admin").await;
    let later = |minutes| server.clock.shift(SignedDuration::from_mins(minutes));
    for _ in 0..11 {
        later(59);
        assert_eq!(visitor.get("/").await.status, 200);
    }
    later(59);
    assert_eq!(visitor.get("/audit").await.status, 200);
    later(59);
    assert!(
        visitor.get("/").await.leads_to_sign_in(),
        "twelve hours are over"
    );
    let mut visitor = Visitor::signed_in(&server, "admin").await;
    later(61);
    assert!(
        visitor.get("/").await.leads_to_sign_in(),
        "an hour without a request"
    );
}

#[tokio::test]
async fn the_language_is_that_of_the_browser_until_somebody_chooses() {
    let server = server("").await;
    let mut visitor = Visitor::new(&server);
    visitor.language = "zh-CN,zh;q=0.9,en;q=0.5";
    let page = visitor.get("/sign-in").await.body;
    assert!(page.contains("<html lang=\"zh-CN\">") && page.contains("登录"));
    let back = visitor.get("/language/en?back=%2Fsign-in").await;
    assert!(back.leads_to("/sign-in"));
    let page = visitor.get("/sign-in").await.body;
    assert!(page.contains("<html lang=\"en\">") && page.contains("Sign in"));
}
