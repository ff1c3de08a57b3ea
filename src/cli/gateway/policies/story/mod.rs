//! What `interlock why` says of policies, routes and Gateways.

mod find;
mod gateway;
mod policy;
mod route;

use gateway_policies::{NodeKey, ObjectKind, PolicyId};
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::kinds::story::Told;
use interlock_gateway::policies::{PolicyKinds, PolicySurvey};
use serde_json::Value;

use super::source::Source;

pub(in crate::cli) use self::find::{find, find_policy, is_any_policy};

/// Entries of a list that are printed; JSON has all.
const SHOWN: usize = 8;

/// What a story is about.
enum Subject {
    Policy(PolicyId),
    Route(NodeKey),
    Gateway(NodeKey),
}

/// Whether there may be a story about an object, for which all objects of the Gateway API have to be read.
pub(in crate::cli) fn is_about(object: &Value) -> bool {
    let has_target = ["targetRef", "targetRefs", "targetSelectors"].iter().any(|field| {
        let field = &object["spec"][*field];
        field.is_object() || field.is_array()
    });
    has_target || subject(&PolicyKinds::known(), object).is_some()
}

/// The story of an object; none of an object of another kind.
pub(in crate::cli) fn told(source: &Source, object: &Value) -> Option<Told> {
    let survey = source.linked();
    let mut told = match subject(survey.kinds(), object)? {
        Subject::Policy(id) => policy::told(&survey, &id),
        Subject::Route(route) => route::told(&survey, &route),
        Subject::Gateway(gateway) => gateway::told(&survey, &gateway, object),
    };
    told.unknown.extend(source.gaps.lines());
    Some(told)
}

fn subject(kinds: &PolicyKinds, object: &Value) -> Option<Subject> {
    let gvk = Gvk::of(object)?;
    let name = meta_str(object, "name")?;
    let namespace = meta_str(object, "namespace").filter(|text| !text.is_empty()).unwrap_or("default");
    if let Some(kind) = kinds.name_of(&gvk.group, &gvk.kind) {
        let (kind, namespace, name) = (kind.into(), namespace.into(), name.into());
        return Some(Subject::Policy(PolicyId { kind, namespace, name }));
    }
    let kind = ObjectKind::find(&gvk.group, &gvk.kind)?;
    let node = NodeKey::new(kind, namespace, name);
    match kind {
        ObjectKind::Gateway => Some(Subject::Gateway(node)),
        kind if kind.is_route() => Some(Subject::Route(node)),
        _ => None,
    }
}

/// The first entries, and how many there are more.
fn first(all: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = all.into_iter().collect();
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The first lines, and how many there are more.
fn first_lines(all: Vec<String>) -> impl Iterator<Item = String> {
    let more = all.len().saturating_sub(SHOWN);
    let rest = (more > 0).then(|| format!("  and {more} more"));
    all.into_iter().take(SHOWN).chain(rest)
}

fn count(number: usize, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// The policies of a node, by kind.
fn attached(survey: &PolicySurvey, node: &NodeKey) -> Vec<String> {
    survey.attached(node).iter().map(|id| format!("{} {}", id.kind, id.qualified_name())).collect()
}
