//! What rules ask about Namespaces.

use crate::admission::RuleContext;

/// The Namespaces.
pub trait NamespaceLister: Send + Sync {
    /// Whether the namespace is being terminated.
    fn namespace_terminating(&self, namespace: &str) -> bool;
}

/// Whether a namespace is known to be terminating.
pub fn is_terminating(context: &RuleContext<'_>, namespace: &str) -> bool {
    let lister = context.lister.kinds().get::<dyn NamespaceLister>();
    lister.is_some_and(|lister| lister.namespace_terminating(namespace))
}
