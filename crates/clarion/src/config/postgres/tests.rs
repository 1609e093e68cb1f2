use std::path::{Path, PathBuf};
use std::time::Duration;

use super::parameters::UserFiles;
use super::*;

fn files() -> UserFiles {
    UserFiles {
        home: Some(PathBuf::from("/home/clarion")),
        passfile: None,
    }
}

fn read(text: &str) -> PostgresAddress {
    PostgresAddress::parse_for(text, &files()).unwrap()
}

fn refused(text: &str) -> String {
    PostgresAddress::parse_for(text, &files()).unwrap_err()
}

#[test]
fn a_plain_address_asks_for_what_is_usual() {
    let address = read("postgres://voice:se%2Fcret@db.example/clarion");
    assert_eq!(address.user.as_deref(), Some("voice"));
    assert_eq!(address.password.as_ref().unwrap().as_str(), "se/cret");
    assert_eq!(address.name.as_deref(), Some("clarion"));
    assert_eq!(address.application_name, "clarion");
    assert_eq!(address.tls.mode, SslMode::Prefer);
    assert_eq!(address.target, SessionTarget::Any);
    assert_eq!(address.connect_timeout, Duration::from_secs(5));
    assert_eq!(
        address.hosts,
        [PostgresHost::Tcp {
            name: Some("db.example".to_owned()),
            address: None,
            port: 5432
        }]
    );
    let usual = UserFile::Usual(PathBuf::from("/home/clarion/.pgpass"));
    assert_eq!(address.passfile, usual);
    let usual = UserFile::Usual(PathBuf::from("/home/clarion/.postgresql/root.crt"));
    assert_eq!(address.tls.roots, RootCertificates::File(usual));
    assert!(address.keepalive.is_some());
}

#[test]
fn hosts_are_written_in_all_of_libpqs_ways() {
    let hosts = |text: &str| {
        let hosts: Vec<_> = read(text).hosts.iter().map(ToString::to_string).collect();
        hosts.join(" ")
    };
    for (text, found) in [
        ("postgres://a/x", "a:5432"),
        ("postgresql://a:1,b:2,[::1]:3/x", "a:1 b:2 [::1]:3"),
        ("postgres://a,b:6000/x", "a:5432 b:6000"),
        ("postgres:///x?host=a,b&port=1,2", "a:1 b:2"),
        ("postgres:///x?host=a,b&port=7", "a:7 b:7"),
        ("postgres:///x?host=a,b&port=,2", "a:5432 b:2"),
        (
            "postgres:///x?hostaddr=192.0.2.1,2001:db8::1",
            "192.0.2.1:5432 [2001:db8::1]:5432",
        ),
        (
            "postgres://a,b/x?hostaddr=192.0.2.1,192.0.2.2",
            "a:5432 b:5432",
        ),
        ("postgres://%2Frun%2Fpg/x", "/run/pg:5432"),
        ("postgres:///x?host=/run/pg&port=1", "/run/pg:1"),
    ] {
        assert_eq!(hosts(text), found, "{text}");
    }
    let several = read("postgres://a,b/x");
    assert_eq!(several.target, SessionTarget::ReadWrite);
    assert_eq!(several.connect_timeout, Duration::from_secs(2));
}

#[test]
fn parameters_are_honoured() {
    let address = read(
        "postgres://db/x?user=u&password=p%26q&sslmode=verify-full&sslrootcert=/r.pem&sslcert=/c.pem&sslkey=/k.pem&sslsni=0&\
         sslnegotiation=direct&channel_binding=require&target_session_attrs=prefer-standby&load_balance_hosts=random&\
         connect_timeout=9&keepalives_idle=1&keepalives_interval=2&keepalives_count=4&tcp_user_timeout=2500&\
         application_name=a%20b&options=-c%20geqo%3Doff&passfile=/p",
    );
    assert_eq!(address.user.as_deref(), Some("u"));
    assert_eq!(address.password.as_ref().unwrap().as_str(), "p&q");
    assert_eq!(address.tls.mode, SslMode::VerifyFull);
    let named = UserFile::Named(PathBuf::from("/r.pem"));
    assert_eq!(address.tls.roots, RootCertificates::File(named));
    let own = address.tls.certificate.as_ref().unwrap();
    assert_eq!(own.private_key, Path::new("/k.pem"));
    assert!(!address.tls.sends_name);
    assert_eq!(address.tls.negotiation, SslNegotiation::Direct);
    assert_eq!(address.channel_binding, ChannelBinding::Require);
    assert_eq!(address.target, SessionTarget::PreferStandby);
    assert_eq!(address.order, HostOrder::Random);
    assert_eq!(address.connect_timeout, Duration::from_secs(9));
    assert_eq!(
        address.keepalive,
        Some(Keepalive {
            idle: Duration::from_secs(1),
            interval: Duration::from_secs(2),
            count: 4
        })
    );
    assert_eq!(address.unacknowledged, Duration::from_millis(2500));
    assert_eq!(address.application_name, "a b");
    assert_eq!(address.options.as_deref(), Some("-c geqo=off"));
    assert_eq!(address.passfile, UserFile::Named(PathBuf::from("/p")));
    assert!(read("postgres://db/x?keepalives=0").keepalive.is_none());
    let system = read("postgres://db/x?sslrootcert=system");
    assert_eq!(system.tls.mode, SslMode::VerifyFull);
    assert_eq!(system.tls.roots, RootCertificates::System);
}

#[test]
fn the_variable_names_a_password_file_that_must_be_there() {
    let files = UserFiles {
        passfile: Some(PathBuf::from("/v")),
        ..files()
    };
    let address = PostgresAddress::parse_for("postgres://db/x", &files).unwrap();
    assert_eq!(address.passfile, UserFile::Named(PathBuf::from("/v")));
    let address = PostgresAddress::parse_for("postgres://db/x?passfile=/p", &files).unwrap();
    assert_eq!(address.passfile, UserFile::Named(PathBuf::from("/p")));
}

#[test]
fn what_is_wrong_is_refused_by_its_name_and_without_a_secret() {
    for (text, rule) in [
        ("postgres:x", "it must begin with postgres://"),
        ("postgres:///x", "name a host"),
        ("postgres://a,,b/x", "one of them is empty"),
        (
            "postgres://u:secret@h:port/x",
            "port: must be a number from 1 to 65535",
        ),
        ("postgres://u:sec/ret@h/x", "an `@` stands behind the host"),
        (
            "postgres://u:sec%ret@h/x",
            "password: write two hex digits after %",
        ),
        ("postgres://u:secret@[::1/x", "`[` is not followed by `]`"),
        (
            "postgres://u:secret@[::1]x/x",
            "write `:` between address and port",
        ),
        (
            "postgres://u:secret@h/x?sslmode",
            "a parameter must be written name=value",
        ),
        (
            "postgres://u:secret@h/x?sslmode=on",
            "`sslmode` must be one of disable, allow, prefer, require, verify-ca, verify-full",
        ),
        (
            "postgres://h/x?target_session_attrs=writable",
            "`target_session_attrs` must be one of any, read-write",
        ),
        (
            "postgres://h/x?sslrootcert=system&sslmode=require",
            "`sslrootcert`: `system` needs sslmode=verify-full",
        ),
        (
            "postgres://h/x?sslnegotiation=direct",
            "`sslnegotiation`: `direct` needs sslmode=require",
        ),
        (
            "postgres://h/x?sslcert=/c",
            "`sslcert`: name it together with `sslkey`",
        ),
        (
            "postgres://h/x?connect_timeout=0",
            "`connect_timeout` must be from 1 to 600",
        ),
        (
            "postgres://h/x?keepalives=yes",
            "`keepalives` must be one of 0, 1",
        ),
        (
            "postgres://h/x?hostaddr=localhost",
            "`hostaddr` must hold addresses",
        ),
        (
            "postgres://a,b/x?hostaddr=192.0.2.1",
            "`hostaddr` must have as many addresses as hosts",
        ),
        ("postgres://a/x?host=b", "`host` is given twice"),
        ("postgres://a:1/x?port=2", "`port` is given twice"),
        ("postgres://u@a/x?user=v", "`user` is given twice"),
        (
            "postgres://a/x?sslmode=allow&sslmode=require",
            "`sslmode` is given twice",
        ),
        (
            "postgres:///x?host=a,b&port=1,2,3",
            "`port` must have one port, or as many as hosts",
        ),
        (
            "postgres://h/x?sslcrl=/crl",
            "`sslcrl` is not honoured by this program",
        ),
        (
            "postgres://h/x?sslpassword=secret",
            "`sslpassword` is not honoured by this program",
        ),
        (
            "postgres://h/x?pgbouncer=true",
            "there is no parameter `pgbouncer`",
        ),
        (
            "postgres://h/x?sslmodus=require",
            "there is no parameter `sslmodus`; did you mean `sslmode`?",
        ),
        ("postgres://h/%00", "must be UTF-8 without a zero byte"),
    ] {
        let said = refused(text);
        assert!(said.contains(rule), "{text}: {said}");
        assert!(!said.contains("sec"), "{text}: {said}");
    }
}

#[test]
fn an_address_is_shown_without_its_password() {
    for text in [
        "postgres://u:secret@a:1,b/x?sslmode=require",
        "postgres://a:1,b/x?user=u&password=secret",
    ] {
        let address = read(text);
        assert_eq!(address.to_string(), "postgres://u:…@a:1,b:5432/x");
        assert!(!format!("{address:?}").contains("secret"));
        assert_eq!(address.url(), text);
    }
}
