//! `Namespace`: its termination ends plans; its labels select the rules.

mod links;
mod lister;

pub use lister::{NamespaceLister, is_terminating};

use super::capabilities::{ATTACHMENTS, INSTANCES};
use super::descriptor::{Kind, Watch};
use crate::api::resource::Resource;

/// Everything that is known of Namespaces.
pub static KIND: Kind = Kind {
    watch: Some(Watch::required(&INSTANCES).also(&[&ATTACHMENTS])),
    schema: Some(&links::NAMESPACE_SCHEMA),
    ..Kind::new(Resource::built_in("", &["v1"], "Namespace", "namespaces").cluster_scoped())
};
