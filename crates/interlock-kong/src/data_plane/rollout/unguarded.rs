//! Edits that admission never saw: of a DataPlane without blue/green, such an edit reaches the live pods at once. One
//! that admission would have refused is not carried out.

use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use super::view::DataPlaneView;
use crate::data_plane::flavor::change::FlavorChange;
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::gateway_ref::{FlavorSpec, GatewayKind, GatewayRef};
use crate::data_plane::flavor::routes::Inventory;
use crate::data_plane::flavor::sources::Nothing;
use crate::data_plane::flavor::validate::judge;

/// Why the spec is not carried out in place of the live one; `None` where it is. A router flavor that comes from a
/// ConfigMap or Secret is not read here: those are guarded where they are written.
pub(super) fn refusal(of: &DataPlaneView<'_>, live: &Value) -> Option<String> {
    let flavor = |spec| Some(FlavorSpec { reading: of.flavor(spec, &Nothing)?, staged: false });
    let (before, new) = (flavor(live)?, flavor(of.spec())?);
    let name = NamespacedName::new(of.namespace, of.name);
    let findings = judge(&FlavorChange {
        subject: &GatewayRef { kind: GatewayKind::DataPlane, name },
        live: Some(&before.reading),
        stored: Some(&before),
        new: &new,
        // As admission judges it: what is live may be an earlier spec, whose pods are gone.
        stopped: is_stopped(of.spec()) && of.object["status"]["replicas"].as_i64().unwrap_or_default() == 0,
        routes: &Inventory::empty(),
        configuration: ProducerConfiguration::Usual,
        group: None,
        allowance: None,
    });
    let refused = findings.denied.first()?;
    Some(format!(
        "the spec was changed past admission and is not carried out, the live pods stay as they are: {refused}; write \
         the spec of the live pods back (`interlock rollout status {}` shows both), or change it in steps that are \
         allowed",
        of.name
    ))
}

fn is_stopped(spec: &Value) -> bool {
    spec["deployment"]["replicas"] == 0
}
