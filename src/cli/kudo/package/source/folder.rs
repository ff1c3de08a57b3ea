//! Reads the files of a package from its folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use interlock_kudo::package::bundle::PackageFiles;

use crate::cli::common::error::CliError;

/// The files of a package, whatever they hold.
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
