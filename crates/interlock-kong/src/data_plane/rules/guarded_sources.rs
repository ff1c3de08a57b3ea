//! The flavor sources of a gateway that its author may update: only these are guarded.
//!
//! The guard keeps the owner of a ConfigMap from changing a key, so it must not be within reach of who merely names the
//! ConfigMap in a gateway. The API server's authorizer is asked twice: by the match condition of a webhook, which then
//! adds to the annotation what this write newly names; and by a policy about every change of the annotation.

use std::collections::BTreeSet;

use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::patch::Operations;
use interlock_core::admission::review::ReviewObject;
use interlock_core::api::meta;
use interlock_core::api::pod::DeploymentSpec;
use serde::Deserialize as _;

use super::text_of;
use crate::api::DataPlaneSpec;
use crate::data_plane::flavor::gateway_ref::GatewayKind;
use crate::data_plane::flavor::guarded_sources;
use crate::data_plane::flavor::guarded_sources::{MOST, is_object_name};
use crate::data_plane::flavor::kong_container;
use crate::data_plane::flavor::reading::VARIABLE;

/// Adds the sources that the flavor newly comes from.
pub fn patch(kind: GatewayKind, object: &ReviewObject<'_>, old: Option<&ReviewObject<'_>>) -> Decision {
    let before = old.map(|old| named(kind, old)).unwrap_or_default();
    let text = object.metadata.annotations.own_text(meta::GUARDED_SOURCES).unwrap_or_default();
    let listed: BTreeSet<String> = guarded_sources::listed(&text).map(str::to_owned).collect();
    let added: BTreeSet<String> = named(kind, object).difference(&before).cloned().collect();
    let wanted: BTreeSet<String> = &listed | &added;
    if wanted == listed || wanted.len() > MOST {
        return Decision::allow();
    }
    let mut operations = Operations::default();
    let text = wanted.into_iter().collect::<Vec<_>>().join(",");
    operations.new_annotation(&object.metadata, meta::GUARDED_SOURCES, text);
    Decision::of(Outcome::Allow { patch: operations.finish() })
}

/// What the match conditions ask about: sources that the variable, or all variables, of the container of Kong come from.
/// One that is only referred to by the value of another variable is added by people.
fn named(kind: GatewayKind, object: &ReviewObject<'_>) -> BTreeSet<String> {
    let mut text = serde_json::Deserializer::from_str(text_of(object));
    let template = match kind {
        GatewayKind::DataPlane => {
            DataPlaneSpec::deserialize(&mut text).ok().map(|spec| spec.deployment.pod_template_spec)
        }
        GatewayKind::Deployment => DeploymentSpec::deserialize(&mut text).ok().map(|spec| spec.template),
    };
    let template = template.unwrap_or_default();
    let kong = match kind {
        GatewayKind::DataPlane => kong_container::proxy(&template),
        GatewayKind::Deployment => kong_container::find(&template),
    };
    let Ok(kong) = kong else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    let mut add = |resource: &str, name: Option<&str>| {
        names.extend(name.filter(|name| is_object_name(name)).map(|name| format!("{resource}/{name}")));
    };
    for from in kong.env.iter().filter(|entry| entry.name.starts_with(VARIABLE)) {
        let from = from.value_from.as_ref();
        add("configmaps", from.and_then(|from| Some(from.config_map_key_ref.as_ref()?.name.as_str())));
        add("secrets", from.and_then(|from| Some(from.secret_key_ref.as_ref()?.name.as_str())));
    }
    for from in &kong.env_from {
        add("configmaps", from.config_map_ref.as_ref().map(|map| map.name.as_str()));
        add("secrets", from.secret_ref.as_ref().map(|secret| secret.name.as_str()));
    }
    names
}
