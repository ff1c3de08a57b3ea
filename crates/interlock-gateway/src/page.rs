//! What the page about a process shows of Gateways: their class, and whether they are programmed.

use interlock_core::api::display::display;
use interlock_core::kinds::fact;
use interlock_core::kinds::page::{NAME_LIMIT, PagePart, PageSection, ROWS, SectionName, View, row, time};
use interlock_core::topology::ObjectRow;
use interlock_core::topology::schema::Side;
use serde_json::{Value, json};

use crate::names::GATEWAY;

/// Gateways of the Gateway API come after those that have pods.
const SECTION: SectionName = SectionName { name: "gateways", place: 1 };

pub(crate) fn part(view: &View<'_>) -> PagePart {
    let mut all: Vec<_> = view.rows(GATEWAY).map(|row| (row.id(), row)).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let shown = all.iter().take(ROWS).map(|(_, gateway)| row(&shown(gateway))).collect();
    PagePart { sections: vec![(SECTION, PageSection { total: all.len(), shown })], ..PagePart::default() }
}

/// The columns of the section; a Gateway has no pods of its own.
fn shown(gateway: &ObjectRow<'_>) -> Value {
    let id = gateway.id();
    let class = gateway.along(Side::Parent, "class").next().map(|class| class.id().name.to_string());
    json!({
        "kind": "Gateway", "namespace": &*id.namespace, "name": display(&id.name, NAME_LIMIT),
        "flavor": class.map(|class| format!("class {class}")).unwrap_or_default(),
        "next": null, "staged": false, "ready": null, "wanted": null,
        "programmed": match gateway.number(fact::PROGRAMMED) {
            Some(1) => Some(true),
            Some(2) => Some(false),
            _ => None,
        },
        "created": time(gateway.number(fact::CREATED)),
    })
}
