use super::*;
use proptest::prelude::*;

fn local() -> LocalMedia {
    LocalMedia {
        address: "192.0.2.1".parse().unwrap(),
        port: 40_000,
        codecs: vec![Codec::Pcma, Codec::Pcmu],
        spare_codecs: vec![],
        telephone_event: true,
        keys: vec![],
        rtcp_mux: false,
        session: 7,
        version: 1,
    }
}

fn peer(lines: &str) -> Vec<u8> {
    format!(
        "v=0\r\no=x 1 1 IN IP4 198.51.100.2\r\ns=x\r\nc=IN IP4 198.51.100.2\r\nt=0 0\r\n{lines}"
    )
    .into_bytes()
}

#[test]
fn another_codec_is_taken_where_the_peer_wants_none_of_the_usual_ones() {
    let local = LocalMedia {
        codecs: vec![Codec::Pcma],
        spare_codecs: Codec::ALL.to_vec(),
        ..local()
    };
    assert!(!offer(&local).contains("PCMU"));
    for (formats, codec) in [("0 8", Codec::Pcma), ("0", Codec::Pcmu)] {
        let text = peer(&format!("m=audio 5004 RTP/AVP {formats}\r\n"));
        let (answer, remote) = answer(&text, &local).unwrap();
        assert_eq!(remote.codec, codec);
        assert!(answer.contains(&format!("RTP/AVP {}\r\n", codec.payload_type())));
    }
}

#[test]
fn an_offer_says_what_we_can() {
    assert_eq!(
        offer(&local()),
        "v=0\r\no=- 7 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 8 0 101\r\n\
         a=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n"
    );
    let own = read_answer(offer(&local()).as_bytes(), &local()).unwrap();
    assert_eq!(
        (own.codec, own.telephone_event, own.listens),
        (Codec::Pcma, Some(101), true)
    );
}

#[test]
fn the_first_codec_of_an_answer_counts() {
    let remote = read_answer(
        &peer("m=audio 5000 RTP/AVP 0 8 96\r\na=rtpmap:96 telephone-event/8000\r\n"),
        &local(),
    )
    .unwrap();
    assert_eq!(
        (remote.codec, remote.telephone_event),
        (Codec::Pcmu, Some(96))
    );
    assert_eq!(remote.rtp, "198.51.100.2:5000".parse().unwrap());
    assert_eq!(remote.rtcp, "198.51.100.2:5001".parse().unwrap());
    let unknown_first = peer("m=audio 5000 RTP/AVP 18 8\r\na=rtpmap:18 G729/8000\r\n");
    let remote = read_answer(&unknown_first, &local()).unwrap();
    assert_eq!((remote.codec, remote.telephone_event), (Codec::Pcma, None));
}

#[test]
fn hold_is_understood_in_every_way_it_is_written() {
    for (lines, listens, speaks) in [
        ("m=audio 5000 RTP/AVP 8\r\na=sendonly\r\n", false, true),
        ("m=audio 5000 RTP/AVP 8\r\na=inactive\r\n", false, false),
        ("m=audio 5000 RTP/AVP 8\r\na=recvonly\r\n", true, false),
        (
            "m=audio 5000 RTP/AVP 8\r\nc=IN IP4 0.0.0.0\r\n",
            false,
            false,
        ),
        ("a=sendonly\r\nm=audio 5000 RTP/AVP 8\r\n", false, true),
        (
            "a=sendonly\r\nm=audio 5000 RTP/AVP 8\r\na=sendrecv\r\n",
            true,
            true,
        ),
        ("m=audio 5000 RTP/AVP 8\r\n", true, true),
    ] {
        let remote = read_answer(&peer(lines), &local()).unwrap();
        assert_eq!(
            (remote.listens, remote.speaks),
            (listens, speaks),
            "{lines}"
        );
    }
}

#[test]
fn an_offer_is_answered_line_by_line() {
    let lines = "m=video 6000 RTP/AVP 34\r\nm=audio 5000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\na=sendonly\r\n";
    let (text, remote) = answer(&peer(lines), &local()).unwrap();
    assert!(
        text.contains("m=video 0 RTP/AVP 34\r\nm=audio 40000 RTP/AVP 0 101\r\n"),
        "{text}"
    );
    assert!(text.contains("a=recvonly"), "{text}");
    assert!(!remote.listens);
}

const KEY: &str = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";

fn encrypted() -> LocalMedia {
    let keys = Suite::ALL.map(|suite| (suite, MasterKey::random().unwrap()));
    LocalMedia {
        keys: keys.to_vec(),
        ..local()
    }
}

#[test]
fn encryption_is_agreed_on_or_refused() {
    let encrypted = encrypted();
    let line =
        format!("m=audio 5000 RTP/SAVP 8\r\na=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:{KEY}\r\n");
    let (text, remote) = answer(&peer(&line), &encrypted).unwrap();
    let keys = remote.keys.unwrap();
    assert_eq!(keys.theirs.to_base64(), KEY);
    let ours = keys.ours.to_base64();
    assert!(
        text.contains("RTP/SAVP 8")
            && text.contains(&format!(
                "a=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:{ours}\r\n"
            )),
        "{text}"
    );
    assert_eq!(
        read_answer(&peer("m=audio 5000 RTP/AVP 8\r\n"), &encrypted),
        Err(SdpError::Encryption)
    );
    assert_eq!(
        read_answer(&peer(&line), &local()),
        Err(SdpError::Encryption)
    );
}

#[test]
fn both_suites_are_offered_and_the_answer_chooses() {
    let (ours, theirs) = (encrypted(), encrypted());
    let text = offer(&ours);
    assert!(text.contains("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:"));
    assert!(text.contains("a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:"));
    let only_short = LocalMedia {
        keys: theirs.keys[1..].to_vec(),
        ..theirs
    };
    let (text, remote) = answer(text.as_bytes(), &only_short).unwrap();
    let theirs = remote.keys.unwrap();
    let ours = read_answer(text.as_bytes(), &ours).unwrap().keys.unwrap();
    assert_eq!(ours.suite, Suite::AesCm128HmacSha1Tag32);
    assert_eq!((&ours.ours, &ours.theirs), (&theirs.theirs, &theirs.ours));
}

#[test]
fn a_key_that_asks_for_more_than_we_do_is_passed_over() {
    for crypto in [
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20|1:4"),
        format!("1 AES_CM_128_HMAC_SHA1_80 inline:{KEY} UNENCRYPTED_SRTP"),
        "1 AES_CM_128_HMAC_SHA1_80 inline:AAAA".to_owned(),
        format!("1 F8_128_HMAC_SHA1_80 inline:{KEY}"),
    ] {
        let line = format!("m=audio 5000 RTP/SAVP 8\r\na=crypto:{crypto}\r\n");
        let refused = read_answer(&peer(&line), &encrypted());
        assert_eq!(refused, Err(SdpError::Encryption), "{crypto}");
        let usable = format!("a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^31 WSH=64\r\n");
        assert!(read_answer(&peer(&(line + &usable)), &encrypted()).is_ok());
    }
}

#[test]
fn lines_that_mean_nothing_to_us_do_no_harm() {
    let lines = "m=audio 5000 RTP/AVP 8\r\na=candidate:nonsense\r\na=imageattr:[\r\na=\r\na=ssrc:x\r\na=rtpmap:8 PCMA/8000\r\n";
    assert!(read_answer(&peer(lines), &local()).is_ok());
    for lifetime in ["2^48", "2^4000000000", "999999999999", "2^48\u{fffd}"] {
        let line = format!(
            "m=audio 5000 RTP/SAVP 8\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|{lifetime}\r\n"
        );
        assert!(read_answer(&peer(&line), &encrypted()).is_ok(), "{line}");
    }
}

#[test]
fn fax_and_other_media_beside_the_sound_do_no_harm() {
    for other in [
        "m=image 7000 udptl t38",
        "m=message 9 TCP/MSRP *",
        "m=video 0 RTP/AVPF 96 97",
    ] {
        let lines = format!("{other}\r\nm=audio 5000 RTP/AVP 8\r\n{other}\r\n");
        let (text, _) = answer(&peer(&lines), &local()).expect(other);
        let kinds: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("m="))
            .filter_map(|line| line.split(' ').next())
            .collect();
        let kind = other[2..].split(' ').next().unwrap();
        assert_eq!(kinds, [kind, "audio", kind], "{text}");
    }
}

#[test]
fn rtcp_goes_where_both_agree() {
    let mux = LocalMedia {
        rtcp_mux: true,
        ..local()
    };
    let rtcp = |lines: &str, local: &LocalMedia| {
        let lines = format!("m=audio 5000 RTP/AVP 8\r\n{lines}");
        let remote = read_answer(&peer(&lines), local).unwrap();
        (remote.rtcp.to_string(), remote.rtcp_mux)
    };
    let at = |address: &str, mux| (address.to_owned(), mux);
    assert_eq!(rtcp("", &mux), at("198.51.100.2:5001", false));
    assert_eq!(rtcp("a=rtcp-mux\r\n", &mux), at("198.51.100.2:5000", true));
    assert_eq!(
        rtcp("a=rtcp-mux\r\n", &local()),
        at("198.51.100.2:5001", false)
    );
    assert_eq!(
        rtcp("a=rtcp:6007\r\n", &mux),
        at("198.51.100.2:6007", false)
    );
    assert_eq!(
        rtcp("a=rtcp:6007 IN IP4 192.0.2.9\r\n", &local()),
        at("192.0.2.9:6007", false)
    );
    assert_eq!(
        rtcp("a=rtcp:6007\r\na=rtcp-mux\r\n", &mux),
        at("198.51.100.2:5000", true)
    );
    let offered = peer("m=audio 5000 RTP/AVP 8\r\na=rtcp-mux\r\n");
    assert!(answer(&offered, &mux).unwrap().0.contains("a=rtcp-mux\r\n"));
    assert!(!answer(&offered, &local()).unwrap().0.contains("rtcp-mux"));
    assert!(offer(&mux).contains("a=rtcp-mux\r\n"));
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |lines: &str| read_answer(&peer(lines), &local()).unwrap_err();
    assert_eq!(refused(""), SdpError::NoAudio);
    assert_eq!(refused("m=audio 0 RTP/AVP 8\r\n"), SdpError::NoAudio);
    assert_eq!(
        refused("m=audio 5000 RTP/AVP 18\r\n"),
        SdpError::NoCommonCodec
    );
    assert_eq!(
        refused("m=audio 5000 RTP/AVP 8\r\nc=IN IP4 host.example\r\n"),
        SdpError::NoAddress
    );
    assert_eq!(
        refused("m=audio 5000 RTP/AVP 8\r\nc=IN IP4 239.1.1.1\r\n"),
        SdpError::NoAddress
    );
    assert!(matches!(
        read_answer(&vec![b'v'; parse::LONGEST + 1], &local()),
        Err(SdpError::Unreadable(_))
    ));
    assert!(matches!(
        read_answer(b"nonsense", &local()),
        Err(SdpError::Unreadable(_))
    ));
    assert!(matches!(
        read_answer(&[0xff], &local()),
        Err(SdpError::Unreadable(_))
    ));
}

#[test]
fn an_ipv6_address_is_written_as_one() {
    let mut six = local();
    six.address = "2001:db8::1".parse().unwrap();
    let text = offer(&six);
    assert!(text.contains("c=IN IP6 2001:db8::1\r\n"));
    assert_eq!(
        read_answer(text.as_bytes(), &six).unwrap().rtp.ip(),
        six.address
    );
}

proptest! {
    /// Lines that stand in real descriptions, in any order and number, cut and mixed.
    #[test]
    fn any_lines_are_understood_or_refused(
        lines in prop::collection::vec(prop::sample::select(vec![
            "m=audio 5000 RTP/AVP 8", "m=audio 0 RTP/SAVP 0 101", "m=video 1 RTP/AVP 34", "c=IN IP6 ::1", "c=IN IP4 0.0.0.0", "a=sendonly",
            "a=rtpmap:101 telephone-event/8000", "a=rtcp:1 IN IP4 1.2.3.4", "a=rtcp-mux", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAA|2^99",
            "a=rtpmap:8 PCMU/8000", "\u{e4}\u{20ac}", "", "a=", "m=",
        ]), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = peer(&lines.join("\r\n"));
        let text = &text[..cut.index(text.len() + 1)];
        for local in [local(), encrypted()] {
            let read = read_answer(text, &local);
            let answered = answer(text, &local);
            prop_assert_eq!(read.ok(), answered.ok().map(|(_, remote)| remote));
        }
    }
}
