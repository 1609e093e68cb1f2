//! Two of our own endpoints on loopback.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::ending::{Cause, Failure, Side};

const PATIENCE: Duration = Duration::from_secs(60);

async fn endpoint(calls: Option<CallSender>) -> Signalling {
    let config = SignallingConfig::new(Transport::Udp, "127.0.0.1:0".parse().unwrap());
    let calls = calls.map(|calls| Answering {
        calls,
        credentials: None,
    });
    Signalling::start(&config, calls).await.unwrap()
}

async fn pair() -> (Signalling, Signalling, UnboundedReceiver<IncomingCall>) {
    let (calls, incoming) = unbounded_channel();
    (endpoint(None).await, endpoint(Some(calls)).await, incoming)
}

/// Nothing is written down.
fn at_once() -> OnAnswer {
    Box::new(|_| tokio::sync::oneshot::channel().1)
}

fn invite(to: SocketAddr) -> Invite {
    Invite {
        to: format!("sip:13800000000@{to}"),
        from: "sip:4001234567@127.0.0.1".to_owned(),
        display_name: None,
        destination: to,
        call_id: format!("{:032x}", rand::random::<u128>()),
        credentials: None,
        headers: vec![],
        offer: "v=0\r\n".to_owned(),
    }
}

async fn next(leg: &mut Leg) -> LegEvent {
    tokio::time::timeout(PATIENCE, leg.next())
        .await
        .expect("an event in time")
        .expect("an event")
}

async fn call(
    caller: &Signalling,
    callee: &Signalling,
    incoming: &mut UnboundedReceiver<IncomingCall>,
) -> (Leg, IncomingCall) {
    let leg = caller
        .invite(invite(callee.contact()), at_once())
        .await
        .unwrap();
    let call = tokio::time::timeout(PATIENCE, incoming.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (call.number.as_str(), call.offer.as_slice()),
        ("13800000000", &b"v=0\r\n"[..])
    );
    (leg, call)
}

/// Nothing is left over: dialogs at once, transactions when their timers have run.
async fn is_quiet(signalling: &Signalling) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while signalling.open() != (0, 0) {
        assert!(
            tokio::time::Instant::now() < deadline,
            "left over: {:?}",
            signalling.open()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_call_rings_is_answered_and_hung_up_by_us() {
    let (caller, callee, mut incoming) = pair().await;
    let (mut ours, mut theirs) = call(&caller, &callee, &mut incoming).await;
    theirs.leg.ring(None);
    assert!(matches!(
        next(&mut ours).await,
        LegEvent::Ringing { code: 180, .. }
    ));
    theirs.leg.answer("v=0\r\nanswer".to_owned());
    let LegEvent::Answered { description } = next(&mut ours).await else {
        panic!("not answered")
    };
    assert_eq!(description, b"v=0\r\nanswer");
    assert!(matches!(
        next(&mut theirs.leg).await,
        LegEvent::Ringing { .. }
    ));
    assert!(matches!(
        next(&mut theirs.leg).await,
        LegEvent::Answered { .. }
    ));
    ours.hang_up().await;
    assert!(matches!(next(&mut ours).await, LegEvent::Ended(Side::Us)));
    assert!(matches!(
        next(&mut theirs.leg).await,
        LegEvent::Ended(Side::Them)
    ));
    drop((ours, theirs));
    is_quiet(&caller).await;
    is_quiet(&callee).await;
}

#[tokio::test]
async fn the_callee_hangs_up() {
    let (caller, callee, mut incoming) = pair().await;
    let (mut ours, mut theirs) = call(&caller, &callee, &mut incoming).await;
    theirs.leg.answer("v=0\r\n".to_owned());
    assert!(matches!(next(&mut ours).await, LegEvent::Answered { .. }));
    assert!(matches!(
        next(&mut theirs.leg).await,
        LegEvent::Answered { .. }
    ));
    theirs.leg.hang_up().await;
    assert!(matches!(next(&mut ours).await, LegEvent::Ended(Side::Them)));
}

#[tokio::test]
async fn refusals_have_their_causes() {
    let (caller, callee, mut incoming) = pair().await;
    for (code, cause) in [
        (486, Cause::Busy),
        (603, Cause::Declined),
        (404, Cause::NoRoute),
        (503, Cause::Unavailable),
        (488, Cause::BadMedia),
    ] {
        let (mut ours, theirs) = call(&caller, &callee, &mut incoming).await;
        theirs.leg.refuse(code);
        let LegEvent::Failed(failure) = next(&mut ours).await else {
            panic!("{code}")
        };
        assert_eq!(
            (failure.cause, failure.response.unwrap().0, failure.rang),
            (cause, code, false),
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_while_it_rings_is_cancelled() {
    let (caller, callee, mut incoming) = pair().await;
    let (mut ours, mut theirs) = call(&caller, &callee, &mut incoming).await;
    theirs.leg.ring(None);
    assert!(matches!(next(&mut ours).await, LegEvent::Ringing { .. }));
    ours.hang_up().await;
    let LegEvent::Failed(Failure { cause, rang, .. }) = next(&mut ours).await else {
        panic!("it goes on")
    };
    assert_eq!((cause, rang), (Cause::Cancelled, true));
    assert!(matches!(
        next(&mut theirs.leg).await,
        LegEvent::Ringing { .. }
    ));
    assert!(matches!(
        next(&mut theirs.leg).await,
        LegEvent::Failed(Failure {
            cause: Cause::Cancelled,
            ..
        })
    ));
}

#[tokio::test]
async fn a_trunk_that_is_not_there_is_noticed() {
    let caller = endpoint(None).await;
    // A socket that is bound and never read: silence, not a refusal.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut leg = caller
        .invite(invite(silent.local_addr().unwrap()), at_once())
        .await
        .unwrap();
    let LegEvent::Failed(failure) = next(&mut leg).await else {
        panic!("it goes on")
    };
    assert_eq!(
        (failure.cause, failure.may_fail_over()),
        (Cause::TimedOut, true)
    );
}

#[tokio::test]
async fn an_unsolicited_call_is_refused() {
    let (caller, other) = (endpoint(None).await, endpoint(None).await);
    let mut leg = caller
        .invite(invite(other.contact()), at_once())
        .await
        .unwrap();
    let LegEvent::Failed(failure) = next(&mut leg).await else {
        panic!("it goes on")
    };
    assert_eq!(
        (failure.cause, failure.response.unwrap().0),
        (Cause::Rejected, 403)
    );
}
