//! Any bytes as a zip of voice files: refused, or unpacked within the limits under plain names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sound::archive::{ArchiveLimits, unpack};

const LIMITS: ArchiveLimits = ArchiveLimits {
    files: 10,
    file_bytes: 100_000,
    total_bytes: 200_000,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(entries) = unpack(bytes, &LIMITS) else {
        return;
    };
    assert!(!entries.is_empty() && entries.len() <= 10);
    assert!(entries.iter().map(|entry| entry.bytes.len()).sum::<usize>() <= 200_000);
    assert!(
        entries
            .iter()
            .all(|entry| !entry.name.contains(['/', '\\']))
    );
});
