//! What the page about this process shows, as JSON: troubles, running plans, gateways, Instances with their objects,
//! OperatorVersions, and capabilities. Every list is bounded and counts what it leaves out; no text of the cluster
//! is longer than a page can show.

mod capability;
mod layout;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use interlock_core::api::display::display;
use interlock_core::kinds;
use interlock_core::kinds::page::{
    Draw, Drawing, MESSAGE_LIMIT, PagePart, PageSection, Row, SectionName, TroubleRow, TroubleState, View,
};
use interlock_core::kinds::row::name;
use jiff::Timestamp;
use serde::Serialize;

use self::capability::CapabilityRow;
pub use self::layout::PlacedDrawing;
use super::store::Store;
use super::tables::Tables;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, CapabilityStatus};

/// The page's data.
#[derive(Debug, Default, Serialize)]
pub struct Document {
    trouble: PageSection<TroubleRow>,
    /// What the kinds show.
    #[serde(flatten)]
    sections: BTreeMap<&'static str, PageSection<Row>>,
    #[serde(flatten)]
    members: BTreeMap<&'static str, Row>,
    capabilities: Vec<CapabilityRow>,
}

impl Document {
    /// What is known at a time.
    pub fn of(store: &Store, snapshot: &CapabilitySnapshot, now: Timestamp) -> Self {
        let mut document = Self::default();
        let mut sections: Vec<(SectionName, PageSection<Row>)> = Vec::new();
        for part in parts(&store.read(), store.kinds(), now) {
            document.trouble.total += part.trouble.total;
            document.trouble.shown.extend(part.trouble.shown);
            sections.extend(part.sections);
            document.members.extend(part.members);
        }
        sections.sort_by_key(|(name, _)| *name);
        for (SectionName { name, .. }, section) in sections {
            document.sections.entry(name).or_default().add(section);
        }
        document.trouble.shown.sort_by_key(|row| (row.state, Reverse(row.since)));
        let troubled = snapshot.capabilities.iter().filter_map(troubled).collect::<Vec<_>>();
        let mut trouble = PageSection { total: troubled.len(), shown: troubled };
        trouble.add(document.trouble);
        let capabilities = snapshot.capabilities.iter().map(CapabilityRow::of).collect();
        Self { trouble, capabilities, ..document }
    }

    /// As JSON for the page.
    pub fn json(&self) -> Vec<u8> {
        // A struct of texts and numbers always serialises.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What each kind shows.
fn parts(tables: &Tables, kinds: kinds::Kinds, now: Timestamp) -> Vec<PagePart> {
    with_view(tables, kinds, now, |view| kinds.iter().filter_map(|kind| Some((kind.page?)(view))).collect())
}

/// Draws what the first kind that draws has, without the tables.
fn drawing(tables: &Tables, kinds: kinds::Kinds, now: Timestamp) -> Draw {
    let drawn =
        with_view(tables, kinds, now, |view| kinds.iter().find_map(|kind| Some((kind.drawing?)(view))));
    drawn.unwrap_or_else(|| Box::new(Drawing::default))
}

fn with_view<T>(
    tables: &Tables,
    kinds: kinds::Kinds,
    now: Timestamp,
    show: impl FnOnce(&View<'_>) -> T,
) -> T {
    show(&View {
        schemas: &kinds::schemas(kinds),
        graph: &tables.graph,
        inventories: &tables.inventories,
        whole: &|id| tables.whole(id),
        left_out: &|id| tables.packages.left_out(&name(id)),
        now,
    })
}

/// A capability that cannot do its work, though it should.
fn troubled(status: &CapabilityStatus) -> Option<TroubleRow> {
    let troubled = match status.state {
        CapabilityPhase::Forbidden(_)
        | CapabilityPhase::Degraded(..)
        | CapabilityPhase::Outdated(..)
        | CapabilityPhase::Unknown(_) => true,
        CapabilityPhase::Disabled
        | CapabilityPhase::Waiting(_)
        | CapabilityPhase::Starting(_)
        | CapabilityPhase::Running(_)
        | CapabilityPhase::Draining(_) => false,
    };
    troubled.then(|| TroubleRow {
        kind: "Capability",
        namespace: String::new(),
        name: status.name.to_owned(),
        state: TroubleState::Stalled,
        reason: status.state.reason().to_owned(),
        message: display(&status.state.message(), MESSAGE_LIMIT),
        since: Some(status.since),
        also: Vec::new(),
        next: "Compare the installation with what this version needs.".to_owned(),
        command: "interlock verify".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use interlock_core::api::object::Gvk;
    use interlock_core::kinds::page::ROWS;
    use interlock_core::topology::Epoch;
    use interlock_kong::api as kong;
    use interlock_kong::api::labels;
    use interlock_kong::data_plane::rollout::side::Colour;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::watch::WatchChange;
    use crate::runtime::index::settled;

    fn condition(type_: &str, status: &str, reason: &str, at: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": format!("{type_} {reason}"),
               "lastTransitionTime": at})
    }

    fn instance(name: &str, change: &Value) -> Value {
        let mut object = settled();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(format!("uid-of-{name}"));
        json_patch::merge(&mut object, change);
        object
    }

    fn failed(at: &str) -> Value {
        json!({"status": {
            "planStatus": {"deploy": {"status": "FATAL_ERROR", "lastUpdatedTimestamp": "2999-01-01T00:00:00Z"}},
            "conditions": [
                condition("Ready", "False", "PlanInFatalError", at), condition("Stalled", "True", "PlanInFatalError", at),
            ],
        }})
    }

    fn running(step: &str) -> Value {
        json!({"status": {
            "planStatus": {"deploy": {"uid": "r", "status": "IN_PROGRESS", "phases": [
                {"name": "p", "status": "IN_PROGRESS", "steps": [
                    {"name": "before", "status": "COMPLETE"}, {"name": step, "status": "IN_PROGRESS"},
                    {"name": "after", "status": "PENDING"},
                ]},
            ]}},
            "conditions": [condition("Ready", "Unknown", "PlanInProgress", "2026-01-01T00:00:00Z")],
        }})
    }

    fn document(objects: &[Value]) -> Value {
        let store = Store::new(crate::kinds::all(), true);
        for object in objects {
            let kind = Gvk::of(object).unwrap();
            store.observe(&kind, Epoch(1), &WatchChange::Applied(Arc::new(object.clone())));
        }
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let document = Document::of(&store, &CapabilitySnapshot::default(), now);
        serde_json::from_slice(&document.json()).unwrap()
    }

    #[test]
    fn trouble_comes_first_the_most_recent_before_the_others() {
        let page = document(&[
            instance("a-calm", &json!({})),
            instance("b-runs", &running("now")),
            instance("c-failed", &failed("2026-01-01T00:00:00Z")),
            instance("d-failed", &failed("2026-01-01T00:30:00Z")),
        ]);
        let names = |list: &Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&page["instances"]), ["d-failed", "c-failed", "b-runs", "a-calm"]);
        assert_eq!(names(&page["trouble"]["shown"]), ["d-failed", "c-failed"]);
        let first = &page["trouble"]["shown"][0];
        assert_eq!(
            (first["state"].as_str(), first["reason"].as_str()),
            (Some("failed"), Some("PlanInFatalError"))
        );
        assert_eq!(first["since"], "2026-01-01T00:30:00Z");
        assert!(
            first["command"].as_str().unwrap().starts_with("interlock plan retry d-failed -n "),
            "{first}"
        );
        assert_eq!((&page["total"], &page["running"]), (&json!(4), &json!(1)));
    }

    #[test]
    fn a_plan_that_runs_says_how_far_it_is() {
        let page = document(&[instance("demo", &running("now"))]);
        let plan = &page["plans"]["shown"][0];
        assert_eq!(page["plans"]["total"], 1);
        assert_eq!((&plan["done"], &plan["steps"]), (&json!(1), &json!(3)));
        assert_eq!((&plan["phase"], &plan["step"]), (&json!("p"), &json!("now")));
    }

    #[test]
    fn texts_of_the_cluster_are_bounded_and_keep_their_direction() {
        let odd = format!("\u{202e}<script>{}", "x".repeat(5000));
        let mut object = instance("demo", &running(&odd));
        object["status"]["conditions"] = json!([{"type": "Stalled", "status": "True", "reason": odd, "message": odd,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let page = document(&[object]);
        assert!(page["plans"]["shown"][0]["step"].as_str().unwrap().starts_with("\\u202e<script>x"));
        let longest = |value: &Value| value.as_str().unwrap().chars().count();
        let first = &page["trouble"]["shown"][0];
        assert!(longest(&first["reason"]) < 100 && longest(&first["message"]) < 620, "{first}");
        assert!(!page.to_string().contains('\u{202e}'));
    }

    #[test]
    fn thousands_are_counted_and_some_are_shown() {
        let many = (0..1000).map(|number| instance(&format!("i{number}"), &failed("2026-01-01T00:00:00Z")));
        let page = document(&many.collect::<Vec<_>>());
        assert_eq!((&page["total"], &page["trouble"]["total"]), (&json!(1000), &json!(1000)));
        let count = |list: &Value| list.as_array().unwrap().len();
        assert_eq!((count(&page["instances"]), count(&page["trouble"]["shown"])), (200, ROWS));
    }

    #[test]
    fn an_operator_version_has_its_users_and_its_age() {
        let mut user = instance("demo", &json!({}));
        user["metadata"]["namespace"] = json!("team");
        user["spec"]["operatorVersion"] = json!({"name": "web-0.1.0"});
        let version = json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion",
            "metadata": {"namespace": "team", "name": "web-0.1.0", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"operator": {"name": "web"}, "version": "0.1.0"},
        });
        let page = document(&[version, user]);
        let row = &page["versions"]["shown"][0];
        assert_eq!((&row["users"], &row["created"]), (&json!(1), &json!("2026-01-01T00:00:00Z")));
    }

    #[test]
    fn a_gateway_of_the_gateway_api_has_its_class() {
        let api = "gateway.networking.k8s.io/v1";
        let class =
            json!({"apiVersion": api, "kind": "GatewayClass", "metadata": {"name": "kong", "uid": "1"}});
        let gateway = json!({
            "apiVersion": api, "kind": "Gateway",
            "metadata": {"namespace": "web", "name": "entry", "uid": "2", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"gatewayClassName": "kong"},
            "status": {"conditions": [condition("Programmed", "False", "Pending", "2026-01-01T00:00:00Z")]},
        });
        let page = document(&[class, gateway]);
        let row = &page["gateways"]["shown"][0];
        assert_eq!((&row["kind"], &row["flavor"]), (&json!("Gateway"), &json!("class kong")));
        assert_eq!((&row["programmed"], &row["created"]), (&json!(false), &json!("2026-01-01T00:00:00Z")));
    }

    #[test]
    fn a_rollout_has_its_sides_its_gates_and_what_to_do() {
        let uid = "00000000-0000-4000-8000-000000000001";
        let deployment = |name: &str, colour: Colour, state: &str, ready: u64| {
            let owner = json!({
                "apiVersion": kong::API_VERSION, "kind": "DataPlane", "name": "edge", "uid": uid, "controller": true,
            });
            let selector = json!({labels::SELECTOR: colour.selector(uid)});
            let labels = json!({labels::MANAGED_BY: "dataplane", labels::DEPLOYMENT_STATE: state});
            json!({
                "apiVersion": "apps/v1", "kind": "DataPlaneDeployment",
                "metadata": {
                    "namespace": "kong", "name": name, "uid": name, "labels": labels, "ownerReferences": [owner],
                },
                "spec": {"replicas": 3, "selector": {"matchLabels": selector}}, "status": {"readyReplicas": ready},
            })
        };
        let rolled_out = json!({
            "type": "RolledOut", "reason": "Progressing", "status": "False", "message": "Preview\nnot ready",
            "lastTransitionTime": "2026-01-01T00:30:00Z",
        });
        let plane = json!({
            "apiVersion": kong::API_VERSION, "kind": "DataPlane",
            "metadata": {"namespace": "kong", "name": "edge", "uid": uid},
            "spec": {"deployment": {"replicas": 3, "rollout": {"strategy": {"blueGreen": {}}}, "podTemplateSpec": {}}},
            "status": {"rollout": {"conditions": [rolled_out]}},
        });
        let page = document(&[
            deployment("b", Colour::Green, "preview", 1),
            deployment("a", Colour::Blue, "live", 3),
            plane.clone(),
        ]);
        let rollout = &page["gateways"]["shown"][0]["rollout"];
        assert_eq!(
            (&rollout["phase"], &rollout["since"]),
            (&json!("Staging"), &json!("2026-01-01T00:30:00Z"))
        );
        assert_eq!(
            rollout["sides"],
            json!([
                {"side": "live", "colour": "blue", "ready": 3, "wanted": 3},
                {"side": "preview", "colour": "green", "ready": 1, "wanted": 3},
            ])
        );
        let gate = |at: usize| (&rollout["gates"][at]["state"], &rollout["gates"][at]["waitsFor"]);
        assert_eq!(gate(0), (&json!("passed"), &Value::Null));
        let waits_for = json!("all pods of the preview to be ready (1 of 3 are)");
        assert_eq!(gate(1), (&json!("closed"), &waits_for));
        // Nothing records what is live.
        assert_eq!(rollout["command"], "interlock rollout status edge -n kong");
        // Of a change that takes effect at once there is nothing to say.
        let mut plain = plane;
        plain["spec"]["deployment"]["rollout"] = Value::Null;
        assert_eq!(document(&[plain])["gateways"]["shown"][0].get("rollout"), None);
    }

    #[test]
    fn a_gateway_of_two_flavors_is_in_trouble() {
        let plane = json!({
            "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
            "metadata": {"namespace": "kong", "name": "edge", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"deployment": {"replicas": 3, "podTemplateSpec": {"spec": {"containers": [
                {"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}]},
            ]}}}},
            "status": {"readyReplicas": 2, "conditions": [
                condition("RouterFlavorConsistent", "False", "Mixed", "2026-01-01T00:10:00Z"),
            ]},
        });
        let page = document(&[plane]);
        let row = &page["gateways"]["shown"][0];
        assert_eq!((&row["kind"], &row["flavor"]), (&json!("DataPlane"), &json!("expressions")));
        assert_eq!((&row["ready"], &row["wanted"]), (&json!(2), &json!(3)));
        let trouble = &page["trouble"]["shown"][0];
        assert_eq!((&trouble["kind"], &trouble["reason"]), (&json!("DataPlane"), &json!("Mixed")));
        assert_eq!(trouble["command"], "interlock flavor diagnose dataplane/edge -n kong");
    }

    #[test]
    fn a_stalled_data_plane_is_in_trouble() {
        let plane = json!({
            "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
            "metadata": {"namespace": "kong", "name": "edge", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}}},
            "status": {"conditions": [condition("Stalled", "True", "NameTaken", "2026-01-01T00:10:00Z")]},
        });
        let trouble = &document(&[plane])["trouble"]["shown"][0];
        assert_eq!((&trouble["kind"], &trouble["reason"]), (&json!("DataPlane"), &json!("NameTaken")));
        assert_eq!(trouble["command"], "interlock why dataplane/kong/edge");
    }
}
