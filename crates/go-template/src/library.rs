//! All functions that templates can call, by name.

use super::function::Function;
use super::{builtins, sprig};

/// What a name stands for.
pub(super) enum Lookup {
    Known(&'static Function),
    /// In sprig 2.22, and not here.
    Unsupported,
    /// In neither, or taken out by KUDO.
    Unknown,
}

/// Finds a function; sprig's hide Go's own of the same name (`slice`).
pub(super) fn find(name: &str) -> Lookup {
    let families = sprig::FAMILIES.iter().copied().chain([builtins::FUNCTIONS]);
    for family in families {
        if let Some(function) = family.iter().find(|function| function.name == name) {
            return Lookup::Known(function);
        }
    }
    if sprig::UNSUPPORTED.contains(&name) { Lookup::Unsupported } else { Lookup::Unknown }
}

/// Names of all functions.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    sprig::FAMILIES
        .iter()
        .copied()
        .chain([builtins::FUNCTIONS])
        .flatten()
        .map(|function| function.name)
        .collect()
}
