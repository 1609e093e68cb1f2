//! Which name a server's certificate must have.

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::X509Certificate;

use crate::config::PostgresHost;

/// How far a server must prove who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verification {
    None,
    /// By somebody whom we trust.
    Chain,
    /// And for the name that is meant.
    ChainAndName,
}

/// The name that is meant. Where it is not verified, one that no certificate can have will do.
pub(super) fn server_name(
    host: &PostgresHost,
    verification: Verification,
) -> Result<ServerName<'static>, String> {
    let (name, address) = match host {
        PostgresHost::Tcp { name, address, .. } => (name.as_deref(), *address),
        PostgresHost::Unix { .. } => (None, None),
    };
    let named = name.map(|name| ServerName::try_from(name.to_owned()));
    match named {
        Some(Ok(name)) => Ok(name),
        Some(Err(_)) if verification == Verification::ChainAndName => {
            Err("its name cannot stand in a certificate".to_owned())
        }
        None if verification == Verification::ChainAndName => {
            Err("sslmode=verify-full needs a host name, not only `hostaddr`".to_owned())
        }
        _ => Ok(match address {
            Some(address) => ServerName::IpAddress(address.into()),
            None => ServerName::try_from("localhost").map_err(|error| error.to_string())?,
        }),
    }
}

/// Alternative names are what counts. As in libpq, the common name counts where a certificate has none of them.
pub(super) fn has_name(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
) -> Result<(), rustls::Error> {
    let wrong = match ParsedCertificate::try_from(certificate)
        .and_then(|parsed| verify_server_name(&parsed, name))
    {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let Ok((_, parsed)) = parse_x509_certificate(certificate) else {
        return Err(wrong);
    };
    let wanted = name.to_str();
    let fits = !has_alternative_names(&parsed)
        && parsed
            .subject()
            .iter_common_name()
            .filter_map(|name| name.as_str().ok())
            .any(|name| matches_name(name, &wanted));
    if fits { Ok(()) } else { Err(wrong) }
}

fn has_alternative_names(certificate: &X509Certificate<'_>) -> bool {
    let names = certificate.subject_alternative_name().ok().flatten();
    names.is_some_and(|names| {
        let is_host = |name: &GeneralName<'_>| {
            matches!(name, GeneralName::DNSName(_) | GeneralName::IPAddress(_))
        };
        names.value.general_names.iter().any(is_host)
    })
}

/// A star stands for one label, the first.
fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(rest) => name
            .split_once('.')
            .is_some_and(|(label, tail)| !label.is_empty() && tail.eq_ignore_ascii_case(rest)),
        None => pattern.eq_ignore_ascii_case(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_the_first_label_only() {
        for (pattern, name, fits) in [
            ("db.example", "DB.example", true),
            ("*.example", "db.example", true),
            ("*.example", "a.db.example", false),
            ("*.example", ".example", false),
            ("*.example", "example", false),
            ("db.*", "db.example", false),
        ] {
            assert_eq!(matches_name(pattern, name), fits, "{pattern} {name}");
        }
    }
}
