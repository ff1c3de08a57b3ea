//! Reads a package with the packages that its tasks of the kind KudoOperator name by their folders, as KUDO's client
//! does (`kudoctl/resources/dependencies/resolve.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::api::kudo::OperatorVersionSpec;
use interlock_core::api::object::NamespacedName;
use interlock_core::package::Package;
use interlock_core::package::bundle::{PackageBundle, PackagedChild};
use interlock_core::package::dependencies;
use interlock_core::package::dependencies::{DependencyProblem, MAX_LEVELS};
use serde::Deserialize;

use super::source;
use crate::cli::error::CliError;

/// A package, and what it installs.
#[derive(Debug)]
pub(super) struct PackageTree {
    /// The package.
    pub(super) package: PackageBundle,
    /// The packages of the folders that it names, directly and through others: each before those that install it.
    pub(super) installed: Vec<PackageBundle>,
    /// Names of the OperatorVersions that it installs and names no folder of.
    pub(super) elsewhere: BTreeSet<String>,
}

/// Reads a package alone, whose tasks name the packages that they install as a cluster knows them.
pub(in crate::cli) fn read_package(dir: &Path) -> Result<PackageBundle, CliError> {
    Ok(read(dir)?.package)
}

/// Reads a package and what it installs.
pub(super) fn read(dir: &Path) -> Result<PackageTree, CliError> {
    let mut folders = Folders::default();
    let package = folders.read(dir)?;
    let installed = folders.installed;
    let key = |package: &PackageBundle| NamespacedName::new("", &package.operator_version_name);
    let own = spec(dir, &package)?;
    let mut all = BTreeMap::new();
    for package in &installed {
        let read = Package::new(key(package), spec(dir, package)?);
        all.insert(package.operator_version_name.clone(), Arc::new(read));
    }
    if let Some(problem) =
        dependencies::problem(&package.operator_version_name, &own, &|name| all.get(name).cloned())
    {
        return Err(source::unusable(dir, &problem));
    }
    let specs = all.values().map(|package| &*package.spec).chain([&own]);
    let named = specs.flat_map(|spec| spec.tasks.iter().flatten()).filter_map(dependencies::installed_by);
    let elsewhere = named.filter(|name| !all.contains_key(name)).collect();
    Ok(PackageTree { package, installed, elsewhere })
}

/// The spec of a package.
pub(super) fn spec(dir: &Path, package: &PackageBundle) -> Result<OperatorVersionSpec, CliError> {
    OperatorVersionSpec::deserialize(&package.operator_version["spec"])
        .map_err(|error| source::unusable(dir, &error))
}

/// The folders that were read.
#[derive(Default)]
struct Folders {
    known: BTreeMap<PathBuf, PackageBundle>,
    /// Those on the way to the folder that is read, with the names of their packages.
    above: Vec<(PathBuf, String)>,
    installed: Vec<PackageBundle>,
}

impl Folders {
    fn read(&mut self, dir: &Path) -> Result<PackageBundle, CliError> {
        let mut package = source::read(dir)?;
        let path = dir.canonicalize().map_err(|error| source::unusable(dir, &error))?;
        self.above.push((path, package.operator_version_name.clone()));
        for child in package.children().into_iter().filter(|child| child.package.contains('/')) {
            let found = self.child(dir, &child)?;
            package.resolve(&child, &found);
        }
        self.above.pop();
        Ok(package)
    }

    /// The package of a folder that a task names.
    fn child(&mut self, dir: &Path, child: &PackagedChild) -> Result<PackageBundle, CliError> {
        let folder = dir.join(&child.package);
        let Ok(path) = folder.canonicalize() else { return Err(no_folder(dir, child)) };
        if !path.is_dir() {
            return Err(no_folder(dir, child));
        }
        if let Some(known) = self.known.get(&path) {
            return Ok(known.clone());
        }
        let names = || self.above.iter().map(|(_, name)| name.clone());
        if let Some(first) = self.above.iter().position(|(above, _)| *above == path) {
            let circle = names().skip(first).chain([self.above[first].1.clone()]).collect();
            return Err(source::unusable(dir, &DependencyProblem::Circle(circle)));
        }
        if self.above.len() > MAX_LEVELS {
            return Err(source::unusable(dir, &DependencyProblem::TooDeep(names().collect())));
        }
        let named = format!("package {}", child.package);
        let package = self.read(&folder).map_err(|error| error.within(&named))?;
        self.add(&folder, &package)?;
        self.known.insert(path, package.clone());
        Ok(package)
    }

    fn add(&mut self, folder: &Path, package: &PackageBundle) -> Result<(), CliError> {
        let name = &package.operator_version_name;
        match self.installed.iter().find(|known| known.operator_version_name == *name) {
            None => self.installed.push(package.clone()),
            Some(known) if known == package => {}
            Some(_) => {
                let what = format!("two folders hold OperatorVersion {name}, and differ");
                return Err(CliError::usage(what)
                    .place(folder.display().to_string())
                    .next("raise operatorVersion in one of them, or name one folder in all packages"));
            }
        }
        Ok(())
    }
}

fn no_folder(dir: &Path, child: &PackagedChild) -> CliError {
    let PackagedChild { task, package, .. } = child;
    let error = CliError::usage(format!("task {task} names package {package}, which is no folder"))
        .place(dir.join("operator.yaml").display().to_string());
    match package.contains("://") || package.ends_with(".tgz") {
        true => error.next("unpack it, and name the folder relative to that of operator.yaml"),
        false => error.next("name the folder relative to that of operator.yaml"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Folders of packages, each with the packages that it names.
    fn folders(packages: &[(&str, &[&str])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (folder, names) in packages {
            let folder = dir.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let task =
                |name: &&str| format!("- {{name: t, kind: KudoOperator, spec: {{package: {name}}}}}\n");
            let tasks: String = names.iter().map(task).collect();
            let name = folder.file_name().unwrap().to_str().unwrap();
            let operator = format!("name: {name}\noperatorVersion: 1.0.0\nappVersion: '2'\ntasks:\n{tasks}");
            fs::write(folder.join("operator.yaml"), operator).unwrap();
            fs::write(folder.join("params.yaml"), "{}").unwrap();
        }
        dir
    }

    fn names(tree: &PackageTree) -> Vec<&str> {
        tree.installed.iter().map(|package| package.operator_version_name.as_str()).collect()
    }

    #[test]
    fn folders_are_read_and_each_once() {
        let dir = folders(&[
            ("web", &["../db", "./cache"]),
            ("db", &["../disk"]),
            ("web/cache", &["../../disk"]),
            ("disk", &[]),
        ]);
        let tree = read(&dir.path().join("web")).unwrap();
        assert_eq!(names(&tree), ["disk-2-1.0.0", "db-2-1.0.0", "cache-2-1.0.0"]);
        let spec = &tree.package.operator_version["spec"]["tasks"][0]["spec"];
        assert_eq!(
            *spec,
            serde_json::json!({"package": "db", "operatorVersion": "1.0.0", "appVersion": "2"})
        );
        assert!(tree.elsewhere.is_empty());
    }

    #[test]
    fn a_package_that_is_no_folder_has_to_be_there() {
        let dir = folders(&[("web", &["db, operatorVersion: 0.1.0"])]);
        let tree = read(&dir.path().join("web")).unwrap();
        assert_eq!(tree.elsewhere, BTreeSet::from(["db-0.1.0".to_owned()]));
    }

    fn said(packages: &[(&str, &[&str])]) -> String {
        let dir = folders(packages);
        let error = read(&dir.path().join("web")).unwrap_err().text();
        error.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn what_cannot_be_installed_is_named() {
        let circle = said(&[("web", &["../db"]), ("db", &["../web"])]);
        let text = "why:   it installs packages in a circle: web-2-1.0.0 -> db-2-1.0.0 -> web-2-1.0.0\n";
        assert!(circle.contains(text), "{circle}");
        let lost = said(&[("web", &["../db"])]);
        assert!(lost.starts_with("error: task t names package ../db, which is no folder\n"), "{lost}");
        assert!(lost.contains("where: DIR/web/operator.yaml\n"), "{lost}");
        let packed = said(&[("web", &["../db.tgz"])]);
        assert!(packed.contains("next:  unpack it"), "{packed}");
        let two =
            said(&[("web", &["../db", "./db"]), ("db", &[]), ("web/db", &["../../disk"]), ("disk", &[])]);
        assert!(two.starts_with("error: two folders hold OperatorVersion db-2-1.0.0, and differ\n"), "{two}");
    }
}
