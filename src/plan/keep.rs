//! Where a stamped spec is kept: in the annotation while it is small, else in Secrets.
//!
//! A stamp must never make a legal write fail.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::api::stamp::{Applied, Kept, SpecHash};

/// Largest spec that is kept inline, in bytes of JSON.
pub const INLINE_SPEC: usize = 32 * 1024;
/// Largest sum of all annotations with the stamp in them: the API server's limit is 256 KiB, and
/// client-side apply keeps a copy of the object there.
pub const ALL_ANNOTATIONS: usize = 192 * 1024;
/// Largest object with the stamp in it: etcd's limit is 1.5 MiB for the whole write, and what
/// fits only without `managedFields` silently loses them.
pub const WHOLE_OBJECT: usize = 1024 * 1024;
/// Bytes of one Secret: a Secret is limited to 1 MiB.
pub const SECRET_PART: usize = 900 * 1024;
/// Largest spec that is unpacked; larger than any object that etcd takes.
const UNPACKED: u64 = 8 * 1024 * 1024;

/// Room that an object has for the stamp.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes of all its other annotations, keys and values.
    pub annotations: usize,
    /// Bytes of the whole object without the stamp.
    pub object: usize,
}

/// Keeps a spec inline where there is room for it, else elsewhere.
pub fn keep<'a>(spec: Applied<'a>, room: Room) -> Kept<'a> {
    // The envelope around the spec is a few hundred bytes; JSON in JSON escapes every quote.
    const AROUND: usize = 512;
    let text = json_size(&spec);
    let fits = text.plain <= INLINE_SPEC
        && room.annotations + text.plain + AROUND <= ALL_ANNOTATIONS
        && room.object + text.escaped + AROUND <= WHOLE_OBJECT;
    match fits {
        true => Kept::Inline { spec },
        false => Kept::Elsewhere,
    }
}

struct Size {
    plain: usize,
    escaped: usize,
}

fn json_size(spec: &Applied<'_>) -> Size {
    // A struct of strings and maps with string keys always serialises.
    let text = serde_json::to_string(spec).unwrap_or_default();
    let escapes = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    Size { plain: text.len(), escaped: text.len() + escapes }
}

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
    fn small_specs_are_inline_and_large_ones_elsewhere() {
        let room = Room { annotations: 0, object: 0 };
        assert!(matches!(keep(spec(20_000), room), Kept::Inline { .. }));
        assert!(matches!(keep(spec(40_000), room), Kept::Elsewhere));
        let crowded = Room { annotations: ALL_ANNOTATIONS - 1000, object: 0 };
        assert!(matches!(keep(spec(2_000), crowded), Kept::Elsewhere));
        let huge = Room { annotations: 0, object: WHOLE_OBJECT };
        assert!(matches!(keep(spec(10), huge), Kept::Elsewhere));
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
