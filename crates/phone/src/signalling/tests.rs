//! Two of our own endpoints on loopback.

use std::time::Duration;

use supervisor::Supervisor;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::ending::{Cause, Failure, Side};

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn endpoint(calls: Option<CallSender>) -> Signalling {
    let config = SignallingConfig::new(Transport::Udp, "127.0.0.1:0".parse().unwrap());
    let calls = calls.map(|calls| Answering {
        calls,
        credentials: None,
    });
    Signalling::start(&Supervisor::new(), &config, calls)
        .await
        .unwrap()
}

async fn pair() -> (Signalling, Signalling, UnboundedReceiver<IncomingCall>) {
    let (calls, incoming) = unbounded_channel();
    (endpoint(None).await, endpoint(Some(calls)).await, incoming)
}

/// Nothing is recorded.
pub(super) fn at_once() -> OnAnswer {
    Box::new(|_| tokio::sync::oneshot::channel().1)
}

pub(super) fn invite(to: SocketAddr) -> Invite {
    Invite {
        target: format!("sip:13800000000@{to}"),
        to: "sip:13800000000@127.0.0.1".to_owned(),
        from: "sip:4001234567@127.0.0.1".to_owned(),
        contact_user: "4001234567".to_owned(),
        display_name: None,
        destination: to,
        call_id: format!("{:032x}", rand::random::<u128>()),
        credentials: None,
        headers: vec![],
        offer: "v=0\r\n".to_owned(),
    }
}

async fn in_time<T>(event: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, event)
        .await
        .expect("an event in time")
}

async fn next(leg: &mut EstablishedLeg) -> LegEvent {
    in_time(leg.next()).await.expect("an event")
}

async fn answered(leg: &mut OutgoingLeg) -> Answer {
    match in_time(leg.next()).await {
        DialEvent::Answered(answer) => answer,
        other => panic!("not answered: {other:?}"),
    }
}

async fn failed(leg: &mut OutgoingLeg) -> Failure {
    match in_time(leg.next()).await {
        DialEvent::Failed(refusal) => refusal.failure,
        other => panic!("it goes on: {other:?}"),
    }
}

async fn place(caller: &Signalling, to: SocketAddr) -> OutgoingLeg {
    let ready = caller.prepare(invite(to), at_once()).await.unwrap();
    ready.send(Leave::always())
}

async fn call(
    caller: &Signalling,
    callee: &Signalling,
    incoming: &mut UnboundedReceiver<IncomingCall>,
) -> (OutgoingLeg, IncomingCall) {
    let leg = place(caller, callee.contact()).await;
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

#[test]
fn escapes_in_a_user_part_are_undone_once() {
    for (text, written) in [
        ("sip:12%2334@h", "sip:12%2334@h"),
        ("sip:%2B86@h", "sip:+86@h"),
        ("sip:a%40b@h", "sip:a%40b@h"),
        ("sip:%25%32@h", "sip:%252@h"),
    ] {
        assert_eq!(uri(text).unwrap().to_string(), written);
    }
    for odd in ["%", "%4", "%zz", "%0d", "%4\u{e9}", "%ff"] {
        assert_eq!(unescaped_text(odd), odd);
    }
}

#[tokio::test]
async fn a_call_rings_is_answered_and_hung_up_by_us() {
    let (caller, callee, mut incoming) = pair().await;
    let (mut ours, theirs) = call(&caller, &callee, &mut incoming).await;
    theirs.leg.ring(None);
    assert!(matches!(
        in_time(ours.next()).await,
        DialEvent::Ringing { code: 180, .. }
    ));
    let theirs = theirs.leg.answer("v=0\r\nanswer".to_owned());
    let answer = answered(&mut ours).await;
    assert_eq!(answer.description(), b"v=0\r\nanswer");
    let mut ours = ours.established(&answer);
    let mut theirs = in_time(theirs.acknowledged()).await.expect("an ACK");
    ours.hang_up().await;
    assert!(matches!(next(&mut ours).await, LegEvent::Ended(Side::Us)));
    assert!(matches!(
        next(&mut theirs).await,
        LegEvent::Ended(Side::Them)
    ));
    drop((ours, theirs));
    is_quiet(&caller).await;
    is_quiet(&callee).await;
}

#[tokio::test]
async fn the_callee_hangs_up() {
    let (caller, callee, mut incoming) = pair().await;
    let (mut ours, theirs) = call(&caller, &callee, &mut incoming).await;
    let theirs = theirs.leg.answer("v=0\r\n".to_owned());
    let answer = answered(&mut ours).await;
    let mut ours = ours.established(&answer);
    let mut theirs = in_time(theirs.acknowledged()).await.expect("an ACK");
    theirs.hang_up().await;
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
        let failure = failed(&mut ours).await;
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
    assert!(matches!(
        in_time(ours.next()).await,
        DialEvent::Ringing { .. }
    ));
    let mut ours = ours.cancel().await;
    let failure = in_time(ours.ended()).await;
    assert_eq!((failure.cause, failure.rang), (Cause::Cancelled, true));
    in_time(theirs.leg.given_up()).await;
}

#[tokio::test]
async fn a_trunk_that_is_not_there_is_noticed() {
    let caller = endpoint(None).await;
    // A socket that is bound and never read: silence, not a refusal.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut leg = place(&caller, silent.local_addr().unwrap()).await;
    let failure = failed(&mut leg).await;
    assert_eq!(
        (failure.cause, failure.may_fail_over()),
        (Cause::TimedOut, true)
    );
}

#[tokio::test]
async fn an_unsolicited_call_is_refused() {
    let (caller, other) = (endpoint(None).await, endpoint(None).await);
    other.add_peer(caller.contact().ip());
    let mut leg = place(&caller, other.contact()).await;
    let failure = failed(&mut leg).await;
    assert_eq!(
        (failure.cause, failure.response.unwrap().0),
        (Cause::Rejected, 403)
    );
}
