//! A request of somebody who may make it, as the pages see it.

use std::net::IpAddr;

use axum::http::Method;
use axum::http::request::Parts;
use url::form_urlencoded;

use super::language::PageLanguage;
use super::sent_form::{SentFile, SentForm};
use crate::domain::audit::Actor;
use crate::domain::operator::{OperatorName, OperatorRole};

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
    pub(super) path_values: Vec<(String, String)>,
    pub(super) form: SentForm,
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
