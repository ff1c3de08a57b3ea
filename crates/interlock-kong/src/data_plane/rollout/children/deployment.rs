//! The Deployment of one side.

use serde_json::{Value, json};

use super::invalid::{FieldPlace, InvalidTemplate, TemplateProblem, at};
use super::owner::{ChildMetadata, DataPlaneOwner};
use super::pod_base::{CERTIFICATE, PodFacts, pod_spec};
use super::strategic_merge::merge;
use crate::api::{PROXY, labels};
use crate::data_plane::rollout::side::{DeploymentIdentity, SideState};

const TEMPLATE: &str = "spec.deployment.podTemplateSpec";

/// The Deployment of a side: the generated pod template with the user's merged over it.
///
/// Without `replicas` it does not own their number: an autoscaler does. `certificate` is the Secret with the
/// certificate of the admin API; a volume `cluster-certificate` of the user's takes its place. A Deployment that was
/// taken over keeps its template as long as the spec is the one that it was made from.
pub fn deployment(
    owner: &DataPlaneOwner,
    spec: &Value,
    identity: &DeploymentIdentity,
    state: SideState,
    replicas: Option<i32>,
    certificate: Option<&str>,
) -> Result<Value, InvalidTemplate> {
    let users = ChildMetadata::of(spec, &["deployment"])?;
    let labels = [(labels::DEPLOYMENT_STATE, state.as_str()), (labels::SELECTOR, identity.selector.as_str())];
    let template = match owner.kept_template(identity, spec) {
        Some(kept) => kept.clone(),
        None => pod_template(owner, spec, &identity.selector, certificate)?,
    };
    let mut body = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": owner.metadata(&identity.name, &labels, users),
        "spec": {
            "selector": {"matchLabels": owner.pod_labels(&identity.selector)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template,
        },
    });
    if let Some(replicas) = replicas {
        body["spec"]["replicas"] = Value::from(replicas);
    }
    Ok(body)
}

fn pod_template(
    owner: &DataPlaneOwner,
    spec: &Value,
    selector: &str,
    certificate: Option<&str>,
) -> Result<Value, InvalidTemplate> {
    let place = FieldPlace::root(TEMPLATE);
    let template = at(spec, &["deployment", "podTemplateSpec"]);
    let facts = PodFacts {
        certificate,
        brings_certificate: brings_certificate(spec),
        hardened: at(spec, &["deployment", "hardened"]).and_then(Value::as_str),
        image: template.and_then(proxy).and_then(|proxy| at(proxy, &["image"])?.as_str()),
    };
    let generated = json!({"metadata": {"labels": {}}, "spec": pod_spec(facts)});
    let mut merged = match template {
        Some(template) => merge(generated, template, &place)?,
        None => generated,
    };
    require_image(&merged, &place)?;
    // The Deployment finds its pods by these labels, so no template may change them.
    let labels = &mut merged["metadata"]["labels"];
    if let (Value::Object(all), Value::Object(own)) = (&mut *labels, owner.pod_labels(selector)) {
        all.extend(own);
    } else {
        *labels = owner.pod_labels(selector);
    }
    Ok(merged)
}

/// The container that runs Kong; in any position.
fn proxy(template: &Value) -> Option<&Value> {
    let containers = at(template, &["spec", "containers"])?.as_array()?;
    containers.iter().find(|container| container.get("name").and_then(Value::as_str) == Some(PROXY))
}

fn require_image(template: &Value, place: &FieldPlace<'_>) -> Result<(), InvalidTemplate> {
    match proxy(template).and_then(|proxy| at(proxy, &["image"])) {
        Some(Value::String(image)) if !image.is_empty() => Ok(()),
        Some(Value::String(_)) | None => Err(problem_of_image(place, TemplateProblem::Absent)),
        Some(_) => Err(problem_of_image(place, TemplateProblem::Type("a string"))),
    }
}

fn problem_of_image(place: &FieldPlace<'_>, problem: TemplateProblem) -> InvalidTemplate {
    place.field("spec").field("containers").element("name=proxy").field("image").has(problem)
}

/// The Secret that the user's own template mounts as volume `cluster-certificate`.
pub fn certificate_of(spec: &Value) -> Option<&str> {
    at(certificate_volume(spec)?, &["secret", "secretName"])?.as_str().filter(|name| !name.is_empty())
}

/// Whether the user's own template gives the volume `cluster-certificate` a source, a Secret or another: then none
/// has to be made.
pub fn brings_certificate(spec: &Value) -> bool {
    let volume = certificate_volume(spec).and_then(Value::as_object);
    volume.is_some_and(|volume| volume.iter().any(|(name, value)| name != "name" && !value.is_null()))
}

/// The Secret that the pods of a Deployment mount as volume `cluster-certificate`.
pub fn mounted_certificate(deployment: &Value) -> Option<&str> {
    let volumes = at(deployment, &["spec", "template", "spec", "volumes"])?.as_array()?;
    let volume = volumes.iter().find(|volume| volume["name"] == CERTIFICATE)?;
    at(volume, &["secret", "secretName"])?.as_str()
}

/// The volume in the user's template; a directive to remove the generated one is none.
fn certificate_volume(spec: &Value) -> Option<&Value> {
    let volumes = at(spec, &["deployment", "podTemplateSpec", "spec", "volumes"])?.as_array()?;
    volumes.iter().find(|volume| {
        volume.get("name").and_then(Value::as_str) == Some(CERTIFICATE) && volume.get("$patch").is_none()
    })
}
