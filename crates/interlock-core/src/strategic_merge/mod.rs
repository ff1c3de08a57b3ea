//! Strategic merge, as Kubernetes defines it: objects member by member, lists whose elements have a key element by
//! element, other lists as a whole.
//!
//! [`three_way`] is what a client-side apply of a built-in kind does (client-go `strategicpatch`), by the rules that the
//! API server publishes for each field ([`schema`]). The keys of list elements and the directives are those of the pod
//! templates of DataPlanes too.

pub mod directive;
mod element_order;
pub mod list_key;
mod scalar_list;
pub mod schema;
pub mod three_way;
