//! What Kong's operator made for a DataPlane, found by its labels and the uid of the owner, and why it cannot be taken
//! over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::condition::find;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::api::ownership::is_of;
use interlock_core::effect::Effect;
use interlock_core::reconcile::{Needs, ObjectList, View, both};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::field_managers;
use super::field_managers::RESTARTED_AT;
use super::writer::{LeftAlone, adopt, is_held, lease_key, may_write};
use crate::api::labels;
use crate::data_plane::rollout::children::{brings_certificate, mounted_certificate};
use crate::data_plane::rollout::kept::KeptChildren;
use crate::data_plane::rollout::live_record::{LiveSide, commit};
use crate::data_plane::rollout::promotion::staged_hash;
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};
use crate::data_plane::rollout::side::{Colour, DeploymentIdentity, SideState};
use crate::data_plane::rollout::view::DataPlaneView;

/// Fields of a spec that Kong's operator carries out and Interlock does not: without them the next pods would lack what
/// the live ones have.
const NOT_CARRIED_OUT: [&[&str]; 3] =
    [&["pluginsToInstall"], &["extensions"], &["network", "konnectCertificate"]];

/// The writes that take it over: the record of what is kept, the children as ours, and what is live. `Err` inside with
/// why it cannot be taken over.
pub fn discover(
    of: &DataPlaneView<'_>,
    operator: Option<&str>,
    view: &View<'_>,
) -> Result<Result<Vec<Effect>, LeftAlone>, Needs> {
    if let Err(why) = is_settled(of) {
        return Ok(Err(why));
    }
    let keys = read_by_name(of, operator);
    let [deployments, services] = lists(of);
    let lists = both(view.list(&deployments), view.list(&services));
    let ((), (deployments, services)) = both(view.have(keys.clone()), lists)?;
    let found = FoundChildren { deployments: owned(of, deployments), services: owned(of, services) };
    let named = keys.iter().map(|key| Ok(view.get(key)?.map(|found| &**found)));
    let named: Vec<Option<&Value>> = named.collect::<Result<_, Needs>>()?;
    Ok(writes(of, &found, &named, operator, view.now()))
}

fn writes(
    of: &DataPlaneView<'_>,
    found: &FoundChildren<'_>,
    named: &[Option<&Value>],
    operator: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Effect>, LeftAlone> {
    let all: Vec<&Value> = named
        .iter()
        .take(2)
        .filter_map(|object| object.filter(|object| is_of(of.uid, object)))
        .chain(found.deployments.iter().chain(&found.services).copied())
        .collect();
    let makers: BTreeSet<&str> = all.iter().flat_map(|child| field_managers::makers(child)).collect();
    let managers: Vec<String> = makers.into_iter().map(str::to_owned).collect();
    let lease = named.get(2).copied().flatten();
    may_write(operator.map(|namespace| (namespace, lease)), all.iter().copied(), &managers, now)?;
    let kept = found.kept(of, managers)?;
    let held = all.into_iter().filter(|child| is_held(child, &kept.managers));
    let adopted = held.filter_map(|child| adopt(child, &kept.managers));
    let side = LiveSide::of(kept.live.selector.clone(), Colour::Blue, of.wanted_spec());
    let commit = commit(of, &side, false);
    Ok([kept.record(of)].into_iter().chain(adopted).chain([commit]).collect())
}

/// What is found by its name: the autoscaler, the disruption budget, and the Lease of Kong's operator.
pub fn read_by_name(of: &DataPlaneView<'_>, operator: Option<&str>) -> Vec<ObjectKey> {
    let key = |api_version: &str, kind: &str| of.key_of(api_version, kind, of.name);
    let scaling = [key("autoscaling/v2", "HorizontalPodAutoscaler"), key("policy/v1", "PodDisruptionBudget")];
    scaling.into_iter().chain(operator.map(lease_key)).collect()
}

/// The lists of Deployments and Services, by the labels that Kong's operator gives them.
fn lists(of: &DataPlaneView<'_>) -> [ObjectList; 2] {
    let labels: BTreeMap<String, String> = [
        (labels::APP.to_owned(), of.name.to_owned()),
        (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_DATA_PLANE.to_owned()),
    ]
    .into();
    [Gvk::new("apps/v1", "Deployment"), Gvk::new("v1", "Service")].map(|gvk| ObjectList {
        gvk,
        namespace: of.namespace.to_owned(),
        labels: labels.clone(),
    })
}

fn owned<'o>(of: &DataPlaneView<'_>, objects: &'o [Arc<Value>]) -> Vec<&'o Value> {
    objects.iter().map(|object| &**object).filter(|object| is_of(of.uid, object)).collect()
}

/// Fields that a spec sets and Interlock does not carry out.
pub fn not_supported(spec: &Value) -> impl Iterator<Item = &'static [&'static str]> {
    let at = move |path: &[&str]| path.iter().try_fold(spec, |value, name| value.get(*name));
    let is_set = |value: &Value| match value {
        Value::Array(list) => !list.is_empty(),
        value => !value.is_null(),
    };
    NOT_CARRIED_OUT.into_iter().filter(move |path| at(path).is_some_and(is_set))
}

/// Whether Kong's operator has carried the spec out, and no rollout goes on: it records no live spec, so what pods
/// are made from is unknown while one does.
fn is_settled(of: &DataPlaneView<'_>) -> Result<(), LeftAlone> {
    if let Some(path) = not_supported(of.spec()).next() {
        return Err(LeftAlone::refused(format!(
            "spec.{} is not carried out by Interlock, so the next pods would be without it: leave the DataPlane to Kong's \
             operator, or take the field out",
            path.join(".")
        )));
    }
    let ready = find(&of.conditions(), meta::condition::READY).and_then(|ready| ready.observed_generation);
    if ready != Some(of.generation) {
        return Err(LeftAlone::refused(format!(
            "its spec is of generation {}, and its live pods of {}: let Kong's operator carry it out (with blueGreen, promote \
             it), or write the spec back",
            of.generation,
            ready.map_or_else(|| "none".to_owned(), |ready| ready.to_string())
        )));
    }
    let rolled_out = ReportedRollout::of(of.object);
    if of.is_blue_green() && !rolled_out.as_ref().is_some_and(ReportedRollout::rests) {
        return Err(LeftAlone::refused(format!(
            "its rollout is {}: let Kong's operator end it (promote it, or write the spec back) until RolledOut is {}",
            rolled_out.map_or("not reported", |found| found.reason),
            RolloutPhase::Idle.reason()
        )));
    }
    Ok(())
}

/// The children that the labels find.
struct FoundChildren<'f> {
    deployments: Vec<&'f Value>,
    services: Vec<&'f Value>,
}

impl FoundChildren<'_> {
    fn kept(&self, of: &DataPlaneView<'_>, managers: Vec<String>) -> Result<KeptChildren, LeftAlone> {
        let live = required(self.deployment(SideState::Live)?, "live Deployment")?;
        let preview = self.deployment(SideState::Preview)?;
        let identity = |deployment: &Value| identity(of, deployment);
        let kept = KeptChildren {
            managers,
            live: identity(live)?,
            preview: preview.map(identity).transpose()?,
            ingress: name(required(self.service(SideState::Live, labels::INGRESS)?, "live ingress Service")?),
            admin: name(required(self.service(SideState::Live, labels::ADMIN)?, "live admin Service")?),
            preview_ingress: self.service(SideState::Preview, labels::INGRESS)?.map(name),
            preview_admin: self.service(SideState::Preview, labels::ADMIN)?.map(name),
            certificates: match brings_certificate(of.spec()) {
                true => Vec::new(),
                false => [Some(live), preview]
                    .into_iter()
                    .flatten()
                    .filter_map(mounted_certificate)
                    .map(str::to_owned)
                    .collect(),
            },
            spec: staged_hash(of.spec()),
            template: template(live),
        };
        if Some(kept.live.selector.as_str()) != of.reported_selector() {
            return Err(LeftAlone::refused(format!(
                "its live Deployment {} has selector {}, and status.selector is {}: let Kong's operator end the promotion",
                kept.live.name,
                kept.live.selector,
                of.reported_selector().unwrap_or_default()
            )));
        }
        if let Some(preview) = preview.filter(|preview| preview["spec"]["replicas"] != 0) {
            return Err(LeftAlone::refused(format!(
                "Deployment {} of the preview has pods: let Kong's operator end the rollout",
                name(preview)
            )));
        }
        Ok(kept)
    }

    fn deployment(&self, state: SideState) -> Result<Option<&Value>, LeftAlone> {
        one(&self.deployments, &[(labels::DEPLOYMENT_STATE, state.as_str())])
    }

    fn service(&self, state: SideState, kind: &str) -> Result<Option<&Value>, LeftAlone> {
        one(&self.services, &[(labels::SERVICE_STATE, state.as_str()), (labels::SERVICE_TYPE, kind)])
    }
}

/// The one object with these labels; `None` where there is none.
fn one<'f>(objects: &[&'f Value], wanted: &[(&str, &str)]) -> Result<Option<&'f Value>, LeftAlone> {
    let has =
        |object: &&Value| wanted.iter().all(|(label, value)| object["metadata"]["labels"][*label] == *value);
    let found: Vec<&Value> = objects.iter().copied().filter(has).collect();
    let named = |object: &Value| format!("{} {}", object["kind"].as_str().unwrap_or_default(), name(object));
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|object| named(object)).collect();
        let labels: Vec<String> = wanted.iter().map(|(label, value)| format!("{label}={value}")).collect();
        return Err(LeftAlone::refused(format!(
            "{} have the labels {}: let Kong's operator delete those that are too many",
            names.join(" and "),
            labels.join(" and ")
        )));
    }
    if let Some(going) = found.iter().find(|object| meta_str(object, "deletionTimestamp").is_some()) {
        return Err(LeftAlone::refused(format!(
            "{} is being deleted, and its finalizer keeps it: take the finalizer off, and let Kong's operator make it again",
            named(going)
        )));
    }
    Ok(found.first().copied())
}

fn required<'f>(found: Option<&'f Value>, what: &str) -> Result<&'f Value, LeftAlone> {
    found.ok_or_else(|| {
        LeftAlone::refused(format!("it has no {what} with the labels of Kong's operator: let that make it"))
    })
}

fn name(object: &Value) -> String {
    meta_str(object, "name").unwrap_or_default().to_owned()
}

/// Name and selector of a Deployment. What Interlock applies states the selector, which nothing can change.
fn identity(of: &DataPlaneView<'_>, deployment: &Value) -> Result<DeploymentIdentity, LeftAlone> {
    let found = &deployment["spec"]["selector"];
    let selector = found["matchLabels"][labels::SELECTOR].as_str().unwrap_or_default();
    if *found != json!({"matchLabels": {labels::APP: of.name, labels::SELECTOR: selector}}) {
        return Err(LeftAlone::refused(format!(
            "Deployment {} selects its pods by {found}, and not by the labels {} and {} alone: its version of Kong's operator \
             is not known",
            name(deployment),
            labels::APP,
            labels::SELECTOR
        )));
    }
    Ok(DeploymentIdentity { name: name(deployment), selector: selector.to_owned() })
}

/// The pod template of a Deployment, without what is never applied.
fn template(deployment: &Value) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    if let Some(metadata) = template["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(RESTARTED_AT);
        }
    }
    template
}
