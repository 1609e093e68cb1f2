//! The parameters behind the question mark: each is taken once, and what is left at the end is refused by its name.

use std::path::PathBuf;

use crate::config::suggestion::suggestion;

/// Those that we read, for whoever has misspelt one.
const HONOURED: &[&str] = &[
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "load_balance_hosts",
    "options",
    "passfile",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// What libpq knows besides. To pass over one of them in silence could cost its writer what it is for.
const NOT_HONOURED: &[&str] = &[
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkeylogfile",
    "sslpassword",
];

pub(super) struct Given(Vec<(String, String)>);

impl Given {
    pub fn new(parameters: Vec<(String, String)>) -> Self {
        Self(parameters)
    }

    /// An empty value stands for none, as in libpq.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.0.swap_remove(place);
        Some(value).filter(|value| !value.is_empty())
    }

    /// What may stand before the question mark, too.
    pub fn or_part(&mut self, name: &str, part: Option<String>) -> Result<Option<String>, String> {
        match (self.take(name), part) {
            (Some(_), Some(_)) => Err(format!("the parameter `{name}` is given twice")),
            (given, part) => Ok(given.or(part)),
        }
    }

    pub fn file(&mut self, name: &str) -> Option<PathBuf> {
        self.take(name).map(PathBuf::from)
    }

    pub fn one_of<T: Copy>(
        &mut self,
        name: &str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let found = known.iter().find(|(word, _)| *word == value);
        let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
        let found = found.map(|(_, meaning)| Some(*meaning));
        found.ok_or_else(|| format!("the parameter `{name}` must be one of {}", words.join(", ")))
    }

    pub fn number(&mut self, name: &str, least: u32, limit: u32) -> Result<Option<u32>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = value.parse().ok();
        let number = number.filter(|number| (least..=limit).contains(number));
        number
            .map(Some)
            .ok_or_else(|| format!("the parameter `{name}` must be from {least} to {limit}"))
    }

    pub fn refuse_the_rest(self) -> Result<(), String> {
        let Some((name, _)) = self.0.into_iter().next() else {
            return Ok(());
        };
        if NOT_HONOURED.contains(&name.as_str()) {
            return Err(format!(
                "the parameter `{name}` is not honoured by this program: leave it out"
            ));
        }
        let near = suggestion(HONOURED, &name, "");
        Err(format!("there is no parameter `{name}`{near}"))
    }
}
