//! Names of the kinds around Kong.

use interlock_core::kinds::watched_as;
use interlock_core::topology::KindName;

use super::labelled;
use crate::api;

/// `DataPlane.gateway-operator.konghq.com`.
pub const DATA_PLANE: KindName = KindName::new(api::GROUP, "DataPlane");
/// `ControlPlane.gateway-operator.konghq.com`.
pub const CONTROL_PLANE: KindName = KindName::new(api::GROUP, "ControlPlane");
/// Deployments with the label [`GUARD`](interlock_core::api::meta::GUARD); others are unknown.
pub const GUARDED_DEPLOYMENT: KindName = watched_as(&labelled::GUARDED_DEPLOYMENTS);
/// Services with the label [`GUARD`](interlock_core::api::meta::GUARD); others are unknown.
pub const GUARDED_SERVICE: KindName = watched_as(&labelled::GUARDED_SERVICES);
/// ConfigMaps with the label [`FLAVOR_SOURCE`](interlock_core::api::meta::FLAVOR_SOURCE); others are unknown.
pub const FLAVOR_SOURCE: KindName = watched_as(&labelled::FLAVOR_SOURCES);
/// `Secret`, which is not watched.
pub const SECRET: KindName = KindName::new("", "Secret");
