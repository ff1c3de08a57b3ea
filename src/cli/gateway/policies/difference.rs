//! What new objects change, path by path.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use gateway_policies::{NodeKey, Path};
use interlock_core::api::display::{display, one_line};
use interlock_gateway::policies::PolicySurvey;
use serde_json::Value;

use super::paths::{self, KindOnPath, PoliciesOnPath, policies_on};
use super::route::Choice;

/// Characters of a rule that are shown.
const SHOWN: usize = 160;

/// A path that changes, with the kinds that change on it; no policies where the path is not there.
pub(super) struct PathChange {
    path: Arc<Path>,
    before: Option<PoliciesOnPath>,
    after: Option<PoliciesOnPath>,
}

/// The chosen paths that differ.
pub(super) fn between(old: &PolicySurvey, new: &PolicySurvey, choice: &Choice) -> Vec<PathChange> {
    let of = |survey: &PolicySurvey| -> BTreeMap<Arc<Path>, PoliciesOnPath> {
        choice.paths(survey).map(|path| (path.clone(), policies_on(survey, path))).collect()
    };
    let (mut before, mut after) = (of(old), of(new));
    let renamed = renamed(&before, &after);
    let paths: BTreeSet<Arc<Path>> = before.keys().chain(after.keys()).cloned().collect();
    let old_names: BTreeSet<&Arc<Path>> = renamed.values().collect();
    let changes = paths.iter().filter(|path| !old_names.contains(path)).filter_map(|path| {
        let (mut before, mut after) = (before.remove(renamed.get(path).unwrap_or(path)), after.remove(path));
        if before == after {
            return None;
        }
        if let (Some(before), Some(after)) = (&mut before, &mut after) {
            let same: Vec<String> = before
                .iter()
                .filter(|(kind, own)| after.get(*kind) == Some(*own))
                .map(|(kind, _)| kind.clone())
                .collect();
            for kind in same {
                before.remove(&kind);
                after.remove(&kind);
            }
        }
        Some(PathChange { path: path.clone(), before, after })
    });
    changes.collect()
}

/// What two paths have in common whose rule is the same: all but its name, or all but its position.
type Place<'a> = (&'a NodeKey, &'a NodeKey, Result<&'a NodeKey, (&'a NodeKey, usize)>);

fn by_name(path: &Path) -> Place<'_> {
    (&path.gateway_class, &path.listener, Ok(&path.rule))
}

fn by_position(path: &Path) -> Place<'_> {
    (&path.gateway_class, &path.listener, Err((&path.route, path.rule_index)))
}

/// The old path of each new one whose rule got another name, or none, or another position.
fn renamed(
    before: &BTreeMap<Arc<Path>, PoliciesOnPath>,
    after: &BTreeMap<Arc<Path>, PoliciesOnPath>,
) -> BTreeMap<Arc<Path>, Arc<Path>> {
    let mut gone: BTreeSet<&Arc<Path>> = before.keys().filter(|path| !after.contains_key(*path)).collect();
    let mut new: Vec<&Arc<Path>> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    let mut renamed: BTreeMap<Arc<Path>, Arc<Path>> = BTreeMap::new();
    // A name says more than a position.
    for place in [by_name as fn(&Path) -> Place<'_>, by_position] {
        let old: BTreeMap<Place<'_>, &Arc<Path>> =
            gone.iter().copied().map(|path| (place(path), path)).collect();
        new.retain(|path| match old.get(&place(path)) {
            Some(old) if gone.remove(old) => {
                renamed.insert((*path).clone(), (*old).clone());
                false
            }
            _ => true,
        });
    }
    renamed
}

/// A change for programs: the kinds that differ before and after; null where the path is not there.
pub(super) fn json(change: &PathChange) -> Value {
    let side =
        |policies: &Option<PoliciesOnPath>| policies.as_ref().map_or(Value::Null, paths::policies_json);
    let mut value = paths::nodes(&change.path);
    value["before"] = side(&change.before);
    value["after"] = side(&change.after);
    value
}

/// A change for people: rules that go and rules that come.
pub(super) fn text(change: &PathChange) -> String {
    let title = paths::title(&change.path);
    let empty = PoliciesOnPath::new();
    let (before, after) = (change.before.as_ref().unwrap_or(&empty), change.after.as_ref().unwrap_or(&empty));
    let what = match (&change.before, &change.after) {
        (None, _) => " (new)",
        (_, None) => " (gone)",
        _ => "",
    };
    let mut out = format!("{title}{what}\n");
    let kinds: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    if kinds.is_empty() {
        out += "  no policies\n";
    }
    for kind in kinds {
        let _ = writeln!(out, "  {}", one_line(kind));
        for line in rule_lines(before.get(kind), after.get(kind)) {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "    {}", one_line(&line));
        }
    }
    out
}

fn rule_lines(before: Option<&KindOnPath>, after: Option<&KindOnPath>) -> Vec<String> {
    let sides = [('-', before), ('+', after)];
    let rule =
        |side: Option<&KindOnPath>, key: &str| side.and_then(|own| own.effective.rules.get(key).cloned());
    let keys: BTreeSet<&Arc<str>> =
        sides.iter().filter_map(|(_, side)| *side).flat_map(|own| own.effective.rules.keys()).collect();
    let mut lines = Vec::new();
    for key in keys.into_iter().filter(|key| rule(before, key) != rule(after, key)) {
        for (mark, side) in sides {
            let Some((own, rule)) = side.zip(rule(side, key)) else { continue };
            let value = display(&rule.value.to_string(), SHOWN);
            lines.push(format!("{mark} {key}  from {}: {value}", paths::sources(&rule)));
            lines.extend(own.inert_text(key).map(|why| format!("{mark}   {why}")));
        }
    }
    if lines.is_empty() {
        lines.push("the same rules act, and other policies are replaced or not known".to_owned());
    }
    lines
}
