//! Templates and what they render, guided by coverage: `make fuzz`.

#![no_main]

#[path = "../../tests/hostile/template.rs"]
mod template;
#[path = "../../tests/hostile/yaml.rs"]
mod yaml;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| template::call(body));
