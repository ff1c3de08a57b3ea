//! The pods of DataPlanes, and the endpoints of their Services: those with the label of a side, and those to which
//! Kubernetes copies our label from the Service. An event of one that changes what a gate reads wakes its DataPlane.

use interlock_core::api::object::meta_str;
use interlock_core::api::resource::Resource;
use interlock_core::api::watched::Labelled;
use interlock_core::kinds::capabilities::DATA_PLANES;
use interlock_core::kinds::descriptor::{Kept, Kind, Watch};
use interlock_core::kinds::link;
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use interlock_core::topology::{KindName, fingerprint};
use serde_json::Value;

use crate::api::labels;
use crate::data_plane::labelled::{DATA_PLANE_ENDPOINTS, DATA_PLANE_PODS};
use crate::data_plane::names::DATA_PLANE;

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
    DeclaredKind { about: "a pod of a side of a DataPlane", ..schema(&DATA_PLANE_PODS) };
static ENDPOINTS_KIND: DeclaredKind =
    DeclaredKind { about: "the endpoints of a Service of a DataPlane", ..schema(&DATA_PLANE_ENDPOINTS) };

const fn schema(labelled: &Labelled) -> DeclaredKind {
    DeclaredKind {
        name: KindName::new(labelled.group, labelled.name),
        about: "",
        facts: &[],
        links: &[OWNER],
        sections: None,
        events: EventRow {
            create: EventTriggers::Roots(&[TO_DATA_PLANE]),
            update: EventScope::When(&[When { differs: &[SERVES], concerns: &[TO_DATA_PLANE] }]),
            delete: EventTriggers::Roots(&[TO_DATA_PLANE]),
        },
    }
}

const TO_DATA_PLANE: LinkPath = LinkPath::Up(Family::Owns, DATA_PLANE);
const SERVES: Fact = Fact { name: "serves", read: ReadDepth::Mark(serves) };

/// Their owners are a ReplicaSet and a Service; the label names the DataPlane.
const OWNER: Link = Link {
    name: link::DATA_PLANE,
    family: Family::Owns,
    other: Side::Parent,
    kind: Some(DATA_PLANE),
    follows: false,
    read: owner,
};

fn owner(holder: &Holder<'_>) -> Vec<Ref> {
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
