//! Documents agree with the code. Tables that list what the code knows are made from it: `UPDATE_DOCS=1 cargo test --test documents` rewrites them.
//! `make lint` runs these tests, so they only read files and ask the program for its help. `it/documents/shell.rs` runs the blocks of the documents.

mod api_examples;
mod attacks;
mod blocks;
mod examples;
mod tasks;
mod toolchain;

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clarion::api::operations::{OPERATIONS, Operation};
use clarion::domain::account_words::{ACCOUNT_WORDS, CALLEE_WORDS};
use clarion::domain::bill::call_type::CallType;
use clarion::domain::bill::{COLUMNS, csv, record};
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use clarion::domain::response_policy::{self, CarrierKind, Judgement, Verdict};
use clarion::domain::status_code::StatusCode;
use clarion::management::settings::INTAKE_SETTINGS;
use clarion::telemetry::METRICS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A part of a document, and what stands around it.
struct Part<'a> {
    before: &'a str,
    found: &'a str,
    after: &'a str,
}

impl<'a> Part<'a> {
    /// What stands between `<!-- name -->` and `<!-- /name -->`.
    fn of(text: &'a str, name: &str) -> Self {
        let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let begin = text.find(&open).expect(name) + open.len();
        let end = begin + text[begin..].find(&close).expect(name);
        Self {
            before: &text[..begin],
            found: &text[begin..end],
            after: &text[end..],
        }
    }

    /// What it says and the code does not, and the other way round. `None` if it is true.
    fn falsehood(&self, wanted: &str) -> Option<String> {
        let only_in = |one: &str, other: &str| {
            let lines = one
                .lines()
                .filter(|line| !other.lines().any(|known| known == *line));
            lines.map(|line| format!("\n  {line}")).collect::<String>()
        };
        (self.found != wanted).then(|| {
            let (said, true_ones) = (only_in(self.found, wanted), only_in(wanted, self.found));
            format!("it says:{said}\nand the code:{true_ones}")
        })
    }
}

/// What stands in the part of this name must be `wanted`.
fn check(file: &str, name: &str, wanted: &str) {
    let path = root().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let part = Part::of(&text, name);
    if std::env::var("UPDATE_DOCS").is_ok() {
        let (before, after) = (part.before, part.after);
        std::fs::write(&path, format!("{before}{wanted}{after}")).unwrap();
        return;
    }
    if let Some(falsehood) = part.falsehood(wanted) {
        panic!(
            "{file} is no longer true: run UPDATE_DOCS=1 cargo test --test documents\n{falsehood}"
        );
    }
}

#[test]
fn a_table_that_is_no_longer_true_is_found() {
    let text = "About\n<!-- codes -->\n| 1 | one |\n| 2 | two |\n<!-- /codes -->\nMore";
    let part = Part::of(text, "codes");
    assert_eq!(part.falsehood("| 1 | one |\n| 2 | two |\n"), None);
    assert_eq!(
        part.falsehood("| 1 | one |\n| 2 | three |\n").as_deref(),
        Some("it says:\n  | 2 | two |\nand the code:\n  | 2 | three |")
    );
    // Its order counts too.
    assert!(part.falsehood("| 2 | two |\n| 1 | one |\n").is_some());
}

#[test]
fn the_tables_of_the_api_document_are_those_of_the_code() {
    let mut codes = "| code | meaning |\n|---|---|\n".to_owned();
    for code in StatusCode::ALL {
        writeln!(codes, "| {} | {} |", code.code(), code.meaning()).unwrap();
    }
    check("docs/api.md", "codes", &codes);
    let mut operations = "| operation | what it does |\n|---|---|\n".to_owned();
    for operation in OPERATIONS {
        let methods = operation.methods.join(", ");
        let (path, about) = (operation.path, operation.about);
        writeln!(operations, "| `{methods} {path}` | {about} |").unwrap();
        check("docs/api.md", name(operation), &operation_tables(operation));
    }
    check("docs/api.md", "operations", &operations);
}

/// What the document calls an operation.
fn name(operation: &Operation) -> &'static str {
    operation.path.rsplit('/').next().unwrap()
}

/// Every field with its default, every value of the answer, and every refusal.
fn operation_tables(operation: &Operation) -> String {
    let mut text = String::new();
    let body = operation.form.map_or(&[][..], |form| form.fields);
    let fields = operation.query.iter().map(|field| (field, "query"));
    let fields: Vec<_> = fields
        .chain(body.iter().map(|field| (field, "body")))
        .collect();
    if !fields.is_empty() {
        text.push_str("| field | in | required | default | rule |\n|---|---|---|---|---|\n");
    }
    for (field, place) in fields {
        let required = if field.required { "yes" } else { "" };
        let (name, default, rule) = (field.name, field.default, field.rule);
        writeln!(
            text,
            "| {name} | {place} | {required} | {default} | {rule} |"
        )
        .unwrap();
    }
    let blank = if text.is_empty() { "" } else { "\n" };
    let place = match operation.answer.group {
        Some(group) => format!("in `{group}`"),
        None => "beside `statusCode`".to_owned(),
    };
    write!(
        text,
        "{blank}| answer, {place} | always | meaning |\n|---|---|---|\n"
    )
    .unwrap();
    for field in operation.answer.fields {
        let always = if field.required { "yes" } else { "" };
        writeln!(text, "| {} | {always} | {} |", field.name, field.rule).unwrap();
    }
    let mut refusals = operation.refusals().peekable();
    if refusals.peek().is_some() {
        text.push_str("\n| refused with | when, beside [the reasons of every request](#status-codes) |\n|---|---|\n");
    }
    for (code, when) in refusals {
        writeln!(text, "| {} | {when} |", code.code()).unwrap();
    }
    text
}

#[test]
fn the_tables_of_alerting_are_those_of_the_code() {
    let mut settings = "| option | value | meaning |\n|---|---|---|\n".to_owned();
    for setting in INTAKE_SETTINGS {
        let value = setting.value.replace('|', "\\|");
        writeln!(
            settings,
            "| `--{}` | {value} | {} |",
            setting.name, setting.help
        )
        .unwrap();
    }
    check("docs/alerting.md", "intake settings", &settings);
    let mut fields = "| field | meaning |\n|---|---|\n".to_owned();
    let schema = clarion::api::openapi::alert();
    for (name, described) in schema["properties"].as_object().unwrap() {
        let meaning = described["description"].as_str().unwrap();
        assert!(!meaning.is_empty(), "{name}");
        writeln!(fields, "| `{name}` | {meaning} |").unwrap();
    }
    check("docs/alerting.md", "alert", &fields);
}

#[test]
fn the_table_of_outcomes_is_that_of_the_code() {
    let mut outcomes = "| outcome | callback state | meaning |\n|---|---|---|\n".to_owned();
    for outcome in Outcome::ALL {
        writeln!(
            outcomes,
            "| {} | {} | {} |",
            outcome.as_str(),
            outcome.callback_state(),
            outcome.meaning()
        )
        .unwrap();
    }
    check("docs/calls.md", "outcomes", &outcomes);
}

fn range<T: PartialEq + std::fmt::Display>(range: &RangeInclusive<T>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last {
        return first.to_string();
    }
    format!("{first}–{last}")
}

fn becomes(judgement: Judgement) -> String {
    let (verdict, outcome) = (judgement.verdict, judgement.outcome.as_str());
    match verdict {
        Verdict::Final => format!("{} | {outcome}", verdict.meaning()),
        _ => format!("`{}`: {} | {outcome}", verdict.as_str(), verdict.meaning()),
    }
}

/// What becomes of a call by the words of a refusal, with 603 for an example.
fn words_of_accounts() -> String {
    let mut text = "| one of | and one of | what becomes of the call |\n|---|---|---|\n".to_owned();
    for words in ACCOUNT_WORDS {
        let then = response_policy::by_shut_account(words.means, 603).unwrap();
        let verdict = then.verdict;
        let _ = writeln!(
            text,
            "| {} | {} | `{}`: {} |",
            words.words.join(", "),
            words.beside.join(", "),
            verdict.as_str(),
            verdict.meaning()
        );
    }
    let _ = writeln!(
        text,
        "| {} | | the words count for nothing |",
        CALLEE_WORDS.join(", ")
    );
    text
}

#[test]
fn what_becomes_of_refused_calls_is_what_the_code_does() {
    let mut codes =
        "| code | what becomes of the call | outcome, where it ends |\n|---|---|---|\n".to_owned();
    for (of, judgement) in response_policy::default_table() {
        let _ = writeln!(codes, "| {} | {} |", range(&of), becomes(judgement));
    }
    check("docs/calls.md", "responses", &codes);
    let mut causes =
        "| Q.850 cause | what becomes of the call | outcome, where it ends |\n|---|---|---|\n"
            .to_owned();
    for (of, judgement) in response_policy::cause_table() {
        let _ = writeln!(causes, "| {} | {} |", range(&of), becomes(judgement));
    }
    check("docs/calls.md", "causes", &causes);
    let mut kinds = "| `carrier` | code | what becomes of the call | outcome, where it ends | because |\n|---|---|---|---|---|\n".to_owned();
    for kind in CarrierKind::ALL {
        for (of, judgement, why) in kind.differences() {
            let _ = writeln!(
                kinds,
                "| `{kind}` | {} | {} | {why} |",
                range(of),
                becomes(*judgement)
            );
        }
    }
    check("docs/calls.md", "carriers", &kinds);
    check("docs/calls.md", "words", &words_of_accounts());
}

#[test]
fn the_numbers_for_trying_things_out_are_those_of_the_telephone() {
    let mut numbers = "| the number ends in | and so |\n|---|---|\n".to_owned();
    for (suffix, behaviour) in phone::test_phone::NUMBERS {
        let _ = writeln!(numbers, "| {suffix} | it {behaviour} |");
    }
    check("docs/calls.md", "sandbox", &numbers);
}

#[test]
fn the_table_of_record_types_is_that_of_the_code_and_the_example_is_a_bill() {
    let mut types = "| type | meaning |\n|---|---|\n".to_owned();
    for kind in CallType::ALL {
        writeln!(types, "| {} | {} |", kind.code(), kind.meaning()).unwrap();
    }
    check("docs/bills.md", "types", &types);
    let text = std::fs::read_to_string(root().join("docs/bills.md")).unwrap();
    let example = text
        .split("```csv\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let rows = csv::read(example).unwrap();
    assert_eq!(rows[0].1, COLUMNS);
    for (line, cells) in &rows[1..] {
        let cells: Vec<_> = cells.iter().map(|cell| csv::unguarded(cell)).collect();
        let read = record::read(&jiff::tz::TimeZone::UTC, |name| {
            let place = COLUMNS.iter().position(|column| *column == name).unwrap();
            cells[place].as_str()
        });
        assert!(read.is_ok(), "line {line} of the example: {read:?}");
    }
    for column in COLUMNS {
        assert!(
            text.contains(&format!("| `{column}` |")),
            "{column} is not explained"
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    let read = |name: &str| {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        (name.to_owned(), text)
    };
    let more = ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(read);
    for (name, text) in blocks::documents().into_iter().chain(more) {
        let folder = root().join(&name).parent().unwrap().to_owned();
        let prose = prose(&text);
        let links = prose.split("](").skip(1);
        for link in links.filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&name),
                _ => folder.join(file),
            };
            assert!(target.exists(), "{name} links to {link}");
            if !heading.is_empty() {
                let there = std::fs::read_to_string(&target).unwrap();
                let found = there.lines().any(|line| anchor(line) == heading);
                assert!(found, "{name} links to {link}: no such heading");
            }
        }
    }
}

/// The text without its blocks: what stands in sentences and tables.
fn prose(text: &str) -> String {
    let mut inside = false;
    let outside = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// What a heading is called in a link.
fn anchor(line: &str) -> String {
    if !line.starts_with('#') {
        return String::new();
    }
    let title = line.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

/// The arrows of the picture carry the names of the states that they join.
#[test]
fn the_picture_of_the_states_is_that_of_the_code() {
    let picture = std::fs::read_to_string(root().join("docs/pictures/states.svg")).unwrap();
    let name = |state: CallState| format!("{state:?}").to_lowercase();
    for from in CallState::ALL {
        assert!(picture.contains(&format!(">{}</text>", name(from))));
        for to in CallState::ALL {
            let arrow = format!("data-from=\"{}\" data-to=\"{}\"", name(from), name(to));
            assert_eq!(picture.contains(&arrow), from.may_become(to), "{arrow}");
        }
    }
}

#[test]
fn the_table_of_metrics_is_that_of_the_code() {
    let mut table = "| metric | meaning |\n|---|---|\n".to_owned();
    for metric in METRICS {
        let labels = metric.labels.join(",");
        let labels = if labels.is_empty() {
            labels
        } else {
            format!("{{{labels}}}")
        };
        writeln!(table, "| `{}{labels}` | {} |", metric.name, metric.meaning).unwrap();
    }
    check("docs/operating.md", "metrics", &table);
}

#[test]
fn every_metric_that_exists_is_documented() {
    let source = std::fs::read_to_string(root().join("crates/clarion/src/telemetry.rs")).unwrap();
    let operating = std::fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let metrics: Vec<_> = source
        .split("\"clarion_")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(!metrics.is_empty());
    for metric in metrics {
        assert!(
            operating.contains(&format!("clarion_{metric}")),
            "docs/operating.md does not know clarion_{metric}"
        );
    }
}

#[test]
fn the_picture_and_its_translation_are_drawn_alike() {
    let tags = |name: &str| {
        let picture = std::fs::read_to_string(root().join("docs/pictures").join(name)).unwrap();
        let tags = picture.split('<').filter_map(|part| part.split('>').next());
        tags.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(tags("how-it-works.svg"), tags("how-it-works.zh-CN.svg"));
}

#[test]
fn every_setting_of_a_trunk_and_of_a_voice_is_explained() {
    let mut settings: toml::Table = clarion::config::TRUNK_DEFAULTS.parse().unwrap();
    let of_voices: toml::Table = clarion::config::VOICE_DEFAULTS.parse().unwrap();
    settings.extend(of_voices);
    let document = std::fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let rows: Vec<_> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next())
        .collect();
    for name in settings.keys() {
        let explained = |row: &&str| row.split(['`', ',', ' ']).any(|word| word == name);
        assert!(rows.iter().any(explained), "{name} is not in the table");
    }
    assert!(settings.len() > 30, "{} settings", settings.len());
}
