//! Fifty alerts as they are read out: those that public rule sets of Prometheus, and other tools, are written for. In `tests/fixtures/alerts.txt` an alert
//! has two lines: as it is written, and as it is read, with what the English voice says in brackets.

use crate::support::read_out;

const ALERTS: &str = include_str!("../fixtures/alerts.txt");

#[test]
fn alerts_are_read_as_people_say_them() {
    let alerts: Vec<_> = ALERTS.trim().split("\n\n").collect();
    assert_eq!(alerts.len(), 50);
    let mut wrong = String::new();
    for alert in alerts {
        let (text, reading) = alert.split_once('\n').expect("two lines");
        let got = read_out(text);
        if got != reading {
            wrong += &format!("\n  written:  {text}\n  expected: {reading}\n  got:      {got}");
        }
    }
    assert!(wrong.is_empty(), "readings are wrong:{wrong}");
}
