//! Passwords of operators: made, hashed and verified by argon2id. It takes tens of milliseconds and megabytes on purpose, so callers run it on a thread
//! for blocking work and let only a few do so at once.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use crate::domain::operator::{OperatorPassword, PasswordDigest};
use crate::random;

/// Letters and digits that nobody mistakes for one another.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789A";
const GENERATED_LENGTH: usize = 24;

/// A new password of 120 bits.
pub fn generate() -> OperatorPassword {
    let letters = random::bytes::<GENERATED_LENGTH>();
    let letters = letters.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    let text: String = letters.into_iter().collect();
    text.parse().expect("it is long enough")
}

/// Hashes a password with a new salt, by the costs that OWASP advises: 19 MiB, two rounds, one lane.
pub fn hash(password: &OperatorPassword) -> PasswordDigest {
    digest(password.reveal(), &random::bytes::<16>())
}

fn digest(password: &str, salt: &[u8]) -> PasswordDigest {
    let hash: PasswordHash = Argon2::default()
        .hash_password_with_salt(password.as_bytes(), salt)
        .expect("password and salt have lengths that argon2 takes");
    PasswordDigest::new(hash.to_string())
}

/// Whether it is the password. Where there is no operator, it takes as long to say no.
pub fn verify(password: &str, kept: Option<&PasswordDigest>) -> bool {
    static NOBODY: LazyLock<PasswordDigest> = LazyLock::new(|| digest("", &[0; 16]));
    let digest = kept.unwrap_or(&NOBODY);
    let Ok(parsed) = PasswordHash::new(digest.as_str()) else {
        return false;
    };
    // A password that nobody can have is not worth the work of its length.
    let bounded = password.len() <= 4096;
    let matches = bounded
        && Argon2::default()
            .verify_password(password.as_bytes(), &parsed)
            .is_ok();
    matches && kept.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_its_hash_alone() {
        let password = generate();
        let kept = hash(&password);
        assert!(kept.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify(password.reveal(), Some(&kept)));
        assert!(!verify("another password", Some(&kept)));
        assert!(!verify(password.reveal(), None), "of nobody");
        assert!(!verify("", None), "of nobody");
        assert_ne!(hash(&password), kept, "each has a salt of its own");
        let broken = PasswordDigest::new("rubbish".to_owned());
        assert!(!verify(password.reveal(), Some(&broken)));
    }
}
