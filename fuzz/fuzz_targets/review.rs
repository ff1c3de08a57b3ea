//! Bytes of a call through decode, decide and encode, guided by coverage: `make fuzz`.

#![no_main]

#[path = "../../tests/hostile/entry.rs"]
mod entry;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| entry::call(body));
