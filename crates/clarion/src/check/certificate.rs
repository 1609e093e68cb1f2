//! Checks the certificate that clients see: whether it exists, whether its key belongs to it, which names it has, and how long it is valid.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::finding::{CheckSubject, Finding};
use crate::clock::Clock;
use crate::config::{Config, HttpUrl};
use crate::domain::wording::{Wording, wording};
use crate::http::tls::Certificates;

const SUBJECT: CheckSubject = CheckSubject::Certificate;
const SOON_DAYS: i64 = 21;
const DAY: i64 = 86_400;

pub fn check(config: &Config, clock: &Clock) -> Vec<Finding> {
    if config.http.plain {
        return vec![Finding::warning(
            SUBJECT,
            wording!(
                "none: plain HTTP is served (http.plain)",
                "未使用证书：当前提供明文 HTTP（http.plain）"
            ),
            wording!(
                "only behind a proxy that speaks TLS; most clients of this API speak https only",
                "只应放在终结 TLS 的反向代理之后；该接口的客户端大多只支持 https"
            ),
        )];
    }
    let folder = config.data_dir.join("tls");
    let own = config.http.certificate.is_none();
    let files = Certificates::expected(&config.http, &folder);
    if own && !files.certificate.exists() {
        let names = config.http.host_names.join(", ");
        return vec![Finding::ok(
            SUBJECT,
            wording!(
                "a private CA and a certificate for {names} are made at the first start",
                "首次启动时会生成私有 CA，以及 {names} 的证书"
            ),
        )];
    }
    if let Err(error) = files.acceptor() {
        return vec![Finding::problem(
            SUBJECT,
            wording!("cannot be used", "证书无法使用").because(format!("{error:#}")),
            wording!(
                "http.certificate and http.private_key must be PEM files that belong together and that the server's user may read",
                "http.certificate 与 http.private_key 必须是互相匹配、且服务运行用户可读的 PEM 文件"
            ),
        )];
    }
    let mut findings = vec![validity(&files.certificate, clock.now()).unwrap_or_else(unreadable)];
    findings.extend(key_is_private(&files.private_key));
    if own {
        let ca = folder.join("ca.pem");
        let ca = ca.display();
        findings.push(Finding::ok(
            SUBJECT,
            wording!(
                "signed by our own CA: give {ca} to clients that verify",
                "由自建 CA 签发：请把 {ca} 提供给校验证书的客户端"
            ),
        ));
    }
    findings.push(names(config, &files.certificate));
    findings
}

fn anew() -> Wording {
    wording!("have it made anew", "重新签发证书")
}

fn unreadable(why: String) -> Finding {
    let found = wording!("cannot be read", "无法解析证书").because(why);
    Finding::problem(SUBJECT, found, anew())
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
    let renew = wording!(
        "renew it, put the files in place and restart the server",
        "续签证书，替换证书文件后重启服务"
    );
    let (from, until) = (date(begins), date(ends));
    Ok(if now < begins {
        Finding::problem(
            SUBJECT,
            wording!(
                "is valid only from {from} on",
                "尚未生效，生效日期为 {from}"
            ),
            wording!(
                "look at the machine's clock, or have it made anew",
                "检查系统时间，或重新签发证书"
            ),
        )
    } else if now >= ends {
        let found = wording!("has expired on {until}", "已于 {until} 过期");
        Finding::problem(SUBJECT, found, renew)
    } else if days < SOON_DAYS {
        let found = wording!(
            "expires on {until}, in {days} days",
            "将于 {until} 过期，还剩 {days} 天"
        );
        Finding::warning(SUBJECT, found, renew)
    } else {
        let found = wording!("is valid until {until}", "有效期至 {until}");
        Finding::ok(SUBJECT, found)
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
        wording!(
            "the private key {place} is open to others (mode {mode:o})",
            "其他用户可以访问私钥 {place}（权限 {mode:o}）"
        ),
        wording!("chmod 600 {place}", "执行 chmod 600 {place}"),
    ))
}

/// Checks the names of the certificate. Clients find us by the name in public_url, or without one by the names that the certificate was
/// made for.
fn names(config: &Config, file: &Path) -> Finding {
    let named = match names_of(file) {
        Ok(named) => named,
        Err(why) => return unreadable(why),
    };
    let list = named.join(", ");
    let names = wording!("names {list}", "证书域名：{list}");
    if let Some(host) = config.http.public_url.as_ref().map(HttpUrl::host) {
        return if named.iter().any(|name| covers(name, host)) {
            Finding::ok(SUBJECT, names)
        } else {
            Finding::problem(
                SUBJECT,
                wording!(
                    "names {list}, but clients come to {host} (http.public_url)",
                    "证书域名为 {list}，但客户端访问的是 {host}（http.public_url）"
                ),
                wording!(
                    "have it made for that name (http.host_names, or your CA), or correct http.public_url",
                    "为该域名重新签发（http.host_names 或自有 CA），或修正 http.public_url"
                ),
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
            wording!(
                "names only this machine itself: {list}",
                "证书域名仅限本机：{list}"
            ),
            wording!(
                "put the names that clients use into http.host_names",
                "在 http.host_names 中填写客户端使用的域名或地址"
            ),
        )
    } else {
        Finding::ok(SUBJECT, names)
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
