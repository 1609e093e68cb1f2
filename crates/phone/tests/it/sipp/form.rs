//! The forms that carriers want, as SIPp sees them.

use std::time::Duration;

use g711::Codec;
use phone::call::CallRequest;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::signalling::SipCredentials;
use phone::trunk::{Identity, NumberForm, SipTrunkConfig};
use tokio::net::UdpSocket;

use super::{Play, description};
use crate::lab::{PATIENCE, call, call_request, caller, loopback, sound, trunk, trunk_to};

/// What an INVITE has to show, as regular expressions, and what it must not.
fn checks(shows: &[&str], hides: &[&str]) -> String {
    let check = |text: &&str, how: &str| {
        let text = text.replace('<', "&lt;").replace('>', "&gt;");
        format!("<ereg regexp=\"{text}\" search_in=\"msg\" {how}=\"true\" assign_to=\"form\"/>\n")
    };
    let shows = shows.iter().map(|text| check(text, "check_it"));
    let hides = hides.iter().map(|text| check(text, "check_it_inverse"));
    shows.chain(hides).collect()
}

/// A call of this form to a SIPp that looks at it.
async fn is_seen(config: SipTrunkConfig, numbers: [&str; 2], checks: String) {
    let user = config.credentials.as_ref().unwrap();
    let user = user.auth_user.as_ref().unwrap_or(&user.user).clone();
    let sipp = Play::new("form")
        .key("checks", checks)
        .key("user", user)
        .start()
        .await;
    let trunk = trunk(SipTrunkConfig {
        host: sipp.address.into(),
        ..config
    })
    .await;
    let request = CallRequest {
        number: numbers[0].to_owned(),
        caller: numbers[1].to_owned(),
        ..call_request(vec![PlaybackItem::Sound(sound(5))])
    };
    let story = call(&caller(), &trunk, request).await;
    assert_eq!(story.talked().1, Side::Us);
    sipp.end_satisfied().await;
}

fn config(identity: Identity) -> SipTrunkConfig {
    SipTrunkConfig {
        domain: Some("customer.example:5070".to_owned()),
        credentials: Some(SipCredentials {
            user: "customer".to_owned(),
            auth_user: Some("prover".to_owned()),
            password: "secret".to_owned(),
        }),
        identity,
        ..SipTrunkConfig::new("test", loopback().into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sipp_sees_callers_and_numbers_as_its_trunk_wants_them() {
    let numbers = ["+8613800138000", "+864001234567"];
    let plain = checks(
        &[
            "^INVITE sip:\\+8613800138000@",
            "From: <sip:\\+864001234567@customer.example>;tag=",
            "To: <sip:\\+8613800138000@customer.example>",
            "Contact: <sip:customer@127.0.0.1:",
            "a=rtcp-mux",
        ],
        &[
            "P-Asserted-Identity",
            "P-Preferred-Identity",
            "Privacy",
            "Diversion",
            "user=phone",
        ],
    );
    is_seen(config(Identity::default()), numbers, plain).await;
    let everything = Identity {
        from_user: Some("boss".to_owned()),
        asserted: true,
        preferred: true,
        privacy: Some("id".to_owned()),
        diversion: Some("4000000000".to_owned()),
        display_name: Some("Clarion".to_owned()),
        from_domain: Some("from.example".to_owned()),
        contact_user: Some("line-7".to_owned()),
        form: NumberForm::SipPhone,
    };
    let told = checks(
        &[
            "^INVITE sip:\\+8613800138000@[^ ]*;user=phone SIP/2.0",
            "From: [^<]*Clarion[^<]*<sip:boss@from.example>;tag=",
            "P-Asserted-Identity: <sip:\\+864001234567@customer.example;user=phone>",
            "P-Preferred-Identity: <sip:\\+864001234567@customer.example;user=phone>",
            "Privacy: id",
            "Diversion: <sip:4000000000@customer.example;user=phone>",
            "X-Customer: 42; a=b",
            "Contact: <sip:line-7@127.0.0.1:",
        ],
        &["a=rtcp-mux"],
    );
    let mut with_headers = SipTrunkConfig {
        headers: vec![("X-Customer".to_owned(), "42; a=b".to_owned())],
        ..config(everything)
    };
    with_headers.media.rtcp_mux = false;
    is_seen(with_headers, numbers, told).await;
    let telephone = Identity {
        asserted: true,
        form: NumberForm::Tel { context: None },
        ..Identity::default()
    };
    let tel = checks(
        &[
            "^INVITE tel:\\+8613800138000 SIP/2.0",
            "To: <tel:\\+8613800138000>",
            "From: <tel:\\+864001234567>;tag=",
            "P-Asserted-Identity: <tel:\\+864001234567>",
        ],
        &["user=phone"],
    );
    is_seen(config(telephone.clone()), numbers, tel).await;
    // Nobody asserts a number that is not shown.
    let hidden = checks(
        &["From: <sip:anonymous@customer.example>"],
        &["P-Asserted-Identity"],
    );
    is_seen(config(telephone), ["+8613800138000", "anonymous"], hidden).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sipp_gets_packets_of_the_length_that_it_asks_for() {
    for (wish, bytes) in [
        ("a=ptime:20", 160),
        ("a=ptime:40", 320),
        ("a=ptime:60\na=maxptime:30", 240),
    ] {
        let rtp = UdpSocket::bind(loopback()).await.unwrap();
        let sipp = Play::new("answer")
            .key("rtp", rtp.local_addr().unwrap().port())
            .key("sdp", format!("{}\n{wish}", description()))
            .start()
            .await;
        let trunk = trunk_to(sipp.address).await;
        // 240 ms are whole packets of every length.
        let message = sound(12);
        let plan = vec![PlaybackItem::Sound(message.clone())];
        let phone = caller();
        let hearing = async {
            let (mut heard, mut packet) = (Vec::new(), [0; 2000]);
            while heard.len() < message.bytes(Codec::Pcma).len() {
                let length = tokio::time::timeout(PATIENCE, rtp.recv(&mut packet));
                let length = length.await.expect("sound in time").unwrap();
                // Reports are between them.
                if packet[1] & 0x7f == Codec::Pcma.payload_type() {
                    assert_eq!(length, 12 + bytes, "{wish}");
                    heard.extend_from_slice(&packet[12..length]);
                }
            }
            heard
        };
        let (story, heard) = tokio::join!(call(&phone, &trunk, call_request(plan)), hearing);
        assert_eq!(heard[..], message.bytes(Codec::Pcma)[..], "{wish}");
        let (time, side) = story.talked();
        assert_eq!(side, Side::Us);
        assert!(time >= Duration::from_millis(240 - 60), "{wish}: {time:?}");
        sipp.end_satisfied().await;
    }
}
