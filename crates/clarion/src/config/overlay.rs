//! Lays settings over settings.

use toml::{Table, Value};

use super::section::Mistake;
use super::suggestion::suggestion;

/// Lays `over` on top of `base`. The defaults name every setting, so an unknown name is a mistake. `label` is the prefix of a name in
/// messages: empty, or `http.`.
pub(super) fn overlay(base: &mut Table, over: Table, label: &str, mistakes: &mut Vec<Mistake>) {
    for (name, value) in over {
        let full = format!("{label}{name}");
        let text = match (base.get_mut(&name), value) {
            (None, _) => {
                let known: Vec<_> = base.keys().map(String::as_str).collect();
                let near = suggestion(&known, &name, label);
                format!("there is no setting `{full}`{near}")
            }
            (Some(Value::Table(inner)), Value::Table(value)) => {
                overlay(inner, value, &format!("{full}."), mistakes);
                continue;
            }
            (Some(Value::Table(_)), _) => {
                format!("`{full}` is a section, not a setting: write [{full}]")
            }
            (Some(Value::Array(_)), Value::Table(_)) => {
                format!("`{full}` is a list: write [[{full}]]")
            }
            (Some(slot), value) if slot.same_type(&value) => {
                *slot = value;
                continue;
            }
            (Some(slot), value) => format!(
                "{full}: must be of type {}, not {}",
                slot.type_str(),
                value.type_str()
            ),
        };
        mistakes.push(Mistake { path: full, text });
    }
}

/// Reads a variable's text as a value of the type of its default.
pub(super) fn from_variable(defaults: &Table, path: &str, text: &str) -> Value {
    let default = path
        .split('.')
        .try_fold(&Value::Table(defaults.clone()), |value, name| {
            value.get(name)
        })
        .cloned();
    match default {
        Some(Value::String(_)) | None => Value::String(text.to_owned()),
        Some(_) => {
            let parsed = format!("value = {text}")
                .parse::<Table>()
                .ok()
                .and_then(|mut table| table.remove("value"));
            parsed.unwrap_or_else(|| Value::String(text.to_owned()))
        }
    }
}

pub(super) fn nested(path: &str, value: Value) -> Table {
    let (name, inner) = match path.split_once('.') {
        None => (path, value),
        Some((name, rest)) => (name, Value::Table(nested(rest, value))),
    };
    Table::from_iter([(name.to_owned(), inner)])
}
