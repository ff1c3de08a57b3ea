//! `interlock explain`: the page of a rule, a condition or a reason, without a cluster.

mod tables;

use std::process::ExitCode;

use clap::Args;
use interlock_core::api::suggest;

use crate::cli::common::error::CliError;
use crate::cli::common::{exit, output};

include!(concat!(env!("OUT_DIR"), "/denials.rs"));

/// The pages whose tables explain conditions, reasons, and the rules about router flavors.
const PAGES: [&str; 4] = [
    include_str!("../../../docs/conditions.md"),
    include_str!("../../../docs/router-flavor.md"),
    include_str!("../../../docs/interlock-resource.md"),
    include_str!("../../../docs/rate-limits.md"),
];

/// Flags of `interlock explain`.
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// A rule, as a refusal names it in brackets (plan-running, RF02), a condition (Stalled) or a reason
    /// (PlanInFatalError).
    #[arg(value_name = "RULE|CONDITION|REASON")]
    name: String,
}

/// Prints the page.
pub fn main(arguments: &ExplainArguments) -> ExitCode {
    let printed = explanation(&arguments.name).and_then(|text| output::print(&text));
    exit::done(printed.map_err(anyhow::Error::from))
}

fn explanation(name: &str) -> Result<String, CliError> {
    // As a refusal shows it.
    let name = name.trim_matches(['[', ']']);
    if let Some((_, page)) = DENIALS.iter().find(|(rule, _)| rule.eq_ignore_ascii_case(name)) {
        return Ok((*page).to_owned());
    }
    let rows: Vec<String> = PAGES.iter().flat_map(|page| tables::rows(page, name)).collect();
    if rows.is_empty() {
        let mut known: Vec<&str> = DENIALS.iter().map(|(rule, _)| *rule).collect();
        known.extend(PAGES.iter().flat_map(|page| tables::known(page)));
        let error = CliError::unreached(format!("no rule, condition or reason is named {name:?}"));
        return Err(match suggest::similar(name, &known).as_slice() {
            [] => error.next(
                "give the rule that a refusal names in brackets, or a condition or reason that `kubectl describe` shows",
            ),
            found => error.next(format!("did you mean {}?", found.join(" or "))),
        });
    }
    Ok(rows.join("\n\n") + "\n")
}

#[cfg(test)]
mod tests {
    use interlock_core::api::meta::{condition, event};
    use interlock_core::kinds;
    use interlock_kong::data_plane::rollout::report::RolloutPhase;
    use rstest::rstest;

    use super::*;

    #[test]
    fn every_rule_is_explained() {
        for rule in kinds::rules(crate::kinds::all()) {
            let text = explanation(rule.id()).unwrap_or_else(|error| panic!("{}", error.text()));
            assert!(text.contains(rule.id()), "{}: {text}", rule.id());
        }
    }

    #[rstest]
    #[case(condition::READY)]
    #[case(condition::RECONCILING)]
    #[case(condition::STALLED)]
    #[case(condition::SPEC_DRIFT)]
    #[case(condition::PLAN_IN_FATAL_ERROR)]
    #[case(condition::PLAN_OWED)]
    #[case("RequestRefused")]
    #[case("MissingDependency")]
    #[case("Unsupported")]
    #[case("TargetNotFound")]
    #[case("PartiallyProgrammed")]
    #[case("[plan-running]")]
    #[case("rf02")]
    fn conditions_and_reasons_are_explained(#[case] name: &str) {
        assert!(explanation(name).is_ok_and(|text| text.len() > 40), "{name}");
    }

    #[test]
    fn every_event_and_every_phase_of_a_rollout_is_explained() {
        let phases = RolloutPhase::OURS.into_iter().map(RolloutPhase::reason);
        for name in event::ALL.into_iter().chain(phases) {
            let text = explanation(name).unwrap_or_else(|error| panic!("{}", error.text()));
            assert!(text.contains("what it means"), "{name}: {text}");
        }
    }

    #[test]
    fn a_name_that_is_not_known_leads_on() {
        let error = explanation("plan-runing").expect_err("there is no such rule").text();
        assert!(error.contains("did you mean plan-running?"), "{error}");
    }
}
