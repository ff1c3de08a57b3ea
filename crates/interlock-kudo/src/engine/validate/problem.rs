//! Problems of a package, and which of them are errors.

use std::borrow::Cow;
use std::fmt;

use interlock_core::api::suggest;

use super::ways::Ways;
use crate::api::OperatorVersionSpec;

/// Maximum of problems written out per package; the rest is counted.
pub(super) const KEPT: usize = 64;

/// How many lost names are compared with the names that there are: an API request waits for it.
const COMPARED: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageProblem {
    /// Path of the field, such as `spec.plans[deploy].phases[0].name`.
    pub field: String,
    /// The fault.
    pub what: String,
    pub remedy: Cow<'static, str>,
}

impl fmt::Display for PackageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.what, self.remedy)
    }
}

/// A problem that is not formatted yet: a package can have more of them than fit into memory as
/// text.
pub struct Wrong<'f> {
    pub(super) field: fmt::Arguments<'f>,
    pub(super) what: fmt::Arguments<'f>,
    pub(super) remedy: &'static str,
    pub(super) lost: Option<LostName<'f>>,
    /// The ways to the OperatorVersion on which an Instance fails for it, whatever its parameters.
    pub(super) blocks: Ways,
}

/// A name that refers to nothing, and the names that there are.
pub(super) struct LostName<'f> {
    pub(super) name: &'f str,
    pub(super) known: &'f dyn Fn() -> Vec<&'f str>,
}

impl Wrong<'_> {
    /// Formats it.
    pub fn write(&self) -> PackageProblem {
        let (field, what) = (self.field.to_string(), self.what.to_string());
        PackageProblem { field, what, remedy: Cow::Borrowed(self.remedy) }
    }

    /// Formats it, with the names that a lost one is likely to stand for.
    fn write_with_names(&self) -> PackageProblem {
        let likely = self.lost.as_ref().and_then(|lost| suggest::did_you_mean(lost.name, &(lost.known)()));
        let remedy = match likely {
            Some(likely) => Cow::Owned(format!("{}: {likely}", self.remedy)),
            None => Cow::Borrowed(self.remedy),
        };
        PackageProblem { remedy, ..self.write() }
    }
}

/// The first problems, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first, in the order of the fields.
    pub first: Vec<PackageProblem>,
    /// Number of the others.
    pub more: usize,
}

impl Problems {
    fn add(&mut self, wrong: &Wrong<'_>) {
        if self.first.len() < COMPARED {
            self.first.push(wrong.write_with_names());
        } else if self.first.len() < KEPT {
            self.first.push(wrong.write());
        } else {
            self.more += 1;
        }
    }

    fn append(&mut self, others: Self) {
        let room = KEPT.saturating_sub(self.first.len());
        self.more += others.more + others.first.len().saturating_sub(room);
        self.first.extend(others.first.into_iter().take(room));
    }
}

/// The problems of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Every Instance that is created with the package or upgraded to it fails on one of them.
    pub errors: Problems,
    /// They fail where they are used, if they are.
    pub warnings: Problems,
}

/// Collects problems, and tells in the end which of them are errors.
#[derive(Debug, Default)]
pub struct Collector {
    blocking: Problems,
    others: Problems,
    blocked: Ways,
}

impl Collector {
    pub fn add(&mut self, wrong: &Wrong<'_>) {
        self.know(wrong);
        let list = if wrong.blocks.is_none() { &mut self.others } else { &mut self.blocking };
        list.add(wrong);
    }

    /// Counts one that is not to be named.
    pub fn know(&mut self, wrong: &Wrong<'_>) {
        self.blocked.add(wrong.blocks);
    }

    /// What blocks only one of two ways is no error.
    pub fn findings(mut self, spec: &OperatorVersionSpec) -> Findings {
        if self.blocked == Ways::to(spec) {
            return Findings { errors: self.blocking, warnings: self.others };
        }
        self.blocking.append(self.others);
        Findings { errors: Problems::default(), warnings: self.blocking }
    }
}
