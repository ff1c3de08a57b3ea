//! Archives of packages, as `kubectl kudo package create` makes them (`kudoctl/packages/writer` and `reader`).
//!
//! An archive may come from anybody. It is unpacked in memory, within budgets, and holds files only: what could
//! reach out of it, or mean two things, is refused.

use std::collections::BTreeMap;
use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use thiserror::Error;

use crate::cli::common::error::CliError;

/// Bytes of an archive.
pub(in crate::cli::kudo::package) const MAX_PACKED: usize = 8 << 20;

/// Bytes of what an archive holds: the objects of a package are smaller than 2 MiB.
pub(in crate::cli::kudo::package) const MAX_UNPACKED: usize = 32 << 20;

/// Entries of an archive.
pub(in crate::cli::kudo::package) const MAX_ENTRIES: usize = 4096;

/// Bytes of the name of an entry.
const MAX_NAME: usize = 1024;

/// Characters of a name that a message shows.
const SHOWN: usize = 120;

/// The files of an archive, by their paths.
pub(in crate::cli::kudo::package) type Files = BTreeMap<String, Vec<u8>>;

/// Why an archive is not used.
#[derive(Debug, Error)]
pub(in crate::cli::kudo::package) enum ArchiveError {
    #[error("it is not compressed by gzip: {0}")]
    Gzip(#[source] io::Error),
    #[error("it is no tar archive: {0}")]
    Tar(#[source] io::Error),
    #[error("it has more than {} MiB", MAX_PACKED >> 20)]
    Packed,
    #[error("it holds more than {} MiB once unpacked", MAX_UNPACKED >> 20)]
    Unpacked,
    #[error("it holds more than {MAX_ENTRIES} entries")]
    Entries,
    #[error("its entry {name} {problem}")]
    Entry { name: String, problem: EntryProblem },
}

/// Why an entry is refused, to continue a sentence that begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(in crate::cli::kudo::package) enum EntryProblem {
    #[error("is a link")]
    Link,
    #[error("is a device or a pipe")]
    Device,
    #[error("is neither a file nor a folder")]
    Kind,
    #[error("has an absolute path")]
    Absolute,
    #[error("leads out of the archive with ..")]
    Above,
    #[error("is there twice")]
    Twice,
    #[error("has a name that is not UTF-8 text")]
    Name,
    #[error("has a name of more than {MAX_NAME} bytes")]
    Long,
    #[error("ends early")]
    Short,
}

impl EntryProblem {
    fn remedy(self) -> &'static str {
        match self {
            Self::Link => "replace the link by a copy of the file that it stands for",
            Self::Device | Self::Kind => "leave it out: a package consists of files",
            Self::Absolute | Self::Above => "name all files relative to the folder of operator.yaml",
            Self::Twice => "leave one of the two out",
            Self::Name | Self::Long => "rename the file",
            Self::Short => "get the archive again: it was cut off",
        }
    }
}

impl ArchiveError {
    fn remedy(&self) -> &'static str {
        match self {
            Self::Gzip(_) | Self::Tar(_) => {
                "give an archive that `interlock package create` or `kubectl kudo package create` has made"
            }
            Self::Packed | Self::Unpacked | Self::Entries => {
                "leave out what belongs to no package: operator.yaml, params.yaml and templates/ are enough"
            }
            Self::Entry { problem, .. } => problem.remedy(),
        }
    }

    /// As an error of a command, about the archive of this origin.
    pub(in crate::cli::kudo::package) fn of(&self, origin: &str) -> CliError {
        CliError::usage("the archive cannot be used").place(origin).why(self.to_string()).next(self.remedy())
    }
}

pub(in crate::cli::kudo::package) fn unpack(packed: &[u8]) -> Result<Files, ArchiveError> {
    if packed.len() > MAX_PACKED {
        return Err(ArchiveError::Packed);
    }
    let unpacked = decompress(packed)?;
    let mut archive = tar::Archive::new(unpacked.as_slice());
    let mut files = Files::new();
    for (seen, entry) in archive.entries().map_err(ArchiveError::Tar)?.enumerate() {
        let entry = entry.map_err(ArchiveError::Tar)?;
        if seen >= MAX_ENTRIES {
            return Err(ArchiveError::Entries);
        }
        let name = entry.path_bytes().into_owned();
        add(&mut files, &name, entry)
            .map_err(|problem| ArchiveError::Entry { name: shown(&name), problem })?;
    }
    Ok(files)
}

fn decompress(packed: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let mut unpacked = Vec::new();
    let most = MAX_UNPACKED as u64 + 1;
    MultiGzDecoder::new(packed).take(most).read_to_end(&mut unpacked).map_err(ArchiveError::Gzip)?;
    if unpacked.len() > MAX_UNPACKED {
        return Err(ArchiveError::Unpacked);
    }
    Ok(unpacked)
}

/// Adds what an entry holds, where it is a file.
fn add(files: &mut Files, name: &[u8], mut entry: tar::Entry<'_, &[u8]>) -> Result<(), EntryProblem> {
    let kind = entry.header().entry_type();
    match kind {
        // The names that git writes about the archive as a whole.
        EntryType::XGlobalHeader => return Ok(()),
        EntryType::Regular | EntryType::Continuous | EntryType::Directory => {}
        EntryType::Symlink | EntryType::Link => return Err(EntryProblem::Link),
        EntryType::Char | EntryType::Block | EntryType::Fifo => return Err(EntryProblem::Device),
        _ => return Err(EntryProblem::Kind),
    }
    let path = path(name)?;
    if kind == EntryType::Directory {
        return Ok(());
    }
    let mut content = Vec::new();
    let size = entry.size();
    // It comes from memory and so cannot be larger than that, whatever its header says.
    entry.read_to_end(&mut content).map_err(|_| EntryProblem::Short)?;
    if content.len() as u64 != size {
        return Err(EntryProblem::Short);
    }
    match files.insert(path, content) {
        Some(_) => Err(EntryProblem::Twice),
        None => Ok(()),
    }
}

/// The path of an entry, in the one form.
fn path(name: &[u8]) -> Result<String, EntryProblem> {
    if name.len() > MAX_NAME {
        return Err(EntryProblem::Long);
    }
    let name = std::str::from_utf8(name).map_err(|_| EntryProblem::Name)?;
    if name.starts_with('/') {
        return Err(EntryProblem::Absolute);
    }
    let parts = name.split('/').filter(|part| !["", "."].contains(part));
    let parts: Vec<&str> = parts.collect();
    if parts.contains(&"..") {
        return Err(EntryProblem::Above);
    }
    Ok(parts.join("/"))
}

fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let short: String = name.chars().take(SHOWN).collect();
    let more = if short.len() < name.len() { "..." } else { "" };
    format!("{short:?}{more}")
}

/// Packs files, the same bytes for the same files.
pub(in crate::cli::kudo::package) fn pack(files: &Files) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, content) in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive.append_data(&mut header, path, content.as_slice())?;
    }
    let mut compressed = archive.into_inner()?;
    compressed.flush()?;
    compressed.finish()
}

#[cfg(test)]
mod tests;
