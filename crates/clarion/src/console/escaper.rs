//! Every value that a page shows goes through here (`askama.toml`). Markup is escaped, and characters that nobody sees, or that turn the writing
//! around, are shown by their names: a customer's text is text, whatever is in it.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html};

#[derive(Debug, Clone, Copy, Default)]
pub struct ShownText;

impl Escaper for ShownText {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_hidden) {
            let (plain, hidden) = rest.split_at(at);
            Html.write_escaped_str(&mut dest, plain)?;
            let mut letters = hidden.chars();
            if let Some(letter) = letters.next() {
                show(&mut dest, letter)?;
            }
            rest = letters.as_str();
        }
        Html.write_escaped_str(&mut dest, rest)
    }
}

/// A character that is not seen, or that changes how others are seen. A line break is neither.
fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
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
        _ => letter.is_control(),
    }
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

    /// A part of a page has been escaped when it was written.
    #[test]
    fn templates_let_nothing_past_but_their_own_parts() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/console");
        let mut count = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("{{ part|safe }}", "");
            assert!(
                !text.contains("|safe") && !text.contains("escape"),
                "{path:?}"
            );
            count += 1;
        }
        assert!(count >= 10, "{count} templates");
    }
}
