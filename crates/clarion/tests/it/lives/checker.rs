//! Judges a history from the outside: what clients were promised, what the telephone saw, what the receiver got, what the database says. It
//! knows nothing of how Clarion works, and can fail.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Legs that the telephone still has up.
    pub legs_up: usize,
}

/// Everything that is wrong with it.
pub fn violations(history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut note = |what: String| wrong.push(what);
    if history.accepted.iter().collect::<BTreeSet<_>>().len() != history.accepted.len() {
        note("a callSid was given to two requests".to_owned());
    }
    let mut dialled: BTreeMap<&str, i64> = BTreeMap::new();
    for sid in &history.dialled {
        *dialled.entry(sid).or_default() += 1;
    }
    for sid in &history.refused {
        *dialled.entry(sid).or_default() -= 1;
    }
    for (sid, times) in dialled.iter().filter(|(_, times)| **times > 1) {
        note(format!("{sid} was dialled {times} times"));
    }
    let mut reports: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for (sid, id, body) in &history.callbacks {
        reports.entry(sid).or_default().insert((id, body));
    }
    for sid in &history.accepted {
        match history.records.get(sid) {
            None => note(format!("{sid} is lost")),
            Some((None, _)) => note(format!("{sid} has no outcome")),
            Some((Some(_), 1)) => {}
            Some((Some(_), lines)) => note(format!("{sid} has {lines} bill lines")),
        }
        match reports.get(sid.as_str()).map(BTreeSet::len) {
            None => note(format!("{sid} was never reported")),
            Some(1) => {}
            Some(kinds) => note(format!("{sid} was reported in {kinds} different ways")),
        }
    }
    if history.legs_up > 0 {
        note(format!("{} legs are still up", history.legs_up));
    }
    wrong
}

#[cfg(test)]
mod tests {
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
            legs_up: 0,
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
        assert!(broken(|history| history.accepted.push("a".to_owned())).contains("two requests"));
    }
}
