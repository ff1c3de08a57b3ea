//! Names, labels and hashes of what is written.

use std::fmt::{Display, Write as _};

use gateway_policies::NodeKey;
use interlock_core::api::interlock::LimitStore;
use interlock_core::api::object::NamespacedName;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The label with the uid of the Gateway that limits or an AuthConfig are of.
pub(super) const GATEWAY_UID: &str = "interlock.dev/gateway-uid";
/// How the names of AuthConfigs begin.
pub(super) const AUTH_CONFIG: &str = "interlock-auth-";
/// The label of ConfigMaps that Interlock writes limits into.
pub(crate) const LIMITS: &str = "interlock.dev/limits";
/// The annotation with the hash of what was written.
pub(super) const RENDERED: &str = "interlock.dev/rendered";
/// The name of ConfigMaps with limits in the topology.
pub(crate) const LIMITS_CONFIG_MAP: &str = "LimitsConfigMap";
/// The key of the limits in a ConfigMap.
pub(super) const LIMITS_FILE: &str = "limits.yaml";

/// How the names of EnvoyPatchPolicies for a GatewayClass end.
pub(super) const OF_CLASS: &str = "class";
/// How those end that need not be in a proxy, but for that.
pub(super) const STANDBY: &str = "standby";
/// Characters of the name of a Gateway or GatewayClass in the names of its EnvoyPatchPolicies.
const NAME: usize = 200;

/// What EnvoyPatchPolicies carry out. Each is written by itself: what holds one up leaves the other as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Patched {
    /// AuthPolicies.
    Guards,
    /// RateLimitPolicies.
    Limits,
}

impl Patched {
    pub(super) const ALL: [Self; 2] = [Self::Guards, Self::Limits];

    /// How the names begin.
    fn prefix(self) -> &'static str {
        match self {
            Self::Guards => "interlock-auth-",
            Self::Limits => "interlock-limits-",
        }
    }

    /// The label with the uid of the Gateway or GatewayClass. A version before guards deletes what has its label and is no limit.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Guards => "interlock.dev/guarded-gateway-uid",
            Self::Limits => GATEWAY_UID,
        }
    }

    /// What an EnvoyPatchPolicy of that name carries out.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| name.starts_with(own.prefix()))
    }
}

/// The name of an EnvoyPatchPolicy for what has that name, by its position, or what else tells it from the others.
pub(super) fn patch(patched: Patched, name: &str, position: impl Display) -> String {
    let own = match name.get(..NAME) {
        Some(shortened) if name.len() > NAME => format!("{shortened}-{}", digest(name, 4)),
        _ => name.to_owned(),
    };
    format!("{}{own}-{position}", patched.prefix())
}

/// The name of the cluster of a Limitador.
pub(super) fn cluster((host, port): &(String, u16)) -> String {
    format!("interlock.limitador.{host}:{port}")
}

/// The name of the cluster of an auth server.
pub(super) fn auth_cluster((host, port): &(String, u16)) -> String {
    format!("interlock.auth.{host}:{port}")
}

/// The name of the AuthConfig of a host, which begins with `interlock-`.
pub(super) fn auth_config(gateway: &NodeKey, host: &str) -> NamespacedName {
    let own = host.rsplit('-').next().unwrap_or_default();
    NamespacedName::new(&*gateway.namespace, format!("{AUTH_CONFIG}{own}"))
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
