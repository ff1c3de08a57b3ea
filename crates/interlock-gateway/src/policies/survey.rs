//! All objects and policies, linked: what can be asked about them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{
    Block, DecodeError, Index, NodeKey, ObjectKey, ObjectKind, Path, Policy, PolicyId, Precedence,
    RefusalReason, RouteLinks, Subject, TargetState,
};
use serde_json::{Value, json};

use super::expressions::{ExpressionFinding, expressions};
use super::inert::{Inert, InertRules};
use super::known::PolicyKinds;
use super::labels::Labels;
use super::seen::{ReadPolicy, SeenPolicy};
use crate::names::{ENVOY_GATEWAY, GATEWAY_API};

/// What the names of Envoy Gateway's controllers begin with, where its configuration does not set another.
const ENVOY_GATEWAY_CONTROLLERS: &str = "gateway.envoyproxy.io/";

/// A kind that could not be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedKind {
    /// The name of the kind; of policies, as [`PolicyKinds`] has it.
    pub kind: String,
    /// The one namespace that could be listed; none where no namespace could.
    pub listed_namespace: Option<String>,
}

/// Gateways, routes and policies, and what the policies do.
pub struct PolicySurvey {
    pub(super) index: Index,
    pub(super) kinds: PolicyKinds,
    pub(super) policies: BTreeMap<PolicyId, SeenPolicy>,
    /// The policies of each node, by kind and the older one first.
    attached: BTreeMap<NodeKey, Vec<PolicyId>>,
    /// The namespaces of policies that select in others too, by the kind of the policies and that of the targets.
    pub(super) selecting: BTreeMap<(Arc<str>, ObjectKind), BTreeSet<Arc<str>>>,
    pub(super) unlisted: Vec<UnlistedKind>,
    assumed_classes: BTreeSet<String>,
    /// `controllerName` by GatewayClass.
    controllers: BTreeMap<String, String>,
    unknown_kinds: BTreeSet<String>,
    faults: Vec<String>,
}

impl PolicySurvey {
    /// Links all objects. Others than Gateways, routes, policies and what decides about them are passed over.
    ///
    /// With `assume_classes` a Gateway's class is taken as present where it is not among the objects.
    pub fn of(
        kinds: PolicyKinds,
        objects: &[Value],
        unlisted: Vec<UnlistedKind>,
        assume_classes: bool,
    ) -> Self {
        let mut survey = Self {
            index: Index::new(kinds.all()),
            kinds,
            policies: BTreeMap::new(),
            attached: BTreeMap::new(),
            selecting: BTreeMap::new(),
            unlisted,
            assumed_classes: BTreeSet::new(),
            controllers: BTreeMap::new(),
            unknown_kinds: BTreeSet::new(),
            faults: Vec::new(),
        };
        // A policy that is older than those before it takes the target from all of them.
        let mut oldest_first: Vec<&Value> = objects.iter().collect();
        oldest_first.sort_by(|one, other| age(one).cmp(&age(other)));
        let labels = Labels::of(objects);
        for object in oldest_first {
            survey.observe(object, &labels);
        }
        if assume_classes {
            survey.assume_classes(objects);
        }
        let faults = survey.index.faults().iter();
        survey.faults.extend(faults.map(|(subject, why)| format!("{}: {why}", subject_name(subject))));
        survey.attach();
        survey
    }

    fn observe(&mut self, object: &Value, labels: &Labels) {
        let (group, kind) = group_and_kind(object);
        let Some(name) = self.kinds.name_of(group, kind).map(str::to_owned) else {
            let spec = &object["spec"];
            let targets = ["targetRef", "targetRefs"].map(|field| &spec[field]);
            if targets.iter().any(|target| target.is_object() || target.is_array()) {
                self.unknown_kinds.insert(format!("{kind}.{group}"));
            }
            return self.index_observe(object);
        };
        let spec = &object["spec"];
        let Some(ReadPolicy { id, mut seen, object }) = self.kinds.read(&name, object, labels) else {
            return;
        };
        let said: Vec<ExpressionFinding> =
            expressions(&name, spec).into_iter().filter(ExpressionFinding::is_said).collect();
        seen.notes.extend(said.iter().map(ToString::to_string));
        if self.kinds.is_of_requests(&name) {
            seen.inert = InertRules::of(spec, said);
        }
        for selected in &seen.selects_outside {
            self.selecting.entry((id.kind.clone(), *selected)).or_default().insert(id.namespace.clone());
        }
        self.policies.insert(id, seen);
        if let Some(object) = &object {
            self.index_observe(object);
        }
    }

    fn index_observe(&mut self, object: &Value) {
        if group_and_kind(object) == (GATEWAY_API, "GatewayClass") {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (name, spec) = (text(&object["metadata"]["name"]), &object["spec"]);
            self.controllers.insert(name, text(&spec["controllerName"]));
        }
        match self.index.observe(object) {
            Ok(_) | Err(DecodeError::UnknownKind { .. }) => {}
            Err(error) => {
                let (_, kind) = group_and_kind(object);
                let name = object["metadata"]["generateName"].as_str().unwrap_or_default();
                self.faults.push(format!("{kind} {name}: {error}"));
            }
        }
    }

    fn assume_classes(&mut self, objects: &[Value]) {
        let of_kind = |kind: &'static str| {
            objects.iter().filter(move |object| group_and_kind(object) == (GATEWAY_API, kind))
        };
        let known: BTreeSet<&str> =
            of_kind("GatewayClass").filter_map(|class| class["metadata"]["name"].as_str()).collect();
        let named = of_kind("Gateway").filter_map(|gateway| gateway["spec"]["gatewayClassName"].as_str());
        let assumed: BTreeSet<String> =
            named.filter(|name| !known.contains(name) && !name.is_empty()).map(str::to_owned).collect();
        for name in &assumed {
            self.index_observe(&json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                "metadata": {"name": name}, "spec": {"controllerName": ""},
            }));
        }
        self.assumed_classes = assumed;
    }

    fn attach(&mut self) {
        for (id, seen) in &mut self.policies {
            let block = self.index.policy(id).and_then(|policy| policy.block.as_ref());
            let fields = |block: &Block| {
                let fields = block.rules.iter().map(|(field, value)| (field.to_string(), (**value).clone()));
                Arc::new(Value::Object(fields.collect()))
            };
            seen.whole = block.filter(|_| self.kinds.acts_whole(&id.kind)).map(fields);
        }
        let mut attached: BTreeMap<NodeKey, Vec<Precedence>> = BTreeMap::new();
        for policy in self.index.policies().filter(|policy| !policy.is_deleting) {
            for target in &policy.targets {
                attached.entry(target.clone()).or_default().push(policy.precedence());
            }
        }
        let sorted = attached.into_iter().map(|(target, mut policies)| {
            policies.sort_by(|one, other| (&one.id.kind, one).cmp(&(&other.id.kind, other)));
            (target, policies.into_iter().map(|policy| policy.id).collect())
        });
        self.attached = sorted.collect();
    }

    /// The paths, the routes with their refusals, and the merged policies.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The kinds of policies.
    pub fn kinds(&self) -> &PolicyKinds {
        &self.kinds
    }

    /// The policies that target a node, by kind and the older one first.
    pub fn attached(&self, node: &NodeKey) -> &[PolicyId] {
        self.attached.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    /// All policies.
    pub fn policies(&self) -> impl Iterator<Item = &PolicyId> {
        self.policies.keys()
    }

    /// The nodes that policies target, whether they exist or not.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeKey> {
        self.attached.keys()
    }

    /// The policies of one kind that target a node and are valid, the older one first.
    pub(super) fn valid<'a>(&'a self, node: &'a NodeKey, kind: &'a str) -> impl Iterator<Item = &'a Policy> {
        let ids = self.attached(node).iter().filter(move |id| &*id.kind == kind);
        // One that names the rule by its position may not find it.
        let finds = |id: &&PolicyId| {
            let state = self.index.state(id).and_then(|state| state.targets.get(node));
            state != Some(&TargetState::NotFound)
        };
        ids.filter(finds).filter_map(|id| self.index.policy(id)).filter(|policy| policy.block.is_some())
    }

    /// Why a rule of a policy, or a part of it, can never act where it is in force.
    pub fn inert(&self, policy: &PolicyId, rule: &str) -> Option<Arc<Inert>> {
        self.policies.get(policy)?.inert.get(rule).cloned()
    }

    /// GatewayClasses of paths whose controller is not named as Envoy Gateway's are by default, below which its policies
    /// are shown; with the controller.
    pub fn foreign_classes<'a>(
        &'a self,
        paths: impl Iterator<Item = &'a Arc<Path>>,
    ) -> BTreeMap<&'a str, &'a str> {
        let is_envoys = |id: &PolicyId| self.kinds.group(&id.kind) == Some(ENVOY_GATEWAY);
        let foreign = paths.filter_map(|path| {
            let class = &*path.gateway_class.name;
            let controller = self.controllers.get(class).filter(|name| !name.is_empty())?;
            let is_foreign = !controller.starts_with(ENVOY_GATEWAY_CONTROLLERS);
            let is_shown = || path.nodes().any(|node| self.attached(node).iter().any(is_envoys));
            (is_foreign && is_shown()).then_some((class, controller.as_str()))
        });
        foreign.collect()
    }

    /// The routes that a listener refuses because their namespace is not among the objects.
    pub fn routes_of_unknown_namespaces(&self) -> impl Iterator<Item = &NodeKey> {
        let is_unknown = |links: &RouteLinks| {
            links.refused.iter().any(|refused| refused.reason == RefusalReason::NamespaceUnknown)
        };
        self.index.routes().filter(move |(_, links)| is_unknown(links)).map(|(route, _)| route)
    }

    /// The GatewayClasses that were taken as present.
    pub fn assumed_classes(&self) -> &BTreeSet<String> {
        &self.assumed_classes
    }

    /// Kinds with targets, as `KIND.GROUP`, that no definition with the label is known of.
    pub fn unknown_kinds(&self) -> &BTreeSet<String> {
        &self.unknown_kinds
    }

    /// The objects that do not decode, with the cause.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

fn subject_name(subject: &Subject) -> String {
    match subject {
        Subject::Policy(id) => id.to_string(),
        Subject::Object(ObjectKey::Node(node)) => node.to_string(),
        Subject::Object(ObjectKey::Grant(namespace, name)) => format!("ReferenceGrant/{namespace}/{name}"),
        Subject::Object(ObjectKey::Namespace(name)) => format!("Namespace/{name}"),
    }
}

/// The order in which policies are observed; what does not have that form of a time comes anywhere.
fn age(object: &Value) -> (bool, &str, &str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let created = text("creationTimestamp");
    (created.is_empty(), created, text("namespace"), text("name"))
}

pub(super) fn group_and_kind(object: &Value) -> (&str, &str) {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    (text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group), text("kind"))
}

/// Group, kind, namespace and name.
type Identity = (String, String, Arc<str>, Arc<str>);

/// The objects, each once: of two with one identity the later.
pub fn by_identity(objects: impl IntoIterator<Item = Value>) -> BTreeMap<Identity, Value> {
    let identity = |object: &Value| {
        let (group, kind) = group_and_kind(object);
        let text = |field: &str| Arc::<str>::from(object["metadata"][field].as_str().unwrap_or_default());
        (group.to_owned(), kind.to_owned(), text("namespace"), text("name"))
    };
    objects.into_iter().map(|object| (identity(&object), object)).collect()
}

/// The fields of metadata that the API server sets.
const OF_THE_API_SERVER: [&str; 2] = ["creationTimestamp", "generation"];

const DELETION: &str = "deletionTimestamp";

/// The age of what is there without one, as in files: older than what is new, and younger than what has one.
const UNKNOWN_AGE: &str = "9999-01-01T00:00:00Z";

/// Gives an age to objects that have none.
pub fn aged(mut objects: Vec<Value>) -> Vec<Value> {
    let metadata = objects.iter_mut().filter_map(|object| object.get_mut("metadata")?.as_object_mut());
    for metadata in metadata.filter(|metadata| metadata.get("creationTimestamp").is_none_or(Value::is_null)) {
        metadata.insert("creationTimestamp".to_owned(), UNKNOWN_AGE.into());
    }
    objects
}

/// The objects after others are applied: one of the same kind and name is replaced, and keeps what the API server sets.
/// One that is not there yet has nothing of that, whatever its file says. One that is given as being deleted is gone.
pub fn applied(before: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let mut objects = by_identity(before);
    for (identity, mut object) in by_identity(new) {
        if !object["metadata"][DELETION].is_null() {
            objects.remove(&identity);
            continue;
        }
        let old = objects.get(&identity);
        let kept = |field: &str, name: &str| old.and_then(|old| old[field].get(name)).cloned();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in OF_THE_API_SERVER {
                metadata.remove(field);
                metadata.extend(kept("metadata", field).map(|value| (field.to_owned(), value)));
            }
            // A deletion does not end by an apply.
            if let Some(value) = kept("metadata", DELETION) {
                metadata.entry(DELETION).or_insert(value);
            }
        }
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
            let status = old.and_then(|old| old.get("status")).cloned();
            object.extend(status.map(|status| ("status".to_owned(), status)));
        }
        objects.insert(identity, object);
    }
    objects.into_values().collect()
}
