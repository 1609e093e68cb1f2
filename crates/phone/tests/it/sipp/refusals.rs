//! Calls that SIPp does not answer.

use std::time::Duration;

use phone::ending::{Cause, Side};
use phone::media::stream::PlaybackItem;
use phone::trunk::SipTrunkConfig;

use super::Play;
use super::play::RINGING;
use crate::lab::{call, call_request, caller, sound, trunk, trunk_to};

/// Code, reason phrase, Q.850 cause, and what that means to whoever waits for the call.
const REFUSALS: &[(u16, &str, Option<u8>, Cause)] = &[
    (302, "Moved Temporarily", None, Cause::Rejected),
    (400, "Bad Request", None, Cause::Rejected),
    (401, "Unauthorized", None, Cause::Rejected),
    (403, "Forbidden", None, Cause::Rejected),
    (403, "Forbidden", Some(21), Cause::Declined),
    (403, "Caller Not Allowed", None, Cause::Rejected),
    (404, "Not Found", None, Cause::NoRoute),
    (404, "Not Found", Some(34), Cause::Unavailable),
    (405, "Method Not Allowed", None, Cause::Rejected),
    (406, "Not Acceptable", None, Cause::Rejected),
    (407, "Proxy Authentication Required", None, Cause::Rejected),
    (408, "Request Timeout", None, Cause::NoAnswer),
    (410, "Gone", None, Cause::NoRoute),
    (410, "Gone", Some(22), Cause::NoRoute),
    (415, "Unsupported Media Type", None, Cause::BadMedia),
    (416, "Unsupported URI Scheme", None, Cause::NoRoute),
    (420, "Bad Extension", None, Cause::Rejected),
    (480, "Temporarily Unavailable", None, Cause::NoAnswer),
    (480, "Temporarily Unavailable", Some(17), Cause::Busy),
    (480, "Temporarily Unavailable", Some(20), Cause::NoAnswer),
    (484, "Address Incomplete", None, Cause::NoRoute),
    (485, "Ambiguous", None, Cause::NoRoute),
    (486, "Busy Here", None, Cause::Busy),
    (486, "Busy Here", Some(1), Cause::Busy),
    (487, "Request Terminated", None, Cause::NoAnswer),
    (488, "Not Acceptable Here", None, Cause::BadMedia),
    (500, "Server Internal Error", None, Cause::Unavailable),
    (500, "Server Internal Error", Some(17), Cause::Busy),
    (501, "Not Implemented", None, Cause::Rejected),
    (502, "Bad Gateway", None, Cause::Unavailable),
    (503, "Service Unavailable", None, Cause::Unavailable),
    (503, "Service Unavailable", Some(1), Cause::NoRoute),
    (504, "Server Time-out", None, Cause::Unavailable),
    (513, "Message Too Large", None, Cause::Unavailable),
    (580, "Precondition Failure", None, Cause::Rejected),
    (600, "Busy Everywhere", None, Cause::Busy),
    (603, "Decline", None, Cause::Declined),
    (603, "Decline", Some(17), Cause::Busy),
    (604, "Does Not Exist Anywhere", None, Cause::NoRoute),
    (606, "Not Acceptable", None, Cause::BadMedia),
    (607, "Unwanted", None, Cause::Declined),
    (608, "Rejected", None, Cause::Declined),
    (699, "Out of Ideas", None, Cause::Rejected),
];

/// One refusal, with a SIPp of its own.
async fn check(code: u16, phrase: &'static str, q850: Option<u8>, cause: Cause) {
    let reason = q850.map_or("X-Reason: none".to_owned(), |cause| {
        format!("Reason: SIP;cause={code}, Q.850 ;cause={cause};text=\"of the network\"")
    });
    let sipp = Play::new("refuse")
        .key("code", code)
        .key("phrase", phrase)
        .key("header", reason)
        .start()
        .await;
    let trunk = trunk_to(sipp.address).await;
    let failure = call(&caller(), &trunk, call_request(vec![]))
        .await
        .failure();
    let what = format!("{code} {q850:?}: {failure:?}");
    assert_eq!((failure.cause, failure.rang), (cause, false), "{what}");
    assert_eq!(failure.response, Some((code, phrase.to_owned())), "{what}");
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refusal_has_its_cause() {
    for some in REFUSALS.chunks(8) {
        let mut checks = tokio::task::JoinSet::new();
        for (code, phrase, q850, cause) in some {
            checks.spawn(check(*code, phrase, *q850, *cause));
        }
        checks.join_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_host_of_a_trunk_gets_what_the_first_cannot_carry_and_nothing_that_has_rung() {
    for (rings, codes) in [(false, &[503, 200][..]), (true, &[503])] {
        let first = Play::new("refuse")
            .key("code", 503)
            .key("phrase", "Service Unavailable")
            .key("header", "Retry-After: 10")
            .key("ringing", if rings { RINGING } else { "" })
            .start()
            .await;
        let second = Play::new("hang_up").key("number", 2).start().await;
        let trunk = trunk(SipTrunkConfig {
            more_hosts: vec![second.address.into()],
            ..SipTrunkConfig::new("test", first.address.into())
        })
        .await;
        let request = call_request(vec![PlaybackItem::Sound(sound(500))]);
        let story = call(&caller(), &trunk, request).await;
        let legs = story.legs.iter().map(|leg| leg.code.unwrap());
        assert_eq!(legs.collect::<Vec<_>>(), codes);
        first.end_satisfied().await;
        if rings {
            let failure = story.failure();
            assert!(failure.rang && !failure.may_fail_over(), "{failure:?}");
            assert_eq!(failure.retry_after, Some(Duration::from_secs(10)));
            assert_eq!(second.ladder(), [""; 0], "nobody calls it");
        } else {
            assert_eq!(story.talked().1, Side::Them);
            second.end_satisfied().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_408_without_a_word_before_it_is_no_silence() {
    let sipp = Play::new("asks_to_wait")
        .key("code", 408)
        .key("phrase", "Request Timeout")
        .key("retry", 3)
        .start()
        .await;
    let trunk = trunk_to(sipp.address).await;
    let story = call(&caller(), &trunk, call_request(vec![])).await;
    assert_eq!(story.legs[0].code, Some(408));
    let failure = story.failure();
    assert_eq!((failure.cause, failure.rang), (Cause::NoAnswer, false));
    let said = (408, "Request Timeout".to_owned());
    assert_eq!(failure.response, Some(said));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
    sipp.end_satisfied().await;
}
