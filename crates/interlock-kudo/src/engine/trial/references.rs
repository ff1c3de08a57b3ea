//! What the templates of a package read: which parameters nothing uses, and which names nothing defines.

use std::collections::{BTreeMap, BTreeSet};

use go_template::Reference;

use crate::api::Task;
use crate::engine::tasks;
use crate::package::Package;

/// Names of the root (KUDO `pkg/engine/renderer`, `task/render.go`).
const ROOT: [&str; 10] = [
    "OperatorName",
    "Name",
    "Namespace",
    "AppVersion",
    "OperatorVersion",
    "Params",
    "PlanName",
    "PhaseName",
    "StepName",
    "Pipes",
];
const PARAMS: &str = "Params";

/// The parameter that a task switches on.
pub(super) fn toggle(task: &Task) -> Option<&str> {
    task.spec.as_ref()?.parameter.as_deref()
}

/// What the template files read that tasks name.
pub(super) struct Used {
    /// `None` for a file that does not parse.
    files: BTreeMap<String, Option<Vec<Reference>>>,
}

impl Used {
    pub(super) fn of(package: &Package) -> Self {
        let all = package.spec.tasks.iter().flatten().flat_map(tasks::templates);
        let parsed = all.filter_map(|named| Some((named.file, package.parsed(named.file)?)));
        let files =
            parsed.map(|(file, parsed)| (file.to_owned(), parsed.ok().map(|template| template.references())));
        Self { files: files.collect() }
    }

    pub(super) fn parses(&self, file: &str) -> bool {
        matches!(self.files.get(file), Some(Some(_)))
    }

    /// Whether a file reads a parameter, or all of them.
    pub(super) fn reads(&self, file: &str, parameter: &str) -> bool {
        self.files.get(file).into_iter().flatten().flatten().any(|found| reads(found, parameter))
    }

    /// Names that the root has not, at places that were not `reported`.
    pub(super) fn unknown(&self, package: &Package, reported: impl Fn(&str) -> bool) -> Vec<String> {
        let mut unknown = Vec::new();
        for (file, references) in &self.files {
            let sure = references.iter().flatten().filter(|found| found.of_root);
            for found in sure.filter(|found| !is_known(package, &found.path)) {
                let at = format!("{file}:{}", found.place);
                if !reported(&at) {
                    let parameter = found.path.first().is_some_and(|first| first == PARAMS);
                    let what = if parameter { "no parameter" } else { "nothing" };
                    unknown.push(format!("template {at}: .{}: {what} has this name", found.path.join(".")));
                }
            }
        }
        unknown
    }

    /// Parameters and templates that nothing uses. A parameter that triggers a plan has a use.
    pub(super) fn unused(&self, package: &Package) -> Vec<String> {
        let toggles: BTreeSet<&str> = package.spec.tasks.iter().flatten().filter_map(toggle).collect();
        let mut unused = Vec::new();
        // Without all of them, it is unknown what is used.
        if self.files.values().all(Option::is_some) {
            let idle = package.parameters().filter(|parameter| parameter.trigger.is_none());
            let names = idle.filter_map(|parameter| parameter.name.as_deref());
            let names = names.filter(|name| !toggles.contains(name));
            let names = names.filter(|name| !self.files.keys().any(|file| self.reads(file, name)));
            unused.extend(names.map(|name| format!("parameter {name}: no template and no task uses it")));
        }
        let files = package.spec.templates.iter().flatten().map(|(file, _)| file);
        let files = files.filter(|file| !self.files.contains_key(*file));
        unused.extend(files.map(|file| format!("template {file}: no task names it")));
        unused
    }
}

/// A whole map of parameters, or the whole root, may be read by any name.
fn reads(found: &Reference, parameter: &str) -> bool {
    match found.path.as_slice() {
        [] => true,
        [params] => params == PARAMS,
        [params, name, ..] => params == PARAMS && name == parameter,
    }
}

fn is_known(package: &Package, path: &[String]) -> bool {
    match path {
        [] => true,
        [params, name, ..] if params == PARAMS => package.parameter(name).is_some(),
        [first, ..] => ROOT.contains(&first.as_str()),
    }
}
