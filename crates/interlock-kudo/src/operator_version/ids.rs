//! The rules about OperatorVersions.

use interlock_core::api::rule::rules;

rules! {
    /// An OperatorVersion in use by a locked Instance is frozen.
    VERSION_FROZEN = "version-frozen" in Freeze, waits, reads_others;
    /// An OperatorVersion in use is not deleted.
    VERSION_IN_USE = "version-in-use" in Versions, waits, reads_others;
    /// An OperatorVersion must be one that Instances can be created with or upgraded to.
    VERSION_INVALID = "version-invalid" in Versions;
    /// The packages that an OperatorVersion installs neither lead back to it nor are too many.
    VERSION_DEPENDENCIES = "version-dependencies" in Versions, reads_others;
}
