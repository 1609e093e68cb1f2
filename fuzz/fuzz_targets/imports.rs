//! Any text as a file or a line that is imported: bill records as CSV or JSON, numbers of a list, of a do-not-call list, readings, and notes of answers that an
//! earlier life has left. What is read comes out the same when it is written again.

#![no_main]

use std::sync::LazyLock;

use clarion::billing::import;
use clarion::config::Config;
use clarion::dispatch::read_answer_note;
use clarion::domain::bill::csv;
use clarion::domain::call_list::ListedNumber;
use clarion::domain::do_not_call;
use clarion::domain::lexicon::Reading;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

static CONFIG: LazyLock<Config> = LazyLock::new(|| Config::from_parts("", &[]).unwrap());

fuzz_target!(|input: &[u8]| {
    let _ = read_answer_note(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let lines = text.lines().count() + text.matches('\r').count() + 1;
    let records = import::read(text, &TimeZone::UTC);
    assert!(records.iter().all(|(line, _)| (1..=lines).contains(line)));
    if let Ok(rows) = csv::read(text) {
        for (_, cells) in rows {
            let mut written = Vec::new();
            csv::row(&mut written, cells.iter().map(String::as_str));
            let written = String::from_utf8(written).unwrap();
            let again = csv::read(&written).unwrap();
            let again = again.iter().flat_map(|(_, cells)| cells);
            let again: Vec<_> = again.map(|cell| csv::unguarded(cell)).collect();
            assert_eq!(again, cells, "{written:?}");
        }
    }
    let plan = &CONFIG.numbers;
    for line in text.lines().take(20) {
        if let Ok(listed) = ListedNumber::parse(line, plan) {
            let again = ListedNumber::parse(&listed.to_string(), plan);
            assert_eq!(again.as_ref(), Ok(&listed));
        }
        if let Ok(digits) = do_not_call::parse_number(line, plan) {
            let again = do_not_call::parse_number(&format!("+{digits}"), plan);
            assert_eq!(again, Ok(digits));
        }
        let (written, said) = line.split_once('=').unwrap_or((line, ""));
        let reading = Reading::parse(written, said);
        assert!(reading.is_err() || !written.trim().is_empty());
    }
});
