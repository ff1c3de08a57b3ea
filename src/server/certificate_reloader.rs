//! Certificate reloader: reads files again on a timer, and replaces the certificate when they change.
//!
//! A Secret volume is updated by swapping the symlink `..data`, which a watch on the files themselves never
//! sees, so the content is compared instead.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use super::tls::{BadPair, CertificateResolver, MOST_PEM_BYTES, Pair};

/// Names in the directory, as in a Secret of type `kubernetes.io/tls`.
const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path:?} cannot be read: {source}")]
pub struct UnreadableFile {
    path: PathBuf,
    source: io::Error,
}

/// Why the files were rejected.
#[derive(Debug, thiserror::Error)]
enum BadFiles {
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    #[error("{dir:?}: {source}")]
    Pair { dir: PathBuf, source: BadPair },
}

/// A directory with tls.crt and tls.key.
pub struct CertificateFiles {
    dir: PathBuf,
    last_hash: Option<[u8; 32]>,
}

impl CertificateFiles {
    /// A reloader that has read nothing yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), last_hash: None }
    }

    /// Serves the pair in the files, forever. After an invalid write the last valid pair stays.
    pub async fn follow(mut self, interval: Duration, resolver: CertificateResolver) {
        loop {
            match self.read().await {
                Ok(None) => {}
                Ok(Some(pair)) => resolver.show(pair),
                Err(error) if self.last_hash.is_some() => {
                    tracing::warn!(%error, "the certificate is invalid; still serving the last valid one");
                }
                Err(error) => tracing::warn!(%error, "no certificate yet"),
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// The pair, if it differs from the previous one.
    async fn read(&mut self) -> Result<Option<Pair>, BadFiles> {
        let chain = read(&self.dir.join(CHAIN)).await?;
        let key = read(&self.dir.join(KEY)).await?;
        let hash: [u8; 32] = Sha256::new().chain_update(&chain).chain_update(&key).finalize().into();
        if self.last_hash == Some(hash) {
            return Ok(None);
        }
        let bad = |source| BadFiles::Pair { dir: self.dir.clone(), source };
        let pair = Pair::from_pem(&chain, &key).map_err(bad)?;
        self.last_hash = Some(hash);
        Ok(Some(pair))
    }
}

/// Reads of a file before it counts as being written all the time.
const READS: usize = 8;

/// Reads a file until two reads agree: one that overlaps a write may return the head of the old content and
/// the tail of the new, which can be valid PEM of a certificate that was never written.
pub(super) async fn read(path: &Path) -> Result<Vec<u8>, UnreadableFile> {
    let unreadable = |source| UnreadableFile { path: path.to_owned(), source };
    let mut before = read_once(path).await.map_err(unreadable)?;
    for _ in 1..READS {
        let now = read_once(path).await.map_err(unreadable)?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
    Err(unreadable(io::Error::new(io::ErrorKind::ResourceBusy, "it is being written all the time")))
}

/// Reads a little more than the limit, so that too large a file is detected.
async fn read_once(path: &Path) -> io::Result<Vec<u8>> {
    let file = tokio::fs::File::open(path).await?;
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST_PEM_BYTES).unwrap_or(u64::MAX) + 1;
    file.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::cluster::certificates::authority;
    use jiff::Timestamp;

    fn write(dir: &Path, days: u64) {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let lifetime = Duration::from_secs(days * 86400);
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let ca = authority::authority(now, lifetime).unwrap();
        let leaf = authority::leaf(&ca, &["a.b.svc".to_owned()], now, lifetime).unwrap();
        std::fs::write(dir.join(CHAIN), leaf.certificate).unwrap();
        std::fs::write(dir.join(KEY), leaf.key).unwrap();
    }

    #[tokio::test]
    async fn a_new_pair_is_taken_and_a_bad_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = CertificateFiles::new(dir.path());
        let error = files.read().await.expect_err("no files").to_string();
        assert!(error.contains("tls.crt"), "{error}");
        write(dir.path(), 1);
        let pair = files.read().await.unwrap().expect("first");
        assert_eq!(pair.not_after(), 1_800_000_000 + 86400);
        assert!(files.read().await.unwrap().is_none(), "unchanged");
        // Half a rotation: the new certificate with the old key.
        let key = std::fs::read(dir.path().join(KEY)).unwrap();
        write(dir.path(), 2);
        std::fs::write(dir.path().join(KEY), key).unwrap();
        let error = files.read().await.expect_err("no pair").to_string();
        assert!(error.contains("not a pair"), "{error}");
        std::fs::write(dir.path().join(KEY), vec![b'a'; MOST_PEM_BYTES + 1]).unwrap();
        assert!(files.read().await.is_err());
        write(dir.path(), 3);
        assert!(files.read().await.unwrap().is_some());
    }

    /// A kubelet swaps whole files, others may write in place.
    #[tokio::test]
    async fn a_file_that_is_being_written_is_never_read_half_old_and_half_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CHAIN);
        let (written, stop) = (path.clone(), Arc::new(AtomicBool::new(false)));
        std::fs::write(&path, "").unwrap();
        let stopped = stop.clone();
        let writer = std::thread::spawn(move || {
            let mut contents = (u8::MIN..=u8::MAX).cycle().zip([1200, 700].into_iter().cycle());
            while !stopped.load(Ordering::Relaxed) {
                let (byte, length) = contents.next().unwrap();
                std::fs::write(&written, vec![byte; length]).unwrap();
            }
        });
        let mut whole = 0;
        while whole < 100 {
            let Ok(found) = read(&path).await else { continue };
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
            whole += 1;
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
}
