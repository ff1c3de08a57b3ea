//! Names of kinds and nodes.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Group and kind of a declaration. A kind is the same in every served version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindName {
    /// API group, empty for core.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
}

impl KindName {
    /// From group and kind.
    pub const fn new(group: &'static str, kind: &'static str) -> Self {
        Self { group, kind }
    }
}

/// Group and kind of an object, declared or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// Kind; the first sort key of nodes.
    pub kind: Arc<str>,
    /// API group, empty for core.
    pub group: Arc<str>,
}

impl GroupKind {
    /// From group and kind.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl From<KindName> for GroupKind {
    fn from(name: KindName) -> Self {
        Self::new(name.group, name.kind)
    }
}

impl PartialEq<KindName> for GroupKind {
    fn eq(&self, other: &KindName) -> bool {
        &*self.kind == other.kind && &*self.group == other.group
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// A kind of one graph: an index, cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub(super) u16);

/// Epoch of the watch of a kind: the graph drops events of other epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a node; its order is that of all printed output.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// Kind.
    pub kind: GroupKind,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Part of the object (a listener, a rule), empty for the object itself.
    pub section: Arc<str>,
}

impl NodeId {
    /// The id of an object.
    pub fn new(kind: impl Into<GroupKind>, namespace: &str, name: &str) -> Self {
        Self { kind: kind.into(), namespace: namespace.into(), name: name.into(), section: Arc::default() }
    }

    /// The id of a part of the object.
    pub fn section(self, section: &str) -> Self {
        Self { section: section.into(), ..self }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)?;
        if self.section.is_empty() { Ok(()) } else { write!(f, "#{}", self.section) }
    }
}

/// `metadata.uid`: a recreated object has another one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Uid([u8; 16]);

impl Uid {
    /// The 16 bytes of a UUID; of any other text, of its SHA-256.
    pub(super) fn of(text: &str) -> Self {
        match uuid::Uuid::parse_str(text) {
            Ok(uuid) if text.len() == 36 => Self(uuid.into_bytes()),
            _ => {
                let digest = Sha256::digest(text.as_bytes());
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&digest[..16]);
                Self(bytes)
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&uuid::Uuid::from_bytes(self.0).as_hyphenated(), f)
    }
}
