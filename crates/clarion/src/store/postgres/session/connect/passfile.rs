//! Passwords in a file, as libpq reads it: `host:port:database:user:password`, a line each, `*` for any.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::config::{DatabasePassword, PostgresAddress, PostgresHost, UserFile};

/// The password of the first line that fits.
pub(super) fn look_up(
    address: &PostgresAddress,
    host: &PostgresHost,
) -> Result<Option<DatabasePassword>, String> {
    let (path, must_be_there) = match &address.passfile {
        UserFile::Named(path) => (path, true),
        UserFile::Usual(path) => (path, false),
        UserFile::None => return Ok(None),
    };
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be_there => return Ok(None),
        Err(error) => return Err(format!("the password file {}: {error}", path.display())),
    };
    let (name, port) = match host {
        PostgresHost::Tcp {
            name,
            address,
            port,
        } => {
            let address = address.map(|address| address.to_string());
            (name.clone().or(address).unwrap_or_default(), port)
        }
        // libpq's word for the sockets of this machine.
        PostgresHost::Unix { port, .. } => ("localhost".to_owned(), port),
    };
    let user = address.user.as_deref().unwrap_or_default();
    let database = address.name.as_deref().unwrap_or(user);
    let wanted = [name.as_str(), &port.to_string(), database, user];
    Ok(text.lines().find_map(|line| password_of(line, wanted)))
}

fn read(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.mode() & 0o077 != 0 {
        let text = "others may read it; allow only its owner (chmod 600)";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    std::fs::read_to_string(path)
}

fn password_of(line: &str, wanted: [&str; 4]) -> Option<DatabasePassword> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = fields(line).into_iter();
    for wanted in wanted {
        let field = fields.next()?;
        // An escaped star is a star.
        if field != "*" && unescaped(&field) != wanted {
            return None;
        }
    }
    let password = fields.next().map(|field| unescaped(&field))?;
    (!password.is_empty()).then(|| DatabasePassword::new(password))
}

/// Separated by `:`, unless it stands behind a backslash. The last one takes the rest.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            ':' if last < 4 => fields.push(String::new()),
            '\\' => {
                fields[last].push('\\');
                fields[last].extend(characters.next());
            }
            other => fields[last].push(other),
        }
    }
    fields
}

fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let wanted = ["db.example", "5432", "clarion", "voice"];
        let password =
            |line: &str| password_of(line, wanted).map(|found| found.as_str().to_owned());
        for (line, found) in [
            ("db.example:5432:clarion:voice:secret", Some("secret")),
            ("*:*:*:*:a\\:b\\\\c:d", Some("a:b\\c:d")),
            ("other:5432:clarion:voice:secret", None),
            ("db.example:5433:clarion:voice:secret", None),
            ("\\*:5432:clarion:voice:secret", None),
            ("# db.example:5432:clarion:voice:secret", None),
            ("db.example:5432:clarion:voice:", None),
            ("db.example:5432:clarion", None),
            ("", None),
        ] {
            assert_eq!(password(line).as_deref(), found, "{line}");
        }
    }
}
