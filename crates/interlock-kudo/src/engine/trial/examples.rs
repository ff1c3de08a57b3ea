//! The values that a package is rendered with.

use std::collections::{BTreeMap, BTreeSet};

use super::references;
use crate::api::Parameter;
use crate::package::{Package, params};

/// Each other value renders the templates that read it once more.
const MOST: usize = 512;

/// Another value of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) value: String,
}

/// Examples of the parameters that need a value, and the other values to render with.
pub(super) fn of(package: &Package) -> (BTreeMap<String, String>, Vec<Trial>) {
    let toggles: BTreeSet<&str> =
        package.spec.tasks.iter().flatten().filter_map(references::toggle).collect();
    let reader = params::reader();
    let (mut base, mut others) = (BTreeMap::new(), Vec::new());
    for parameter in package.parameters() {
        let Some(name) = parameter.name.clone() else { continue };
        let is_toggle = toggles.contains(name.as_str());
        if parameter.required == Some(true) && parameter.default.is_none() {
            base.insert(name.clone(), example(parameter, is_toggle));
        }
        let first = base.get(&name).or(parameter.default.as_ref()).cloned();
        let fits = |value: &String| params::check(&reader, parameter, Some(value)).is_none();
        let values = sides(parameter, is_toggle).into_iter().filter(|value| first.as_ref() != Some(value));
        others.extend(values.filter(fits).map(|value| Trial { name: name.clone(), value }));
    }
    others.truncate(MOST);
    (base, others)
}

/// All values of a parameter that has few.
fn sides(parameter: &Parameter, is_toggle: bool) -> Vec<String> {
    match parameter.enum_.as_deref() {
        Some(values) if !values.is_empty() => values.to_vec(),
        _ if is_toggle || parameter.value_type.as_deref() == Some("boolean") => {
            ["true", "false"].map(str::to_owned).to_vec()
        }
        _ => Vec::new(),
    }
}

/// A value that the parameter takes.
fn example(parameter: &Parameter, is_toggle: bool) -> String {
    if let Some(first) = sides(parameter, is_toggle).into_iter().next() {
        return first;
    }
    let value = match parameter.value_type.as_deref() {
        Some("integer" | "number") => "1",
        Some("array") => "[example]",
        Some("map") => "{example: example}",
        _ => "example",
    };
    value.to_owned()
}
