//! How a gateway is, for people: the flavor that its pods run with, the one that waits to be promoted or rolled out,
//! its pods, and the condition that reports a problem. Pure, from the objects of the inventory.

use interlock_core::api::meta::condition as types;
use interlock_core::api::object::meta_str;
use serde_json::Value;

use super::gateway::Gateway;
use super::gateway_ref::GatewayRef;
use super::reading::Effective;
use super::sources::Sources;

/// Conditions that report a problem, the most telling first: ours, that of Kong's operator, that of Deployments.
pub const CONDITIONS: [&str; 4] =
    [types::ROUTER_FLAVOR_CONSISTENT, types::STALLED, types::READY, "Available"];

/// The status of a condition that reports a problem.
fn problem(type_: &str) -> &'static str {
    if type_ == types::STALLED { "True" } else { "False" }
}

/// How a gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayOverview {
    /// Its kind and name.
    pub subject: GatewayRef,
    /// The flavor of its pods, or why there is none.
    pub live: String,
    /// The flavor of its spec, where its pods have another one.
    pub next: Option<String>,
    /// Whether `next` waits for a promotion; else it is being rolled out.
    pub staged: bool,
    /// Pods that are ready, where its status says so.
    pub ready: Option<i64>,
    /// Pods that it asks for.
    pub wanted: Option<i64>,
    /// `metadata.creationTimestamp`.
    pub created: Option<String>,
}

/// A condition of a gateway that reports a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayTrouble<'a> {
    pub type_: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    /// Its `lastTransitionTime`.
    pub since: Option<&'a str>,
}

impl GatewayOverview {
    /// Of a gateway as stored, and with the template of its pods; `None` for another kind.
    pub fn of(stored: &Value, running: &Value, sources: &dyn Sources) -> Option<Self> {
        let namespace = meta_str(stored, "namespace").unwrap_or_default();
        let subject = Gateway::subject_of(stored, namespace)?;
        let written = Gateway::read(stored, namespace, sources).ok().flatten();
        let staged = written.as_ref().is_some_and(|written| written.spec.staged);
        let written = written.map(|written| written.spec.reading.effective);
        let live = Gateway::runs(running, namespace, sources).ok().flatten();
        let flavor = |effective: &Effective| {
            effective.known().map_or_else(|| effective.to_string(), |flavor| flavor.as_str().to_owned())
        };
        let live = live.as_ref().map_or_else(|| "unknown: its spec cannot be read".to_owned(), flavor);
        let next = written.as_ref().map(flavor).filter(|next| *next != live);
        let deployment =
            if stored["kind"] == "DataPlane" { &stored["spec"]["deployment"] } else { &stored["spec"] };
        Some(Self {
            subject,
            live,
            next,
            staged,
            ready: stored["status"]["readyReplicas"].as_i64(),
            wanted: deployment["replicas"].as_i64(),
            created: meta_str(stored, "creationTimestamp").map(str::to_owned),
        })
    }
}

/// The first condition of a gateway that reports a problem.
pub fn trouble(gateway: &Value) -> Option<GatewayTrouble<'_>> {
    let all = gateway["status"]["conditions"].as_array()?;
    let found = CONDITIONS.iter().find_map(|type_| {
        all.iter().find(|condition| condition["type"] == *type_ && condition["status"] == problem(type_))
    })?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    Some(GatewayTrouble {
        type_: text("type"),
        reason: text("reason"),
        message: text("message"),
        since: found["lastTransitionTime"].as_str(),
    })
}
