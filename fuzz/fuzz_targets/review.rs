//! Bytes of a call -> decode, decide, encode: an answer or an error, never a panic.
//!
//! `make fuzz` runs it; the first byte chooses door, freeze and patience, the rest is the body.

#![no_main]

#[path = "../../tests/hostile/entry.rs"]
mod entry;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| entry::call(bytes));
