//! The only source of randomness: the operating system's.

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that asks for randomness"
)]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system always has randomness after boot");
    bytes
}

/// 32 hex digits: an identifier or a token.
pub fn id() -> String {
    hex::encode(bytes::<16>())
}
