//! Names of the kinds of KUDO.

use interlock_core::api::meta::KUDO_GROUP;
use interlock_core::topology::KindName;

/// `OperatorVersion.kudo.dev`.
pub const OPERATOR_VERSION: KindName = KindName::new(KUDO_GROUP, "OperatorVersion");
/// `Operator.kudo.dev`.
pub const OPERATOR: KindName = KindName::new(KUDO_GROUP, "Operator");
