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
    let dropped_before = dropped_by_the_kernel();
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
    let mut lost = 0;
    for _ in 0..CALLS {
        let call = next(&mut heard).await;
        lost += call.lost() as u64;
        let whole = call.lost() == 0 && call.packets.len() * 160 == expected.len();
        assert!(
            !whole || call.sound() == expected,
            "a callee heard something else"
        );
        lost += (expected.len() / 160).saturating_sub(call.packets.len() + call.lost()) as u64;
    }
    let dropped = dropped_by_the_kernel() - dropped_before;
    assert!(lost <= dropped, "{lost} lost, {dropped} dropped");
}

/// Packets that the kernel had no room for, of whomever: on a machine that is too busy they never reach the callee.
fn dropped_by_the_kernel() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let queues = read("/proc/net/softnet_stat");
    let of_queue = |line: &str| {
        let dropped = line.split_whitespace().nth(1)?;
        u64::from_str_radix(dropped, 16).ok()
    };
    let backlog: u64 = queues.lines().filter_map(of_queue).sum();
    let snmp = read("/proc/net/snmp");
    let mut udp = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (
        udp.next().unwrap_or_default(),
        udp.next().unwrap_or_default(),
    );
    let errors = names.split(' ').zip(values.split(' '));
    let of_buffers =
        errors.filter(|(name, _)| ["RcvbufErrors", "SndbufErrors", "MemErrors"].contains(name));
    backlog
        + of_buffers
            .filter_map(|(_, count)| count.parse::<u64>().ok())
            .sum::<u64>()
}
