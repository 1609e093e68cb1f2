//! The parts of `postgres://user:password@host:port,host:port/name?parameter=value`, with what is written as %XX decoded.
//!
//! What does not fit is told by the name of the part, never by its text: a password that is written wrongly may stand anywhere in it.

/// What stands in an address, before anything is made of it.
#[derive(Default)]
pub(super) struct AddressParts {
    pub user: Option<String>,
    pub password: Option<String>,
    pub hosts: Vec<(String, Option<u16>)>,
    pub name: Option<String>,
    /// Each once.
    pub parameters: Vec<(String, String)>,
}

impl AddressParts {
    pub fn read(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
            .ok_or("it must begin with postgres://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if rest.contains('@') {
            return Err(
                "an `@` stands behind the host: write `/` in a user or password as %2F, `?` as %3F, and `@` in a parameter as %40"
                    .to_owned(),
            );
        }
        let mut parts = Self::default();
        let hosts = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => {
                parts.read_credentials(credentials)?;
                hosts
            }
            None => authority,
        };
        parts.read_hosts(hosts)?;
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let name = decoded("the database's name", path.trim_start_matches('/'))?;
        parts.name = Some(name).filter(|name| !name.is_empty());
        parts.read_parameters(parameters)?;
        Ok(parts)
    }

    fn read_credentials(&mut self, credentials: &str) -> Result<(), String> {
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (credentials, None),
        };
        let user = decoded("user", user)?;
        self.user = Some(user).filter(|user| !user.is_empty());
        self.password = password.map(|text| decoded("password", text)).transpose()?;
        Ok(())
    }

    fn read_hosts(&mut self, hosts: &str) -> Result<(), String> {
        if hosts.is_empty() {
            return Ok(());
        }
        for written in hosts.split(',') {
            let (host, port) = match written.strip_prefix('[') {
                Some(six) => {
                    let (host, rest) = six
                        .split_once(']')
                        .ok_or("host: `[` is not followed by `]`")?;
                    (host, rest)
                }
                None => written.split_at(written.find(':').unwrap_or(written.len())),
            };
            let port = match port.strip_prefix(':') {
                Some("") => None,
                Some(port) => Some(parse_port(port)?),
                None if port.is_empty() => None,
                None => return Err("host: write `:` between address and port".to_owned()),
            };
            self.hosts.push((decoded("host", host)?, port));
        }
        Ok(())
    }

    fn read_parameters(&mut self, parameters: &str) -> Result<(), String> {
        for written in parameters.split('&').filter(|written| !written.is_empty()) {
            let (name, value) = written
                .split_once('=')
                .ok_or("a parameter must be written name=value")?;
            let name = decoded("the name of a parameter", name)?;
            if self.parameters.iter().any(|(known, _)| *known == name) {
                return Err(format!("the parameter `{name}` is given twice"));
            }
            let value = decoded(&name, value)?;
            self.parameters.push((name, value));
        }
        Ok(())
    }
}

pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "port: must be a number from 1 to 65535".to_owned())
}

fn decoded(part: &str, text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest
            .split_at_checked(2)
            .and_then(|(digits, more)| Some((hex::decode(digits).ok()?[0], more)));
        let (byte, more) =
            digits.ok_or_else(|| format!("{part}: write two hex digits after %, and % as %25"))?;
        bytes.push(byte);
        rest = more;
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(format!("{part}: must be UTF-8 without a zero byte")),
    }
}
