//! What a packet costs the pacer and the receiver: microseconds of processor time, on loopback, for each kind of socket,
//! clear and sealed, with and without listening for keys in the sound, and with and without the ears.
//!
//! `cargo run --release --package phone --example media_cost [CALLS [SECONDS]]`

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use g711::EncodedAudio;
use phone::media::engine::{
    Encryption, HeardKeys, MediaConfig, MediaEngine, MediaOptions, SocketChoice, SymmetricRtp,
};
use phone::media::session::MediaSession;
use phone::media::stream::PlaybackItem;
use supervisor::Supervisor;

/// Nanoseconds that the thread of this name has run.
fn running_time(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    tasks
        .filter_map(|task| {
            let path = task.ok()?.path();
            let is_it = std::fs::read_to_string(path.join("comm")).ok()?.trim() == name;
            let times = std::fs::read_to_string(path.join("schedstat")).ok()?;
            is_it.then(|| times.split(' ').next()?.parse::<u64>().ok())?
        })
        .sum()
}

/// Waits until the threads of the engine before are gone: their time would be in the sum at the beginning and not at the end.
async fn until_alone() {
    while running_time("pacer") + running_time("receiver") > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

async fn measure(
    name: &str,
    calls: usize,
    seconds: u32,
    symmetric: bool,
    shared: bool,
    sealed: bool,
) {
    until_alone().await;
    let here = "127.0.0.1".parse().expect("an address");
    let engine = MediaEngine::start(&Supervisor::new(), &MediaConfig::new(here, 20_000..=39_999))
        .expect("media starts");
    let line = shared.then(|| engine.shared_line().expect("ports are free"));
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let before = resident_kilobytes();
    let mut sessions = Vec::new();
    for _ in 0..calls {
        let options = MediaOptions {
            encryption: if sealed {
                Encryption::Sdes
            } else {
                Encryption::Off
            },
            symmetric: if symmetric {
                SymmetricRtp::Any
            } else {
                SymmetricRtp::Off
            },
            sockets: line.as_ref().map_or(SocketChoice::Own, |line| {
                SocketChoice::Shared(Arc::clone(line))
            }),
            ..MediaOptions::default()
        };
        let mut session = engine.open(options, |_| ()).expect("ports are free");
        let port = sink.local_addr().expect("it is bound").port();
        let (protocol, crypto) = if sealed {
            (
                "RTP/SAVP",
                "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\r\n",
            )
        } else {
            ("RTP/AVP", "")
        };
        let answer = format!(
            "v=0\r\no=x 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} {protocol} 8\r\na=rtcp-mux\r\n{crypto}"
        );
        session.answered(answer.as_bytes()).expect("we agree");
        sessions.push(session);
    }
    let began = running_time("pacer");
    let frames = seconds * 50;
    let finished: Vec<_> = sessions
        .iter_mut()
        .map(|session| {
            session
                .play(&[PlaybackItem::Silence { frames }])
                .expect("it plays")
        })
        .collect();
    let memory = resident_kilobytes() - before;
    for finished in finished {
        finished.await.expect("it finishes");
    }
    let micros = (running_time("pacer") - began) as f64 / 1000.0;
    let packets: u32 = sessions
        .iter()
        .map(|session| session.stats().packets_sent)
        .sum();
    let late: u32 = sessions
        .iter()
        .map(|session| session.stats().packets_late)
        .sum();
    let worst = sessions
        .iter()
        .map(|session| session.stats().worst_lateness)
        .max();
    println!(
        "{name:<18} {:>6.2} µs a packet, {packets} packets, {late} late, worst {:?}, {:.1} kB a call",
        micros / f64::from(packets),
        worst.unwrap_or(Duration::ZERO),
        memory as f64 / calls as f64
    );
}

/// Calls that talk to each other, so that every packet is also received and judged.
async fn measure_receiving(
    name: &str,
    calls: usize,
    plan: &[PlaybackItem],
    options: MediaOptions,
    has_ears: bool,
) {
    until_alone().await;
    let here = "127.0.0.1".parse().expect("an address");
    let engine = MediaEngine::start(&Supervisor::new(), &MediaConfig::new(here, 20_000..=39_999))
        .expect("media starts");
    let mut sessions = Vec::new();
    for _ in 0..calls / 2 {
        let mut caller = engine
            .open(options.clone(), |_| ())
            .expect("ports are free");
        let mut callee = engine
            .open(options.clone(), |_| ())
            .expect("ports are free");
        let answer = callee.answer(caller.offer().as_bytes()).expect("we agree");
        caller.answered(answer.as_bytes()).expect("we agree");
        for session in [&caller, &callee] {
            session.set_ears(has_ears);
        }
        sessions.extend([caller, callee]);
    }
    let (began, began_sending) = (running_time("receiver"), running_time("pacer"));
    let finished: Vec<_> = sessions
        .iter_mut()
        .map(|session| session.play(plan).expect("it plays"))
        .collect();
    for finished in finished {
        finished.await.expect("it finishes");
    }
    let micros = (running_time("receiver") - began) as f64 / 1000.0;
    let sending = (running_time("pacer") - began_sending) as f64 / 1000.0;
    let stats: Vec<_> = sessions.iter().map(MediaSession::stats).collect();
    let packets: u32 = stats.iter().map(|stats| stats.packets_received).sum();
    let lost: u32 = stats.iter().map(|stats| stats.packets_lost).sum();
    println!(
        "{name:<28} {:>6.2} µs a packet, {packets} packets received, {lost} lost; {:.2} µs a packet sent",
        micros / f64::from(packets),
        sending / f64::from(packets + lost)
    );
}

/// As loud as speech, and no key: what listening for keys costs most.
fn noise(seconds: u32) -> EncodedAudio {
    let mut state: u32 = 1;
    let samples = (0..seconds * 8000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, _, low, high] = state.to_le_bytes();
        i16::from_le_bytes([low, high]) / 8
    });
    EncodedAudio::encode(&samples.collect::<Vec<_>>())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u32>());
    let calls = arguments.next().and_then(Result::ok).unwrap_or(1000) as usize;
    let seconds = arguments.next().and_then(Result::ok).unwrap_or(5);
    measure("own socket", calls, seconds, false, false, false).await;
    measure("own, symmetric", calls, seconds, true, false, false).await;
    measure("shared socket", calls, seconds, false, true, false).await;
    measure("own, sealed", calls, seconds, false, false, true).await;
    measure("shared, sealed", calls, seconds, false, true, true).await;
    let clear = MediaOptions::default();
    let sealed = MediaOptions {
        encryption: Encryption::Sdes,
        ..MediaOptions::default()
    };
    let listening = MediaOptions {
        heard_keys: HeardKeys::Tones,
        ..MediaOptions::default()
    };
    let silence = [PlaybackItem::Silence {
        frames: seconds * 50,
    }];
    let noise = [PlaybackItem::Sound(noise(seconds))];
    for (name, plan, options) in [
        ("receiving", &silence, clear.clone()),
        ("receiving, sealed", &silence, sealed),
        ("receiving noise", &noise, clear.clone()),
        ("listening for keys, silence", &silence, listening.clone()),
        ("listening for keys, noise", &noise, listening),
    ] {
        measure_receiving(name, calls, plan, options, false).await;
    }
    for (name, plan) in [("ears, silence", &silence), ("ears, noise", &noise)] {
        measure_receiving(name, calls, plan, clear.clone(), true).await;
    }
}
