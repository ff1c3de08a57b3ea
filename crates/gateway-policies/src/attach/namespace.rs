//! Namespaces that a rule admits.

use std::collections::BTreeMap;

use crate::object::{LabelSelector, NamespaceRule, NamespacesFrom, Operator};
use crate::refusal::RefusalReason;
use crate::store::Store;

/// Whether a rule of an object in `own` admits an object in `other`.
pub(super) fn admits(
    store: &Store,
    rule: &NamespaceRule,
    default: NamespacesFrom,
    own: &str,
    other: &str,
) -> Result<(), RefusalReason> {
    let is_admitted = match rule.from.unwrap_or(default) {
        NamespacesFrom::All => true,
        NamespacesFrom::Same => own == other,
        NamespacesFrom::None => false,
        NamespacesFrom::Selector => {
            let namespace = store.namespace(other).ok_or(RefusalReason::NamespaceUnknown)?;
            // As in Kubernetes, an absent selector matches nothing, and an empty one everything.
            rule.selector.as_ref().is_some_and(|selector| matches(selector, &namespace.labels))
        }
    };
    if is_admitted { Ok(()) } else { Err(RefusalReason::NamespaceNotAllowed) }
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let has = |(label, value): (&String, &String)| labels.get(label) == Some(value);
    let holds = |requirement: &crate::object::Requirement| {
        let value = labels.get(&requirement.key);
        match requirement.operator {
            Operator::In => value.is_some_and(|value| requirement.values.contains(value)),
            Operator::NotIn => !value.is_some_and(|value| requirement.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    };
    selector.match_labels.iter().all(has) && selector.match_expressions.iter().all(holds)
}
