//! AuthConfigs of ours, as their watch reported them.

use std::collections::BTreeSet;

use gateway_policies::{NodeKey, ObjectKind};
use interlock_core::api::object::{NamespacedName, annotation};
use serde_json::Value;

use crate::policies::enforcement::names::{AUTH_CONFIG, GATEWAY_UID, RENDERED};

/// Characters of what an auth server says.
const MESSAGE: usize = 200;
/// The reason of Ready while Authorino reads an AuthConfig anew; it goes on with the version before.
const RECONCILING: &str = "Reconciling";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policies::enforcement) struct SeenAuthConfig {
    /// The Gateway that it is of.
    pub(in crate::policies::enforcement) gateway: NodeKey,
    /// The hash of what was written.
    pub(in crate::policies::enforcement) rendered: Option<String>,
    /// The hosts that it names.
    hosts: BTreeSet<String>,
    /// What the auth server says.
    said: Said,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    /// It decides about requests for these hosts.
    Ready(BTreeSet<String>),
    /// It reads it.
    Reconciling,
    /// It does not decide by it.
    Other(String),
}

impl SeenAuthConfig {
    /// An AuthConfig, as it was seen before and is now.
    pub(in crate::policies::enforcement) fn of(
        object: &Value,
        name: &NamespacedName,
        was: Option<&Self>,
    ) -> Self {
        let owner = object["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
        let gateway = NodeKey::new(ObjectKind::Gateway, &name.namespace, owner);
        let rendered = annotation(object, RENDERED).map(str::to_owned);
        let hosts = texts(&object["spec"]["hosts"]);
        let was = was.filter(|was| was.hosts == hosts).map(|was| &was.said);
        let said = match (said(&object["status"]), was) {
            (Said::Reconciling, Some(Said::Ready(ready))) => Said::Ready(ready.clone()),
            (said, _) => said,
        };
        Self { gateway, rendered, hosts, said }
    }

    /// Whether the auth server decides by it about requests for a host; else what it says.
    pub(in crate::policies::enforcement) fn is_ready(&self, host: &str) -> Result<(), &str> {
        match &self.said {
            Said::Ready(hosts) if hosts.contains(host) => Ok(()),
            Said::Ready(_) => Err("the auth server decides by another AuthConfig that names its host"),
            Said::Reconciling => Err(RECONCILING),
            Said::Other(said) => Err(said),
        }
    }
}

/// Authorino says Ready, and lists the hosts that it took: one that another AuthConfig has stays with that.
fn said(status: &Value) -> Said {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|own| own["type"] == "Ready");
    let text = |field: &str| ready.and_then(|own| own[field].as_str()).unwrap_or_default();
    match (text("status"), text("reason")) {
        ("True", _) => Said::Ready(texts(&status["summary"]["hostsReady"])),
        (_, RECONCILING) => Said::Reconciling,
        (_, reason) => {
            let said = format!("{reason} {}", text("message"));
            let said: String = said.trim().chars().take(MESSAGE).collect();
            Said::Other(if said.is_empty() { "no auth server says anything of it".to_owned() } else { said })
        }
    }
}

fn texts(list: &Value) -> BTreeSet<String> {
    let members = list.as_array().into_iter().flatten();
    members.filter_map(|own| own.as_str().map(str::to_owned)).collect()
}

/// Whether an AuthConfig has a name and the label of those that Interlock makes.
pub(in crate::policies::enforcement) fn is_ours(object: &Value, name: &NamespacedName) -> bool {
    name.name.starts_with(AUTH_CONFIG) && !object["metadata"]["labels"][GATEWAY_UID].is_null()
}
