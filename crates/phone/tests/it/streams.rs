//! Many calls on one clock, over real sockets: every byte arrives, and in time.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use g711::{Codec, EncodedAudio};
use phone::media::engine::{MediaConfig, MediaEngine, MediaOptions, SocketChoice};
use phone::media::receiver::RtpReceiver;
use phone::media::rtp::Packet;
use phone::media::session::MediaSession;
use phone::media::stream::PlaybackItem;
use supervisor::Supervisor;

const PATIENCE: Duration = Duration::from_secs(90);

fn engine() -> MediaEngine {
    let here = "127.0.0.1".parse().unwrap();
    MediaEngine::start(&Supervisor::new(), &MediaConfig::new(here, 40_000..=45_999)).unwrap()
}

/// A callee that is only a socket, with room for everything that a call of this file sends.
fn callee() -> UdpSocket {
    let socket = socket2::Socket::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    let _ = socket.set_recv_buffer_size(1 << 20);
    socket.into()
}

fn answer(callee: &UdpSocket) -> Vec<u8> {
    let port = callee.local_addr().unwrap().port();
    format!(
        "v=0\r\no=x 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=audio {port} RTP/AVP 8\r\na=rtcp-mux\r\n"
    )
    .into_bytes()
}

/// Different at every sample, and for every number.
fn sound(number: i32, frames: i32) -> EncodedAudio {
    let sample = |index: i32| {
        let value = (index + number * 31).wrapping_mul(7919) % 30_000 - 15_000;
        i16::try_from(value).unwrap()
    };
    EncodedAudio::encode(&(0..frames * 160).map(sample).collect::<Vec<_>>())
}

/// What waits in the socket: the sound in order, without a gap.
fn heard(callee: &UdpSocket) -> Vec<u8> {
    callee.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2048];
    let (mut heard, mut next) = (Vec::new(), None);
    loop {
        match callee.recv(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return heard,
            Err(error) => panic!("{error}"),
            // What cannot be parsed here is a report on the same port.
            Ok(length) => {
                let Some(packet) = Packet::parse(&buffer[..length]) else {
                    continue;
                };
                assert_eq!(packet.sequence, *next.get_or_insert(packet.sequence));
                next = Some(packet.sequence.wrapping_add(1));
                heard.extend_from_slice(packet.payload);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_calls_at_once_are_exact_to_the_last_sample() {
    let engine = engine();
    let line = engine.shared_line().unwrap();
    let sounds: Vec<_> = (0..7).map(|number| sound(number, 50)).collect();
    let mut calls = Vec::new();
    for place in 0..500_usize {
        // Half of them have a pair of ports, the others share one.
        let sockets = if place % 2 == 0 {
            SocketChoice::Own
        } else {
            SocketChoice::Shared(Arc::clone(&line))
        };
        let options = MediaOptions {
            sockets,
            ..MediaOptions::default()
        };
        let (mut session, callee) = (engine.open(options, |_| ()).unwrap(), callee());
        session.answered(&answer(&callee)).unwrap();
        calls.push((session, callee, sounds[place % 7].clone()));
    }
    let finished: Vec<_> = calls
        .iter_mut()
        .map(|(session, _, sound)| {
            let sound = PlaybackItem::Sound(sound.clone());
            let gap = PlaybackItem::Silence { frames: 10 };
            session.play(&[sound.clone(), gap, sound]).unwrap()
        })
        .collect();
    for finished in finished {
        tokio::time::timeout(PATIENCE, finished)
            .await
            .unwrap()
            .unwrap();
    }
    for (session, callee, sound) in &calls {
        let bytes = sound.bytes(Codec::Pcma).to_vec();
        let silence = vec![Codec::Pcma.silence(); 10 * 160];
        assert_eq!(heard(callee), [bytes.clone(), silence, bytes].concat());
        assert_eq!(session.stats().packets_sent, 110);
    }
}

/// Packets of several lengths at once: each callee gets what it asks for, and all of the sound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_gets_packets_of_the_length_that_it_asks_for() {
    let engine = engine();
    let line = engine.shared_line().unwrap();
    let sound = sound(1, 60);
    let mut calls = Vec::new();
    for (wanted, millis) in [
        ("a=ptime:10\r\n", 10),
        ("", 20),
        ("a=ptime:30\r\n", 30),
        ("a=ptime:40\r\na=maxptime:150\r\n", 40),
        ("a=ptime:60\r\n", 60),
        ("a=ptime:60\r\na=maxptime:50\r\n", 50),
        ("a=ptime:100\r\n", 20),
        ("a=ptime:x\r\n", 20),
    ] {
        for sockets in [SocketChoice::Own, SocketChoice::Shared(Arc::clone(&line))] {
            let options = MediaOptions {
                sockets,
                ..MediaOptions::default()
            };
            let (mut session, callee) = (engine.open(options, |_| ()).unwrap(), callee());
            let mut answer = answer(&callee);
            answer.extend_from_slice(wanted.as_bytes());
            session.answered(&answer).unwrap();
            let plan = [PlaybackItem::Sound(sound.clone())];
            let began = Instant::now();
            let finished = session.play(&plan).unwrap();
            calls.push((session, callee, finished, began, millis));
        }
    }
    for (session, callee, finished, began, millis) in calls {
        let finished = tokio::time::timeout(PATIENCE, finished).await;
        let took = finished.unwrap().unwrap() - began;
        let bytes = sound.bytes(Codec::Pcma);
        assert_eq!(heard(&callee), bytes.to_vec(), "{millis}");
        // 1200 ms of sound are whole packets of every length, and take their time whatever it is.
        assert_eq!(session.stats().packets_sent, 1200 / millis, "{millis}");
        assert!(
            took >= Duration::from_millis(1200 - u64::from(millis)),
            "{millis}: {took:?}"
        );
    }
}

/// Arrival and timestamp of every packet of one call.
type Arrivals = Arc<Mutex<Vec<(Instant, u32)>>>;

fn listen(
    receiver: &RtpReceiver,
    callee: UdpSocket,
) -> (phone::media::receiver::Listening, Arrivals) {
    let arrivals = Arrivals::default();
    let noting = Arc::clone(&arrivals);
    let ear = move |bytes: &[u8], _, now| {
        if let Some(packet) = Packet::parse(bytes) {
            noting.lock().unwrap().push((now, packet.timestamp));
        }
    };
    let listening = receiver.listen(Arc::new(callee), ear, None);
    (listening.unwrap(), arrivals)
}

/// How much longer a second of this call takes than a second, in millionths. Of every half second only the packet that was least late counts:
/// noise makes packets later, never earlier.
fn drift(arrivals: &[(Instant, u32)]) -> f64 {
    let (began, first) = arrivals[0];
    let lateness: Vec<f64> = arrivals
        .iter()
        .map(|(arrived, timestamp)| {
            let due = f64::from(timestamp.wrapping_sub(first)) / 8000.0;
            (*arrived - began).as_secs_f64() - due
        })
        .collect();
    let least = lateness
        .chunks_exact(25)
        .map(|window| window.iter().copied().fold(f64::INFINITY, f64::min));
    let points: Vec<(f64, f64)> = (0..8)
        .map(|half| f64::from(half) / 2.0)
        .zip(least)
        .collect();
    let count = points.len() as f64;
    let mean_time = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_late = points.iter().map(|point| point.1).sum::<f64>() / count;
    let over = points
        .iter()
        .map(|(time, late)| (time - mean_time) * (late - mean_late));
    let under = points.iter().map(|(time, _)| (time - mean_time).powi(2));
    over.sum::<f64>() / under.sum::<f64>() * 1e6
}

/// The drift of the clock: the middle of what twenty calls in different slots show over four seconds.
async fn measured_drift(engine: &MediaEngine) -> f64 {
    let receiver = RtpReceiver::start(&Supervisor::new()).unwrap();
    let mut calls: Vec<(MediaSession, _)> = (0..20)
        .map(|_| {
            let (mut session, callee) = (
                engine.open(MediaOptions::default(), |_| ()).unwrap(),
                callee(),
            );
            session.answered(&answer(&callee)).unwrap();
            (session, listen(&receiver, callee))
        })
        .collect();
    let plan = [PlaybackItem::Silence { frames: 200 }];
    let finished: Vec<_> = calls
        .iter_mut()
        .map(|(session, _)| session.play(&plan).unwrap())
        .collect();
    for finished in finished {
        tokio::time::timeout(PATIENCE, finished)
            .await
            .unwrap()
            .unwrap();
    }
    let mut drifts: Vec<f64> = calls
        .iter()
        .map(|(_, (_, arrivals))| drift(&arrivals.lock().unwrap()))
        .collect();
    drifts.sort_by(f64::total_cmp);
    drifts[drifts.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_does_not_drift() {
    let engine = engine();
    let mut drifts = Vec::new();
    // A machine that is busy with something else may look like a drift once, but not always.
    for _ in 0..3 {
        drifts.push(measured_drift(&engine).await);
        if drifts.iter().any(|drift| drift.abs() < 50.0) {
            return;
        }
    }
    panic!("millionths: {drifts:?}");
}
