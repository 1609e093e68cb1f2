//! Checks the certificate that clients see: whether it exists, whether its key belongs to it, which names it has, and how long it is valid.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::finding::Finding;
use crate::clock::Clock;
use crate::config::{Config, HttpUrl};
use crate::http::tls::Certificates;

const SUBJECT: &str = "certificate";
const SOON_DAYS: i64 = 21;
const DAY: i64 = 86_400;

pub fn check(config: &Config, clock: &Clock) -> Vec<Finding> {
    if config.http.plain {
        return vec![Finding::warning(
            SUBJECT,
            "none: plain HTTP is served (http.plain)",
            "only behind a proxy that speaks TLS; most clients of this API speak https only",
        )];
    }
    let folder = config.data_dir.join("tls");
    let own = config.http.certificate.is_none();
    let files = Certificates::expected(&config.http, &folder);
    if own && !files.certificate.exists() {
        return vec![Finding::ok(
            SUBJECT,
            format!(
                "a private CA and a certificate for {} are made at the first start",
                config.http.host_names.join(", ")
            ),
        )];
    }
    if let Err(error) = files.acceptor() {
        let remedy = "http.certificate and http.private_key must be PEM files that belong together and that the server's user may read";
        return vec![Finding::problem(SUBJECT, format!("{error:#}"), remedy)];
    }
    let mut findings = vec![
        validity(&files.certificate, clock.now())
            .unwrap_or_else(|why| Finding::problem(SUBJECT, why, "have it made anew")),
    ];
    findings.extend(key_is_private(&files.private_key));
    if own {
        findings.push(Finding::ok(
            SUBJECT,
            format!(
                "signed by our own CA: give {} to clients that verify",
                folder.join("ca.pem").display()
            ),
        ));
    }
    findings.push(names(config, &files.certificate));
    findings
}

fn parsed<T>(file: &Path, read: impl FnOnce(&X509Certificate<'_>) -> T) -> Result<T, String> {
    let name = file.display();
    let der = CertificateDer::from_pem_file(file).map_err(|error| format!("{name}: {error}"))?;
    let (_, certificate) =
        X509Certificate::from_der(&der).map_err(|error| format!("{name}: {error}"))?;
    Ok(read(&certificate))
}

fn validity(file: &Path, now: Timestamp) -> Result<Finding, String> {
    let (begins, ends) = parsed(file, |certificate| {
        let validity = certificate.validity();
        (
            validity.not_before.timestamp(),
            validity.not_after.timestamp(),
        )
    })?;
    let now = now.as_second();
    let date = |second| {
        Timestamp::from_second(second)
            .map_or("?".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
    };
    let days = (ends - now) / DAY;
    let renew = "renew it, put the files in place and restart the server";
    Ok(if now < begins {
        let found = format!("is valid only from {} on", date(begins));
        Finding::problem(
            SUBJECT,
            found,
            "look at the machine's clock, or have it made anew",
        )
    } else if now >= ends {
        Finding::problem(SUBJECT, format!("has expired on {}", date(ends)), renew)
    } else if days < SOON_DAYS {
        Finding::warning(
            SUBJECT,
            format!("expires on {}, in {days} days", date(ends)),
            renew,
        )
    } else {
        Finding::ok(SUBJECT, format!("is valid until {}", date(ends)))
    })
}

fn key_is_private(file: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode() & 0o777;
    let place = file.display();
    let finding = if mode & 0o007 != 0 {
        Finding::problem
    } else if mode & 0o020 != 0 {
        Finding::warning
    } else {
        return None;
    };
    Some(finding(
        SUBJECT,
        format!("the private key {place} is open to others (mode {mode:o})"),
        format!("chmod 600 {place}"),
    ))
}

/// Checks the names of the certificate. Clients find us by the name in public_url, or without one by the names that the certificate was
/// made for.
fn names(config: &Config, file: &Path) -> Finding {
    let named = match names_of(file) {
        Ok(named) => named,
        Err(why) => return Finding::problem(SUBJECT, why, "have it made anew"),
    };
    let list = named.join(", ");
    if let Some(host) = config.http.public_url.as_ref().map(HttpUrl::host) {
        return if named.iter().any(|name| covers(name, host)) {
            Finding::ok(SUBJECT, format!("names {list}"))
        } else {
            Finding::problem(
                SUBJECT,
                format!("names {list}, but clients come to {host} (http.public_url)"),
                "have it made for that name (http.host_names, or your CA), or correct http.public_url",
            )
        };
    }
    let only_here = |name: &String| name == "localhost" || name.parse().is_ok_and(is_loopback);
    let open = config
        .http
        .listen
        .iter()
        .any(|address| !address.ip().is_loopback());
    if open && named.iter().all(only_here) {
        Finding::warning(
            SUBJECT,
            format!("names only this machine itself: {list}"),
            "put the names that clients use into http.host_names",
        )
    } else {
        Finding::ok(SUBJECT, format!("names {list}"))
    }
}

fn is_loopback(address: std::net::IpAddr) -> bool {
    address.is_loopback()
}

/// The names that a certificate has.
pub fn names_of(file: &Path) -> Result<Vec<String>, String> {
    parsed(file, alternative_names)
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|names| &names.value.general_names);
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            16 => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            _ => None,
        },
        _ => None,
    };
    names.into_iter().flatten().filter_map(name).collect()
}

/// Returns whether a name covers a host. A star stands for one label (RFC 6125).
fn covers(name: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match name.strip_prefix("*.") {
        Some(domain) => host.split_once('.').is_some_and(|(_, rest)| rest == domain),
        None => name == host,
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_star_stands_for_one_label() {
        assert!(covers("voice.example.com", "Voice.Example.com"));
        assert!(covers("*.example.com", "voice.example.com"));
        assert!(!covers("*.example.com", "example.com"));
        assert!(!covers("*.example.com", "a.b.example.com"));
    }
}
