use super::super::engine::{MediaConfig, SocketChoice};
use super::super::inbound::InboundEvent;
use super::super::rtcp::{self, RtcpReport};
use super::super::rtp::{self, Packet};
use super::*;
use g711::{Codec, EncodedAudio};
use std::net::UdpSocket;
use supervisor::Supervisor;

const PATIENCE: Duration = Duration::from_secs(60);
/// A while in which nothing must happen that would happen at once.
const MOMENT: Duration = Duration::from_millis(150);

/// Keys and bytes of sound that a session has received.
#[derive(Debug, Default)]
struct Memory {
    keys: String,
    sound: Vec<u8>,
}

struct Lab {
    engine: MediaEngine,
}

impl Lab {
    fn new() -> Self {
        let config = MediaConfig::new("127.0.0.1".parse().unwrap(), 48_000..=54_999);
        Self {
            engine: MediaEngine::start(&Supervisor::new(), &config).unwrap(),
        }
    }

    fn session(&self, options: MediaOptions) -> (MediaSession, Arc<Mutex<Memory>>) {
        let memory = Arc::new(Mutex::new(Memory::default()));
        let remembering = Arc::clone(&memory);
        let on_inbound = move |event: InboundEvent<'_>| {
            let mut memory = remembering.lock().unwrap();
            match event {
                InboundEvent::Key(key) | InboundEvent::Tone(key) => memory.keys.push(key),
                InboundEvent::Sound(packet, _) => memory.sound.extend_from_slice(packet.payload),
                InboundEvent::Heard => {}
            }
        };
        (self.engine.open(options, on_inbound).unwrap(), memory)
    }
}

/// A peer made of bare sockets.
struct Peer {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    numbers: Numbers,
}

impl Peer {
    fn new() -> Self {
        Self::at("127.0.0.1")
    }

    fn at(host: &str) -> Self {
        let socket = || {
            let socket = UdpSocket::bind((host, 0)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        };
        Self {
            rtp: socket(),
            rtcp: socket(),
            numbers: Numbers::random(),
        }
    }

    fn description(&self, lines: &str) -> Vec<u8> {
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        let (rtp, rtcp) = (port(&self.rtp), port(&self.rtcp));
        format!(
            "v=0\r\no=x 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
             m=audio {rtp} RTP/AVP 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=rtcp:{rtcp}\r\n{lines}"
        )
        .into_bytes()
    }

    fn sound(&mut self) -> Vec<u8> {
        let timestamp = self.numbers.timestamp;
        self.numbers.timestamp = timestamp.wrapping_add(160);
        let header = self.numbers.header(8, false, timestamp);
        [&header[..], &[0x55; 160]].concat()
    }

    fn key(&mut self, event: u8) -> Vec<u8> {
        let timestamp = self.numbers.timestamp;
        self.numbers.timestamp = timestamp.wrapping_add(1600);
        let header = self.numbers.header(101, true, timestamp);
        [&header[..], &super::super::dtmf::payload(event, 160, false)].concat()
    }

    fn speak(&mut self, to: SocketAddr) {
        let packet = self.sound();
        self.rtp.send_to(&packet, to).unwrap();
    }

    fn press(&mut self, event: u8, to: SocketAddr) {
        let packet = self.key(event);
        self.rtp.send_to(&packet, to).unwrap();
    }

    fn receive(&self) -> Vec<u8> {
        receive(&self.rtp)
    }
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

fn receives_nothing(socket: &UdpSocket) -> bool {
    socket.set_read_timeout(Some(MOMENT)).unwrap();
    let received = socket.recv(&mut [0; 2048]).is_ok();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    !received
}

fn address(session: &MediaSession) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], session.local.port))
}

async fn until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("it happens in time");
}

fn sound(frames: i32) -> EncodedAudio {
    let sample = |index: i32| i16::try_from((index * 7919) % 30_000 - 15_000).unwrap();
    EncodedAudio::encode(&(0..frames * 160).map(sample).collect::<Vec<_>>())
}

fn silence() -> [PlaybackItem; 1] {
    [PlaybackItem::Silence { frames: 10_000 }]
}

/// Two sessions that talk to each other; what each of them has received.
async fn talk(
    options: MediaOptions,
    callee_options: MediaOptions,
) -> (MediaStats, MediaStats, Vec<u8>, String) {
    let lab = Lab::new();
    let (mut caller, received_by_caller) = lab.session(options);
    let (mut callee, received_by_callee) = lab.session(callee_options);
    let answer = callee.answer(caller.offer().as_bytes()).unwrap();
    caller.answered(answer.as_bytes()).unwrap();
    let played = sound(50);
    let pressed = callee
        .play(&[
            PlaybackItem::Silence { frames: 5 },
            PlaybackItem::Keys("17#".to_owned()),
        ])
        .unwrap();
    let finished = caller.play(&[PlaybackItem::Sound(played.clone())]).unwrap();
    let (mut last, mut keys) = (false, false);
    let both = async { (finished.await.unwrap(), pressed.await.unwrap()) };
    tokio::pin!(both);
    // Until both have played everything and received a report of the other.
    while !(last && keys) {
        tokio::select! {
            _ = &mut both, if !last => last = true,
            _ = caller.watch() => unreachable!("nobody vanishes"),
            _ = callee.watch() => unreachable!("nobody vanishes"),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
        keys = received_by_caller.lock().unwrap().keys.len() == 3
            && caller.stats().reported.is_some()
            && callee.stats().reported.is_some();
    }
    until(|| received_by_callee.lock().unwrap().sound.len() >= 50 * 160).await;
    assert_eq!(
        received_by_callee.lock().unwrap().sound,
        played.bytes(Codec::Pcma).to_vec()
    );
    let keys = received_by_caller.lock().unwrap().keys.clone();
    let sound = received_by_callee.lock().unwrap().sound.clone();
    (caller.stats(), callee.stats(), sound, keys)
}

#[tokio::test]
async fn two_sessions_hear_each_other_and_report() {
    for (encryption, rtcp_mux) in [
        (Encryption::Off, false),
        (Encryption::Off, true),
        (Encryption::Sdes, false),
        (Encryption::Sdes, true),
    ] {
        let options = MediaOptions {
            encryption,
            rtcp_mux,
            ..MediaOptions::default()
        };
        let (caller, callee, _, keys) = talk(options.clone(), options).await;
        assert_eq!(keys, "17#", "{encryption:?} {rtcp_mux}");
        assert_eq!(caller.codec, Some(Codec::Pcma));
        assert_eq!(caller.encrypted, encryption == Encryption::Sdes);
        assert_eq!((caller.packets_sent, callee.packets_received), (50, 50));
        assert_eq!((callee.packets_lost, caller.packets_lost), (0, 0));
        assert_eq!(caller.reported.unwrap().lost, 0);
    }
}

#[tokio::test]
async fn the_round_trip_is_known_after_both_have_reported() {
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions {
        rtcp_mux: false,
        ..MediaOptions::default()
    });
    let peer = Peer::new();
    session.answered(&peer.description("")).unwrap();
    session.play(&silence()).unwrap();
    let source = u32::from_be_bytes(peer.receive()[8..12].try_into().unwrap());
    let first = tokio::select! {
        _ = session.watch() => unreachable!("nobody vanishes"),
        report = tokio::task::spawn_blocking({
            let socket = peer.rtcp.try_clone().unwrap();
            move || receive(&socket)
        }) => report.unwrap(),
    };
    assert_eq!(first[1], 200, "a sender's report");
    let clock = rtcp::read(&first, 0).unwrap().clock.unwrap();
    let block = super::super::receiver_stats::ReceptionBlock {
        source,
        fraction_lost: 0,
        lost: 0,
        highest: 1,
        jitter: 8,
    };
    let answer = RtcpReport {
        source: 1,
        name: "peer",
        sent: None,
        received: Some(rtcp::OutgoingBlock {
            block,
            last_report: Some((clock, Duration::ZERO)),
        }),
        goodbye: false,
    };
    let to = address(&session);
    let to = SocketAddr::new(to.ip(), to.port() + 1);
    peer.rtcp.send_to(&answer.write(), to).unwrap();
    until(|| session.stats().round_trip.is_some()).await;
    assert!(session.stats().round_trip.unwrap() < PATIENCE);
    assert_eq!(
        session.stats().reported.unwrap().jitter,
        Duration::from_millis(1)
    );
    // And at the end there is a goodbye.
    drop(session);
    assert!(rtcp::read(&receive(&peer.rtcp), 0).unwrap().goodbye);
}

#[tokio::test]
async fn packets_from_a_third_address_disturb_nothing() {
    for encryption in [Encryption::Off, Encryption::Sdes] {
        let lab = Lab::new();
        let options = MediaOptions {
            encryption,
            ..MediaOptions::default()
        };
        let (mut caller, received_by_caller) = lab.session(options.clone());
        let (mut callee, received_by_callee) = lab.session(options);
        let ports = [address(&caller), address(&callee)];
        let mut attacker = Peer::new();
        // Some are there before anything is agreed on.
        for port in ports {
            attacker.press(9, port);
        }
        let answer = callee.answer(caller.offer().as_bytes()).unwrap();
        caller.answered(answer.as_bytes()).unwrap();
        callee.play(&silence()).unwrap();
        let played = sound(25);
        let finished = caller.play(&[PlaybackItem::Sound(played.clone())]).unwrap();
        for _ in 0..50 {
            for port in ports {
                attacker.press(9, port);
                attacker.speak(port);
                attacker.rtp.send_to(b"garbage", port).unwrap();
                let goodbye = [0x81, 203, 0, 1, 0, 0, 0, 1];
                attacker.rtp.send_to(&goodbye, port).unwrap();
            }
        }
        finished.await.unwrap();
        until(|| received_by_callee.lock().unwrap().sound.len() >= 25 * 160).await;
        assert_eq!(
            received_by_callee.lock().unwrap().sound,
            played.bytes(Codec::Pcma).to_vec()
        );
        assert_eq!(received_by_caller.lock().unwrap().keys, "");
        assert_eq!(
            (caller.stats().packets_sent, callee.stats().packets_lost),
            (25, 0)
        );
        assert_eq!(callee.stats().packets_received, 25);
        assert!(receives_nothing(&attacker.rtp));
    }
}

#[tokio::test]
async fn a_peer_behind_a_nat_is_found_and_then_fixed() {
    let lab = Lab::new();
    let (mut session, memory) = lab.session(MediaOptions {
        symmetric: SymmetricRtp::Any,
        ..MediaOptions::default()
    });
    // What it describes is not where it is.
    let (described, mut real, mut attacker) = (Peer::new(), Peer::new(), Peer::new());
    session.answered(&described.description("")).unwrap();
    session.play(&silence()).unwrap();
    described.receive();
    let to = address(&session);
    for _ in 0..5 {
        real.speak(to);
    }
    until(|| session.stats().peer == Some(real.rtp.local_addr().unwrap())).await;
    real.receive();
    for _ in 0..20 {
        attacker.press(9, to);
    }
    real.press(4, to);
    until(|| memory.lock().unwrap().keys == "4").await;
    real.receive();
    assert!(receives_nothing(&attacker.rtp));
    // The peer tells that it has moved: the search begins again.
    let mut moved = Peer::new();
    session.answer(&moved.description("")).unwrap();
    moved.receive();
    moved.press(6, to);
    until(|| memory.lock().unwrap().keys == "46").await;
}

#[tokio::test]
async fn sound_follows_the_host_that_we_signal_with_and_no_stranger() {
    let lab = Lab::new();
    let (mut session, _memory) = lab.session(MediaOptions {
        symmetric: SymmetricRtp::Peer,
        sip_peer: Some("127.0.0.2".parse().unwrap()),
        ..MediaOptions::default()
    });
    let (described, mut stranger) = (Peer::new(), Peer::at("127.0.0.3"));
    let mut real = Peer::at("127.0.0.2");
    session.answered(&described.description("")).unwrap();
    session.play(&silence()).unwrap();
    described.receive();
    let to = address(&session);
    for _ in 0..20 {
        stranger.speak(to);
    }
    for _ in 0..5 {
        real.speak(to);
    }
    until(|| session.stats().peer == Some(real.rtp.local_addr().unwrap())).await;
    real.receive();
    assert!(receives_nothing(&stranger.rtp));
}

#[tokio::test]
async fn without_symmetry_nobody_is_believed_but_the_description() {
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions::default());
    let (described, mut stranger) = (Peer::new(), Peer::new());
    session.answered(&described.description("")).unwrap();
    session.play(&silence()).unwrap();
    for _ in 0..20 {
        stranger.speak(address(&session));
    }
    described.receive();
    assert!(receives_nothing(&stranger.rtp));
    assert_eq!(session.stats().packets_received, 0);
}

#[tokio::test]
async fn a_quiet_peer_is_told_of_now_and_then() {
    let lab = Lab::new();
    let limit = Duration::from_millis(100);
    let (mut session, _) = lab.session(MediaOptions {
        quiet_after: Some(limit),
        ..MediaOptions::default()
    });
    let mut peer = Peer::new();
    session.listen_early(&peer.description("")).unwrap();
    let watched = tokio::time::timeout(limit * 3, session.watch()).await;
    assert!(watched.is_err(), "before the answer everybody is quiet");
    let began = Instant::now();
    session.answered(b"").unwrap();
    for (times, heard) in [(1, false), (1 + ASKED_AGAIN, false), (1, true)] {
        let began = if heard {
            peer.speak(address(&session));
            until(|| session.inbound().heard().is_some()).await;
            session.inbound().heard().unwrap()
        } else {
            began
        };
        let watched = tokio::time::timeout(PATIENCE, session.watch()).await;
        assert_eq!(watched.unwrap(), WatchEnd::Quiet);
        assert!(began.elapsed() >= limit * times);
    }
}

#[tokio::test]
async fn a_closed_port_makes_a_peer_quiet_sooner() {
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions {
        quiet_after: Some(PATIENCE * 2),
        ..MediaOptions::default()
    });
    let peer = Peer::new();
    session.answered(&peer.description("")).unwrap();
    drop(peer);
    let began = Instant::now();
    session
        .play(&[PlaybackItem::Silence { frames: 3000 }])
        .unwrap();
    let watched = tokio::time::timeout(PATIENCE, session.watch()).await;
    assert_eq!(watched.unwrap(), WatchEnd::PortClosed);
    assert!(began.elapsed() >= CLOSED_PORT);
    // It was told, and is not told of every packet.
    let watched = tokio::time::timeout(MOMENT, session.watch()).await;
    assert!(watched.is_err());
}

#[test]
fn a_description_has_a_new_version_only_if_it_says_something_new() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let _guard = runtime.enter();
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions::default());
    let peer = Peer::new();
    let version = |text: String| {
        let origin = text.lines().find(|line| line.starts_with("o=")).unwrap();
        origin.split(' ').nth(2).unwrap().to_owned()
    };
    assert_eq!(version(session.offer()), "1");
    session.answered(&peer.description("")).unwrap();
    let offer = peer.description("");
    assert_eq!(version(session.answer(&offer).unwrap()), "2");
    assert_eq!(version(session.answer(&offer).unwrap()), "2");
    assert_eq!(version(session.said()), "2");
    let held = peer.description("a=inactive\r\n");
    assert_eq!(version(session.answer(&held).unwrap()), "3");
    assert!(session.said().contains("a=inactive"));
    assert_eq!(version(session.answer(&offer).unwrap()), "4");
}

#[tokio::test]
async fn sound_or_reports_keep_a_peer_alive() {
    let lab = Lab::new();
    // Longer than a busy machine lets anybody wait for twenty milliseconds.
    let limit = Duration::from_secs(1);
    for reports in [false, true] {
        let (mut session, _) = lab.session(MediaOptions {
            quiet_after: Some(limit),
            ..MediaOptions::default()
        });
        let mut peer = Peer::new();
        session
            .answered(&peer.description("a=rtcp-mux\r\n"))
            .unwrap();
        let (to, began) = (address(&session), Instant::now());
        let report = RtcpReport {
            source: 1,
            name: "x",
            sent: None,
            received: None,
            goodbye: false,
        };
        let mut alive = tokio::time::interval(Duration::from_millis(20));
        while began.elapsed() < limit * 3 / 2 {
            tokio::select! {
                _ = session.watch() => panic!("it is there: {reports}"),
                _ = alive.tick() => if reports {
                    peer.rtp.send_to(&report.write(), to).unwrap();
                } else {
                    peer.speak(to);
                },
            }
        }
        tokio::time::timeout(PATIENCE, session.watch())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn early_media_is_listened_to_and_nothing_is_sent() {
    let lab = Lab::new();
    let (mut session, memory) = lab.session(MediaOptions::default());
    let mut peer = Peer::new();
    session.listen_early(&peer.description("")).unwrap();
    peer.press(3, address(&session));
    peer.speak(address(&session));
    until(|| session.stats().packets_received == 2).await;
    assert!(memory.lock().unwrap().keys.is_empty());
    let watched = tokio::time::timeout(Duration::from_secs(1), session.watch()).await;
    assert!(watched.is_err());
    assert!(receives_nothing(&peer.rtp) && receives_nothing(&peer.rtcp));
    // The answer may leave it at that.
    session.answered(b"").unwrap();
    session.play(&silence()).unwrap();
    peer.receive();
    peer.press(5, address(&session));
    until(|| memory.lock().unwrap().keys == "5").await;
}

#[tokio::test]
async fn a_peer_may_hold_us_only_for_so_long() {
    let limit = Duration::from_millis(100);
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions {
        hold_limit: Some(limit),
        ..MediaOptions::default()
    });
    let peer = Peer::new();
    session.answered(&peer.description("")).unwrap();
    for hold in ["a=sendonly\r\n", "a=inactive\r\n"] {
        session.answer(&peer.description(hold)).unwrap();
        let watched = tokio::time::timeout(PATIENCE, session.watch()).await;
        assert_eq!(watched.unwrap(), WatchEnd::HeldTooLong, "{hold}");
        session.answer(&peer.description("")).unwrap();
        let watched = tokio::time::timeout(limit * 3, session.watch()).await;
        assert!(watched.is_err(), "resumed");
    }
}

#[tokio::test]
async fn a_hold_pauses_and_an_answer_keeps_the_codec() {
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions::default());
    let peer = Peer::new();
    session.offer();
    session.answered(&peer.description("")).unwrap();
    session.play(&silence()).unwrap();
    peer.receive();
    let answer = session.answer(&peer.description("a=sendonly\r\n")).unwrap();
    assert!(
        answer.contains("a=recvonly") && answer.contains(" 2 IN IP4"),
        "{answer}"
    );
    until(|| receives_nothing(&peer.rtp)).await;
    // The old way to hold has no address, and must not send our sound anywhere.
    let text = String::from_utf8(peer.description("")).unwrap();
    let nowhere = text.replace("c=IN IP4 127.0.0.1", "c=IN IP4 0.0.0.0");
    session.answer(nowhere.as_bytes()).unwrap();
    assert!(receives_nothing(&peer.rtp));
    session.answer(&peer.description("")).unwrap();
    let packet = peer.receive();
    assert!(Packet::parse(&packet).unwrap().marker);
    // It has both, and keeps what was agreed on.
    let both = text.replace("RTP/AVP 8 101", "RTP/AVP 0 8 101");
    let answer = session.answer(both.as_bytes()).unwrap();
    assert!(answer.contains("RTP/AVP 8 101"), "{answer}");
    let unknown_codec = text.replace("RTP/AVP 8 101", "RTP/AVP 18 101");
    assert!(session.answer(unknown_codec.as_bytes()).is_err());
    // An address that cannot be reached from ours changes nothing.
    let other_family = text.replace("c=IN IP4 127.0.0.1", "c=IN IP6 2001:db8::1");
    assert!(session.answer(other_family.as_bytes()).is_err());
    peer.receive();
    assert_eq!(session.stats().peer, Some(peer.rtp.local_addr().unwrap()));
}

#[tokio::test]
async fn a_peer_that_wants_another_codec_gets_it_and_back_again() {
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions::default());
    let peer = Peer::new();
    session.offer();
    session.answered(&peer.description("")).unwrap();
    let message = sound(1500);
    session
        .play(&[PlaybackItem::Sound(message.clone())])
        .unwrap();
    let text = String::from_utf8(peer.description("")).unwrap();
    let mut heard = 0;
    for (formats, codec) in [("8", Codec::Pcma), ("0", Codec::Pcmu), ("8", Codec::Pcma)] {
        let offer = text.replace("RTP/AVP 8 101", &format!("RTP/AVP {formats} 101"));
        let answer = session.answer(offer.as_bytes()).unwrap();
        let line = format!("RTP/AVP {formats} 101\r\n");
        assert!(answer.contains(&line), "{answer}");
        let (mut place, limit) = (0, Instant::now() + PATIENCE);
        while place < 10 {
            assert!(Instant::now() < limit, "in the codec in time");
            let bytes = peer.receive();
            let packet = Packet::parse(&bytes).unwrap();
            let said = Codec::ALL.into_iter();
            let said = { said }.find(|codec| codec.payload_type() == packet.payload_type);
            let said = said.expect("sound in a codec that was agreed on");
            // A packet may have been under way.
            place = if said == codec { place + 1 } else { place };
            let meant = &message.bytes(said)[heard..][..packet.payload.len()];
            assert_eq!(packet.payload, meant, "nothing is left out or heard twice");
            heard += packet.payload.len();
        }
    }
    assert_eq!(session.stats().codec, Some(Codec::Pcma));
}

#[tokio::test]
async fn calls_on_a_shared_line_do_not_hear_each_other() {
    let lab = Lab::new();
    let line = lab.engine.shared_line().unwrap();
    let options = MediaOptions {
        sockets: SocketChoice::Shared(Arc::clone(&line)),
        symmetric: SymmetricRtp::Any,
        ..MediaOptions::default()
    };
    let mut calls: Vec<_> = (0..20)
        .map(|_| (lab.session(options.clone()), Peer::new()))
        .collect();
    for ((session, _), peer) in &mut calls {
        session.answered(&peer.description("")).unwrap();
        session.play(&[PlaybackItem::Sound(sound(10))]).unwrap();
    }
    let to = address(&calls[0].0.0);
    for (place, (_, peer)) in (0_u8..).zip(&mut calls) {
        peer.press(place % 16, to);
    }
    let expected = sound(10).bytes(Codec::Pcma).to_vec();
    for (place, ((session, memory), peer)) in (0_u8..).zip(&mut calls) {
        let received: Vec<u8> = (0..10)
            .flat_map(|_| peer.receive()[rtp::HEADER_BYTES..].to_vec())
            .collect();
        assert_eq!(received, expected);
        let key = super::super::dtmf::key_of(place % 16).unwrap().to_string();
        until(|| memory.lock().unwrap().keys == key).await;
        assert_eq!(session.stats().packets_received, 1);
    }
    // The reports of all go through the second socket, and a call that ends leaves the others alone.
    let ((mut session, _), peer) = calls.pop().unwrap();
    session.stop();
    assert!(rtcp::read(&receive(&peer.rtcp), 0).unwrap().goodbye);
    let ((_, memory), peer) = &mut calls[0];
    peer.press(1, to);
    until(|| memory.lock().unwrap().keys.ends_with('1')).await;
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_ends_no_call() {
    let lab = Lab::new();
    let line = lab.engine.shared_line().unwrap();
    for sockets in [SocketChoice::Own, SocketChoice::Shared(line)] {
        let (mut session, _) = lab.session(MediaOptions {
            sockets,
            ..MediaOptions::default()
        });
        let description = Peer::new().description("");
        session.answered(&description).unwrap();
        let finished = session.play(&[PlaybackItem::Sound(sound(10))]).unwrap();
        tokio::time::timeout(PATIENCE, finished)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(session.stats().packets_sent, 10);
    }
}

#[tokio::test]
async fn nothing_is_played_before_something_is_agreed_on() {
    let lab = Lab::new();
    let (mut session, _) = lab.session(MediaOptions::default());
    assert!(matches!(
        session.play(&silence()),
        Err(MediaError::NotAgreed)
    ));
    assert!(session.answered(b"").is_err());
    assert!(session.listen_early(b"nonsense").is_err());
    session.answered(&Peer::new().description("")).unwrap();
    session.play(&silence()).unwrap();
    assert!(matches!(
        session.play(&silence()),
        Err(MediaError::PlayedBefore)
    ));
}

/// A call whose callback panics at the first packet of sound, and its peer.
fn panicking_call(lab: &Lab, sockets: SocketChoice) -> (MediaSession, Peer) {
    let options = MediaOptions {
        sockets,
        quiet_after: Some(Duration::from_millis(1)),
        ..MediaOptions::default()
    };
    let mut session = lab
        .engine
        .open(options, |_| panic!("a callback was asked to panic"))
        .unwrap();
    let peer = Peer::new();
    session.answered(&peer.description("")).unwrap();
    (session, peer)
}

#[tokio::test]
async fn a_callback_that_panics_costs_its_own_call_only() {
    let lab = Lab::new();
    let line = lab.engine.shared_line().unwrap();
    for sockets in [SocketChoice::Own, SocketChoice::Shared(line)] {
        let (mut broken, mut broken_peer) = panicking_call(&lab, sockets.clone());
        let (mut session, memory) = lab.session(MediaOptions {
            sockets,
            ..MediaOptions::default()
        });
        let mut peer = Peer::new();
        session.answered(&peer.description("")).unwrap();
        let finished = session.play(&[PlaybackItem::Sound(sound(25))]).unwrap();
        broken.play(&silence()).unwrap();
        for _ in 0..25 {
            broken_peer.speak(address(&broken));
            peer.speak(address(&session));
        }
        finished.await.unwrap();
        until(|| memory.lock().unwrap().sound.len() >= 25 * 160).await;
        assert_eq!(memory.lock().unwrap().sound, [0x55; 25 * 160]);
        let played: Vec<u8> = (0..25)
            .flat_map(|_| peer.receive()[rtp::HEADER_BYTES..].to_vec())
            .collect();
        assert_eq!(played, sound(25).bytes(Codec::Pcma).to_vec());
        // The broken call goes on playing. It receives nothing any more, and does not take that for silence of its peer.
        assert_eq!(broken.stats().packets_received, 1);
        broken_peer.receive();
        let watched = tokio::time::timeout(MOMENT, broken.watch()).await;
        assert!(watched.is_err());
    }
}
