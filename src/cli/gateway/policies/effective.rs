//! `interlock policies effective`: the rules that act on each path, and where they come from.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gateway_policies::Path;
use interlock_core::api::display::one_line;
use interlock_gateway::policies::PolicySurvey;
use serde_json::{Value, json};

use super::difference;
use super::paths::{self, policies_on};
use super::route::Choice;
use super::source::{FilesFlag, Source, at_most_one_stdin};
use crate::cli::common::error::CliError;
use crate::cli::common::output;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::TargetFlags;

/// Flags of `effective`.
#[derive(Args, Debug)]
pub(super) struct EffectiveFlags {
    /// A route: KIND/NAMESPACE/NAME, NAMESPACE/NAME or NAME; without, all routes.
    #[arg(value_name = "ROUTE")]
    route: Option<String>,
    /// Only this rule of the route: its position, from 0, or its name.
    #[arg(long, value_name = "N|NAME", requires = "route")]
    rule: Option<String>,
    /// Print only what the objects of -f would change in the cluster, or in --objects.
    #[arg(long)]
    diff: bool,
    /// With --diff, objects in place of a cluster, in the same forms as -f.
    #[arg(long, value_name = "FILE|DIR|-", requires = "diff")]
    objects: Vec<PathBuf>,
    #[command(flatten)]
    input: FilesFlag,
    #[command(flatten)]
    form: OutputFlag,
}

impl EffectiveFlags {
    fn choice(&self, survey: &PolicySurvey, namespace: &str) -> Result<Choice, CliError> {
        Choice::of(survey, namespace, self.route.as_deref(), self.rule.as_deref())
    }
}

/// Prints the paths.
pub(super) async fn run(target: &TargetFlags, flags: &EffectiveFlags) -> anyhow::Result<()> {
    at_most_one_stdin(flags.input.files.iter().chain(&flags.objects))?;
    if flags.diff {
        return differences(target, flags).await;
    }
    let source = Source::read(target, &flags.input.files).await?;
    let survey = source.survey();
    let choice = flags.choice(&survey, &source.namespace)?;
    note_refusals(&survey, &choice, &source);
    let all: Vec<(&Arc<Path>, paths::PoliciesOnPath)> =
        choice.paths(&survey).map(|path| (path, policies_on(&survey, path))).collect();
    let answer: Vec<Value> = all.iter().map(|(path, policies)| paths::json(path, policies)).collect();
    let text = || all.iter().map(|(path, policies)| text(path, policies)).collect::<Vec<_>>().join("\n");
    Ok(flags.form.output.print(&source.complete(json!({"paths": answer})), text)?)
}

fn text(path: &Path, policies: &paths::PoliciesOnPath) -> String {
    let kinds: String = policies.iter().map(|(kind, own)| paths::text(kind, own)).collect();
    let kinds = if kinds.is_empty() { "  no policies\n".to_owned() } else { kinds };
    format!("{}\n{kinds}", paths::title(path))
}

/// Why the chosen route has no path.
fn note_refusals(survey: &PolicySurvey, choice: &Choice, source: &Source) {
    let Some(route) = &choice.route else {
        if survey.index().paths().next().is_none() {
            output::note("no listener carries a route; `interlock policies tree` prints why");
        }
        return;
    };
    let Some(links) = survey.index().links(route).filter(|links| links.attached.is_empty()) else { return };
    output::note(&match source.gaps.is_none() {
        true => format!("no listener carries {route}, so no policy acts on it"),
        false => format!(
            "whether a listener carries {route} is not known; none of those that could be listed does"
        ),
    });
    for refused in &links.refused {
        output::note(&format!("refused by {}: {}", one_line(&refused.parent), refused.reason));
    }
}

/// Prints what the new objects change.
async fn differences(target: &TargetFlags, flags: &EffectiveFlags) -> anyhow::Result<()> {
    if flags.input.files.is_empty() {
        let error = CliError::usage("--diff is given without -f").next("give the new objects with -f");
        return Err(error.into());
    }
    let before = Source::read(target, &flags.objects).await?;
    let after = before.with(&flags.input.files)?;
    let (old, new) = (before.linked(), after.survey());
    // A route that the new objects create is found too.
    let choice = flags.choice(&new, &before.namespace)?;
    note_new_refusals(&old, &new);
    let changes = difference::between(&old, &new, &choice);
    let answer: Vec<Value> = changes.iter().map(difference::json).collect();
    let text = || match changes.as_slice() {
        [] => "nothing changes on any path\n".to_owned(),
        changes => changes.iter().map(difference::text).collect::<Vec<_>>().join("\n"),
    };
    Ok(flags.form.output.print(&before.complete(json!({"paths": answer})), text)?)
}

/// Policies that the new objects leave or make unaccepted.
fn note_new_refusals(old: &PolicySurvey, new: &PolicySurvey) {
    for id in new.policies() {
        let (before, after) = (old.acceptance(id), new.acceptance(id));
        if let Some(accepted) = after.filter(|after| after.status != "True" && before.as_ref() != Some(after))
        {
            output::note(&format!("{id} is not accepted: {}", one_line(&accepted.message)));
        }
    }
}
