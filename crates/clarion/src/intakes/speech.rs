//! How an alert is said: a template makes a text of it. Templates are written by operators, in the language of minijinja (Jinja2), with what suits speech
//! and without what could grow: loops and conditions, but no variables, and no filter that makes a text longer.
//!
//! A template has so much fuel and its text so many characters. Where one fails at night, a plain sentence is said instead.

mod template;

use std::io::{self, Write};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use minijinja::value::Value;
use minijinja::{Environment, UndefinedBehavior, filters};
use serde::Serialize;

use super::alert::{Alert, AlertGroup};
use crate::domain::intake::{IntakeFormat, IntakeName, IntakeSettings};
use crate::domain::prompt::CodeLanguage;

/// Instructions of one rendering; the usual templates take a few hundred.
const FUEL: u64 = 50_000;
/// Bytes that a template may write before its text is cut.
const MAX_BYTES: usize = 8000;
/// Alerts that are said one by one; the others are counted.
const SAID_ALERTS: usize = 3;

const ENGLISH: &str = "{{ how_bad or 'Alert' }}.\
{% for alert in alerts %} {{ alert.what or alert.name | words }}\
{% if alert.where %}, on {{ alert.where | host }}{% endif %}\
{% if alert.since %}, since {{ alert.since | short_time }}{% endif %}.{% endfor %}\
{% if more %} And {{ more }} more.{% endif %}";
const CHINESE: &str = "{{ how_bad or '告警' }}。\
{% for alert in alerts %}{{ alert.what or alert.name | words }}\
{% if alert.where %}，位置：{{ alert.where | host }}{% endif %}\
{% if alert.since %}，开始于{{ alert.since | short_time }}{% endif %}。{% endfor %}\
{% if more %}另有{{ more }}条。{% endif %}";
/// What is said as it came.
const VERBATIM: &str = "{{ text }}";

/// What it takes to say an alert.
#[derive(Debug, Clone, Copy)]
pub struct AlertSpeaker<'a> {
    pub intake: &'a IntakeName,
    pub format: IntakeFormat,
    pub settings: &'a IntakeSettings,
    pub now: &'a Zoned,
    /// Characters that a message may have.
    pub longest: usize,
}

/// An alert in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenAlert {
    pub text: String,
    pub language: CodeLanguage,
    /// Why the template did not make it, where it did not.
    pub failure: Option<String>,
}

/// What templates know.
#[derive(Serialize)]
struct Context<'a> {
    intake: &'a str,
    title: &'a str,
    text: &'a str,
    severity: &'a str,
    how_bad: String,
    alerts: Vec<&'a Alert>,
    count: usize,
    /// How many are not among `alerts`.
    more: usize,
    group: &'a std::collections::BTreeMap<String, String>,
    now: String,
}

impl AlertSpeaker<'_> {
    /// Says it by the template, or by a plain sentence where that fails.
    pub fn say(&self, group: &AlertGroup) -> SpokenAlert {
        let language = self.language(group);
        let (text, failure) = match self.render(self.template(language), group, language) {
            Ok(text) if text.trim().is_empty() => {
                let why = "the template makes no text of this alert".to_owned();
                (self.plainly(group, language), Some(why))
            }
            Ok(text) => (text, None),
            Err(why) => (self.plainly(group, language), Some(why)),
        };
        SpokenAlert {
            text: self.fitted(&text, language),
            language,
            failure,
        }
    }

    /// The template of a language, as it counts now.
    pub fn template(&self, language: CodeLanguage) -> &str {
        match (&self.settings.text, self.format, language) {
            (Some(own), ..) => own,
            (None, IntakeFormat::Json | IntakeFormat::SmsEagle, _) => VERBATIM,
            (None, _, CodeLanguage::English) => ENGLISH,
            (None, _, CodeLanguage::Chinese) => CHINESE,
        }
    }

    /// That of the intake, or of what the alert itself says.
    fn language(&self, group: &AlertGroup) -> CodeLanguage {
        let said = || {
            let alerts = group.alerts.iter().map(|alert| alert.what.as_str());
            let said: Vec<_> = alerts.chain([group.title.as_str(), &group.text]).collect();
            CodeLanguage::of_text(&said.join(" "))
        };
        self.settings.language.unwrap_or_else(said)
    }

    fn render(
        &self,
        template: &str,
        group: &AlertGroup,
        language: CodeLanguage,
    ) -> Result<String, String> {
        template::check(template)?;
        let said: Vec<_> = group.alerts.iter().take(SAID_ALERTS).collect();
        let severities = group.alerts.iter().map(|alert| alert.severity.as_str());
        // The first of the worst.
        let severity = severities
            .rev()
            .max_by_key(|severity| Badness::of(severity));
        let severity = severity.unwrap_or_default();
        let context = Context {
            intake: self.intake.as_str(),
            title: &group.title,
            text: &group.text,
            severity,
            how_bad: how_bad(severity, language),
            count: group.count,
            more: group.count.saturating_sub(said.len()),
            alerts: said,
            group: &group.group,
            now: self.now.timestamp().to_string(),
        };
        let environment = environment(language, self.now);
        let template = environment.template_from_str(template);
        let template = template.map_err(|error| problem(&error))?;
        let mut text = BoundedText::default();
        let rendered = template.render_captured_to(&context, &mut text);
        rendered.map_err(|error| problem(&error))?;
        Ok(text.into_text())
    }

    /// What is said where the template fails: what is known for certain.
    fn plainly(&self, group: &AlertGroup, language: CodeLanguage) -> String {
        let first = group.alerts.first();
        let what = first.map_or("", |alert| match alert.what.as_str() {
            "" => alert.name.as_str(),
            what => what,
        });
        let (intake, count) = (self.intake, group.count);
        match (language, count) {
            (CodeLanguage::Chinese, 0 | 1) => format!("{intake}告警：{what}。"),
            (CodeLanguage::Chinese, _) => format!("{intake}有{count}条告警，第一条：{what}。"),
            (CodeLanguage::English, 0 | 1) => format!("Alert of {intake}: {what}."),
            (CodeLanguage::English, _) => {
                format!("{count} alerts of {intake}. The first is: {what}.")
            }
        }
    }

    /// A text that a request may have. One that is too long ends in words that say so.
    fn fitted(&self, text: &str, language: CodeLanguage) -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().count() <= self.longest {
            return text;
        }
        let end = match language {
            CodeLanguage::Chinese => "……内容过长，其余省略。",
            CodeLanguage::English => " … and so on; the rest is too long to be read.",
        };
        let kept = self.longest.saturating_sub(end.chars().count());
        let kept: String = text.chars().take(kept).collect();
        format!("{kept}{end}")
    }

    /// Tries the template with this alert, in each language that it may be asked for.
    pub fn check(&self, group: &AlertGroup) -> Result<(), String> {
        let languages = match self.settings.language {
            Some(language) => vec![language],
            None => vec![CodeLanguage::English, CodeLanguage::Chinese],
        };
        for language in languages {
            let text = self.render(self.template(language), group, language)?;
            if text.trim().is_empty() {
                return Err("the template makes no text of the sample alert".to_owned());
            }
        }
        Ok(())
    }
}

fn problem(error: &minijinja::Error) -> String {
    match error.line() {
        Some(line) => format!("line {line}: {error}"),
        None => error.to_string(),
    }
}

fn environment<'a>(language: CodeLanguage, now: &Zoned) -> Environment<'a> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.add_filter("capitalize", filters::capitalize);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("int", filters::int);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("map", filters::map);
    environment.add_filter("round", filters::round);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("unique", filters::unique);
    environment.add_filter("upper", filters::upper);
    environment.add_test("defined", minijinja::tests::is_defined);
    environment.add_test("undefined", minijinja::tests::is_undefined);
    // What suits speech.
    let (zone, today) = (now.time_zone().clone(), now.date());
    environment.add_filter("short_time", move |value: Value| {
        short_time(&said(&value), &zone, today, language)
    });
    environment.add_filter("list_and", move |value: Value| list_and(&value, language));
    environment.add_filter("spell", |value: Value| spell(&said(&value)));
    environment.add_filter("words", |value: Value| words(&said(&value)));
    environment.add_filter("host", |value: Value| host(&said(&value)).to_owned());
    environment
}

fn said(value: &Value) -> String {
    if value.is_undefined() || value.is_none() {
        return String::new();
    }
    value.to_string()
}

/// The time of a moment, and its day where that is another one: `03:05`, `17 November 03:05`.
fn short_time(
    text: &str,
    zone: &TimeZone,
    today: jiff::civil::Date,
    language: CodeLanguage,
) -> String {
    let Ok(moment) = text.parse::<Timestamp>() else {
        return text.to_owned();
    };
    let moment = moment.to_zoned(zone.clone());
    let time = moment.strftime("%H:%M");
    if moment.date() == today {
        return time.to_string();
    }
    match language {
        CodeLanguage::Chinese => format!("{}月{}日{time}", moment.month(), moment.day()),
        CodeLanguage::English => format!("{} {} {time}", moment.strftime("%B"), moment.day()),
    }
}

/// `a, b and c`; `a、b和c`.
fn list_and(value: &Value, language: CodeLanguage) -> String {
    let Ok(items) = value.try_iter() else {
        return said(value);
    };
    let items: Vec<_> = items.map(|item| said(&item)).collect();
    let (comma, and) = match language {
        CodeLanguage::Chinese => ("、", "和"),
        CodeLanguage::English => (", ", " and "),
    };
    match &items[..] {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{}{and}{last}", before.join(comma)),
    }
}

/// Each character for itself.
fn spell(text: &str) -> String {
    let characters = text.chars().filter(|character| !character.is_whitespace());
    characters.map(String::from).collect::<Vec<_>>().join(" ")
}

/// The words that a name is made of: `HostOutOfMemory` and `host_out_of_memory` are four.
fn words(name: &str) -> String {
    let mut words = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| letters[before]);
        let next = letters.get(place + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || before.is_uppercase() && next.is_some_and(|next| next.is_lowercase())
            });
        if begins {
            words.push(' ');
        }
        match letter {
            '_' | '-' | '.' => words.push(' '),
            letter => words.push(*letter),
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An instance without its port, which says nothing about where it is.
fn host(instance: &str) -> &str {
    match instance.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) =>
        {
            host.trim_matches(['[', ']'])
        }
        _ => instance,
    }
}

/// How bad an alert is, from the mildest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Badness {
    Unsaid,
    Note,
    Warning,
    /// A word that nobody knows.
    Unknown,
    Serious,
    Critical,
}

impl Badness {
    fn of(severity: &str) -> Self {
        match severity.to_ascii_lowercase().as_str() {
            "" | "none" | "not classified" => Self::Unsaid,
            "critical" | "page" | "emergency" | "disaster" | "fatal" => Self::Critical,
            "high" | "error" | "major" => Self::Serious,
            "warning" | "warn" | "average" | "minor" => Self::Warning,
            "info" | "information" | "notice" | "low" => Self::Note,
            _ => Self::Unknown,
        }
    }
}

/// How bad it is, in words of the language. A word that nobody knows is said as it is.
fn how_bad(severity: &str, language: CodeLanguage) -> String {
    let (english, chinese) = match Badness::of(severity) {
        Badness::Unsaid => return String::new(),
        Badness::Critical => ("Critical alert", "紧急告警"),
        Badness::Serious => ("Serious alert", "严重告警"),
        Badness::Warning => ("Warning", "一般告警"),
        Badness::Note => ("Note", "提示"),
        Badness::Unknown if language == CodeLanguage::Chinese => return format!("{severity}告警"),
        Badness::Unknown => return format!("{severity} alert"),
    };
    match language {
        CodeLanguage::English => english.to_owned(),
        CodeLanguage::Chinese => chinese.to_owned(),
    }
}

/// A text that ends where it is too long.
#[derive(Debug, Default)]
struct BoundedText(Vec<u8>);

impl BoundedText {
    fn into_text(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_BYTES.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(&bytes[..room]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
