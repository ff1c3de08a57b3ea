//! Limits as Limitador reads them.

use gateway_policies::NodeKey;
use serde_json::{Value, json};

use super::limits::RequestLimit;

/// Routes of one namespace on a Gateway that are counted apart. The entries of a Gateway's limits are as many, and what
/// the namespace is allowed by them.
pub(super) const ROUTES: usize = 256;

/// What counts together: `NAMESPACE/GATEWAY/KIND/NAMESPACE/ROUTE`. A route of two Gateways is counted for each, and
/// an HTTPRoute and a GRPCRoute of one name apart. Where a namespace has too many routes on the Gateway, all of them
/// count together, as `NAMESPACE/GATEWAY/NAMESPACE`.
pub(super) fn domain(gateway: &NodeKey, route: &NodeKey, is_apart: bool) -> String {
    if !is_apart {
        return format!("{}/{}/{}", gateway.namespace, gateway.name, route.namespace);
    }
    let kind = route.kind.name().to_ascii_lowercase();
    format!("{}/{}/{kind}/{}/{}", gateway.namespace, gateway.name, route.namespace, route.name)
}

/// The entries of a limit, one for each rate.
pub(super) fn entries(domain: &str, limit: &RequestLimit) -> impl Iterator<Item = Value> {
    let value_of = |key: &str| format!("descriptors[0]['{key}']");
    let variables: Vec<String> =
        (0..limit.counters.len()).map(|index| value_of(&limit.counter_key(index))).collect();
    let condition = format!("{} == '1'", value_of(&limit.id));
    limit.rates.iter().map(move |(seconds, most)| {
        json!({
            "namespace": domain, "name": limit.name, "max_value": most, "seconds": seconds,
            "conditions": [condition], "variables": variables,
        })
    })
}

/// Limits as a file, an entry a line. Limitador reads YAML, of which JSON is a part.
pub(super) fn file(entries: &[Value]) -> String {
    let mut file = String::from("[");
    for (position, entry) in entries.iter().enumerate() {
        file.push_str(if position == 0 { "\n" } else { ",\n" });
        file.push_str(&entry.to_string());
    }
    file.push_str("\n]\n");
    file
}
