//! ControllerRevisions (`apps/v1`) that keep a spec: one that is too large for the annotation
//! `interlock.dev/last-applied-spec`, or one of the history of a DataPlane; and those that keep the inventory of an
//! Instance. Their names, and the content as gzipped JSON in parts. The sets have different names and labels, so that
//! the cleanup of one leaves the others alone.
//!
//! StatefulSets keep their specs in them, too: they are immutable, and the role `view` can read
//! them, as it can the object itself.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::meta;
use super::object::{NamespacedName, meta_str};
use super::stamp::{REFERENCE, SpecHash};

/// `apiVersion` of ControllerRevisions.
pub const API_VERSION: &str = "apps/v1";
/// Their kind.
pub const KIND: &str = REFERENCE;
/// Annotation of each part: number of parts.
pub const PARTS: &str = "interlock.dev/parts";
/// Maximum parts of one spec: etcd accepts objects of 1.5 MiB, and gzip makes none of them four
/// times as large.
pub const MAX_PARTS: usize = 4;
/// Member of `data`: base64 of a part of the gzipped JSON.
const DATA: &str = "gzip";

/// Bytes of one part: base64 makes 1.17 MiB of them, and etcd accepts 1.5 MiB.
pub const PART: usize = 900 * 1024;
/// Bytes of the largest spec that is unpacked; larger than any object that etcd accepts.
const UNPACKED: usize = 8 * 1024 * 1024;

/// The object whose spec is kept.
#[derive(Clone, Copy, Debug)]
pub struct RevisionOwner<'a> {
    /// Its `apiVersion`.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace and name.
    pub key: &'a NamespacedName,
    /// Its uid.
    pub uid: &'a str,
    /// The number of the revision: its generation, or the place in a history.
    pub revision: i64,
}

/// The name of a part: `NAME-UID8-HASH12-N`, with NAME shortened so that the whole is at most 253
/// bytes long.
pub fn name(owner: &str, uid: &str, hash: &SpecHash, part: usize) -> String {
    let tail = format!("-{}-{}-{part}", uid.get(..8).unwrap_or(uid), hash.short());
    let room = 253_usize.saturating_sub(tail.len());
    format!("{}{tail}", &owner[..owner.floor_char_boundary(room)])
}

/// The name of a part in the history of a DataPlane: `NAME-history-UID8-HASH12-N`.
pub fn history_name(owner: &str, uid: &str, hash: &SpecHash, part: usize) -> String {
    name(&history_of(owner), uid, hash, part)
}

fn history_of(owner: &str) -> String {
    format!("{owner}-history")
}

/// The twelve digits of the hash in the name of a part.
pub fn short_hash(name: &str) -> Option<&str> {
    let (rest, _part) = name.rsplit_once('-')?;
    Some(rest.rsplit_once('-')?.1)
}

/// The number of a part in its name.
pub fn part_number(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// A spec, given as JSON, in the parts that keep it for a stamp.
pub fn parts(owner: &RevisionOwner<'_>, hash: &SpecHash, spec: &str) -> std::io::Result<Vec<Value>> {
    kept(owner, meta::REVISION_OF, &owner.key.name, hash, spec)
}

/// A spec, given as JSON, in the parts that keep it in the history of a DataPlane.
pub fn history_parts(owner: &RevisionOwner<'_>, hash: &SpecHash, spec: &str) -> std::io::Result<Vec<Value>> {
    kept(owner, meta::HISTORY_OF, &history_of(&owner.key.name), hash, spec)
}

/// An inventory, given as JSON, in the parts that keep it.
pub fn inventory_parts(
    owner: &RevisionOwner<'_>,
    hash: &SpecHash,
    inventory: &str,
) -> std::io::Result<Vec<Value>> {
    let prefix = format!("{}-inventory", owner.key.name);
    kept(owner, meta::INVENTORY_OF, &prefix, hash, inventory)
}

fn kept(
    owner: &RevisionOwner<'_>,
    label: &str,
    prefix: &str,
    hash: &SpecHash,
    spec: &str,
) -> std::io::Result<Vec<Value>> {
    let packed = pack(spec)?;
    let count = packed.len();
    let part = |(number, part): (usize, &Vec<u8>)| {
        json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": name(prefix, owner.uid, hash, number),
                "namespace": owner.key.namespace,
                "labels": { label: owner.uid },
                "annotations": { PARTS: count.to_string() },
                "ownerReferences": [{
                    "apiVersion": owner.api_version,
                    "kind": owner.kind,
                    "name": owner.key.name,
                    "uid": owner.uid,
                    "controller": true,
                }],
            },
            "revision": owner.revision,
            "data": { DATA: STANDARD.encode(part) },
        })
    };
    Ok(packed.iter().enumerate().map(part).collect())
}

/// Number of parts, as one of them states; at most [`MAX_PARTS`].
pub fn count(part: &Value) -> usize {
    let said = part.pointer("/metadata/annotations").and_then(|a| a.get(PARTS)?.as_str()?.parse().ok());
    said.unwrap_or(1).clamp(1, MAX_PARTS)
}

/// The bytes that a part holds; `None` where it holds none.
pub fn data(part: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(part.get("data")?.get(DATA)?.as_str()?).ok()
}

/// A spec as gzipped JSON, in parts of at most [`PART`] bytes.
pub fn pack(spec: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(spec.as_bytes())?;
    Ok(gzip.finish()?.chunks(PART).map(<[u8]>::to_vec).collect())
}

/// Unpacks the JSON from its parts; `None` where these are not gzipped text of at most 8 MiB.
pub fn unpack(parts: &[Vec<u8>]) -> Option<String> {
    let mut text = String::new();
    let most = u64::try_from(UNPACKED).ok()?;
    GzDecoder::new(parts.concat().as_slice()).take(most + 1).read_to_string(&mut text).ok()?;
    (text.len() <= UNPACKED).then_some(text)
}

/// A spec that is read back part by part: the first states how many there are.
#[derive(Debug, Default)]
pub struct PartsReader {
    read: Vec<Vec<u8>>,
    count: usize,
}

impl PartsReader {
    /// The number of the next part; `None` once all are read.
    pub fn next(&self) -> Option<usize> {
        (self.read.len() < self.count.max(1)).then_some(self.read.len())
    }

    /// Takes in that part; `None` where it holds none.
    pub fn take(&mut self, part: &Value) -> Option<()> {
        if self.read.is_empty() {
            self.count = count(part);
        }
        self.read.push(data(part)?);
        Some(())
    }

    /// The JSON that the parts keep, which the caller checks.
    pub fn text(&self) -> Option<String> {
        unpack(&self.read)
    }

    /// The JSON with that hash that the parts keep.
    pub fn spec(&self, hash: &SpecHash) -> Option<String> {
        self.text().filter(|text| SpecHash::of(text) == *hash)
    }
}

/// ControllerRevisions among some objects.
#[derive(Clone, Debug, Default)]
pub struct Revisions(BTreeMap<NamespacedName, Value>);

impl Revisions {
    /// Whether an object is a ControllerRevision that keeps a spec.
    pub fn is(object: &Value) -> bool {
        object["apiVersion"] == API_VERSION && object["kind"] == KIND && object["data"][DATA].is_string()
    }

    /// Adds one.
    pub fn add(&mut self, object: &Value, namespace: &str) {
        if let Some(name) = meta_str(object, "name") {
            self.0.insert(NamespacedName::new(namespace, name), object.clone());
        }
    }

    /// The canonical JSON with that hash that is kept of an object.
    pub fn spec(&self, owner: &NamespacedName, uid: &str, hash: &SpecHash) -> Option<String> {
        let mut parts = PartsReader::default();
        while let Some(number) = parts.next() {
            let name = name(&owner.name, uid, hash, number);
            parts.take(self.0.get(&NamespacedName::new(owner.namespace.as_str(), name))?)?;
        }
        parts.spec(hash)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn noise(size: usize) -> String {
        (0..size).map(|i| char::from(b'!' + u8::try_from(i * 7919 % 89).unwrap())).collect()
    }

    fn owner(key: &NamespacedName) -> RevisionOwner<'_> {
        RevisionOwner {
            api_version: "kudo.dev/v1beta1",
            kind: "Instance",
            key,
            uid: "0123456789",
            revision: 7,
        }
    }

    #[test]
    fn a_spec_comes_back_out_of_its_parts_and_no_other_does() {
        let key = NamespacedName::new("team", "large");
        let spec = json!({"parameters": {"P": noise(1_400_000)}}).to_string();
        let hash = SpecHash::of(&spec);
        let parts = parts(&owner(&key), &hash, &spec).unwrap();
        let mut found = Revisions::default();
        for part in &parts {
            assert!(part.to_string().len() < 1024 * 1024 * 3 / 2);
            assert_eq!(part["metadata"]["ownerReferences"][0]["controller"], true);
            assert_eq!(part["metadata"]["labels"], json!({"interlock.dev/revision-of": "0123456789"}));
            assert!(Revisions::is(part));
            found.add(part, "team");
        }
        assert_eq!(found.spec(&key, "0123456789", &hash), Some(spec));
        assert_eq!(found.spec(&key, "another-uid", &hash), None);
        assert_eq!(found.spec(&key, "0123456789", &SpecHash::of("{}")), None);
        let mut other = parts[0].clone();
        other["data"]["gzip"] = json!(STANDARD.encode(&pack("{}").unwrap()[0]));
        found.add(&other, "team");
        assert_eq!(found.spec(&key, "0123456789", &hash), None);
    }

    #[rstest]
    #[case::largest(UNPACKED, true)]
    #[case::too_large(UNPACKED + 1, false)]
    #[case::a_bomb(4 * UNPACKED, false)]
    fn inflating_is_bounded(#[case] size: usize, #[case] taken: bool) {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        std::io::copy(&mut std::io::repeat(b' ').take(u64::try_from(size).unwrap()), &mut gzip).unwrap();
        let bomb = gzip.finish().unwrap();
        assert_eq!(unpack(&[bomb]).is_some(), taken);
    }

    #[rstest]
    #[case::nothing(json!({}), 1)]
    #[case::two(json!({"metadata": {"annotations": {PARTS: "2"}}}), 2)]
    #[case::none(json!({"metadata": {"annotations": {PARTS: "0"}}}), 1)]
    #[case::too_many(json!({"metadata": {"annotations": {PARTS: "999999999"}}}), MAX_PARTS)]
    fn parts_are_counted(#[case] part: Value, #[case] parts: usize) {
        assert_eq!(count(&part), parts);
    }

    #[test]
    fn names_are_never_too_long() {
        let hash = SpecHash::of("{}");
        let name = name(&"n".repeat(253), "0123456789", &hash, 12);
        assert_eq!(name.len(), 253);
        assert!(name.ends_with(&format!("-01234567-{}-12", hash.short())));
        assert_eq!(short_hash(&name), Some(hash.short()));
    }

    #[test]
    fn a_history_and_an_archive_do_not_meet() {
        let key = NamespacedName::new("team", "edge");
        let hash = SpecHash::of("{}");
        let archived = parts(&owner(&key), &hash, "{}").unwrap().remove(0);
        let recorded = history_parts(&owner(&key), &hash, "{}").unwrap().remove(0);
        assert_eq!(recorded["metadata"]["name"], history_name("edge", "0123456789", &hash, 0));
        assert_ne!(recorded["metadata"]["name"], archived["metadata"]["name"]);
        assert_eq!(recorded["metadata"]["labels"], json!({"interlock.dev/history-of": "0123456789"}));
        assert_eq!(recorded["data"], archived["data"], "one form");
    }
}
