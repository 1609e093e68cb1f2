use super::*;
use crate::media::dtmf::{self, KeyTiming};
use proptest::prelude::*;
use std::time::Duration;

/// A packet that may be lost, delayed or doubled.
#[derive(Debug, Clone)]
struct Sent {
    source: u32,
    sequence: u16,
    timestamp: u32,
    payload: Vec<u8>,
    is_sound: bool,
}

/// Keys of 100 ms with 100 ms between them, in packets of so many samples. All numbers wrap around on the way.
fn pressing(keys: &str, codec: Codec, samples: usize) -> Vec<Sent> {
    let mut sound = vec![codec.silence(); 1000];
    for key in keys.chars() {
        let event = dtmf::event_of(key).unwrap();
        sound.extend(dtmf::tone(event, codec, KeyTiming::default()));
    }
    let pieces = sound.chunks(samples).zip(0_u16..);
    pieces
        .map(|(piece, place)| Sent {
            source: 7,
            sequence: place.wrapping_sub(5),
            timestamp: (u32::from(place) * u32::try_from(samples).unwrap()).wrapping_sub(2000),
            payload: piece.to_vec(),
            is_sound: true,
        })
        .collect()
}

fn heard(packets: &[Sent], codec: Codec) -> String {
    let mut listener = ToneListener::default();
    let mut keys = String::new();
    for sent in packets {
        let packet = Packet {
            payload_type: 8,
            marker: false,
            sequence: sent.sequence,
            timestamp: sent.timestamp,
            source: sent.source,
            payload: &sent.payload,
        };
        let payload = if sent.is_sound { packet.payload } else { &[] };
        listener.receive(&packet, payload, codec, |key| keys.push(key));
    }
    keys
}

const KEYS: &str = "1123*";

#[test]
fn keys_are_heard_in_packets_of_any_length() {
    for codec in Codec::ALL {
        for samples in [1, 37, 80, 160, 240, 320, 480, 800, 1600] {
            let packets = pressing(KEYS, codec, samples);
            assert_eq!(heard(&packets, codec), KEYS, "{samples} samples");
        }
    }
}

#[test]
fn a_lost_packet_neither_doubles_a_key_nor_hides_it() {
    let packets = pressing(KEYS, Codec::Pcma, 160);
    for lost in 0..packets.len() {
        let mut packets = packets.clone();
        packets.remove(lost);
        assert_eq!(heard(&packets, Codec::Pcma), KEYS, "without packet {lost}");
    }
}

#[test]
fn packets_that_come_late_or_twice_change_nothing() {
    let packets = pressing(KEYS, Codec::Pcma, 160);
    for place in 1..packets.len() {
        let mut swapped = packets.clone();
        swapped.swap(place - 1, place);
        assert_eq!(
            heard(&swapped, Codec::Pcma),
            KEYS,
            "packet {place} is early"
        );
    }
    let doubled: Vec<_> = (packets.iter())
        .flat_map(|packet| [packet.clone(), packet.clone()])
        .collect();
    assert_eq!(heard(&doubled, Codec::Pcma), KEYS);
}

#[test]
fn a_peer_that_sends_nothing_while_it_is_silent_presses_keys_all_the_same() {
    let silence = Codec::Pcma.silence();
    let mut packets = pressing("555", Codec::Pcma, 160);
    packets.retain(|packet| packet.payload.iter().any(|byte| *byte != silence));
    // Without a packet nothing is missing either.
    for (packet, sequence) in packets.iter_mut().zip(0..) {
        packet.sequence = sequence;
    }
    assert_eq!(heard(&packets, Codec::Pcma), "555");
}

#[test]
fn comfort_noise_is_a_pause() {
    let silence = Codec::Pcma.silence();
    let mut packets = pressing("555", Codec::Pcma, 160);
    for packet in &mut packets {
        packet.is_sound = packet.payload.iter().any(|byte| *byte != silence);
    }
    assert_eq!(heard(&packets, Codec::Pcma), "555");
}

#[test]
fn a_new_source_in_the_middle_of_a_key_does_not_double_it() {
    let mut packets = pressing("5", Codec::Pcma, 160);
    let middle = packets.len() - 7;
    for packet in &mut packets[middle..] {
        packet.source = 8;
        packet.sequence = packet.sequence.wrapping_add(999);
        packet.timestamp = packet.timestamp.wrapping_mul(3);
    }
    assert_eq!(heard(&packets, Codec::Pcma), "5");
}

#[test]
fn a_key_before_and_after_a_long_loss_is_two() {
    let timing = KeyTiming::new(Duration::from_secs(2), Duration::from_millis(40));
    let sound = dtmf::tone(5, Codec::Pcma, timing);
    let mut packets: Vec<_> = (sound.chunks(160).zip(0_u16..))
        .map(|(piece, place)| Sent {
            source: 1,
            sequence: place,
            timestamp: u32::from(place) * 160,
            payload: piece.to_vec(),
            is_sound: true,
        })
        .collect();
    assert_eq!(heard(&packets, Codec::Pcma), "5");
    let mut gaps = packets.clone();
    gaps.drain(30..50);
    assert_eq!(heard(&gaps, Codec::Pcma), "5", "0.4 seconds");
    packets.drain(30..70);
    assert_eq!(heard(&packets, Codec::Pcma), "55", "0.8 seconds");
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(
        packets in proptest::collection::vec((any::<u16>(), any::<u32>(), 0_u32..3, 0_usize..2048), 0..20),
    ) {
        let packets: Vec<_> = packets
            .into_iter()
            .map(|(sequence, timestamp, source, length)| Sent {
                source,
                sequence,
                timestamp,
                payload: vec![0x55; length],
                is_sound: true,
            })
            .collect();
        heard(&packets, Codec::Pcmu);
    }

    /// Whatever is lost, delayed or doubled: no key comes twice.
    #[test]
    fn no_disorder_makes_a_key_of_nothing(
        fates in proptest::collection::vec(0_u8..10, 200),
    ) {
        let packets = pressing(KEYS, Codec::Pcma, 160);
        let mut arrived = Vec::new();
        for (packet, fate) in packets.into_iter().zip(fates) {
            match fate {
                0 => {}
                1 => arrived.extend([packet.clone(), packet]),
                2 => arrived.insert(arrived.len().saturating_sub(1), packet),
                _ => arrived.push(packet),
            }
        }
        let heard = heard(&arrived, Codec::Pcma);
        let mut pressed = KEYS.chars();
        prop_assert!(heard.chars().all(|key| pressed.any(|known| known == key)), "{}", heard);
    }
}
