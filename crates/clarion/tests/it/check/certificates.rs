//! Certificates that clients will not like.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::Site;

fn certificate(site: &Path, name: &str, years: (i32, i32)) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    let (pem, private) = (site.join("a.pem"), site.join("a.key"));
    std::fs::write(&pem, certificate.pem()).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o600)).unwrap();
    format!("[http]\ncertificate = {pem:?}\nprivate_key = {private:?}\n")
}

#[tokio::test]
async fn a_certificate_that_clients_will_not_like_is_named() {
    let files = tempfile::tempdir().unwrap();
    let check = async |settings: &str| Site::new(settings).check().await;
    let good = certificate(files.path(), "voice.example.com", (2020, 2120));
    let url = "public_url = \"https://voice.example.com:8883\"\n";
    let said = check(&format!("{good}{url}")).await;
    said.holds("ok", "certificate", "is valid until 2120-01-01");
    said.holds("ok", "certificate", "names voice.example.com");
    said.has_no_problem();
    let elsewhere = "public_url = \"https://calls.example.com\"\n";
    let said = check(&format!("{good}{elsewhere}")).await;
    said.problem("certificate", "clients come to calls.example.com");
    std::fs::set_permissions(files.path().join("a.key"), PermissionsExt::from_mode(0o644)).unwrap();
    check(&good)
        .await
        .problem("certificate", "is open to others (mode 644) → chmod 600");
    let old = certificate(files.path(), "voice.example.com", (2020, 2021));
    check(&old)
        .await
        .problem("certificate", "has expired on 2021-01-01");
    let early = certificate(files.path(), "voice.example.com", (2100, 2121));
    check(&early)
        .await
        .problem("certificate", "is valid only from 2100-01-01");
    let other = KeyPair::generate().unwrap();
    std::fs::write(files.path().join("a.key"), other.serialize_pem()).unwrap();
    check(&good)
        .await
        .problem("certificate", "do not fit together");
    std::fs::remove_file(files.path().join("a.pem")).unwrap();
    check(&good)
        .await
        .problem("certificate", "cannot read the certificate");
}
