//! `interlock package create` packs the folder of a package, and `interlock package index` makes a repository of a folder
//! of archives, as `kubectl kudo package create` and `kubectl kudo repo index` do.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_kudo::package::bundle::PackageBundle;
use interlock_kudo::package::repository::{INDEX, IndexedPackage, RepositoryIndex};
use jiff::Timestamp;
use url::Url;

use super::source::archive;
use super::source::archive::{ArchiveError, Files, MAX_ENTRIES, MAX_PACKED, MAX_UNPACKED};
use super::source::{Place, Sources, address, digest, in_memory, is_archive};
use crate::cli::common::error::CliError;
use crate::cli::common::{files, output};

/// Flags of `interlock package create`.
#[derive(Args, Debug)]
pub(super) struct CreateFlags {
    /// Folder with operator.yaml, params.yaml and templates/.
    folder: PathBuf,
    /// Folder to write the archive into.
    #[arg(long, short, value_name = "FOLDER", default_value = ".")]
    destination: PathBuf,
    /// Replace an existing archive.
    #[arg(long, short = 'w')]
    overwrite: bool,
}

/// Runs the command.
pub(super) fn create(flags: &CreateFlags) -> Result<(), CliError> {
    let (name, packed) = packed(&flags.folder)?;
    let target = flags.destination.join(name);
    write(&target, &packed, flags.overwrite)?;
    output::line(&format!("Package created: {}", target.display()))
}

/// The name of the archive of a folder, and the archive, which was read again.
fn packed(folder: &Path) -> Result<(String, Vec<u8>), CliError> {
    let shown = folder.display().to_string();
    let package = Place::Folder(folder.to_owned()).read()?;
    let name = file_name(&package, &shown)?;
    let mut files = Folder { files: Files::new(), bytes: 0 };
    files.collect(folder, "").map_err(|error| error.place(&shown))?;
    // That of the last time, where it is written into the folder itself.
    files.files.remove(&name);
    let failed = |error: std::io::Error| CliError::refused("the archive is not made").why(error.to_string());
    let packed = archive::pack(&files.files).map_err(failed)?;
    let place = in_memory(&name, &packed)?;
    place.read()?;
    for child in package.children().into_iter().filter(|child| is_path(&child.package)) {
        Sources::default().child(&place, &child)?;
    }
    Ok((name, packed))
}

fn is_path(package: &str) -> bool {
    package.contains('/') && !package.contains("://")
}

fn file_name(package: &PackageBundle, folder: &str) -> Result<String, CliError> {
    let name = IndexedPackage::of(package).file_name();
    let plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    if !name.starts_with('.') && name.chars().all(plain) {
        return Ok(name);
    }
    Err(CliError::usage(format!("{name:?} cannot be the name of a file"))
        .place(folder)
        .next("write name, operatorVersion and appVersion with letters, digits, dots and dashes only"))
}

/// The files of a folder, within the budgets of an archive.
struct Folder {
    files: Files,
    bytes: usize,
}

impl Folder {
    fn collect(&mut self, dir: &Path, below: &str) -> Result<(), CliError> {
        let unreadable = |path: &Path, error: std::io::Error| {
            CliError::usage(format!("{} cannot be read", path.display())).why(error.to_string())
        };
        for entry in fs::read_dir(dir).map_err(|error| unreadable(dir, error))? {
            let entry = entry.map_err(|error| unreadable(dir, error))?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                return Err(CliError::usage(format!("the name of {} is not UTF-8 text", path.display()))
                    .next("rename the file"));
            };
            let name = format!("{below}{name}");
            let kind = entry.file_type().map_err(|error| unreadable(&path, error))?;
            if kind.is_dir() {
                self.collect(&path, &format!("{name}/"))?;
            } else if kind.is_file() {
                let size = entry.metadata().map_err(|error| unreadable(&path, error))?.len();
                self.bytes = self.bytes.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
                if self.bytes > MAX_UNPACKED {
                    return Err(ArchiveError::Unpacked.of(&name));
                }
                if self.files.len() >= MAX_ENTRIES {
                    return Err(ArchiveError::Entries.of(&name));
                }
                self.files.insert(name, fs::read(&path).map_err(|error| unreadable(&path, error))?);
            } else {
                return Err(CliError::usage(format!("{name} is no file, and a package consists of files")).next(
                    "replace a link by a copy of the file that it stands for, and leave out what is something else",
                ));
            }
        }
        Ok(())
    }
}

/// Writes a file as a whole.
fn write(target: &Path, content: &[u8], overwrite: bool) -> Result<(), CliError> {
    let shown = target.display();
    if !overwrite && target.exists() {
        return Err(CliError::refused(format!("{shown} is there already"))
            .next("replace it with --overwrite, or raise operatorVersion in operator.yaml"));
    }
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = fs::write(&part, content).and_then(|()| fs::rename(&part, target));
    written.map_err(|error| {
        CliError::refused(format!("{shown} cannot be written"))
            .why(error.to_string())
            .next("give a folder that is there and that you may write")
    })
}

/// Flags of `interlock package index`.
#[derive(Args, Debug)]
pub(super) struct IndexFlags {
    /// Folder with archives (.tgz).
    folder: PathBuf,
    /// Address under which the folder is served.
    #[arg(long, value_name = "URL")]
    url: String,
    /// Replace an existing index.
    #[arg(long, short = 'w')]
    overwrite: bool,
}

/// Runs the command.
pub(super) fn index(flags: &IndexFlags) -> Result<(), CliError> {
    let url = address(&flags.url).map_err(|error| error.within("--url"))?;
    let index = index_of(&flags.folder, &url)?;
    let target = flags.folder.join(INDEX);
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    write(&target, index.write(&now).as_bytes(), flags.overwrite)?;
    output::line(&format!("index {} created.", target.display()))
}

fn index_of(folder: &Path, url: &Url) -> Result<RepositoryIndex, CliError> {
    let wrong = |what: String| CliError::usage(what).place(folder.display().to_string());
    let entries = files::entries(folder).map_err(|error| wrong(error.to_string()))?;
    let archives: Vec<&PathBuf> = entries.iter().filter(|path| is_archive(path)).collect();
    if archives.is_empty() {
        return Err(wrong("the folder holds no archive (.tgz)".to_owned())
            .next("make one with `interlock package create FOLDER -d FOLDER`"));
    }
    let packages = archives.into_iter().map(|path| entry(path, url)).collect::<Result<Vec<_>, _>>()?;
    RepositoryIndex::of(packages).map_err(|error| wrong(error.to_string()).next("remove one of the archives"))
}

fn entry(path: &Path, url: &Url) -> Result<IndexedPackage, CliError> {
    let shown = path.display().to_string();
    let mut packed = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(MAX_PACKED as u64 + 1).read_to_end(&mut packed));
    read.map_err(|error| CliError::usage(format!("{shown} cannot be read")).why(error.to_string()))?;
    let package = in_memory(&shown, &packed)?.read()?;
    let mut url = url.clone();
    let name = path.file_name().and_then(OsStr::to_str);
    // An address of HTTP has segments.
    if let (Some(name), Ok(mut segments)) = (name, url.path_segments_mut()) {
        segments.pop_if_empty().push(name);
    }
    Ok(IndexedPackage {
        urls: vec![url.to_string()],
        digest: Some(digest(&packed)),
        ..IndexedPackage::of(&package)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        dir
    }

    const PARAMS: (&str, &str) = ("params.yaml", "parameters: []");

    #[test]
    fn an_archive_holds_the_files_of_its_folder() {
        let operator = "name: web\noperatorVersion: 1.0.0\nappVersion: '2'\n\
                        tasks: [{name: t, kind: KudoOperator, spec: {package: ./db}}]\n";
        let dir = folder(&[
            ("operator.yaml", operator),
            PARAMS,
            ("templates/a/b.yaml", "x: 1"),
            ("db/operator.yaml", "name: db\noperatorVersion: 1.0.0\n"),
            ("db/params.yaml", "{}"),
            ("README.md", "read me"),
        ]);
        let target = tempfile::tempdir().unwrap();
        let flags = |overwrite| CreateFlags {
            folder: dir.path().to_owned(),
            destination: target.path().to_owned(),
            overwrite,
        };
        create(&flags(false)).unwrap();
        let names: Vec<_> =
            fs::read_dir(target.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["web-2_1.0.0.tgz"]);
        let first = fs::read(target.path().join("web-2_1.0.0.tgz")).unwrap();
        let paths: Vec<String> = archive::unpack(&first).unwrap().into_keys().collect();
        let expected = [
            "README.md",
            "db/operator.yaml",
            "db/params.yaml",
            "operator.yaml",
            "params.yaml",
            "templates/a/b.yaml",
        ];
        assert_eq!(paths, expected);
        let error = create(&flags(false)).unwrap_err().text();
        assert!(error.contains("is there already\n  next:  replace it with --overwrite"), "{error}");
        create(&flags(true)).unwrap();
        assert_eq!(fs::read(target.path().join("web-2_1.0.0.tgz")).unwrap(), first);
    }

    #[rstest]
    #[case::child_outside(
        "name: web\noperatorVersion: 1.0.0\ntasks: [{name: t, kind: KudoOperator, spec: {package: ../db}}]\n",
        "task t names package ../db, which is not in the archive"
    )]
    #[case::path(
        "name: ../web\noperatorVersion: 1.0.0\n",
        "\"../web-1.0.0.tgz\" cannot be the name of a file"
    )]
    #[case::no_package("name: web\n", "operator.yaml: operatorVersion is missing")]
    fn what_could_not_be_installed_is_not_packed(#[case] operator: &str, #[case] expected: &str) {
        let dir = folder(&[("operator.yaml", operator), PARAMS]);
        let error = packed(dir.path()).unwrap_err().text();
        assert!(error.contains(expected), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused() {
        let dir = folder(&[("operator.yaml", "name: web\noperatorVersion: 1.0.0\n"), PARAMS]);
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let error = packed(dir.path()).unwrap_err().text();
        assert!(error.contains("link is no file") && error.contains("next:  replace a link"), "{error}");
    }
}
