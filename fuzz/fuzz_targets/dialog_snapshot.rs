//! Any bytes as the snapshot of a leg that an earlier process left: what cannot be read is refused, the rest stays what it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use phone::signalling::{DialogSnapshot, dissect};

fuzz_target!(|bytes: &[u8]| {
    let Ok(snapshot) = serde_json::from_slice::<DialogSnapshot>(bytes) else {
        return;
    };
    let written = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(
        serde_json::from_str::<DialogSnapshot>(&written).unwrap(),
        snapshot
    );
    dissect::snapshot(Some(&snapshot));
});
