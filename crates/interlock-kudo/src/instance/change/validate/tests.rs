//! Validation of a spec against a baseline that is only partly known.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::values::Values;
use rstest::rstest;

use super::*;
use crate::api::OperatorVersionSpec;
use crate::package::Package;

/// Version 0.2.0 can be upgraded to from none but `v1`.
fn package(name: &str, operator: &str, version: &str) -> Package {
    let from = if version == "0.2.0" { serde_json::json!([{"name": "v1"}]) } else { serde_json::json!([]) };
    let spec: OperatorVersionSpec = serde_json::from_value(serde_json::json!({
        "operator": {"name": operator}, "version": version, "upgradableFrom": from, "plans": {"deploy": {}},
    }))
    .unwrap();
    Package::new(NamespacedName::new("ns", name), spec)
}

fn spec(name: &str) -> Applied<'static> {
    let operator_version = VersionRef { name: name.to_owned().into(), namespace: "ns".into() };
    Applied { operator_version, parameters: Values::new() }
}

/// The annotation holds the new spec, not the one before: the upgrade path is validated all the same.
#[rstest]
#[case::up(("v1", "0.1.0"), ("v2", "0.2.0"), false, None)]
#[case::from_elsewhere(("v0", "0.1.0"), ("v2", "0.2.0"), false, Some("can be upgraded to from [v1] only"))]
#[case::down(("v2", "0.2.0"), ("v1", "0.1.0"), false, Some("version 0.1.0 is lower than 0.2.0"))]
#[case::back(("v2", "0.2.0"), ("v1", "0.1.0"), true, None)]
fn the_path_of_an_upgrade_is_validated_without_the_old_spec(
    #[case] old: (&str, &str),
    #[case] new: (&str, &str),
    #[case] carried_out_before: bool,
    #[case] refused: Option<&str>,
) {
    let (before, after) = (spec(old.0), spec(new.0));
    let mut baseline = Baseline::new(&before, [].into());
    if carried_out_before {
        baseline = baseline.after(Some(&Baseline::new(&after, [].into())));
    }
    let packages = (package(old.0, "kafka", old.1), package(new.0, "kafka", new.1));
    let known = Before {
        baseline: &baseline,
        stamp: Some(&after),
        version: Some(&before.operator_version),
        is_revert: baseline.reverts_to(&after),
    };
    let violations =
        edit_past_admission(known, &after, ChangedPackages { new: &packages.1, old: Some(&packages.0) });
    let said: Vec<&str> = violations.iter().map(|violation| violation.sentence.as_str()).collect();
    match (said.as_slice(), refused) {
        ([], None) => {}
        ([said], Some(text)) => assert!(said.contains(text), "{said}"),
        (said, _) => panic!("{said:?}"),
    }
}
