//! Who asks, and whether they may: every request of the console passes here before its handler sees it. The table of routes says what each needs.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::response::Response;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Console;
use super::cookies;
use super::language::PageLanguage;
use super::refusal::Refused;
use super::refusal_page::refuse;
use super::route_access::RouteAccess;
use super::sent_form::{self, SentForm};
use super::visit::{SignedInOperator, TOKEN_FIELD, Visit};
use crate::api::{Arrival, KnownClient, PeerAddress};
use crate::domain::operator::SignIn;

/// A sign-in is renewed in the store once in so many parts of its time, not at every request.
const RENEWALS: i32 = 30;

/// What the store knows a sign-in by.
pub fn hash_of(id: &str) -> String {
    hex::encode(Sha256::digest(id.as_bytes()))
}

/// Lets a request in, or says why not.
pub async fn admit(
    console: &Arc<Console>,
    access: RouteAccess,
    request: Request,
) -> Result<Visit, Response> {
    let (mut parts, body) = request.into_parts();
    let values = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path_values = values.map(|values| {
        let values = values.iter();
        let owned = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        owned.collect()
    });
    let extensions = &parts.extensions;
    let address = extensions.get::<PeerAddress>().map(|peer| peer.0);
    let arrival = extensions.get::<Arrival>().copied();
    let own_url = arrival.map(|arrival| arrival.server_url(&parts));
    let mut visit = Visit {
        language: PageLanguage::of(&parts.headers),
        address: address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        is_secure: own_url.as_ref().is_some_and(|url| url.starts_with("https")),
        operator: None,
        path_values: path_values.unwrap_or_default(),
        form: SentForm::default(),
        parts,
    };
    let is_change = visit.is_change();
    if is_change && !is_own_origin(&visit.parts, own_url.as_deref()) {
        return Err(refuse(console, &visit, &Refused::ForeignOrigin));
    }
    match signed_in(console, &visit).await {
        Ok(operator) => visit.operator = operator,
        Err(refused) => return Err(refuse(console, &visit, &refused)),
    }
    if access != RouteAccess::Anybody && visit.operator.is_none() {
        return Err(refuse(console, &visit, &Refused::NotSignedIn));
    }
    if let RouteAccess::Role(role) = access
        && !visit.may(role)
    {
        return Err(refuse(console, &visit, &Refused::NotAllowed));
    }
    if is_change {
        let read = sent_form::read(console, access, &visit.parts, body);
        match read.await {
            Ok(form) => visit.form = form,
            Err(refused) => return Err(refuse(console, &visit, &refused)),
        }
        if let Some(operator) = &visit.operator
            && access != RouteAccess::Anybody
            && !is_token(visit.field(TOKEN_FIELD), &operator.form_token)
        {
            return Err(refuse(console, &visit, &Refused::WrongToken));
        }
    }
    Ok(visit)
}

fn is_token(given: &str, wanted: &str) -> bool {
    given.as_bytes().ct_eq(wanted.as_bytes()).into()
}

/// Whether a page of ours sent the request. Browsers say so in `Sec-Fetch-Site`; in `Origin` they say `null` to hosts that want no referrer, as we do. Who says neither is
/// no browser of these days, and is refused.
fn is_own_origin(parts: &Parts, own_url: Option<&str>) -> bool {
    let header = |name: &str| {
        let value = parts.headers.get(name);
        value.map(|value| value.to_str().unwrap_or("?"))
    };
    let origin = header(ORIGIN.as_str());
    let names_us = origin.is_some_and(|origin| Some(origin) == own_url);
    match (header("sec-fetch-site"), origin) {
        (Some("same-origin"), None | Some("null")) => true,
        (Some("same-origin") | None, Some(_)) => names_us,
        _ => false,
    }
}

/// The operator that the cookie names, if it is signed in.
async fn signed_in(console: &Console, visit: &Visit) -> Result<Option<SignedInOperator>, Refused> {
    let name = cookies::sign_in_name(visit.is_secure);
    let Some(id) = cookies::value(&visit.parts.headers, name) else {
        return Ok(None);
    };
    let (id_hash, now) = (hash_of(&id), console.clock.now());
    let Some((sign_in, role)) = console.management.sign_in(&id_hash, now).await? else {
        return Ok(None);
    };
    renew(console, &sign_in, now).await?;
    if let Some(known) = visit.parts.extensions.get::<KnownClient>() {
        known.record();
    }
    Ok(Some(SignedInOperator {
        name: sign_in.operator,
        role,
        form_token: sign_in.form_token,
        id_hash,
    }))
}

/// Who uses a sign-in keeps it, until it is too old.
async fn renew(console: &Console, sign_in: &SignIn, now: jiff::Timestamp) -> Result<(), Refused> {
    let idle = console.settings.idle;
    if now.duration_since(sign_in.seen_at) < idle / RENEWALS {
        return Ok(());
    }
    let expires = console.expiry(sign_in.created_at, now);
    let renewed = console
        .management
        .renew_sign_in(&sign_in.id_hash, now, expires);
    Ok(renewed.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_may_change_something() {
        let own = "https://console.example:8884";
        let judged = |headers: &[(&str, &str)]| {
            let mut request = axum::http::Request::builder().uri("/");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            is_own_origin(&parts, Some(own))
        };
        for allowed in [
            &[("origin", own)][..],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
            &[("sec-fetch-site", "same-origin"), ("origin", own)],
        ] {
            assert!(judged(allowed), "{allowed:?}");
        }
        for refused in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "https://console.example")],
            &[("origin", "http://console.example:8884")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-site"), ("origin", own)],
            &[("sec-fetch-site", "cross-site"), ("origin", "null")],
            &[("sec-fetch-site", "same-origin"), ("origin", "https://x")],
        ] {
            assert!(!judged(refused), "{refused:?}");
        }
    }

    #[test]
    fn a_token_is_right_as_a_whole_or_wrong() {
        assert!(is_token("abc", "abc"));
        for wrong in ["", "ab", "abcd", "abd"] {
            assert!(!is_token(wrong, "abc"));
        }
    }
}
