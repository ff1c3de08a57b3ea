//! A stamped spec that does not fit into the annotation: gzipped, in parts for Secrets.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::api::stamp::{Applied, SpecHash};

/// Bytes of one Secret: a Secret is limited to 1 MiB.
pub const SECRET_PART: usize = 900 * 1024;
/// Largest spec that is unpacked; larger than any object that etcd takes.
const UNPACKED: u64 = 8 * 1024 * 1024;

/// The name of a part: `NAME-UID8-HASH12-N`, with NAME shortened to what a name may be long.
pub fn secret_name(name: &str, uid: &str, hash: &SpecHash, part: usize) -> String {
    let tail = format!("-{}-{}-{part}", uid.get(..8).unwrap_or(uid), hash.short());
    let room = 253_usize.saturating_sub(tail.len());
    format!("{}{tail}", name.get(..room).unwrap_or(name))
}

/// The spec as gzipped JSON, in parts.
pub fn pack(spec: &Applied<'_>) -> std::io::Result<Vec<Vec<u8>>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut gzip, spec)?;
    gzip.flush()?;
    Ok(gzip.finish()?.chunks(SECRET_PART).map(<[u8]>::to_vec).collect())
}

/// The spec out of its parts; `None` unless it is the one of that hash.
pub fn unpack(parts: &[Vec<u8>], hash: &SpecHash) -> Option<Applied<'static>> {
    let mut text = Vec::new();
    GzDecoder::new(parts.concat().as_slice()).take(UNPACKED).read_to_end(&mut text).ok()?;
    let spec: Applied<'_> = serde_json::from_slice(&text).ok()?;
    (spec.hash() == *hash).then(|| spec.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::stamp::VersionRef;

    fn spec(size: usize) -> Applied<'static> {
        let noise: String =
            (0..size).map(|i| char::from(b'!' + u8::try_from(i * 7919 % 89).unwrap())).collect();
        Applied {
            operator_version: VersionRef { name: "a".into(), namespace: "b".into() },
            parameters: [("P".into(), noise.into())].into(),
        }
    }

    #[test]
    fn a_spec_comes_back_out_of_its_parts_and_no_other_does() {
        let spec = spec(1_400_000);
        let parts = pack(&spec).unwrap();
        assert!(parts.iter().all(|p| p.len() <= SECRET_PART));
        assert_eq!(unpack(&parts, &spec.hash()), Some(spec.clone()));
        assert_eq!(unpack(&parts, &SpecHash::clone(&self::spec(3).hash())), None);
        assert_eq!(unpack(&[], &spec.hash()), None);
    }

    #[test]
    fn names_are_never_too_long() {
        let hash = spec(1).hash();
        let name = secret_name(&"n".repeat(253), "0123456789", &hash, 12);
        assert_eq!(name.len(), 253);
        assert!(name.ends_with(&format!("-01234567-{}-12", hash.short())));
    }
}
