//! Trunks that answer, that do not, and that answer oddly.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;

use g711::Codec;
use phone::call::MediaConfig;
use phone::signalling::{SignallingConfig, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use supervisor::Supervisor;

use super::{Site, friendly_peer, trunk};
use crate::support::free_port;
use crate::support::sip_peer::SipPeer;

/// Certificate and key of an authority, and of somebody at 127.0.0.1 whom it vouches for.
pub fn authority() -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&own, &issuer).unwrap();
    (ca, certificate.pem(), own.serialize_pem())
}

#[tokio::test]
async fn a_trunk_over_tls_must_show_a_certificate_that_we_trust() {
    let (ca, certificate, key) = authority();
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut sip = SignallingConfig::new(Transport::Tls, SocketAddr::new(here, 0));
    sip.tls.own = Some((certificate.into_bytes(), key.into_bytes()));
    let settings = TestPhoneConfig {
        sip,
        media: MediaConfig::new(here, 40_000..=40_099),
        codecs: Codec::ALL.to_vec(),
        credentials: None,
    };
    let (telephone, _heard) = TestPhone::start(&Supervisor::new(), &settings, Script::of_number)
        .await
        .unwrap();
    let files = tempfile::tempdir().unwrap();
    let (trusted, other) = (files.path().join("ca.pem"), files.path().join("other.pem"));
    std::fs::write(&trusted, ca).unwrap();
    std::fs::write(&other, authority().0).unwrap();
    let check = async |authorities: &Path| {
        let more = format!("transport = \"tls\"\nca = {authorities:?}");
        let settings = trunk("secure", &telephone.contact().to_string(), &more);
        Site::new(&settings).check().await
    };
    let said = check(&trusted).await;
    said.holds("ok", "trunk secure", "answers OPTIONS with 200");
    said.has_no_problem();
    check(&other)
        .await
        .problem("trunk secure", "cannot be reached");
    let nowhere = files.path().join("nowhere.pem");
    check(&nowhere)
        .await
        .problem("trunk secure", "name readable PEM files in `ca`");
}

#[tokio::test]
async fn trunks_that_are_not_there_are_told_apart() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let shut = SipPeer::start(|_| Some((503, String::new()))).await;
    let closed = free_port();
    let mut settings = String::new();
    for (name, host, more) in [
        ("silent", silent.local_addr().unwrap().to_string(), ""),
        ("shut", shut.address.to_string(), ""),
        (
            "closed",
            format!("127.0.0.1:{closed}"),
            "transport = \"tcp\"",
        ),
        ("nameless", "nowhere.invalid".to_owned(), ""),
    ] {
        write!(settings, "{}", trunk(name, &host, more)).unwrap();
    }
    let said = Site::new(&settings).check().await;
    said.problem("trunk silent", "does not answer OPTIONS → see the address");
    said.problem("trunk shut", "answers 503");
    said.problem("trunk closed", "cannot be reached");
    said.problem(
        "trunk nameless",
        "nowhere.invalid cannot be looked up (SRV, A, AAAA)",
    );
    let problems = said
        .text
        .lines()
        .filter(|line| line.starts_with("problem "))
        .count();
    assert_eq!(
        said.error,
        format!("clarion: {problems} problems were found\n")
    );
}

#[tokio::test]
async fn a_registration_is_tried_and_taken_back() {
    let friendly = friendly_peer().await;
    let strict = SipPeer::start(|method| match method {
        "REGISTER" => Some((403, String::new())),
        _ => Some((200, String::new())),
    })
    .await;
    let more = "user = \"u\"\npassword = \"p\"\nregister_seconds = 300";
    let mut settings = trunk("friendly", &friendly.address.to_string(), more);
    settings.push_str(&trunk("strict", &strict.address.to_string(), more));
    let said = Site::new(&settings).check().await;
    said.holds("ok", "trunk friendly", "takes our registration");
    said.problem("trunk strict", "refuses our registration with 403");
    assert_eq!(friendly.methods(), ["OPTIONS", "REGISTER", "REGISTER"]);
    let last = friendly.requests.lock().unwrap().last().unwrap().clone();
    assert!(last.contains("Expires: 0"), "{last}");
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_seen_by_what_the_trunk_says() {
    let date = |hours: i64| {
        #[expect(clippy::disallowed_methods, reason = "a peer has a clock of its own")]
        let now = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours);
        let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT");
        Some((200, format!("Date: {date}")))
    };
    let right = SipPeer::start(move |_| date(0)).await;
    let wrong = SipPeer::start(move |_| date(1)).await;
    let said = Site::new(&trunk("right", &right.address.to_string(), ""))
        .check()
        .await;
    said.holds("ok", "clock", "agrees with trunk right");
    let said = Site::new(&trunk("wrong", &wrong.address.to_string(), ""))
        .check()
        .await;
    said.problem("clock", "s ahead of trunk wrong");
}
