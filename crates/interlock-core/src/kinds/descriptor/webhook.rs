//! The entries of the webhook configurations, as data: which requests the API server sends.

/// One entry. Its name is `NAME.interlock.dev`, and `NAME.mutate.interlock.dev` in the mutating
/// configuration.
#[derive(Debug)]
pub struct WebhookEntry {
    /// The start of its name.
    pub name: &'static str,
    /// The configurations that have it.
    pub calls: Calls,
    /// Resources and subresources of the kind's group and version, such as `instances/status`; never `*`.
    pub resources: &'static [&'static str],
    /// Operations, such as `CREATE`.
    pub operations: &'static [&'static str],
    /// What the API server does when the webhook does not answer.
    pub on_failure: OnFailure,
    /// All of them must hold for a request to be sent.
    pub conditions: &'static [MatchCondition],
    /// The objects that it matches.
    pub objects: MatchedObjects,
}

/// The configurations that an entry is part of, and so the path that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// The validating one.
    Validating,
    /// The mutating one as well.
    Both,
    /// The mutating one alone, where the author may update what a gateway's flavor comes from.
    Sources,
}

/// The failure policy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// `Fail`
    Refuse,
    /// `Ignore`
    Admit,
}

/// The objects that an entry matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedObjects {
    /// All of the resource.
    All,
    /// Those with a label, and a value of it.
    Labelled(&'static str, &'static str),
    /// Those with a label, whatever its value, outside of our own namespace: no match can block a restart
    /// of the process.
    HavingLabel(&'static str),
}

/// A match condition of an entry.
#[derive(Clone, Copy, Debug)]
pub enum MatchCondition {
    /// The user is not that of the process.
    NotTheController,
    /// A condition in CEL, by name.
    Cel(&'static str, fn() -> String),
}
