use super::*;

const SETTINGS: TrunkHealthSettings = TrunkHealthSettings {
    refusals: 20,
    refusal_pause: Duration::from_secs(1),
    timeouts: 5,
    first_pause: Duration::from_secs(10),
    longest_pause: Duration::from_secs(300),
};

fn account(number: u32) -> AccountSid {
    format!("{number:032}").parse().unwrap()
}

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// A breaker to which so many different numbers were silent.
fn silent(numbers: u32, now: Instant) -> Breaker {
    let mut breaker = Breaker::new(SETTINGS);
    for number in 0..numbers {
        breaker.record(Evidence::Silent(&number.to_string()), now);
    }
    breaker
}

/// A breaker whose trunk has refused so many different numbers.
fn refused(numbers: u32, now: Instant) -> Breaker {
    let mut breaker = Breaker::new(SETTINGS);
    for number in 0..numbers {
        breaker.record(Evidence::Refused(&account(0), &number.to_string()), now);
    }
    breaker
}

/// The number of the call that may try.
fn trial(breaker: &mut Breaker, now: Instant) -> Option<u64> {
    match breaker.ask(&account(0), now) {
        SendLeave::Trial(number) => Some(number),
        SendLeave::Denied => None,
        SendLeave::Free => panic!("it is not tripped"),
    }
}

#[test]
fn after_silence_in_a_row_one_call_tries_again() {
    let now = Instant::now();
    assert_eq!(silent(4, now).ask(&account(0), now), SendLeave::Free);
    let mut breaker = silent(5, now);
    assert_eq!(trial(&mut breaker, now + second(9)), None);
    let later = now + second(11);
    let first = trial(&mut breaker, later).expect("one tries");
    assert_eq!(trial(&mut breaker, later), None, "and only one");
    breaker.record(Evidence::Silent("another"), later);
    breaker.trial_over(first);
    assert_eq!(
        trial(&mut breaker, later + second(19)),
        None,
        "twice as long"
    );
    assert!(trial(&mut breaker, later + second(21)).is_some());
    breaker.record(Evidence::Worked(&account(0)), later);
    assert_eq!(breaker.ask(&account(0), later), SendLeave::Free);
}

#[test]
fn a_trunk_that_says_that_it_is_down_is_believed_at_once_and_many_at_once_are_one() {
    let now = Instant::now();
    let mut breaker = Breaker::new(SETTINGS);
    for _ in 0..50 {
        breaker.record(Evidence::Down, now);
    }
    assert_eq!(trial(&mut breaker, now + second(9)), None);
    assert!(trial(&mut breaker, now + second(10)).is_some());
}

#[test]
fn one_bad_number_never_stops_a_trunk() {
    let now = Instant::now();
    let mut breaker = Breaker::new(SETTINGS);
    for _ in 0..1000 {
        breaker.record(Evidence::Refused(&account(0), "bad"), now);
        breaker.record(Evidence::Silent("dead"), now);
    }
    assert_eq!(breaker.ask(&account(0), now), SendLeave::Free);
}

#[test]
fn refused_numbers_cost_the_others_a_second_at_most() {
    let now = Instant::now();
    let mut breaker = Breaker::new(SETTINGS);
    let (mut time, mut dialled) = (now, 0);
    for number in 0..1000 {
        let leave = breaker.ask(&account(0), time);
        if leave != SendLeave::Denied {
            dialled += 1;
            breaker.record(Evidence::Refused(&account(0), &number.to_string()), time);
        }
        if let SendLeave::Trial(number) = leave {
            breaker.trial_over(number);
        }
        time += Duration::from_millis(100);
        assert!(
            breaker.would_allow(&account(0), time + second(1)),
            "{number}"
        );
    }
    assert!((100..130).contains(&dialled), "one a second: {dialled}");
    let next = time + second(1);
    assert!(trial(&mut breaker, next).is_some());
    breaker.record(Evidence::Worked(&account(0)), next);
    assert_eq!(breaker.ask(&account(0), next), SendLeave::Free, "cleared");
}

#[test]
fn a_trial_does_not_wait_for_a_number_that_is_known_to_be_bad() {
    let now = Instant::now();
    let mut breaker = refused(20, now);
    let later = now + second(1);
    assert_eq!(trial(&mut breaker, now), None);
    let known = trial(&mut breaker, later).unwrap();
    breaker.record(Evidence::Refused(&account(0), "7"), later);
    breaker.trial_over(known);
    assert!(trial(&mut breaker, later).is_some(), "another one at once");
}

#[test]
fn a_trunk_that_takes_long_to_refuse_is_tried_every_second_too() {
    let now = Instant::now();
    let mut breaker = refused(20, now);
    let later = now + second(1);
    assert!(trial(&mut breaker, later).is_some());
    assert_eq!(trial(&mut breaker, later + second(1) / 2), None);
    assert!(
        trial(&mut breaker, later + second(1)).is_some(),
        "the one before has no answer yet"
    );
}

#[test]
fn one_silence_does_not_stop_a_trunk_that_refuses_numbers() {
    let now = Instant::now();
    let mut breaker = refused(20, now);
    let later = now + second(1);
    let silent = trial(&mut breaker, later).unwrap();
    breaker.record(Evidence::Silent("silent"), later);
    breaker.trial_over(silent);
    assert!(trial(&mut breaker, later).is_some(), "no pause of its own");
    for number in 1..5 {
        breaker.record(Evidence::Silent(&number.to_string()), later);
    }
    let denied = trial(&mut breaker, later + second(9));
    assert_eq!(denied, None, "many are silent");
    let mut breaker = refused(20, now);
    breaker.record(Evidence::Down, now);
    let denied = trial(&mut breaker, now + second(9));
    assert_eq!(denied, None, "it says that it is down");
}

#[test]
fn a_trial_that_says_nothing_for_long_does_not_keep_others_from_trying() {
    let now = Instant::now();
    let mut breaker = silent(5, now);
    let later = now + second(10);
    let slow = trial(&mut breaker, later).unwrap();
    assert_eq!(trial(&mut breaker, later + second(9)), None);
    let other = trial(&mut breaker, later + second(10)).unwrap();
    breaker.trial_over(slow);
    let last = later + second(11);
    assert_eq!(trial(&mut breaker, last), None, "the other one still tries");
    breaker.trial_over(other);
    assert!(trial(&mut breaker, last).is_some());
}

#[test]
fn a_trial_whose_end_nobody_knows_is_followed_by_another() {
    let now = Instant::now();
    let mut breaker = silent(5, now);
    let later = now + second(11);
    let lost = trial(&mut breaker, later).unwrap();
    breaker.trial_over(lost);
    assert!(trial(&mut breaker, later).is_some());
}

#[test]
fn a_success_in_between_starts_the_count_anew() {
    let now = Instant::now();
    let mut breaker = Breaker::new(SETTINGS);
    for number in 0..20 {
        breaker.record(Evidence::Silent(&number.to_string()), now);
        breaker.record(Evidence::Refused(&account(0), &number.to_string()), now);
        breaker.record(Evidence::Worked(&account(0)), now);
    }
    assert_eq!(breaker.ask(&account(0), now), SendLeave::Free);
}

#[test]
fn numbers_of_one_account_that_are_refused_hold_no_other_account_back() {
    let now = Instant::now();
    let mut breaker = refused(1000, now);
    assert_eq!(breaker.ask(&account(0), now), SendLeave::Denied);
    assert!(breaker.would_allow_some(now));
    for number in 0..30 {
        assert_eq!(breaker.ask(&account(1), now), SendLeave::Free, "{number}");
    }
    let slowed: Vec<_> = breaker.slowed(now).collect();
    assert_eq!(slowed, [(&account(0), false)]);
    assert!(!breaker.is_tripped());
    // A trial of the one changes nothing for the other.
    let later = now + second(1);
    assert!(trial(&mut breaker, later).is_some());
    assert_eq!(breaker.ask(&account(1), later), SendLeave::Free);
}

#[test]
fn a_trunk_that_refuses_the_numbers_of_several_accounts_is_tried_call_by_call() {
    let now = Instant::now();
    for accounts in [3, 60, 1000] {
        let mut breaker = Breaker::new(SETTINGS);
        for number in 0..60 {
            let from = account(number % accounts);
            assert_eq!(breaker.ask(&from, now), SendLeave::Free, "{number}");
            breaker.record(Evidence::Refused(&from, &number.to_string()), now);
        }
        assert_eq!(breaker.ask(&account(5000), now), SendLeave::Denied);
        let later = now + second(1);
        let SendLeave::Trial(first) = breaker.ask(&account(5000), later) else {
            panic!("one tries");
        };
        let next = breaker.ask(&account(5001), later);
        assert_eq!(next, SendLeave::Denied, "and only one");
        breaker.trial_over(first);
        for number in 60..2000 {
            let number = account(number);
            breaker.record(Evidence::Refused(&number, number.as_str()), later);
        }
        assert!(breaker.refused.len() <= 60, "{}", breaker.refused.len());
        breaker.record(Evidence::Worked(&account(5000)), later);
        assert_eq!(breaker.ask(&account(5001), later), SendLeave::Free);
    }
}

#[test]
fn what_works_for_one_account_does_not_free_another_whose_numbers_are_refused() {
    let now = Instant::now();
    let mut breaker = refused(20, now);
    let mut time = now;
    for number in 20..100 {
        breaker.record(Evidence::Worked(&account(1)), time);
        assert_eq!(trial(&mut breaker, time), None, "{number}");
        assert_eq!(breaker.ask(&account(1), time), SendLeave::Free);
        time += second(1);
        let tries = trial(&mut breaker, time).expect("one a second");
        breaker.record(Evidence::Refused(&account(0), &number.to_string()), time);
        breaker.trial_over(tries);
    }
    breaker.record(Evidence::Worked(&account(0)), time);
    assert_eq!(breaker.ask(&account(0), time), SendLeave::Free);
}

#[test]
fn refused_numbers_are_counted_although_others_get_through_in_between() {
    let now = Instant::now();
    let mut breaker = Breaker::new(SETTINGS);
    for number in 0..20 {
        assert_eq!(breaker.ask(&account(0), now), SendLeave::Free, "{number}");
        breaker.record(Evidence::Refused(&account(0), &number.to_string()), now);
        breaker.record(Evidence::Worked(&account(1)), now);
    }
    assert_eq!(breaker.ask(&account(0), now), SendLeave::Denied);
    assert_eq!(breaker.ask(&account(1), now), SendLeave::Free);
}

#[test]
fn an_account_that_has_not_called_for_long_starts_anew() {
    let now = Instant::now();
    let mut breaker = refused(20, now);
    let later = now + SETTINGS.longest_pause;
    breaker.record(Evidence::Worked(&account(1)), later);
    assert_eq!(breaker.ask(&account(0), later), SendLeave::Free);
    let mut breaker = refused(20, now);
    let sooner = later - second(1);
    breaker.record(Evidence::Worked(&account(1)), sooner);
    assert!(trial(&mut breaker, sooner).is_some(), "not free yet");
}

#[test]
fn slowed_accounts_stop_no_trunk_that_works_for_others_however_many_they_are() {
    let now = Instant::now();
    let mut breaker = Breaker::new(SETTINGS);
    for from in 0..200 {
        for number in 0..20 {
            breaker.record(Evidence::Refused(&account(from), &number.to_string()), now);
        }
        assert!(!breaker.is_tripped(), "{from}");
        assert_eq!(breaker.ask(&account(from), now), SendLeave::Denied);
        assert!(breaker.refused.len() <= 60, "{}", breaker.refused.len());
        breaker.record(Evidence::Worked(&account(5000)), now);
    }
    // Nothing works any more.
    for from in 200..203 {
        for number in 0..20 {
            breaker.record(Evidence::Refused(&account(from), &number.to_string()), now);
        }
    }
    assert!(breaker.is_tripped());
}
