//! Peers that let us wait. They are waited for together, because there is nothing else to do meanwhile.

use std::time::{Duration, Instant};

use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::test_phone::{Script, TestPhone};
use phone::trunk::{Health, SipTrunkConfig};
use supervisor::Supervisor;

use super::Play;
use super::registrations::{becomes, registering};
use crate::lab::{
    PATIENCE, call, call_request, callee_config, caller, eventually, sound, trunk, trunk_to,
};

/// For so long a hang-up is waited for that nobody confirms.
const LAST_WORD: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_that_let_us_wait_are_dealt_with() {
    tokio::join!(
        silence_is_noticed_and_an_answer_that_comes_after_it_is_ended(),
        a_hang_up_that_nobody_confirms_ends_the_call_all_the_same(),
        a_caller_that_never_confirms_our_answer_is_hung_up_on(),
        a_trunk_whose_registrar_refuses_is_down_until_it_does_not(),
        a_trunk_that_answers_503_to_our_questions_is_down_until_it_does_not(),
    );
}

async fn silence_is_noticed_and_an_answer_that_comes_after_it_is_ended() {
    let sipp = Play::new("answers_late").start().await;
    let trunk = trunk_to(sipp.address).await;
    let failure = call(&caller(), &trunk, call_request(vec![]))
        .await
        .failure();
    assert_eq!((failure.cause, failure.rang), (Cause::TimedOut, false));
    assert!(failure.may_fail_over() && failure.response.is_none());
    sipp.end_satisfied().await;
}

async fn a_hang_up_that_nobody_confirms_ends_the_call_all_the_same() {
    let sipp = Play::new("deaf").key("linger", 10_000).start().await;
    let trunk = trunk_to(sipp.address).await;
    let began = Instant::now();
    let story = call(
        &caller(),
        &trunk,
        call_request(vec![PlaybackItem::Sound(sound(10))]),
    )
    .await;
    let whole = began.elapsed();
    let (time, side) = story.talked();
    assert_eq!(side, Side::Us);
    assert!(
        time + LAST_WORD <= whole,
        "waiting is not talking: {time:?} of {whole:?}"
    );
    sipp.end_satisfied().await;
    assert_eq!(trunk.signalling().open().0, 0);
}

async fn a_caller_that_never_confirms_our_answer_is_hung_up_on() {
    let (phone, mut heard) = TestPhone::start(
        &Supervisor::new(),
        &callee_config(&g711::Codec::ALL),
        |_| Script::answer(),
    )
    .await
    .unwrap();
    let sipp = Play::new("no_ack").calling(phone.contact()).start().await;
    let heard = tokio::time::timeout(PATIENCE, heard.recv())
        .await
        .expect("the phone ends the call")
        .unwrap();
    assert!(!heard.answered);
    sipp.end_satisfied().await;
    eventually("nothing is left open", || phone.open().0 == 0).await;
}

async fn a_trunk_whose_registrar_refuses_is_down_until_it_does_not() {
    let sipp = Play::new("grudging_registrar").start().await;
    let trunk = trunk(registering(sipp.address)).await;
    let mut health = trunk.health();
    becomes(&mut health, |health| !health.usable()).await;
    let Health::Down { why } = health.borrow().clone() else {
        panic!("it is up again")
    };
    assert!(why.contains("403"), "{why}");
    becomes(&mut health, |health| *health == Health::Up).await;
    sipp.end_satisfied().await;
}

async fn a_trunk_that_answers_503_to_our_questions_is_down_until_it_does_not() {
    let sipp = Play::new("options").calls(4).start().await;
    let trunk = trunk(SipTrunkConfig {
        ask_every: Some(Duration::from_millis(100)),
        ..SipTrunkConfig::new("test", sipp.address.into())
    })
    .await;
    let mut health = trunk.health();
    becomes(&mut health, |health| *health == Health::Up).await;
    becomes(&mut health, |health| !health.usable()).await;
    let Health::Down { why } = health.borrow().clone() else {
        panic!("it is up again")
    };
    assert!(why.contains("503"), "{why}");
    becomes(&mut health, |health| *health == Health::Up).await;
    trunk.stop();
    sipp.end_satisfied().await;
}
