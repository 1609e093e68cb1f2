//! Who we are to a trunk, and where the password for it comes from.

use std::path::PathBuf;

use phone::signalling::SipCredentials;

use super::section::{Mistake, Section};
use super::values::secret_in;

/// Where a password stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordPlace {
    /// In the settings: whoever can read them knows it.
    Settings,
    /// In a file of its own.
    File(PathBuf),
    /// There is none.
    Nowhere,
}

pub(super) fn credentials(
    section: &mut Section,
    password: String,
) -> Result<Option<SipCredentials>, Mistake> {
    let user = section.text_or_none("user")?;
    let auth_user = section.text_or_none("auth_user")?;
    Ok(user.map(|user| SipCredentials {
        user,
        auth_user,
        password,
    }))
}

/// The password, from the settings or from a file of its own.
pub(super) fn password(section: &mut Section) -> Result<(String, PasswordPlace), Mistake> {
    let written = section.text("password")?;
    match section.path_or_none("password_file")? {
        Some(_) if !written.is_empty() => {
            let rule = "name either this or password, not both";
            Err(section.mistake("password_file", rule))
        }
        Some(file) => match secret_in(&file) {
            Ok(password) => Ok((password, PasswordPlace::File(file))),
            Err(rule) => Err(section.mistake("password_file", rule)),
        },
        None if written.is_empty() => Ok((written, PasswordPlace::Nowhere)),
        None => Ok((written, PasswordPlace::Settings)),
    }
}
