//! `mergeType` of Envoy Gateway: a policy of a route, and that of its Gateway or listener.

use std::sync::Arc;

use gateway_policies::{EffectivePolicy, EffectiveRule, Policy, Replaced};
use serde_json::{Map, Value};

/// How two policies are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeType {
    /// Field by field; the list of the more specific policy wins whole (RFC 7386).
    Json,
    /// The same, but for [`LISTS`].
    Strategic,
}

/// The lists that a strategic merge merges, and the field by which their entries are one.
const LISTS: [(&str, &str); 3] =
    [("/httpUpgrade", "type"), ("/rateLimit/global/rules", "name"), ("/rateLimit/local/rules", "name")];

impl MergeType {
    pub(super) fn of(spec: &Value) -> Option<Self> {
        match spec["mergeType"].as_str()? {
            "JSONMerge" => Some(Self::Json),
            "StrategicMerge" => Some(Self::Strategic),
            _ => None,
        }
    }

    /// A merge of two values at a place, of which the second wins. Depth is bounded by that of the objects that were
    /// read.
    fn merged(self, place: &str, upper: &Value, own: &Value) -> Value {
        match (upper, own) {
            (Value::Object(upper), Value::Object(own)) => {
                let mut all: Map<String, Value> = upper.clone();
                for (key, value) in own {
                    let place = format!("{place}/{key}");
                    let value = upper
                        .get(key)
                        .map_or_else(|| value.clone(), |upper| self.merged(&place, upper, value));
                    all.insert(key.clone(), value);
                }
                Value::Object(all)
            }
            (Value::Array(upper), Value::Array(entries)) if self == Self::Strategic => {
                let list = LISTS.iter().find(|(list, _)| *list == place);
                list.and_then(|(_, key)| self.by_key(upper, entries, key)).unwrap_or_else(|| own.clone())
            }
            _ => own.clone(),
        }
    }

    /// The entries of both lists, and those of one key merged; none where an entry lacks the key.
    fn by_key(self, upper: &[Value], own: &[Value], key: &str) -> Option<Value> {
        let has_key = |entry: &Value| entry[key].is_string();
        if !upper.iter().chain(own).all(has_key) {
            return None;
        }
        let same =
            |entry: &Value, among: &[Value]| among.iter().find(|other| other[key] == entry[key]).cloned();
        let own_entries = own.iter().map(|entry| match same(entry, upper) {
            Some(upper) => self.merged("", &upper, entry),
            None => entry.clone(),
        });
        let rest = upper.iter().filter(|entry| same(entry, own).is_none()).cloned();
        Some(own_entries.chain(rest).collect())
    }
}

/// Adds what the acting policy lacks; in a field that both have, its values win.
pub(super) fn merge_below(effective: &mut EffectivePolicy, parent: &Policy, merge: MergeType) {
    for (key, value) in parent.block.iter().flat_map(|block| &block.rules) {
        match effective.rules.get_mut(key) {
            None => {
                effective.rules.insert(key.clone(), EffectiveRule::of(&parent.id, value.clone()));
            }
            Some(own) => {
                let merged = merge.merged(&format!("/{key}"), value, &own.value);
                if merged == *own.value {
                    let (policy, by) = (parent.id.clone(), Arc::from([own.source.clone()]));
                    effective.replaced.push(Replaced { policy, rule: key.clone(), by });
                } else {
                    (own.value, own.with) = (Arc::new(merged), Some(parent.id.clone()));
                }
            }
        }
    }
}
