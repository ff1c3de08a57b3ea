//! The packages that an OperatorVersion installs: circles and numbers.

use interlock_core::admission::WebhookEndpoint;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Said, World, review};
use crate::package::dependencies::MAX_VERSIONS;

/// An OperatorVersion of version 1 with a task for each of these packages.
pub(super) fn installing(operator: &str, packages: &[&str]) -> Value {
    let task = |package: &&str| json!({"name": package, "kind": "KudoOperator", "spec": {"package": package, "operatorVersion": "1"}});
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion",
        "metadata": {"name": format!("{operator}-1"), "namespace": super::NAMESPACE},
        "spec": {
            "operator": {"name": operator}, "version": "1",
            "tasks": packages.iter().map(task).collect::<Value>(),
            "plans": {"deploy": {"phases": []}},
        },
    })
}

pub(super) fn ask(world: &World, operation: &str, object: Value, old: Value) -> Said {
    world.ask(WebhookEndpoint::Validate, &review(operation, "OperatorVersion", object, old))
}

/// What is there, each with the packages that it installs, and those of `web` -> the circle.
#[rstest]
#[case::nothing_is_there("", "db", None)]
#[case::one_below_another("db disk, disk", "db disk", None)]
#[case::itself("", "web", Some("web-1 -> web-1"))]
#[case::back_to_it("db disk, disk web", "db", Some("web-1 -> db-1 -> disk-1 -> web-1"))]
fn circles(#[case] there: &str, #[case] packages: &str, #[case] circle: Option<&str>) {
    let there = there.split(", ").filter(|package| !package.is_empty());
    let world = there.fold(World::strict(), |world, package| {
        let names: Vec<&str> = package.split(' ').collect();
        world.with(installing(names[0], &names[1..]))
    });
    let packages: Vec<&str> = packages.split(' ').collect();
    let said = ask(&world, "CREATE", installing("web", &packages), Value::Null);
    match circle {
        None => said.assert_allowed(),
        Some(circle) => said.assert_refused("version-dependencies", &format!("in a circle: {circle}")),
    }
}

#[test]
fn a_package_that_installs_too_many_is_refused() {
    let names: Vec<String> = (0..=MAX_VERSIONS).map(|i| format!("p{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ask(&World::strict(), "CREATE", installing("web", &names[1..]), Value::Null).assert_allowed();
    ask(&World::strict(), "CREATE", installing("web", &names), Value::Null)
        .assert_refused("version-dependencies", "it installs more than 128 packages");
}

/// An OperatorVersion that was written past admission can be mended in steps.
#[test]
fn an_update_is_refused_for_what_was_right_before() {
    let world = World::strict().with(installing("db", &["web"]));
    let (right, wrong) = (installing("web", &[]), installing("web", &["db"]));
    ask(&world, "UPDATE", wrong.clone(), right.clone()).assert_refused("version-dependencies", "");
    let mut other = wrong.clone();
    other["spec"]["connectionString"] = json!("x");
    ask(&world, "UPDATE", other, wrong.clone()).assert_allowed();
    ask(&world, "UPDATE", right, wrong).assert_allowed();
}

/// OperatorVersions of other namespaces are others, whatever their names.
#[test]
fn a_circle_is_within_a_namespace() {
    let mut elsewhere = installing("db", &["web"]);
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let world = World::strict().with(elsewhere);
    ask(&world, "CREATE", installing("web", &["db"]), Value::Null).assert_allowed();
}
