//! Any text as a name in a query: it is read as its client meant it, or refused; never with a replacement character that it did not have.

#![no_main]

use clarion::api::query_name;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|raw: &str| {
    let Some(name) = query_name(raw) else {
        return;
    };
    let had_one = raw.contains('\u{fffd}') || raw.to_ascii_uppercase().contains("%");
    assert!(had_one || !name.contains('\u{fffd}'), "{name:?}");
    // Whoever encodes every byte is understood; only letters of two bytes, those between Latin and Chinese, can be those of a GBK name too.
    let is_certain = name
        .chars()
        .all(|letter| !('\u{80}'..'\u{800}').contains(&letter));
    let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let again = query_name(&encoded);
    assert!(again.is_some(), "{name:?}");
    assert!(
        !is_certain || again.as_deref() == Some(&*name),
        "{name:?}: {again:?}"
    );
});
