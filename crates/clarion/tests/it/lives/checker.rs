//! Judges a history from the outside: what clients were promised, what the telephone saw, what the receiver got, what the database says. It
//! knows nothing of how Clarion works, and can fail.

use std::collections::{BTreeMap, BTreeSet};

use clarion::domain::attempt::Attempt;
use clarion::domain::notice::ending::NoticeEnding;

use super::events::{self, ToldEvent, element};
use super::plans::NoticeStory;

#[derive(Debug, Clone, Default)]
pub struct History {
    /// callSids that clients were given.
    pub accepted: Vec<String>,
    /// The callSid of every INVITE that reached the telephone.
    pub dialled: Vec<String>,
    /// Those of them that were refused before anything rang: another one may follow.
    pub refused: Vec<String>,
    /// callSid, webhook-id and body of every callback that arrived.
    pub callbacks: Vec<(String, String, String)>,
    /// callSid, outcome and number of bill lines, for every call in the database.
    pub records: BTreeMap<String, (Option<String>, u64)>,
    /// Calls that may have several attempts. Each number that they dialled is among `dialled` as `callSid number`.
    pub notices: BTreeMap<String, NoticeStory>,
    /// callSid and number of callees who heard that their confirmation was understood.
    pub thanked: Vec<(String, String)>,
    /// In the order in which they came.
    pub events: Vec<ToldEvent>,
    /// callSids of calls of which somebody was told, when they called them off, that they will end.
    pub called_off: Vec<String>,
    /// callSid and number of those who wanted no more calls and may still be called.
    pub willing: Vec<(String, String)>,
    /// What the account has paid for these calls.
    pub money: Option<Spending>,
    /// Legs that the telephone still has up.
    pub legs_up: usize,
}

/// What an account that had enough has paid, by its balance and by its bill lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spending {
    pub paid: i64,
    pub billed: i64,
    /// For calls that may yet come.
    pub reserved: i64,
    pub reservations: i64,
}

impl Spending {
    pub fn violation(self) -> Option<String> {
        if self.reserved != 0 || self.reservations != 0 {
            let Self {
                reserved,
                reservations,
                ..
            } = self;
            return Some(format!(
                "{reserved} of {reservations} calls are still set aside"
            ));
        }
        let Self { paid, billed, .. } = self;
        (paid != billed).then(|| format!("{paid} were paid for lines of {billed}"))
    }
}

/// Everything that is wrong with it.
pub fn violations(history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut record = |what: String| wrong.push(what);
    if history.accepted.iter().collect::<BTreeSet<_>>().len() != history.accepted.len() {
        record("a callSid was given to two requests".to_owned());
    }
    let mut dialled: BTreeMap<&str, i64> = BTreeMap::new();
    for sid in &history.dialled {
        *dialled.entry(sid).or_default() += 1;
    }
    for sid in &history.refused {
        *dialled.entry(sid).or_default() -= 1;
    }
    for (key, times) in &dialled {
        if *times > most_dials(&history.notices, key) {
            record(format!("{key} was dialled {times} times"));
        }
    }
    let mut reports: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for (sid, id, body) in &history.callbacks {
        reports.entry(sid).or_default().insert((id, body));
    }
    for sid in &history.accepted {
        match history.records.get(sid) {
            None => record(format!("{sid} is lost")),
            Some((None, _)) => record(format!("{sid} has no outcome")),
            Some((Some(_), lines)) => match history.notices.get(sid) {
                None if *lines == 1 => {}
                None => record(format!("{sid} has {lines} bill lines")),
                Some(story) => {
                    let attempts = story.attempts.len();
                    if *lines != attempts as u64 || attempts == 0 {
                        record(format!("{sid} has {lines} bill lines, {attempts} attempts"));
                    }
                    for problem in story.violations() {
                        record(format!("{sid} {problem}"));
                    }
                }
            },
        }
        match reports.get(sid.as_str()).map(BTreeSet::len) {
            None => record(format!("{sid} was never reported")),
            Some(1) => {}
            Some(kinds) => record(format!("{sid} was reported in {kinds} different ways")),
        }
    }
    for (sid, number) in &history.thanked {
        let is_told = |(_, body): &(&str, &str)| {
            let confirmed = body.split("<confirmNumber>").nth(1);
            let confirmed = confirmed.and_then(|rest| rest.split('<').next());
            body.contains("<ended>confirmed</ended>")
                && confirmed.is_some_and(|confirmed| number.ends_with(confirmed))
        };
        if !reports
            .get(sid.as_str())
            .is_some_and(|all| all.iter().any(is_told))
        {
            record(format!(
                "{number} heard that {sid} was confirmed, and it is not"
            ));
        }
    }
    let results = reports.iter().map(|(sid, told)| {
        let result = told.first().and_then(|(_, body)| element(body, "result"));
        (*sid, result)
    });
    for problem in events::violations(&history.events, &results.collect()) {
        record(problem);
    }
    for sid in &history.called_off {
        let ending = history.notices.get(sid).and_then(|story| story.ending);
        let is_right = ending.is_none_or(|ending| {
            matches!(
                ending,
                NoticeEnding::Cancelled | NoticeEnding::Talked | NoticeEnding::Confirmed
            )
        });
        if !is_right {
            record(format!("{sid} was called off and ended as {ending:?}"));
        }
    }
    for (sid, number) in &history.willing {
        record(format!(
            "{number} wanted no more calls in {sid}, and is not on the list"
        ));
    }
    if let Some(problem) = history.money.and_then(Spending::violation) {
        record(problem);
    }
    if history.legs_up > 0 {
        record(format!("{} legs are still up", history.legs_up));
    }
    wrong
}

/// A call is dialled once, each number of a notice once for each of its attempts.
fn most_dials(notices: &BTreeMap<String, NoticeStory>, key: &str) -> i64 {
    let of_notice = key.split_once(' ');
    let of_notice = of_notice.and_then(|(sid, number)| Some((notices.get(sid)?, number)));
    let Some((story, number)) = of_notice else {
        return 1;
    };
    let digits = number.trim_start_matches('+');
    let to_number = |attempt: &&Attempt| attempt.to.digits() == digits;
    let attempts = story.attempts.iter().filter(to_number);
    let dialled = attempts.filter(|attempt| attempt.dialled_at.is_some());
    dialled.map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use clarion::domain::outcome::Outcome::{self, Busy, Declined};

    use super::super::plans::tests::story;
    use super::*;

    fn good() -> History {
        let sid = "a".to_owned();
        History {
            accepted: vec![sid.clone()],
            dialled: vec![sid.clone(), sid.clone()],
            refused: vec![sid.clone()],
            callbacks: vec![
                (sid.clone(), "msg_a".to_owned(), "0".to_owned()),
                // Delivered again after a crash: the same report.
                (sid.clone(), "msg_a".to_owned(), "0".to_owned()),
            ],
            records: BTreeMap::from([(sid, (Some("talked".to_owned()), 1))]),
            ..History::default()
        }
    }

    #[test]
    fn a_good_history_passes_and_every_broken_one_fails() {
        assert_eq!(violations(&good()), Vec::<String>::new());
        let broken = |change: fn(&mut History)| {
            let mut history = good();
            change(&mut history);
            violations(&history).join("; ")
        };
        assert_eq!(broken(|history| history.records.clear()), "a is lost");
        assert_eq!(
            broken(|history| history.callbacks.clear()),
            "a was never reported"
        );
        assert_eq!(
            broken(|history| history.dialled.push("a".to_owned())),
            "a was dialled 2 times"
        );
        assert_eq!(
            broken(|history| history.records.get_mut("a").unwrap().1 = 2),
            "a has 2 bill lines"
        );
        assert_eq!(
            broken(|history| history.records.get_mut("a").unwrap().1 = 0),
            "a has 0 bill lines"
        );
        assert_eq!(
            broken(|history| history.records.get_mut("a").unwrap().0 = None),
            "a has no outcome"
        );
        assert_eq!(
            broken(|history| history.callbacks[1].1 = "msg_b".to_owned()),
            "a was reported in 2 different ways"
        );
        assert_eq!(
            broken(|history| history.callbacks[1].2 = "2".to_owned()),
            "a was reported in 2 different ways"
        );
        assert_eq!(broken(|history| history.legs_up = 1), "1 legs are still up");
        let unheard = |history: &mut History| {
            let number = "8613700000013".to_owned();
            history.willing.push(("a".to_owned(), number));
        };
        assert_eq!(
            broken(unheard),
            "8613700000013 wanted no more calls in a, and is not on the list"
        );
        assert!(broken(|history| history.accepted.push("a".to_owned())).contains("two requests"));
    }

    #[test]
    fn money_that_is_missing_or_still_set_aside_is_found() {
        let spent = |paid, reserved| {
            let mut history = good();
            history.money = Some(Spending {
                paid,
                billed: 30,
                reserved,
                reservations: i64::from(reserved > 0),
            });
            violations(&history).join("; ")
        };
        assert_eq!(spent(30, 0), "");
        assert_eq!(spent(29, 0), "29 were paid for lines of 30");
        assert_eq!(spent(30, 7), "7 of 1 calls are still set aside");
    }

    #[test]
    fn whoever_heard_that_they_confirmed_has() {
        let heard = |body: &str| {
            let mut history = good();
            for callback in &mut history.callbacks {
                callback.2 = body.to_owned();
            }
            let thanked = ("a".to_owned(), "8613800000012".to_owned());
            history.thanked.push(thanked);
            violations(&history).join("; ")
        };
        let of = |number: &str| {
            format!("<confirmNumber>{number}</confirmNumber><ended>confirmed</ended>")
        };
        assert_eq!(heard(&of("13800000012")), "");
        let wrong = "8613800000012 heard that a was confirmed, and it is not";
        assert_eq!(heard(&of("13800000001")), wrong);
        assert_eq!(heard("<ended>exhausted</ended>"), wrong);
    }

    #[test]
    fn what_was_called_off_does_not_go_on_to_its_end() {
        let ended = |attempts: &[(u16, Outcome)], ending| {
            let mut history = good();
            history.dialled.clear();
            history.refused.clear();
            history.records.get_mut("a").unwrap().1 = attempts.len() as u64;
            let mut story = story(attempts, ending);
            story.was_cancelled = true;
            history.notices.insert("a".to_owned(), story);
            history.called_off.push("a".to_owned());
            violations(&history).join("; ")
        };
        assert_eq!(ended(&[(1, Busy)], NoticeEnding::Cancelled), "");
        let whole = [(1, Busy), (2, Declined), (3, Declined), (1, Busy)];
        let gone_on = ended(&whole, NoticeEnding::Exhausted);
        assert_eq!(gone_on, "a was called off and ended as Some(Exhausted)");
    }

    #[test]
    fn a_notice_has_a_line_for_each_attempt_and_follows_its_plan() {
        let notice = |attempts: &[(u16, Outcome)], lines, dialled: &[&str]| {
            let mut history = good();
            history.dialled = dialled.iter().map(|key| format!("a {key}")).collect();
            history.refused.clear();
            history.records.get_mut("a").unwrap().1 = lines;
            let story = story(attempts, NoticeEnding::Exhausted);
            history.notices.insert("a".to_owned(), story);
            violations(&history).join("; ")
        };
        let whole = [(1, Busy), (2, Declined), (3, Declined), (1, Busy)];
        assert_eq!(notice(&whole, 4, &["1", "2", "3", "1"]), "");
        assert_eq!(
            notice(&whole, 4, &["1", "2", "1"]),
            "",
            "one was interrupted before its INVITE"
        );
        assert!(notice(&whole, 3, &[]).contains("3 bill lines, 4 attempts"));
        assert!(notice(&[], 0, &[]).contains("0 bill lines"));
        assert!(notice(&whole, 4, &["2", "2"]).contains("a 2 was dialled 2 times"));
        assert!(notice(&whole, 4, &["5"]).contains("a 5 was dialled 1 times"));
        let early = notice(&whole[..1], 1, &["1"]);
        assert!(early.contains("a ended as exhausted after"), "{early}");
    }
}
