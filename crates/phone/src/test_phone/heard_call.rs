//! What the phone knows of a call when it is over: every packet with its arrival time, and what follows from that.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::ending::Side;
use g711::{Codec, FRAME_MILLIS};

const RATE: u32 = 8000;
/// A packet that comes later than this after its due time would not have been played by a phone with an ordinary buffer.
const LATE: Duration = Duration::from_millis(60);

/// One packet of sound, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedPacket {
    pub arrived: Instant,
    pub sequence: u16,
    pub timestamp: u32,
    pub payload: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct HeardCall {
    pub number: String,
    /// The number that was shown.
    pub caller: String,
    pub call_id: String,
    pub answered: bool,
    /// From the answer to the hang-up.
    pub talked: Duration,
    /// When its INVITE was seen, and when it was over: before the caller was told so, where this phone hung up.
    pub invited: Instant,
    pub ended: Instant,
    /// `None` for a call that was never answered.
    pub hung_up_by: Option<Side>,
    pub codec: Option<Codec>,
    /// Packets of sound in the order of their arrival.
    pub packets: Vec<ReceivedPacket>,
    /// Keys that the caller pressed.
    pub keys: String,
}

/// How well the packets kept their time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    pub packets: usize,
    /// Missing between the first and the last.
    pub lost: usize,
    /// Came after a younger one.
    pub out_of_order: usize,
    pub late: usize,
    pub longest_gap: Duration,
    /// RFC 3550 section 6.4.1.
    pub jitter: Duration,
    /// How much faster the sender's clock runs than ours, in millionths.
    pub drift_ppm: f64,
}

impl HeardCall {
    /// The sound from the first packet to the last, by their timestamps; lost packets are silence.
    pub fn sound(&self) -> Vec<u8> {
        let Some(first) = self.packets.first() else {
            return Vec::new();
        };
        // A stranger's timestamps could ask for gigabytes: nothing lies further from the first packet than an hour.
        let hour = 3600 * RATE as usize;
        let place =
            |packet: &ReceivedPacket| packet.timestamp.wrapping_sub(first.timestamp) as usize;
        let packets = || self.packets.iter().filter(|packet| place(packet) < hour);
        let length = packets()
            .map(|packet| place(packet) + packet.payload.len())
            .max()
            .unwrap_or(0);
        let silence = self.codec.map_or(0, Codec::silence);
        let mut sound = vec![silence; length];
        for packet in packets() {
            sound[place(packet)..][..packet.payload.len()].copy_from_slice(&packet.payload);
        }
        sound
    }

    /// Packets that are missing between the first and the last.
    pub fn lost(&self) -> usize {
        self.timing().lost
    }

    pub fn timing(&self) -> Timing {
        let Some(first) = self.packets.first() else {
            return Timing::default();
        };
        let mut timing = Timing {
            packets: self.packets.len(),
            ..Timing::default()
        };
        let mut jitter = 0.0;
        let mut last = first;
        let mut earliest = f64::MAX;
        let lateness = |packet: &ReceivedPacket| {
            let due = f64::from(packet.timestamp.wrapping_sub(first.timestamp)) / f64::from(RATE);
            (packet.arrived - first.arrived).as_secs_f64() - due
        };
        for packet in &self.packets {
            earliest = earliest.min(lateness(packet));
        }
        for packet in &self.packets {
            timing.late += usize::from(lateness(packet) - earliest > LATE.as_secs_f64());
        }
        for packet in &self.packets[1..] {
            timing.longest_gap = timing.longest_gap.max(packet.arrived - last.arrived);
            jitter += ((lateness(packet) - lateness(last)).abs() - jitter) / 16.0;
            timing.out_of_order +=
                usize::from(packet.sequence.wrapping_sub(last.sequence) > u16::MAX / 2);
            last = packet;
        }
        let sent = usize::from(last.sequence.wrapping_sub(first.sequence)) + 1;
        timing.lost = sent.saturating_sub(self.packets.len());
        timing.jitter = Duration::from_secs_f64(jitter.max(0.0));
        timing.drift_ppm = drift_ppm(&self.packets, lateness);
        timing
    }

    /// The sound as a WAV file: 8 kHz, 16 bit, one channel.
    pub fn write_wav(&self, out: &mut impl Write) -> io::Result<()> {
        let codec = self.codec.unwrap_or(Codec::Pcma);
        let sound = self.sound();
        let bytes = u32::try_from(sound.len() * 2).map_err(io::Error::other)?;
        let mut header = Vec::with_capacity(44);
        header.extend(b"RIFF");
        header.extend((36 + bytes).to_le_bytes());
        header.extend(b"WAVEfmt ");
        header.extend(16u32.to_le_bytes());
        header.extend(1u16.to_le_bytes());
        header.extend(1u16.to_le_bytes());
        header.extend(RATE.to_le_bytes());
        header.extend((RATE * 2).to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(16u16.to_le_bytes());
        header.extend(b"data");
        header.extend(bytes.to_le_bytes());
        out.write_all(&header)?;
        let samples: Vec<u8> = sound
            .iter()
            .flat_map(|byte| codec.decode(*byte).to_le_bytes())
            .collect();
        out.write_all(&samples)
    }
}

/// The slope of lateness over time. Packets are delayed but never early, so the earliest packet of each second counts, and a straight
/// line is fitted to these.
fn drift_ppm(packets: &[ReceivedPacket], lateness: impl Fn(&ReceivedPacket) -> f64) -> f64 {
    let per_second = 1000 / FRAME_MILLIS as usize;
    let points: Vec<(f64, f64)> = packets
        .chunks_exact(per_second)
        .filter_map(|second| {
            second
                .iter()
                .map(|packet| {
                    let time = (packet.arrived - packets[0].arrived).as_secs_f64();
                    (time, lateness(packet))
                })
                .min_by(|left, right| left.1.total_cmp(&right.1))
        })
        .collect();
    #[expect(
        clippy::cast_precision_loss,
        reason = "no call lasts for that many seconds"
    )]
    let count = points.len() as f64;
    if points.len() < 2 {
        return 0.0;
    }
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (time, late) = (mean(|point| point.0), mean(|point| point.1));
    let (mut together, mut alone) = (0.0, 0.0);
    for (when, lateness) in &points {
        together += (when - time) * (lateness - late);
        alone += (when - time) * (when - time);
    }
    // Growing lateness is a slow sender.
    -together / alone * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(packets: impl IntoIterator<Item = (u64, u16)>) -> HeardCall {
        let start = Instant::now();
        HeardCall {
            number: String::new(),
            caller: String::new(),
            call_id: String::new(),
            answered: true,
            talked: Duration::ZERO,
            invited: start,
            ended: start,
            hung_up_by: None,
            codec: Some(Codec::Pcma),
            packets: packets
                .into_iter()
                .map(|(micros, sequence)| ReceivedPacket {
                    arrived: start + Duration::from_micros(micros),
                    sequence,
                    timestamp: u32::from(sequence) * 160,
                    payload: vec![0x55; 160],
                })
                .collect(),
            keys: String::new(),
        }
    }

    #[test]
    fn drift_is_measured_through_delays() {
        // 100 ppm slow, with a pause of 40 ms now and then.
        let packets = (0..1000u16).map(|index| {
            let pause = if index % 7 == 3 { 40_000 } else { 0 };
            (u64::from(index) * 20_002 + pause, index)
        });
        let timing = call(packets).timing();
        assert!((timing.drift_ppm + 100.0).abs() < 1.0, "{timing:?}");
        assert_eq!((timing.packets, timing.lost, timing.late), (1000, 0, 0));
        assert_eq!(timing.longest_gap, Duration::from_micros(60_002));
    }

    #[test]
    fn losses_and_late_ones_are_counted() {
        let timing = call([(0, 0), (20_000, 1), (60_000, 3), (160_000, 4), (161_000, 2)]).timing();
        assert_eq!(
            (timing.lost, timing.out_of_order, timing.late),
            (0, 1, 2),
            "{timing:?}"
        );
        assert_eq!(call([(0, 0), (60_000, 3)]).timing().lost, 2);
    }

    #[test]
    fn a_recording_is_a_wav_file() {
        let mut file = Vec::new();
        call([(0, 0), (20_000, 1)]).write_wav(&mut file).unwrap();
        assert_eq!(file.len(), 44 + 640);
        assert_eq!(&file[..4], b"RIFF");
        assert_eq!(u32::from_le_bytes(file[40..44].try_into().unwrap()), 640);
    }
}
