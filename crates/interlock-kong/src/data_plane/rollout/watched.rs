//! What belongs to a DataPlane: Deployments, Services, HorizontalPodAutoscalers and PodDisruptionBudgets with our
//! label, the pods of its sides, and the endpoints to which Kubernetes copies the label of a Service. An event of one
//! that changes what a rollout reads wakes its DataPlane.

use interlock_core::api::object::meta_str;
use interlock_core::api::resource::Resource;
use interlock_core::api::watched::Labelled;
use interlock_core::kinds::capabilities::DATA_PLANES;
use interlock_core::kinds::descriptor::{Kept, Kind, Right, Role, Watch};
use interlock_core::kinds::link;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use interlock_core::topology::{KindName, fingerprint};
use serde_json::Value;

use crate::api::GROUP;
use crate::api::labels;
use crate::data_plane::labelled::{
    DATA_PLANE_AUTOSCALERS, DATA_PLANE_DEPLOYMENTS, DATA_PLANE_DISRUPTION_BUDGETS, DATA_PLANE_ENDPOINTS,
    DATA_PLANE_PODS, DATA_PLANE_SERVICES,
};
use crate::data_plane::names::DATA_PLANE;
use crate::data_plane::rollout::report::object_side;

/// Verbs on what a rollout makes.
const CARRY_OUT: &[&str] = &["create", "patch", "delete"];

/// Deployments of DataPlanes, and the rights of rollouts beside those on what belongs to DataPlanes.
pub static DEPLOYMENT: Kind = Kind {
    watch: Some(watch(&DATA_PLANE_DEPLOYMENTS)),
    schema: Some(&DEPLOYMENT_KIND),
    rights: &[
        Right::new(Role::DataPlanes, "apps", "deployments", CARRY_OUT),
        // A promotion is a patch of the annotations of the DataPlane.
        Right::new(Role::DataPlanes, GROUP, "dataplanes", &["patch"]),
        // What belongs to a DataPlane blocks its deletion, which some clusters let only those ask for who may
        // set its finalizers.
        Right::new(Role::DataPlanes, GROUP, "dataplanes/finalizers", &["update"]),
        Right::new(Role::DataPlanes, GROUP, "dataplanes/status", &["patch"]),
        // The history: a spec that is live again gets a new number.
        Right::new(
            Role::DataPlanes,
            "apps",
            "controllerrevisions",
            &["get", "list", "create", "patch", "delete"],
        ),
    ],
    ..Kind::new(Resource::built_in("apps", &["v1"], "Deployment", "deployments"))
};

/// Services of DataPlanes.
pub static SERVICE: Kind = Kind {
    watch: Some(watch(&DATA_PLANE_SERVICES)),
    schema: Some(&SERVICE_KIND),
    rights: &[Right::new(Role::DataPlanes, "", "services", CARRY_OUT)],
    ..Kind::new(Resource::built_in("", &["v1"], "Service", "services"))
};

/// HorizontalPodAutoscalers of DataPlanes.
pub static AUTOSCALER: Kind = Kind {
    watch: Some(watch(&DATA_PLANE_AUTOSCALERS)),
    schema: Some(&AUTOSCALER_KIND),
    rights: &[Right::new(Role::DataPlanes, "autoscaling", "horizontalpodautoscalers", CARRY_OUT)],
    ..Kind::new(Resource::built_in(
        "autoscaling",
        &["v2"],
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    ))
};

/// PodDisruptionBudgets of DataPlanes.
pub static DISRUPTION_BUDGET: Kind = Kind {
    watch: Some(watch(&DATA_PLANE_DISRUPTION_BUDGETS)),
    schema: Some(&DISRUPTION_BUDGET_KIND),
    rights: &[Right::new(Role::DataPlanes, "policy", "poddisruptionbudgets", CARRY_OUT)],
    ..Kind::new(Resource::built_in("policy", &["v1"], "PodDisruptionBudget", "poddisruptionbudgets"))
};

/// Whether a child is as it was applied is seen by whose its fields are.
static KEPT: Kept = Kept { fields: &[], managed_fields: true };

const fn watch(labelled: &'static Labelled) -> Watch {
    Watch::required(&DATA_PLANES).labelled(labelled).kept(&KEPT)
}

static DEPLOYMENT_KIND: DeclaredKind = DeclaredKind {
    about: "the pods of a side of a DataPlane",
    facts: &[object_side::COLOUR, object_side::SIDE, object_side::READY, object_side::WANTED],
    ..schema(&DATA_PLANE_DEPLOYMENTS)
};

static SERVICE_KIND: DeclaredKind =
    DeclaredKind { about: "the way to the pods of a side of a DataPlane", ..schema(&DATA_PLANE_SERVICES) };

static AUTOSCALER_KIND: DeclaredKind =
    DeclaredKind { about: "scales the live side of a DataPlane", ..schema(&DATA_PLANE_AUTOSCALERS) };

static DISRUPTION_BUDGET_KIND: DeclaredKind = DeclaredKind {
    about: "how many pods of a DataPlane an eviction leaves",
    ..schema(&DATA_PLANE_DISRUPTION_BUDGETS)
};

const fn schema(labelled: &Labelled) -> DeclaredKind {
    DeclaredKind {
        name: KindName::new(labelled.group, labelled.name),
        about: "",
        facts: &[object_side::COLOUR, object_side::SIDE],
        links: &[OWNER],
        sections: None,
        events: EventRow {
            create: EventTriggers::Roots(&[TO_DATA_PLANE]),
            update: EventScope::When(&[When {
                differs: &[CONTENT, MARKS, STATUS],
                concerns: &[TO_DATA_PLANE],
            }]),
            delete: EventTriggers::Roots(&[TO_DATA_PLANE]),
        },
    }
}

const TO_DATA_PLANE: LinkPath = LinkPath::Up(Family::Owns, DATA_PLANE);

const CONTENT: Fact = Fact { name: "content", read: ReadDepth::Mark(fingerprint::content) };
const MARKS: Fact = Fact { name: "marks", read: ReadDepth::Mark(marks) };
const STATUS: Fact = Fact { name: "status", read: ReadDepth::Mark(status) };

/// Matched by name, so that a recreated DataPlane is requeued when the garbage collector deletes the children of its
/// predecessor.
const OWNER: Link = Link {
    name: link::DATA_PLANE,
    family: Family::Owns,
    other: Side::Parent,
    kind: Some(DATA_PLANE),
    follows: false,
    read: owner,
};

fn owner(holder: &Holder<'_>) -> Vec<Ref> {
    let references = holder.object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut controllers = references.filter(|reference| reference["controller"] == true);
    let owner = controllers.find(|reference| {
        let group = reference["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        reference["kind"] == DATA_PLANE.kind && group.is_some_and(|(group, _)| group == GROUP)
    });
    let name = owner.and_then(|owner| owner["name"].as_str());
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}

/// Fingerprint of the metadata that a rollout sets. The controller of Deployments numbers their revisions by
/// annotations of its own.
fn marks(object: &Value) -> u64 {
    const REVISIONS: &str = "deployment.kubernetes.io/";
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations: Vec<_> = annotations.filter(|(name, _)| !name.starts_with(REVISIONS)).collect();
    fingerprint::of((
        &metadata["labels"],
        annotations,
        &metadata["ownerReferences"],
        meta_str(object, "deletionTimestamp"),
    ))
}

/// Fingerprint of the status without what changes by itself: measurements, and the times and texts of
/// conditions.
fn status(object: &Value) -> u64 {
    const BY_ITSELF: [&str; 3] = ["conditions", "currentMetrics", "lastScaleTime"];
    let status = &object["status"];
    let members = status.as_object().into_iter().flatten();
    let members: Vec<_> = members.filter(|(name, _)| !BY_ITSELF.contains(&name.as_str())).collect();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions.map(|c| (&c["type"], &c["status"], &c["reason"])).collect();
    fingerprint::of((members, conditions))
}

/// Pods of DataPlanes.
pub static POD: Kind = Kind {
    watch: Some(Watch::required(&DATA_PLANES).labelled(&DATA_PLANE_PODS).kept(&KEPT_POD)),
    schema: Some(&POD_KIND),
    ..Kind::new(Resource::built_in("", &["v1"], "Pod", "pods"))
};

/// Endpoints of the Services of DataPlanes.
pub static ENDPOINT_SLICE: Kind = Kind {
    watch: Some(Watch::required(&DATA_PLANES).labelled(&DATA_PLANE_ENDPOINTS).kept(&KEPT_ENDPOINTS)),
    schema: Some(&ENDPOINTS_KIND),
    ..Kind::new(Resource::built_in("discovery.k8s.io", &["v1"], "EndpointSlice", "endpointslices"))
};

static KEPT_POD: Kept = Kept {
    fields: &[
        "/spec/hostNetwork",
        "/spec/containers",
        "/status/podIP",
        "/status/phase",
        "/status/conditions",
    ],
    managed_fields: false,
};
static KEPT_ENDPOINTS: Kept = Kept { fields: &["/endpoints"], managed_fields: false };

static POD_KIND: DeclaredKind =
    DeclaredKind { about: "a pod of a side of a DataPlane", ..pod_schema(&DATA_PLANE_PODS) };
static ENDPOINTS_KIND: DeclaredKind =
    DeclaredKind { about: "the endpoints of a Service of a DataPlane", ..pod_schema(&DATA_PLANE_ENDPOINTS) };

const fn pod_schema(labelled: &Labelled) -> DeclaredKind {
    DeclaredKind {
        name: KindName::new(labelled.group, labelled.name),
        about: "",
        facts: &[],
        links: &[LABELLED_OWNER],
        sections: None,
        events: EventRow {
            create: EventTriggers::Roots(&[TO_DATA_PLANE]),
            update: EventScope::When(&[When { differs: &[SERVES], concerns: &[TO_DATA_PLANE] }]),
            delete: EventTriggers::Roots(&[TO_DATA_PLANE]),
        },
    }
}

const SERVES: Fact = Fact { name: "serves", read: ReadDepth::Mark(serves) };

/// Their owners are a ReplicaSet and a Service; the label names the DataPlane.
const LABELLED_OWNER: Link = Link { read: labelled_owner, ..OWNER };

fn labelled_owner(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["metadata"]["labels"][labels::APP].as_str();
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}

/// Fingerprint of what the gates of a promotion read.
fn serves(object: &Value) -> u64 {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions.map(|c| (&c["type"], &c["status"])).collect();
    let endpoints = object["endpoints"].as_array().into_iter().flatten();
    let endpoints: Vec<_> = endpoints.map(|e| (&e["conditions"]["ready"], &e["targetRef"]["name"])).collect();
    let status = &object["status"];
    let is_going = meta_str(object, "deletionTimestamp").is_some();
    fingerprint::of((&status["podIP"], &status["phase"], conditions, endpoints, is_going))
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds;
    use interlock_core::topology::{Epoch, Graph, GraphChange, KindId, NodeId};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const EPOCH: Epoch = Epoch(1);

    /// A graph with two DataPlanes, and one object that belongs to `edge`.
    struct World {
        graph: Graph,
        kind: KindId,
        object: Value,
        version: u64,
    }

    impl World {
        fn with(kind: &Labelled) -> Self {
            let mut graph = kinds::graph(crate::all());
            let data_planes = graph.kind(DATA_PLANE.group, DATA_PLANE.kind);
            let kind = graph.kind(kind.group, kind.name);
            for kind in [data_planes, kind] {
                graph.kind_available(kind, EPOCH);
                graph.apply(kind, EPOCH, GraphChange::Listing(""));
                graph.apply(kind, EPOCH, GraphChange::Synced(""));
            }
            for name in ["edge", "other"] {
                let metadata = json!({"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"});
                graph.apply(data_planes, EPOCH, GraphChange::Applied(&json!({"metadata": metadata})));
            }
            let object = json!({
                "metadata": {
                    "namespace": "ns", "name": "child", "uid": "u",
                    "labels": {"app": "edge"},
                    "annotations": {"deployment.kubernetes.io/revision": "1", "team": "edge"},
                    "ownerReferences": [{
                        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "name": "edge",
                        "uid": "uid-of-edge", "controller": true,
                    }],
                },
                "spec": {"replicas": 1},
                "status": {
                    "readyReplicas": 1,
                    "conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m",
                                    "lastUpdateTime": "2026-01-01T00:00:00Z"}],
                },
            });
            let mut world = Self { graph, kind, object, version: 0 };
            assert_eq!(world.write(|_| {}), edge(), "it appears");
            world
        }

        /// The objects that a change of it concerns.
        fn write(&mut self, change: impl FnOnce(&mut Value)) -> Vec<NodeId> {
            change(&mut self.object);
            self.version += 1;
            self.object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.graph.apply(self.kind, EPOCH, GraphChange::Applied(&self.object)).roots
        }

        fn delete(&mut self) -> Vec<NodeId> {
            self.graph.apply(self.kind, EPOCH, GraphChange::Deleted(&self.object)).roots
        }
    }

    fn edge() -> Vec<NodeId> {
        vec![NodeId::new(DATA_PLANE, "ns", "edge")]
    }

    /// A child whose label was taken off and put back goes on waking its DataPlane.
    #[test]
    fn a_child_that_was_stripped_and_comes_back_is_heard_again() {
        let mut world = World::with(&DATA_PLANE_DEPLOYMENTS);
        world.write(|object| {
            object["metadata"]["labels"] = Value::Null;
            object["metadata"]["ownerReferences"] = Value::Null;
        });
        assert_eq!(world.delete(), Vec::new(), "it was told before");
        let mut world = World::with(&DATA_PLANE_DEPLOYMENTS);
        let before = world.object.clone();
        world.object["metadata"]["labels"] = Value::Null;
        world.object["metadata"]["ownerReferences"] = Value::Null;
        world.object["metadata"]["resourceVersion"] = json!("7");
        world.version = 7;
        assert_eq!(world.delete(), edge(), "the watch tells that it is gone");
        assert_eq!(world.write(|object| *object = before), edge(), "it is back");
        assert_eq!(world.write(|object| object["spec"]["replicas"] = json!(2)), edge(), "it is edited");
    }

    #[rstest]
    #[case::nothing(|_: &mut Value| {}, false)]
    #[case::whose_fields_they_are(|o: &mut Value| o["metadata"]["managedFields"] = json!([{"manager": "x"}]), false)]
    #[case::revision(|o: &mut Value| o["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("2"), false)]
    #[case::time_of_a_condition(
        |o: &mut Value| o["status"]["conditions"][0]["lastUpdateTime"] = json!("2026-01-02T00:00:00Z"), false
    )]
    #[case::text_of_a_condition(|o: &mut Value| o["status"]["conditions"][0]["message"] = json!("other"), false)]
    #[case::measurements(|o: &mut Value| o["status"]["currentMetrics"] = json!([{"type": "Resource"}]), false)]
    #[case::condition(|o: &mut Value| o["status"]["conditions"][0]["status"] = json!("False"), true)]
    #[case::ready_pods(|o: &mut Value| o["status"]["readyReplicas"] = json!(2), true)]
    #[case::spec(|o: &mut Value| o["spec"]["replicas"] = json!(2), true)]
    #[case::label(|o: &mut Value| o["metadata"]["labels"]["app"] = json!("other"), true)]
    #[case::labels(|o: &mut Value| o["metadata"]["labels"] = Value::Null, true)]
    #[case::annotation(|o: &mut Value| o["metadata"]["annotations"]["team"] = json!("other"), true)]
    #[case::owners(|o: &mut Value| o["metadata"]["ownerReferences"] = Value::Null, true)]
    #[case::controller(|o: &mut Value| o["metadata"]["ownerReferences"][0]["controller"] = json!(false), true)]
    #[case::deletion(|o: &mut Value| o["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"), true)]
    fn a_change_concerns_the_data_plane(
        #[case] change: fn(&mut Value),
        #[case] concerned: bool,
        #[values(
            DATA_PLANE_DEPLOYMENTS,
            DATA_PLANE_SERVICES,
            DATA_PLANE_AUTOSCALERS,
            DATA_PLANE_DISRUPTION_BUDGETS
        )]
        kind: Labelled,
    ) {
        let mut world = World::with(&kind);
        assert_eq!(world.write(change), if concerned { edge() } else { Vec::new() });
        assert_eq!(world.write(|_| {}), [], "the same again");
    }

    #[test]
    fn a_generation_stands_for_the_spec() {
        let mut world = World::with(&DATA_PLANE_DEPLOYMENTS);
        world.write(|o| o["metadata"]["generation"] = json!(1));
        assert_eq!(world.write(|o| o["metadata"]["generation"] = json!(2)), edge());
    }

    /// A watch of labelled objects reports one that lost the label as deleted.
    #[test]
    fn one_that_goes_concerns_its_last_data_plane() {
        let mut world = World::with(&DATA_PLANE_SERVICES);
        assert_eq!(world.delete(), edge());

        let mut world = World::with(&DATA_PLANE_SERVICES);
        let moved = world.write(|o| o["metadata"]["ownerReferences"][0]["name"] = json!("other"));
        assert_eq!(moved, [edge(), vec![NodeId::new(DATA_PLANE, "ns", "other")]].concat());
        assert_eq!(world.delete(), [NodeId::new(DATA_PLANE, "ns", "other")]);
    }

    #[rstest]
    #[case::another_kind("gateway-operator.konghq.com/v1beta1", "ControlPlane")]
    #[case::another_group("example.com/v1", "DataPlane")]
    #[case::no_group("v1", "DataPlane")]
    fn one_of_others_concerns_nobody(#[case] api_version: &str, #[case] kind: &str) {
        let mut world = World::with(&DATA_PLANE_SERVICES);
        world.write(|o| {
            o["metadata"]["ownerReferences"][0]["apiVersion"] = json!(api_version);
            o["metadata"]["ownerReferences"][0]["kind"] = json!(kind);
        });
        assert_eq!(world.write(|o| o["spec"]["replicas"] = json!(5)), []);
    }
}
