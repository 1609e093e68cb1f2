//! After which endings a number is tried again, as `redialOn` says it.

use clarion::domain::call_state::CallState;
use jiff::SignedDuration;
use phone::test_phone::Script;

use super::{HELLO, TIMES};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::eventually;
use crate::support::telephone::Telephone;

/// The word in `redialOn`, another one, the end of the number that ends so, what more it takes, and the result.
const ENDINGS: [(&str, &str, &str, &str, &str); 5] = [
    ("busy", "noanswer", "0002", "", "busy"),
    ("noanswer", "busy", "0003", "", "not-answered"),
    (
        "declined",
        "busy;noanswer;unconfirmed;failed",
        "0004",
        "",
        "declined",
    ),
    (
        "unconfirmed",
        "busy",
        "0005",
        ",\"confirmDtmf\":\"5\",\"waitDtmfTime\":\"1\"",
        "unconfirmed",
    ),
    ("failed", "busy", "0606", "", "trunk-failure"),
];

/// What no other trunk takes either: it says 606.
fn script(number: &str) -> Script {
    if number.ends_with("0606") {
        return Script::refuse(606);
    }
    Script::of_number(number)
}

async fn follow_the_word(database: &str) {
    let telephone = Telephone::start(script).await;
    let trunk = telephone.wide_trunk("telephone", "");
    let stage = Stage::on(&trunk, &format!("{database}{TIMES}")).await;
    let fields = |on: &str, more: &str| {
        format!(
            "{HELLO},\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\",\"redialOn\":\"{on}\"{more}"
        )
    };
    let (mut again, mut over) = (Vec::new(), Vec::new());
    for (place, (word, other, suffix, more, result)) in ENDINGS.into_iter().enumerate() {
        let number = |of: usize| format!("138{of}{place:03}{suffix}");
        let sid = stage.call(&number(1), &fields(word, more)).await;
        again.push((sid, word, result));
        let sid = stage.call(&number(2), &fields(other, more)).await;
        over.push((sid, other, result));
    }
    for (sid, word, result) in &over {
        let report = stage.report_of(sid).await;
        let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
        assert_eq!(said, ["1", result, "exhausted"], "{word}");
    }
    for (sid, word, _) in &again {
        let what = format!("it waits for its next try after {word}");
        eventually(&what, async || {
            let is_queued = stage.record(sid).await.state == CallState::Queued;
            is_queued && stage.attempts(sid).await.len() == 1
        })
        .await;
    }
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    for (sid, word, result) in &again {
        let report = stage.report_of(sid).await;
        let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
        assert_eq!(said, ["2", result, "exhausted"], "{word}");
    }
    assert_eq!(telephone.dialled().len(), 3 * ENDINGS.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_tried_again_after_the_endings_of_redial_on_and_no_others() {
    follow_the_word("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_tried_again_after_the_endings_of_redial_on_and_no_others_on_postgres() {
    follow_the_word(&on_postgres().await).await;
}
