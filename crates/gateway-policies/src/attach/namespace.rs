//! Namespaces that a rule admits.

use crate::object::{NamespaceRule, NamespacesFrom};
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
            rule.selector.as_ref().is_some_and(|selector| selector.matches(&namespace.labels))
        }
    };
    if is_admitted { Ok(()) } else { Err(RefusalReason::NamespaceNotAllowed) }
}
