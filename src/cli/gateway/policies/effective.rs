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
use super::requests::Requests;
use super::route::Choice;
use super::source::{FilesFlag, Source, at_most_one_stdin};
use super::without::{Lacking, lacks_all};
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
    /// Print only paths on which no rule of this kind of policies acts; can be repeated: none of all of them. With a
    /// rule, no rule of that name, such as AuthPolicy/authentication or SecurityPolicy/jwt.
    #[arg(long, value_name = "KIND[/RULE]", conflicts_with = "diff")]
    without: Vec<String>,
    /// Print only what the objects of -f would change in the cluster, or in --objects.
    #[arg(long)]
    diff: bool,
    /// With --diff or --without, exit with 1 if any path is printed, and with 2 if an object of -f is left out of the
    /// difference, as it would not be taken.
    #[arg(long)]
    exit_code: bool,
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
    if flags.exit_code && !flags.diff && flags.without.is_empty() {
        let error = CliError::usage("--exit-code is given without --diff or --without");
        return Err(error.next("leave --exit-code out, or give one of the others").into());
    }
    if flags.diff {
        return differences(target, flags).await;
    }
    let source = Source::read(target, &flags.input.files).await?;
    let survey = source.survey();
    let choice = flags.choice(&survey, &source.namespace)?;
    let lacking = Lacking::of(&survey, &flags.without)?;
    note_refusals(&survey, &choice, &source);
    let requests = Requests::of(&survey, source.objects());
    let all = choice.paths(&survey).map(|path| (path, policies_on(&survey, path)));
    let all: Vec<(&Arc<Path>, paths::PoliciesOnPath)> =
        all.filter(|(_, policies)| lacking.is_empty() || lacks_all(&lacking, policies)).collect();
    let answer: Vec<Value> = all.iter().map(|(path, policies)| paths::json(path, policies)).collect();
    let text = || {
        let texts = all.iter().map(|(path, policies)| text(path, policies, requests.text(path)));
        texts.collect::<Vec<_>>().join("\n")
    };
    if all.is_empty() && !lacking.is_empty() {
        output::note(&format!("no path is without {}", flags.without.join(" and ")));
    }
    flags.form.output.print(&source.complete(&survey, json!({"paths": answer})), text)?;
    if flags.exit_code && !all.is_empty() {
        let what = format!("{} without {}", all.len(), flags.without.join(" and "));
        return Err(CliError::refused(format!("paths are printed: {what}")).into());
    }
    Ok(())
}

fn text(path: &Path, policies: &paths::PoliciesOnPath, requests: Option<String>) -> String {
    let kinds: String = policies.iter().map(|(kind, own)| paths::text(kind, own)).collect();
    let kinds = if kinds.is_empty() { "  no policies\n".to_owned() } else { kinds };
    let requests = requests.map_or_else(String::new, |text| format!("  {text}\n"));
    format!("{}\n{requests}{kinds}", paths::title(path))
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
        output::note(&format!("refused by {}: {}", one_line(&refused.parent), survey.reason(refused).0));
    }
}

/// Prints what the new objects change.
async fn differences(target: &TargetFlags, flags: &EffectiveFlags) -> anyhow::Result<()> {
    if flags.input.files.is_empty() {
        let error = CliError::usage("--diff is given without -f").next("give the new objects with -f");
        return Err(error.into());
    }
    let before = Source::read(target, &flags.objects).await?.aged();
    let (after, left_out) = before.with(&flags.input.files)?;
    let (old, new) = (before.linked(), after.survey());
    // A route that the new objects create is found too.
    let choice = flags.choice(&new, &before.namespace)?;
    for why in &left_out {
        output::note(&format!(
            "left out, as the API server or its controller would not take it: {}",
            one_line(why)
        ));
    }
    note_new_refusals(&old, &new);
    let changes = difference::between(&old, &new, &choice);
    let answer: Vec<Value> = changes.iter().map(difference::json).collect();
    let text = || match changes.as_slice() {
        [] => "nothing changes on any path\n".to_owned(),
        changes => changes.iter().map(difference::text).collect::<Vec<_>>().join("\n"),
    };
    let mut answer = before.complete(&new, json!({"paths": answer}));
    if !left_out.is_empty() {
        answer["leftOut"] = json!(left_out);
    }
    flags.form.output.print(&answer, text)?;
    match (flags.exit_code, left_out.len(), changes.len()) {
        (false, ..) | (true, 0, 0) => Ok(()),
        (true, 0, changes) => Err(CliError::refused(format!("paths that change: {changes}")).into()),
        (true, left_out, _) => Err(CliError::usage(format!("objects of -f that are left out: {left_out}"))
            .next("mend them; `interlock check` says what the API server refuses")
            .into()),
    }
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
