use super::super::paced_stream::{NewPlayback, SendPath, StreamControl};
use super::super::rtp::{Numbers, Packet};
#[cfg(debug_assertions)]
use super::super::stream::PANIC_KEY;
use super::super::stream::{PlaybackItem, Stream};
use super::*;
use g711::{Codec, EncodedAudio};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Those of streams with packets of 20 ms.
const SLOTS: usize = 20;

fn pair() -> (Arc<UdpSocket>, UdpSocket) {
    let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
    let theirs = UdpSocket::bind("127.0.0.1:0").unwrap();
    ours.connect(theirs.local_addr().unwrap()).unwrap();
    theirs
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    (Arc::new(ours), theirs)
}

fn stream(items: &[PlaybackItem]) -> Stream {
    let mut stream = Stream::new(
        Codec::Pcma,
        None,
        Numbers {
            source: 1,
            sequence: 0,
            timestamp: 0,
        },
    );
    stream.append(items);
    stream
}

#[test]
fn few_streams_are_gathered_in_few_slots_and_many_are_spread() {
    let mut wheel = Wheel::new(Arc::default());
    let socket = pair().0;
    let mut add = |tick| {
        let before = wheel.rings[0].0.iter().map(Vec::len).collect::<Vec<_>>();
        let paced = PacedStream {
            stream: stream(&[PlaybackItem::Silence { frames: 1 }]),
            send_path: SendPath::Connected(Arc::clone(&socket)),
            sealer: None,
            control: Arc::default(),
            finished: tokio::sync::oneshot::channel().0,
        };
        wheel.add(paced, tick);
        let slots = wheel.rings[0].0.iter().zip(before);
        let mut slots = slots.map(|(slot, before)| slot.len() > before);
        slots.position(|grew| grew).unwrap()
    };
    // The next one that is filled first, also across the end of the ring.
    assert_eq!([0, 1, 4, 9, 17, 41].map(&mut add), [0, 4, 4, 12, 0, 4]);
    let mut next = |count: usize| (0..count).map(|_| add(0)).collect::<Vec<_>>();
    let gathered = next(5 * FULL - 6);
    assert!(gathered.iter().all(|slot| slot.is_multiple_of(4)));
    let more = next(5 * FULL);
    assert!(more.iter().all(|slot| slot % 4 == 2), "{more:?}");
    // No slot is left out, and none has many more than another.
    next(10 * FULL + SLOTS);
    assert!(
        (0..SLOTS).all(|tick| !wheel.is_empty_at(tick)),
        "{}",
        wheel.streams
    );
    let sizes = wheel.rings[0].0.iter().map(Vec::len);
    assert!(sizes.clone().all(|size| size == FULL + 1), "{sizes:?}");
}

#[tokio::test]
async fn every_packet_of_a_sound_arrives_in_order_at_its_pace() {
    let pacer = Pacer::start(&Supervisor::new()).unwrap();
    let sound = EncodedAudio::encode(
        &(0..8000)
            .map(|index| (index % 200) * 100)
            .collect::<Vec<i16>>(),
    );
    let (socket, theirs) = pair();
    let (finished, when) = tokio::sync::oneshot::channel();
    let control = Arc::new(StreamControl::default());
    let began = Instant::now();
    pacer.play(PacedStream {
        stream: stream(&[PlaybackItem::Sound(sound.clone())]),
        send_path: SendPath::Connected(socket),
        sealer: None,
        control: Arc::clone(&control),
        finished,
    });
    let received = tokio::task::spawn_blocking(move || {
        let mut received = Vec::new();
        let mut buffer = [0; 2048];
        for sequence in 0..50 {
            let length = theirs.recv(&mut buffer).unwrap();
            let packet = Packet::parse(&buffer[..length]).unwrap();
            assert_eq!(
                (packet.sequence, packet.timestamp),
                (sequence, u32::from(sequence) * 160)
            );
            received.extend_from_slice(packet.payload);
        }
        received
    })
    .await
    .unwrap();
    assert_eq!(received, sound.bytes(Codec::Pcma).to_vec());
    // The fiftieth packet leaves 980 ms after the first, never earlier.
    assert!(when.await.unwrap() - began >= Duration::from_millis(980));
    assert_eq!(control.packets.load(Ordering::Relaxed), 50);
    assert_eq!(pacer.counts().sent_and_missed().0, 50);
}

#[tokio::test]
async fn a_held_stream_waits_and_a_stopped_one_is_forgotten() {
    let pacer = Pacer::start(&Supervisor::new()).unwrap();
    let (socket, theirs) = pair();
    let (finished, when) = tokio::sync::oneshot::channel();
    let control = Arc::new(StreamControl::default());
    control.signals.hold(true);
    pacer.play(PacedStream {
        stream: stream(&[PlaybackItem::Silence { frames: 1000 }]),
        send_path: SendPath::Connected(socket),
        sealer: None,
        control: Arc::clone(&control),
        finished,
    });
    theirs
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(
        theirs.recv(&mut [0; 200]).is_err(),
        "nothing is sent while held"
    );
    control.signals.hold(false);
    theirs
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    assert!(theirs.recv(&mut [0; 200]).is_ok());
    control.signals.stop();
    assert!(when.await.is_err(), "a stopped stream does not finish");
}

#[tokio::test]
async fn a_stream_goes_on_with_something_else_as_the_same_stream() {
    let pacer = Pacer::start(&Supervisor::new()).unwrap();
    let (socket, theirs) = pair();
    let (finished, first) = tokio::sync::oneshot::channel();
    let control = Arc::new(StreamControl::default());
    let sound = EncodedAudio::encode(&[8000; 480]);
    pacer.play(PacedStream {
        stream: stream(&[PlaybackItem::Silence { frames: 100_000 }]),
        send_path: SendPath::Connected(socket),
        sealer: None,
        control: Arc::clone(&control),
        finished,
    });
    theirs
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut packet = [0; 200];
    let mut numbers = Vec::new();
    let mut next = || {
        let length = theirs.recv(&mut packet).unwrap();
        numbers.push(u16::from_be_bytes([packet[2], packet[3]]));
        packet[12..length].to_vec()
    };
    next();
    let change = |items| {
        let (finished, when) = tokio::sync::oneshot::channel();
        control.change(NewPlayback { items, finished });
        when
    };
    let second = change(vec![PlaybackItem::Sound(sound.clone())]);
    assert!(first.await.is_err(), "the rest is not played any more");
    let mut heard = Vec::new();
    while heard.len() < 480 {
        let payload = next();
        if payload[0] != Codec::Pcma.silence() {
            heard.extend(payload);
        }
    }
    assert_eq!(heard, sound.bytes(Codec::Pcma).to_vec());
    assert!(second.await.is_ok());
    let in_order = |pair: &[u16]| pair[1] == pair[0].wrapping_add(1);
    assert!(numbers.windows(2).all(in_order), "{numbers:?}");
    // Its last packet has left: nothing more is played, and nobody waits for it.
    assert!(
        change(vec![PlaybackItem::Silence { frames: 1 }])
            .await
            .is_err()
    );
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn a_stream_that_panics_ends_and_the_others_of_its_slot_lose_nothing() {
    let pacer = Pacer::start(&Supervisor::new()).unwrap();
    // More streams than slots: some share a slot with the one that panics.
    let (mut peers, mut ends) = (Vec::new(), Vec::new());
    for number in 0..3 * SLOTS {
        let (socket, theirs) = pair();
        let (finished, when) = tokio::sync::oneshot::channel();
        let items = if number == SLOTS + 3 {
            [
                PlaybackItem::Silence { frames: 3 },
                PlaybackItem::Keys(PANIC_KEY.into()),
            ]
        } else {
            [5, 5].map(|frames| PlaybackItem::Silence { frames })
        };
        pacer.play(PacedStream {
            stream: stream(&items),
            send_path: SendPath::Connected(socket),
            sealer: None,
            control: Arc::default(),
            finished,
        });
        peers.push(theirs);
        ends.push(when);
    }
    for (number, when) in ends.into_iter().enumerate() {
        assert_eq!(when.await.is_err(), number == SLOTS + 3, "{number}");
    }
    for (number, theirs) in peers.into_iter().enumerate() {
        let packets = if number == SLOTS + 3 { 3 } else { 10 };
        for sequence in 0..packets {
            let mut buffer = [0; 200];
            let length = theirs.recv(&mut buffer).unwrap();
            let packet = Packet::parse(&buffer[..length]).unwrap();
            assert_eq!(packet.sequence, sequence, "{number}");
        }
    }
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn a_dead_pacer_is_reported_by_its_name_and_ends_the_calls_that_it_had() {
    let supervisor = Supervisor::new();
    let pacer = Pacer::start(&supervisor).unwrap();
    let play = |frames| {
        let (finished, when) = tokio::sync::oneshot::channel();
        pacer.play(PacedStream {
            stream: stream(&[PlaybackItem::Silence { frames }]),
            send_path: SendPath::Connected(pair().0),
            sealer: None,
            control: Arc::default(),
            finished,
        });
        when
    };
    let playing = play(10_000);
    assert!(supervisor.request_panic("pacer"));
    assert_eq!(supervisor.failed().await.task, "pacer");
    assert_eq!(supervisor.down(), ["pacer"]);
    assert!(playing.await.is_err() && play(1).await.is_err());
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < limit, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn an_idle_pacer_counts_as_alive_and_ends_with_its_last_handle() {
    let supervisor = Supervisor::new();
    let began = Instant::now();
    let pacer = Pacer::start(&supervisor).unwrap();
    until("it is up long after its start", || {
        began.elapsed() > PATIENCE + IDLE_BEAT && supervisor.down().is_empty()
    })
    .await;
    drop(pacer);
    until("it ends", || supervisor.tasks().is_empty()).await;
}
