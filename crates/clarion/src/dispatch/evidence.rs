//! What a failed call shows about its trunk.

use phone::ending::{Cause, Failure};

use super::breaker::Evidence;
use super::end_reason;
use super::trunk_pool::PooledTrunk;
use crate::domain::account::AccountSid;
use crate::domain::outcome::Outcome;
use crate::domain::response_policy::{Judgement, Verdict};

/// What a failure shows about the trunk, if anything.
pub fn of_failure<'a>(
    failure: &Failure,
    trunk: &PooledTrunk,
    account: &'a AccountSid,
    callee: &'a str,
) -> Option<Evidence<'a>> {
    let refused = Evidence::Refused(account, callee);
    if failure.was_not_sent() {
        return Some(Evidence::Down);
    }
    if failure.cause == Cause::TimedOut {
        let is_there = failure.has_response() || failure.is_redirected() || trunk.answers_options();
        return Some(if is_there {
            refused
        } else {
            Evidence::Silent(callee)
        });
    }
    // What we gave up ourselves shows nothing.
    failure.reason()?;
    let judgement = end_reason::judge(failure, trunk.policy());
    Some(match judgement.verdict {
        // Whatever was said then, somebody was reached.
        _ if failure.rang => Evidence::Worked(account),
        Verdict::Final if shows_the_callee(judgement) => Evidence::Worked(account),
        Verdict::TrunkDown if !failure.is_redirected() => Evidence::Down,
        _ => refused,
    })
}

/// Whether the callee's side has spoken, although nothing rang. "No such number" and "declined" are also what some carriers say to every call once
/// they have shut an account.
fn shows_the_callee(judgement: Judgement) -> bool {
    matches!(judgement.outcome, Outcome::Busy | Outcome::NotAnswered)
}
