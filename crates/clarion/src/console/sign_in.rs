//! Signing in and out. A wrong password, an unknown name and a name that cannot be one take the same time and get the same answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{RETRY_AFTER, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::SignedDuration;
use tokio::sync::Semaphore;

use super::guard::hash_of;
use super::local_address::{is_local, sign_in_address};
use super::page::{Frame, MenuPlace, html, html_with};
use super::refusal::Refused;
use super::visit::Visit;
use super::words::fill;
use super::{Console, cookies, times};
use crate::domain::operator::{Operator, OperatorName, PasswordDigest, SignIn};
use crate::{passwords, random};

/// Passwords that are verified at once: each takes a core, and megabytes, for tens of milliseconds.
const VERIFIED_AT_ONCE: usize = 2;
/// Whoever comes behind so many others is asked to come later.
const WAITING: usize = 16;

/// The right to have a password verified.
#[derive(Debug)]
pub struct VerifyingPlaces {
    waiting: Semaphore,
    verifying: Semaphore,
}

impl Default for VerifyingPlaces {
    fn default() -> Self {
        Self {
            waiting: Semaphore::new(WAITING),
            verifying: Semaphore::new(VERIFIED_AT_ONCE),
        }
    }
}

impl VerifyingPlaces {
    /// Whether it is the password of the operator; `None` if too many others wait.
    async fn verify(&self, password: String, kept: Option<PasswordDigest>) -> Option<bool> {
        let _waiting = self.waiting.try_acquire().ok()?;
        let _verifying = self.verifying.acquire().await.ok()?;
        let verify = move || passwords::verify(&password, kept.as_ref());
        tokio::task::spawn_blocking(verify).await.ok()
    }
}

#[derive(Template)]
#[template(path = "console/sign_in.html")]
struct SignInPage {
    frame: Frame,
    /// Where to go on.
    next: String,
    name: String,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "console/nobody.html")]
struct NobodyPage {
    frame: Frame,
}

impl SignInPage {
    fn new(console: &Console, visit: &Visit) -> Self {
        let words = visit.language.words();
        let next = visit.given("next").map(str::to_owned);
        let next = next.or_else(|| visit.query("next")).unwrap_or_default();
        let frame = Frame::new(console, visit, MenuPlace::Nowhere, words.sign_in);
        Self {
            frame: frame.at(sign_in_address(&next)),
            next,
            name: String::new(),
            problem: None,
        }
    }
}

/// The form, or where to begin if there is nobody who could sign in.
pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    if visit.operator.is_some() {
        return Ok(Redirect::to("/").into_response());
    }
    if console.management.operators().await?.is_empty() {
        let title = visit.language.words().nobody_title;
        let frame = Frame::new(&console, &visit, MenuPlace::Nowhere, title);
        return Ok(html(&NobodyPage { frame }));
    }
    Ok(html(&SignInPage::new(&console, &visit)))
}

pub async fn create(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (name, now) = (visit.field("name"), Instant::now());
    // What cannot be a name is one and the same stranger.
    let parsed: Option<OperatorName> = name.trim().parse().ok();
    let counted = parsed.as_ref().map_or("", OperatorName::as_str);
    // Until the password was looked at, whatever goes wrong is no failure of whoever gave it.
    let tried = match console.lockout.enter(counted, visit.address, now) {
        Ok(tried) => tried,
        Err(wait) => return Ok(locked(&console, &visit, wait)),
    };
    let operator = match &parsed {
        Some(name) => console.management.operator(name).await?,
        None => None,
    };
    let kept = operator.as_ref().map(|operator| operator.password.clone());
    let password = visit.field("password").to_owned();
    let is_right = console.verifying.verify(password, kept).await;
    let words = visit.language.words();
    match (is_right, operator) {
        (Some(true), Some(operator)) => {
            tried.succeeded();
            welcome(&console, &visit, &operator).await
        }
        (Some(_), _) => {
            tried.failed();
            tracing::warn!(target: "clarion::login", address = %visit.address, "wrong password");
            let problem = words.sign_in_wrong.to_owned();
            Ok(again(&console, &visit, StatusCode::FORBIDDEN, problem))
        }
        (None, _) => {
            let problem = words.sign_in_busy.to_owned();
            Ok(again(
                &console,
                &visit,
                StatusCode::TOO_MANY_REQUESTS,
                problem,
            ))
        }
    }
}

/// A new sign-in. The one that the browser had before ends.
async fn welcome(
    console: &Console,
    visit: &Visit,
    operator: &Operator,
) -> Result<Response, Refused> {
    let (id, now) = (hex::encode(random::bytes::<32>()), console.clock.now());
    let sign_in = SignIn {
        id_hash: hash_of(&id),
        operator: operator.name.clone(),
        generation: operator.generation,
        form_token: hex::encode(random::bytes::<32>()),
        address: visit.address.to_string(),
        created_at: now,
        seen_at: now,
        expires_at: console.expiry(now, now),
    };
    if let Some(before) = &visit.operator {
        console.management.end_sign_in(&before.id_hash).await?;
    }
    console.management.add_sign_in(sign_in).await?;
    tracing::info!(operator = %operator.name, address = %visit.address, "an operator has signed in");
    let next = Some(visit.field("next")).filter(|next| is_local(next));
    let cookie = cookies::sign_in(&id, visit.is_secure);
    let onwards = Redirect::to(next.unwrap_or("/"));
    Ok(([(SET_COOKIE, cookie)], onwards).into_response())
}

fn locked(console: &Console, visit: &Visit, wait: Duration) -> Response {
    let words = visit.language.words();
    // At least a second, so that nobody is told to come back at once and refused again.
    let seconds = wait.as_secs().max(1);
    let time = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    let time = times::lasting(time, words);
    let problem = fill(words.sign_in_locked, &[("time", &time)]);
    let page = again(console, visit, StatusCode::TOO_MANY_REQUESTS, problem);
    ([(RETRY_AFTER, seconds.to_string())], page).into_response()
}

/// The form once more. The password is typed anew.
fn again(console: &Console, visit: &Visit, status: StatusCode, problem: String) -> Response {
    let page = SignInPage {
        name: visit.field("name").to_owned(),
        problem: Some(problem),
        ..SignInPage::new(console, visit)
    };
    html_with(status, &page)
}

pub async fn end(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    if let Some(operator) = &visit.operator {
        console.management.end_sign_in(&operator.id_hash).await?;
    }
    let cookie = cookies::no_sign_in(visit.is_secure);
    Ok(([(SET_COOKIE, cookie)], Redirect::to("/sign-in")).into_response())
}
