//! AuthConfigs are written, and deleted once no proxy asks about them.

use std::sync::Arc;

use gateway_policies::NodeKey;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::inventory::ReadKinds;
use interlock_core::reconcile::{Needs, View};
use serde_json::{Value, json};

use super::config::{AuthConfig, without_others};
use crate::names as groups;
use crate::policies::enforcement::names::{self, AUTH_CONFIG, GATEWAY_UID, Patched};
use crate::policies::enforcement::rendering::Rendered;
use crate::policies::enforcement::writes::{applied, metadata_of, owned, surplus};

/// The version of the kind AuthConfig.
const AUTHORINO_VERSION: &str = "authorino.kuadrant.io/v1beta3";

/// Why no AuthConfig is read, where that is so.
pub(in crate::policies::enforcement) fn unread_auth_configs(view: &View<'_>) -> Option<String> {
    let is_read = view.lister::<dyn ReadKinds>()?.is_read(groups::AUTHORINO, "AuthConfig", "");
    (!is_read).then(|| {
        "AuthConfigs, whose definition, authconfigs.authorino.kuadrant.io, is not installed, or which Interlock may not read"
            .to_owned()
    })
}

/// What makes AuthConfigs those that are wanted. Where the kind is not read, there is nothing that can be done about them.
pub(in crate::policies::enforcement) fn auth_configs(
    view: &View<'_>,
    gateway: &NodeKey,
    rendered: Option<&Rendered>,
) -> Result<Vec<Effect>, Needs> {
    if unread_auth_configs(view).is_some() {
        return Ok(Vec::new());
    }
    let wanted = wanted_auth_configs(view.object(), gateway, rendered);
    let present = auth_configs_of(view, gateway)?;
    let mut effects = applied(view, &wanted, present)?;
    for wanted in &wanted {
        let Some(own) = present.iter().find(|own| ObjectKey::of(own) == ObjectKey::of(wanted)) else {
            continue;
        };
        // An apply leaves what others have added.
        if let Some(spec) = without_others(&own["spec"], &wanted["spec"]) {
            let key = ObjectKey::of(own);
            effects.extend(key.and_then(|key| Effect::patch_of(key, own, json!({"spec": spec}))));
        }
    }
    Ok(effects)
}

/// The deletion of AuthConfigs that are not wanted.
pub(in crate::policies::enforcement) fn surplus_auth_configs(
    view: &View<'_>,
    gateway: &NodeKey,
    rendered: Option<&Rendered>,
) -> Result<Vec<Effect>, Needs> {
    let is_kept = rendered.is_some_and(|own| own.is_kept(Patched::Guards));
    if is_kept || unread_auth_configs(view).is_some() {
        return Ok(Vec::new());
    }
    let wanted = wanted_auth_configs(view.object(), gateway, rendered);
    let is_ours = |name: &str| name.starts_with(AUTH_CONFIG);
    Ok(surplus(&wanted, auth_configs_of(view, gateway)?, is_ours).collect())
}

fn auth_configs_of<'a>(view: &View<'a>, gateway: &NodeKey) -> Result<&'a [Arc<Value>], Needs> {
    let uid = meta_str(view.object(), "uid").unwrap_or_default();
    view.list(&owned(AUTHORINO_VERSION, "AuthConfig", &gateway.namespace, GATEWAY_UID, uid))
}

fn wanted_auth_configs(object: &Value, gateway: &NodeKey, rendered: Option<&Rendered>) -> Vec<Value> {
    let guarded = rendered.filter(|own| own.asked.auth.is_ok()).and_then(|own| own.guarded.as_ref());
    let configs = guarded.into_iter().flat_map(|own| &own.configs);
    let configs = configs.filter(|(_, own)| own.gateway == *gateway);
    configs.map(|(host, own)| auth_config(object, gateway, host, own)).collect()
}

/// An AuthConfig.
fn auth_config(object: &Value, gateway: &NodeKey, host: &str, own: &AuthConfig) -> Value {
    json!({
        "apiVersion": AUTHORINO_VERSION,
        "kind": "AuthConfig",
        "metadata": metadata_of(object, names::auth_config(gateway, host), GATEWAY_UID, &own.hash),
        "spec": own.spec,
    })
}
