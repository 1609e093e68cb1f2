//! Who asks, and whether they may: every request of the console passes here before its handler sees it. The table of routes says what each needs.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::Method;
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::response::Response;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::form_urlencoded;

use super::Console;
use super::cookies;
use super::language::PageLanguage;
use super::refusal::{Refused, refuse};
use super::routes::RouteAccess;
use super::sent_form::{self, SentFile, SentForm};
use crate::api::{Arrival, KnownClient, PeerAddress};
use crate::domain::audit::Actor;
use crate::domain::operator::{OperatorName, OperatorRole, SignIn};

/// A sign-in is renewed in the store once in so many parts of its time, not at every request.
const RENEWALS: i32 = 30;
/// Every form has it.
pub const TOKEN_FIELD: &str = "token";

/// A request that may be answered.
#[derive(Debug)]
pub struct Visit {
    pub parts: Parts,
    pub language: PageLanguage,
    pub address: IpAddr,
    /// The browser speaks TLS, to us or to a proxy before us.
    pub is_secure: bool,
    pub operator: Option<SignedInOperator>,
    path_values: Vec<(String, String)>,
    form: SentForm,
}

/// Whose request it is.
#[derive(Debug, Clone)]
pub struct SignedInOperator {
    pub name: OperatorName,
    pub role: OperatorRole,
    pub form_token: String,
    pub id_hash: String,
}

impl Visit {
    /// A value of the path, as the route names it.
    pub fn path_value(&self, name: &str) -> &str {
        find(&self.path_values, name).unwrap_or_default()
    }

    /// A value of the form.
    pub fn field(&self, name: &str) -> &str {
        self.given(name).unwrap_or_default()
    }

    /// A value of the form, if it has the field.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.form.field(name)
    }

    /// The files of the form.
    pub fn files(&self) -> &[SentFile] {
        &self.form.files
    }

    /// A value of the query that is there and not empty.
    pub fn query(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query()?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(key, _)| key == name);
        let value = found.map(|(_, value)| value.trim().to_owned());
        value.filter(|value| !value.is_empty())
    }

    /// Something is sent: the answer has no address that could be looked at again.
    pub fn is_change(&self) -> bool {
        self.parts.method != Method::GET && self.parts.method != Method::HEAD
    }

    pub fn may(&self, role: OperatorRole) -> bool {
        let own = self.operator.as_ref().map(|operator| operator.role);
        own.is_some_and(|own| own >= role)
    }

    /// Who the audit trail says has done it.
    pub fn actor(&self) -> Actor {
        let operator = self.operator.as_ref();
        Actor {
            operator: operator.map(|operator| operator.name.to_string()),
            system_user: None,
            address: Some(self.address.to_string()),
        }
    }
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut pairs = pairs.iter();
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

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
        known.note();
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
