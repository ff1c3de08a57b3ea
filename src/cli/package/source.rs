//! Reads a package directory; [`interlock_core::package::bundle`] interprets it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

use interlock_core::api::kudo::OperatorVersionSpec;
use interlock_core::engine::tasks;
use interlock_core::package::bundle::{PackageBundle, PackageFiles};
use serde::Deserialize;

/// Reads a package.
pub(super) fn read(dir: &Path) -> anyhow::Result<PackageBundle> {
    let packaged = PackageBundle::read(&source(dir)?, tasks::client_problems)
        .with_context(|| dir.display().to_string())?;
    let spec = OperatorVersionSpec::deserialize(&packaged.operator_version["spec"])?;
    if let Some(problem) = spec.tasks.iter().flatten().find_map(tasks::not_installable) {
        bail!("{}: {problem}", dir.display());
    }
    Ok(packaged)
}

fn source(dir: &Path) -> anyhow::Result<PackageFiles> {
    if !dir.is_dir() {
        bail!(
            "{} is not a folder; a package is one with operator.yaml, params.yaml and templates/",
            dir.display()
        );
    }
    let mut templates = BTreeMap::new();
    let base = dir.join("templates");
    if base.is_dir() {
        collect(&base, "", &mut templates)?;
    }
    Ok(PackageFiles {
        operator: text(&dir.join("operator.yaml"))?,
        params: text(&dir.join("params.yaml"))?,
        templates,
    })
}

/// Templates are the files with `.yaml` in their name (KUDO `reader/parser.go`), by their path.
fn collect(dir: &Path, below: &str, templates: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    for entry in entries {
        let entry = entry.with_context(|| dir.display().to_string())?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            bail!("{}: the name of a template must be UTF-8", path.display());
        };
        if entry.file_type().with_context(|| path.display().to_string())?.is_dir() {
            collect(&path, &format!("{below}{name}/"), templates)?;
        } else if name.contains(".yaml") {
            templates.insert(format!("{below}{name}"), text(&path)?);
        }
    }
    Ok(())
}

fn text(file: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{} is not UTF-8 text", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        dir
    }

    #[test]
    fn templates_are_found_by_kudos_rule() {
        let dir = package(&[
            ("operator.yaml", "name: a"),
            ("params.yaml", ""),
            ("README.md", "x"),
            ("docs/a.yaml", "x"),
            ("templates/params.yaml", "x"),
            ("templates/s/operator.yaml", "x"),
            ("templates/x.yaml.bak", "x"),
            ("templates/ayaml", "x"),
            ("templates/x.txt", "x"),
        ]);
        let source = source(dir.path()).unwrap();
        let names: Vec<_> = source.templates.keys().map(String::as_str).collect();
        assert_eq!(names, ["params.yaml", "s/operator.yaml", "x.yaml.bak"]);
    }

    /// The examples can be installed, and all their templates can be parsed.
    #[test]
    fn the_examples_are_packages() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        for (dir, name) in [
            ("first/operator", "first-0.1.0"),
            ("ledger/v1", "ledger-4.1-1.0.0"),
            ("ledger/v2", "ledger-4.2-1.1.0"),
        ] {
            let package = read(&examples.join(dir)).unwrap();
            assert_eq!(package.operator_version_name, name);
            for (file, text) in package.operator_version["spec"]["templates"].as_object().unwrap() {
                let parsed = interlock_core::package::functions::parse(file, text.as_str().unwrap());
                assert!(parsed.is_ok(), "{dir}: {file}: {:?}", parsed.err());
            }
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = package(&[("operator.yaml", "name: a")]);
        let error = format!("{:#}", source(dir.path()).unwrap_err());
        assert!(error.contains("params.yaml cannot be read"), "{error}");
        let error = format!("{:#}", source(Path::new("no/such")).unwrap_err());
        assert!(error.contains("no/such is not a folder"), "{error}");
    }

    #[test]
    fn a_package_that_installs_others_is_refused() {
        let operator = "name: a\noperatorVersion: 1.0.0\ntasks: [{name: dep, kind: KudoOperator, spec: {package: ../b}}]";
        let dir = package(&[("operator.yaml", operator), ("params.yaml", "{}")]);
        let error = format!("{:#}", read(dir.path()).unwrap_err());
        assert!(error.contains("task dep is of kind KudoOperator"), "{error}");
    }
}
