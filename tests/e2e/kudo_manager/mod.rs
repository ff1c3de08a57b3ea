//! KUDO's own manager beside ours: what they make of the same packages, and how an Instance goes from one to the other.

mod beside;
mod differences;
mod handover;
mod manager;
mod scenario;
mod snapshot;
