//! A trace for people: one line that says when, how and where, and the message below it.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::{KeptMessage, Shown};

pub fn write_text(
    out: &mut impl Write,
    messages: &[KeptMessage],
    zone: &TimeZone,
) -> io::Result<()> {
    for message in messages {
        let time = message.at.to_zoned(zone.clone());
        let time = time.strftime("%Y-%m-%d %H:%M:%S%.6f");
        let (from, to) = message.ends();
        writeln!(
            out,
            "{time} {} {} {} > {}: {}",
            if message.sent { "sent" } else { "received" },
            message.transport,
            Shown(from),
            Shown(to),
            harmless(message.first_line()),
        )?;
        for line in message.text.lines() {
            writeln!(out, "  {}", harmless(line))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A peer may send anything, and a terminal obeys much of it.
fn harmless(line: &str) -> String {
    let shown = |letter: char| match letter {
        '\t' => '\t',
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    line.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;

    #[test]
    fn a_message_is_shown_below_a_line_about_it() {
        let mut one = message(
            "x",
            "192.0.2.7:5060",
            "SIP/2.0 486 Busy \u{1b}[31mHere\r\nCall-ID: x\r\n\r\n",
        );
        one.sent = false;
        let mut out = Vec::new();
        write_text(&mut out, &[one], &TimeZone::UTC).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2026-11-18 11:06:40.123000 received udp 192.0.2.7:5060 > 192.0.2.1:5060: SIP/2.0 486 Busy \u{fffd}[31mHere\n  \
             SIP/2.0 486 Busy \u{fffd}[31mHere\n  Call-ID: x\n  \n\n"
        );
    }
}
