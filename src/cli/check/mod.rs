//! `interlock check`: the decisions of the API server and of the webhook about manifests, without a cluster.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use interlock_core::admission::Config;
use interlock_core::api::meta;
use interlock_core::kinds::Kinds;

use self::checker::Checker;
use self::decision::{Report, Verdict};
use self::manifests::STDIN;
use self::output::ReportFormat;
use self::settings::read_settings;
use self::state::ClusterState;
use self::webhook::CheckedWrite;
use crate::cli::common::exit;
use crate::cli::common::files::read_one;
use crate::cli::common::flags::{DocsFlag, FreezeFlag, dns_label};

mod checker;
mod decision;
pub(in crate::cli) mod manifests;
mod object;
mod output;
mod settings;
mod state;
mod webhook;

/// Bytes of the stack of the check: parsers of schemas and expressions recurse.
const STACK: usize = 256 << 20;

/// Flags of `interlock check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArguments {
    /// Manifests to check, in order: a file of YAML or JSON with any number of objects or Lists, a folder of
    /// such files, the folder of a KUDO package, or - for standard input. For a deletion, the objects to
    /// delete.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", required = true, num_args = 1..)]
    new: Vec<PathBuf>,
    /// File of the current object, where -f is a single object; by default the object of that name in
    /// --objects.
    #[arg(long, value_name = "OLD")]
    old: Option<PathBuf>,
    /// Content of the cluster before, in the same forms as -f: OperatorVersions, Instances,
    /// CustomResourceDefinitions, Namespaces with their labels.
    #[arg(long, value_name = "FILE|DIR|-")]
    objects: Vec<PathBuf>,
    /// Operation on each object; by default update if there is a current one, else create.
    #[arg(long, value_enum)]
    operation: Option<CheckedWrite>,
    /// Namespace of objects that name none.
    #[arg(long, short, default_value = "default", value_parser = dns_label)]
    namespace: String,
    /// User of the request.
    #[arg(long, value_name = "NAME", default_value = "somebody")]
    user: String,
    /// File of the Interlock object: the action of each rule by namespace, and whether Interlock carries
    /// DataPlanes out. Without it, all rules deny, and Interlock carries them out. A Namespace that is not in
    /// --objects has its name as the only label.
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
    /// How strictly an Instance is frozen while a plan runs.
    #[arg(long, value_enum, default_value = "strict")]
    freeze: FreezeFlag,
    #[command(flatten)]
    docs: DocsFlag,
    /// User of the controllers, the only one that admission skips.
    #[arg(long, value_name = "NAME", default_value = meta::CONTROLLER_USER)]
    controller_user: String,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value = "text")]
    output: ReportFormat,
}

/// Runs the command: 0 nothing refused, 1 something refused, 2 error.
pub fn main(arguments: CheckArguments, kinds: Kinds) -> ExitCode {
    exit::decided(answer(arguments, kinds))
}

/// Prints the report; whether nothing is refused.
fn answer(arguments: CheckArguments, kinds: Kinds) -> anyhow::Result<bool> {
    let (output, docs) = (arguments.output, arguments.docs.clone().get());
    // A panic of the CEL library becomes a rule that is named as not evaluated; its text is for its authors.
    std::panic::set_hook(Box::new(|_| {}));
    let thread = std::thread::Builder::new().name("check".to_owned()).stack_size(STACK);
    let check = thread.spawn(move || run(&arguments, kinds)).context("no thread can be started")?;
    let report =
        check.join().map_err(|_| anyhow!("the check failed: report the input that it fails on"))??;
    crate::cli::common::output::text(&output.of(&report, docs.as_ref()))?;
    Ok(report.is_allowed())
}

fn run(arguments: &CheckArguments, kinds: Kinds) -> anyhow::Result<Report> {
    let old = arguments.old.iter();
    let inputs = arguments.new.iter().chain(&arguments.objects).chain(old);
    if inputs.filter(|path| *path == Path::new(STDIN)).count() > 1 {
        bail!("standard input is given twice: give - once, and files for the rest");
    }
    let before = manifests::read(&arguments.objects)?;
    let given = manifests::read(&arguments.new)?;
    if given.is_empty() {
        bail!("-f holds no object: give a file or a folder with one");
    }
    if arguments.old.is_some() && given.len() > 1 {
        bail!("--old is about one object, and -f holds {}: give --objects instead", given.len());
    }
    let settings = arguments.interlock.as_deref().map(|path| read_settings(path, kinds)).transpose()?;
    let has_settings = settings.is_some();
    let mut checker = Checker {
        state: ClusterState::new(kinds, &arguments.namespace, settings, before)?,
        config: Config {
            controller_user: arguments.controller_user.clone(),
            freeze: arguments.freeze.into(),
            docs: arguments.docs.clone().get(),
        },
        user: arguments.user.clone(),
        operation: arguments.operation,
        old: arguments.old.as_deref().map(read_one).transpose()?,
        has_settings,
    };
    let decisions =
        given.iter().map(|manifest| checker.check(manifest)).collect::<anyhow::Result<Vec<_>>>()?;
    decided(Report { decisions })
}

/// A report in which nothing is decided is an error.
fn decided(report: Report) -> anyhow::Result<Report> {
    let is_definition = |kind: &str| kind == "CustomResourceDefinition";
    match report.decisions.iter().find(|decision| !is_definition(&decision.kind)) {
        Some(first) if report.count(Verdict::NotChecked) == report.decisions.len() => {
            let why = first.note.as_deref().unwrap_or_default();
            bail!("nothing is decided: {}: {}: {why}", first.place, first.subject())
        }
        _ => Ok(report),
    }
}

#[cfg(test)]
mod tests;
