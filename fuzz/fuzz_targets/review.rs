//! Bytes of a call through decode, decide and encode, guided by coverage: `make fuzz`.

#![no_main]

#[path = "../../tests/hostile/review.rs"]
mod review;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| review::call(body));
