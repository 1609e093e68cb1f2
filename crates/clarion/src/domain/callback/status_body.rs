//! The body of the callback, exactly as receivers of this API expect it. Everything that we add is in headers.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::call::{CallKind, CallProgress, CallSid};
use super::super::call_state::CallState;
use super::super::notice::ending::{Confirmation, NoticeEnd};
use super::super::outcome::Outcome;

/// What the application learns about the end of a call.
#[derive(Debug, Clone)]
pub struct CallReport<'a> {
    pub call: &'a CallSid,
    pub kind: CallKind,
    /// `to` exactly as the client sent it.
    pub called: &'a str,
    pub outcome: Outcome,
    pub dialled_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub user_data: Option<&'a str>,
    /// Where the request asked for more than one call.
    pub notice: Option<&'a NoticeEnd>,
}

/// Writes the body. `starttime` is the time of the answer, or of the start of dialling if there was no answer, or of the end if the call
/// was never dialled.
pub fn status_body(report: &CallReport<'_>, zone: &TimeZone) -> String {
    let time = |time: Timestamp| time.to_zoned(zone.clone()).strftime("%Y%m%d%H%M%S");
    let started_at = report.answered_at.or(report.dialled_at);
    let progress = CallProgress {
        state: CallState::Ended,
        outcome: Some(report.outcome),
        answered_at: report.answered_at,
        ended_at: Some(report.ended_at),
        notice: None,
    };
    let user_data = report.user_data.map_or_else(String::new, |data| {
        format!("<userData>{}</userData>", escape(data))
    });
    let (state, notice) = match report.notice {
        Some(end) => (end.ending.callback_state(end.outcome), of_notice(end)),
        None => (report.outcome.callback_state(), String::new()),
    };
    // Each as its receivers know it: the first in small letters, and with its times.
    let (root, action, times) = match report.kind {
        CallKind::Notification => {
            let started = time(started_at.unwrap_or(report.ended_at));
            let ended = time(report.ended_at);
            let times = format!("<starttime>{started}</starttime><endtime>{ended}</endtime>");
            ("request", "SellingCall", times)
        }
        CallKind::Verification => ("Request", "VoiceCode", String::new()),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><{root}><action>{action}</action><number>{}</number><callSid>{}</callSid>\
         <state>{}</state>{times}<duration>{}</duration>{user_data}{notice}</{root}>",
        escape(report.called),
        report.call,
        state,
        progress.seconds(),
    )
}

fn of_notice(end: &NoticeEnd) -> String {
    let (attempts, result, ended) = (end.attempts, end.outcome.as_str(), end.ending.as_str());
    let confirmed = match &end.confirmed {
        Some(Confirmation { called, key }) => format!(
            "<confirm>1</confirm><confirmNumber>{}</confirmNumber><dtmf>{key}</dtmf>",
            escape(called)
        ),
        None => "<confirm>0</confirm>".to_owned(),
    };
    let answered_by = end.answered_by.map_or_else(String::new, |by| {
        format!("<answeredby>{}</answeredby>", by.as_str())
    });
    format!(
        "<attempts>{attempts}</attempts>{confirmed}{answered_by}<result>{result}</result><ended>{ended}</ended>"
    )
}

/// The answer to a question for the state of a call: 1 while it is not over, else 0.
pub fn state_body(call: &CallSid, is_over: bool) -> String {
    let state = u8::from(!is_over);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Request><action>QueryCallState</action><callid>{call}</callid><state>{state}</state></Request>"
    )
}

/// Escapes only what must be escaped in text, so that a receiver without an XML parser can still read JSON in userData. A bare carriage
/// return would be read back as a line feed (XML 1.0, 2.11).
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\r' => escaped.push_str("&#13;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::*;

    fn body(user_data: Option<&str>) -> String {
        let call = "26111502350900001000000000000000".parse().unwrap();
        let report = CallReport {
            call: &call,
            kind: CallKind::Notification,
            called: "0105282 <3298>-8",
            outcome: Outcome::Talked,
            dialled_at: Some("2026-11-14T18:35:00Z".parse().unwrap()),
            answered_at: Some("2026-11-14T18:35:09.5Z".parse().unwrap()),
            ended_at: "2026-11-14T18:35:39.2Z".parse().unwrap(),
            user_data,
            notice: None,
        };
        status_body(&report, &TimeZone::get("Asia/Shanghai").unwrap())
    }

    #[test]
    fn the_body_is_as_documented_in_the_platforms_zone() {
        assert_eq!(
            body(Some("订单 <&>\"'")),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>SellingCall</action>\
             <number>0105282 &lt;3298&gt;-8</number><callSid>26111502350900001000000000000000</callSid><state>0</state>\
             <starttime>20261115023509</starttime><endtime>20261115023539</endtime><duration>30</duration>\
             <userData>订单 &lt;&amp;&gt;\"'</userData></request>"
        );
        assert!(body(None).ends_with("<duration>30</duration></request>"));
    }

    #[test]
    fn a_call_that_nobody_answered_begins_with_its_dialling_or_with_its_end() {
        let call = "26111502350900001000000000000000".parse().unwrap();
        let mut report = CallReport {
            call: &call,
            kind: CallKind::Notification,
            called: "13800000000",
            outcome: Outcome::Busy,
            dialled_at: Some("2026-11-15T02:35:00Z".parse().unwrap()),
            answered_at: None,
            ended_at: "2026-11-15T02:35:04Z".parse().unwrap(),
            user_data: None,
            notice: None,
        };
        let wanted = "<state>1</state><starttime>20261115023500</starttime><endtime>20261115023504</endtime><duration>0</duration>";
        assert!(status_body(&report, &TimeZone::UTC).contains(wanted));
        (report.outcome, report.dialled_at) = (Outcome::Expired, None);
        let wanted = "<state>2</state><starttime>20261115023504</starttime><endtime>20261115023504</endtime>";
        assert!(status_body(&report, &TimeZone::UTC).contains(wanted));
    }

    #[test]
    fn a_verification_is_reported_as_its_receivers_know_it() {
        let call = "26111502350900001000000000000000".parse().unwrap();
        let report = CallReport {
            call: &call,
            kind: CallKind::Verification,
            called: "13800000000",
            outcome: Outcome::Talked,
            dialled_at: Some("2026-11-15T02:35:00Z".parse().unwrap()),
            answered_at: Some("2026-11-15T02:35:01Z".parse().unwrap()),
            ended_at: "2026-11-15T02:35:11Z".parse().unwrap(),
            user_data: Some("a<b"),
            notice: None,
        };
        assert_eq!(
            status_body(&report, &TimeZone::UTC),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Request><action>VoiceCode</action><number>13800000000</number>\
             <callSid>26111502350900001000000000000000</callSid><state>0</state><duration>10</duration><userData>a&lt;b</userData></Request>"
        );
    }

    #[test]
    fn user_data_comes_back_unchanged() {
        let long = "<数&据>\"'🎉\r\n\t".repeat(227);
        for data in ["", "plain", "{\"a\": 1}", "]]>&amp;&lt;", &long] {
            assert_eq!(read_user_data(&body(Some(data))), data);
        }
    }

    /// Reads userData as an XML parser does.
    fn read_user_data(body: &str) -> String {
        let mut reader = Reader::from_str(body);
        let (mut inside, mut found) = (false, String::new());
        loop {
            match reader.read_event().unwrap() {
                Event::Start(start) => inside = start.name().as_ref() == "userData",
                Event::End(_) => inside = false,
                Event::Text(text) if inside => found.push_str(&text.xml10_content()),
                Event::GeneralRef(name) if inside => match name.resolve_char_ref().unwrap() {
                    Some(character) => found.push(character),
                    None => found.push_str(match &*name {
                        "amp" => "&",
                        "lt" => "<",
                        "gt" => ">",
                        other => panic!("&{other};"),
                    }),
                },
                Event::Eof => return found,
                _ => {}
            }
        }
    }
}
