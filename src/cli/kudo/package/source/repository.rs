//! A repository of packages: an `index.yaml` over HTTP(S), as `kubectl kudo repo index` makes it.

use interlock_kudo::package::bundle::PackageBundle;
use interlock_kudo::package::repository::{INDEX, IndexedPackage, RepositoryIndex};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::archive::MAX_PACKED;
use super::download::{Downloads, address, shown};
use crate::cli::common::error::CliError;

/// Bytes of an index, which the YAML reader takes at the most.
const MAX_INDEX: usize = 8 << 20;

/// Addresses of one archive that are tried.
const MAX_TRIED: usize = 4;

/// A repository whose index was read.
#[derive(Debug)]
pub(in crate::cli::kudo::package) struct Repository {
    /// Address of its index.
    place: String,
    pub(in crate::cli::kudo::package) index: RepositoryIndex,
}

impl Repository {
    /// Reads the index of a repository: of the folder, or of the file itself.
    pub(in crate::cli::kudo::package) fn open(
        url: &str,
        downloads: &mut Downloads,
    ) -> Result<Self, CliError> {
        let mut url = address(url).map_err(|error| error.within("--repo"))?;
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix(&format!("/{INDEX}")).unwrap_or(path);
        let path = format!("{path}/{INDEX}");
        url.set_path(&path);
        let place = shown(&url);
        let bytes = downloads.get(&url, MAX_INDEX)?;
        let wrong = |why: String| {
            CliError::usage("the index of the repository cannot be used").place(&place).why(why).next(
                "give with --repo the address of a folder that `interlock package index` or `kubectl kudo repo index` \
                 has written an index.yaml for",
            )
        };
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
        let index = RepositoryIndex::read(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { place, index })
    }

    /// The error of a package that it does not have.
    pub(super) fn missing(&self, error: &interlock_kudo::package::repository::NotIndexed) -> CliError {
        CliError::unreached(error.to_string()).place(&self.place).next(error.remedy())
    }

    /// The archive of a package, with its address; its digest is that of the index, where that has one.
    pub(super) fn download(
        &self,
        package: &IndexedPackage,
        downloads: &mut Downloads,
    ) -> Result<(String, Vec<u8>), CliError> {
        let what = format!("package {}", package.title());
        let mut failed = CliError::usage(format!("the index names no address of {what}"))
            .place(&self.place)
            .next("name another version, or tell who keeps the repository");
        for text in package.urls.iter().take(MAX_TRIED) {
            let found = address(text).and_then(|url| {
                let bytes = downloads.get(&url, MAX_PACKED)?;
                self.check(package, &url, &bytes)?;
                Ok((shown(&url), bytes))
            });
            match found {
                Ok(found) => return Ok(found),
                Err(error) => failed = error.within(&what),
            }
        }
        Err(failed)
    }

    fn check(&self, package: &IndexedPackage, url: &Url, bytes: &[u8]) -> Result<(), CliError> {
        let Some(wanted) = &package.digest else { return Ok(()) };
        let found = digest(bytes);
        if found.eq_ignore_ascii_case(wanted) {
            return Ok(());
        }
        Err(CliError::refused("the archive is not the one of the index")
            .place(shown(url))
            .why(format!("its SHA-256 is {found}, and that in {} is {wanted}", self.place))
            .next("do not use it; tell who keeps the repository"))
    }

    /// Refuses a package that is another than its entry says.
    pub(super) fn check_identity(
        &self,
        package: &IndexedPackage,
        found: &PackageBundle,
        origin: &str,
    ) -> Result<(), CliError> {
        let (held, wanted) = (IndexedPackage::of(found).title(), package.title());
        if held == wanted {
            return Ok(());
        }
        Err(CliError::refused("the archive holds another package than the index says")
            .place(origin)
            .why(format!("it holds {held}, and {} says {wanted}", self.place))
            .next("do not use it; tell who keeps the repository"))
    }
}

/// SHA-256, in hexadecimal digits.
pub(in crate::cli::kudo::package) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
