//! Any bytes as XML body: see `check_body`.

#![no_main]

use clarion::api::wire::BodyFormat;
use clarion_fuzz::check_body;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| check_body(BodyFormat::Xml, body));
