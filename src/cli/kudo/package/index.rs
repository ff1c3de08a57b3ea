//! `interlock package index`: makes a repository of a folder of archives, as `kubectl kudo repo index` does.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_kudo::package::repository::{INDEX, IndexedPackage, RepositoryIndex};
use jiff::Timestamp;
use url::Url;

use super::create::write;
use super::source::archive::MAX_PACKED;
use super::source::{address, digest, in_memory, is_archive};
use crate::cli::common::error::CliError;
use crate::cli::common::{files, output};

/// Flags of `interlock package index`.
#[derive(Args, Debug)]
pub(super) struct IndexFlags {
    /// Folder with archives (.tgz).
    folder: PathBuf,
    /// Address under which the folder is served.
    #[arg(long, value_name = "URL")]
    url: String,
    /// Replace the index if it is there.
    #[arg(long, short = 'w')]
    overwrite: bool,
}

/// Runs the command.
pub(super) fn run(flags: &IndexFlags) -> Result<(), CliError> {
    let url = address(&flags.url).map_err(|error| error.within("--url"))?;
    let index = of(&flags.folder, &url)?;
    let target = flags.folder.join(INDEX);
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    write(&target, index.write(&now).as_bytes(), flags.overwrite)?;
    output::line(&format!("index {} created.", target.display()))
}

fn of(folder: &Path, url: &Url) -> Result<RepositoryIndex, CliError> {
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
