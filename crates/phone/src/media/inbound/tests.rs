use super::*;
use crate::media::dtmf;
use crate::media::rtp::Numbers;
use crate::media::srtp::{RTP_GROWTH, RtpSealer};
use std::sync::{Arc, Mutex};

const SUITE: Suite = Suite::AesCm128HmacSha1Tag80;

struct Lab {
    inbound: Inbound,
    keys: Arc<Mutex<String>>,
    now: Instant,
    numbers: Numbers,
}

fn peer() -> SocketAddr {
    "192.0.2.1:4000".parse().unwrap()
}

fn stranger() -> SocketAddr {
    "203.0.113.9:4000".parse().unwrap()
}

fn parameters() -> InboundParameters {
    InboundParameters {
        rtp: peer(),
        rtcp: "192.0.2.1:4001".parse().unwrap(),
        codec: Codec::Pcma,
        telephone_event: Some(101),
        inband_keys: true,
        key: None,
        symmetric: None,
        answered: true,
    }
}

impl Lab {
    fn new(parameters: InboundParameters) -> Self {
        let now = Instant::now();
        let keys = Arc::new(Mutex::new(String::new()));
        let pressed = Arc::clone(&keys);
        let on_inbound = move |event: InboundEvent<'_>| {
            if let InboundEvent::Key(key) | InboundEvent::Tone(key) = event {
                pressed.lock().unwrap().push(key);
            }
        };
        let mut inbound = Inbound::new(now, 7, Box::new(on_inbound));
        inbound.apply(parameters, now);
        let numbers = Numbers {
            source: 1,
            sequence: 0,
            timestamp: 0,
        };
        Self {
            inbound,
            keys,
            now,
            numbers,
        }
    }

    fn key(&mut self, event: u8) -> Vec<u8> {
        let timestamp = self.numbers.timestamp;
        self.numbers.timestamp += 1600;
        let header = self.numbers.header(101, true, timestamp);
        [&header[..], &dtmf::payload(event, 160, false)].concat()
    }

    fn receive(&mut self, bytes: &[u8], from: SocketAddr) -> Option<SocketAddr> {
        self.inbound.receive(bytes, from, self.now)
    }

    fn keys(&self) -> String {
        self.keys.lock().unwrap().clone()
    }

    fn stats(&self) -> MediaStats {
        let mut stats = MediaStats::default();
        self.inbound.add_to(&mut stats);
        stats
    }
}

#[test]
fn strangers_are_not_heard_and_do_not_keep_a_call_alive() {
    let mut lab = Lab::new(parameters());
    let (one, two) = (lab.key(1), lab.key(2));
    lab.now += Duration::from_secs(3);
    lab.receive(&one, stranger());
    lab.receive(&[0x80, 201, 0, 1, 0, 0, 0, 1], stranger());
    assert_eq!(
        lab.now - lab.inbound.last_received(),
        Duration::from_secs(3)
    );
    lab.receive(&two, peer());
    assert_eq!(lab.keys(), "2");
    assert_eq!(lab.inbound.last_received(), lab.now);
    assert_eq!(lab.stats().packets_received, 1);
}

#[test]
fn keys_in_early_media_are_not_ours() {
    let mut lab = Lab::new(InboundParameters {
        answered: false,
        ..parameters()
    });
    let (one, two) = (lab.key(1), lab.key(2));
    lab.receive(&one, peer());
    assert_eq!((lab.keys().as_str(), lab.stats().packets_received), ("", 1));
    lab.inbound.apply(parameters(), lab.now);
    lab.receive(&two, peer());
    assert_eq!(lab.keys(), "2");
}

#[test]
fn tones_are_listened_to_where_packets_were_not_agreed_on() {
    let tones = InboundParameters {
        telephone_event: None,
        ..parameters()
    };
    for (parameters, heard) in [
        (tones.clone(), "5"),
        (parameters(), ""),
        (
            InboundParameters {
                inband_keys: false,
                ..tones.clone()
            },
            "",
        ),
        (
            InboundParameters {
                answered: false,
                ..tones.clone()
            },
            "",
        ),
        (
            InboundParameters {
                codec: Codec::Pcmu,
                ..tones
            },
            "5",
        ),
    ] {
        let codec = parameters.codec;
        let mut lab = Lab::new(parameters.clone());
        for frame in dtmf::tone(5, codec, dtmf::KeyTiming::default()).chunks(160) {
            let timestamp = lab.numbers.timestamp;
            lab.numbers.timestamp += 160;
            let header = lab.numbers.header(codec.payload_type(), false, timestamp);
            let packet = [&header[..], frame].concat();
            lab.receive(&packet, stranger());
            lab.receive(&packet, peer());
        }
        assert_eq!(lab.keys(), heard, "{parameters:?}");
    }
}

#[test]
fn a_peer_behind_a_nat_is_learned_and_then_fixed() {
    let mut lab = Lab::new(InboundParameters {
        symmetric: Some(Believed::Anybody),
        ..parameters()
    });
    let mut learned = None;
    for event in 0..6 {
        let packet = lab.key(event);
        learned = learned.or(lab.receive(&packet, stranger()));
    }
    assert_eq!(learned, Some(stranger()));
    assert_eq!(lab.stats().peer, Some(stranger()));
    assert_eq!(
        lab.inbound.rtcp(),
        Some("203.0.113.9:4001".parse().unwrap())
    );
    // From now on the described address is as strange as any other.
    let nine = lab.key(9);
    lab.receive(&nine, peer());
    assert!(!lab.keys().contains('9'), "{}", lab.keys());
}

#[test]
fn a_peer_that_was_silent_until_it_answered_is_learned_then() {
    let early = InboundParameters {
        symmetric: Some(Believed::Anybody),
        answered: false,
        ..parameters()
    };
    let answered = InboundParameters {
        answered: true,
        ..early.clone()
    };
    let mut lab = Lab::new(early);
    lab.now += Duration::from_secs(30);
    assert!(lab.inbound.apply(answered.clone(), lab.now));
    for event in 0..6 {
        let packet = lab.key(event);
        lab.receive(&packet, stranger());
    }
    assert_eq!(lab.stats().peer, Some(stranger()));
    // A hold and what comes after it change nothing about that.
    assert!(!lab.inbound.apply(answered, lab.now));
    assert_eq!(lab.stats().peer, Some(stranger()));
}

#[test]
fn other_payload_types_teach_nothing() {
    let mut lab = Lab::new(InboundParameters {
        symmetric: Some(Believed::Anybody),
        ..parameters()
    });
    for _ in 0..20 {
        let header = lab.numbers.header(96, false, 0);
        assert_eq!(lab.receive(&header, stranger()), None);
    }
}

#[test]
fn of_an_encrypted_call_only_what_is_authentic_is_heard() {
    let key = MasterKey::random().unwrap();
    let mut lab = Lab::new(InboundParameters {
        key: Some((SUITE, key.clone())),
        symmetric: Some(Believed::Anybody),
        ..parameters()
    });
    let mut sealer = RtpSealer::new(SUITE, &key);
    for event in 0..6 {
        let forged = lab.key(event);
        assert_eq!(lab.receive(&forged, stranger()), None);
    }
    let mut packet = lab.key(5);
    let length = packet.len();
    packet.extend([0; RTP_GROWTH]);
    sealer.seal(&mut packet, length);
    assert_eq!(lab.receive(&packet, peer()), Some(peer()));
    lab.receive(&packet, peer());
    assert_eq!((lab.keys().as_str(), lab.stats().encrypted), ("5", true));
    // The same key offered again does not open the door to old packets.
    lab.inbound.apply(
        InboundParameters {
            key: Some((SUITE, key)),
            ..parameters()
        },
        lab.now,
    );
    lab.receive(&packet, peer());
    assert_eq!(lab.keys(), "5");
}

#[test]
fn the_peers_reports_are_in_the_facts() {
    let mut lab = Lab::new(parameters());
    let block = super::super::receiver_stats::ReceptionBlock {
        source: 7,
        fraction_lost: 26,
        lost: 5,
        highest: 100,
        jitter: 80,
    };
    let report = |fraction_lost, name| {
        rtcp::RtcpReport {
            source: 1,
            name,
            sent: None,
            received: Some(rtcp::OutgoingBlock {
                block: super::super::receiver_stats::ReceptionBlock {
                    fraction_lost,
                    ..block
                },
                last_report: None,
            }),
            goodbye: false,
        }
        .write()
    };
    lab.receive(&report(26, "a"), "192.0.2.1:9999".parse().unwrap());
    lab.receive(&report(3, "a"), "192.0.2.1:4001".parse().unwrap());
    lab.receive(&report(255, "a"), stranger());
    let expected = PeerStats {
        lost: 5,
        fraction_lost: 3,
        worst_fraction_lost: 26,
        jitter: Duration::from_millis(10),
    };
    assert_eq!(lab.stats().reported, Some(expected));
}
