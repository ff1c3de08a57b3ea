//! Gateways and the objects around them through the resolver, the rules and the plan, guided by
//! coverage: `make fuzz`.

#![no_main]

#[path = "../../tests/hostile/flavor.rs"]
mod flavor;
#[path = "../../tests/hostile/kubelet.rs"]
mod kubelet;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| flavor::call(body));
