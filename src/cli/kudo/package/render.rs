//! `interlock package render`: the objects of a package as its plans apply them. Without a cluster.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use go_template::yaml;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::suggest;
use interlock_core::api::values::Values;
use interlock_kudo::engine::manifests;
use interlock_kudo::engine::manifests::{RenderedObject, TaskManifests};
use interlock_kudo::engine::render_cache::Rendered;
use interlock_kudo::engine::run::{InstanceId, PipeHelper, Run};
use interlock_kudo::engine::seed::Seed;
use interlock_kudo::package::Package;
use serde_json::{Value, json};

use super::dependencies::PackageTree;
use super::source::SourceFlags;
use super::values::ParameterFlags;
use super::{dependencies, values};
use crate::cli::common::error::CliError;
use crate::cli::common::{exit, output};
use crate::cli::kudo::rendering::GeneratorFlags;

/// Uid of an Instance and of a run that do not exist.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Form of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Documents, with comments that name the plan and template of each.
    Yaml,
    /// A list of tasks with their objects.
    Json,
}

/// Flags of `interlock package render`.
#[derive(Args, Debug)]
pub(super) struct RenderFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// Name of the Instance; by default the name of the operator with the suffix -instance.
    #[arg(long)]
    instance: Option<String>,
    /// Only this plan; by default all of them.
    #[arg(long)]
    plan: Option<String>,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t = Form::Yaml)]
    output: Form,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    generator: GeneratorFlags,
}

/// Runs the command: 0 rendered, 1 where a task cannot be, 2 where an input cannot be read.
pub(super) fn main(flags: &RenderFlags, namespace: Option<&str>) -> ExitCode {
    let printed = rendered(flags, namespace.unwrap_or("default")).and_then(|(text, failed)| {
        output::print(&text)?;
        Ok(failed)
    });
    match printed {
        Ok(failed) => failed.iter().fold(ExitCode::SUCCESS, |_, error| exit::print(error)),
        Err(error) => exit::print(&error),
    }
}

/// What is printed, and an error for each task that does not render.
fn rendered(flags: &RenderFlags, namespace: &str) -> Result<(String, Vec<CliError>), CliError> {
    let PackageTree { place, package: bundle, .. } = dependencies::of(&flags.source)?;
    let given = values::read(&flags.parameters.given, &flags.parameters.files)?;
    values::check(&bundle, &given)?;
    values::complete(&bundle, &given)?;
    let spec = dependencies::spec(&place, &bundle)?;
    let package = Package::new(NamespacedName::new(namespace, &bundle.operator_version_name), spec);
    let plans = plans(&package, flags.plan.as_deref())?;
    let instance = InstanceId {
        namespace: namespace.to_owned(),
        name: flags.instance.clone().unwrap_or_else(|| bundle.default_instance_name()),
        uid: NO_UID.to_owned(),
    };
    let values: Values<'_> =
        given.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
    let (key, deadline) = (flags.generator.key()?, flags.generator.deadline());
    let keys = Arc::default();
    let seed = Seed { key: &key, started: flags.generator.now(), keys: &keys };
    let mut all = Vec::new();
    // What is rendered belongs to one plan.
    let caches: Vec<Rendered> = plans.iter().map(|_| Rendered::default()).collect();
    for (plan, cache) in plans.into_iter().zip(&caches) {
        let run = Run {
            package: &package,
            instance: &instance,
            plan,
            uid: NO_UID,
            values: &values,
            transient: &[],
            helper: PipeHelper::kudo(),
            seed: Some(seed),
            rendered: cache,
            interrupt: &deadline,
        };
        let tasks = manifests::of_plan(&run).map_err(|error| CliError::usage(error.to_string()))?;
        all.extend(tasks.into_iter().map(|task| (plan, task)));
    }
    let errors = all.iter().filter_map(|(plan, task)| {
        let place = format!("{plan}.{}.{}.{}", task.phase, task.step, task.task);
        let error = CliError::refused(format!("task {} cannot be rendered", task.task)).place(place);
        Some(error.why(task.error.as_ref()?))
    });
    let text = match flags.output {
        Form::Yaml => all.iter().map(|(plan, task)| documents(plan, task)).collect(),
        Form::Json => format!("{:#}\n", Value::from_iter(all.iter().map(|(plan, task)| entry(plan, task)))),
    };
    Ok((text, errors.collect()))
}

/// The plans to render, in order.
fn plans<'p>(package: &'p Package, wanted: Option<&'p str>) -> Result<Vec<&'p str>, CliError> {
    let known: Vec<&str> = package.plan_names().collect();
    let Some(wanted) = wanted else { return Ok(known) };
    if known.contains(&wanted) {
        return Ok(vec![wanted]);
    }
    let error = CliError::usage(format!("the package has no plan {wanted}"));
    let error = error.next("add a plan to operator.yaml: the package has none");
    Err(error.next_where(suggest::remedy(wanted, "plans", &known)))
}

/// The objects of a task as documents; what it deletes is a comment, so that the whole can be applied.
fn documents(plan: &str, task: &TaskManifests<'_>) -> String {
    let place = format!("plan {plan}, phase {}, step {}, task {}", task.phase, task.step, task.task);
    let mut out = String::new();
    // Writing to a String cannot fail.
    for RenderedObject { template, object } in &task.applied {
        let template = if template.is_empty() { String::new() } else { format!(", template {template}") };
        let _ = write!(out, "---\n# {place}{template}\n{}", yaml::write(object));
    }
    for RenderedObject { template, object } in &task.deleted {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().map(|name| format!("{name}/")).unwrap_or_default();
        let (kind, name) = (&object["kind"], &metadata["name"]);
        let (kind, name) = (kind.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
        let _ = writeln!(out, "---\n# {place}, template {template}: deletes {kind} {namespace}{name}");
    }
    if task.applied.is_empty() && task.deleted.is_empty() {
        let why = if task.error.is_some() { "cannot be rendered" } else { "renders no object" };
        let _ = writeln!(out, "---\n# {place}: a task of kind {} that {why}", task.kind);
    }
    out
}

fn entry(plan: &str, task: &TaskManifests<'_>) -> Value {
    let objects = |all: &[RenderedObject]| {
        let all = all
            .iter()
            .map(|RenderedObject { template, object }| json!({"template": template, "object": object}));
        all.collect::<Value>()
    };
    json!({
        "plan": plan,
        "phase": task.phase,
        "step": task.step,
        "task": task.task,
        "kind": task.kind,
        "applied": objects(&task.applied),
        "deleted": objects(&task.deleted),
        "error": task.error,
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: RenderFlags,
    }

    fn run(dir: &Path, flags: &[&str]) -> Result<(String, Vec<String>), String> {
        let words = [&["render", dir.to_str().unwrap()], flags].concat();
        let flags = Command::try_parse_from(words).unwrap().flags;
        let (text, errors) = rendered(&flags, "team").map_err(|error| error.text())?;
        Ok((text, errors.iter().map(CliError::text).collect()))
    }

    fn example() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first/operator")
    }

    #[test]
    fn every_document_says_what_it_belongs_to() {
        let (text, errors) = run(&example(), &["--instance=demo", "--set", "GREETING=Hi"]).unwrap();
        assert_eq!(errors, [""; 0]);
        let documents: Vec<&str> = text.split("---\n").skip(1).collect();
        assert!(documents.iter().all(|document| document.starts_with("# plan ")), "{text}");
        let first = "# plan deploy, phase configuration, step write, task configuration, template configmap.yaml\n\
                     apiVersion: v1\n";
        assert!(documents[0].starts_with(first), "{text}");
        let objects = yaml::documents(&text).unwrap();
        assert!(objects.iter().all(|object| object["metadata"]["labels"]["kudo.dev/instance"] == "demo"));
        assert!(objects.iter().all(|object| object["metadata"]["namespace"] == "team"));
        assert!(text.contains("Hi"), "{text}");
    }

    #[test]
    fn json_has_the_same_objects() {
        let flags = ["--instance=demo", "--seed=a", "--plan=deploy"];
        let (text, _) = run(&example(), &flags).unwrap();
        let (json, _) = run(&example(), &[flags.as_slice(), &["-o", "json"]].concat()).unwrap();
        let tasks: Value = serde_json::from_str(&json).unwrap();
        let applied = tasks.as_array().unwrap().iter().flat_map(|task| task["applied"].as_array().unwrap());
        let objects: Vec<Value> = applied.map(|applied| applied["object"].clone()).collect();
        assert_eq!(objects, yaml::documents(&text).unwrap());
    }

    #[test]
    fn a_task_that_does_not_render_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        std::fs::create_dir(dir.path().join("templates")).unwrap();
        write("params.yaml", "parameters: [{name: ON, default: \"false\"}]");
        write(
            "operator.yaml",
            "name: web\noperatorVersion: 1.0.0\n\
             tasks:\n\
             - {name: wrong, kind: Apply, spec: {resources: [wrong.yaml]}}\n\
             - {name: drop, kind: Toggle, spec: {parameter: ON, resources: [config.yaml]}}\n\
             - {name: wait, kind: Dummy, spec: {done: true}}\n\
             plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [wrong, drop, wait]}]}]}}\n",
        );
        write("templates/wrong.yaml", "a\n{{ .Params.NONE }}");
        write("templates/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
        let (text, errors) = run(dir.path(), &[]).unwrap();
        assert_eq!(
            text,
            "---\n# plan deploy, phase p, step s, task wrong: a task of kind Apply that cannot be rendered\n\
             ---\n# plan deploy, phase p, step s, task drop, template config.yaml: deletes ConfigMap team/c\n\
             ---\n# plan deploy, phase p, step s, task wait: a task of kind Dummy that renders no object\n"
        );
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with("error: task wrong cannot be rendered\n  where: deploy.p.s.wrong\n"));
        assert!(errors[0].contains("wrong.yaml:2:10"), "{errors:?}");
        let error = run(dir.path(), &["--plan=deplyo"]).unwrap_err();
        assert_eq!(error, "error: the package has no plan deplyo\n  next:  did you mean deploy?\n");
        let error = run(dir.path(), &["--set=OFF=1"]).unwrap_err();
        assert!(error.starts_with("error: package web has no parameter OFF\n"), "{error}");
    }
}
