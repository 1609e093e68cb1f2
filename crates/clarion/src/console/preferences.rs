//! What a browser remembers about how its operator likes the console: the language.

use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};

use super::cookies;
use super::language::{self, PageLanguage};
use super::local_address::is_local;
use super::refusal::Refused;
use super::visit::Visit;

/// Chooses a language, and goes back to where the operator was.
pub fn choose_language(visit: &Visit) -> Result<Response, Refused> {
    let chosen = PageLanguage::by_code(visit.path_value("code")).ok_or(Refused::NotFound)?;
    let back = visit.query("back").filter(|address| is_local(address));
    let cookie = cookies::remembered(language::COOKIE, chosen.code(), visit.is_secure);
    let back = Redirect::to(back.as_deref().unwrap_or("/"));
    Ok(([(SET_COOKIE, cookie)], back).into_response())
}
