//! Any session description is refused, or understood in a way that our own answer repeats.

#![no_main]

use std::sync::LazyLock;

use g711::Codec;
use libfuzzer_sys::fuzz_target;
use phone::sdp::{MasterKey, Suite};
use phone::sdp::{LocalMedia, answer, read_answer};

static PLAIN: LazyLock<LocalMedia> = LazyLock::new(|| LocalMedia {
    address: "192.0.2.1".parse().unwrap(),
    port: 40_000,
    codecs: Codec::ALL.to_vec(),
    spare_codecs: vec![],
    telephone_event: true,
    keys: vec![],
    rtcp_mux: true,
    session: 7,
    version: 1,
});
static ENCRYPTED: LazyLock<LocalMedia> = LazyLock::new(|| LocalMedia {
    keys: Suite::ALL
        .map(|suite| (suite, MasterKey::from_base64(&"A".repeat(40)).unwrap()))
        .to_vec(),
    ..PLAIN.clone()
});

fuzz_target!(|text: &[u8]| {
    for local in [&*PLAIN, &*ENCRYPTED] {
        let read = read_answer(text, local);
        let answered = answer(text, local);
        assert_eq!(read.is_ok(), answered.is_ok());
        let (Ok(read), Ok((ours, remote))) = (read, answered) else {
            continue;
        };
        assert_eq!(read, remote);
        assert!(!remote.rtp.ip().is_multicast() && remote.rtp.port() != 0);
        assert_eq!(remote.keys.is_some(), !local.keys.is_empty());
        // The peer must be able to read our answer, and it says what was agreed on.
        let mirror = read_answer(ours.as_bytes(), local).expect(&ours);
        assert_eq!(mirror.codec, remote.codec);
        assert_eq!(mirror.telephone_event, remote.telephone_event);
        assert_eq!(mirror.rtcp_mux, remote.rtcp_mux);
        // The old way to hold is an address that nobody has, and says nothing about directions.
        if !remote.rtp.ip().is_unspecified() {
            let ours = (mirror.listens, mirror.speaks);
            assert_eq!(ours, (remote.speaks, remote.listens));
        }
        let lines = ours.split("\r\n").filter(|line| line.starts_with("m="));
        assert!(lines.count() <= text.len() / 2);
    }
});
