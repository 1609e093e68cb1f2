use super::super::rtp::Numbers;
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;

const SUITE: Suite = Suite::AesCm128HmacSha1Tag80;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

/// The master key and salt of RFC 3711 appendix B.3.
fn master() -> MasterKey {
    let key = bytes("E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6");
    MasterKey::from_base64(&BASE64.encode(key)).unwrap()
}

fn packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut numbers = Numbers {
        source: 0xcafe_babe,
        sequence,
        timestamp: 0,
    };
    [&numbers.header(8, false, 160)[..], payload].concat()
}

fn sealed(sealer: &mut RtpSealer, packet: &[u8]) -> Vec<u8> {
    let mut buffer = [packet, &[0; RTP_GROWTH]].concat();
    let length = sealer.seal(&mut buffer, packet.len());
    buffer.truncate(length);
    buffer
}

#[test]
fn the_key_stream_is_that_of_the_rfc() {
    // Appendix B.2.
    let mut stream = [0; 48];
    apply_key_stream(
        &aes(&bytes("2B7E151628AED2A6ABF7158809CF4F3C")),
        number(&bytes("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000")),
        &mut stream,
    );
    let expected = "E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0";
    assert_eq!(stream.to_vec(), bytes(expected));
}

#[test]
fn the_derived_keys_are_those_of_the_rfc() {
    // Appendix B.3. The cipher and the tag show their keys only by what they make.
    let derived = Transform::rtp(&master());
    assert_eq!(derived.salt, number(&bytes("30CBBC08863D8C85D49DB34A9AE1")));
    let (mut ours, mut theirs) = ([0; 32], [0; 32]);
    apply_key_stream(&derived.cipher, 7 << 16, &mut ours);
    apply_key_stream(
        &aes(&bytes("C61E7A93744F39EE10734AFE3FF7A087")),
        7 << 16,
        &mut theirs,
    );
    assert_eq!(ours, theirs);
    let auth = bytes("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4");
    let mac = <Hmac<Sha1> as KeyInit>::new_from_slice(&auth).unwrap();
    assert_eq!(
        derived.tag([b"x", b""]).finalize().into_bytes(),
        mac.chain_update(b"x").finalize().into_bytes()
    );
}

/// Packets whose sealed form other implementations publish for the key of the RFC.
#[test]
fn whole_packets_are_sealed_as_others_seal_them() {
    let clear = bytes("800f1234decafbadcafebabe abababababababababababababababab");
    let expected = "800f1234decafbadcafebabe 4e55dc4ce79978d88ca4d215949d2402 b78d6acc99ea179b8dbb";
    assert_eq!(
        sealed(&mut RtpSealer::new(SUITE, &master()), &clear),
        bytes(expected)
    );
    let mut report = bytes("81c8000bcafebabe abababababababababababababababab");
    RtcpSealer::new(&master()).seal(&mut report);
    let expected =
        "81c8000bcafebabe 7128035be487b9bdbef89041f977a5a8 80000001 993e08cd54d6c1230798";
    assert_eq!(report, bytes(expected));
}

#[test]
fn a_packet_is_opened_once() {
    for suite in Suite::ALL {
        let (mut sealer, mut opener) = (
            RtpSealer::new(suite, &master()),
            Opener::new(suite, &master()),
        );
        let clear = packet(5, b"hello");
        let sealed = sealed(&mut sealer, &clear);
        assert_eq!(sealed.len(), clear.len() + suite.rtp_tag());
        let mut room = Vec::new();
        assert_eq!(opener.open_rtp(&sealed, &mut room), Some(&clear[..]));
        assert_eq!(opener.open_rtp(&sealed, &mut room), None, "a replay");
    }
}

#[test]
fn sequence_numbers_roll_over_and_come_out_of_order() {
    let (mut sealer, mut opener) = (
        RtpSealer::new(SUITE, &master()),
        Opener::new(SUITE, &master()),
    );
    let mut room = Vec::new();
    let mut packets: Vec<_> = (65_500_u32..66_500)
        .map(|number| {
            let clear = packet((number & 0xffff) as u16, &number.to_be_bytes());
            let sealed = sealed(&mut sealer, &clear);
            (clear, sealed)
        })
        .collect();
    // Neighbours change places, over the rollover too.
    packets.chunks_mut(2).for_each(<[_]>::reverse);
    for (clear, sealed) in &packets {
        assert_eq!(opener.open_rtp(sealed, &mut room), Some(&clear[..]));
    }
    assert_eq!(opener.open_rtp(&packets[0].1, &mut room), None, "too old");
}

#[test]
fn a_rollover_long_ago_does_not_matter() {
    let (mut sealer, mut opener) = (
        RtpSealer::new(SUITE, &master()),
        Opener::new(SUITE, &master()),
    );
    let mut room = Vec::new();
    // Most packets of three rounds are lost.
    for number in (0_u32..200_000).map(|number| (number & 0xffff) as u16) {
        let clear = packet(number, b"x");
        let sealed = sealed(&mut sealer, &clear);
        if number.is_multiple_of(10_000) {
            assert_eq!(opener.open_rtp(&sealed, &mut room), Some(&clear[..]));
        }
    }
}

#[test]
fn reports_are_opened_once_and_only_encrypted_ones() {
    let (mut sealer, mut opener) = (RtcpSealer::new(&master()), Opener::new(SUITE, &master()));
    let clear = bytes("80c90001cafebabe 0102030405060708");
    let mut room = Vec::new();
    let mut report = clear.clone();
    sealer.seal(&mut report);
    assert_eq!(opener.open_rtcp(&report, &mut room), Some(&clear[..]));
    assert_eq!(opener.open_rtcp(&report, &mut room), None);
    let mut open = clear.clone();
    open.extend(9_u32.to_be_bytes());
    let tag = Transform::rtcp(&master()).tag([&open, b""]).finalize();
    open.extend(&tag.into_bytes()[..RTCP_TAG]);
    assert_eq!(opener.open_rtcp(&open, &mut room), None);
}

#[test]
fn keys_are_written_and_read_and_never_shown() {
    let key = MasterKey::random().unwrap();
    assert_eq!(MasterKey::from_base64(&key.to_base64()), Some(key.clone()));
    assert_ne!(MasterKey::random().unwrap(), key);
    assert_eq!(format!("{key:?}"), "MasterKey(…)");
    for wrong in ["", "AAAA", "not base64!", &"A".repeat(44)] {
        assert_eq!(MasterKey::from_base64(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn what_was_changed_on_the_way_is_not_opened(
        payload in prop::collection::vec(any::<u8>(), 0..200), place in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut sealed = sealed(&mut RtpSealer::new(SUITE, &master()), &packet(1, &payload));
        let place = place.index(sealed.len());
        sealed[place] ^= 1_u8 << bit;
        let mut room = Vec::new();
        prop_assert_eq!(Opener::new(SUITE, &master()).open_rtp(&sealed, &mut room), None);
    }

    #[test]
    fn any_bytes_are_opened_or_not_and_nothing_breaks(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut opener = Opener::new(SUITE, &master());
        let mut room = Vec::new();
        prop_assert_eq!(opener.open_rtp(&bytes, &mut room), None);
        prop_assert_eq!(opener.open_rtcp(&bytes, &mut room), None);
    }
}
