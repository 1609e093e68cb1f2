//! A trace as a capture file (pcapng, draft-ietf-opsawg-pcapng) for Wireshark and its like. Every message is one UDP packet between the
//! addresses that it passed, also where it went over TCP or TLS: nothing has to be put together or decrypted. A comment says so.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::KeptMessage;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// IP packets without anything before them.
const LINKTYPE_RAW: u16 = 101;
const COMMENT: u16 = 1;
const UDP: u8 = 17;
const HOPS: u8 = 64;
const UDP_HEADER: usize = 8;
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

pub fn write_pcapng(out: &mut impl Write, messages: &[KeptMessage]) -> io::Result<()> {
    let mut section = Vec::new();
    // The order of bytes, version 1.0, and a length that is not known before.
    section.extend(0x1A2B_3C4D_u32.to_le_bytes());
    section.extend(1_u16.to_le_bytes());
    section.extend(0_u16.to_le_bytes());
    section.extend((-1_i64).to_le_bytes());
    write_block(out, SECTION_HEADER, &section)?;
    let mut interface = Vec::new();
    interface.extend(LINKTYPE_RAW.to_le_bytes());
    interface.extend(0_u16.to_le_bytes());
    // Packets of any length. Times are in microseconds unless an option says otherwise.
    interface.extend(0_u32.to_le_bytes());
    write_block(out, INTERFACE, &interface)?;
    for message in messages {
        write_block(out, ENHANCED_PACKET, &enhanced_packet(message))?;
    }
    Ok(())
}

/// A block has its length at both ends, and is filled up to a multiple of four bytes.
fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let body = padded(body);
    let length = u32::try_from(body.len() + 12).map_err(io::Error::other)?;
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&body)?;
    out.write_all(&length.to_le_bytes())
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

fn enhanced_packet(message: &KeptMessage) -> Vec<u8> {
    let packet = packet(message);
    let micros = u64::try_from(message.at.as_microsecond()).unwrap_or(0);
    let (high, low) = ((micros >> 32) as u32, (micros & 0xffff_ffff) as u32);
    let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
    let mut block = Vec::new();
    for number in [0, high, low, length, length] {
        block.extend(number.to_le_bytes());
    }
    block.extend(padded(&packet));
    if message.transport != "udp" {
        let comment = format!("sent over {}", message.transport.to_uppercase());
        block.extend(COMMENT.to_le_bytes());
        block.extend(length_of(comment.as_bytes()).to_le_bytes());
        block.extend(padded(comment.as_bytes()));
        // The end of the options.
        block.extend(0_u32.to_le_bytes());
    }
    block
}

/// An IP packet with a UDP packet with the message.
fn packet(message: &KeptMessage) -> Vec<u8> {
    let (from, to) = message.ends();
    let (from, to) = (from.unwrap_or(NOWHERE), to.unwrap_or(NOWHERE));
    match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let udp = udp(message, from.port(), to.port(), &pseudo_v4(source, target));
            [&ipv4(source, target, udp.len())[..], &udp].concat()
        }
        (source, target) => {
            let (source, target) = (as_v6(source), as_v6(target));
            let pseudo = [source.octets(), target.octets()].concat();
            let udp = udp(message, from.port(), to.port(), &pseudo);
            [&ipv6(source, target, udp.len())[..], &udp].concat()
        }
    }
}

fn as_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn pseudo_v4(source: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    [source.octets(), target.octets()].concat()
}

/// RFC 791 section 3.1.
fn ipv4(source: Ipv4Addr, target: Ipv4Addr, content: usize) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    let length = u16::try_from(content + header.len()).unwrap_or(u16::MAX);
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[8] = HOPS;
    header[9] = UDP;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&target.octets());
    let sum = checksum([&header[..]]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// RFC 8200 section 3.
fn ipv6(source: Ipv6Addr, target: Ipv6Addr, content: usize) -> [u8; 40] {
    let mut header = [0; 40];
    header[0] = 0x60;
    let length = u16::try_from(content).unwrap_or(u16::MAX);
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[6] = UDP;
    header[7] = HOPS;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&target.octets());
    header
}

/// RFC 768. `addresses` are those of the IP packet, which are summed up too.
fn udp(message: &KeptMessage, from: u16, to: u16, addresses: &[u8]) -> Vec<u8> {
    let text = message.text.as_bytes();
    let length = u16::try_from(UDP_HEADER + text.len()).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(UDP_HEADER + text.len());
    packet.extend(from.to_be_bytes());
    packet.extend(to.to_be_bytes());
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(text);
    let protocol = [0, UDP];
    let sum = checksum([addresses, &protocol, &length.to_be_bytes(), &packet]);
    // 0 would mean that there is no sum.
    let sum = if sum == 0 { u16::MAX } else { sum };
    packet[6..8].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// RFC 1071. All parts but the last have an even number of bytes.
fn checksum<const PARTS: usize>(parts: [&[u8]; PARTS]) -> u16 {
    let pairs = parts.into_iter().flat_map(|part| part.chunks(2));
    let words = pairs.map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum = words.fold(0, |sum: u32, word| {
        let sum = sum.wrapping_add(word);
        (sum & 0xffff) + (sum >> 16)
    });
    sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) as u16)
}

fn length_of(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}
