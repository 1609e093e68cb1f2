//! Any packets, one after the other, do a call no harm: RTP, RTCP, keys, encrypted or not, from a peer that is known or to be learned.

#![no_main]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use g711::Codec;
use libfuzzer_sys::fuzz_target;
use phone::media::inbound::{Inbound, InboundEvent, InboundParameters};
use phone::media::latch::Believed;
use phone::media::rtp::{self, Packet};
use phone::sdp::{MasterKey, Suite};
use phone::media::stats::MediaStats;
use phone::media::{dtmf, rtcp};

const SOURCE: u32 = 0x0102_0304;

// The first byte says how the call is, and then every packet comes after its length, its delay and who sent it.
fuzz_target!(|bytes: &[u8]| {
    let Some((flags, mut rest)) = bytes.split_first() else {
        return;
    };
    let now = Instant::now();
    let mut inbound = Inbound::new(now, SOURCE, Box::new(check_event));
    let peer = |number: u8| SocketAddr::from(([192, 0, 2, number % 3], 4000));
    let key = MasterKey::from_base64(&"A".repeat(40)).unwrap();
    let sip_peer = Some(peer(1).ip());
    let believed = [Believed::Anybody, Believed::Hosts { sip_peer }];
    let believed = believed.get(usize::from(flags >> 5 & 1)).copied();
    let parameters = InboundParameters {
        rtp: peer(0),
        rtcp: peer(0),
        codec: Codec::Pcma,
        telephone_event: (flags & 16 == 0).then_some(101),
        inband_keys: true,
        key: (flags & 1 != 0).then_some((Suite::ALL[usize::from(flags >> 3 & 1)], key)),
        symmetric: believed.filter(|_| flags & 2 != 0),
        answered: flags & 4 != 0,
    };
    inbound.apply(parameters, now);
    inbound.set_ears(flags & 64 != 0);
    let (mut time, mut received) = (now, 0_u32);
    while let [length, delay, from, after @ ..] = rest {
        let (packet, after) = after.split_at(after.len().min((*length).into()));
        time += Duration::from_millis((*delay).into());
        check_packet(packet);
        inbound.receive(packet, peer(*from), time);
        inbound.report(time);
        received += 1;
        rest = after;
    }
    let mut stats = MediaStats::default();
    inbound.add_to(&mut stats);
    assert!(stats.packets_received <= received && stats.jitter <= stats.worst_jitter);
    assert!(inbound.last_received() <= time);
});

fn check_event(event: InboundEvent<'_>) {
    match event {
        InboundEvent::Key(key) | InboundEvent::Tone(key) => assert!(dtmf::event_of(key).is_some()),
        InboundEvent::Sound(packet, _) => {
            assert_eq!(packet.payload_type, Codec::Pcma.payload_type())
        }
        InboundEvent::Heard => {}
    }
}

/// What is read from a packet lies within it, and it is one thing or the other.
fn check_packet(bytes: &[u8]) {
    let packet = Packet::parse(bytes);
    if let Some(packet) = packet {
        assert!(!rtp::is_rtcp(bytes));
        let header = rtp::header_length(bytes).expect("RTP has a header");
        assert!(header + packet.payload.len() <= bytes.len());
        assert!(bytes[header..].starts_with(packet.payload));
    }
    let report = rtcp::read(bytes, SOURCE);
    assert!(report.is_none() || packet.is_none());
}
