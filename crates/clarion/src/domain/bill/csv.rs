//! CSV by RFC 4180 that is safe to open in a spreadsheet: what looks like a formula gets a leading `'`, at the beginning of a cell and after
//! everything that a spreadsheet may take for the end of a cell.

use std::borrow::Cow;

use super::COLUMNS;

/// Where a character stands: at the beginning of its cell, behind something that may end a cell, or elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    First,
    Behind,
    Within,
}

impl Position {
    /// Quotation marks and blanks do not change it: a program may drop them.
    fn after(self, c: char) -> Self {
        match c {
            _ if separates(c) => Self::Behind,
            '"' | ' ' if self != Self::Within => Self::Behind,
            _ => Self::Within,
        }
    }

    /// Returns whether a character here makes a spreadsheet calculate. `'` itself counts too, so that the guard can be undone.
    fn is_dangerous(self, c: char) -> bool {
        let is_formula = matches!(c, '=' | '+' | '-' | '@' | '\'' | '＝' | '＋' | '－' | '＠');
        match self {
            Self::First => is_formula || matches!(c, '\t' | '\r' | '\n'),
            Self::Behind => is_formula,
            Self::Within => false,
        }
    }
}

/// Returns whether some program takes it for the end of a cell.
fn separates(c: char) -> bool {
    matches!(c, ';' | '\t' | '\r' | '\n')
}

/// Returns the cell with its guards. Nearly every cell needs none.
fn guarded(text: &str) -> Cow<'_, str> {
    let first = text.chars().next();
    let begins = first.is_some_and(|c| {
        Position::First.after(c) != Position::Within || Position::First.is_dangerous(c)
    });
    let goes_on = text
        .bytes()
        .any(|b| matches!(b, b';' | b'\t' | b'\r' | b'\n'));
    if !begins && !goes_on {
        return text.into();
    }
    let (mut safe, mut position) = (String::with_capacity(text.len() + 4), Position::First);
    for c in text.chars() {
        if position.is_dangerous(c) {
            safe.push('\'');
        }
        safe.push(c);
        position = position.after(c);
    }
    safe.into()
}

pub fn header(out: &mut Vec<u8>) {
    row(out, COLUMNS.into_iter());
}

pub fn row<'a>(out: &mut Vec<u8>, cells: impl Iterator<Item = &'a str>) {
    write_row(out, cells, cell);
}

/// As version 0.1 wrote it: a file of that time is made again to the byte. Only a few beginnings of cells are guarded.
pub fn first_row<'a>(out: &mut Vec<u8>, cells: impl Iterator<Item = &'a str>) {
    write_row(out, cells, first_cell);
}

fn write_row<'a>(
    out: &mut Vec<u8>,
    cells: impl Iterator<Item = &'a str>,
    cell: impl Fn(&mut Vec<u8>, &str),
) {
    for (place, text) in cells.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        cell(out, text);
    }
    out.extend_from_slice(b"\r\n");
}

fn cell(out: &mut Vec<u8>, text: &str) {
    let is_special = |b| matches!(b, b'"' | b',' | b';' | b'\t' | b'\r' | b'\n');
    write_cell(out, &guarded(text), is_special);
}

fn first_cell(out: &mut Vec<u8>, text: &str) {
    let is_special = |b| matches!(b, b'"' | b',' | b'\r' | b'\n');
    if text.starts_with(['=', '+', '-', '@', '\'', '\t', '\r']) {
        return write_cell(out, &format!("'{text}"), is_special);
    }
    write_cell(out, text, is_special);
}

fn write_cell(out: &mut Vec<u8>, text: &str, is_special: impl Fn(u8) -> bool) {
    if !text.bytes().any(is_special) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Returns a cell as it was before it was made safe.
pub fn unguarded(cell: &str) -> String {
    let mut text = String::with_capacity(cell.len());
    let mut position = Position::First;
    let mut rest = cell.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        let is_guard = c == '\'' && next.is_some_and(|next| position.is_dangerous(next));
        let kept = if is_guard {
            rest.next().unwrap_or(c)
        } else {
            c
        };
        text.push(kept);
        position = position.after(kept);
    }
    text
}

/// A row of a file, and the line that it begins on.
pub type CsvRow = (usize, Vec<String>);

/// Reads a file into rows. Lines may end in CRLF or LF. Blank lines are skipped.
pub fn read(text: &str) -> Result<Vec<CsvRow>, (usize, &'static str)> {
    let mut rows = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let began = line;
        let mut cells = Vec::new();
        loop {
            let (cell, lines, after) = read_cell(rest).map_err(|problem| (line, problem))?;
            cells.push(cell);
            line += lines;
            rest = after;
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        rest = rest
            .strip_prefix("\r\n")
            .or_else(|| rest.strip_prefix('\n'))
            .unwrap_or(rest);
        line += 1;
        if cells.len() > 1 || !cells[0].is_empty() {
            rows.push((began, cells));
        }
    }
    Ok(rows)
}

/// Reads one cell. Returns the cell, the number of line breaks in it, and the rest: a comma, the end of the line or of the file.
fn read_cell(text: &str) -> Result<(String, usize, &str), &'static str> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        let at_line_end = text[end..].starts_with('\n') && text[..end].ends_with('\r');
        let end = if at_line_end { end - 1 } else { end };
        if text[..end].contains('"') {
            return Err("a quotation mark inside a cell that does not begin with one");
        }
        return Ok((text[..end].to_owned(), 0, &text[end..]));
    };
    let mut cell = String::new();
    loop {
        let end = rest.find('"').ok_or("a quotation mark is never closed")?;
        cell.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                cell.push('"');
                rest = after;
            }
            None => break,
        }
    }
    if !(rest.is_empty() || rest.starts_with([',', '\n']) || rest.starts_with("\r\n")) {
        return Err("text after a closing quotation mark");
    }
    let lines = cell.matches('\n').count();
    Ok((cell, lines, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_are_quoted_and_made_safe() {
        let written = |text: &str| {
            let mut out = Vec::new();
            cell(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        for (text, wanted) in [
            ("plain", "plain"),
            ("", ""),
            ("=1+1", "'=1+1"),
            ("+8613800000000", "'+8613800000000"),
            ("-1", "'-1"),
            ("@a", "'@a"),
            ("'quoted", "''quoted"),
            ("\tx", "\"'\tx\""),
            ("\n=1", "\"'\n'=1\""),
            ("＝1+1", "'＝1+1"),
            ("＠a", "'＠a"),
            ("a;=1+1", "\"a;'=1+1\""),
            ("a\t＋1", "\"a\t'＋1\""),
            ("a\r\n-1", "\"a\r\n'-1\""),
            ("a;b=1", "\"a;b=1\""),
            ("a;\"=1+1;b", "\"a;\"\"'=1+1;b\""),
            ("a; =1", "\"a; '=1\""),
            (" =1", " '=1"),
            ("a=1, b", "\"a=1, b\""),
            ("\rx", "\"'\rx\""),
            ("a,\"b\"\r\n🎉", "\"a,\"\"b\"\"\r\n🎉\""),
        ] {
            assert_eq!(written(text), wanted);
        }
    }

    #[test]
    fn the_first_version_guarded_beginnings_only() {
        let mut out = Vec::new();
        let cells = ["=1", "a;=1", "\tx", "\n=1", "＝1", "a,b"];
        first_row(&mut out, cells.into_iter());
        let wanted = "'=1,a;=1,'\tx,\"\n=1\",＝1,\"a,b\"\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn a_broken_file_is_told_with_its_line() {
        assert_eq!(read("a,b\n\"c").unwrap_err().0, 2);
        assert_eq!(read("a\"b").unwrap_err().0, 1);
        assert_eq!(read("\"a\"b").unwrap_err().0, 1);
        let rows = read("a,\"b\r\nc\"\r\n\r\nd,e").unwrap();
        assert_eq!(
            rows,
            [
                (1, vec!["a".into(), "b\r\nc".into()]),
                (4, vec!["d".into(), "e".into()])
            ]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(cells in proptest::collection::vec("[=+@',; \"\r\n\ta-c🎉＝－-]{0,8}", 2..5)) {
            let mut out = Vec::new();
            row(&mut out, cells.iter().map(String::as_str));
            let rows = read(std::str::from_utf8(&out).unwrap()).unwrap();
            prop_assert_eq!(rows.len(), 1);
            let back: Vec<_> = rows[0].1.iter().map(|cell| unguarded(cell)).collect();
            prop_assert_eq!(back, cells);
        }
    }
}
