//! The paths that lack rules of some kinds, such as those without authentication.

use interlock_core::api::suggest;
use interlock_gateway::policies::PolicySurvey;

use super::paths::PoliciesOnPath;
use crate::cli::common::error::CliError;

/// What a path has to lack: rules of a kind, or those of a name.
pub(super) struct Lacking {
    kind: String,
    rule: Option<String>,
}

impl Lacking {
    /// From `KIND` or `KIND/RULE`.
    pub(super) fn of(survey: &PolicySurvey, words: &[String]) -> Result<Vec<Self>, CliError> {
        let names: Vec<&str> = survey.kinds().names().map(|(name, ..)| name).collect();
        let parsed = words.iter().map(|word| {
            let (kind, rule) =
                word.split_once('/').map_or((word.as_str(), None), |(kind, rule)| (kind, Some(rule)));
            let found = names.iter().find(|name| name.eq_ignore_ascii_case(kind));
            let unknown = || {
                CliError::usage(format!("{kind:?} is no kind of policies"))
                    .next("write KIND or KIND/RULE, such as AuthPolicy/authentication")
                    .next_where(suggest::remedy(kind, "kinds", &names))
            };
            let known = |kind: &&str| Self { kind: (*kind).to_owned(), rule: rule.map(str::to_owned) };
            found.map(known).ok_or_else(unknown)
        });
        parsed.collect()
    }

    /// Whether no such rule acts; where others may act, too, whether none is seen.
    fn is_lacking(&self, policies: &PoliciesOnPath) -> bool {
        let Some(own) = policies.get(&self.kind) else { return true };
        let is_it = |key: &str| match &self.rule {
            None => true,
            Some(rule) => {
                key.strip_prefix(rule.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
        };
        !own.acting().any(|(key, _)| is_it(key))
    }
}

/// Whether a path lacks all of them.
pub(super) fn lacks_all(lacking: &[Lacking], policies: &PoliciesOnPath) -> bool {
    lacking.iter().all(|own| own.is_lacking(policies))
}
