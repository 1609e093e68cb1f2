//! The form of our requests, read on the wire.

use std::sync::Arc;
use std::time::Duration;

use phone::ending::Cause;
use phone::signalling::{SipCredentials, Transport};
use phone::trunk::{Identity, NumberForm, SipTrunkConfig};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::lab::{PATIENCE, Story, call, call_request, caller, loopback, signalling, trunk};
use crate::puppet::{Puppet, header};

fn credentials() -> SipCredentials {
    SipCredentials {
        user: "customer".to_owned(),
        auth_user: None,
        password: "secret".to_owned(),
    }
}

async fn calling(config: SipTrunkConfig, number: &str, from: &str) -> JoinHandle<Story> {
    let trunk = trunk(config).await;
    let mut request = call_request(vec![]);
    (request.number, request.caller) = (number.to_owned(), from.to_owned());
    tokio::spawn(async move { call(&caller(), &trunk, request).await })
}

/// The first line, without the version, and the addresses in To and From.
fn addresses(request: &str) -> [&str; 3] {
    let within = |value: &'static str| {
        let value = header(request, value);
        let (_, rest) = value.split_once('<').unwrap();
        rest.split_once('>').unwrap().0
    };
    let target = request.split(' ').nth(1).unwrap();
    [target, within("To"), within("From")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_written_as_tel_addresses_where_the_trunk_wants_that() {
    let own = || Some("+86".to_owned());
    for (context, domain, number, from, expected) in [
        // Global numbers need no context.
        (
            None,
            None,
            "+8613800138000",
            "+864001234567",
            [
                "tel:+8613800138000",
                "tel:+8613800138000",
                "tel:+864001234567",
            ],
        ),
        (
            own(),
            None,
            "13800138000",
            "+864001234567",
            [
                "tel:13800138000;phone-context=+86",
                "tel:13800138000;phone-context=+86",
                "tel:+864001234567",
            ],
        ),
        (
            None,
            Some("trunk.example:5070"),
            "*21#",
            "anonymous",
            [
                "tel:*21#;phone-context=trunk.example",
                "tel:*21#;phone-context=trunk.example",
                "sip:anonymous@trunk.example",
            ],
        ),
    ] {
        let mut puppet = Puppet::new().await;
        let config = SipTrunkConfig {
            domain: domain.map(str::to_owned),
            identity: Identity {
                form: NumberForm::Tel { context },
                asserted: true,
                ..Identity::default()
            },
            credentials: Some(credentials()),
            ..SipTrunkConfig::new("test", puppet.address().into())
        };
        let calling = calling(config, number, from).await;
        let invite = puppet.request("INVITE").await;
        assert_eq!(addresses(&invite), expected, "{invite}");
        // Where no number is shown, none is asserted.
        let asserted = invite.contains("P-Asserted-Identity:");
        assert_eq!(asserted, from != "anonymous", "{invite}");
        if asserted {
            let shown = format!("<{}>", expected[2]);
            assert_eq!(header(&invite, "P-Asserted-Identity"), shown);
        }
        // The digest is over the same address, and everything that follows goes to the trunk too.
        let challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n";
        puppet.respond(&invite, "401 Unauthorized", challenge).await;
        let ack = puppet.request("ACK").await;
        assert_eq!(addresses(&ack), expected, "{ack}");
        let proved = puppet.request("INVITE").await;
        assert_eq!(addresses(&proved), expected, "{proved}");
        let uri = format!("uri=\"{}\"", expected[0]);
        assert!(header(&proved, "Authorization").contains(&uri), "{proved}");
        puppet.respond(&proved, "486 Busy Here", "").await;
        assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_a_tel_address_is_cancelled_where_it_went() {
    let mut puppet = Puppet::new().await;
    let config = SipTrunkConfig {
        progress_time: Some(Duration::from_millis(200)),
        identity: Identity {
            form: NumberForm::Tel { context: None },
            ..Identity::default()
        },
        ..SipTrunkConfig::new("test", puppet.address().into())
    };
    let calling = calling(config, "+8613800138000", "+864001234567").await;
    let invite = puppet.request("INVITE").await;
    puppet.respond(&invite, "100 Trying", "").await;
    let cancel = puppet.request("CANCEL").await;
    assert_eq!(addresses(&cancel), addresses(&invite));
    puppet.respond(&cancel, "200 OK", "").await;
    puppet.respond(&invite, "487 Request Terminated", "").await;
    assert_eq!(calling.await.unwrap().cause(), Cause::TimedOut);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_and_from_have_no_port_and_our_contact_has_a_user() {
    let given = Identity {
        from_domain: Some("from.example:5090".to_owned()),
        contact_user: Some("line-7".to_owned()),
        ..Identity::default()
    };
    for (identity, account, from, contact) in [
        (Identity::default(), None, "127.0.0.1", "4001234567"),
        (
            Identity::default(),
            Some(credentials()),
            "127.0.0.1",
            "customer",
        ),
        (given, Some(credentials()), "from.example", "line-7"),
    ] {
        let mut puppet = Puppet::new().await;
        let config = SipTrunkConfig {
            identity,
            credentials: account,
            ..SipTrunkConfig::new("test", puppet.address().into())
        };
        let calling = calling(config, "13800000000", "4001234567").await;
        let invite = puppet.request("INVITE").await;
        let expected = [
            format!("sip:13800000000@{}", puppet.address()),
            "sip:13800000000@127.0.0.1".to_owned(),
            format!("sip:4001234567@{from}"),
        ];
        assert_eq!(addresses(&invite), expected, "{invite}");
        let us = puppet.peer.unwrap();
        let reached = format!("<sip:{contact}@{us}>");
        assert_eq!(header(&invite, "Contact"), reached, "{invite}");
        puppet.respond(&invite, "486 Busy Here", "").await;
        assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
    }
}

/// Over TCP the transport is said in the address of the request and in our Contact, and nowhere else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_and_from_have_no_transport() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = SipTrunkConfig {
        ask_every: Some(Duration::from_secs(60)),
        credentials: Some(credentials()),
        register: Some(Duration::from_secs(60)),
        ..SipTrunkConfig::new("test", address.into())
    };
    let trunk = phone::trunk::Trunk::start(
        &supervisor::Supervisor::new(),
        config,
        signalling(Transport::Tcp).await,
        phone::signalling::Resolver::default(),
    );
    let calling = tokio::spawn({
        let trunk = Arc::clone(&trunk);
        async move { call(&caller(), &trunk, call_request(vec![])).await }
    });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut text = String::new();
    let request = |text: &str, method: &str| {
        let start = text.find(&format!("{method} sip:"))?;
        let (head, _) = text[start..].split_once("\r\n\r\n")?;
        Some(head.to_owned())
    };
    for method in ["INVITE", "OPTIONS", "REGISTER"] {
        let head = loop {
            if let Some(head) = request(&text, method) {
                break head;
            }
            let mut buffer = [0; 4096];
            let reading = tokio::time::timeout(PATIENCE, stream.read(&mut buffer));
            let length = reading.await.unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        };
        let [target, to, from] = addresses(&head);
        let full = format!("{address};transport=TCP");
        assert!(target.ends_with(&full), "{head}");
        for address in [to, from] {
            assert!(address.ends_with("127.0.0.1"), "{head}");
        }
        assert!(header(&head, "Contact").contains(";transport=TCP>"));
    }
    calling.abort();
    trunk.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_escaped_once() {
    let mut puppet = Puppet::new().await;
    let config = SipTrunkConfig::new("test", puppet.address().into());
    let calling = calling(config, "*21#138", "2").await;
    let invite = puppet.request("INVITE").await;
    let [target, to, _] = addresses(&invite);
    assert_eq!(target, format!("sip:*21%23138@{}", puppet.address()));
    assert_eq!(to, "sip:*21%23138@127.0.0.1");
    puppet.respond(&invite, "486 Busy Here", "").await;
    assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_offers_nothing_that_it_cannot_keep() {
    let mut puppet = Puppet::new().await;
    let config = SipTrunkConfig {
        credentials: Some(credentials()),
        register: Some(Duration::from_secs(60)),
        ..SipTrunkConfig::new("test", puppet.address().into())
    };
    let trunk = trunk(config).await;
    let register = puppet.request("REGISTER").await;
    let expected = [
        format!("sip:{}", puppet.address()),
        "sip:customer@127.0.0.1".to_owned(),
        "sip:customer@127.0.0.1".to_owned(),
    ];
    assert_eq!(addresses(&register), expected, "{register}");
    // RFC 5626: `outbound` wants an instance id, and we have none.
    assert_eq!(header(&register, "Supported"), "path", "{register}");
    trunk.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_acknowledged_with_our_own_via() {
    let mut puppet = Puppet::new().await;
    let config = SipTrunkConfig::new("test", puppet.address().into());
    // The endpoint outlives the call: it has to acknowledge what is repeated.
    let trunk = trunk(config).await;
    let calling = tokio::spawn({
        let trunk = Arc::clone(&trunk);
        async move { call(&caller(), &trunk, call_request(vec![])).await }
    });
    let invite = puppet.request("INVITE").await;
    let ours = header(&invite, "Via").to_owned();
    // What a peer notes in a Via (RFC 3581), and another one that does not belong there.
    let noted = invite.replace(
        &format!("Via: {ours}"),
        &format!(
            "Via: {};received=127.0.0.1\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKother",
            ours.replace("rport", "rport=5099")
        ),
    );
    for _ in 0..2 {
        // The second time it is the repetition of a refusal whose ACK was lost. A refusal is repeated until it is acknowledged.
        let ack = loop {
            puppet.respond(&noted, "486 Busy Here", "").await;
            let ack = tokio::time::timeout(Duration::from_millis(500), puppet.request("ACK"));
            if let Ok(ack) = ack.await {
                break ack;
            }
        };
        let vias: Vec<_> = ack.lines().filter(|line| line.starts_with("Via")).collect();
        assert_eq!(vias, [format!("Via: {ours}")], "{ack}");
    }
    assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_has_no_quotes_where_none_belong() {
    for challenge in [
        "Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\", opaque=\"o\"",
        "Digest realm=\"r\",nonce=n,algorithm=\"MD5\",qop=auth,opaque=\"o\"",
        "digest realm = \"r\" , nonce = \"n\", qop = \"auth-int, auth\", opaque = o",
    ] {
        let mut puppet = Puppet::new().await;
        let config = SipTrunkConfig {
            credentials: Some(credentials()),
            ..SipTrunkConfig::new("test", puppet.address().into())
        };
        let calling = calling(config, "1", "2").await;
        let invite = puppet.request("INVITE").await;
        let challenge = format!("WWW-Authenticate: {challenge}\r\n");
        puppet
            .respond(&invite, "401 Unauthorized", &challenge)
            .await;
        let proved = loop {
            let invite = puppet.request("INVITE").await;
            if invite.contains("Authorization") {
                break invite;
            }
        };
        let proof = header(&proved, "Authorization");
        for field in [
            "Digest username=\"customer\", ",
            ", realm=\"r\", ",
            ", nonce=\"n\", ",
            ", algorithm=MD5, ",
            ", opaque=\"o\", ",
            ", qop=auth, nc=00000001, cnonce=\"",
        ] {
            assert!(proof.contains(field), "{field} is missing in {proof}");
        }
        puppet.respond(&proved, "486 Busy Here", "").await;
        assert_eq!(calling.await.unwrap().cause(), Cause::Busy);
    }
}
