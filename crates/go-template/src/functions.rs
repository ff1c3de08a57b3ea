//! The functions that templates can call, by name.

use std::collections::{BTreeMap, BTreeSet};

use super::function::Function;
use super::to_yaml;
use super::{builtins, sprig};

/// `toYaml`: a value as [`crate::yaml::write`] writes it. In neither Go nor sprig; many programs add it.
pub const TO_YAML: &[Function] = to_yaml::FUNCTIONS;

/// What a template may call. The last function that is added under a name is the one that is called.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    known: BTreeMap<&'static str, &'static Function>,
    unsupported: BTreeSet<&'static str>,
}

/// What a name stands for.
pub(super) enum Lookup {
    Known(&'static Function),
    /// In sprig 2.22, and not here.
    Unsupported,
    Unknown,
}

impl Functions {
    /// Those of Go's `text/template` itself.
    pub fn go() -> Self {
        Self::default().with(builtins::FUNCTIONS)
    }

    /// Go's, and those of sprig 2.22, which hide Go's of the same name (`slice`). A template that names
    /// one that needs a clock, randomness, keys, the network, the environment or a file system is refused.
    pub fn sprig() -> Self {
        let mut functions = sprig::FAMILIES.iter().fold(Self::go(), |all, family| all.with(family));
        functions.unsupported.extend(sprig::UNSUPPORTED);
        functions
    }

    /// These as well.
    #[must_use]
    pub fn with(mut self, more: &'static [Function]) -> Self {
        self.known.extend(more.iter().map(|function| (function.name, function)));
        self
    }

    /// All but these: a template that names one of them is told that it is not defined.
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
