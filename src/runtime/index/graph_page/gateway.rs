//! Gateways: DataPlanes and labelled Deployments with their router flavors, and Gateways of the Gateway API.

use interlock_core::api::display::display;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::fact;
use interlock_core::topology::ObjectRow;
use interlock_core::topology::schema::Side;
use interlock_gateway::names::GATEWAY;
use interlock_kong::data_plane::flavor::gateway_ref::GatewayKind;
use interlock_kong::data_plane::flavor::overview::GatewayOverview;
use jiff::Timestamp;
use serde::Serialize;

use super::list::{MESSAGE_LIMIT, NAME_LIMIT, PageSection, ROWS, time};
use super::rollout::{self, RolloutRow};
use crate::runtime::index::tables::Tables;

#[derive(Debug, Serialize)]
pub(super) struct GatewayRow {
    kind: &'static str,
    namespace: String,
    name: String,
    /// The flavor of its pods; of a Gateway its class.
    flavor: String,
    /// The flavor that waits to be promoted, or is being rolled out.
    next: Option<String>,
    /// Whether `next` waits for a promotion.
    staged: bool,
    /// Pods that are ready, and that it asks for.
    ready: Option<i64>,
    wanted: Option<i64>,
    /// Of a Gateway: whether it is programmed, where its status says so.
    programmed: Option<bool>,
    /// Of a DataPlane that stages its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<RolloutRow>,
    created: Option<Timestamp>,
}

/// All gateways, those of Kong first, of these those in trouble.
pub(super) fn all(tables: &Tables) -> PageSection<GatewayRow> {
    let of_api = tables.graph.find_kind(GATEWAY.group, GATEWAY.kind);
    let mut of_api: Vec<_> =
        of_api.into_iter().flat_map(|kind| tables.graph.rows(kind)).map(|row| (row.id(), row)).collect();
    of_api.sort_by(|(one, _), (other, _)| one.cmp(other));
    let total = tables.flavors.gateways().count() + of_api.len();
    let data_planes = rollout::data_planes(tables);
    let kong = tables.flavors.overviews(ROWS).into_iter();
    let kong = kong.map(|found| {
        let data_plane =
            data_planes.get(&found.subject.name).filter(|_| found.subject.kind == GatewayKind::DataPlane);
        let rollout = data_plane.and_then(|object| RolloutRow::of(tables, &found.subject.name, object));
        GatewayRow::of_kong(found, rollout)
    });
    let shown = kong.chain(of_api.iter().map(|(_, row)| GatewayRow::of_gateway_api(row))).take(ROWS);
    PageSection { total, shown: shown.collect() }
}

impl GatewayRow {
    fn of_kong(found: GatewayOverview, rollout: Option<RolloutRow>) -> Self {
        let GatewayOverview { subject, live, next, staged, ready, wanted, created } = found;
        let NamespacedName { namespace, name } = subject.name;
        Self {
            kind: match subject.kind {
                GatewayKind::DataPlane => "DataPlane",
                GatewayKind::Deployment => "Deployment",
            },
            namespace,
            name,
            flavor: display(&live, MESSAGE_LIMIT),
            next: next.map(|next| display(&next, MESSAGE_LIMIT)),
            staged,
            ready,
            wanted,
            programmed: None,
            rollout,
            created: created.and_then(|text| text.parse().ok()),
        }
    }

    fn of_gateway_api(row: &ObjectRow<'_>) -> Self {
        let id = row.id();
        let class = row.along(Side::Parent, "class").next().map(|class| class.id().name.to_string());
        Self {
            kind: "Gateway",
            namespace: id.namespace.to_string(),
            name: display(&id.name, NAME_LIMIT),
            flavor: class.map(|class| format!("class {class}")).unwrap_or_default(),
            next: None,
            staged: false,
            ready: None,
            wanted: None,
            programmed: match row.number(fact::PROGRAMMED) {
                Some(1) => Some(true),
                Some(2) => Some(false),
                _ => None,
            },
            rollout: None,
            created: time(row.number(fact::CREATED)),
        }
    }
}
