//! Names of the kinds around Kong.

use super::labelled;
use crate::api::kong;
use crate::topology::KindName;

/// `DataPlane.gateway-operator.konghq.com`.
pub const DATA_PLANE: KindName = KindName::new(kong::GROUP, "DataPlane");
/// `ControlPlane.gateway-operator.konghq.com`.
pub const CONTROL_PLANE: KindName = KindName::new(kong::GROUP, "ControlPlane");
/// Deployments with the label [`GUARD`](crate::api::meta::GUARD); others are unknown.
pub const GUARDED_DEPLOYMENT: KindName = labelled::GUARDED_DEPLOYMENTS.kind_name();
/// Services with the label [`GUARD`](crate::api::meta::GUARD); others are unknown.
pub const GUARDED_SERVICE: KindName = labelled::GUARDED_SERVICES.kind_name();
/// ConfigMaps with the label [`FLAVOR_SOURCE`](crate::api::meta::FLAVOR_SOURCE); others are unknown.
pub const FLAVOR_SOURCE: KindName = labelled::FLAVOR_SOURCES.kind_name();
/// `Secret`, which is not watched.
pub const SECRET: KindName = KindName::new("", "Secret");
