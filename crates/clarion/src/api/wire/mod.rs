//! The only place for XML and JSON: request bodies become `Fields`, answers become bytes.
//!
//! Reading is lenient where real clients need it and strict where leniency would be dangerous; `docs/api.md` lists both.

mod json;
mod reply;
#[cfg(test)]
mod tests;
mod xml;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

use crate::domain::status_code::{Refusal, StatusCode};

pub use reply::{Content, answer};

/// Number of characters of a problem's description that are sent to a client.
const LONGEST_PROBLEM: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    Xml,
    Json,
}

impl BodyFormat {
    fn named_in(header: &str) -> Option<Self> {
        let header = header.to_ascii_lowercase();
        // If both are named, the first one wins, as every client that names both intends.
        match (header.find("xml"), header.find("json")) {
            (Some(xml), Some(json)) => Some(if xml < json { Self::Xml } else { Self::Json }),
            (Some(_), None) => Some(Self::Xml),
            (None, Some(_)) => Some(Self::Json),
            (None, None) => None,
        }
    }

    /// Returns the format that an Accept header wants most. Where both are wanted alike, the first one is meant.
    fn wanted_by(accept: &str) -> Option<Self> {
        let mut wanted: Option<(Self, f32)> = None;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let Some(format) = parts.next().and_then(Self::named_in) else {
                continue;
            };
            let weight = parts.find_map(|part| {
                let (name, value) = part.split_once('=')?;
                name.trim()
                    .eq_ignore_ascii_case("q")
                    .then_some(value.trim())
            });
            let weight = weight.map_or(1.0, |value| value.parse().unwrap_or(0.0));
            if weight > wanted.map_or(0.0, |(_, most)| most) {
                wanted = Some((format, weight));
            }
        }
        wanted.map(|(format, _)| format)
    }

    /// Returns the format of a request's body by its Content-Type, or without one by its first character.
    pub fn of_body(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        match header(headers, &CONTENT_TYPE) {
            Some(content_type) => Self::named_in(content_type),
            None => Self::of_first_character(body),
        }
    }

    fn of_first_character(body: &[u8]) -> Option<Self> {
        let text = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'<') => Some(Self::Xml),
            Some(b'{') => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns the format of the answer. Without an Accept header it is XML, even for a JSON body: a real client depends on this.
    pub fn of_answer(headers: &HeaderMap, body: &[u8]) -> Self {
        match header(headers, &ACCEPT) {
            None => Self::Xml,
            Some(accept) => Self::wanted_by(accept)
                .or_else(|| Self::of_body(headers, body))
                .or_else(|| Self::of_first_character(body))
                .unwrap_or(Self::Xml),
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The value of one known field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    /// A nested value instead of the expected text.
    Structure,
}

/// The known fields of a request. Unknown fields are dropped while reading. Empty fields count as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Returns a field's text, trimmed, or `None` if it is absent, empty or blank.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        Ok(self
            .raw(name)?
            .map(str::trim)
            .filter(|text| !text.is_empty()))
    }

    /// Returns a field's text as `text` does, or `None` where it is no text. For fields that clients of today may send in any form.
    pub fn if_text(&self, name: &'static str) -> Option<&str> {
        self.text(name).ok().flatten()
    }

    /// Returns a field's text unchanged, or `None` if it is absent or empty.
    pub fn raw(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        match self.0.iter().find(|(known, _)| *known == name) {
            None => Ok(None),
            Some((_, Value::Text(text))) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some((_, Value::Structure)) => Err(Refusal::field(format!("{name} must be a text"))),
        }
    }

    /// Fields that come from elsewhere than a body.
    pub fn of<'a>(
        form: &Form,
        texts: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Result<Self, Refusal> {
        let mut fields = Self::default();
        for (name, text) in texts {
            let known = form
                .known(name)
                .ok_or_else(|| Refusal::field(format!("{name} is not a field of {}", form.root)))?;
            check_characters(&text)
                .map_err(|problem| Refusal::field(format!("{known}: {problem}")))?;
            fields.set(known, Value::Text(text));
        }
        Ok(fields)
    }

    /// Adds a known field. `Err` names a field that came twice, because nobody can know which of the two was meant.
    fn put(&mut self, name: &'static str, value: Value) -> Result<(), String> {
        if self.0.iter().any(|(known, _)| *known == name) {
            return Err(format!("{name} is given twice"));
        }
        self.0.push((name, value));
        Ok(())
    }

    fn set(&mut self, name: &'static str, value: Value) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }
}

/// The fields and attributes that a request's body may hold.
#[derive(Debug)]
pub struct Form {
    /// The root element in XML. In JSON the body is a flat object without a name.
    pub root: &'static str,
    pub fields: &'static [Field],
    /// Attributes that set a field: element, attribute, field. They win over an element with the field's name.
    pub attributes: &'static [(&'static str, &'static str, &'static str)],
    /// An element that has attributes only and that some clients do not close.
    pub unclosed: Option<&'static str>,
}

/// The values of a successful answer beside its statusCode. A required one is always there.
#[derive(Debug)]
pub struct AnswerForm {
    /// The element or object that holds them; `None` if they stand beside the statusCode.
    pub group: Option<&'static str>,
    pub fields: &'static [Field],
}

/// A field that a body may hold, with its rule in words. The API document is made from these rules.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    /// What counts where it is absent, if anything.
    pub default: &'static str,
    pub rule: &'static str,
}

impl Field {
    pub const fn required(name: &'static str, rule: &'static str) -> Self {
        Self {
            name,
            required: true,
            default: "",
            rule,
        }
    }

    /// As an option of a command: `redialTimes` is `redial-times`.
    pub fn option_name(&self) -> String {
        let mut name = String::new();
        for letter in self.name.chars() {
            if letter.is_ascii_uppercase() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    pub const fn optional(name: &'static str, default: &'static str, rule: &'static str) -> Self {
        Self {
            name,
            required: false,
            default,
            rule,
        }
    }
}

impl Form {
    /// Clients write `appId` in every way. Of the other names upper and lower case count.
    fn known(&self, name: &str) -> Option<&'static str> {
        let is_meant =
            |field: &&str| *field == name || *field == "appId" && field.eq_ignore_ascii_case(name);
        self.fields.iter().map(|field| field.name).find(is_meant)
    }

    /// The field that an attribute of an element sets. In JSON the element is an object, and the attribute a member of it.
    fn set_by(&self, element: &str, attribute: &str) -> Option<&'static str> {
        let attributes = self.attributes.iter();
        attributes
            .filter(|(of, name, _)| *of == element && *name == attribute)
            .map(|(_, _, field)| *field)
            .next()
    }

    /// Whether it is an element that has nothing but attributes.
    fn has_only_attributes(&self, element: &str) -> bool {
        self.known(element).is_none() && self.attributes.iter().any(|(of, ..)| *of == element)
    }
}

/// Reads a body in its format. A body in neither format is refused with that reason.
pub fn read(form: &Form, headers: &HeaderMap, body: &[u8]) -> Result<Fields, Refusal> {
    match BodyFormat::of_body(headers, body) {
        Some(format) => read_as(format, form, body),
        None => Err(Refusal::new(
            StatusCode::BodyFormat,
            "the body must be XML or JSON, and Content-Type application/xml or application/json",
        )),
    }
}

/// Reads a body as this format. The fuzz targets call this function.
pub fn read_as(format: BodyFormat, form: &Form, body: &[u8]) -> Result<Fields, Refusal> {
    let (code, name) = match format {
        BodyFormat::Xml => (StatusCode::XmlUnreadable, "XML"),
        BodyFormat::Json => (StatusCode::BodyFormat, "JSON"),
    };
    let text =
        std::str::from_utf8(body).map_err(|_| Refusal::new(code, "the body is not valid UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = match format {
        BodyFormat::Xml => xml::read(form, text),
        BodyFormat::Json => json::read(form, text),
    };
    read.map_err(|problem| {
        let problem = shortened(&problem);
        Refusal::new(code, format!("the {name} body cannot be read: {problem}"))
    })
}

/// Cuts a problem's description, because a reader may quote the whole body in it.
fn shortened(problem: &str) -> &str {
    let end = problem.char_indices().nth(LONGEST_PROBLEM);
    end.map_or(problem, |(end, _)| &problem[..end])
}

/// Control characters other than TAB, CR and LF have no place in any field, and would break XML answers and callbacks.
fn is_forbidden(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\r' | '\n')
        || matches!(character, '\u{fffe}' | '\u{ffff}')
}

fn check_characters(text: &str) -> Result<(), String> {
    match text.chars().find(|character| is_forbidden(*character)) {
        None => Ok(()),
        Some(character) => Err(format!(
            "it contains the character U+{:04X}",
            u32::from(character)
        )),
    }
}
