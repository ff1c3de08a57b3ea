//! The rights that a kind needs, and those that it gives to people.

/// A right on resources of one API group.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// Who gets it.
    pub role: Role,
    /// API group, empty for core.
    pub group: &'static str,
    /// Resource or subresource, such as `instances/status`.
    pub resource: &'static str,
    /// Verbs; never `*`.
    pub verbs: &'static [&'static str],
}

/// The roles of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The process.
    Controller,
    /// The webhook, where it is a process of its own; the controller has its rights as well.
    Webhook,
    /// The process, by a role that an administrator may take away: labels ConfigMaps that are sources of
    /// flavors.
    FlavorSources,
    /// The same for Secrets, where the administrator asked for it.
    FlavorSecrets,
    /// The process, where the administrator asked for rollouts of DataPlanes.
    DataPlanes,
    /// The process, where the administrator asked for the certificates of DataPlanes.
    DataPlaneCertificates,
    /// The process, where the administrator asked for policies to be carried out.
    Policies,
    /// The same, in the namespaces of Limitadors.
    Limitadors,
    /// People with `view`.
    Viewer,
    /// People with `edit`, and with `admin`.
    Editor,
    /// People with `admin`.
    Admin,
    /// People whom an administrator lets install packages.
    PackageInstaller,
}

/// Reading and watching.
pub const READ: &[&str] = &["get", "list", "watch"];
/// Every write of an object.
pub const WRITE: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];

impl Right {
    /// A right.
    pub const fn new(
        role: Role,
        group: &'static str,
        resource: &'static str,
        verbs: &'static [&'static str],
    ) -> Self {
        Self { role, group, resource, verbs }
    }
}
