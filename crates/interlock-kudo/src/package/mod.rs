//! An OperatorVersion as the engine uses it: indexed by name, hashed, and validated.
//!
//! A package that bypassed admission may be invalid; it is kept with its problems, so that its
//! Instances can still be validated and a run fails at the invalid task.

pub mod time_limits;

pub mod functions;

pub mod bundle;
pub mod dependencies;
pub mod number;
pub mod parameter_file;
pub mod params;
pub mod record;
pub mod repository;
pub mod trigger;
pub mod values;
pub mod versions;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use go_template::{ParseError, Template};

use self::record::PlanRecord;
use self::time_limits::Words;
pub use crate::api::PackageHash;
use interlock_core::api::object::NamespacedName;

use crate::api::{OperatorVersionSpec, Parameter, Plan, Task};

/// Whether validation can reject some value of a parameter, or its absence.
pub(super) fn constrained(parameter: &Parameter) -> bool {
    let typed =
        matches!(parameter.value_type.as_deref(), Some("integer" | "number" | "boolean" | "array" | "map"));
    let listed = parameter.enum_.as_ref().is_some_and(|values| !values.is_empty());
    typed || listed || (parameter.required == Some(true) && parameter.default.is_none())
}

/// Bytes of a parsed template for each byte of its text: a node is much larger than the few bytes
/// of its text, and most of a template is plain text.
const PARSED: usize = 8;

/// Bytes of a node of a parsed template, approximately.
const NODE: usize = 150;

/// Bytes of a parsed template that are cached regardless of its text.
const KEPT: usize = 4 << 10;

pub type Parsed = Result<Arc<Template>, ParseError>;

/// An OperatorVersion with indexes by name.
#[derive(Clone, Debug)]
pub struct Package {
    /// Namespace and name of the OperatorVersion.
    pub key: NamespacedName,
    pub spec: Arc<OperatorVersionSpec>,
    /// Hash of the spec.
    pub hash: PackageHash,
    /// About how many bytes it takes in memory once its templates are parsed.
    pub weight: usize,
    /// How much of an Instance the record of its plans takes.
    pub record: PlanRecord,
    /// Time limits; the plans do not depend on them, so they are not in the hash.
    pub limits: Words,
    parameters: BTreeMap<String, usize>,
    tasks: BTreeMap<String, usize>,
    constrained: Vec<usize>,
    parsed: Arc<BTreeMap<String, OnceLock<Parsed>>>,
}

impl Package {
    /// From any spec, valid or not.
    pub fn new(key: NamespacedName, spec: OperatorVersionSpec) -> Self {
        // A struct of strings, maps with string keys and lists always serialises.
        let text = serde_json::to_vec(&spec).unwrap_or_default();
        let hash = PackageHash::of(&text);
        let by_name = |names: Vec<Option<&String>>| {
            let mut map = BTreeMap::new();
            for (i, name) in names.into_iter().enumerate() {
                if let Some(name) = name {
                    map.entry(name.clone()).or_insert(i);
                }
            }
            map
        };
        let parameters = by_name(spec.parameters.iter().flatten().map(|p| p.name.as_ref()).collect());
        let tasks = by_name(spec.tasks.iter().flatten().map(|t| t.name.as_ref()).collect());
        let all = spec.parameters.iter().flatten().enumerate();
        let constrained = all.filter(|(_, p)| constrained(p)).map(|(i, _)| i).collect();
        let templates: usize = spec.templates.iter().flatten().map(|(_, template)| template.len()).sum();
        let weight = text.len() + PARSED * templates;
        let files = spec.templates.iter().flatten();
        let parsed = Arc::new(files.map(|(file, _)| (file.clone(), OnceLock::new())).collect());
        let record = PlanRecord::of(&spec);
        Self {
            key,
            spec: Arc::new(spec),
            hash,
            weight,
            record,
            limits: Words::default(),
            parameters,
            tasks,
            constrained,
            parsed,
        }
    }

    /// The same package under another name, with its limits; both share the parsed content.
    pub fn under(&self, key: NamespacedName, limits: Words) -> Self {
        Self { key, limits, ..self.clone() }
    }

    pub fn plan(&self, name: &str) -> Option<&Plan> {
        self.spec.plans.as_ref()?.get(name)
    }

    /// Names of all plans, in order.
    pub fn plan_names(&self) -> impl Iterator<Item = &str> {
        self.spec.plans.iter().flatten().map(|(name, _)| name.as_str())
    }

    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.spec.parameters.as_ref()?.get(*self.parameters.get(name)?)
    }

    /// All parameters as listed.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.spec.parameters.iter().flatten()
    }

    /// Parameters that do not take every value, in the order they are listed.
    pub fn constrained(&self) -> impl Iterator<Item = &Parameter> {
        let all = self.spec.parameters.as_deref().unwrap_or_default();
        self.constrained.iter().filter_map(|&i| all.get(i))
    }

    pub fn task(&self, name: &str) -> Option<&Task> {
        self.spec.tasks.as_ref()?.get(*self.tasks.get(name)?)
    }

    /// A template by file name.
    pub fn template(&self, name: &str) -> Option<&str> {
        self.spec.templates.as_ref()?.get(name).map(String::as_str)
    }

    /// A parsed template by file name. It is cached, unless it takes more memory than
    /// [`Package::weight`] counts.
    pub fn parsed(&self, name: &str) -> Option<Parsed> {
        let (text, kept) = (self.template(name)?, self.parsed.get(name)?);
        if let Some(parsed) = kept.get() {
            return Some(parsed.clone());
        }
        let parsed = functions::parse(name, text).map(Arc::new);
        let nodes = parsed.as_ref().map_or(0, |template| template.nodes());
        if nodes * NODE <= KEPT + text.len() * PARSED {
            return Some(kept.get_or_init(|| parsed).clone());
        }
        Some(parsed)
    }

    /// Name of the Operator, empty when the spec names none.
    pub fn operator(&self) -> &str {
        self.spec.operator.as_ref().map_or("", |o| o.name())
    }

    /// `spec.version`, empty when absent.
    pub fn version(&self) -> &str {
        self.spec.version.as_deref().unwrap_or_default()
    }

    /// `spec.appVersion`, empty when absent.
    pub fn app_version(&self) -> &str {
        self.spec.app_version.as_deref().unwrap_or_default()
    }
}
