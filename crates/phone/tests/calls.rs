//! Calls from the engine to the test phone, over real sockets.

use std::time::Duration;

use phone::call::{CallEvent, MediaConfig, Order, Phone, PhoneConfig, Terms};
use phone::codec::{Codec, Sound};
use phone::ending::{Cause, Ending, Side};
use phone::media::stream::Step;
use phone::signalling::SignallingConfig;
use phone::test_phone::{HeardCall, Script, TestPhone, Then};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);

fn config(ports: std::ops::RangeInclusive<u16>) -> PhoneConfig {
    PhoneConfig {
        sip: SignallingConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            advertised: None,
            user_agent: "test".to_owned(),
        },
        media: MediaConfig::new("127.0.0.1".parse().unwrap(), ports),
    }
}

/// A tone that is different at every sample, so that any mistake shows.
fn sound(frames: i32) -> Sound {
    let sample = |index: i32| i16::try_from((index * 7919) % 30_000 - 15_000).unwrap();
    Sound::encode(&(0..frames * 160).map(sample).collect::<Vec<_>>())
}

struct Lab {
    phone: Phone,
    callee: TestPhone,
    heard: UnboundedReceiver<HeardCall>,
}

impl Lab {
    async fn new(codecs: &[Codec], script: Script) -> Self {
        let (callee, heard) =
            TestPhone::start(&config(30_000..=39_999), codecs, move |_| script.clone())
                .await
                .unwrap();
        Self {
            phone: Phone::start(&config(20_000..=29_999)).await.unwrap(),
            callee,
            heard,
        }
    }

    fn order(&self, program: Vec<Step>) -> Order {
        Order {
            to: format!("sip:13800000000@{}", self.callee.contact()),
            from: "sip:4001234567@127.0.0.1".to_owned(),
            display_name: None,
            destination: Some(self.callee.contact()),
            credentials: None,
            headers: vec![],
            media: Terms::default(),
            program,
            ring_time: Duration::from_secs(10),
            talk_time: Duration::from_secs(60),
        }
    }

    async fn call(&self, order: Order) -> (Ending, Vec<CallEvent>) {
        let (events, mut happened) = unbounded_channel();
        let never = CancellationToken::new();
        let call = self.phone.call(order, &events, &never);
        let (ending, _) = tokio::time::timeout(PATIENCE, call).await.unwrap();
        drop(events);
        let mut list = Vec::new();
        while let Some(event) = happened.recv().await {
            list.push(event);
        }
        (ending, list)
    }

    async fn heard(&mut self) -> HeardCall {
        tokio::time::timeout(PATIENCE, self.heard.recv())
            .await
            .unwrap()
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_to_be_played_is_heard_to_the_last_sample() {
    for (codecs, codec) in [
        (&[Codec::Pcma][..], Codec::Pcma),
        (&[Codec::Pcmu], Codec::Pcmu),
    ] {
        let mut lab = Lab::new(codecs, Script::answer()).await;
        let sound = sound(50);
        let program = vec![
            Step::Silence { frames: 25 },
            Step::Sound(sound.clone()),
            Step::Silence { frames: 5 },
            Step::Sound(sound.clone()),
        ];
        let (ending, events) = lab.call(lab.order(program)).await;
        let Ending::Talked {
            time,
            hung_up_by: Side::Us,
        } = ending
        else {
            panic!("{ending:?}")
        };
        assert!(time >= Duration::from_millis(129 * 20 + 300), "{time:?}");
        assert_eq!(events, [CallEvent::Ringing, CallEvent::Answered]);
        let heard = lab.heard().await;
        assert_eq!(
            (heard.lost(), heard.packets.len(), heard.hung_up_by),
            (0, 130, Some(Side::Them))
        );
        let silence = |frames: usize| vec![codec.silence(); frames * 160];
        let bytes = sound.bytes(codec).to_vec();
        assert_eq!(
            heard.sound(),
            [silence(25), bytes.clone(), silence(5), bytes].concat()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_is_dialled_before_the_sound() {
    let mut lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let program = vec![
        Step::Silence { frames: 5 },
        Step::Keys("36*7".to_owned()),
        Step::Sound(sound(5)),
    ];
    let (ending, _) = lab.call(lab.order(program)).await;
    assert!(matches!(ending, Ending::Talked { .. }), "{ending:?}");
    assert_eq!(lab.heard().await.keys, "36*7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_the_callee_are_heard() {
    let script = Script {
        ring: None,
        then: Then::Answer {
            after: Duration::ZERO,
            hang_up: None,
            keys: "12#".to_owned(),
        },
    };
    let lab = Lab::new(&Codec::ALL, script).await;
    let (_, events) = lab
        .call(lab.order(vec![Step::Silence { frames: 75 }]))
        .await;
    assert_eq!(
        events,
        [
            CallEvent::Answered,
            CallEvent::Key('1'),
            CallEvent::Key('2'),
            CallEvent::Key('#')
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callee_hangs_up_in_the_middle() {
    let script = Script {
        ring: None,
        then: Then::Answer {
            after: Duration::ZERO,
            hang_up: Some(Duration::from_millis(300)),
            keys: String::new(),
        },
    };
    let lab = Lab::new(&Codec::ALL, script).await;
    let (ending, _) = lab.call(lab.order(vec![Step::Sound(sound(500))])).await;
    let Ending::Talked {
        time,
        hung_up_by: Side::Them,
    } = ending
    else {
        panic!("{ending:?}")
    };
    assert!(time < Duration::from_secs(5), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_not_answered_in_time_is_given_up() {
    let lab = Lab::new(
        &Codec::ALL,
        Script {
            ring: Some(Duration::ZERO),
            then: Then::Nothing,
        },
    )
    .await;
    let order = Order {
        ring_time: Duration::from_millis(300),
        ..lab.order(vec![])
    };
    let (ending, events) = lab.call(order).await;
    let Ending::Failed(failure) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(
        (failure.cause, failure.rang, events),
        (Cause::NoAnswer, true, vec![CallEvent::Ringing])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_talk_time_is_kept() {
    let lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let order = Order {
        talk_time: Duration::from_millis(200),
        ..lab.order(vec![Step::Sound(sound(500))])
    };
    let (ending, _) = lab.call(order).await;
    let Ending::Talked {
        time,
        hung_up_by: Side::Us,
    } = ending
    else {
        panic!("{ending:?}")
    };
    assert!(
        (Duration::from_millis(200)..Duration::from_secs(5)).contains(&time),
        "{time:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_from_whom_nothing_comes_is_noticed_where_that_is_wanted() {
    let lab = Lab::new(&Codec::ALL, Script::answer()).await;
    let order = Order {
        media: Terms {
            vanished_after: Some(Duration::from_millis(300)),
            ..Terms::default()
        },
        ..lab.order(vec![Step::Sound(sound(500))])
    };
    let (events, _happened) = unbounded_channel();
    let never = CancellationToken::new();
    let call = lab.phone.call(order, &events, &never);
    let (ending, facts) = tokio::time::timeout(PATIENCE, call).await.unwrap();
    let Ending::Talked {
        time,
        hung_up_by: Side::Us,
    } = ending
    else {
        panic!("{ending:?}")
    };
    assert!(
        (Duration::from_millis(300)..Duration::from_secs(5)).contains(&time),
        "{time:?}"
    );
    assert!(facts.peer_vanished && facts.packets_sent > 0 && facts.packets_received == 0);
    assert_eq!((facts.codec, facts.encrypted), (Some(Codec::Pcma), false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_common_codec_the_call_is_refused_as_bad_media() {
    let lab = Lab::new(&[Codec::Pcmu], Script::answer()).await;
    let order = Order {
        media: Terms {
            codecs: vec![Codec::Pcma],
            ..Terms::default()
        },
        ..lab.order(vec![])
    };
    let (ending, _) = lab.call(order).await;
    assert!(matches!(ending, Ending::Failed(failure) if failure.cause == Cause::BadMedia));
}
