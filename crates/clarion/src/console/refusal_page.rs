//! The page that says why a request was not answered as it wished.

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};

use super::Console;
use super::events;
use super::local_address::sign_in_address;
use super::page::{Frame, MenuPlace, html_with};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::visit::Visit;

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
