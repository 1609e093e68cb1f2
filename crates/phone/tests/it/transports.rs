//! UDP, TCP and TLS, over IPv4 and IPv6.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use g711::Codec;
use phone::call::{MediaConfig, Phone};
use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::signalling::{Resolver, Signalling, SignallingConfig, TlsFiles, Transport};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use crate::lab::{PATIENCE, call, call_request, callee_config, caller, loopback, media, sound};

/// A private authority, and a certificate that it made for a name.
pub struct Certificates {
    pub authority: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

impl Certificates {
    pub fn for_name(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = rcgen::CertifiedIssuer::self_signed(authority, key).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        Self {
            authority: issuer.pem().into_bytes(),
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
        }
    }
}

async fn callee(
    sip: SignallingConfig,
    media: MediaConfig,
) -> (
    TestPhone,
    tokio::sync::mpsc::UnboundedReceiver<phone::test_phone::HeardCall>,
) {
    let config = TestPhoneConfig {
        sip,
        media,
        codecs: vec![Codec::Pcma],
        credentials: None,
    };
    TestPhone::start(&Supervisor::new(), &config, |_| Script::answer())
        .await
        .unwrap()
}

async fn trunk(sip: SignallingConfig, address: SocketAddr) -> Arc<Trunk> {
    let signalling = Arc::new(
        Signalling::start(&Supervisor::new(), &sip, None)
            .await
            .unwrap(),
    );
    Trunk::start(
        &Supervisor::new(),
        SipTrunkConfig::new("test", address.into()),
        signalling,
        Resolver::default(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_goes_over_tcp() {
    let sip = SignallingConfig::new(Transport::Tcp, loopback());
    let (callee, mut heard) = callee(sip.clone(), media(30_000..=39_999)).await;
    let trunk = trunk(sip, callee.contact()).await;
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(20))]),
    )
    .await;
    assert_eq!(story.course(), ["dialling", "ringing", "answered"]);
    assert_eq!(story.talked().1, Side::Us);
    let heard = tokio::time::timeout(PATIENCE, heard.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(heard.sound(), sound(20).bytes(Codec::Pcma).to_vec());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_goes_over_ipv6() {
    let sip = SignallingConfig::new(Transport::Udp, "[::1]:0".parse().unwrap());
    let six = MediaConfig {
        bind: "::1".parse().unwrap(),
        ..media(30_000..=39_999)
    };
    let (callee, mut heard) = callee(sip.clone(), six.clone()).await;
    let trunk = trunk(sip, callee.contact()).await;
    let phone = Phone::start(&Supervisor::new(), &six).unwrap();
    call(
        &phone,
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(20))]),
    )
    .await
    .talked();
    let heard = tokio::time::timeout(PATIENCE, heard.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(heard.sound(), sound(20).bytes(Codec::Pcma).to_vec());
}

async fn over_tls(authority: Option<Vec<u8>>, peer_name: &str) -> crate::lab::Story {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = Certificates::for_name("trunk.example");
    let mut sip = SignallingConfig::new(Transport::Tls, loopback());
    sip.tls.own = Some((made.certificate, made.key));
    let (callee, _heard) = callee(sip, media(30_000..=39_999)).await;
    let mut ours = SignallingConfig::new(Transport::Tls, loopback());
    ours.tls = TlsFiles {
        authorities: authority.unwrap_or(made.authority),
        peer_name: Some(peer_name.to_owned()),
        own: None,
    };
    let trunk = trunk(ours, callee.contact()).await;
    call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(20))]),
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_goes_over_tls_where_the_certificate_is_right() {
    assert_eq!(over_tls(None, "trunk.example").await.talked().1, Side::Us);
}

/// Nobody can connect to a caller that has no certificate: the BYE comes back on the connection that the caller has opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_hangs_up_over_tls_on_a_caller_without_a_certificate() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = Certificates::for_name("trunk.example");
    let mut sip = SignallingConfig::new(Transport::Tls, loopback());
    sip.tls.own = Some((made.certificate, made.key));
    let invited = Arc::new(std::sync::Mutex::new(None));
    let keep = Arc::clone(&invited);
    sip.trace = Some(phone::signalling::Trace::new(move |message| {
        if message.text.starts_with("INVITE") {
            *keep.lock().unwrap() = Some(message);
        }
    }));
    let config = TestPhoneConfig {
        sip,
        ..callee_config(&Codec::ALL)
    };
    let hang_up = |_: &str| Script::hang_up_after(Duration::from_millis(300));
    let (callee, _heard) = TestPhone::start(&Supervisor::new(), &config, hang_up)
        .await
        .unwrap();
    let mut ours = SignallingConfig::new(Transport::Tls, loopback());
    ours.tls = TlsFiles {
        authorities: made.authority,
        peer_name: Some("trunk.example".to_owned()),
        own: None,
    };
    let trunk = trunk(ours, callee.contact()).await;
    let long = vec![PlaybackItem::Sound(sound(200)); 10];
    let story = call(&caller(), &trunk, call_request(long)).await;
    assert_eq!(story.talked().1, Side::Them);
    // A peer that knows only where it is told to go finds the connection too.
    let invite = invited.lock().unwrap().take().unwrap();
    let from = invite.peer.unwrap();
    let contact = crate::puppet::header(&invite.text, "Contact");
    assert_eq!(contact, format!("<sip:4001234567@{from};transport=TLS>"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_certificate_is_noticed_at_once() {
    let stranger = Certificates::for_name("trunk.example").authority;
    for (authority, name) in [(Some(stranger), "trunk.example"), (None, "other.example")] {
        let story = over_tls(authority, name).await;
        assert_eq!(story.cause(), Cause::TransportDown);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_tcp_port_is_noticed_at_once() {
    let closed = std::net::TcpListener::bind(loopback())
        .unwrap()
        .local_addr()
        .unwrap();
    let trunk = trunk(SignallingConfig::new(Transport::Tcp, loopback()), closed).await;
    let story = call(&caller(), &trunk, call_request(vec![])).await;
    assert_eq!(story.cause(), Cause::TransportDown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_advertised_address_is_what_the_peer_sees() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let mut theirs = SignallingConfig::new(Transport::Udp, loopback());
    let keep = Arc::clone(&seen);
    theirs.trace = Some(phone::signalling::Trace::new(move |message| {
        if message.text.starts_with("INVITE") {
            message.text.clone_into(&mut keep.lock().unwrap());
        }
    }));
    let (callee, _heard) = callee(theirs, media(30_000..=39_999)).await;
    let mut ours = SignallingConfig::new(Transport::Udp, loopback());
    ours.advertised = Some("203.0.113.7:5066".parse().unwrap());
    let trunk = trunk(ours, callee.contact()).await;
    let phone = Phone::start(
        &Supervisor::new(),
        &MediaConfig {
            advertised: Some("203.0.113.8".parse().unwrap()),
            ..media(20_000..=29_999)
        },
    )
    .unwrap();
    let request = phone::call::CallRequest {
        talk_time: Duration::from_millis(100),
        ..call_request(vec![PlaybackItem::Silence { frames: 100 }])
    };
    call(&phone, &trunk, request).await;
    let invite = seen.lock().unwrap().clone();
    assert!(invite.contains("SIP/2.0/UDP 203.0.113.7:5066"), "{invite}");
    assert!(
        invite.contains("<sip:4001234567@203.0.113.7:5066>"),
        "{invite}"
    );
    assert!(invite.contains("c=IN IP4 203.0.113.8"), "{invite}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connections_to_all_hosts_are_kept_alive() {
    use tokio::io::AsyncReadExt;
    let peer = tokio::net::TcpListener::bind(loopback()).await.unwrap();
    let another = tokio::net::TcpListener::bind(loopback()).await.unwrap();
    let sip = SignallingConfig::new(Transport::Tcp, loopback());
    let signalling = Signalling::start(&Supervisor::new(), &sip, None).await;
    let config = SipTrunkConfig {
        keep_alive: Some(Duration::from_millis(50)),
        more_hosts: vec![another.local_addr().unwrap().into()],
        ..SipTrunkConfig::new("kept", peer.local_addr().unwrap().into())
    };
    let _trunk = Trunk::start(
        &Supervisor::new(),
        config,
        Arc::new(signalling.unwrap()),
        Resolver::default(),
    );
    for host in [peer, another] {
        let pings = async {
            let (mut connection, _) = host.accept().await.unwrap();
            let mut two = [0; 8];
            connection.read_exact(&mut two).await.unwrap();
            two
        };
        let pings = tokio::time::timeout(PATIENCE, pings).await.unwrap();
        assert_eq!(&pings, b"\r\n\r\n\r\n\r\n");
    }
}
