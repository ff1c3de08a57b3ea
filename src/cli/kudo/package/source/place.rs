//! Where a package is: in a folder, or in an archive.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_kudo::engine::tasks;
use interlock_kudo::package::bundle::{PackageBundle, PackageFiles};

use super::archive::Files;
use crate::cli::common::error::CliError;

/// An unpacked archive.
#[derive(Debug)]
pub(in crate::cli::kudo::package) struct Archive {
    /// Tells it from others.
    pub(super) key: String,
    /// Its file or its address, for messages.
    pub(super) origin: String,
    pub(super) files: Files,
}

/// Where a package is.
#[derive(Clone, Debug)]
pub(in crate::cli::kudo::package) enum Place {
    Folder(PathBuf),
    Archive {
        archive: Arc<Archive>,
        /// Path of the folder in it; empty for its top.
        below: String,
    },
}

/// Tells places from each other.
pub(in crate::cli::kudo::package) type PlaceKey = (PathBuf, String);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(dir) => dir.display().fmt(f),
            Self::Archive { archive, below } if below.is_empty() => f.write_str(&archive.origin),
            Self::Archive { archive, below } => write!(f, "{}, folder {below}", archive.origin),
        }
    }
}

impl Place {
    pub(super) fn top(archive: Arc<Archive>) -> Self {
        Self::Archive { archive, below: String::new() }
    }

    /// Tells it from other places.
    pub(in crate::cli::kudo::package) fn key(&self) -> Result<PlaceKey, CliError> {
        match self {
            Self::Folder(dir) => match dir.canonicalize() {
                Ok(path) => Ok((path, String::new())),
                Err(error) => Err(self.unusable(&error)),
            },
            Self::Archive { archive, below } => Ok((PathBuf::from(&archive.key), below.clone())),
        }
    }

    /// Reads the package, with the packages that its tasks install as it names them.
    pub(in crate::cli::kudo::package) fn read(&self) -> Result<PackageBundle, CliError> {
        PackageBundle::read(&self.files()?, tasks::client_problems).map_err(|error| self.unusable(&error))
    }

    /// The error of a package whose files are there.
    pub(in crate::cli::kudo::package) fn unusable(&self, why: &dyn fmt::Display) -> CliError {
        CliError::usage("the package cannot be used").place(self.to_string()).why(why.to_string())
    }

    /// The place of a file, for messages.
    pub(in crate::cli::kudo::package) fn file(&self, name: &str) -> String {
        match self {
            Self::Folder(dir) => dir.join(name).display().to_string(),
            Self::Archive { archive, below } => format!("{}, file {}", archive.origin, joined(below, name)),
        }
    }

    /// Reads the files of the package, whatever they hold.
    pub(in crate::cli::kudo::package) fn files(&self) -> Result<PackageFiles, CliError> {
        let (archive, below) = match self {
            Self::Folder(dir) => return files_of_folder(dir),
            Self::Archive { archive, below } => (archive, below),
        };
        let base = joined(below, "templates/");
        let mut templates = BTreeMap::new();
        for (path, content) in archive.files.range(format!("{base}/")..) {
            let Some(name) = path.strip_prefix(&base).and_then(|rest| rest.strip_prefix('/')) else { break };
            // KUDO's rule, as for folders.
            if name.rsplit('/').next().is_some_and(|file| file.contains(".yaml")) {
                templates.insert(name.to_owned(), self.text(path, content)?);
            }
        }
        let file = |name: &str| match archive.files.get(&joined(below, name)) {
            Some(content) => self.text(&joined(below, name), content),
            None => Err(self.missing(archive, name)),
        };
        Ok(PackageFiles { operator: file("operator.yaml")?, params: file("params.yaml")?, templates })
    }

    fn text(&self, path: &str, content: &[u8]) -> Result<String, CliError> {
        let wrong = || CliError::usage(format!("{path} is not UTF-8 text")).place(self.to_string());
        let text = std::str::from_utf8(content).map_err(|_| wrong().next("write it as UTF-8"))?;
        Ok(text.to_owned())
    }

    fn missing(&self, archive: &Archive, name: &str) -> CliError {
        let error =
            CliError::usage(format!("the archive holds no {name} at its top")).place(self.to_string());
        let mut all = archive.files.keys();
        match all.find_map(|path| path.strip_suffix(name).and_then(|folder| folder.strip_suffix('/'))) {
            Some(folder) => error.next(format!(
                "pack what is in the folder, not the folder itself: `interlock package create {folder}`"
            )),
            None => error.next("give an archive of a package: `interlock package create FOLDER` makes one"),
        }
    }
}

impl Archive {
    pub(super) fn has_folder(&self, path: &str) -> bool {
        let start = format!("{path}/");
        path.is_empty()
            || self.files.range(start.clone()..).next().is_some_and(|(file, _)| file.starts_with(&start))
    }
}

/// A path in an archive, from a folder of it. No path leads out of the archive, as in KUDO's client, which puts the
/// files into a root of their own: a package from elsewhere names nothing of this machine.
pub(super) fn joined(below: &str, path: &str) -> String {
    let below = if path.starts_with('/') { "" } else { below };
    let mut parts: Vec<&str> = Vec::new();
    for part in below.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a file is an archive by its name.
pub(in crate::cli::kudo::package) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tgz")
}

/// The files of a package, whatever they hold.
pub(super) fn files_of_folder(dir: &Path) -> Result<PackageFiles, CliError> {
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
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "./db", "db")]
    #[case("web", "../db", "db")]
    #[case("web/a", "./b/../c/", "web/a/c")]
    #[case("", "../../etc/passwd", "etc/passwd")]
    #[case("web", "/db", "db")]
    #[case("web", "..", "")]
    fn no_path_leads_out(#[case] below: &str, #[case] path: &str, #[case] expected: &str) {
        assert_eq!(joined(below, path), expected);
    }
}
