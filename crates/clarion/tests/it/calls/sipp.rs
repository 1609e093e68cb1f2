//! Whole calls over trunks that SIPp plays: what carriers say, and what becomes of the call, of its report and of its bill.

use std::time::{Duration, Instant};

use clarion::domain::leg::HangUpReason;
use clarion::domain::outcome::Outcome;
use g711::Codec;
use jiff::SignedDuration;
use tokio::net::UdpSocket;

use super::stage::{Stage, field};
use super::vanished::{LONG, billed};
use crate::support::PATIENCE;
use crate::support::sipp::{Play, RINGING, Sipp, description};

const HELLO: &str = "\"mediaTxt\":\"hello\"";

/// Trunks may share an endpoint, which numbers its INVITEs.
const ANY_NUMBER: &str = "[0-9]+";

/// A SIPp that refuses one call.
async fn refusing(code: u16, phrase: &str, ringing: &str) -> Sipp {
    refusing_because(code, phrase, ringing, "X-Reason: none").await
}

/// The same with a header that may say why.
async fn refusing_because(code: u16, phrase: &str, ringing: &str, header: &str) -> Sipp {
    Play::new("refuse")
        .key("code", code)
        .key("phrase", phrase)
        .key("header", header)
        .key("ringing", ringing)
        .key("number", ANY_NUMBER)
        .start()
        .await
}

/// A SIPp that answers so many calls, and hangs up soon.
async fn answering(calls: u32) -> Sipp {
    let play = Play::new("hang_up").key("number", ANY_NUMBER);
    play.calls(calls).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sipp_says_of_the_trunk_leaves_the_call_to_the_next() {
    let rules = "responses = [{ code = 603, phrase = \"suspended\", then = \"next-trunk\" }]";
    let refusals = [
        (402, "Payment Required", ""),
        (403, "Forbidden", ""),
        (408, "Request Timeout", ""),
        (429, "Provide Referrer Identity", ""),
        (480, "Temporarily Unavailable", "carrier = \"wholesale\""),
        (501, "Not Implemented", ""),
        (503, "Service Unavailable", ""),
        (603, "Account Suspended", rules),
    ];
    let second = answering(8).await;
    let (mut trunks, mut first) = (second.trunk("second", "", "priority = 2"), Vec::new());
    for (code, phrase, rules) in refusals {
        let sipp = refusing(code, phrase, "").await;
        let more = format!("priority = 1\n{rules}");
        // Each has numbers of its own.
        trunks += &sipp.trunk(&format!("refuses-{code}"), &format!("861380{code}"), &more);
        first.push(sipp);
    }
    let stage = Stage::on(&trunks, "").await;
    for (code, phrase, _) in refusals {
        let sid = stage.call(&format!("1380{code}0000"), HELLO).await;
        let report = stage.report_of(&sid).await;
        assert_eq!(field(&report, "state"), "0", "{code}");
        let record = stage.record(&sid).await;
        assert_eq!(record.trunk.as_deref(), Some("second"), "{code}");
        let legs = stage.legs(&sid).await;
        let codes: Vec<_> = legs.iter().map(|leg| leg.sip_code).collect();
        assert_eq!(codes, [Some(code), Some(200)]);
        assert_eq!(legs[0].phrase.as_deref(), Some(phrase));
    }
    for sipp in first {
        sipp.end_satisfied().await;
    }
    second.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sipp_says_of_the_callee_or_after_it_has_rung_is_the_end_of_the_call() {
    let suspended = "responses = [{ code = 603, phrase = \"suspended\", then = \"next-trunk\" }]";
    let refusals = [
        (404, "Not Found", "", "", Outcome::InvalidNumber),
        (480, "Temporarily Unavailable", "", "", Outcome::NotAnswered),
        (486, "Busy Here", "", "", Outcome::Busy),
        (600, "Busy Everywhere", "", "", Outcome::Busy),
        // Not the words of the rule.
        (603, "Decline", "", suspended, Outcome::Declined),
        // Whatever is said then, it has rung.
        (408, "Request Timeout", RINGING, "", Outcome::NotAnswered),
        (
            500,
            "Server Internal Error",
            RINGING,
            "",
            Outcome::TrunkFailure,
        ),
        (
            503,
            "Service Unavailable",
            RINGING,
            "",
            Outcome::TrunkFailure,
        ),
    ];
    let second = answering(1).await;
    let (mut trunks, mut first) = (second.trunk("second", "", "priority = 2"), Vec::new());
    for (code, phrase, ringing, rules, _) in refusals {
        let sipp = refusing(code, phrase, ringing).await;
        let more = format!("priority = 1\n{rules}");
        trunks += &sipp.trunk(&format!("refuses-{code}"), &format!("861380{code}"), &more);
        first.push(sipp);
    }
    let stage = Stage::on(&trunks, "[dispatch]\nretry_seconds = 1\n").await;
    for (code, _, ringing, _, outcome) in refusals {
        let sid = stage.call(&format!("1380{code}0000"), HELLO).await;
        stage.report_of(&sid).await;
        assert_eq!(stage.outcome(&sid).await, Some(outcome), "{code}");
        let legs = stage.legs(&sid).await;
        assert_eq!(legs.len(), 1, "{code}");
        assert_eq!(legs[0].rang_at.is_some(), !ringing.is_empty(), "{code}");
        let line = stage.bill_line(&sid).await;
        assert_eq!(line.seconds, 0, "{code}");
    }
    for sipp in first {
        sipp.end_satisfied().await;
    }
    assert_eq!(second.ladder(), [""; 0], "nobody called it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cause_of_the_network_decides_over_sipp_where_the_code_is_vague() {
    // Without the cause each would become something else.
    let refusals = [
        (480, 17, "User busy", Outcome::Busy),
        (503, 1, "Unallocated number", Outcome::InvalidNumber),
        (500, 21, "Call rejected", Outcome::Declined),
        (404, 19, "No answer from user", Outcome::NotAnswered),
        // The callee's side does not speak: another trunk gets the call.
        (404, 34, "No circuit available", Outcome::Talked),
        (480, 38, "Network out of order", Outcome::Talked),
        (603, 50, "Facility not subscribed", Outcome::Talked),
        (403, 21, "Call rejected", Outcome::Talked),
        // A precise code stands.
        (486, 34, "No circuit available", Outcome::Busy),
    ];
    let (mut trunks, mut first) = (String::new(), Vec::new());
    for (code, cause, text, _) in refusals {
        let reason = format!("Reason: SIP;cause={code}, Q.850;cause={cause};text=\"{text}\"");
        let sipp = refusing_because(code, "Said", "", &reason).await;
        let prefix = format!("861380{code}{cause:02}");
        trunks += &sipp.trunk(&format!("says-{code}-{cause}"), &prefix, "priority = 1");
        first.push(sipp);
    }
    let second = answering(4).await;
    trunks += &second.trunk("second", "", "priority = 2");
    let stage = Stage::on(&trunks, "").await;
    for (code, cause, text, outcome) in refusals {
        let sid = stage.call(&format!("1380{code}{cause:02}00"), HELLO).await;
        stage.report_of(&sid).await;
        assert_eq!(stage.outcome(&sid).await, Some(outcome), "{code} {cause}");
        let legs = stage.legs(&sid).await;
        let trunk = format!("says-{code}-{cause}");
        assert_eq!((&legs[0].trunk, legs[0].sip_code), (&trunk, Some(code)));
        let goes_on = outcome == Outcome::Talked;
        assert_eq!(legs.len(), 1 + usize::from(goes_on), "{code} {text}");
    }
    for sipp in first {
        sipp.end_satisfied().await;
    }
    second.end_satisfied().await;
}

/// What carriers say of an account that they have shut, by codes that are meant for callees.
const SHUT: [(u16, &str); 3] = [
    (403, "Insufficient Balance"),
    (404, "Account Blocked"),
    (603, "Account Suspended"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sipp_says_of_our_account_leaves_the_call_to_the_next_trunk_and_stops_none() {
    let calls_each = 2;
    let second = answering(6).await;
    let (mut trunks, mut first) = (second.trunk("second", "", "priority = 2"), Vec::new());
    for (code, phrase) in SHUT {
        let sipp = saying_of_all(code, phrase, "", calls_each).await;
        trunks += &sipp.trunk(
            &format!("shut-{code}"),
            &format!("861380{code}"),
            NEVER_AGAIN,
        );
        first.push(sipp);
    }
    let stage = Stage::on(&trunks, "").await;
    for (code, phrase) in SHUT {
        for number in 0..calls_each {
            let sid = stage.call(&format!("1380{code}000{number}"), HELLO).await;
            assert_eq!(field(&stage.report_of(&sid).await, "state"), "0", "{code}");
            let legs = stage.legs(&sid).await;
            let codes: Vec<_> = legs.iter().map(|leg| leg.sip_code).collect();
            assert_eq!(codes, [Some(code), Some(200)]);
            assert_eq!(legs[0].phrase.as_deref(), Some(phrase));
        }
    }
    for sipp in first {
        sipp.end_satisfied().await;
    }
    second.end_satisfied().await;
}

/// A trunk that is down gets no further call.
const NEVER_AGAIN: &str = "priority = 1\npause_seconds = 3600\nlongest_pause_seconds = 3600";

/// A SIPp that refuses so many calls.
async fn saying_of_all(code: u16, phrase: &str, ringing: &str, calls: u32) -> Sipp {
    let play = Play::new("refuse").calls(calls).key("number", ANY_NUMBER);
    let play = play.key("code", code).key("phrase", phrase);
    let play = play.key("header", "X-Reason: none").key("ringing", ringing);
    play.start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sipp_says_of_an_account_after_it_has_rung_stops_neither_the_call_nor_the_trunk() {
    let outcomes = [
        Outcome::TrunkFailure,
        Outcome::InvalidNumber,
        Outcome::Declined,
    ];
    let mut sipps = Vec::new();
    let second = answering(1).await;
    let mut trunks = second.trunk("second", "", "priority = 2");
    for (code, phrase) in SHUT {
        let sipp = saying_of_all(code, phrase, RINGING, 2).await;
        trunks += &sipp.trunk(
            &format!("rings-{code}"),
            &format!("861380{code}"),
            NEVER_AGAIN,
        );
        sipps.push(sipp);
    }
    let stage = Stage::on(&trunks, "").await;
    for ((code, _), outcome) in SHUT.into_iter().zip(outcomes) {
        for number in 0..2 {
            let sid = stage.call(&format!("1380{code}000{number}"), HELLO).await;
            stage.report_of(&sid).await;
            let legs = stage.legs(&sid).await;
            assert_eq!(legs.len(), 1, "{code}: nobody else rings");
            assert_eq!(legs[0].trunk, format!("rings-{code}"));
            // Words say nothing of somebody who has rung: the code does.
            assert_eq!(stage.outcome(&sid).await, Some(outcome), "{code}");
        }
    }
    for sipp in sipps {
        sipp.end_satisfied().await;
    }
    assert_eq!(second.ladder(), [""; 0], "nobody called it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sipp_that_asks_to_wait_is_called_again_after_that_time_and_not_before() {
    let refusals = [
        (408, "Request Timeout", "3", ""),
        (
            480,
            "Temporarily Unavailable",
            "3;duration=60",
            "carrier = \"pbx\"",
        ),
        (500, "Server Internal Error", "3", ""),
        (
            503,
            "Service Unavailable",
            "3 (too many calls);duration=60",
            "",
        ),
    ];
    let (mut trunks, mut sipps) = (String::new(), Vec::new());
    for (code, phrase, retry, more) in refusals {
        let sipp = Play::new("asks_to_wait")
            .calls(2)
            .key("code", code)
            .key("phrase", phrase)
            .key("retry", retry)
            .key("number", ANY_NUMBER)
            .start()
            .await;
        trunks += &sipp.trunk(&format!("busy-{code}"), &format!("861380{code}"), more);
        sipps.push(sipp);
    }
    // What is said of the callee stands, whatever time it names.
    let busy = Play::new("refuse")
        .key("code", 486)
        .key("phrase", "Busy Here")
        .key("header", "Retry-After: 1")
        .key("number", ANY_NUMBER)
        .start()
        .await;
    trunks += &busy.trunk("busy-486", "861380486", "");
    let stage = Stage::on(&trunks, "[dispatch]\nretry_seconds = 1\n").await;
    let mut calls = Vec::new();
    for (code, ..) in refusals {
        let sid = stage.call(&format!("1380{code}0000"), HELLO).await;
        calls.push((code, sid));
    }
    let final_one = stage.call("13804860000", HELLO).await;
    for (code, sid) in calls {
        let report = stage.report_of(&sid).await;
        assert_eq!(field(&report, "state"), "0", "{code}");
        let legs = stage.legs(&sid).await;
        let codes: Vec<_> = legs.iter().map(|leg| leg.sip_code).collect();
        assert_eq!(codes, [Some(code), Some(200)]);
        let waited = legs[1].sent_at.duration_since(legs[0].ended_at);
        println!("{code}: called again after {waited:#}");
        assert!(waited >= SignedDuration::from_secs(3), "{code}: {waited}");
    }
    for sipp in sipps {
        sipp.end_satisfied().await;
    }
    stage.report_of(&final_one).await;
    assert_eq!(stage.outcome(&final_one).await, Some(Outcome::Busy));
    assert_eq!(stage.legs(&final_one).await.len(), 1);
    busy.end_satisfied().await;
}

/// Waits until a SIPp hears more than silence.
async fn hears(rtp: &UdpSocket) {
    let mut packet = [0; 2000];
    let hearing = async {
        loop {
            let length = rtp.recv(&mut packet).await.unwrap();
            let is_sound = packet[1] & 0x7f == Codec::Pcma.payload_type();
            let silence = Codec::Pcma.silence();
            if is_sound && packet[12..length].iter().any(|byte| *byte != silence) {
                return;
            }
        }
    };
    let heard = tokio::time::timeout(PATIENCE, hearing).await;
    heard.expect("sound in time");
}

/// A re-INVITE or its ACK in the scenario of holding.
fn held(attribute: &str) -> String {
    format!("{}\n{attribute}", description())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sipp_that_holds_for_too_long_is_hung_up_on_billed_and_reported() {
    let rtp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let ack = "  <send>\n<![CDATA[\nACK [$target] SIP/2.0\n{dialog}\nCSeq: 1 ACK\n{empty}\n]]>\n</send>\n";
    let sipp = Play::new("hold")
        .key("rtp", rtp.local_addr().unwrap().port())
        .key("hold confirm", ack)
        .key("hold offer", held("a=inactive"))
        .key("hold method", "INVITE")
        .key("hold answer", "a=inactive")
        // It does not come to that.
        .key("resume confirm", "")
        .key("resume offer", held("a=sendrecv"))
        .key("resume method", "UPDATE")
        .key("resume answer", "a=sendrecv")
        .start()
        .await;
    let trunk = sipp.trunk("only", "", "hold_seconds = 2\nquiet_seconds = 0");
    let stage = Stage::on(&trunk, "").await;
    let called = Instant::now();
    let sid = stage.call("13800000001", LONG).await;
    hears(&rtp).await;
    sipp.go_on();
    let held_at = Instant::now();
    let billed = billed(&stage, &sid, HangUpReason::HeldTooLong).await;
    let (whole, hold) = (called.elapsed(), held_at.elapsed());
    println!("billed {billed:?} of {whole:?}, of which it held {hold:?} at most");
    let second = Duration::from_secs(1);
    assert!(hold >= 2 * second, "{hold:?}");
    // To the hang-up: with the hold, and no more than there was. A second that has begun counts.
    assert!(
        billed >= 2 * second && billed <= whole + second,
        "{billed:?} of {whole:?}"
    );
    sipp.end_satisfied().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sipp_that_is_gone_in_mid_call_is_billed_to_its_last_sign_of_life() {
    // It answers one question, and its process ends.
    let sipp = Play::new("leaves").start().await;
    let trunk = sipp.trunk("only", "", "quiet_seconds = 1");
    let stage = Stage::on(&trunk, "").await;
    let called = Instant::now();
    let sid = stage.call("13800000001", LONG).await;
    sipp.end_satisfied().await;
    let alive = called.elapsed();
    let billed = billed(&stage, &sid, HangUpReason::Vanished).await;
    let whole = called.elapsed();
    println!("billed {billed:?}; it was there for {alive:?} at most, the call lasted {whole:?}");
    // It was asked after a second of silence. A second that has begun counts.
    let second = Duration::from_secs(1);
    assert!(
        billed >= second && billed <= alive + second,
        "{billed:?} of {alive:?}"
    );
    let leg = &stage.legs(&sid).await[0];
    let played = leg.media.packets_sent;
    assert!(
        played > 50,
        "it was called until it was known to be gone: {played}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_sipp_tells_by_info_confirms_a_notice() {
    let rtp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let info = "  <send retrans=\"500\">\n<![CDATA[\nINFO [$target] SIP/2.0\n{dialog}\nCSeq: 1 INFO\nContent-Type: application/dtmf-relay\n\
         Content-Length: [len]\n\nSignal=1\nDuration=160\n]]>\n</send>\n<recv response=\"200\"/>\n";
    let sipp = Play::new("keys")
        .key("rtp", rtp.local_addr().unwrap().port())
        .key("sound", "")
        .key("infos", info)
        .start()
        .await;
    let stage = Stage::on(&sipp.trunk("only", "", ""), "").await;
    let sid = stage
        .call("13800000001", &format!("{LONG},\"confirmDtmf\":\"1\""))
        .await;
    hears(&rtp).await;
    sipp.go_on();
    let report = stage.report_of(&sid).await;
    let said = ["state", "confirm", "dtmf", "result", "confirmNumber"];
    assert_eq!(
        said.map(|name| field(&report, name)),
        ["0", "1", "1", "confirmed", "13800000001"]
    );
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Confirmed));
    let keys = &stage.legs(&sid).await[0].keys;
    let keys: String = keys.iter().map(|press| press.key).collect();
    assert_eq!(keys, "1");
    sipp.end_satisfied().await;
}
