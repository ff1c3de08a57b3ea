//! The labels of metrics.

use prometheus_client::encoding::EncodeLabelSet;

/// Names of labels with their values.
pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Limits, and other reasons to refuse a connection or a request before a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cap {
    /// Too many open connections: one was evicted, or a new one had to wait.
    Connections,
    /// Too many connections of one address without a request.
    ConnectionsPerAddress,
    /// The TLS handshake failed.
    Handshake,
    /// The TLS handshake timed out.
    HandshakeDeadline,
    /// The head of a request did not arrive in time.
    HeadersDeadline,
    /// The body of a request did not arrive in time.
    BodyDeadline,
    /// A request and its answer took too long together.
    ExchangeDeadline,
    /// A kept connection was idle for too long.
    Idle,
    /// A body exceeded the limit of one.
    BodyBytes,
    /// The bodies in flight used up their total limit.
    InFlightBytes,
    /// The kinds that answers depend on were not in sync yet.
    NotInSync,
    /// The body is no review.
    Malformed,
    /// A caller did not identify itself as the API server.
    Unauthenticated,
    /// A review that should wait for the cache was decided at once, as too many waited.
    Waiting,
}

impl Cap {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::Handshake => "handshake",
            Self::HandshakeDeadline => "handshake_deadline",
            Self::HeadersDeadline => "headers_deadline",
            Self::BodyDeadline => "body_deadline",
            Self::ExchangeDeadline => "exchange_deadline",
            Self::Idle => "idle",
            Self::BodyBytes => "body_bytes",
            Self::InFlightBytes => "in_flight_bytes",
            Self::NotInSync => "not_in_sync",
            Self::Malformed => "malformed",
            Self::Unauthenticated => "unauthenticated",
            Self::Waiting => "waiting",
        }
    }
}

/// What a request to the API server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    InFlight,
    /// The end of the time for which the API server refuses more (`Retry-After`).
    Paused,
}

impl Hindrance {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Paused => "retry_after",
        }
    }
}

/// Labels of a decision; all from closed sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DecisionLabels {
    /// `mutate`, `validate` or `kudo`.
    pub door: &'static str,
    /// A guarded kind, or `other`.
    pub kind: &'static str,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `other`.
    pub operation: &'static str,
    /// The rule that decided, or `none`.
    pub rule: &'static str,
    /// `allowed`, `patched`, `denied` or `skipped`.
    pub verdict: &'static str,
    /// `true` or `false`.
    pub dry_run: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WebhookCode {
    pub webhook: &'static str,
    pub code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PlanResult {
    pub result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RestCall {
    pub method: &'static str,
    pub code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabel {
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Installed {
    pub kind: &'static str,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HealedChild {
    pub kind: String,
    pub cause: &'static str,
}
