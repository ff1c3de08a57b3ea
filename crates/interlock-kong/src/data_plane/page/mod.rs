//! What the page about a process shows of DataPlanes and labelled Deployments: their router flavors, their rollouts, and
//! those that need a person.

mod rollout;

use std::collections::BTreeMap;

use interlock_core::api::display::display;
use interlock_core::api::meta::condition;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::remedy::Remedy;
use interlock_core::kinds::page::{
    MESSAGE_LIMIT, PagePart, PageSection, ROWS, Row, SectionName, TroubleRow, TroubleState, View, WORD_LIMIT,
    row,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::rollout::RolloutRow;
use super::flavor::gateway::Gateway;
use super::flavor::gateway_ref::GatewayKind;
use super::flavor::inventory::GatewayInventory;
use super::flavor::overview;
use super::flavor::overview::GatewayOverview;
use super::names::DATA_PLANE;
use super::remedy;

/// The gateways, those in trouble first.
pub(super) fn part(view: &View<'_>) -> PagePart {
    let Some(inventory) = view.inventories.get::<GatewayInventory>() else { return PagePart::default() };
    let data_planes = data_planes(inventory);
    let rows = inventory.overviews(ROWS).into_iter().map(|found| {
        let name = &found.subject.name;
        let data_plane = data_planes.get(name).filter(|_| found.subject.kind == GatewayKind::DataPlane);
        let rollout = data_plane.and_then(|object| RolloutRow::of(view.graph, name, object));
        shown(&found, rollout)
    });
    let gateways = PageSection { total: inventory.gateways().count(), shown: rows.collect() };
    let name = SectionName { name: "gateways", place: 0 };
    PagePart { trouble: troubled(inventory), sections: vec![(name, gateways)], ..PagePart::default() }
}

fn data_planes(inventory: &GatewayInventory) -> BTreeMap<NamespacedName, &Value> {
    let text = |object: &Value, field| meta_str(object, field).unwrap_or_default().to_owned();
    let all = inventory.gateways().filter(|object| object["kind"] == DATA_PLANE.kind);
    all.map(|object| (NamespacedName::new(text(object, "namespace"), text(object, "name")), &**object))
        .collect()
}

/// The flavor of its pods, and the one that waits to be promoted or is being rolled out; its pods, and its rollout.
fn shown(found: &GatewayOverview, rollout: Option<RolloutRow>) -> Row {
    let GatewayOverview { subject, live, next, staged, ready, wanted, created } = found;
    let created: Option<Timestamp> = created.as_ref().and_then(|text| text.parse().ok());
    let mut shown = json!({
        "kind": subject.kind.as_str(), "namespace": subject.name.namespace, "name": subject.name.name,
        "flavor": display(live, MESSAGE_LIMIT),
        "next": next.as_ref().map(|next| display(next, MESSAGE_LIMIT)),
        "staged": staged, "ready": ready, "wanted": wanted, "programmed": null, "created": created,
    });
    if let Some(rollout) = rollout {
        shown["rollout"] = json!(rollout);
    }
    row(&shown)
}

fn troubled(inventory: &GatewayInventory) -> PageSection<TroubleRow> {
    let all = || inventory.gateways().filter(|gateway| overview::trouble(gateway).is_some());
    PageSection {
        total: all().count(),
        shown: all().take(ROWS).filter_map(|gateway| trouble(gateway)).collect(),
    }
}

fn trouble(object: &Value) -> Option<TroubleRow> {
    let found = overview::trouble(object)?;
    let subject = Gateway::subject_of(object, meta_str(object, "namespace").unwrap_or_default())?;
    let is_stalled = found.type_ == condition::STALLED;
    let Remedy { next, command } = match is_stalled {
        true => remedy::of_stalled(&subject.name),
        false => remedy::of_gateway(&subject),
    };
    let NamespacedName { namespace, name } = subject.name;
    // Kong's operator and Deployments say for themselves that pods are not ready; mixed flavors never end.
    let ours = is_stalled || found.type_ == condition::ROUTER_FLAVOR_CONSISTENT;
    Some(TroubleRow {
        kind: subject.kind.as_str(),
        namespace,
        name,
        state: if ours { TroubleState::Stalled } else { TroubleState::NotReady },
        reason: display(found.reason, WORD_LIMIT),
        message: display(found.message, MESSAGE_LIMIT),
        since: found.since.and_then(|since| since.parse().ok()),
        also: Vec::new(),
        next,
        command,
    })
}
