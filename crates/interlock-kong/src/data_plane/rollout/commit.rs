//! The commit of a promotion, and every other write of the last-applied annotation: one patch of the DataPlane on
//! the version that it was decided on. All that follows is derived from it.

use std::borrow::Cow;

use interlock_core::admission::size_budget::{SPEC_LIMIT, SizeBudget};
use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::Effect;
use interlock_core::last_applied::{LastAppliedDraft, WholeSpec, write};
use serde_json::{Map, Value, json};

use super::live_record::LiveSide;
use super::view::DataPlaneView;
use crate::api::stamp::{FLAVOR, FLAVOR_SPEC, SELECTOR};
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::projection::excerpt;
use crate::data_plane::flavor::sources::Nothing;

/// Records a live side. A promotion also removes the annotation that asked for it.
pub fn commit(of: &DataPlaneView<'_>, side: &LiveSide, promotes: bool) -> Effect {
    let mut annotations = Map::new();
    annotations.insert(meta::LAST_APPLIED_SPEC.to_owned(), stamp(of, side).map_or(Value::Null, Value::from));
    if promotes && annotation(of.object, meta::PROMOTE_WHEN_READY).is_some() {
        annotations.insert(meta::PROMOTE_WHEN_READY.to_owned(), Value::Null);
    }
    // The history has the flavor of a revision: one that comes from a source may be promoted alone.
    if promotes && side.sourced.is_some() && annotation(of.object, meta::LIVE_REVISION).is_some() {
        annotations.insert(meta::LIVE_REVISION.to_owned(), Value::Null);
    }
    Effect::Patch {
        key: of.key.clone(),
        resource_version: of.resource_version.to_owned(),
        patch: json!({"metadata": {"annotations": annotations}}),
    }
}

/// The annotation; `None` where not even the hash of the spec fits.
fn stamp(of: &DataPlaneView<'_>, side: &LiveSide) -> Option<String> {
    let spec = side.spec.to_string();
    let flavor = side.sourced.map(|flavor| flavor.as_str().to_owned()).or_else(|| flavor(of, &side.spec));
    let excerpt = excerpt(&side.spec);
    let mut more = vec![(SELECTOR, side.selector.as_str())];
    more.extend(flavor.as_deref().map(|flavor| (FLAVOR, flavor)));
    let previous = side.previous.as_ref().map(|spec| {
        let spec = spec.to_string();
        let hash = SpecHash::of(&spec);
        WholeSpec {
            hash: Cow::Owned(hash.as_str().to_owned()),
            spec: (spec.len() <= SPEC_LIMIT).then_some(Cow::Owned(spec)),
            changes: None,
        }
    });
    let draft = LastAppliedDraft {
        hash: &SpecHash::of(&spec),
        spec: Some(&spec),
        previous,
        uid: Some(of.uid),
        more: &more,
        excerpt: excerpt.as_deref().map(|excerpt| (FLAVOR_SPEC, excerpt)),
    };
    write(&draft, room(of))
}

/// The flavor of a spec, if it is known without asking anybody.
fn flavor(of: &DataPlaneView<'_>, spec: &Value) -> Option<String> {
    let mut object = json!({"apiVersion": of.object["apiVersion"], "kind": of.object["kind"]});
    object["metadata"] = json!({"namespace": of.namespace, "name": of.name});
    object["spec"] = spec.clone();
    let gateway = Gateway::read(&object, of.namespace, &Nothing).ok().flatten()?;
    gateway.spec.reading.effective.known().map(|flavor| flavor.as_str().to_owned())
}

/// The room that the other annotations and the rest of the object leave.
fn room(of: &DataPlaneView<'_>) -> SizeBudget {
    let listed = of.object["metadata"]["annotations"].as_object().into_iter().flatten();
    let others = listed.filter(|(name, _)| *name != meta::LAST_APPLIED_SPEC);
    let annotations = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    let own = annotation(of.object, meta::LAST_APPLIED_SPEC).map_or(0, str::len);
    SizeBudget { annotations, object: of.object.to_string().len().saturating_sub(own) }
}
