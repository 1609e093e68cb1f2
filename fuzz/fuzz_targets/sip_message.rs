//! Any bytes as a SIP message, through the library's parser and everything of ours that looks at what it makes of them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    phone::signalling::dissect::message(bytes);
});
