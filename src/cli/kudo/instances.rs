//! Instances by name.

use interlock_core::api::suggest;
use interlock_kudo::api::Instance;
use kube::api::{Api, ListParams};
use kube::{Error, ResourceExt as _};

use crate::cli::common::error::CliError;

/// Most Instances whose names are compared with one that does not exist.
const COMPARED: u32 = 500;

/// The error about an Instance that does not exist; it names those that do.
pub(in crate::cli) async fn missing(instances: &Api<Instance>, namespace: &str, name: &str) -> CliError {
    let names: Vec<String> = match instances.list_metadata(&ListParams::default().limit(COMPARED)).await {
        Ok(list) => list.iter().map(|instance| instance.name_any()).collect(),
        Err(Error::Api(status)) if status.is_not_found() => return not_served(),
        // Who may not list them sees no names.
        Err(_) => Vec::new(),
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let remedy = suggest::remedy(name, &format!("Instances of namespace {namespace}"), &names);
    CliError::unreached(format!("Instance {namespace}/{name} does not exist"))
        .next(remedy.unwrap_or_else(|| "choose another namespace with -n".to_owned()))
}

/// A kind that is not served is answered as an object that does not exist is.
fn not_served() -> CliError {
    CliError::unreached("the API server serves no kind instances.kudo.dev").next(
        "install the definitions with `interlock render crds | kubectl apply --server-side -f -`, or choose another \
         cluster with --context",
    )
}
