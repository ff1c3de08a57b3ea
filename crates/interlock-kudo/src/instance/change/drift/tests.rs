//! Pending plans of an upgrade.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::VersionRef;
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::*;
use crate::package::Package;

fn spec(version: &'static str, parameters: &[(&'static str, &'static str)]) -> Applied<'static> {
    Applied {
        operator_version: VersionRef { name: version.into(), namespace: "ns".into() },
        parameters: parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
    }
}

/// A package with these parameters and triggers.
fn package(version: &str, parameters: &[(&str, Option<&str>)]) -> Package {
    let plans = ["backup", "cleanup", "deploy", "update", "upgrade"];
    let plans: Map<String, Value> = plans.into_iter().map(|plan| (plan.to_owned(), json!({}))).collect();
    let parameters: Vec<Value> =
        parameters.iter().map(|(name, trigger)| json!({"name": name, "trigger": trigger})).collect();
    let spec = serde_json::from_value(json!({"plans": plans, "parameters": parameters})).unwrap();
    Package::new(NamespacedName::new("ns", version), spec)
}

const A: (&str, Option<&str>) = ("A", Some("backup"));

#[rstest]
#[case::alone(&[A], &[("A", "1")], &["upgrade"])]
#[case::a_new_parameter_with_a_trigger(&[A, ("NEW", Some("backup"))], &[("A", "1"), ("NEW", "x")], &["upgrade"])]
#[case::a_new_parameter_without(&[A, ("NEW", None)], &[("A", "1"), ("NEW", "x")], &["upgrade"])]
#[case::a_new_parameter_of_cleanup(&[A, ("NEW", Some("cleanup"))], &[("A", "1"), ("NEW", "x")], &["upgrade"])]
#[case::an_old_parameter(&[A], &[("A", "2")], &["upgrade", "backup"])]
#[case::an_old_parameter_of_deploy(&[("A", Some("deploy"))], &[("A", "2")], &["upgrade"])]
#[case::an_old_parameter_of_cleanup(&[("A", Some("cleanup"))], &[("A", "2")], &["upgrade"])]
#[case::a_removed_parameter(&[A], &[], &["upgrade", "backup"])]
fn an_upgrade(
    #[case] parameters: &[(&str, Option<&str>)],
    #[case] after: &[(&'static str, &'static str)],
    #[case] wanted: &[&str],
) {
    let baseline = Baseline::new(&spec("v1", &[("A", "1")]), BTreeMap::new());
    let (old, new) = (package("v1", &[A]), package("v2", parameters));
    let packages = ChangedPackages { new: &new, old: Some(&old) };
    let after = spec("v2", after);
    assert_eq!(in_order(triggered_by_drift(&baseline, &after, packages).unwrap()), wanted);
    let pending = pending_at_start(Some(&baseline), &after, packages, "upgrade");
    assert_eq!(in_order(pending.into_keys()), wanted);
}

#[test]
fn where_the_old_version_is_gone_all_that_changed_counts_and_cleanup_never_runs() {
    let baseline = Baseline::new(&spec("v1", &[("A", "1")]), BTreeMap::new());
    let new = package("v2", &[A, ("NEW", Some("backup")), ("OTHER", Some("cleanup"))]);
    let packages = ChangedPackages { new: &new, old: None };
    let after = spec("v2", &[("A", "1"), ("NEW", "x"), ("OTHER", "x")]);
    assert_eq!(in_order(triggered_by_drift(&baseline, &after, packages).unwrap()), ["upgrade", "backup"]);
}

#[rstest]
#[case::without_a_trigger(&[("A", "1"), ("B", "2"), ("C", "1")], &["update"])]
#[case::with_one(&[("A", "2"), ("B", "1"), ("C", "1")], &["backup"])]
#[case::both(&[("A", "2"), ("B", "2"), ("C", "1")], &["update", "backup"])]
#[case::one_of_update_beside(&[("A", "1"), ("B", "2"), ("C", "2")], &["update"])]
#[case::removed(&[("A", "2"), ("C", "1")], &["update", "backup"])]
fn each_changed_parameter_is_carried_out(
    #[case] after: &[(&'static str, &'static str)],
    #[case] wanted: &[&str],
) {
    let baseline = Baseline::new(&spec("v1", &[("A", "1"), ("B", "1"), ("C", "1")]), BTreeMap::new());
    let package = package("v1", &[A, ("B", None), ("C", Some("update"))]);
    let packages = ChangedPackages { new: &package, old: Some(&package) };
    let pending = pending_at_start(Some(&baseline), &spec("v1", after), packages, "backup");
    assert_eq!(in_order(pending.into_keys()), wanted);
}
