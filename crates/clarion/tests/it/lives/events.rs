//! Judges what those were told who watch a call: each event has a number and one text however often it comes, and nothing is told after the end.

use std::collections::{BTreeMap, BTreeSet};

/// An event as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldEvent {
    pub sid: String,
    pub webhook_id: String,
    pub body: String,
}

impl ToldEvent {
    pub fn element(&self, name: &str) -> Option<&str> {
        element(&self.body, name)
    }
}

pub fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let after = body.split(&format!("<{name}>")).nth(1)?;
    after.split('<').next()
}

/// Everything that is wrong with the events of these calls, in the order in which they came. `results` are those of the final callbacks.
pub fn violations(events: &[ToldEvent], results: &BTreeMap<&str, Option<&str>>) -> Vec<String> {
    let mut of_call: BTreeMap<&str, Vec<&ToldEvent>> = BTreeMap::new();
    for event in events {
        of_call.entry(&event.sid).or_default().push(event);
    }
    let judged = of_call.iter().flat_map(|(sid, events)| {
        let result = results.get(sid).copied().flatten();
        let wrong = of_one(events, result);
        wrong.into_iter().map(move |wrong| format!("{sid} {wrong}"))
    });
    judged.collect()
}

fn of_one(events: &[&ToldEvent], result: Option<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut texts: BTreeMap<u32, BTreeSet<(&str, &str)>> = BTreeMap::new();
    let mut is_over = false;
    for event in events {
        let (name, seq) = (event.element("event"), event.element("seq"));
        let (Some(name), Some(seq)) = (name, seq.and_then(|seq| seq.parse().ok())) else {
            wrong.push(format!(
                "told an event without name or number: {}",
                event.body
            ));
            continue;
        };
        let known = texts.entry(seq).or_default();
        let is_new = known.is_empty();
        known.insert((&event.webhook_id, &event.body));
        if is_over && is_new {
            wrong.push(format!("told {name} after its end"));
        }
        if name == "ended" {
            is_over = true;
            if event.element("result") != result {
                wrong.push(format!(
                    "ended for those who watch as {:?}, and as {result:?}",
                    event.element("result")
                ));
            }
        }
    }
    let twice = texts.iter().filter(|(_, texts)| texts.len() > 1);
    wrong.extend(twice.map(|(seq, texts)| format!("has {} events of number {seq}", texts.len())));
    let last = texts.keys().next_back().copied();
    let ends = events
        .iter()
        .filter(|event| event.element("event") == Some("ended"));
    let ends: BTreeSet<_> = ends
        .filter_map(|event| event.element("seq")?.parse().ok())
        .collect();
    if ends.iter().any(|seq| Some(*seq) != last) {
        wrong.push("has an event behind its end".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u32, name: &str, result: &str) -> ToldEvent {
        ToldEvent {
            sid: "a".to_owned(),
            webhook_id: format!("msg_a_{seq}"),
            body: format!("<seq>{seq}</seq><event>{name}</event><result>{result}</result>"),
        }
    }

    #[test]
    fn events_that_came_twice_pass_and_every_broken_story_fails() {
        let good = [
            event(1, "queued", ""),
            event(1, "queued", ""),
            event(3, "hangup", "busy"),
            event(4, "ended", "busy"),
        ];
        let wrong = |events: &[ToldEvent]| {
            violations(events, &BTreeMap::from([("a", Some("busy"))])).join("; ")
        };
        assert_eq!(wrong(&good), "");
        assert_eq!(
            wrong(&[&good[..], &good[..1]].concat()),
            "",
            "what was told before may be told again"
        );
        let late = [&good[..], &[event(2, "dialling", "")]].concat();
        assert_eq!(wrong(&late), "a told dialling after its end");
        let more = [&good[..], &[event(5, "waiting", "")]].concat();
        assert_eq!(
            wrong(&more),
            "a told waiting after its end; a has an event behind its end"
        );
        let other = [event(1, "queued", ""), event(1, "dialling", "")];
        assert_eq!(wrong(&other), "a has 2 events of number 1");
        let talked = [event(1, "ended", "talked")];
        assert!(wrong(&talked).starts_with("a ended for those who watch as"));
        let nameless = ToldEvent {
            body: String::new(),
            ..event(1, "queued", "")
        };
        assert!(wrong(&[nameless]).contains("without name or number"));
    }
}
