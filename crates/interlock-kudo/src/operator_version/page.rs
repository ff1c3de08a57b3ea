//! What the page about a process shows of OperatorVersions.

use interlock_core::api::display::display;
use interlock_core::kinds::page::{NAME_LIMIT, PagePart, PageSection, ROWS, SectionName, View, row, time};
use interlock_core::kinds::{fact, link};
use interlock_core::topology::schema::Side;
use jiff::Timestamp;
use serde::Serialize;

use crate::names::OPERATOR_VERSION;

#[derive(Debug, Serialize)]
struct VersionRow {
    namespace: String,
    name: String,
    /// Instances that refer to it.
    users: usize,
    created: Option<Timestamp>,
    /// Why it is not cached, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

pub(super) fn part(view: &View<'_>) -> PagePart {
    let mut all: Vec<_> = view.rows(OPERATOR_VERSION).map(|row| (row.id(), row)).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let shown = all.iter().take(ROWS).map(|(id, version)| VersionRow {
        namespace: id.namespace.to_string(),
        name: display(&id.name, NAME_LIMIT),
        users: version.along(Side::Child, link::OPERATOR_VERSION).count(),
        created: time(version.number(fact::CREATED)),
        left_out: (view.left_out)(id),
    });
    let shown = shown.map(|version| row(&version)).collect();
    let name = SectionName { name: "versions", place: 0 };
    PagePart { sections: vec![(name, PageSection { total: all.len(), shown })], ..PagePart::default() }
}
