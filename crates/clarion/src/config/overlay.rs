//! Laying settings over settings, with a word of help for whoever has mistyped a name.

use anyhow::bail;
use toml::{Table, Value};

/// Lays `over` on top of `base`. The defaults name every setting, so a name that is not there is a mistake.
pub(super) fn overlay(base: &mut Table, over: Table, path: &str) -> anyhow::Result<()> {
    for (name, value) in over {
        let full = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match (base.get_mut(&name), value) {
            (None, _) => bail!(
                "there is no setting `{full}`{}",
                suggestion(base, &name, path)
            ),
            (Some(Value::Table(inner)), Value::Table(value)) => overlay(inner, value, &full)?,
            (Some(Value::Table(_)), _) => {
                bail!("`{full}` is a section, not a setting: write [{full}]")
            }
            (Some(slot), value) if slot.same_type(&value) => *slot = value,
            (Some(slot), value) => bail!(
                "`{full}` must be of type {}, not {}",
                slot.type_str(),
                value.type_str()
            ),
        }
    }
    Ok(())
}

fn suggestion(known: &Table, name: &str, path: &str) -> String {
    let nearest = known
        .keys()
        .map(|key| (strsim::jaro_winkler(key, name), key))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, key)) if likeness > 0.6 && path.is_empty() => {
            format!("; did you mean `{key}`?")
        }
        Some((likeness, key)) if likeness > 0.6 => format!("; did you mean `{path}.{key}`?"),
        _ => format!(
            "; known here are: {}",
            known.keys().cloned().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A variable's text as a value of the type that the default has.
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
