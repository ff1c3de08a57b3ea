//! Lists and counts, as the stories print them.

use gateway_policies::NodeKey;
use interlock_gateway::policies::PolicySurvey;

/// Entries of a list that are printed; JSON has all.
pub(super) const SHOWN: usize = 8;

/// The first entries, and how many there are more.
pub(super) fn first(all: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = all.into_iter().collect();
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The first lines, and how many there are more.
pub(super) fn first_lines(all: Vec<String>) -> impl Iterator<Item = String> {
    let more = all.len().saturating_sub(SHOWN);
    let rest = (more > 0).then(|| format!("  and {more} more"));
    all.into_iter().take(SHOWN).chain(rest)
}

/// `1 path`, `2 paths`.
pub(super) fn count(number: usize, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// The policies of a node, by kind.
pub(super) fn attached(survey: &PolicySurvey, node: &NodeKey) -> Vec<String> {
    survey.attached(node).iter().map(|id| format!("{} {}", id.kind, id.qualified_name())).collect()
}
