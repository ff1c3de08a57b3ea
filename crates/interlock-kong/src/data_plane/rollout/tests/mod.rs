// What only the exploration needs.
#![cfg_attr(not(feature = "exploration"), allow(dead_code))]

mod certificates;
mod events;
#[cfg(feature = "exploration")]
mod explored;
mod faults;
mod history;
mod invariants;
mod kubernetes;
mod phases;
mod scenarios;
mod sourced_flavors;
mod take_over;
mod world;
