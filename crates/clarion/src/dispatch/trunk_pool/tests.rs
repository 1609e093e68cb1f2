use async_trait::async_trait;
use phone::call::{CallEvent, CallRequest, PlacedCall};
use phone::ending::{Cause, FailedAt, Failure};
use phone::signalling::{DialogSnapshot, SignallingError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::Config;
use crate::dispatch::evidence;

/// A trunk that nobody calls.
#[derive(Debug)]
struct IdleLine {
    answers_options: bool,
}

#[async_trait]
impl TrunkLine for IdleLine {
    async fn call(
        &self,
        _: &CallRequest,
        _: &mpsc::UnboundedSender<CallEvent>,
        _: &CancellationToken,
    ) -> PlacedCall {
        unreachable!("nobody calls it")
    }

    async fn end_orphan(&self, _: &DialogSnapshot) -> Result<bool, SignallingError> {
        Ok(true)
    }

    fn health(&self) -> Health {
        Health::Up
    }

    fn answers_options(&self) -> bool {
        self.answers_options
    }

    fn stop(&self) {}
}

fn pool(settings: &str, answers_options: bool) -> TrunkPool {
    let config = Config::from_parts(settings, &[]).expect("settings without a mistake");
    let line: Arc<dyn TrunkLine> = Arc::new(IdleLine { answers_options });
    TrunkPool::over(
        config
            .trunks
            .into_iter()
            .map(|trunk| (trunk, Arc::clone(&line))),
    )
}

fn trunk(answers_options: bool) -> Arc<PooledTrunk> {
    let settings = "[[trunk]]\nname = \"idle\"\nhost = \"192.0.2.1\"\nprefixes = [\"\"]\n\
         responses = [{ code = 402, phrase = \"no money\", then = \"trunk-down\" }]\n";
    Arc::clone(&pool(settings, answers_options).trunks()[0])
}

fn account(number: u32) -> AccountSid {
    format!("{number:032}").parse().unwrap()
}

/// As many numbers of an account fail like this.
fn fail(trunk: &PooledTrunk, of: u32, numbers: u32, failure: &Failure) {
    let account = account(of);
    for number in 0..numbers {
        let callee = format!("{of}{number:04}");
        if let Some(shown) = evidence::of_failure(failure, trunk, &account, &callee) {
            trunk.record(shown);
        }
    }
}

fn silence() -> Failure {
    Failure::plain(Cause::TimedOut)
}

fn refusal(code: u16) -> Failure {
    Failure {
        response: Some((code, "Said".to_owned())),
        ..Failure::plain(Cause::Rejected)
    }
}

#[test]
fn a_trunk_that_refuses_the_numbers_of_one_account_is_up() {
    let trunk = trunk(false);
    fail(&trunk, 1, 100, &refusal(503));
    assert_eq!(
        (trunk.state(), trunk.slowed_accounts()),
        (TrunkState::Up, 1)
    );
    fail(&trunk, 2, 100, &refusal(503));
    assert_eq!(
        (trunk.state(), trunk.slowed_accounts()),
        (TrunkState::Up, 2)
    );
    fail(&trunk, 3, 100, &refusal(503));
    assert_eq!(trunk.state(), TrunkState::Failing, "it is the trunk");
}

#[test]
fn numbers_that_stay_silent_on_a_trunk_that_is_there_are_those_of_their_account() {
    let trying = Failure {
        trying: true,
        given_up: true,
        ..silence()
    };
    let cancelled = Failure {
        given_up: true,
        cause: Cause::TimedOut,
        ..refusal(487)
    };
    for (answers_options, failure) in [(false, trying), (false, cancelled), (true, silence())] {
        let trunk = trunk(answers_options);
        fail(&trunk, 1, 100, &failure);
        assert_eq!(trunk.state(), TrunkState::Up, "{failure:?}");
        assert_eq!(trunk.slowed_accounts(), 1, "{failure:?}");
    }
    // Nothing at all is heard of it.
    let trunk = trunk(false);
    fail(&trunk, 1, 5, &silence());
    assert_eq!(trunk.state(), TrunkState::Failing);
}

#[test]
fn whom_a_trunk_redirects_to_is_not_the_trunk() {
    let redirected = |failure| Failure {
        at: FailedAt::RedirectTarget,
        ..failure
    };
    let by_rule = Failure {
        response: Some((402, "No money".to_owned())),
        ..refusal(402)
    };
    for failure in [by_rule, silence()] {
        let redirecting = trunk(false);
        fail(&redirecting, 1, 19, &redirected(failure.clone()));
        assert_eq!(redirecting.state(), TrunkState::Up, "{failure:?}");
        assert_eq!(redirecting.slowed_accounts(), 0, "{failure:?}");
        let itself = trunk(false);
        fail(&itself, 1, 19, &failure);
        assert_eq!(itself.state(), TrunkState::Failing, "{failure:?}");
    }
}

#[test]
fn no_code_of_one_accounts_calls_stops_a_trunk_and_those_of_several_accounts_do() {
    for code in [401, 402, 403, 404, 407, 603] {
        let trunk = trunk(true);
        fail(&trunk, 1, 20, &refusal(code));
        assert_eq!(
            (trunk.state(), trunk.slowed_accounts()),
            (TrunkState::Up, 1),
            "{code}"
        );
        fail(&trunk, 2, 20, &refusal(code));
        fail(&trunk, 3, 20, &refusal(code));
        assert_eq!(trunk.state(), TrunkState::Failing, "{code}");
        // Whatever it says of it, a callee who was reached shows that it works.
        let rang = Failure {
            rang: true,
            ..refusal(code)
        };
        fail(&trunk, 1, 1, &rang);
        assert_eq!(trunk.state(), TrunkState::Up, "{code}");
    }
}

#[test]
fn words_about_a_shut_account_count_like_a_refused_number_because_a_callee_can_say_them_too() {
    for code in [403, 404, 603] {
        let shut = Failure {
            response: Some((code, "Account Suspended".to_owned())),
            ..refusal(code)
        };
        let rang = Failure {
            rang: true,
            ..shut.clone()
        };
        let trunk = trunk(true);
        fail(&trunk, 1, 1, &rang);
        assert_eq!(trunk.state(), TrunkState::Up, "{code}");
        fail(&trunk, 1, 1, &shut);
        assert_eq!(trunk.state(), TrunkState::Up, "{code}");
        for account in 1..=3 {
            fail(&trunk, account, 20, &shut);
        }
        assert_eq!(trunk.state(), TrunkState::Failing, "{code}");
        fail(&trunk, 1, 1, &rang);
        assert_eq!(trunk.state(), TrunkState::Up, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_is_dead_for_as_long_as_none_of_its_trunks_is_fit_for_calls() {
    let trunk = |name: &str, prefix: &str| {
        format!("[[trunk]]\nname = \"{name}\"\nhost = \"192.0.2.1\"\nprefixes = [\"{prefix}\"]\n")
    };
    let pool = pool(
        &format!("{}{}", trunk("east", "86138"), trunk("west", "86")),
        true,
    );
    let now = Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    let dead_for = |route: &str| pool.dead_for(&RouteKey::from_stored(route.to_owned()));
    let reaches = |called| {
        pool.reaches(CallEnds {
            called,
            caller: None,
        })
    };
    let (east, west) = (&pool.trunks()[0], &pool.trunks()[1]);
    pool.look(&now);
    assert!(!pool.has_dead_trunk() && dead_for("east west").is_none());
    east.record(Evidence::Down);
    pool.look(&now);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(pool.has_dead_trunk());
    assert_eq!(dead_for("east"), Some(SignedDuration::from_secs(5)));
    assert_eq!(dead_for("east west"), None, "one of them is fit");
    assert_eq!(dead_for("gone"), None, "its calls shall end");
    assert!(reaches("8613800000001"));
    west.set_drained(true);
    pool.look(&now);
    assert!(!reaches("8613800000001") && !reaches("8613900000001"));
    tokio::time::advance(Duration::from_secs(5)).await;
    // That it may be tried again proves nothing yet.
    pool.look(&now);
    assert!(reaches("8613800000001") && !reaches("8613900000001"));
    assert_eq!(dead_for("east west"), Some(SignedDuration::from_secs(5)));
    east.record(Evidence::Worked(&account(1)));
    pool.look(&now);
    assert_eq!((dead_for("east"), dead_for("east west")), (None, None));
}
