//! Whether there is TLS, whom it trusts, and where the other way is tried.

use super::{Expected, Secured, judge, open_to_all, reach};
use crate::support::postgres;

/// User, host, parameters (`$` is the client's folder), and what comes of it.
const MODES: &str = "\
# Whether there is TLS at all.
anyone localhost sslmode=disable plain
anyone localhost sslmode=allow plain
anyone localhost sslmode=prefer encrypted
anyone localhost - encrypted
anyone localhost sslmode=require encrypted
# The other way, where the server wants that.
encrypted localhost sslmode=allow encrypted
encrypted localhost sslmode=disable refused: no encryption
plain localhost sslmode=prefer plain
plain localhost sslmode=require refused: SSL encryption
# Whom the server must be vouched for by, and as whom.
anyone localhost sslmode=verify-ca&sslrootcert=$/ours.pem verified
anyone 127.0.0.1 sslmode=verify-ca&sslrootcert=$/ours.pem verified
anyone localhost sslmode=verify-full&sslrootcert=$/ours.pem verified
anyone 127.0.0.1 sslmode=verify-full&sslrootcert=$/ours.pem refused: not valid for name
anyone db.example hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=$/ours.pem refused: not valid for name
anyone localhost hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=$/ours.pem verified
anyone localhost sslmode=verify-ca&sslrootcert=$/foreign.pem refused: UnknownIssuer
anyone localhost sslmode=verify-full&sslrootcert=$/foreign.pem refused: UnknownIssuer
# A file with roots makes `require` verify; the weaker modes do not look at it.
anyone 127.0.0.1 sslmode=require&sslrootcert=$/ours.pem verified
anyone localhost sslmode=require&sslrootcert=$/foreign.pem refused: UnknownIssuer
anyone localhost sslmode=prefer&sslrootcert=$/foreign.pem encrypted
# Files that are not there, or are nothing.
anyone localhost sslmode=require&sslrootcert=$/nowhere.pem refused: sslrootcert
anyone localhost sslmode=verify-full&sslrootcert=$/client.key refused: sslrootcert
# Our own certificate.
certified localhost sslmode=require&sslcert=$/client.pem&sslkey=$/client.key encrypted
certified localhost sslmode=require refused: certificate
certified localhost sslmode=require&sslcert=$/client.pem&sslkey=$/nowhere.key refused: sslkey
# The password is bound to the certificate; without TLS there is nothing to bind it to.
secret:open%3Asesame localhost sslmode=require&channel_binding=require encrypted
secret:open%3Asesame localhost sslmode=disable&channel_binding=require refused: channel binding
secret:open%3Asesame localhost sslmode=disable plain
# A wrong password is not tried again without TLS.
secret:wrong localhost sslmode=prefer refused: 28P01
";

#[tokio::test]
async fn every_mode_does_what_libpq_says() {
    let secured = Secured::start().await;
    for line in MODES.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        let parameters = words[2].trim_start_matches('-');
        let reached = secured.reach(words[0], words[1], parameters).await;
        judge(line, &reached, Expected::parse(words[3]));
        if let Err(said) = reached {
            assert!(
                !said.contains("sesame") && !said.contains("wrong"),
                "{said}"
            );
        }
    }
    let readable = secured.file("readable.key");
    std::fs::copy(secured.file("client.key"), &readable).unwrap();
    open_to_all(&readable);
    let parameters = "sslmode=require&sslcert=$/client.pem&sslkey=$/readable.key";
    let reached = secured.reach("certified", "localhost", parameters).await;
    judge(parameters, &reached, Expected::Refused("chmod 600"));
}

#[tokio::test]
async fn a_server_without_tls_is_refused_only_by_those_who_insist() {
    let url = postgres::empty_database().await;
    for (mode, expected) in [
        ("disable", Expected::Plain),
        ("allow", Expected::Plain),
        ("prefer", Expected::Plain),
        ("require", Expected::Refused("does not support TLS")),
        (
            "verify-full&sslrootcert=system",
            Expected::Refused("does not support TLS"),
        ),
    ] {
        let reached = reach(&format!("{url}?sslmode={mode}")).await;
        judge(mode, &reached, expected);
    }
}
