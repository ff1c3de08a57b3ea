//! What is asked about an expression, and what becomes of it.

/// Levels of an expression that the proxy takes; Envoy's own bound is 32.
pub const MAX_LEVELS: u16 = 24;

/// Who evaluates an expression, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A condition of a limit: the proxy, for a boolean.
    Predicate,
    /// A counter of a limit: the proxy, for a value that tells requests apart.
    Counter,
    /// A condition of authentication or authorization: the auth server, for a boolean.
    AuthPredicate,
    /// A value of authentication or authorization: the auth server.
    AuthValue,
}

impl Use {
    /// Whether the proxy evaluates it, and not the auth server.
    pub(in crate::policies) fn is_of_proxy(self) -> bool {
        matches!(self, Self::Predicate | Self::Counter)
    }

    pub(super) fn is_predicate(self) -> bool {
        matches!(self, Self::Predicate | Self::AuthPredicate)
    }
}

/// What becomes of an expression. The texts say why, and what to do; they go behind the name of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be evaluated.
    Right,
    /// Kuadrant has it, and the proxy, or the auth server, cannot evaluate it: it is warned of, and not rendered.
    Unsupported(String),
    /// It can never act, in Envoy or in Kuadrant.
    Refused(String),
}
