//! Reads a package with the packages that its tasks of the kind KudoOperator name by their folders, archives or
//! addresses, or that a repository has, as KUDO's client does (`kudoctl/resources/dependencies/resolve.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use interlock_core::api::object::NamespacedName;
use interlock_kudo::api::OperatorVersionSpec;
use interlock_kudo::package::Package;
use interlock_kudo::package::bundle::{PackageBundle, PackagedChild};
use interlock_kudo::package::dependencies;
use interlock_kudo::package::dependencies::{DependencyProblem, MAX_LEVELS};
use serde::Deserialize;

use super::source::{Place, PlaceKey, SourceFlags, Sources};
use crate::cli::common::error::CliError;

/// A package, and what it installs.
#[derive(Debug)]
pub(super) struct PackageTree {
    /// Where the package is.
    pub(super) place: Place,
    pub(super) package: PackageBundle,
    /// The packages that it names by where they are, directly and through others: each before those that install it.
    pub(super) installed: Vec<PackageBundle>,
    /// Names of the OperatorVersions that it installs and that were not found.
    pub(super) elsewhere: BTreeSet<String>,
}

/// Reads a package of a folder or an archive alone, whose tasks name the packages that they install as a cluster
/// knows them. Nothing is downloaded.
pub(in crate::cli) fn read_package(path: &Path) -> Result<PackageBundle, CliError> {
    let mut sources = Sources::default();
    let place = sources.path(path)?;
    Ok(read(&mut sources, &place)?.package)
}

/// Reads the package that flags name, and what it installs.
pub(super) fn of(flags: &SourceFlags) -> Result<PackageTree, CliError> {
    let (mut sources, place) = Sources::of(flags)?;
    read(&mut sources, &place)
}

/// Reads a package and what it installs.
pub(super) fn read(sources: &mut Sources, place: &Place) -> Result<PackageTree, CliError> {
    let mut walk = Walk { sources, known: BTreeMap::new(), above: Vec::new(), installed: Vec::new() };
    let package = walk.read(place)?;
    let installed = walk.installed;
    let key = |package: &PackageBundle| NamespacedName::new("", &package.operator_version_name);
    let own = spec(place, &package)?;
    let mut all = BTreeMap::new();
    for package in &installed {
        let read = Package::new(key(package), spec(place, package)?);
        all.insert(package.operator_version_name.clone(), Arc::new(read));
    }
    if let Some(problem) =
        dependencies::problem(&package.operator_version_name, &own, &|name| all.get(name).cloned())
    {
        return Err(place.unusable(&problem));
    }
    let specs = all.values().map(|package| &*package.spec).chain([&own]);
    let named = specs.flat_map(|spec| spec.tasks.iter().flatten()).filter_map(dependencies::installed_by);
    let elsewhere = named.filter(|name| !all.contains_key(name)).collect();
    Ok(PackageTree { place: place.clone(), package, installed, elsewhere })
}

pub(super) fn spec(place: &Place, package: &PackageBundle) -> Result<OperatorVersionSpec, CliError> {
    OperatorVersionSpec::deserialize(&package.operator_version["spec"])
        .map_err(|error| place.unusable(&error))
}

/// The way through the packages.
struct Walk<'s> {
    sources: &'s mut Sources,
    known: BTreeMap<PlaceKey, PackageBundle>,
    /// The places on the way to the one that is read, with the names of their packages.
    above: Vec<(PlaceKey, String)>,
    installed: Vec<PackageBundle>,
}

impl Walk<'_> {
    fn read(&mut self, place: &Place) -> Result<PackageBundle, CliError> {
        let mut package = place.read()?;
        self.above.push((place.key()?, package.operator_version_name.clone()));
        for child in package.children() {
            if let Some(found) = self.child(place, &child)? {
                package.resolve(&child, &found);
            }
        }
        self.above.pop();
        Ok(package)
    }

    /// The package that a task names, where it is found.
    fn child(&mut self, parent: &Place, child: &PackagedChild) -> Result<Option<PackageBundle>, CliError> {
        let Some(place) = self.sources.child(parent, child)? else { return Ok(None) };
        let key = place.key()?;
        if let Some(known) = self.known.get(&key) {
            return Ok(Some(known.clone()));
        }
        let names = || self.above.iter().map(|(_, name)| name.clone());
        if let Some(first) = self.above.iter().position(|(above, _)| *above == key) {
            let circle = names().skip(first).chain([self.above[first].1.clone()]).collect();
            return Err(parent.unusable(&DependencyProblem::Circle(circle)));
        }
        if self.above.len() > MAX_LEVELS {
            return Err(parent.unusable(&DependencyProblem::TooDeep(names().collect())));
        }
        let named = format!("package {}", child.package);
        let package = self.read(&place).map_err(|error| error.within(&named))?;
        self.add(&place, &package)?;
        self.known.insert(key, package.clone());
        Ok(Some(package))
    }

    fn add(&mut self, place: &Place, package: &PackageBundle) -> Result<(), CliError> {
        let name = &package.operator_version_name;
        match self.installed.iter().find(|known| known.operator_version_name == *name) {
            None => self.installed.push(package.clone()),
            Some(known) if known == package => {}
            Some(_) => {
                let what = format!("two places hold OperatorVersion {name}, and differ");
                return Err(CliError::usage(what)
                    .place(place.to_string())
                    .next("raise operatorVersion in one of them, or name one place in all packages"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(dir: &Path) -> Result<PackageTree, CliError> {
        super::read(&mut Sources::default(), &Place::Folder(dir.to_owned()))
    }

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
        assert!(
            lost.starts_with(
                "error: task t names package ../db, which is neither a folder nor an archive (.tgz)\n"
            ),
            "{lost}"
        );
        assert!(lost.contains("where: DIR/web/operator.yaml\n"), "{lost}");
        let far = said(&[("web", &["https://127.0.0.1:1/db.tgz"])]);
        assert!(far.contains("task t of DIR/web: this command downloads nothing\n"), "{far}");
        let two =
            said(&[("web", &["../db", "./db"]), ("db", &[]), ("web/db", &["../../disk"]), ("disk", &[])]);
        assert!(two.starts_with("error: two places hold OperatorVersion db-2-1.0.0, and differ\n"), "{two}");
    }
}
