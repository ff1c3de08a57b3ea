//! Renders the templates of a task to objects.

use std::collections::BTreeMap;

use go_template::yaml::{Aliases, Reader, YamlError};
use go_template::{Given, Keys, RenderError, Root, SharedMap};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::api::path;
use serde_json::Value;

use super::errors::{TaskError, reason};
use super::pipes;
use super::removed_apis;
use super::render_cache;
use super::render_cache::Parameters;
use super::run::Run;
use crate::package::parameter_file;

/// Maximum characters of a text in a message.
const EXCERPT: usize = 100;

/// Task context: the input of its templates, and the names that it writes onto its objects.
#[derive(Clone, Copy, Debug)]
pub struct TaskContext<'a> {
    pub run: &'a Run<'a>,
    /// Values of parameters for templates.
    pub params: &'a Parameters,
    pub phase: &'a str,
    pub step: &'a str,
    pub task: &'a str,
}

impl<'a> TaskContext<'a> {
    /// Each task of the plan of a run, in order, once for each step that names it.
    pub fn of_plan(run: &'a Run<'a>, params: &'a Parameters) -> impl Iterator<Item = Self> {
        let phases = run.package.plan(run.plan).and_then(|plan| plan.phases.as_deref()).unwrap_or_default();
        phases.iter().flat_map(move |phase| {
            phase.steps.iter().flatten().flat_map(move |step| {
                step.tasks.iter().flatten().map(move |task| Self {
                    run,
                    params,
                    phase: phase.name.as_deref().unwrap_or_default(),
                    step: step.name.as_deref().unwrap_or_default(),
                    task,
                })
            })
        })
    }
}

impl TaskContext<'_> {
    /// Phase, step and task.
    pub fn place(&self) -> [&str; 3] {
        [self.phase, self.step, self.task]
    }

    /// `plan.phase.step.task`, as KUDO's texts name it.
    pub fn path(&self) -> String {
        format!("{}.{}.{}.{}", self.run.plan, self.phase, self.step, self.task)
    }

    /// The keys of the task, with their budget.
    fn keys(&self) -> Keys {
        self.run.seed.map(|seed| seed.keys(&self.run.instance.namespace)).unwrap_or_default()
    }

    /// Root value of the templates (KUDO `task/render.go`).
    fn root(&self, pipes: SharedMap) -> Root<'_> {
        let texts = [("PlanName", self.run.plan), ("PhaseName", self.phase), ("StepName", self.step)];
        let mut root = self.root_of_instance();
        root.0.extend(texts.map(|(name, text)| (name, Given::Text(text))));
        root.0.insert("Pipes", Given::Map(pipes));
        root
    }

    /// Root value of parameter files, which know of no plan (KUDO `task/task_kudo_operator.go`).
    fn root_of_instance(&self) -> Root<'_> {
        let (package, instance) = (self.run.package, self.run.instance);
        let texts = [
            ("OperatorName", package.operator()),
            ("Name", &instance.name),
            ("Namespace", &instance.namespace),
            ("AppVersion", package.app_version()),
            ("OperatorVersion", package.version()),
        ];
        let params = [("Params", Given::Map(self.params.clone()))];
        Root(texts.map(|(name, text)| (name, Given::Text(text))).into_iter().chain(params).collect())
    }
}

/// The objects of these template files: files in the order of the list, objects in the order of the
/// file. An object that appears twice keeps its first place and its last content.
pub fn objects(context: &TaskContext<'_>, resources: &[String]) -> Result<Vec<Value>, TaskError> {
    context.run.rendered.objects(
        [context.phase, context.step, context.task],
        || Ok(with_files(context, resources)?.into_iter().map(|(_, object)| object).collect()),
        full,
    )
}

/// The error of a task that has to wait, as others have rendered too much.
pub(super) fn full() -> TaskError {
    TaskError::Transient(format!(
        "the plan renders more than {} MiB at once; this task waits until others are done",
        render_cache::MAX_BYTES >> 20
    ))
}

/// The one object of a template file, which may have no name.
pub(super) fn unnamed(context: &TaskContext<'_>, file: &str) -> Result<Value, TaskError> {
    let interrupt = context.run.interrupt;
    interrupt.begin();
    let reader = Reader::new(Aliases::Counted, interrupt);
    let pipes = pipes_of(context)?;
    let keys = context.keys();
    let documents = documents(&reader, file, &render(context, file, &context.root(pipes), &keys)?)?;
    match <[Value; 1]>::try_from(documents) {
        Ok([object]) if object.is_object() => Ok(object),
        Ok(_) => Err(TaskError::fatal(reason::RENDERING, format!("{file} is no object"))),
        Err(found) => Err(TaskError::fatal(
            reason::RENDERING,
            format!("{file} has {} objects; it needs one", found.len()),
        )),
    }
}

/// The values of a parameter file, as text.
pub(super) fn parameters(
    context: &TaskContext<'_>,
    file: &str,
) -> Result<BTreeMap<String, String>, TaskError> {
    let interrupt = context.run.interrupt;
    interrupt.begin();
    let text = render(context, file, &context.root_of_instance(), &context.keys())?;
    let content = Reader::new(Aliases::Counted, interrupt).read(&text);
    parameter_file::values(content.map_err(|error| unread(file, &error))?)
        .map_err(|error| TaskError::fatal(reason::RENDERING, format!("parameter file {file} {error}")))
}

fn pipes_of(context: &TaskContext<'_>) -> Result<SharedMap, TaskError> {
    let pipes = context.run.rendered.pipes(|| pipes::of_plan(context.run).map(SharedMap::from));
    pipes.map_err(|why| TaskError::fatal(reason::INVALID_PLAN, why))
}

/// The objects with the file of each, and not cached. A task has one deadline, one budget of decoded bytes, and one
/// of keys; each file has its own budget of work and output.
pub(super) fn with_files<'f>(
    context: &TaskContext<'_>,
    resources: &'f [String],
) -> Result<Vec<(&'f str, Value)>, TaskError> {
    let interrupt = context.run.interrupt;
    interrupt.begin();
    let reader = Reader::new(Aliases::Counted, interrupt);
    let pipes = pipes_of(context)?;
    let (root, keys) = (context.root(pipes), context.keys());
    let mut objects: Vec<(&str, Value)> = Vec::new();
    let mut places = BTreeMap::new();
    for file in resources {
        for object in decode(&reader, file, &render(context, file, &root, &keys)?)? {
            let place =
                *places.entry((Gvk::of(&object), name(&object).map(str::to_owned))).or_insert(objects.len());
            match objects.get_mut(place) {
                Some(earlier) => *earlier = (file, object),
                None => objects.push((file, object)),
            }
        }
    }
    Ok(objects)
}

fn name(object: &Value) -> Option<&str> {
    meta_str(object, "name")
}

fn render(context: &TaskContext<'_>, file: &str, root: &Root<'_>, keys: &Keys) -> Result<String, TaskError> {
    let fatal = |cause: String| TaskError::fatal(reason::RENDERING, cause);
    let template = context
        .run
        .package
        .parsed(file)
        .ok_or_else(|| fatal(format!("error finding resource named {file}")))?;
    let template = template
        .map_err(|e| fatal(format!("error expanding template {file}: error parsing template: {e}")))?;
    let rendered = match context.run.seed {
        Some(seed) => {
            let run = context.run;
            let names = [&run.instance.uid, run.uid, run.package.hash.as_str(), file];
            template.render_with(root, &seed.generator(names).with_keys(keys), run.interrupt)
        }
        None => template.render(root, context.run.interrupt),
    };
    rendered.map_err(|error| {
        if let RenderError::NoGenerator { function, .. } = &error {
            return TaskError::Transient(format!(
                "template {file} calls {function}, which needs the Secret {}; it is not read yet, so this is tried again",
                meta::install::TEMPLATE_KEY_SECRET
            ));
        }
        let cause = format!("error expanding template {file}: error rendering template: {error}");
        match error.is_transient() {
            true if keys.have_progressed() => TaskError::Interrupted(cause),
            true => TaskError::Transient(cause),
            false => fatal(cause),
        }
    })
}

fn documents(reader: &Reader<'_>, file: &str, text: &str) -> Result<Vec<Value>, TaskError> {
    reader.documents(text).map_err(|error| unread(file, &error))
}

fn unread(file: &str, error: &YamlError) -> TaskError {
    let cause = unparsed(file, error);
    match error.is_transient() {
        true => TaskError::Transient(cause),
        false => TaskError::fatal(reason::RENDERING, cause),
    }
}

fn unparsed(file: &str, cause: &dyn std::fmt::Display) -> String {
    format!("parsing YAML from {file} failed: {cause}")
}

fn decode(reader: &Reader<'_>, file: &str, text: &str) -> Result<Vec<Value>, TaskError> {
    let fatal = |cause: String| TaskError::fatal(reason::RENDERING, unparsed(file, &cause));
    let documents = documents(reader, file, text)?;
    let mut objects = Vec::with_capacity(documents.len());
    for (i, document) in documents.into_iter().enumerate() {
        let missing = |what: &str| fatal(format!("object {} has no {what}", i + 1));
        if !document.is_object() {
            return Err(fatal(format!("document {} is not an object", i + 1)));
        }
        let gvk = Gvk::of(&document).ok_or_else(|| missing("apiVersion or no kind"))?;
        let name = name(&document).filter(|n| !n.is_empty()).ok_or_else(|| missing("metadata.name"))?;
        addressable(&gvk, name).map_err(|why| fatal(format!("object {}: {why}", i + 1)))?;
        let name = name.to_owned();
        let object = removed_apis::convert(document);
        let what = || format!("object {}, {} {name:?},", i + 1, gvk.kind);
        if let Some(cause) = too_large(&object, what, "divide it into several objects") {
            return Err(fatal(cause));
        }
        objects.push(object);
    }
    Ok(objects)
}

/// Maximum bytes of an object as JSON: like KUDO, Interlock writes its text into an annotation, and
/// an API server limits the bytes of annotations (`TotalAnnotationSizeLimitB`, apimachinery
/// `pkg/api/validation/objectmeta.go`).
const MAX_OBJECT: usize = 256 << 10;

/// Why an object does not fit into its own annotation; `what` begins the sentence.
pub(super) fn too_large(object: &Value, what: impl FnOnce() -> String, remedy: &str) -> Option<String> {
    let bytes = json_bytes(object);
    (bytes > MAX_OBJECT).then(|| {
        format!(
            "{} has {bytes} bytes as JSON; its annotation {} keeps all of it, and an API server takes at most \
             {MAX_OBJECT} bytes of annotations: {remedy}",
            what(),
            meta::LAST_APPLIED_CONFIGURATION,
        )
    })
}

/// Bytes of a value as JSON, without a copy of it.
fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value is always JSON, and counting never fails.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Whether requests can name an object: its kind and its name become segments of a path, and must
/// not lead to another object.
pub(super) fn addressable(gvk: &Gvk, name: &str) -> Result<(), String> {
    let excerpt = |text: &str| format!("{:?}", text.chars().take(EXCERPT).collect::<String>());
    if !path::is_kind(gvk) {
        let (api_version, kind) = (excerpt(&gvk.api_version()), excerpt(&gvk.kind));
        return Err(format!(
            "apiVersion {api_version} with kind {kind} is not what the API server can serve; write apiVersion as \
             GROUP/VERSION or v1, and kind as a word"
        ));
    }
    path::segment(name).map(drop).map_err(|why| {
        let (kind, name) = (&gvk.kind, excerpt(name));
        format!(
            "metadata.name {name} of the {kind} {why}, so no path leads to it; write a name of at most 253 \
             characters without / and %"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use go_template::{Interrupt, Interrupted, KeyStore, Never};
    use serde_json::json;

    use super::*;
    use crate::engine::advance::sim::Fixture;
    use crate::engine::render_cache::Rendered;
    use crate::engine::seed::{Seed, SeedKey};

    /// A time limit that is over when it was asked so often, in each rendering anew.
    #[derive(Debug)]
    struct Limit {
        asked: usize,
        left: AtomicUsize,
    }

    impl Interrupt for Limit {
        fn begin(&self) {
            self.left.store(self.asked, Ordering::Relaxed);
        }

        fn interrupted(&self) -> Option<Interrupted> {
            let left = self.left.load(Ordering::Relaxed);
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
            (left == 0).then_some(crate::package::functions::TIME_LIMIT)
        }
    }

    /// A package of one task with so many files, each with one key.
    fn keys(files: usize, kind: &str) -> (Fixture, Vec<String>) {
        let names: Vec<String> = (0..files).map(|i| format!("key-{i}.yaml")).collect();
        let template = |name: &String| {
            let text = format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\n\
                 stringData: {{key: {{{{ genPrivateKey \"{kind}\" | b64enc }}}}}}\n"
            );
            (name.clone(), json!(text))
        };
        let templates: serde_json::Map<_, _> = names.iter().map(template).collect();
        let spec = json!({
            "operator": {"name": "keys"}, "version": "1.0.0",
            "tasks": [{"name": "all", "kind": "Apply", "spec": {"resources": names}}],
            "plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["all"]}]}]}},
            "templates": templates,
        });
        (Fixture::new(spec), names)
    }

    fn pass(
        (fixture, names): &(Fixture, Vec<String>),
        store: &Arc<KeyStore>,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<Value>, TaskError> {
        let key = SeedKey([3; 32]);
        let seed = Some(Seed { key: &key, started: jiff::Timestamp::UNIX_EPOCH, keys: store });
        let rendered = Rendered::default();
        let run = Run { seed, interrupt, rendered: &rendered, ..fixture.run() };
        let params = Parameters::default();
        objects(&TaskContext { run: &run, params: &params, phase: "p", step: "s", task: "all" }, names)
    }

    /// Each pass of a run draws the same numbers, so a search that began anew each time would never end.
    #[test]
    fn keys_that_take_longer_than_the_limit_are_made_in_several_passes() {
        let (package, store) = (keys(2, "rsa"), Arc::default());
        let limit = Limit { asked: 20, left: AtomicUsize::new(0) };
        let mut tries = 1;
        let made = loop {
            match pass(&package, &store, &limit) {
                Ok(made) => break made,
                Err(error) => assert!(matches!(error, TaskError::Interrupted(_)), "{error:?}"),
            }
            tries += 1;
            assert!(tries < 1000, "the plan never ends");
        };
        assert!(tries > 1, "the limit was reached");
        assert_eq!(pass(&package, &store, &limit).ok(), Some(made.clone()), "the next pass has them");
        assert_ne!(made[0]["stringData"], made[1]["stringData"]);
        let elsewhere = pass(&package, &Arc::default(), &Never);
        assert_eq!(elsewhere.ok(), Some(made), "another process makes the same");
    }

    #[test]
    fn a_task_of_a_thousand_keys_fails_for_good() {
        let error = pass(&keys(1000, "ecdsa"), &Arc::default(), &Never).expect_err("too many");
        let TaskError::Fatal { cause, .. } = &error else { panic!("{error:?}") };
        let wanted =
            "error expanding template key-192.yaml: error rendering template: template: key-192.yaml:4:";
        assert!(cause.starts_with(wanted), "{cause}");
        let wanted =
            "error calling genPrivateKey: key number 193 of this task is over its budget, which is 8 keys";
        assert!(cause.contains(wanted), "{cause}");
    }
}
