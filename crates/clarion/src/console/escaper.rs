//! Every value that a page shows goes through here (`askama.toml`). Markup is escaped, and characters that nobody sees, or that turn the writing
//! around, are shown by their names: a customer's text is text, whatever is in it.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html, Safe};

#[derive(Debug, Clone, Copy, Default)]
pub struct ShownText;

impl Escaper for ShownText {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        write_escaped(&mut dest, text, is_hidden)
    }
}

/// Writes a text without markup, and with the names of what is hidden.
fn write_escaped(
    dest: &mut impl Write,
    text: &str,
    is_hidden: impl Fn(char) -> bool,
) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(&is_hidden) {
        let (plain, hidden) = rest.split_at(at);
        Html.write_escaped_str(&mut *dest, plain)?;
        let mut letters = hidden.chars();
        if let Some(letter) = letters.next() {
            show(dest, letter)?;
        }
        rest = letters.as_str();
    }
    Html.write_escaped_str(dest, rest)
}

/// The value of a field of a form: what was typed comes back as it was typed, joiners and marks of direction included, and is sent again so. Nobody types control characters.
pub fn typed(text: &str) -> Safe<String> {
    let mut value = String::with_capacity(text.len());
    // Writing to a string does not fail.
    _ = write_escaped(&mut value, text, is_control);
    Safe(value)
}

/// A character that is not seen, or that changes how others are seen.
fn is_hidden(letter: char) -> bool {
    match letter {
        // Soft hyphens, zero-width characters and marks of direction; separators of lines, embeddings, overrides and isolates; marks of annotations and tags.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => is_control(letter),
    }
}

/// A line break is none.
fn is_control(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t')
}

fn show(dest: &mut impl Write, letter: char) -> fmt::Result {
    match u32::from(letter) {
        // The pictures of the control characters.
        code @ 0..=0x1f => dest.write_char(char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')),
        0x7f => dest.write_char('\u{2421}'),
        code => write!(dest, "⟨U+{code:04X}⟩"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = String::new();
        ShownText.write_escaped_str(&mut out, text).unwrap();
        out
    }

    #[test]
    fn markup_and_what_cannot_be_seen_are_shown_as_text() {
        assert_eq!(shown("你好 & a\nb\tc"), "你好 &#38; a\nb\tc");
        let script = shown("<script>alert('1')</script>");
        assert!(!script.contains(['<', '>', '\'']), "{script}");
        assert_eq!(shown("a\0b\u{1b}[31mc\u{7f}\r"), "a␀b␛[31mc␡␍");
        assert_eq!(shown("\u{202e}gpj"), "⟨U+202E⟩gpj");
        assert_eq!(shown("a\u{200b}\u{85}"), "a⟨U+200B⟩⟨U+0085⟩");
    }

    /// Joiners are part of what people write, and a value is what will be sent.
    #[test]
    fn what_was_typed_comes_back_as_it_was_typed() {
        assert_eq!(
            typed("你好\n\u{200d}\u{202e}a\tb").0,
            "你好\n\u{200d}\u{202e}a\tb"
        );
        let script = typed("\"'><script>&amp;").0;
        assert!(!script.contains(['<', '>', '\'', '"']), "{script}");
        assert!(script.ends_with("&#38;amp;"), "{script}");
        assert_eq!(typed("a\0b\u{1b}c").0, "a␀b␛c");
    }

    /// A part of a page has been escaped when it was written.
    #[test]
    fn templates_let_nothing_past_but_their_own_parts() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/console");
        let mut count = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("{{ part|safe }}", "");
            // As it was typed is a value in its form alone.
            for (at, _) in text.match_indices("crate::console::typed(") {
                let before = &text[..at];
                assert!(
                    before.ends_with("value=\"{{ ") || before.ends_with(">\n{{ "),
                    "{path:?}: …{}",
                    &text[at.saturating_sub(20)..at]
                );
            }
            assert!(
                !text.contains("|safe") && !text.contains("escape"),
                "{path:?}"
            );
            count += 1;
        }
        assert!(count >= 10, "{count} templates");
    }
}
