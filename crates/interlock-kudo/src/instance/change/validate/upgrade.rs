//! Upgrades from one OperatorVersion to another: permitted paths, and dropped parameters.

use std::collections::BTreeSet;

use interlock_core::api::stamp::{Applied, Envelope, VersionRef};
use interlock_core::api::values::Values;
use interlock_core::api::violation::{FieldReason, SpecViolation, ViolationField};
use semver::Version;

use crate::instance::change::spec_change::SpecChange;
use crate::instance::rules::ids::UPGRADE_PATH;
use crate::package::Package;

/// The OperatorVersions of a change.
#[derive(Clone, Copy)]
pub struct ChangedPackages<'a> {
    /// Of the new spec.
    pub new: &'a Package,
    /// Of the old one; the same where it is no upgrade, `None` where it is gone.
    pub old: Option<&'a Package>,
}

/// Parameters that an upgrade removes from the spec: the old OperatorVersion defines them, the new
/// one does not (KEP-30).
pub fn dropped_parameters<'a>(
    packages: ChangedPackages<'_>,
    new: &'a Values<'_>,
    change: &SpecChange<'_>,
) -> Vec<&'a str> {
    let Some(old) = packages.old.filter(|_| change.upgrade) else { return Vec::new() };
    let changed: BTreeSet<&str> = change.changed.iter().map(|(key, _)| *key).collect();
    new.keys()
        .map(AsRef::as_ref)
        .filter(|key| packages.new.parameter(key).is_none() && old.parameter(key).is_some())
        .filter(|key| !changed.contains(key))
        .collect()
}

/// Whether a change reverts to the OperatorVersion last carried out in full, which is always
/// allowed.
pub fn is_revert(stamp: Option<&Envelope<'_>>, new: &Applied<'_>) -> bool {
    let Some(previous) = stamp.and_then(|stamp| stamp.previous.as_ref()) else { return false };
    let same_version = |spec: &Applied<'_>| spec.operator_version == new.operator_version;
    previous.kept.inline().is_some_and(same_version) || previous.hash == new.hash()
}

/// Validates the path of an upgrade: the same operator, no lower version, and an old version that
/// the new one lists. Versions that are absent or not semver are not compared.
pub fn upgrade_path(from: &VersionRef<'_>, packages: ChangedPackages<'_>) -> Vec<SpecViolation> {
    let new = packages.new;
    let mut violations = Vec::new();
    let mut violated = |sentence: String, next: String| {
        let arrow = format!("{:?} -> {:?}", from.name, new.key.name);
        let field = ViolationField::new("spec.operatorVersion.name", FieldReason::Forbidden, arrow);
        violations.push(SpecViolation::new(UPGRADE_PATH, sentence, vec![field]).next(next));
    };
    let list = format!("`kubectl get operatorversions -n {}` lists what there is", new.key.namespace);
    if let Some(old) = packages.old {
        let (before, after) = (old.operator(), new.operator());
        if !before.is_empty() && !after.is_empty() && before != after {
            violated(
                format!("the new OperatorVersion is of operator {after:?}, not {before:?}"),
                format!("name one of operator {before:?} ({list}), or create another Instance for {after:?}"),
            );
            // Versions of different operators do not compare.
            return violations;
        }
        let versions = (Version::parse(old.version()), Version::parse(new.version()));
        if let (Ok(before), Ok(after)) = versions
            && after.cmp_precedence(&before).is_lt()
        {
            violated(
                format!("version {after} is lower than {before}"),
                format!(
                    "name an OperatorVersion of version {before} or higher ({list}); a lower one needs another Instance"
                ),
            );
        }
    }
    let listed = new.spec.upgradable_from.as_deref().unwrap_or_default();
    if !listed.is_empty() && !listed.iter().any(|r| r.name() == from.name) {
        let names: Vec<&str> = listed.iter().map(|r| r.name()).collect();
        let (name, names) = (&new.key.name, names.join(" "));
        violated(
            format!("OperatorVersion {name} can be upgraded to from [{names}] only"),
            format!("upgrade to one of [{names}] first, then to {name} ({list})"),
        );
    }
    violations
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use interlock_core::api::stamp::{KeptSpec, Previous};
    use rstest::rstest;

    use super::*;

    const REFERENCED: KeptSpec<'static> = KeptSpec::Referenced;

    fn spec(version: &'static str) -> Applied<'static> {
        let operator_version = VersionRef { name: version.into(), namespace: "ns".into() };
        Applied { operator_version, parameters: Values::new() }
    }

    fn stamp(previous: Option<Previous<'static>>) -> Envelope<'static> {
        let uid: Option<Cow<'static, str>> = None;
        Envelope { hash: spec("v2").hash(), kept: REFERENCED, previous, uid, generation: None }
    }

    #[rstest]
    #[case::no_stamp(None, false)]
    #[case::nothing_before(Some(stamp(None)), false)]
    #[case::that_version(
        Some(stamp(Some(Previous { hash: spec("v3").hash(), kept: KeptSpec::Inline { spec: spec("v1") } }))), true)]
    #[case::that_spec(Some(stamp(Some(Previous { hash: spec("v1").hash(), kept: REFERENCED }))), true)]
    #[case::another(
        Some(stamp(Some(Previous { hash: spec("v0").hash(), kept: KeptSpec::Inline { spec: spec("v0") } }))), false)]
    fn going_back_to_v1(#[case] stamp: Option<Envelope<'static>>, #[case] is_revert: bool) {
        assert_eq!(super::is_revert(stamp.as_ref(), &spec("v1")), is_revert);
    }
}
