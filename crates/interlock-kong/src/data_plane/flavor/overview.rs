//! How a gateway is, for people: the flavor that its pods run with, the one that waits to be promoted or rolled out,
//! its pods, and the condition that reports a problem. Pure, from the objects of the inventory.

use interlock_core::api::meta::condition as types;
use interlock_core::api::object::meta_str;
use serde_json::Value;

use super::gateway::Gateway;
use super::gateway_ref::GatewayRef;
use super::reading::Effective;
use super::sources::Sources;
use crate::api::condition;

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
    let reported =
        |type_: &&str| condition(&gateway["status"], type_).filter(|found| found["status"] == problem(type_));
    let found = CONDITIONS.iter().find_map(reported)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    Some(GatewayTrouble {
        type_: text("type"),
        reason: text("reason"),
        message: text("message"),
        since: found["lastTransitionTime"].as_str(),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use crate::data_plane::flavor::inventory::GatewayInventory;
    use crate::data_plane::flavor::overview::{GatewayOverview, trouble};
    use crate::data_plane::flavor::tests::world::{data_plane, proxy};

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": "M".repeat(9000),
               "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 7})
    }

    fn kong(flavor: &str) -> Value {
        proxy("kong:3.9", Some(flavor))
    }

    /// A Deployment `kong/edge`, rolled out or not.
    fn deployment(flavor: &str, generation: i64, rolled_out: bool) -> Value {
        let observed = if rolled_out { generation } else { generation - 1 };
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "namespace": "kong", "name": "edge", "generation": generation,
                "labels": {"interlock.dev/guard": "kong-router-flavor"},
            },
            "spec": {"replicas": 1, "template": {"spec": {"containers": [kong(flavor)]}}},
            "status": {"observedGeneration": observed, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1},
        })
    }

    fn only(object: &Value) -> GatewayOverview {
        let mut inventory = GatewayInventory::default();
        inventory.take(object, "kong");
        inventory.overviews(9).pop().unwrap()
    }

    #[test]
    fn a_gateway_with_one_flavor() {
        let mut plane = data_plane(kong("expressions"), true);
        plane["spec"]["deployment"]["replicas"] = json!(3);
        plane["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        plane["status"] = json!({"readyReplicas": 2});
        let found = only(&plane);
        assert_eq!((found.live.as_str(), &found.next, found.staged), ("expressions", &None, true));
        assert_eq!((found.ready, found.wanted), (Some(2), Some(3)));
        assert_eq!(found.created.as_deref(), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn a_flavor_that_is_rolled_out_is_next() {
        let mut inventory = GatewayInventory::default();
        inventory.take(&deployment("traditional", 1, true), "kong");
        inventory.take(&deployment("traditional_compatible", 2, false), "kong");
        let found = inventory.overviews(9).pop().unwrap();
        let next = found.next.as_deref();
        assert_eq!(
            (found.live.as_str(), next, found.staged),
            ("traditional", Some("traditional_compatible"), false)
        );
    }

    #[rstest]
    #[case::well(&[("Ready", "True")], None)]
    #[case::unknown(&[("RouterFlavorConsistent", "Unknown")], None)]
    #[case::not_ready(&[("Ready", "False")], Some("Ready"))]
    #[case::mixed(&[("Ready", "False"), ("RouterFlavorConsistent", "False")], Some("RouterFlavorConsistent"))]
    #[case::stalled(&[("Ready", "False"), ("Stalled", "True")], Some("Stalled"))]
    #[case::not_stalled(&[("Stalled", "False")], None)]
    #[case::of_others(&[("Progressing", "False")], None)]
    fn the_condition_that_reports_a_problem(
        #[case] conditions: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let mut plane = data_plane(kong("expressions"), false);
        let conditions: Vec<Value> =
            conditions.iter().map(|(type_, status)| condition(type_, status)).collect();
        plane["status"] = json!({"conditions": conditions});
        let mut inventory = GatewayInventory::default();
        inventory.take(&plane, "kong");
        let kept = inventory.gateways().next().unwrap();
        let found = trouble(kept);
        assert_eq!(found.map(|found| found.type_), expected);
        assert!(found.is_none_or(|found| found.message.len() == 1024), "messages are bounded");
    }

    #[test]
    fn a_gateway_in_trouble_comes_before_the_others() {
        let mut inventory = GatewayInventory::default();
        for name in ["a", "b", "c"] {
            let mut plane = data_plane(kong("expressions"), false);
            plane["metadata"]["name"] = json!(name);
            if name == "c" {
                plane["status"] = json!({"conditions": [condition("Ready", "False")]});
            }
            inventory.take(&plane, "kong");
        }
        let names: Vec<String> =
            inventory.overviews(2).into_iter().map(|found| found.subject.name.name).collect();
        assert_eq!(names, ["c", "a"]);
    }
}
