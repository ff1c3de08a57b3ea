//! Names, labels and hashes of what is written.

use std::fmt::Write as _;

use gateway_policies::NodeKey;
use interlock_core::api::interlock::LimitStore;
use interlock_core::api::object::NamespacedName;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The label with the uid of the Gateway that an EnvoyPatchPolicy is of.
pub(super) const GATEWAY_UID: &str = "interlock.dev/gateway-uid";
/// How the names of EnvoyPatchPolicies begin.
pub(super) const PATCH: &str = "interlock-limits-";
/// The label of ConfigMaps that Interlock writes limits into.
pub(crate) const LIMITS: &str = "interlock.dev/limits";
/// The annotation with the hash of what was written.
pub(super) const RENDERED: &str = "interlock.dev/rendered";
/// The name of ConfigMaps with limits in the topology.
pub(crate) const LIMITS_CONFIG_MAP: &str = "LimitsConfigMap";
/// The key of the limits in a ConfigMap.
pub(super) const LIMITS_FILE: &str = "limits.yaml";

/// Characters of a Gateway's name in the names of its EnvoyPatchPolicies.
const NAME: usize = 200;

/// The name of an EnvoyPatchPolicy, by its position.
pub(super) fn patch(gateway: &NodeKey, position: usize) -> NamespacedName {
    let name = &*gateway.name;
    let own = match name.get(..NAME) {
        Some(shortened) if name.len() > NAME => format!("{shortened}-{}", digest(name, 4)),
        _ => name.to_owned(),
    };
    NamespacedName::new(&*gateway.namespace, format!("{PATCH}{own}-{position}"))
}

/// The name of the cluster of a Limitador.
pub(super) fn cluster((host, port): &(String, u16)) -> String {
    format!("interlock.limitador.{host}:{port}")
}

/// Where limits are stored, for people.
pub(super) fn store(store: &LimitStore) -> String {
    match store {
        LimitStore::Limitador(name) => format!("Limitador {name}"),
        LimitStore::ConfigMap(name) => format!("ConfigMap {name}"),
    }
}

/// The hash of a value.
pub(super) fn hash(value: &Value) -> String {
    digest(&value.to_string(), 16)
}

/// The first bytes of a text's SHA-256, in hexadecimal digits.
pub(super) fn digest(text: &str, bytes: usize) -> String {
    let mut found = String::with_capacity(2 * bytes);
    for byte in Sha256::digest(text).iter().take(bytes) {
        // A String takes all that is written to it.
        let _ = write!(found, "{byte:02x}");
    }
    found
}
