//! The packages that a package installs by its tasks of the kind KudoOperator, and where that ends.
//!
//! KUDO refuses packages that install each other in a circle, and has no bounds: a hundred tasks that each install a
//! package with a hundred tasks make ten thousand Instances of one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thiserror::Error;

use super::Package;
use super::bundle::{CHILD_KIND, version_name};
use crate::api::{OperatorVersionSpec, Task, TaskSpec};

/// Levels of Instances below one, at most.
pub const MAX_LEVELS: usize = 16;

/// OperatorVersions that a package installs, directly and through others, at most.
pub const MAX_VERSIONS: usize = 128;

/// Instances that an Instance makes, directly and through others, at most.
pub const MAX_INSTANCES: usize = 1000;

/// OperatorVersions of a chain that a message names.
const SHOWN: usize = 6;

/// Why the packages that a package installs are refused, to continue a sentence that begins with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DependencyProblem {
    /// OperatorVersions that install each other; the last is the first.
    #[error("it installs packages in a circle: {}", chain(.0))]
    Circle(Vec<String>),
    /// OperatorVersions of which each installs the next.
    #[error("it installs packages on more than {MAX_LEVELS} levels: {}", chain(.0))]
    TooDeep(Vec<String>),
    /// [`MAX_VERSIONS`] is exceeded.
    #[error("it installs more than {MAX_VERSIONS} packages, directly and through others")]
    TooManyVersions,
    /// [`MAX_INSTANCES`] is exceeded.
    #[error("an Instance of it makes more than {MAX_INSTANCES} Instances, directly and through others")]
    TooManyInstances,
}

fn chain(names: &[String]) -> String {
    let arrow = " -> ";
    if names.len() <= SHOWN {
        return names.join(arrow);
    }
    let (first, last) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
    [&first.join(arrow), "...", &last.join(arrow)].join(arrow)
}

/// Name of the OperatorVersion that a task installs; absent where it names no package or no version.
pub fn installed_by(task: &Task) -> Option<String> {
    child(task).map(|[operator, app, version]| version_name(operator, app, version))
}

/// Operator, application version and version that a task installs.
fn child(task: &Task) -> Option<[&str; 3]> {
    let spec = task.spec.as_ref().filter(|_| is_child(task))?;
    let text = |field: fn(&TaskSpec) -> Option<&String>| field(spec).map(String::as_str).unwrap_or_default();
    let child = [
        text(|spec| spec.package.as_ref()),
        text(|spec| spec.app_version.as_ref()),
        text(|spec| spec.operator_version.as_ref()),
    ];
    (!child[0].is_empty() && !child[2].is_empty()).then_some(child)
}

/// Whether a plan reaches a task that makes a child Instance.
pub fn in_plan(package: &Package, plan: &str) -> bool {
    tasks_of(package, plan).any(is_child)
}

/// Name of the child that a task makes for an Instance: its own, where it has one (KUDO `dependencyInstanceName`).
pub fn child_name(instance: &str, operator: &str, own: Option<&str>) -> String {
    own.map_or_else(|| format!("{instance}-{operator}"), str::to_owned)
}

/// Names of the children that the tasks of a plan make for an Instance.
pub fn children_of_plan(package: &Package, plan: &str, instance: &str) -> BTreeSet<String> {
    tasks_of(package, plan).filter_map(|task| named_child(task, instance)).collect()
}

/// Names of the children that any task of a package makes for an Instance, also one that no plan reaches.
pub fn children(package: &Package, instance: &str) -> BTreeSet<String> {
    package.spec.tasks.iter().flatten().filter_map(|task| named_child(task, instance)).collect()
}

fn tasks_of<'p>(package: &'p Package, plan: &str) -> impl Iterator<Item = &'p Task> {
    let phases = package.plan(plan).and_then(|plan| plan.phases.as_deref()).unwrap_or_default();
    let steps = phases.iter().flat_map(|phase| phase.steps.iter().flatten());
    steps.flat_map(|step| step.tasks.iter().flatten()).filter_map(|name| package.task(name))
}

fn is_child(task: &Task) -> bool {
    task.kind.as_deref() == Some(CHILD_KIND)
}

fn named_child(task: &Task, instance: &str) -> Option<String> {
    let spec = task.spec.as_ref().filter(|_| is_child(task))?;
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (operator, own) = (text(&spec.package), text(&spec.instance_name));
    Some(child_name(instance, &operator?, own.as_deref()))
}

/// What is wrong with the packages that an OperatorVersion of this name and spec installs; `lookup` finds others of
/// its namespace. One that is not there installs nothing.
pub fn problem(
    name: &str,
    spec: &OperatorVersionSpec,
    lookup: &dyn Fn(&str) -> Option<Arc<Package>>,
) -> Option<DependencyProblem> {
    let mut walk = Walk { lookup, known: BTreeMap::new(), above: vec![name.to_owned()] };
    walk.below(spec).err()
}

/// What is below an OperatorVersion.
#[derive(Clone, Copy, Default)]
struct Reach {
    levels: usize,
    instances: usize,
}

struct Walk<'a> {
    lookup: &'a dyn Fn(&str) -> Option<Arc<Package>>,
    /// Those that are done.
    known: BTreeMap<String, Reach>,
    /// Those on the way to where the walk is.
    above: Vec<String>,
}

impl Walk<'_> {
    fn below(&mut self, spec: &OperatorVersionSpec) -> Result<Reach, DependencyProblem> {
        let mut children: BTreeMap<[&str; 3], usize> = BTreeMap::new();
        for child in spec.tasks.iter().flatten().filter_map(child) {
            *children.entry(child).or_default() += 1;
        }
        let mut reach = Reach::default();
        for ([operator, app, version], tasks) in children {
            let below = self.child(version_name(operator, app, version))?;
            reach.levels = reach.levels.max(below.levels + 1);
            let each = below.instances.saturating_add(1);
            reach.instances = reach.instances.saturating_add(each.saturating_mul(tasks));
            if reach.instances > MAX_INSTANCES {
                return Err(DependencyProblem::TooManyInstances);
            }
        }
        Ok(reach)
    }

    fn child(&mut self, name: String) -> Result<Reach, DependencyProblem> {
        if let Some(first) = self.above.iter().position(|above| *above == name) {
            let mut circle = self.above.split_off(first);
            circle.push(name);
            return Err(DependencyProblem::Circle(circle));
        }
        let reach = match self.known.get(&name) {
            Some(known) => *known,
            None => self.visit(&name)?,
        };
        if self.above.len() + reach.levels > MAX_LEVELS {
            self.above.push(name);
            return Err(DependencyProblem::TooDeep(std::mem::take(&mut self.above)));
        }
        Ok(reach)
    }

    fn visit(&mut self, name: &str) -> Result<Reach, DependencyProblem> {
        if self.above.len() > MAX_LEVELS {
            let deepest = [std::mem::take(&mut self.above), vec![name.to_owned()]].concat();
            return Err(DependencyProblem::TooDeep(deepest));
        }
        if self.known.len() >= MAX_VERSIONS {
            return Err(DependencyProblem::TooManyVersions);
        }
        self.above.push(name.to_owned());
        let reach = match (self.lookup)(name) {
            Some(package) => self.below(&package.spec)?,
            None => Reach::default(),
        };
        self.above.pop();
        self.known.insert(name.to_owned(), reach);
        Ok(reach)
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// A spec with a task for each of these packages, all of version 1.
    fn spec(children: &[&str]) -> OperatorVersionSpec {
        let task = |(i, package): (usize, &&str)| json!({"name": format!("t{i}"), "kind": CHILD_KIND, "spec": {"package": package, "operatorVersion": "1"}});
        let tasks: Vec<Value> = children.iter().enumerate().map(task).collect();
        serde_json::from_value(json!({"tasks": tasks})).unwrap()
    }

    /// The problem of the first of these packages.
    fn found(packages: &[(&str, &[&str])]) -> Option<String> {
        let all: BTreeMap<String, Arc<Package>> = packages
            .iter()
            .map(|(name, children)| {
                let key = NamespacedName::new("ns", format!("{name}-1"));
                (key.name.clone(), Arc::new(Package::new(key, spec(children))))
            })
            .collect();
        let (first, children) = packages[0];
        let lookup = |name: &str| all.get(name).cloned();
        problem(&format!("{first}-1"), &spec(children), &lookup).map(|problem| problem.to_string())
    }

    /// Packages, each with those that it installs; the first is the one in question.
    #[rstest]
    #[case::nothing("a", None)]
    #[case::one_that_is_not_there("a b", None)]
    #[case::twice_the_same("a b b, b", None)]
    #[case::by_two_ways("a b c, b d, c d, d", None)]
    #[case::itself("a a", Some("a-1 -> a-1"))]
    #[case::one_that_installs_it("a b, b a", Some("a-1 -> b-1 -> a-1"))]
    #[case::others_in_a_circle("a b, b c, c b", Some("b-1 -> c-1 -> b-1"))]
    fn circles(#[case] packages: &str, #[case] circle: Option<&str>) {
        let packages: Vec<Vec<&str>> =
            packages.split(", ").map(|package| package.split(' ').collect()).collect();
        let packages: Vec<(&str, &[&str])> =
            packages.iter().map(|package| (package[0], &package[1..])).collect();
        let expected = circle.map(|circle| format!("it installs packages in a circle: {circle}"));
        assert_eq!(found(&packages), expected);
    }

    /// A chain of packages, the last of which installs nothing.
    fn nested(levels: usize) -> Option<String> {
        let names: Vec<String> = (0..=levels).map(|i| format!("p{i}")).collect();
        let below: Vec<Vec<&str>> =
            (0..=levels).map(|i| names.get(i + 1).map(String::as_str).into_iter().collect()).collect();
        let chain: Vec<(&str, &[&str])> =
            names.iter().map(String::as_str).zip(below.iter().map(Vec::as_slice)).collect();
        found(&chain)
    }

    #[test]
    fn levels_are_counted() {
        assert_eq!(nested(MAX_LEVELS), None);
        let said = "it installs packages on more than 16 levels: p0-1 -> p1-1 -> p2-1 -> ... -> p15-1 -> p16-1 -> p17-1";
        assert_eq!(nested(MAX_LEVELS + 1).as_deref(), Some(said));
    }

    /// What is known of a package counts wherever it is met again.
    #[test]
    fn levels_below_a_known_package_are_counted() {
        let names: Vec<String> = (0..14).map(|i| format!("p{i}")).collect();
        let mut packages: Vec<(&str, Vec<&str>)> = vec![("a", vec!["p0", "x"]), ("x", vec!["y"])];
        packages.extend([("y", vec!["z"]), ("z", vec!["p0"])]);
        for (i, name) in names.iter().enumerate() {
            packages.push((name, names.get(i + 1).map(String::as_str).into_iter().collect()));
        }
        let packages: Vec<(&str, &[&str])> =
            packages.iter().map(|(name, below)| (*name, below.as_slice())).collect();
        let said = found(&packages).unwrap();
        assert!(said.starts_with("it installs packages on more than 16 levels: a-1 -> x-1 -> y-1"), "{said}");
    }

    #[test]
    fn packages_and_instances_are_counted() {
        let names: Vec<String> = (0..=MAX_VERSIONS).map(|i| format!("p{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(found(&[("a", &names[1..])]), None);
        assert_eq!(
            found(&[("a", &names)]).as_deref(),
            Some("it installs more than 128 packages, directly and through others")
        );
        let ten = ["b"; 10];
        let hundred = ["c"; 99];
        assert_eq!(found(&[("a", &ten), ("b", &hundred)]), None);
        let hundred = ["c"; 100];
        let said = "an Instance of it makes more than 1000 Instances, directly and through others";
        assert_eq!(found(&[("a", &ten), ("b", &hundred)]).as_deref(), Some(said));
    }

    #[rstest]
    #[case(json!({"package": "zoo", "operatorVersion": "0.3.1", "appVersion": "3.4"}), Some("zoo-3.4-0.3.1"))]
    #[case(json!({"package": "zoo", "operatorVersion": "0.3.1"}), Some("zoo-0.3.1"))]
    #[case(json!({"package": "zoo"}), None)]
    #[case(json!({"operatorVersion": "1"}), None)]
    fn a_task_names_an_operator_version(#[case] spec: Value, #[case] name: Option<&str>) {
        let task: Task =
            serde_json::from_value(json!({"name": "t", "kind": CHILD_KIND, "spec": spec})).unwrap();
        assert_eq!(installed_by(&task).as_deref(), name);
        let other = Task { kind: Some("Apply".to_owned()), ..task };
        assert_eq!(installed_by(&other), None);
    }
}
