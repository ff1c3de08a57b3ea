//! YAML of parameters and of rendered templates, guided by coverage: `make fuzz`.

#![no_main]

#[path = "../../tests/hostile/yaml.rs"]
mod yaml;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| yaml::call(body));
