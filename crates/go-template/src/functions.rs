//! The functions that templates can call, by name.

use std::collections::{BTreeMap, BTreeSet};

use super::function::Function;
use super::to_yaml;
use super::{builtins, sprig};

/// `toYaml`: writes a value like [`crate::yaml::write`]. Neither Go nor sprig has it; many programs add it.
pub const TO_YAML: &[Function] = to_yaml::FUNCTIONS;

/// The functions that a template may call. Of several with one name, the last one added wins.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    known: BTreeMap<&'static str, &'static Function>,
    unsupported: BTreeSet<&'static str>,
}

/// Result of looking up a name.
pub(super) enum Lookup {
    Known(&'static Function),
    /// A function of sprig 2.22 that this crate does not have.
    Unsupported,
    Unknown,
}

impl Functions {
    /// The functions of Go's `text/template` itself.
    pub fn go() -> Self {
        Self::default().with(builtins::FUNCTIONS)
    }

    /// Go's functions, and those of sprig 2.22, which replace Go's of the same name (`slice`). Parsing
    /// rejects those that need the network, the environment or a file system; those that need a clock or
    /// randomness draw from the [`crate::Generator`] of the rendering.
    pub fn sprig() -> Self {
        let mut functions = sprig::FAMILIES.iter().fold(Self::go(), |all, family| all.with(family));
        functions.unsupported.extend(sprig::UNSUPPORTED);
        functions
    }

    /// Adds these functions.
    #[must_use]
    pub fn with(mut self, more: &'static [Function]) -> Self {
        self.known.extend(more.iter().map(|function| (function.name, function)));
        self
    }

    /// Removes these functions: to templates they are undefined.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.known.retain(|name, _| !names.contains(name));
        self.unsupported.retain(|name| !names.contains(name));
        self
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.known.keys().copied()
    }

    pub(super) fn find(&self, name: &str) -> Lookup {
        match self.known.get(name) {
            Some(function) => Lookup::Known(function),
            None if self.unsupported.contains(name) => Lookup::Unsupported,
            None => Lookup::Unknown,
        }
    }
}
