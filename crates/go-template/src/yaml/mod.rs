//! YAML as Go reads and writes it: version 1.1, with the quirks of `gopkg.in/yaml.v2` and
//! `sigs.k8s.io/yaml`.

mod compose;
mod error;
mod key_order;
mod made;
mod places;
mod read;
mod scalar;
mod style;
mod write;

pub use error::{Aliases, MAX_DEPTH, MAX_MADE, YamlError, YamlProblem};
pub use places::{DuplicateKey, PathStep, duplicate_key, line_of, lines_of_items};
pub use read::{Reader, documents, read};
pub(super) use write::Doc;
pub use write::write;
