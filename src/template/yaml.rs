//! YAML as Go reads and writes it: version 1.1, with the quirks of `gopkg.in/yaml.v2` and
//! `sigs.k8s.io/yaml`, on which every manifest that KUDO applied depends.

mod compose;
mod made;
mod read;
mod scalar;
mod write;

pub use made::MAX_MADE;
pub use read::{Aliases, MAX_DEPTH, Reader, YamlError, YamlProblem, documents, read};
pub(super) use write::Doc;
pub use write::write;
