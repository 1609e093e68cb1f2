//! Reads one table of settings, key by key, into the types that the program uses. Every rule is beside its key, and a mistake names both.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use toml::{Table, Value};

use super::suggestion::suggestion;

/// 16 PiB, for sizes in MiB. No machine has more.
pub(super) const LARGEST_MIB: u64 = 1 << 34;

/// A setting that cannot be used, and the rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The path of the setting, by which the variable that set it is found: `http.listen`, or `trunk` for everything in a `[[trunk]]`.
    pub path: String,
    pub text: String,
}

/// A table from which settings are taken one by one. A setting that is left at the end is unknown.
#[derive(Debug)]
pub(super) struct Section {
    /// The prefix of a key in messages: `http.`, or `[[trunk]] "provider": `.
    label: String,
    /// The path of all its settings, if it is an element of a list.
    path: Option<String>,
    table: Table,
    asked: BTreeSet<String>,
}

impl Section {
    /// Returns the settings outside any table.
    pub fn root(table: Table) -> Self {
        Self::new(String::new(), None, table)
    }

    /// Returns an element of the list at `path`.
    pub fn element(label: String, path: &str, table: Table) -> Self {
        Self::new(label, Some(path.to_owned()), table)
    }

    fn new(label: String, path: Option<String>, table: Table) -> Self {
        Self {
            label,
            path,
            table,
            asked: BTreeSet::new(),
        }
    }

    pub fn mistake(&self, key: &str, rule: impl Display) -> Mistake {
        let named = format!("{}{key}", self.label);
        Mistake {
            text: format!("{named}: {rule}"),
            path: self.path.clone().unwrap_or(named),
        }
    }

    /// Takes the table `[key]`.
    pub fn section(&mut self, key: &str) -> Result<Section, Mistake> {
        match self.take(key)? {
            Value::Table(table) => Ok(Self::new(
                format!("{}{key}.", self.label),
                self.path.clone(),
                table,
            )),
            other => Err(self.wrong_type(key, "table", &other)),
        }
    }

    /// Takes the tables of a list, in their order.
    pub fn tables(&mut self, key: &str) -> Result<Vec<Table>, Mistake> {
        let values = self.array(key)?;
        let table = |value| match value {
            Value::Table(table) => Ok(table),
            other => Err(self.wrong_type(key, "array of tables", &other)),
        };
        values.into_iter().map(table).collect()
    }

    /// Takes the tables of a list and reads each at once with `read`, for small tables.
    pub fn elements<T>(
        &mut self,
        key: &str,
        read: impl Fn(&mut Section) -> Result<T, Mistake>,
    ) -> Result<Vec<T>, Mistake> {
        let tables = self.tables(key)?;
        let path = self.path.clone().unwrap_or(format!("{}{key}", self.label));
        let element = |(place, table)| {
            let label = format!("{}{key}[{place}].", self.label);
            let mut section = Self::element(label, &path, table);
            let read = read(&mut section)?;
            section.finish()?;
            Ok(read)
        };
        tables.into_iter().enumerate().map(element).collect()
    }

    pub fn flag(&mut self, key: &str) -> Result<bool, Mistake> {
        match self.take(key)? {
            Value::Boolean(flag) => Ok(flag),
            other => Err(self.wrong_type(key, "boolean", &other)),
        }
    }

    pub fn number<T>(&mut self, key: &str, range: RangeInclusive<T>) -> Result<T, Mistake>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let number = match self.take(key)? {
            Value::Integer(number) => T::try_from(number).ok(),
            other => return Err(self.wrong_type(key, "integer", &other)),
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, limit) = range.into_inner();
                self.mistake(key, format!("must be from {least} to {limit}"))
            })
    }

    pub fn seconds(&mut self, key: &str, range: RangeInclusive<u32>) -> Result<Duration, Mistake> {
        let seconds = self.number(key, range)?;
        Ok(Duration::from_secs(seconds.into()))
    }

    /// For durations that are added to timestamps.
    pub fn signed_seconds(
        &mut self,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Result<SignedDuration, Mistake> {
        let seconds = self.number(key, range)?;
        Ok(SignedDuration::from_secs(seconds.into()))
    }

    /// Takes a number of seconds, or `None` for 0.
    pub fn seconds_or_none(&mut self, key: &str, limit: u32) -> Result<Option<Duration>, Mistake> {
        let time = self.seconds(key, 0..=limit)?;
        Ok(Some(time).filter(|time| !time.is_zero()))
    }

    /// In bytes. Zero is no limit.
    pub fn megabytes(&mut self, key: &str) -> Result<Option<u64>, Mistake> {
        let megabytes: u32 = self.number(key, 0..=u32::MAX)?;
        Ok(Some(u64::from(megabytes) << 20).filter(|bytes| *bytes > 0))
    }

    pub fn milliseconds(&mut self, key: &str, limit: u32) -> Result<Duration, Mistake> {
        let milliseconds = self.number(key, 0..=limit)?;
        Ok(Duration::from_millis(milliseconds.into()))
    }

    pub fn fraction(&mut self, key: &str, range: RangeInclusive<f64>) -> Result<f64, Mistake> {
        let value = self.take(key)?;
        self.fraction_of(key, &value, &range, "")
    }

    /// Whole numbers are accepted as fractions.
    pub fn fractions(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Vec<f64>, Mistake> {
        let values = self.array(key)?;
        values
            .iter()
            .map(|value| self.fraction_of(key, value, &range, " each"))
            .collect()
    }

    fn fraction_of(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<f64>,
        each: &str,
    ) -> Result<f64, Mistake> {
        let number = match value {
            Value::Float(number) => *number,
            #[expect(
                clippy::cast_precision_loss,
                reason = "the range holds no number that large"
            )]
            Value::Integer(number) => *number as f64,
            other => return Err(self.wrong_type(key, "number", other)),
        };
        if range.contains(&number) {
            return Ok(number);
        }
        let (least, limit) = (range.start(), range.end());
        Err(self.mistake(key, format!("must be from {least} to {limit}{each}")))
    }

    pub fn text(&mut self, key: &str) -> Result<String, Mistake> {
        match self.take(key)? {
            Value::String(text) => Ok(text),
            other => Err(self.wrong_type(key, "string", &other)),
        }
    }

    /// An empty text means `None`.
    pub fn text_or_none(&mut self, key: &str) -> Result<Option<String>, Mistake> {
        let text = self.text(key)?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    pub fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Result<T, Mistake> {
        self.parsed_by(key, str::parse::<T>)
    }

    pub fn parsed_by<T, E: Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, Mistake> {
        let text = self.text(key)?;
        parse(&text).map_err(|rule| self.mistake(key, rule))
    }

    /// An empty text means `None`.
    pub fn parsed_or_none<T, E: Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Mistake> {
        self.text_or_none(key)?
            .map(|text| parse(&text).map_err(|rule| self.mistake(key, rule)))
            .transpose()
    }

    /// A number or a text, such as `503` or `"500-599"`.
    pub fn number_or_text<T, E: Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, Mistake> {
        let text = match self.take(key)? {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            other => return Err(self.wrong_type(key, "integer or string", &other)),
        };
        parse(&text).map_err(|rule| self.mistake(key, rule))
    }

    /// Whether a setting that has no default is there.
    pub fn has(&mut self, key: &str) -> bool {
        self.asked.insert(key.to_owned());
        self.table.contains_key(key)
    }

    /// An empty text means `None`.
    pub fn path_or_none(&mut self, key: &str) -> Result<Option<PathBuf>, Mistake> {
        Ok(self.text_or_none(key)?.map(PathBuf::from))
    }

    pub fn list<T, E: Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, Mistake> {
        let values = self.array(key)?;
        let one = |value: Value| match value {
            Value::String(text) => parse(&text).map_err(|rule| self.mistake(key, rule)),
            other => Err(self.wrong_type(key, "array of strings", &other)),
        };
        values.into_iter().map(one).collect()
    }

    /// Ends the reading. A setting that is left has an unknown name.
    pub fn finish(self) -> Result<(), Mistake> {
        let Some(name) = self.table.keys().next() else {
            return Ok(());
        };
        let known: Vec<_> = self.asked.iter().map(String::as_str).collect();
        Err(Mistake {
            text: format!(
                "there is no setting `{}{name}`{}",
                self.label,
                suggestion(&known, name, &self.label)
            ),
            path: self.path.unwrap_or(format!("{}{name}", self.label)),
        })
    }

    fn array(&mut self, key: &str) -> Result<Vec<Value>, Mistake> {
        match self.take(key)? {
            Value::Array(values) => Ok(values),
            other => Err(self.wrong_type(key, "array", &other)),
        }
    }

    fn take(&mut self, key: &str) -> Result<Value, Mistake> {
        self.asked.insert(key.to_owned());
        self.table
            .remove(key)
            .ok_or_else(|| self.mistake(key, "is missing"))
    }

    fn wrong_type(&self, key: &str, wanted: &str, value: &Value) -> Mistake {
        let rule = format!("must be of type {wanted}, not {}", value.type_str());
        self.mistake(key, rule)
    }
}
