//! `Backup`: a copy of the data of an Instance.

use std::borrow::Cow;

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::Decision;
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::admission::request::{Operation, Request};
use interlock_core::admission::review::ReviewObject;
use interlock_core::api::capability::Capability;
use interlock_core::api::interlock::Mode;
use interlock_core::api::meta::KUDO_API_VERSION;
use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::api::resource::Resource;
use interlock_core::api::rule::{Rule, RuleGroup};
use interlock_core::effect::Effect;
use interlock_core::kinds::INSTANCE;
use interlock_core::kinds::descriptor::{
    Calls, Kind, MatchCondition, MatchedObjects, OnFailure, Right, Role, Watch, WebhookEntry, cel,
};
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};
use interlock_core::topology::schema::{
    DeclaredKind, EventRow, EventScope, EventTriggers, Fact, Family, Holder, Link, LinkPath, ReadDepth, Ref,
    Side, When,
};
use interlock_core::topology::{KindName, fingerprint};
use serde::Deserialize;
use serde_json::{Value, json};

const GROUP: &str = "backup.example.com";
const RESOURCE: Resource = Resource::custom(GROUP, &["v1"], "Backup", "backups");

/// Settings switch the kind on and off by this name.
const BACKUPS: Capability = Capability {
    name: "backups",
    finalizes: None,
    answers: true,
    can_be_set: true,
    default_mode: Mode::Auto,
};

/// A Backup belongs to one Instance for good.
const INSTANCE_KEPT: Rule =
    Rule::new("backup-instance", RuleGroup::Requests, "examples/add-a-kind/backup/backup-instance.md");

/// Everything that is known of Backups.
pub static KIND: Kind = Kind {
    watch: Some(Watch::optional(&BACKUPS)),
    schema: Some(&SCHEMA),
    admission: Some(&GuardedKind {
        resource: RESOURCE,
        capability: None,
        annotations: &[],
        decide,
        restore: allow,
        sub_resources: &[],
    }),
    webhooks: &[WebhookEntry {
        name: "backups",
        calls: Calls::Validating,
        resources: &["backups"],
        operations: &["UPDATE"],
        on_failure: OnFailure::Refuse,
        conditions: &[MatchCondition::Cel("spec-changed", || cel::SPEC_CHANGED.to_owned())],
        objects: MatchedObjects::All,
    }],
    rights: &[Right::new(Role::Controller, GROUP, "backups/status", &["patch"])],
    rules: &[INSTANCE_KEPT],
    reconciler: Some(&Reconciler { name: "backup", capability: &BACKUPS, reconcile }),
    ..Kind::new(RESOURCE)
};

static SCHEMA: DeclaredKind = DeclaredKind {
    name: KindName::new(GROUP, "Backup"),
    about: "a copy of an Instance's data",
    facts: &[PHASE],
    links: &[Link {
        name: "instance",
        family: Family::Needs,
        other: Side::Parent,
        kind: Some(INSTANCE),
        follows: true,
        read: instance,
    }],
    sections: None,
    events: EventRow {
        create: EventTriggers::Roots(&[LinkPath::Itself]),
        update: EventScope::When(&[When { differs: &[SPEC, PHASE], concerns: &[LinkPath::Itself] }]),
        delete: EventTriggers::Nobody("nothing depends on it"),
    },
};

const PHASE: Fact = Fact { name: "phase", read: ReadDepth::Word(phase) };
const SPEC: Fact = Fact { name: "spec", read: ReadDepth::Mark(fingerprint::spec) };

fn phase(object: &Value) -> Cow<'_, str> {
    object["status"]["phase"].as_str().unwrap_or_default().into()
}

fn instance(holder: &Holder<'_>) -> Vec<Ref> {
    let name = holder.object["spec"]["instance"].as_str();
    name.map(|name| Ref::to(holder.namespace, name)).into_iter().collect()
}

#[derive(Default, Deserialize, PartialEq)]
struct Spec {
    #[serde(default)]
    instance: String,
}

impl Spec {
    /// A field of another type counts as absent: the schema denies it.
    fn of(object: &ReviewObject<'_>) -> Self {
        object.spec.and_then(|spec| serde_json::from_str(spec.get()).ok()).unwrap_or_default()
    }
}

/// Denies a change of the Instance that a Backup belongs to.
fn decide(request: &Request<'_>, _: &RuleContext<'_>) -> Decision {
    let Operation::Update(change) = &request.operation else { return Decision::allow() };
    let (old, new) = (Spec::of(change.old), Spec::of(change.object));
    if old == new {
        return Decision::allow();
    }
    let detail = format!("{:?} -> {:?}", old.instance, new.instance);
    let field = ViolationField::new("spec.instance", FieldReason::Forbidden, detail);
    let sentence = format!("Backup {}/{} belongs to another Instance", request.namespace, request.name);
    let next = format!("create a Backup of Instance {:?} under another name", new.instance);
    Denial::invalid(INSTANCE_KEPT, sentence, vec![field]).next(next).into()
}

/// Reports whether the Instance of a Backup exists.
fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let object = view.object();
    let Some(key) = ObjectKey::of(object) else { return Ok(ReconcileStep::Await(None)) };
    let name = object["spec"]["instance"].as_str().unwrap_or_default().to_owned();
    let gvk = Gvk::new(KUDO_API_VERSION, "Instance");
    let instance = ObjectKey { gvk, namespace: key.namespace.clone(), name };
    let phase = if view.get(&instance)?.is_some() { "Ready" } else { "InstanceMissing" };
    if object["status"]["phase"] == phase {
        return Ok(ReconcileStep::Await(None));
    }
    let resource_version = meta_str(object, "resourceVersion").unwrap_or_default().to_owned();
    let status = json!({"phase": phase});
    Ok(ReconcileStep::Write(vec![Effect::Status { key, resource_version, status }]))
}
