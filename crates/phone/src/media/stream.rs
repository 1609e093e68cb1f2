//! What one call sends: silence, sounds and keys, packet by packet. It has no socket and no clock: the pacer asks for the next packet at its
//! time, every 20 ms unless the peer wants something else.

use std::collections::VecDeque;

use super::dtmf::{self, END_PACKETS, KeyTiming};
use super::rtp::{HEADER_BYTES, Numbers};
use crate::sdp::PacketTime;
use g711::{Codec, EncodedAudio, FRAME_BYTES};

pub const LARGEST_PACKET: usize = HEADER_BYTES + PacketTime::LONGEST.bytes();

/// One item of what is played; the items follow each other without a gap.
#[derive(Debug, Clone)]
pub enum PlaybackItem {
    Silence {
        frames: u32,
    },
    Sound(EncodedAudio),
    /// Keys of a telephone, for an extension behind a switchboard.
    Keys(String),
}

/// A key that no telephone has: it makes the turn of its stream panic, so that tests can show that other calls go on.
#[cfg(debug_assertions)]
pub const PANIC_KEY: char = '!';

/// An item in this call's codec.
#[derive(Debug)]
enum Segment {
    /// So many bytes of it.
    Silence(usize),
    /// The bytes are shared with every other call that plays the same sound; the position in them is this call's own.
    Sound {
        sound: EncodedAudio,
        position: usize,
    },
    /// A key as a tone, in the codec of the stream.
    Tone { bytes: Vec<u8>, position: usize },
    Event {
        event: u8,
        began: Option<u32>,
        samples: u16,
        ends: u8,
    },
    #[cfg(debug_assertions)]
    Panic,
}

/// What a turn brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPacket {
    /// This many bytes of the buffer are to be sent.
    Ready(usize),
    Finished,
}

#[derive(Debug)]
pub struct Stream {
    codec: Codec,
    telephone_event: Option<u8>,
    packet_time: PacketTime,
    timing: KeyTiming,
    numbers: Numbers,
    segments: VecDeque<Segment>,
    /// It has not had a turn yet.
    new: bool,
    /// The next packet begins a spurt of sound: after the start, and after a hold.
    fresh: bool,
    pub packets: u32,
    pub octets: u32,
    /// Bytes of sounds, without silence and keys.
    pub sound_octets: u32,
}

impl Stream {
    pub fn new(codec: Codec, telephone_event: Option<u8>, numbers: Numbers) -> Self {
        Self {
            codec,
            telephone_event,
            packet_time: PacketTime::default(),
            timing: KeyTiming::default(),
            numbers,
            segments: VecDeque::new(),
            new: true,
            fresh: true,
            packets: 0,
            octets: 0,
            sound_octets: 0,
        }
    }

    /// For keys that are appended after this.
    #[must_use]
    pub fn with_key_timing(mut self, timing: KeyTiming) -> Self {
        self.timing = timing;
        self
    }

    /// For what is appended after this.
    #[must_use]
    pub fn with_packet_time(mut self, packet_time: PacketTime) -> Self {
        self.packet_time = packet_time;
        self
    }

    pub fn packet_time(&self) -> PacketTime {
        self.packet_time
    }

    pub fn is_new(&self) -> bool {
        self.new
    }

    pub fn append(&mut self, items: &[PlaybackItem]) {
        for item in items {
            match item {
                PlaybackItem::Silence { frames } => {
                    self.append_silence(*frames as usize * FRAME_BYTES);
                }
                PlaybackItem::Sound(sound) if sound.frames() == 0 => {}
                PlaybackItem::Sound(sound) => {
                    let (sound, position) = (sound.clone(), 0);
                    self.segments.push_back(Segment::Sound { sound, position });
                }
                #[cfg(debug_assertions)]
                PlaybackItem::Keys(keys) if keys.contains(PANIC_KEY) => {
                    self.segments.push_back(Segment::Panic);
                }
                PlaybackItem::Keys(keys) => keys
                    .chars()
                    .filter_map(dtmf::event_of)
                    .for_each(|event| self.append_key(event)),
            }
        }
    }

    /// What was to follow is not played any more; a key that is being sent is sent to its end.
    pub fn replace(&mut self, items: &[PlaybackItem]) {
        let is_begun = |segment: &Segment| matches!(segment, Segment::Event { began: Some(_), .. });
        let begun = self.segments.pop_front().filter(is_begun);
        self.segments.clear();
        self.segments.extend(begun);
        self.fresh = true;
        self.append(items);
    }

    fn append_silence(&mut self, bytes: usize) {
        if bytes > 0 {
            self.segments.push_back(Segment::Silence(bytes));
        }
    }

    fn append_key(&mut self, event: u8) {
        if self.telephone_event.is_none() {
            let bytes = dtmf::tone(event, self.codec, self.timing);
            return self
                .segments
                .push_back(Segment::Tone { bytes, position: 0 });
        }
        self.segments.push_back(Segment::Event {
            event,
            began: None,
            samples: 0,
            ends: 0,
        });
        let ends = (usize::from(END_PACKETS) - 1) * self.packet_time.bytes();
        self.append_silence(self.timing.pause_bytes().saturating_sub(ends));
    }

    /// The peer wants another codec from the next packet on. What is played goes on where it is.
    pub fn speak(&mut self, codec: Codec) {
        let before = std::mem::replace(&mut self.codec, codec);
        if before == codec {
            return;
        }
        for segment in &mut self.segments {
            if let Segment::Tone { bytes, .. } = segment {
                for byte in bytes {
                    *byte = codec.encode(before.decode(*byte));
                }
            }
        }
    }

    /// The time of a packet in which nothing is sent: time goes on, the playback does not.
    pub fn hold(&mut self) {
        let samples = self.packet_time.samples();
        self.numbers.timestamp = self.numbers.timestamp.wrapping_add(samples.into());
        (self.new, self.fresh) = (false, true);
    }

    /// Writes the next packet.
    pub fn next(&mut self, buffer: &mut [u8; LARGEST_PACKET]) -> NextPacket {
        let now = self.numbers.timestamp;
        let payload = &mut buffer[HEADER_BYTES..];
        let (payload_type, marker, timestamp, length) = match self.segments.front_mut() {
            None => return NextPacket::Finished,
            Some(Segment::Event {
                event,
                began,
                samples,
                ends,
            }) => {
                let first = began.is_none();
                // All packets of an event carry the time of its beginning.
                let timestamp = *began.get_or_insert(now);
                let whole = self.timing.tone_samples();
                *samples = (*samples + self.packet_time.samples()).min(whole);
                let ending = *samples == whole;
                *ends += u8::from(ending);
                payload[..4].copy_from_slice(&dtmf::payload(*event, *samples, ending));
                if *ends == END_PACKETS {
                    self.segments.pop_front();
                }
                (
                    self.telephone_event.unwrap_or_default(),
                    first,
                    timestamp,
                    4,
                )
            }
            Some(_) => {
                let length = self.packet_time.bytes();
                self.fill(&mut payload[..length]);
                (self.codec.payload_type(), self.fresh, now, length)
            }
        };
        buffer[..HEADER_BYTES].copy_from_slice(&self.numbers.header(
            payload_type,
            marker,
            timestamp,
        ));
        self.numbers.timestamp = now.wrapping_add(self.packet_time.samples().into());
        (self.new, self.fresh) = (false, false);
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(u32::try_from(length).unwrap_or(0));
        NextPacket::Ready(HEADER_BYTES + length)
    }

    /// Fills a packet with sound. Sounds are whole frames of 20 ms, so that a packet of another length takes what is missing from the next
    /// segment, and is filled up with silence where there is no sound to follow.
    fn fill(&mut self, mut payload: &mut [u8]) {
        while !payload.is_empty() {
            let (length, done) = match self.segments.front_mut() {
                Some(Segment::Silence(left)) => {
                    let length = payload.len().min(*left);
                    payload[..length].fill(self.codec.silence());
                    *left -= length;
                    (length, *left == 0)
                }
                Some(Segment::Sound { sound, position }) => {
                    let (length, done) = take(payload, sound.bytes(self.codec), position);
                    let octets = u32::try_from(length).unwrap_or(0);
                    self.sound_octets = self.sound_octets.wrapping_add(octets);
                    (length, done)
                }
                Some(Segment::Tone { bytes, position }) => take(payload, bytes, position),
                #[cfg(debug_assertions)]
                Some(Segment::Panic) => panic!("the stream was asked to panic"),
                Some(Segment::Event { .. }) | None => {
                    return payload.fill(self.codec.silence());
                }
            };
            payload = &mut payload[length..];
            if done {
                self.segments.pop_front();
            }
        }
    }
}

/// Copies what comes next, as much as there is room for. Returns how much, and whether that was the last of it.
fn take(payload: &mut [u8], bytes: &[u8], position: &mut usize) -> (usize, bool) {
    let rest = &bytes[*position..];
    let length = payload.len().min(rest.len());
    payload[..length].copy_from_slice(&rest[..length]);
    *position += length;
    (length, *position == bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::rtp::Packet;
    use super::*;
    use std::time::Duration;

    fn stream(telephone_event: Option<u8>) -> Stream {
        Stream::new(
            Codec::Pcma,
            telephone_event,
            Numbers {
                source: 1,
                sequence: 65_530,
                timestamp: u32::MAX - 100,
            },
        )
    }

    /// All packets of a stream: payload type, marker, sequence, timestamp, payload.
    fn packets(stream: &mut Stream) -> Vec<(u8, bool, u16, u32, Vec<u8>)> {
        let mut buffer = [0; LARGEST_PACKET];
        let mut packets = Vec::new();
        while let NextPacket::Ready(length) = stream.next(&mut buffer) {
            let packet = Packet::parse(&buffer[..length]).unwrap();
            packets.push((
                packet.payload_type,
                packet.marker,
                packet.sequence,
                packet.timestamp,
                packet.payload.to_vec(),
            ));
        }
        packets
    }

    #[test]
    fn what_is_sent_is_what_was_to_be_played() {
        let samples: Vec<i16> = (0..1600).map(|index| index * 20).collect();
        let sound = EncodedAudio::encode(&samples);
        let mut stream = stream(None);
        stream.append(&[
            PlaybackItem::Silence { frames: 2 },
            PlaybackItem::Sound(sound.clone()),
            PlaybackItem::Sound(sound.clone()),
        ]);
        let packets = packets(&mut stream);
        assert_eq!(packets.len(), 22);
        let played: Vec<u8> = packets[2..]
            .iter()
            .flat_map(|packet| packet.4.clone())
            .collect();
        assert_eq!(
            played,
            [
                sound.bytes(Codec::Pcma).to_vec(),
                sound.bytes(Codec::Pcma).to_vec()
            ]
            .concat()
        );
        // Numbers run on without a gap, over the edge of their range; only the first packet begins a spurt.
        for (index, pair) in packets.windows(2).enumerate() {
            assert_eq!(pair[1].2, pair[0].2.wrapping_add(1), "{index}");
            assert_eq!(pair[1].3, pair[0].3.wrapping_add(160), "{index}");
            assert!(!pair[1].1);
        }
        assert!(packets[0].1);
    }

    #[test]
    fn another_codec_changes_the_sound_of_the_next_packet_and_nothing_else() {
        let sound = EncodedAudio::encode(&(0..1600).map(|index| index * 20).collect::<Vec<_>>());
        let mut stream = stream(None);
        stream.append(&[
            PlaybackItem::Sound(sound.clone()),
            PlaybackItem::Keys("5".to_owned()),
            PlaybackItem::Silence { frames: 1 },
        ]);
        let mut buffer = [0; LARGEST_PACKET];
        for _ in 0..4 {
            stream.next(&mut buffer);
        }
        let before = Packet::parse(&buffer).unwrap();
        let (sequence, timestamp) = (before.sequence, before.timestamp);
        stream.speak(Codec::Pcmu);
        let packets = packets(&mut stream);
        assert!(packets.iter().all(|packet| packet.0 == 0 && !packet.1));
        assert_eq!(packets[0].2, sequence.wrapping_add(1));
        assert_eq!(packets[0].3, timestamp.wrapping_add(160));
        let sent: Vec<u8> = packets.iter().flat_map(|packet| packet.4.clone()).collect();
        let rest = &sound.bytes(Codec::Pcmu)[640..];
        assert_eq!(&sent[..rest.len()], rest);
        let tone = dtmf::tone(5, Codec::Pcmu, KeyTiming::default());
        for (heard, meant) in sent[rest.len()..].iter().zip(&tone) {
            let apart = Codec::Pcmu
                .decode(*heard)
                .abs_diff(Codec::Pcmu.decode(*meant));
            assert!(apart <= 1024, "{apart}");
        }
        assert!(sent.ends_with(&[Codec::Pcmu.silence(); FRAME_BYTES]));
    }

    #[test]
    fn a_hold_stops_the_playback_and_not_the_time() {
        let mut stream = stream(None);
        stream.append(&[PlaybackItem::Silence { frames: 2 }]);
        let mut buffer = [0; LARGEST_PACKET];
        stream.next(&mut buffer);
        let before = Packet::parse(&buffer).unwrap().timestamp;
        stream.hold();
        stream.hold();
        let whole = HEADER_BYTES + FRAME_BYTES;
        assert_eq!(stream.next(&mut buffer), NextPacket::Ready(whole));
        let after = Packet::parse(&buffer).unwrap();
        assert_eq!(
            (after.timestamp.wrapping_sub(before), after.marker),
            (480, true)
        );
        assert_eq!(stream.next(&mut buffer), NextPacket::Finished);
    }

    #[test]
    fn keys_are_events_that_the_listener_hears_once_each() {
        let mut stream = stream(Some(101));
        stream.append(&[
            PlaybackItem::Keys("36*7 ".to_owned()),
            PlaybackItem::Silence { frames: 1 },
        ]);
        let mut listener = dtmf::KeyListener::default();
        let packets = packets(&mut stream);
        let events: Vec<_> = packets.iter().filter(|packet| packet.0 == 101).collect();
        let received: String = events
            .iter()
            .filter_map(|packet| listener.receive(packet.3, &packet.4))
            .collect();
        assert_eq!(received, "36*7");
        // Five packets of 100 ms, the last of them an end, and two more ends.
        assert_eq!(events.len(), 4 * 7);
        assert_eq!(events[4].4, dtmf::payload(3, 800, true));
        assert!(events[0].1 && !events[1].1);
    }

    #[test]
    fn without_telephone_event_keys_are_tones() {
        let mut stream = stream(None);
        stream.append(&[PlaybackItem::Keys("5".to_owned())]);
        let packets = packets(&mut stream);
        assert_eq!(packets.len(), 10);
        assert!(packets.iter().all(|packet| packet.0 == 8));
    }

    #[test]
    fn keys_take_the_time_that_was_asked_for() {
        for (tone, pause, frames) in [(60, 200, 3 + 10), (200, 40, 10 + 2)] {
            let timing = KeyTiming::new(Duration::from_millis(tone), Duration::from_millis(pause));
            for telephone_event in [None, Some(101)] {
                let mut stream = stream(telephone_event).with_key_timing(timing);
                stream.append(&[PlaybackItem::Keys("12".to_owned())]);
                assert_eq!(
                    packets(&mut stream).len(),
                    2 * frames,
                    "{telephone_event:?}"
                );
            }
        }
    }

    #[test]
    fn packets_have_the_length_that_the_peer_wants() {
        let sound = EncodedAudio::encode(&(0..800).map(|index| index * 30).collect::<Vec<_>>());
        let bytes = sound.bytes(Codec::Pcma).to_vec();
        let silence = vec![Codec::Pcma.silence(); 160];
        let played = [bytes.clone(), silence, bytes].concat();
        for millis in PacketTime::ALL {
            let time = PacketTime::of(Some(millis), None);
            let mut stream = stream(Some(101)).with_packet_time(time);
            stream.append(&[
                PlaybackItem::Sound(sound.clone()),
                PlaybackItem::Silence { frames: 1 },
                PlaybackItem::Sound(sound.clone()),
                PlaybackItem::Keys("5".to_owned()),
            ]);
            let packets = packets(&mut stream);
            let samples = u32::from(millis) * 8;
            for pair in packets.windows(2) {
                let is_sound = pair[0].0 == 8 && pair[1].0 == 8;
                let apart = pair[1].3.wrapping_sub(pair[0].3);
                assert!(!is_sound || apart % samples == 0, "{millis}: {apart}");
            }
            let sounds = packets.iter().filter(|packet| packet.0 == 8);
            let heard: Vec<u8> = sounds.flat_map(|packet| packet.4.clone()).collect();
            assert!(heard.starts_with(&played), "{millis}");
            // What was missing in the last packet before the key is silence, and so is all that follows.
            let rest = &heard[played.len()..];
            assert!(rest.iter().all(|byte| *byte == Codec::Pcma.silence()));
            let full = |packet: &&(u8, bool, u16, u32, Vec<u8>)| packet.4.len() == samples as usize;
            let sounds = packets.iter().filter(|packet| packet.0 == 8);
            assert_eq!(
                sounds.clone().filter(full).count(),
                sounds.count(),
                "{millis}"
            );
            let mut listener = dtmf::KeyListener::default();
            let events = packets.iter().filter(|packet| packet.0 == 101);
            let keys: String = events
                .filter_map(|packet| listener.receive(packet.3, &packet.4))
                .collect();
            assert_eq!(keys, "5", "{millis}");
        }
    }

    #[test]
    fn nothing_to_play_takes_no_time() {
        let mut stream = stream(None);
        stream.append(&[
            PlaybackItem::Silence { frames: 0 },
            PlaybackItem::Sound(EncodedAudio::encode(&[])),
        ]);
        assert_eq!(packets(&mut stream).len(), 0);
    }

    #[test]
    fn an_empty_stream_is_finished_at_once() {
        let mut stream = stream(None);
        assert_eq!(stream.next(&mut [0; LARGEST_PACKET]), NextPacket::Finished);
    }
}
