//! Any bytes as a form of the console: the first line is its kind, with the boundary between its parts. Nothing is read without end.

#![no_main]

use clarion::console::dissect_form;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (kind, body) = bytes.split_at(end.unwrap_or_default());
    let Ok(kind) = std::str::from_utf8(kind) else {
        return;
    };
    let body = body.get(1..).unwrap_or_default();
    if let Some((fields, files)) = dissect_form(kind, body) {
        assert!(fields <= 100 && files <= 100, "{fields} fields, {files} files");
    }
});
