//! The flavor sources of a gateway that its author may update: only these are guarded.
//!
//! The guard keeps the owner of a ConfigMap from changing a key, so it must not be within reach of who merely names the
//! ConfigMap in a gateway. The API server's authorizer is asked twice: by the match condition of a webhook, which then
//! adds to the annotation what this write newly names; and by a policy about every change of the annotation.

use std::collections::BTreeSet;

use serde::Deserialize as _;

use super::text_of;
use crate::admission::decision::{Decision, Outcome};
use crate::admission::patch::Operations;
use crate::admission::review::ReviewObject;
use crate::api::kong::DataPlaneSpec;
use crate::api::meta;
use crate::api::pod::{DeploymentSpec, PodTemplate};
use crate::kinds::data_plane::flavor::gateway_ref::GatewayKind;
use crate::kinds::data_plane::flavor::guarded_sources::{self, MOST};
use crate::kinds::data_plane::flavor::reading::VARIABLE;

/// Adds the sources that the flavor newly comes from.
pub fn patch(kind: GatewayKind, object: &ReviewObject<'_>, old: Option<&ReviewObject<'_>>) -> Decision {
    let before = old.map(|old| named(kind, old)).unwrap_or_default();
    let now = named(kind, object);
    let text = object.metadata.annotations.own_text(meta::GUARDED_SOURCES).unwrap_or_default();
    let listed: BTreeSet<String> = guarded_sources::listed(&text).map(str::to_owned).collect();
    let wanted: BTreeSet<String> =
        now.into_iter().filter(|name| listed.contains(name) || !before.contains(name)).collect();
    if wanted.is_subset(&listed) || wanted.len() > MOST {
        return Decision::allow();
    }
    let mut operations = Operations::default();
    let text = wanted.into_iter().collect::<Vec<_>>().join(",");
    operations.new_annotation(&object.metadata, meta::GUARDED_SOURCES, text);
    Decision::of(Outcome::Allow { patch: operations.finish() })
}

/// What the match condition asks about: sources that the variable, or all variables, come from. One that is only
/// referred to by the value of another variable is added by people.
fn named(kind: GatewayKind, object: &ReviewObject<'_>) -> BTreeSet<String> {
    let mut text = serde_json::Deserializer::from_str(text_of(object));
    let template: Option<PodTemplate> = match kind {
        GatewayKind::DataPlane => {
            DataPlaneSpec::deserialize(&mut text).ok().map(|spec| spec.deployment.pod_template_spec)
        }
        GatewayKind::Deployment => DeploymentSpec::deserialize(&mut text).ok().map(|spec| spec.template),
    };
    let containers = template.map(|template| template.spec.containers).unwrap_or_default();
    let mut names = BTreeSet::new();
    for container in containers {
        let keys = container.env.into_iter().filter(|entry| entry.name.starts_with(VARIABLE));
        for from in keys.filter_map(|entry| entry.value_from) {
            names.extend(from.config_map_key_ref.map(|key| format!("configmaps/{}", key.name)));
            names.extend(from.secret_key_ref.map(|key| format!("secrets/{}", key.name)));
        }
        for from in container.env_from {
            names.extend(from.config_map_ref.map(|map| format!("configmaps/{}", map.name)));
            names.extend(from.secret_ref.map(|secret| format!("secrets/{}", secret.name)));
        }
    }
    names
}
