//! Why a request was not answered as it wished, and the page that says so.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded;

use super::Console;
use super::events;
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html_with};
use super::sentence::Sentence;
use super::words::Words;
use crate::domain::wording::Wording;
use crate::management::ManagementError;

/// Addresses that lead somewhere after the sign-in are no longer than this.
const LONGEST_ADDRESS: usize = 2000;

#[derive(Debug)]
pub enum Refused {
    NotSignedIn,
    NotAllowed,
    WrongToken,
    ForeignOrigin,
    BadForm,
    NotFound,
    /// Too many at once.
    Busy,
    /// A file is larger than files may be, or there are too many.
    TooLarge,
    /// What was wanted cannot be done, and why.
    Conflict(Wording),
    /// The store could not be asked.
    Failed(String),
}

impl From<ManagementError> for Refused {
    fn from(error: ManagementError) -> Self {
        if error.is_missing() {
            return Self::NotFound;
        }
        if error.is_refusal() {
            return Self::Conflict(error.wording());
        }
        Self::Failed(error.to_string())
    }
}

impl Refused {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::NotAllowed | Self::WrongToken | Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::BadForm => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Strangers are not told what the database says.
    fn sentence(&self, words: &Words, is_signed_in: bool) -> Sentence {
        let because = |text: &str, said: &Wording| Sentence::with_wording(words, text, &[], said);
        let text = match self {
            Self::NotSignedIn => words.refused_not_signed_in,
            Self::NotAllowed => words.refused_not_allowed,
            Self::WrongToken => words.refused_token,
            Self::ForeignOrigin => words.refused_origin,
            Self::BadForm => words.refused_form,
            Self::NotFound => words.refused_not_found,
            Self::Busy => words.refused_busy,
            Self::TooLarge => words.refused_too_large,
            Self::Conflict(said) => return because(words.refused_conflict, said),
            Self::Failed(said) if is_signed_in => {
                let text = format!("{} {{why}}", words.refused_failed);
                return because(&text, &Wording::quoting(said));
            }
            Self::Failed(_) => words.refused_failed,
        };
        text.into()
    }
}

#[derive(Template)]
#[template(path = "console/refusal.html")]
struct RefusalPage {
    frame: Frame,
    sentence: Sentence,
}

/// The answer to a request that is refused. Whoever is not signed in is led to the page where that is done; who looks at a live page is told.
pub fn refuse(console: &Console, visit: &Visit, refused: &Refused) -> Response {
    if matches!(refused, Refused::NotSignedIn) {
        let path = visit.parts.uri.path();
        return if path.starts_with("/events/") {
            events::signed_out()
        } else {
            Redirect::to(&sign_in_address(&wanted(visit))).into_response()
        };
    }
    if let Refused::Failed(error) = refused {
        tracing::warn!(error, "the console could not answer");
    }
    let words = visit.language.words();
    let page = RefusalPage {
        sentence: refused.sentence(words, visit.operator.is_some()),
        frame: Frame::new(console, visit, MenuPlace::Nowhere, words.refused_title),
    };
    html_with(refused.status(), &page)
}

/// The page that was asked for.
fn wanted(visit: &Visit) -> String {
    let address = visit.parts.uri.path_and_query().map(ToString::to_string);
    let address = address.filter(|_| !visit.is_change());
    address.unwrap_or_default()
}

/// Where to sign in, and where to go on from there.
pub fn sign_in_address(next: &str) -> String {
    if next == "/" || !is_local(next) {
        return "/sign-in".to_owned();
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    format!("/sign-in?{}", query.append_pair("next", next).finish())
}

/// Whether an address stays on this server: a browser takes `//host` and `/\host` for another one.
pub fn is_local(address: &str) -> bool {
    let mut letters = address.chars();
    letters.next() == Some('/')
        && !matches!(letters.next(), Some('/' | '\\'))
        && address.len() <= LONGEST_ADDRESS
        && !address.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_server() {
        for good in ["/", "/calls", "/calls?account=a&before=b"] {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "",
            "calls",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nSet-Cookie: x",
            "/\t/evil.example",
        ] {
            assert!(!is_local(bad), "{bad:?}");
        }
        assert!(!is_local(&format!("/{}", "x".repeat(LONGEST_ADDRESS))));
    }
}
