//! Any bytes as a packet of a stranger: its head is read without harm, and what is found in it stands there.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    phone::signalling::dissect::head(bytes);
});
