//! What metrics are told apart by.

use prometheus_client::encoding::EncodeLabelSet;

/// Why a connection or a request was refused before anybody judged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cap {
    /// More connections than are kept open: one was closed, or could not be, for another.
    Connections,
    /// More connections without a request of one address than are kept open.
    ConnectionsPerAddress,
    /// TLS could not be agreed on.
    Handshake,
    /// TLS was not agreed on in time.
    HandshakeDeadline,
    /// The head of a request did not arrive in time.
    HeadersDeadline,
    /// The body of a request did not arrive in time.
    BodyDeadline,
    /// A request and its answer took too long together.
    ExchangeDeadline,
    /// Nothing was asked on a kept connection for too long.
    Idle,
    /// A body was larger than the cap on one.
    BodyBytes,
    /// Bodies in flight had used up the cap on all.
    InFlightBytes,
    /// The kinds that answers rest on were not in sync yet.
    NotInSync,
    /// What was sent is no review.
    Malformed,
    /// A caller did not show that it is the API server.
    Unauthenticated,
    /// A review that had to wait for the cache was decided at once, as too many waited.
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

/// Labels of a decision; all from closed sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DecisionLabels {
    /// `mutate`, `validate` or `kudo`.
    pub door: &'static str,
    /// A kind that we guard, or `other`.
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
pub(super) struct Admitted {
    pub door: &'static str,
    pub rule: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CapLabel {
    pub cap: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WebhookLabels {
    pub webhook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WebhookCode {
    pub webhook: &'static str,
    pub code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Controller {
    pub controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ControllerResult {
    pub controller: &'static str,
    pub result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PlanResult {
    pub result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct NameLabel {
    pub name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CapabilityState {
    pub name: &'static str,
    pub state: &'static str,
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
