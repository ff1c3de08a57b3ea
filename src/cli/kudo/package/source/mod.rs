//! The sources of packages: folders, archives, addresses of archives, and names in a repository.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use interlock_kudo::package::bundle::PackagedChild;

use self::archive::{ArchiveError, MAX_PACKED, MAX_UNPACKED};
use self::place::{Archive, joined};
use crate::cli::common::error::CliError;

pub(super) use self::download::{Downloads, address};
pub(super) use self::place::{Place, PlaceKey, is_archive};
pub(super) use self::repository::{Repository, digest};

pub(super) mod archive;
mod download;
mod place;
mod repository;
#[cfg(test)]
mod server;

/// Bytes of all archives of a command, unpacked.
const MAX_HELD: usize = 2 * MAX_UNPACKED;

/// Flags that name a package.
#[derive(Args, Debug)]
pub(super) struct SourceFlags {
    /// A folder with operator.yaml, params.yaml and templates/; an archive (.tgz) of such a folder, or its
    /// http(s) address; with --repo, the name of a package.
    #[arg(value_name = "PACKAGE")]
    package: PathBuf,
    #[command(flatten)]
    repository: RepositoryFlag,
    /// Version of the package in the repository; by default the newest.
    #[arg(long, value_name = "VERSION", requires = "repo")]
    operator_version: Option<String>,
    /// Version of the application of the package in the repository; by default the newest.
    #[arg(long, value_name = "VERSION", requires = "repo")]
    app_version: Option<String>,
}

/// The flag for a repository.
#[derive(Args, Debug, Default)]
pub(super) struct RepositoryFlag {
    /// Address of a repository of KUDO's packages: the folder that has index.yaml. There is no default.
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
}

impl RepositoryFlag {
    /// The address, which has to be given.
    pub(super) fn needed(&self) -> Result<&str, CliError> {
        self.repo.as_deref().ok_or_else(|| {
            CliError::usage("no repository is given")
                .next("give the address of the folder of its index.yaml: --repo https://HOST/PATH")
        })
    }
}

/// Where the packages of a command come from.
#[derive(Default)]
pub(super) struct Sources {
    /// `None` where nothing is downloaded.
    downloads: Option<Downloads>,
    repo: Option<String>,
    repository: Option<Repository>,
    /// By file or address.
    archives: BTreeMap<String, Arc<Archive>>,
    held: usize,
}

impl Sources {
    /// The package that flags name, and where those come from that it installs.
    pub(super) fn of(flags: &SourceFlags) -> Result<(Self, Place), CliError> {
        let SourceFlags { package, repository: RepositoryFlag { repo }, operator_version, app_version } =
            flags;
        let mut sources = Self { downloads: Some(Downloads::new()?), repo: repo.clone(), ..Self::default() };
        let bare = |text: &&str| !text.contains('/') && ![".", ".."].contains(text) && !is_archive(package);
        let name = package.to_str().filter(bare);
        let name = name.filter(|_| repo.is_some());
        if name.is_none() && (operator_version.is_some() || app_version.is_some()) {
            return Err(CliError::usage(
                "--operator-version and --app-version choose among those of a repository",
            )
            .next(format!("leave them out: {} is one package", package.display())));
        }
        let place = match (package.to_str().filter(|text| is_address(text)), name) {
            (Some(url), _) => sources.url(url)?,
            (None, Some(name)) => sources.named(name, operator_version.as_deref(), app_version.as_deref())?,
            (None, None) => sources.path(package)?,
        };
        Ok((sources, place))
    }

    /// The package of a path: a folder or an archive.
    pub(super) fn path(&mut self, path: &Path) -> Result<Place, CliError> {
        if path.is_dir() {
            return Ok(Place::Folder(path.to_owned()));
        }
        if is_archive(path) && path.exists() {
            return self.file(path);
        }
        let error = CliError::usage(format!("{} is neither a folder nor an archive (.tgz)", path.display()));
        let bare = path.to_str().is_some_and(|text| !text.contains('/')) && !is_archive(path);
        Err(match (path.is_file(), bare) {
            (true, _) => error.next("give the folder of operator.yaml, or an archive: `interlock package create FOLDER`"),
            (false, true) => error.next(
                "give the path of a package, its http(s) address, or the repository that has it with --repo URL",
            ),
            (false, false) => error.next("give a package: a folder with operator.yaml, params.yaml and templates/"),
        })
    }

    /// The package that a task names by a path or an address, or by its name where the repository has it; `None`
    /// where it is named as a cluster knows it.
    pub(super) fn child(&mut self, parent: &Place, child: &PackagedChild) -> Result<Option<Place>, CliError> {
        let named = child.package.as_str();
        if is_address(named) {
            return self.url(named).map_err(|error| of_task(parent, child, error)).map(Some);
        }
        if named.contains('/') {
            return self.beside(parent, child).map(Some);
        }
        if self.repo.is_none() {
            return Ok(None);
        }
        let (version, app_version) = (child.version.as_deref(), child.app_version.as_deref());
        if self.repository()?.index.find(named, version, app_version).is_err() {
            return Ok(None);
        }
        self.named(named, version, app_version).map_err(|error| of_task(parent, child, error)).map(Some)
    }

    fn beside(&mut self, parent: &Place, child: &PackagedChild) -> Result<Place, CliError> {
        let named = child.package.as_str();
        match parent {
            Place::Folder(dir) => match dir.join(named) {
                folder if folder.is_dir() => Ok(Place::Folder(folder)),
                file if is_archive(&file) && file.is_file() => self.file(&file),
                _ => Err(nothing(parent, child, "which is neither a folder nor an archive (.tgz)")
                    .next("name the folder or the archive relative to the folder of operator.yaml")),
            },
            Place::Archive { archive, below } => {
                let path = joined(below, named);
                if archive.has_folder(&path) {
                    return Ok(Place::Archive { archive: Arc::clone(archive), below: path });
                }
                match archive.files.get(&path).filter(|_| is_archive(Path::new(&path))) {
                    Some(packed) => {
                        let of = |archive: &str| format!("{archive}, file {path}");
                        self.unpack(of(&archive.key), of(&archive.origin), packed)
                    }
                    None => Err(nothing(parent, child, "which is not in the archive").next(
                        "put its folder below that of operator.yaml, name it as ./FOLDER, and create the archive \
                         again",
                    )),
                }
            }
        }
    }

    /// The package of an archive on this machine.
    fn file(&mut self, path: &Path) -> Result<Place, CliError> {
        let shown = path.display().to_string();
        let unreadable =
            |error: std::io::Error| CliError::usage(format!("{shown} cannot be read")).why(error.to_string());
        let key = path.canonicalize().map_err(unreadable)?.display().to_string();
        if let Some(known) = self.archives.get(&key) {
            return Ok(Place::top(Arc::clone(known)));
        }
        let mut packed = Vec::new();
        let file = fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_PACKED as u64 + 1).read_to_end(&mut packed).map_err(unreadable)?;
        self.hold(key, shown.clone(), &packed)
    }

    /// The package of an archive at an address.
    fn url(&mut self, text: &str) -> Result<Place, CliError> {
        let url = address(text)?;
        if let Some(known) = self.archives.get(url.as_str()) {
            return Ok(Place::top(Arc::clone(known)));
        }
        let packed = self.downloads()?.get(&url, MAX_PACKED)?;
        self.hold(url.as_str().to_owned(), download::shown(&url), &packed)
    }

    /// The package of a name in the repository.
    fn named(&mut self, name: &str, version: Option<&str>, app: Option<&str>) -> Result<Place, CliError> {
        let repository = self.repository()?;
        let found = repository.index.find(name, version, app);
        let package = found.map_err(|error| repository.missing(&error))?.clone();
        let key = package.title();
        if let Some(known) = self.archives.get(&key) {
            return Ok(Place::top(Arc::clone(known)));
        }
        let (Some(repository), Some(downloads)) = (&self.repository, &mut self.downloads) else {
            return Err(nothing_is_downloaded());
        };
        let (origin, packed) = repository.download(&package, downloads)?;
        let place = self.hold(key, origin.clone(), &packed)?;
        let bundle = place.read()?;
        if let Some(repository) = &self.repository {
            repository.check_identity(&package, &bundle, &origin)?;
        }
        Ok(place)
    }

    fn repository(&mut self) -> Result<&Repository, CliError> {
        if self.repository.is_none() {
            let repo = RepositoryFlag { repo: self.repo.clone() };
            let found = Repository::open(repo.needed()?, self.downloads()?)?;
            return Ok(self.repository.insert(found));
        }
        self.repository.as_ref().ok_or_else(nothing_is_downloaded)
    }

    fn downloads(&mut self) -> Result<&mut Downloads, CliError> {
        self.downloads.as_mut().ok_or_else(nothing_is_downloaded)
    }

    fn unpack(&mut self, key: String, origin: String, packed: &[u8]) -> Result<Place, CliError> {
        match self.archives.get(&key) {
            Some(known) => Ok(Place::top(Arc::clone(known))),
            None => self.hold(key, origin, packed),
        }
    }

    /// Unpacks an archive, and keeps it.
    fn hold(&mut self, key: String, origin: String, packed: &[u8]) -> Result<Place, CliError> {
        let files = archive::unpack(packed).map_err(|error| error.of(&origin))?;
        self.held += files.iter().map(|(path, content)| path.len() + content.len()).sum::<usize>();
        if self.held > MAX_HELD {
            return Err(ArchiveError::Unpacked.of(&origin).within("with the other packages"));
        }
        let archive = Arc::new(Archive { key: key.clone(), origin, files });
        self.archives.insert(key, Arc::clone(&archive));
        Ok(Place::top(archive))
    }
}

/// The package of an archive that was made in memory.
pub(super) fn in_memory(origin: &str, packed: &[u8]) -> Result<Place, CliError> {
    Sources::default().hold(origin.to_owned(), origin.to_owned(), packed)
}

fn is_address(text: &str) -> bool {
    text.contains("://")
}

fn nothing(parent: &Place, child: &PackagedChild, what: &str) -> CliError {
    let PackagedChild { task, package, .. } = child;
    CliError::usage(format!("task {task} names package {package}, {what}"))
        .place(parent.file("operator.yaml"))
}

fn of_task(parent: &Place, child: &PackagedChild, error: CliError) -> CliError {
    error.within(&format!("task {} of {parent}", child.task))
}

fn nothing_is_downloaded() -> CliError {
    CliError::usage("this command downloads nothing")
        .next("download the package, and name its folder or archive relative to the folder of operator.yaml")
}

#[cfg(test)]
mod tests;
