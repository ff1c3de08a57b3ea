//! Names of the kinds of KUDO.

use crate::api::meta::KUDO_GROUP;
use crate::topology::KindName;

/// `OperatorVersion.kudo.dev`.
pub const OPERATOR_VERSION: KindName = KindName::new(KUDO_GROUP, "OperatorVersion");
/// `Operator.kudo.dev`.
pub const OPERATOR: KindName = KindName::new(KUDO_GROUP, "Operator");
