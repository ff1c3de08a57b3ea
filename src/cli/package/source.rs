//! Reads a package directory; [`interlock_core::package::bundle`] interprets it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use interlock_core::engine::tasks;
use interlock_core::package::bundle::{PackageBundle, PackageFiles};

use crate::cli::error::CliError;

/// Reads a package, with the packages that its tasks install as it names them.
pub(super) fn read(dir: &Path) -> Result<PackageBundle, CliError> {
    PackageBundle::read(&files(dir)?, tasks::client_problems).map_err(|error| unusable(dir, &error))
}

/// The error of a package whose files are there.
pub(super) fn unusable(dir: &Path, why: &dyn std::fmt::Display) -> CliError {
    CliError::usage("the package cannot be used").place(dir.display().to_string()).why(why.to_string())
}

/// Reads the files of a package, whatever they hold.
pub(super) fn files(dir: &Path) -> Result<PackageFiles, CliError> {
    if !dir.is_dir() {
        return Err(CliError::usage(format!("{} is not a folder", dir.display()))
            .next("give a package: a folder with operator.yaml, params.yaml and templates/"));
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
fn collect(dir: &Path, below: &str, templates: &mut BTreeMap<String, String>) -> Result<(), CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::usage(format!("{} cannot be read", dir.display())).why(error.to_string())
    };
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(CliError::usage("the name of a template must be UTF-8")
                .place(path.display().to_string())
                .next("rename the file"));
        };
        if entry.file_type().map_err(unreadable)?.is_dir() {
            collect(&path, &format!("{below}{name}/"), templates)?;
        } else if name.contains(".yaml") {
            templates.insert(format!("{below}{name}"), text(&path)?);
        }
    }
    Ok(())
}

fn text(file: &Path) -> Result<String, CliError> {
    let wrong = |what: &str| CliError::usage(format!("{} {what}", file.display()));
    let bytes = fs::read(file).map_err(|error| wrong("cannot be read").why(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8 text").next("write it as UTF-8"))
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
        let source = files(dir.path()).unwrap();
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
        let error = files(dir.path()).unwrap_err().text();
        assert!(error.contains("params.yaml cannot be read"), "{error}");
        let error = files(Path::new("no/such")).unwrap_err().text();
        assert!(error.contains("no/such is not a folder"), "{error}");
    }
}
