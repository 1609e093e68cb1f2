//! Reads the tables of a list whose elements have names, such as `[[trunk]]`, each laid over its defaults.

use toml::{Table, Value};

use super::overlay::overlay;
use super::section::{Mistake, Section};

/// Reads all elements of the list at `path`, in the order of the file. A wrong one adds its mistakes.
pub(super) fn read_named<T>(
    path: &str,
    defaults: &str,
    tables: Vec<Table>,
    mistakes: &mut Vec<Mistake>,
    read: impl Fn(&mut Section) -> Result<T, Mistake>,
    name: impl Fn(&T) -> &str,
) -> Vec<T> {
    let mut elements: Vec<T> = Vec::new();
    for (place, table) in tables.into_iter().enumerate() {
        let label = label(path, place, &table);
        let mut settings: Table = defaults.parse().expect("the defaults are tested");
        let mut unknown = Vec::new();
        overlay(&mut settings, table, "", &mut unknown);
        mistakes.extend(unknown.into_iter().map(|mistake| Mistake {
            path: path.to_owned(),
            text: format!("{label}{}", mistake.text),
        }));
        let mut section = Section::element(label, path, settings);
        let element = read(&mut section).and_then(|element| {
            if elements.iter().any(|other| name(other) == name(&element)) {
                return Err(section.mistake("name", "there are two of this name"));
            }
            section.finish()?;
            Ok(element)
        });
        match element {
            Ok(element) => elements.push(element),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    elements
}

/// Names an element by its name, or by its number if it has none.
fn label(path: &str, place: usize, table: &Table) -> String {
    match table.get("name").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => format!("[[{path}]] {name:?}: "),
        _ => format!("[[{path}]] number {}: ", place + 1),
    }
}
