//! Calls that we give up, and answers that come all the same.

use std::time::Duration;

use phone::call::CallRequest;
use phone::ending::Cause;

use super::Play;
use crate::lab::{call, call_request, caller, trunk_to};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_rings_too_long_is_cancelled() {
    for (scenario, rang) in [("cancelled", true), ("answers_anyway", true)] {
        let sipp = Play::new(scenario).start().await;
        let trunk = trunk_to(sipp.address).await;
        let story = call(
            &caller(),
            &trunk,
            CallRequest {
                // Long enough for SIPp to ring on a busy machine.
                ring_time: Duration::from_millis(1500),
                ..call_request(vec![])
            },
        )
        .await;
        let failure = story.failure();
        assert_eq!(
            (failure.cause, failure.rang),
            (Cause::NoAnswer, rang),
            "{scenario}"
        );
        sipp.end_satisfied().await;
        crate::lab::eventually("nothing is left open", || trunk.signalling().open().0 == 0).await;
    }
}
