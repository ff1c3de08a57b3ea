//! A resource of the API server: the names by which a kind is served.

use super::object::Gvk;

/// How the API server serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group, empty for core.
    pub group: &'static str,
    /// Versions that can be read, best first.
    pub versions: &'static [&'static str],
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in the path.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether it is built into the API server: it has no definition.
    pub built_in: bool,
}

impl Resource {
    /// A custom resource whose objects live in namespaces.
    pub const fn custom(
        group: &'static str,
        versions: &'static [&'static str],
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, versions, kind, plural, namespaced: true, built_in: false }
    }

    /// A resource of the API server's own whose objects live in namespaces.
    pub const fn built_in(
        group: &'static str,
        versions: &'static [&'static str],
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { built_in: true, ..Self::custom(group, versions, kind, plural) }
    }

    /// The same, of the whole cluster.
    #[must_use]
    pub const fn cluster_scoped(self) -> Self {
        Self { namespaced: false, ..self }
    }

    /// The best version.
    pub const fn version(&self) -> &'static str {
        match self.versions {
            [first, ..] => first,
            [] => "",
        }
    }

    /// `PLURAL.GROUP`, as the name of its definition.
    pub fn name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Group, best version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk { group: self.group.to_owned(), version: self.version().to_owned(), kind: self.kind.to_owned() }
    }
}
