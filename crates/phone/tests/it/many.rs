//! Many calls at once.

use std::sync::Arc;

use g711::Codec;
use phone::call::{CallRequest, Phone};
use phone::ending::{Ending, Side};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{HeardCall, Script, TestPhone};
use phone::trunk::Trunk;
use supervisor::Supervisor;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::lab::{PATIENCE, call_request, callee_config, caller, sound, trunk_to, unseen_events};

async fn place(phone: Arc<Phone>, trunk: Arc<Trunk>, request: CallRequest) -> Ending {
    let never = CancellationToken::new();
    let placed = phone.call(&trunk, &request, &unseen_events(), &never).await;
    placed.ending
}

async fn next(heard: &mut UnboundedReceiver<HeardCall>) -> HeardCall {
    tokio::time::timeout(PATIENCE, heard.recv())
        .await
        .expect("the callee tells in time")
        .expect("the callee is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_callees_hear_every_sample() {
    const CALLS: usize = 500;
    let (callee, mut heard) =
        TestPhone::start(&Supervisor::new(), &callee_config(&Codec::ALL), |_| {
            Script::answer()
        })
        .await
        .unwrap();
    let (phone, trunk) = (Arc::new(caller()), trunk_to(callee.contact()).await);
    // Three times with gaps, as a prompt that is repeated.
    let (sound, gap) = (sound(60), PlaybackItem::Silence { frames: 10 });
    let mut plan = vec![PlaybackItem::Silence { frames: 25 }];
    for _ in 0..3 {
        plan.push(PlaybackItem::Sound(sound.clone()));
        plan.push(gap.clone());
    }
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(place(
            Arc::clone(&phone),
            Arc::clone(&trunk),
            CallRequest {
                // A busy machine needs longer until all of them are answered.
                ring_time: PATIENCE,
                ..call_request(plan.clone())
            },
        ));
    }
    while let Some(ending) = calls.join_next().await {
        let ending = ending.unwrap();
        assert!(
            matches!(
                ending,
                Ending::Talked {
                    hung_up_by: Side::Us,
                    ..
                }
            ),
            "{ending:?}"
        );
    }
    let silence = |frames: usize| vec![Codec::Pcma.silence(); frames * 160];
    let mut expected = silence(25);
    for _ in 0..3 {
        expected.extend_from_slice(sound.bytes(Codec::Pcma));
        expected.extend(silence(10));
    }
    for _ in 0..CALLS {
        let call = next(&mut heard).await;
        assert_eq!(call.lost(), 0);
        assert!(call.sound() == expected, "a callee heard something else");
    }
}
