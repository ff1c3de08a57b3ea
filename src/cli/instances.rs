//! Instances by name.

use interlock_core::api::kudo::Instance;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use super::error::CliError;
use super::suggest;

/// Most Instances whose names are compared with one that does not exist.
const COMPARED: u32 = 500;

/// The error about an Instance that does not exist; it names those that do.
pub(super) async fn missing(instances: &Api<Instance>, namespace: &str, name: &str) -> CliError {
    let listed = instances.list_metadata(&ListParams::default().limit(COMPARED)).await;
    // Who may not list them sees no names.
    let names: Vec<String> =
        listed.map(|list| list.iter().map(|i| i.name_any()).collect()).unwrap_or_default();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let remedy = suggest::remedy(name, &format!("Instances of namespace {namespace}"), &names);
    CliError::unreached(format!("Instance {namespace}/{name} does not exist"))
        .next(remedy.unwrap_or_else(|| "choose another namespace with -n".to_owned()))
}
