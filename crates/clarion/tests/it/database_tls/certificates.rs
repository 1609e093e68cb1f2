//! Certificates of servers, as people make them.

use rcgen::KeyPair;

use super::{Expected, Secured, authority, issued, judge, named};
use crate::support::cluster::write_private;
use crate::support::eventually;

/// Certificates as people make them for PostgreSQL: the server's own as root, a common name instead of alternative ones.
#[tokio::test]
async fn certificates_that_sign_themselves_or_have_only_a_common_name_are_verified() {
    let secured = Secured::start().await;
    let full = "sslmode=verify-full&sslrootcert=$/shown.pem";
    let common = issued(&named("localhost", &[]), &secured.ours);
    secured.show(common, &secured.ours.pem()).await;
    let reached = secured.reach("anyone", "localhost", full).await;
    judge("a common name", &reached, Expected::Verified);
    let reached = secured.reach("anyone", "127.0.0.1", full).await;
    judge("another one", &reached, Expected::Refused("not valid for"));

    let own = authority("localhost");
    let pair = (own.pem(), own.key().serialize_pem());
    secured.show(pair, &own.pem()).await;
    let reached = secured.reach("anyone", "localhost", full).await;
    judge("its own root", &reached, Expected::Verified);
    let with_ours = "sslmode=verify-ca&sslrootcert=$/ours.pem";
    let reached = secured.reach("anyone", "localhost", with_ours).await;
    judge(
        "somebody's own root",
        &reached,
        Expected::Refused("invalid peer certificate"),
    );

    let mut params = named("localhost", &["localhost"]);
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let key = KeyPair::generate().unwrap();
    let expired = params.self_signed(&key).unwrap();
    secured.cluster.replace("server.crt", &expired.pem());
    secured.cluster.replace("server.key", &key.serialize_pem());
    write_private(&secured.file("shown.pem"), &expired.pem());
    eventually(
        "an expired one is refused, though it is its own root",
        async || {
            let reached = secured.reach("anyone", "localhost", full).await;
            reached.is_err_and(|said| said.contains("Expired"))
        },
    )
    .await;
}

/// PostgreSQL's own documentation makes certificates of version 1. Nobody can verify them here, and whoever does not want to may use them.
#[tokio::test]
async fn a_certificate_of_version_1_serves_where_it_is_not_verified() {
    let secured = Secured::start().await;
    let made = std::process::Command::new("sh")
        .current_dir(secured.folder.path())
        .arg("-c")
        .arg(
            "openssl req -new -nodes -newkey rsa:2048 -keyout old.key -subj /CN=localhost -out old.csr && \
             openssl req -x509 -new -nodes -newkey rsa:2048 -keyout ca.key -subj /CN=ca -out shown.pem && \
             openssl x509 -req -in old.csr -days 9 -CA shown.pem -CAkey ca.key -CAcreateserial -out old.pem",
        )
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let read = |name: &str| std::fs::read_to_string(secured.file(name)).unwrap();
    secured.cluster.replace("server.crt", &read("old.pem"));
    secured.cluster.replace("server.key", &read("old.key"));
    eventually("the server shows it", async || {
        let verified = secured.reach(
            "anyone",
            "localhost",
            "sslmode=verify-ca&sslrootcert=$/ours.pem",
        );
        verified.await.is_err()
    })
    .await;
    for mode in ["sslmode=prefer", "sslmode=require"] {
        let reached = secured.reach("anyone", "localhost", mode).await;
        judge(mode, &reached, Expected::Encrypted);
    }
    let bound = "sslmode=require&channel_binding=require";
    let reached = secured
        .reach("secret:open%3Asesame", "localhost", bound)
        .await;
    judge(bound, &reached, Expected::Encrypted);
    let verified = "sslmode=verify-ca&sslrootcert=$/shown.pem";
    let reached = secured.reach("anyone", "localhost", verified).await;
    judge(
        verified,
        &reached,
        Expected::Refused("UnsupportedCertVersion"),
    );
}
