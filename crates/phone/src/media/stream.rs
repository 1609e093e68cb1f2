//! What one call sends: silence, sounds and keys, packet by packet. It has no socket and no clock: the pacer asks for the next packet every
//! 20 ms.

use std::collections::VecDeque;
use std::sync::Arc;

use super::dtmf::{self, END_PACKETS, KeyTiming};
use super::rtp::{HEADER_BYTES, Numbers};
use g711::{Codec, EncodedAudio, FRAME_BYTES};

pub const LARGEST_PACKET: usize = HEADER_BYTES + FRAME_BYTES;
const FRAME_SAMPLES: u16 = 160;

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
    Silence {
        frames: u32,
    },
    /// The bytes are shared with every other call that plays the same sound; the position in them is this call's own.
    Bytes {
        bytes: Arc<[u8]>,
        position: usize,
        /// And not the tone of a key.
        is_sound: bool,
    },
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

    pub fn is_new(&self) -> bool {
        self.new
    }

    pub fn append(&mut self, items: &[PlaybackItem]) {
        for item in items {
            match item {
                PlaybackItem::Silence { frames } => self.append_silence(*frames),
                PlaybackItem::Sound(sound) if sound.frames() == 0 => {}
                PlaybackItem::Sound(sound) => {
                    let bytes = Arc::clone(sound.bytes(self.codec));
                    self.segments.push_back(Segment::Bytes {
                        bytes,
                        position: 0,
                        is_sound: true,
                    });
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

    fn append_silence(&mut self, frames: u32) {
        if frames > 0 {
            self.segments.push_back(Segment::Silence { frames });
        }
    }

    fn append_key(&mut self, event: u8) {
        if self.telephone_event.is_none() {
            let bytes = Arc::from(dtmf::tone(event, self.codec, self.timing));
            return self.segments.push_back(Segment::Bytes {
                bytes,
                position: 0,
                is_sound: false,
            });
        }
        self.segments.push_back(Segment::Event {
            event,
            began: None,
            samples: 0,
            ends: 0,
        });
        self.append_silence(self.timing.frames_after_event());
    }

    /// 20 ms in which nothing is sent: time goes on, the playback does not.
    pub fn hold(&mut self) {
        self.numbers.timestamp = self
            .numbers
            .timestamp
            .wrapping_add(u32::from(FRAME_SAMPLES));
        (self.new, self.fresh) = (false, true);
    }

    /// Writes the next packet.
    pub fn next(&mut self, buffer: &mut [u8; LARGEST_PACKET]) -> NextPacket {
        let now = self.numbers.timestamp;
        let Some(segment) = self.segments.front_mut() else {
            return NextPacket::Finished;
        };
        let (payload_type, marker, timestamp, length, done) = match segment {
            Segment::Silence { frames } => {
                buffer[HEADER_BYTES..].fill(self.codec.silence());
                *frames = frames.saturating_sub(1);
                (
                    self.codec.payload_type(),
                    self.fresh,
                    now,
                    FRAME_BYTES,
                    *frames == 0,
                )
            }
            Segment::Bytes {
                bytes,
                position,
                is_sound,
            } => {
                let frame = &bytes[*position..(*position + FRAME_BYTES).min(bytes.len())];
                buffer[HEADER_BYTES..HEADER_BYTES + frame.len()].copy_from_slice(frame);
                *position += FRAME_BYTES;
                if *is_sound {
                    let octets = u32::try_from(frame.len()).unwrap_or(0);
                    self.sound_octets = self.sound_octets.wrapping_add(octets);
                }
                (
                    self.codec.payload_type(),
                    self.fresh,
                    now,
                    frame.len(),
                    *position >= bytes.len(),
                )
            }
            Segment::Event {
                event,
                began,
                samples,
                ends,
            } => {
                let first = began.is_none();
                // All packets of an event carry the time of its beginning.
                let timestamp = *began.get_or_insert(now);
                let whole = self.timing.tone_samples();
                *samples = (*samples + FRAME_SAMPLES).min(whole);
                let ending = *samples == whole;
                *ends += u8::from(ending);
                buffer[HEADER_BYTES..HEADER_BYTES + 4]
                    .copy_from_slice(&dtmf::payload(*event, *samples, ending));
                (
                    self.telephone_event.unwrap_or_default(),
                    first,
                    timestamp,
                    4,
                    *ends == END_PACKETS,
                )
            }
            #[cfg(debug_assertions)]
            Segment::Panic => panic!("the stream was asked to panic"),
        };
        buffer[..HEADER_BYTES].copy_from_slice(&self.numbers.header(
            payload_type,
            marker,
            timestamp,
        ));
        self.numbers.timestamp = now.wrapping_add(u32::from(FRAME_SAMPLES));
        (self.new, self.fresh) = (false, false);
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(u32::try_from(length).unwrap_or(0));
        if done {
            self.segments.pop_front();
        }
        NextPacket::Ready(HEADER_BYTES + length)
    }
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
    fn a_hold_stops_the_playback_and_not_the_time() {
        let mut stream = stream(None);
        stream.append(&[PlaybackItem::Silence { frames: 2 }]);
        let mut buffer = [0; LARGEST_PACKET];
        stream.next(&mut buffer);
        let before = Packet::parse(&buffer).unwrap().timestamp;
        stream.hold();
        stream.hold();
        assert_eq!(stream.next(&mut buffer), NextPacket::Ready(LARGEST_PACKET));
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
