//! Kinds of rendered objects: those that the templates of a package spell out, and those that a run
//! applies.

use std::collections::BTreeSet;

use interlock_core::api::object::Gvk;

use crate::engine::errors::TaskError;
use crate::engine::removed_apis;
use crate::engine::removed_apis::RemovedApi;
use crate::engine::render;
use crate::engine::render::TaskContext;
use crate::engine::run::Run;
use crate::engine::tasks;
use crate::package::Package;
use crate::package::values;

/// The kinds that the templates spell out, as they are served. A kind that a template computes is missing: only
/// a run finds it.
pub fn written_out(package: &Package) -> BTreeSet<Gvk> {
    let all = package.spec.templates.iter().flatten().flat_map(|(_, text)| kinds_in(text));
    all.map(removed_apis::served).collect()
}

/// The removed versions that the templates spell out, by template.
pub fn removed(package: &Package) -> Vec<(&str, &'static RemovedApi)> {
    let of = |text: &str| kinds_in(text).iter().filter_map(removed_apis::find).collect::<Vec<_>>();
    let all = package.spec.templates.iter().flatten();
    all.flat_map(|(name, text)| of(text).into_iter().map(|removed| (&**name, removed))).collect()
}

/// Reads `apiVersion` and `kind` at the left margin of a document; takes both or none.
fn kinds_in(text: &str) -> BTreeSet<Gvk> {
    let mut found = BTreeSet::new();
    let (mut api_version, mut kind) = (None, None);
    for line in text.lines().chain(["---"]) {
        if line.starts_with("---") {
            if let (Some(api_version), Some(kind)) = (api_version.take(), kind.take()) {
                found.insert(Gvk::new(api_version, kind));
            }
            (api_version, kind) = (None, None);
        } else if let Some(value) = line.strip_prefix("apiVersion:") {
            api_version = plain(value);
        } else if let Some(value) = line.strip_prefix("kind:") {
            kind = plain(value);
        }
    }
    found
}

/// A scalar without template actions, quotes and comment.
fn plain(value: &str) -> Option<&str> {
    let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains("{{")).then_some(value)
}

/// The kinds in `among` whose objects a run applies with its values; leaves out Toggle tasks that
/// are off, and templates that do not render.
///
/// # Errors
/// The error of a template that may render later.
pub fn applied(run: &Run<'_>, among: &BTreeSet<Gvk>) -> Result<BTreeSet<Gvk>, TaskError> {
    let Ok(params) = values::parameters(run.package, run.values) else { return Ok(BTreeSet::new()) };
    let mut found = BTreeSet::new();
    for context in TaskContext::of_plan(run, &params) {
        found.extend(applied_by(&context, among)?);
    }
    Ok(found)
}

fn applied_by(context: &TaskContext<'_>, among: &BTreeSet<Gvk>) -> Result<BTreeSet<Gvk>, TaskError> {
    let package = context.run.package;
    let Some(task) = package.task(context.task).and_then(|task| tasks::build(task).ok()) else {
        return Ok(BTreeSet::new());
    };
    // Skips templates that cannot contain such a kind: rendering may generate keys.
    let may_hold = |text: &str| among.iter().any(|gvk| text.contains(&gvk.kind));
    let files = task.applied(context).iter().filter(|file| package.template(file).is_some_and(may_hold));
    let files: Vec<String> = files.cloned().collect();
    if files.is_empty() {
        return Ok(BTreeSet::new());
    }
    let objects = match render::objects(context, &files) {
        Ok(objects) => objects,
        Err(error @ (TaskError::Transient(_) | TaskError::Interrupted(_) | TaskError::Rejected(..))) => {
            return Err(error);
        }
        Err(TaskError::Build(_) | TaskError::Fatal { .. } | TaskError::Held { .. }) => {
            return Ok(BTreeSet::new());
        }
    };
    Ok(objects.iter().filter_map(Gvk::of).filter(|gvk| among.contains(gvk)).collect())
}

#[cfg(test)]
mod tests {
    use go_template::{Interrupt, Interrupted, Never};
    use interlock_core::api::object::NamespacedName;
    use serde_json::json;

    use super::*;
    use crate::engine::render_cache::Rendered;
    use crate::engine::run::InstanceId;
    use crate::package::functions::TIME_LIMIT;

    #[derive(Debug)]
    struct Ended;

    impl Interrupt for Ended {
        fn interrupted(&self) -> Option<Interrupted> {
            Some(TIME_LIMIT)
        }
    }

    #[test]
    fn documents_are_told_apart_and_what_is_computed_is_left_out() {
        let text = "# a\napiVersion: v1\nkind: ConfigMap\ndata:\n  kind: no\n---\nkind: \"Filter\" # b\n\
                    apiVersion: 'example.io/v1'\n---\nkind: Deployment\n---\napiVersion: v1\nkind: {{ .Kind }}\n\
                    --- \napiVersion: apps/v1\nkind: Deployment";
        let expected = [("apps/v1", "Deployment"), ("example.io/v1", "Filter"), ("v1", "ConfigMap")]
            .map(|(v, k)| Gvk::new(v, k));
        assert_eq!(kinds_in(text), BTreeSet::from(expected));
    }

    /// The ones among two kinds that plan deploy applies with these values.
    fn deploys(values: &[(&str, &str)], interrupt: &dyn Interrupt) -> Result<Vec<String>, TaskError> {
        let steps = json!([{"name": "s", "tasks": ["filter", "route", "forget", "lost"]}]);
        let spec = json!({
            "operator": {"name": "web"}, "version": "1.0.0",
            "parameters": [{"name": "FILTER", "default": "false"}, {"name": "ROUTED", "default": "yes"}],
            "plans": {"deploy": {"strategy": "serial", "phases": [{"name": "p", "steps": steps}]}},
            "tasks": [
                {"name": "filter", "kind": "Toggle", "spec": {"parameter": "FILTER", "resources": ["filter.yaml"]}},
                {"name": "route", "kind": "Apply", "spec": {"resources": ["config.yaml", "route.yaml"]}},
                {"name": "forget", "kind": "Delete", "spec": {"resources": ["filter.yaml"]}},
            ],
            "templates": {
                "config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
                "filter.yaml": "apiVersion: a.io/v1\nkind: Filter\nmetadata: {name: f}\n",
                "route.yaml": "{{ if eq .Params.ROUTED \"yes\" }}\napiVersion: b.io/v1\nkind: Route\n\
                               metadata: {name: r}\n{{ end }}",
            },
        });
        let spec = serde_json::from_value(spec).unwrap();
        let package = Package::new(NamespacedName::new("ns", "web"), spec);
        let instance = InstanceId { namespace: "ns".into(), name: "demo".into(), uid: "u".into() };
        let values = values.iter().map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned().into())).collect();
        let rendered = Rendered::default();
        let run = Run {
            package: &package,
            instance: &instance,
            plan: "deploy",
            uid: "run",
            values: &values,
            transient: &[],
            helper: crate::engine::run::PipeHelper::kudo(),
            seed: None,
            rendered: &rendered,
            interrupt,
        };
        let among = BTreeSet::from([Gvk::new("a.io/v1", "Filter"), Gvk::new("b.io/v1", "Route")]);
        let found = applied(&run, &among)?;
        Ok(found.into_iter().map(|gvk| gvk.kind).collect())
    }

    #[test]
    fn a_run_makes_the_kinds_that_its_parameters_ask_for() {
        let deploys = |values: &[(&str, &str)]| deploys(values, &Never).unwrap();
        assert_eq!(deploys(&[]), ["Route"]);
        assert_eq!(deploys(&[("FILTER", "true")]), ["Filter", "Route"]);
        assert_eq!(deploys(&[("ROUTED", "no")]), Vec::<String>::new());
        assert_eq!(deploys(&[("FILTER", "maybe"), ("ROUTED", "no")]), Vec::<String>::new());
    }

    #[test]
    fn a_rendering_that_was_ended_says_nothing_about_kinds() {
        let ended = deploys(&[], &Ended);
        assert!(matches!(ended, Err(TaskError::Transient(_))), "{ended:?}");
    }
}
