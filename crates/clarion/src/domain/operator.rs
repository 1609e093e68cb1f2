//! Operators of the console: who they are, what they may do, and what it takes to be one of them. Hashing is done elsewhere (`passwords`).

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// No name is longer.
const LONGEST_NAME: usize = 32;
/// Shorter passwords are guessed; longer ones are no better.
const PASSWORD_CHARACTERS: std::ops::RangeInclusive<usize> = 12..=256;

/// The name that an operator signs in with, and that the audit trail has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperatorName(String);

impl OperatorName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperatorName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of_a_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let fits = (1..=LONGEST_NAME).contains(&text.len());
        if fits && text.chars().all(of_a_name) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "a name has 1 to {LONGEST_NAME} letters, digits, -, _ or ."
        ))
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an operator may do. The later one may do everything that the earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorRole {
    /// Sees everything and changes nothing.
    Viewer,
    Admin,
}

impl OperatorRole {
    pub const ALL: [Self; 2] = [Self::Viewer, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for OperatorRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| "write viewer or admin".to_owned())
    }
}

/// A password as it was given. It never appears in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct OperatorPassword(String);

impl OperatorPassword {
    /// To hash it, and to show it once where it was made here.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperatorPassword {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if PASSWORD_CHARACTERS.contains(&text.chars().count()) {
            return Ok(Self(text.to_owned()));
        }
        let (least, most) = (PASSWORD_CHARACTERS.start(), PASSWORD_CHARACTERS.end());
        Err(format!("a password has {least} to {most} characters"))
    }
}

impl fmt::Debug for OperatorPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorPassword(…)")
    }
}

/// What is kept of a password: its hash by argon2id, with salt and cost (a PHC string).
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordDigest(String);

impl PasswordDigest {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordDigest(…)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    pub name: OperatorName,
    pub role: OperatorRole,
    pub password: PasswordDigest,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// Grows with every new password.
    pub generation: i64,
}

impl Operator {
    /// A new one. Its generation is later than that of an operator of the same name who was removed before.
    pub fn new(
        name: OperatorName,
        role: OperatorRole,
        password: PasswordDigest,
        now: Timestamp,
    ) -> Self {
        Self {
            name,
            role,
            password,
            created_at: now,
            changed_at: now,
            generation: now.as_millisecond(),
        }
    }
}

/// What becomes different about an operator. A new password ends the sign-ins.
#[derive(Debug, Clone)]
pub struct OperatorChange {
    pub role: Option<OperatorRole>,
    pub password: Option<PasswordDigest>,
    pub at: Timestamp,
}

/// The right of one browser to use the console as an operator, from the password to the sign-out.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    /// What the browser keeps is nowhere else: only its hash is.
    pub id_hash: String,
    pub operator: OperatorName,
    pub generation: i64,
    /// Every form of this sign-in carries it.
    pub form_token: String,
    pub address: String,
    pub created_at: Timestamp,
    pub seen_at: Timestamp,
    pub expires_at: Timestamp,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn")
            .field("operator", &self.operator)
            .field("address", &self.address)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in ["li", "wang.wei", "night_shift-2", &"x".repeat(LONGEST_NAME)] {
            assert_eq!(good.parse::<OperatorName>().unwrap().as_str(), good);
        }
        for bad in ["", "li wei", "李", "<b>", &"x".repeat(LONGEST_NAME + 1)] {
            assert!(bad.parse::<OperatorName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_admin_may_what_a_viewer_may() {
        assert!(OperatorRole::Admin > OperatorRole::Viewer);
        for role in OperatorRole::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
    }

    #[test]
    fn secrets_do_not_print_themselves() {
        let password: OperatorPassword = "correct horse battery".parse().unwrap();
        assert!(!format!("{password:?}").contains("horse"));
        assert!("short".parse::<OperatorPassword>().is_err());
        let digest = PasswordDigest::new("$argon2id$v=19$m=8".to_owned());
        assert!(!format!("{digest:?}").contains("argon2id"));
    }
}
