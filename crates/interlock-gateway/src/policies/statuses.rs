//! What the status of a policy says today.

use std::collections::BTreeMap;

use gateway_policies::PolicyId;
use serde_json::Value;

/// A condition as an object's status has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCondition {
    /// `status`.
    pub status: String,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

/// The condition of a type in `conditions` of a status, or of an ancestor.
pub(super) fn condition(holder: &Value, kind: &str) -> Option<StatusCondition> {
    let mut conditions = holder["conditions"].as_array()?.iter();
    let found = conditions.find(|condition| condition["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some(StatusCondition { status: text("status"), reason: text("reason"), message: text("message") })
}

/// `Accepted`, of one ancestor that does not accept it, if any does not.
pub(super) fn accepted(status: &Value) -> Option<StatusCondition> {
    let ancestors = status["ancestors"].as_array().into_iter().flatten();
    let all = std::iter::once(status).chain(ancestors).filter_map(|holder| condition(holder, "Accepted"));
    let mut all: Vec<StatusCondition> = all.collect();
    let refused = all.iter().position(|own| own.status != "True").unwrap_or_default();
    (!all.is_empty()).then(|| all.swap_remove(refused))
}

/// `Programmed` by ancestor: a Gateway is `NAMESPACE/NAME`, with `#SECTION` where the ancestor is a listener, and
/// another kind has its name before that.
pub(super) fn programmed(id: &PolicyId, status: &Value) -> BTreeMap<String, StatusCondition> {
    let ancestors = status["ancestors"].as_array().into_iter().flatten();
    let found = ancestors.filter_map(|ancestor| {
        Some((ancestor_name(id, &ancestor["ancestorRef"]), condition(ancestor, "Programmed")?))
    });
    found.collect()
}

/// All conditions of a status: `TYPE=STATUS (REASON): MESSAGE`, after the ancestor where it is of one.
pub(super) fn lines(id: &PolicyId, status: &Value) -> Vec<String> {
    let ancestors = status["ancestors"].as_array().into_iter().flatten();
    let ancestors = ancestors.map(|own| (format!("for {}: ", ancestor_name(id, &own["ancestorRef"])), own));
    let holders = std::iter::once((String::new(), status)).chain(ancestors);
    let lines = holders.flat_map(|(whose, holder)| {
        let conditions = holder["conditions"].as_array().into_iter().flatten();
        conditions.map(move |own| {
            let text = |field: &str| own[field].as_str().unwrap_or_default();
            let line = format!("{whose}{}={} ({})", text("type"), text("status"), text("reason"));
            match text("message") {
                "" => line,
                message => format!("{line}: {message}"),
            }
        })
    });
    lines.collect()
}

fn ancestor_name(id: &PolicyId, ancestor: &Value) -> String {
    let text = |field: &str| ancestor[field].as_str().filter(|text| !text.is_empty());
    let mut name = text("name").unwrap_or_default().to_owned();
    match text("kind").unwrap_or("Gateway") {
        "Gateway" => name = format!("{}/{name}", text("namespace").unwrap_or(&id.namespace)),
        "GatewayClass" => name = format!("GatewayClass/{name}"),
        kind => name = format!("{kind}/{}/{name}", text("namespace").unwrap_or(&id.namespace)),
    }
    match text("sectionName") {
        Some(section) => format!("{name}#{section}"),
        None => name,
    }
}
