//! What a failed call shows about its trunk.

use phone::ending::{Cause, Failure};

use super::breaker::Evidence;
use super::end_reason;
use super::trunk_pool::PooledTrunk;
use crate::domain::account::AccountSid;
use crate::domain::response_policy::Verdict;

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
    Some(match end_reason::judge(failure, trunk.policy()).verdict {
        Verdict::Final => Evidence::Worked,
        Verdict::TrunkDown if !failure.is_redirected() => Evidence::Down,
        Verdict::TrunkDown | Verdict::NextTrunk | Verdict::Wait => refused,
    })
}
