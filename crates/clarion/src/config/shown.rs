//! The settings as the server has read them, for people: each with its value, what it means, and whether it differs from the default. Secrets are hidden.

use toml::{Table, Value};

use super::{DEFAULTS, TRUNK_DEFAULTS, VOICE_DEFAULTS};

/// Stands for a secret.
pub const HIDDEN: &str = "(hidden)";
/// The lists of tables that have names, with the defaults of an element.
const LISTS: [(&str, &str); 2] = [("trunk", TRUNK_DEFAULTS), ("voice", VOICE_DEFAULTS)];
/// Settings whose whole value is a secret.
const SECRETS: [&str; 5] = ["password", "secret", "token", "api_key", "headers"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// The table, as it is written in the file: `http`, or `trunk "main"`; empty for what stands before all tables.
    pub table: String,
    pub key: String,
    pub value: String,
    /// `None` where it has its default.
    pub default: Option<String>,
    /// The comment of the defaults.
    pub meaning: String,
}

impl ShownSetting {
    /// With its table, as documents name it.
    pub fn path(&self) -> String {
        match self.table.as_str() {
            "" => self.key.clone(),
            table => format!("{table}.{}", self.key),
        }
    }
}

/// The comments of a text by table and key, in the order of the text.
type Meanings = Vec<(String, String)>;

/// Every setting, in the order of the defaults.
pub(super) fn shown(settings: &Table, defaults: &Table) -> Vec<ShownSetting> {
    let meanings = meanings(DEFAULTS);
    let mut all = Vec::new();
    for (key, value) in settings {
        match value {
            Value::Table(inner) => {
                let known = defaults.get(key).and_then(Value::as_table);
                all.extend(of_table(key, key, inner, known, &meanings));
            }
            value if !LISTS.iter().any(|(list, _)| key == list) => {
                all.push(one(
                    "",
                    key,
                    value,
                    defaults.get(key),
                    meaning(&meanings, key),
                ));
            }
            _ => {}
        }
    }
    all.sort_by_key(|setting| place(&meanings, &setting.path()));
    for (list, defaults) in LISTS {
        let elements = settings.get(list).and_then(Value::as_array);
        let elements = elements.into_iter().flatten().filter_map(Value::as_table);
        let meanings = self::meanings(defaults);
        let defaults: Table = defaults.parse().unwrap_or_default();
        for element in elements {
            let name = element.get("name").and_then(Value::as_str);
            let title = format!("{list} \"{}\"", name.unwrap_or_default());
            let mut whole = defaults.clone();
            whole.extend(element.clone());
            let of_table = of_table(&title, "", &whole, Some(&defaults), &meanings);
            let mut of_table: Vec<_> = of_table.collect();
            of_table.sort_by_key(|setting| place(&meanings, &setting.key));
            all.extend(of_table);
        }
    }
    all
}

fn of_table<'a>(
    title: &'a str,
    path: &'a str,
    table: &'a Table,
    defaults: Option<&'a Table>,
    meanings: &'a Meanings,
) -> impl Iterator<Item = ShownSetting> + 'a {
    table.iter().map(move |(key, value)| {
        let full = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        let default = defaults.and_then(|defaults| defaults.get(key));
        one(title, key, value, default, meaning(meanings, &full))
    })
}

fn one(
    table: &str,
    key: &str,
    value: &Value,
    default: Option<&Value>,
    meaning: Option<&str>,
) -> ShownSetting {
    let differs = default.filter(|default| *default != value);
    ShownSetting {
        table: table.to_owned(),
        key: key.to_owned(),
        value: masked(key, value),
        default: differs.map(ToString::to_string),
        meaning: meaning.unwrap_or_default().to_owned(),
    }
}

fn masked(key: &str, value: &Value) -> String {
    let is_empty = match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    if SECRETS.contains(&key) && !is_empty {
        return HIDDEN.to_owned();
    }
    match value {
        Value::Array(list) => {
            let shown: Vec<_> = list.iter().map(|one| masked("", one)).collect();
            format!("[{}]", shown.join(", "))
        }
        Value::String(_) => without_secrets(&value.to_string()),
        _ => value.to_string(),
    }
}

/// Addresses may have secrets in them: what stands before the host, but the name, and what stands after `?`. Rather too much is hidden than too little.
fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let rest = match rest.split_once('?') {
        Some((address, query)) => {
            // The closing quotation mark stays.
            let end = if query.ends_with('"') { "\"" } else { "" };
            format!("{address}?{HIDDEN}{end}")
        }
        None => rest.to_owned(),
    };
    let rest = match rest.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split_once(':').map_or(user, |(name, _)| name);
            let password = if name.len() < user.len() { ":" } else { "" };
            let hidden = if password.is_empty() { "" } else { HIDDEN };
            format!("{name}{password}{hidden}@{host}")
        }
        None => rest,
    };
    format!("{scheme}://{rest}")
}

fn place(meanings: &Meanings, path: &str) -> Option<usize> {
    meanings.iter().position(|(known, _)| known == path)
}

fn meaning<'a>(meanings: &'a Meanings, path: &str) -> Option<&'a str> {
    Some(&meanings[place(meanings, path)?].1)
}

/// The comment above each setting of a text. Settings that follow each other may share one.
fn meanings(text: &str) -> Meanings {
    let (mut found, mut table, mut said) = (Meanings::new(), String::new(), Vec::new());
    let mut is_told = false;
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix('#') {
            if std::mem::take(&mut is_told) {
                said.clear();
            }
            said.push(comment.trim());
        } else if let Some(name) = line.strip_prefix('[') {
            table = format!("{}.", name.trim_matches(['[', ']']));
            said.clear();
        } else if let Some((key, _)) = line.split_once('=') {
            found.push((format!("{table}{}", key.trim()), said.join(" ")));
            is_told = true;
        } else {
            said.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{ShownSetting, without_secrets};
    use crate::config::Config;

    #[test]
    fn every_setting_is_shown_with_what_differs_and_without_secrets() {
        let text = "database = \"postgres://me:hush@db/clarion\"\n[http]\nlisten = [\"127.0.0.1:1\"]\n[[trunk]]\nname = \"main\"\nhost = \"sip.example.com\"\nprefixes = [\"\"]\nuser = \"u\"\npassword = \"hush3\"\nheaders = [{ name = \"X-Key\", value = \"hush4\" }]\n";
        let config = Config::from_parts(text, &[]).unwrap();
        let all = &config.shown;
        let told: String = all.iter().map(|setting| format!("{setting:?}\n")).collect();
        assert!(!told.contains("hush"), "{told}");
        let of = |table: &str, key: &str| {
            let mut all = all.iter();
            all.find(|setting| setting.table == table && setting.key == key)
                .unwrap_or_else(|| panic!("{table} {key}"))
                .clone()
        };
        assert_eq!(
            of("", "database").value,
            "\"postgres://me:(hidden)@db/clarion\""
        );
        for (written, shown) in [
            ("postgres://db/c?password=hush", "postgres://db/c?(hidden)"),
            ("postgres://u:hu/sh@a,b/c", "postgres://u:(hidden)@a,b/c"),
            ("https://me@host/x", "https://me@host/x"),
            ("\"https://h/x?key=hush\"", "\"https://h/x?(hidden)\""),
            ("127.0.0.1:8883", "127.0.0.1:8883"),
        ] {
            assert_eq!(without_secrets(written), shown);
        }
        let place = |path: &str| all.iter().position(|setting| setting.path() == path);
        assert_eq!(place("data_dir"), Some(0), "as the defaults have them");
        assert!(
            place("http.listen") < place("http.plain")
                && place("http.plain") < place("bills.folder")
        );
        let listen = of("http", "listen");
        assert_eq!(listen.value, "[\"127.0.0.1:1\"]");
        assert_eq!(listen.default.as_deref(), Some("[\"0.0.0.0:8883\"]"));
        assert!(listen.meaning.starts_with("Addresses to listen on."));
        assert_eq!(of("http", "plain").default, None);
        assert_eq!(of("trunk \"main\"", "password").value, "(hidden)");
        assert_eq!(of("trunk \"main\"", "host").value, "\"sip.example.com\"");
        // What the settings of a trunk mean is told in the documents.
        let of_trunk = |setting: &&ShownSetting| setting.table.starts_with("trunk");
        for setting in all.iter().filter(|setting| !of_trunk(setting)) {
            assert!(!setting.meaning.is_empty(), "{setting:?}");
        }
    }
}
