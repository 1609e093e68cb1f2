//! Passwords and roots that are found by the environment.

use super::{Expected, Secured, judge, open_to_all};
use crate::support::child::Installation;
use crate::support::cluster::write_private;

#[tokio::test]
async fn passwords_come_out_of_a_file_that_others_cannot_read() {
    let secured = Secured::start().await;
    let port = secured.cluster.0.port;
    let file = secured.file("pass");
    write_private(
        &file,
        &format!("# ours\nelsewhere:*:*:*:wrong\n*:{port}:postgres:secret:open\\:sesame\n"),
    );
    let named = "passfile=$/pass";
    judge(
        named,
        &secured.reach("secret", "localhost", named).await,
        Expected::Encrypted,
    );
    let nobody = secured
        .reach("secret", "localhost", "passfile=$/nowhere")
        .await;
    judge("no file", &nobody, Expected::Refused("the password file"));
    open_to_all(&file);
    let open = secured.reach("secret", "localhost", named).await;
    judge("an open file", &open, Expected::Refused("chmod 600"));
    // By the variable, as in libpq, and with the roots of the system.
    write_private(&file, "*:*:*:*:open\\:sesame\n");
    let url = secured.url("secret", "localhost", "sslrootcert=system");
    let installation = Installation::empty(&url);
    let check = async |roots: &str| {
        let said = installation
            .clarion_with(
                &["check"],
                &[
                    ("PGPASSFILE", &file),
                    ("SSL_CERT_FILE", &secured.file(roots)),
                ],
            )
            .await;
        String::from_utf8(said.stdout).unwrap()
    };
    let said = check("ours.pem").await;
    assert!(said.contains("; its certificate is verified"), "{said}");
    let said = check("foreign.pem").await;
    assert!(said.contains("UnknownIssuer"), "{said}");
}
