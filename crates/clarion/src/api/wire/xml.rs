//! XML bodies, as real clients write them.
//!
//! Lenient: the declaration is optional and its encoding is ignored; blanks and a stray `;` may stand between elements and after the root;
//! an `&` that begins no predefined or numeric reference stands for itself, because no client escapes it.
//! Strict: no DOCTYPE, no deep nesting, no known field twice, no control characters.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Fields, Form, Value, check_characters};

/// The first depth that is refused: root, field, and one level to spare for unknown structures that are ignored.
const DEEPEST: usize = 4;

pub fn read(form: &Form, text: &str) -> Result<Fields, String> {
    check_characters(text)?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    reader.config_mut().expand_empty_elements = true;
    // Otherwise the depth tells whether every element was closed.
    reader.config_mut().check_end_names = form.unclosed.is_none();
    let mut reading = Reading {
        form,
        fields: Fields::default(),
        by_attribute: Vec::new(),
        depth: 0,
        root_seen: false,
        open: None,
    };
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => reading.start(&start)?,
            Event::End(end) => reading.end(local_name(end.name().as_ref()))?,
            Event::Text(text) => reading.text(&text)?,
            Event::CData(data) => reading.text(&data)?,
            Event::GeneralRef(name) => match decode_reference(&name)? {
                Some(character) => reading.text(character.encode_utf8(&mut [0; 4]))?,
                None => reading.text(&format!("&{};", &*name))?,
            },
            Event::DocType(_) => return Err("a DOCTYPE is not accepted".to_owned()),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Empty(_) => {}
            Event::Eof => return reading.finish(),
        }
    }
}

struct Reading<'a> {
    form: &'a Form,
    fields: Fields,
    /// Fields that an attribute has set. They win over an element of the same name, whichever comes first.
    by_attribute: Vec<(&'static str, String)>,
    depth: usize,
    root_seen: bool,
    /// The known field that is being read.
    open: Option<(&'static str, Value)>,
}

impl Reading<'_> {
    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        let qualified = start.name();
        let name = local_name(qualified.as_ref());
        if self.depth == 1 && self.form.unclosed == Some(name) {
            return self.start_field(name, start);
        }
        self.depth += 1;
        match self.depth {
            1 if self.root_seen => return Err("there is more than one root element".to_owned()),
            1 if name != self.form.root => {
                return Err(format!("the root element must be {}", self.form.root));
            }
            1 => self.root_seen = true,
            2 => self.start_field(name, start)?,
            DEEPEST.. => return Err("elements are nested too deeply".to_owned()),
            // This element is inside a field, so the field is not a text.
            _ => {
                if let Some((_, value)) = &mut self.open {
                    *value = Value::Structure;
                }
            }
        }
        Ok(())
    }

    fn start_field(&mut self, name: &str, start: &BytesStart<'_>) -> Result<(), String> {
        self.open = self
            .form
            .known(name)
            .map(|field| (field, Value::Text(String::new())));
        for (_, attribute, field) in self
            .form
            .attributes
            .iter()
            .filter(|(element, ..)| *element == name)
        {
            if let Some(value) = attribute_value(start, attribute)?
                && !value.trim().is_empty()
            {
                self.by_attribute.push((field, value));
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        let blank = || {
            text.chars()
                .all(|character| character.is_whitespace() || character == ';')
        };
        match (self.depth, &mut self.open) {
            (2.., Some((_, Value::Text(value)))) => value.push_str(text),
            (0, _) if !blank() => return Err("there is text outside the root element".to_owned()),
            // Text between fields or inside an unknown element has no meaning.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), String> {
        if self.depth == 1 && self.form.unclosed == Some(name) {
            return Ok(());
        }
        if self.depth == 2
            && let Some((name, value)) = self.open.take()
        {
            self.fields.put(name, value)?;
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn finish(mut self) -> Result<Fields, String> {
        if !self.root_seen {
            return Err(format!("there is no {} element", self.form.root));
        }
        if self.depth > 0 {
            return Err("it ends in the middle of an element".to_owned());
        }
        for (field, value) in self.by_attribute {
            self.fields.set(field, Value::Text(value));
        }
        Ok(self.fields)
    }
}

/// Returns an attribute's text. It looks at all attributes, so that the reader notices one that is given twice.
fn attribute_value(start: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let mut value = None;
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attribute.key.as_ref() == name {
            value = Some(decode_references(&attribute.value)?);
        }
    }
    Ok(value)
}

fn local_name(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Returns the character of `&name;`: one of the five predefined entities or a numeric reference. `None` means that it is just text.
fn decode_reference(name: &str) -> Result<Option<char>, String> {
    let character = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => name.strip_prefix('#').and_then(numbered_character),
    };
    if let Some(character) = character {
        check_characters(character.encode_utf8(&mut [0; 4]))?;
    }
    Ok(character)
}

/// Returns the character with this number, `65` or `x41`. Rust's parsing functions alone would also take a sign.
fn numbered_character(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, 16),
        None => (number, 10),
    };
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    u32::from_str_radix(digits, radix)
        .ok()
        .and_then(char::from_u32)
}

/// Decodes the references in an attribute's text, which the reader leaves as they are.
fn decode_references(text: &str) -> Result<String, String> {
    let mut decoded = String::with_capacity(text.len());
    let mut pieces = text.split('&');
    decoded.extend(pieces.next());
    for piece in pieces {
        // A reference ends before the next `&`. Looking no further also keeps this linear for a text full of ampersands.
        let reference = match piece.split_once(';') {
            Some((name, rest)) => decode_reference(name)?.map(|character| (character, rest)),
            None => None,
        };
        if let Some((character, rest)) = reference {
            decoded.push(character);
            decoded.push_str(rest);
        } else {
            decoded.push('&');
            decoded.push_str(piece);
        }
    }
    Ok(decoded)
}
