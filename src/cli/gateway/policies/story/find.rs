//! The object that a question is about, among objects that were read.

use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::api::suggest;
use serde_json::Value;

use super::super::source::Source;
use crate::cli::common::discovery::NamedObject;
use crate::cli::common::error::CliError;

/// Whether a word stands for policies of all kinds.
pub(in crate::cli) fn is_any_policy(word: &str) -> bool {
    ["policy", "policies"].iter().any(|any| word.eq_ignore_ascii_case(any))
}

/// The policy of a name, where one kind alone has it.
pub(in crate::cli) fn find_policy<'a>(
    source: &'a Source,
    named: &NamedObject,
) -> Result<&'a Value, CliError> {
    let kinds = source.kinds();
    find_where(source, named, &|gvk| kinds.name_of(&gvk.group, &gvk.kind).is_some())
}

/// The object of a kind and a name.
pub(in crate::cli) fn find<'a>(source: &'a Source, named: &NamedObject) -> Result<&'a Value, CliError> {
    if is_any_policy(&named.kind) {
        return find_policy(source, named);
    }
    find_where(source, named, &|gvk| is_called(gvk, &named.kind))
}

/// Kind or plural in whatever spelling, with or without the group.
fn is_called(gvk: &Gvk, word: &str) -> bool {
    let word = word.to_lowercase();
    let (word, group) =
        word.split_once('.').map_or((word.as_str(), None), |(word, group)| (word, Some(group)));
    let kind = gvk.kind.to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    let is_kind = word == kind || word == plural || word == format!("{kind}es");
    is_kind && group.is_none_or(|group| group == gvk.group)
}

fn find_where<'a>(
    source: &'a Source,
    named: &NamedObject,
    is_kind: &dyn Fn(&Gvk) -> bool,
) -> Result<&'a Value, CliError> {
    let namespace = named.namespace.as_deref().unwrap_or(&source.namespace);
    let is_there = |object: &&Value| {
        let own = meta_str(object, "namespace").unwrap_or_default();
        Gvk::of(object).is_some_and(|gvk| is_kind(&gvk)) && (own == namespace || own.is_empty())
    };
    let there: Vec<&Value> = source.objects().iter().filter(is_there).collect();
    let mut found = there.iter().copied().filter(|own| meta_str(own, "name") == Some(named.name.as_str()));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(one), Some(other)) => {
            let kinds = [one, other].into_iter().chain(found).filter_map(kind_of).collect::<Vec<_>>();
            let what = format!("policies of {} kinds have the name {namespace}/{}", kinds.len(), named.name);
            Err(CliError::usage(what).next(format!("write one of the kinds {}", kinds.join(", "))))
        }
        (None, _) => {
            let names: Vec<&str> = there.iter().filter_map(|own| meta_str(own, "name")).collect();
            let all = format!("objects of namespace {namespace}");
            let what = format!("{} {namespace}/{}", named.kind, named.name);
            let error = match source.gaps.is_none() {
                true => CliError::unreached(format!("{what} does not exist")),
                false => CliError::unreached(format!("{what} is not among the objects that can be seen"))
                    .why(source.gaps.lines().join("\n")),
            };
            Err(error
                .next("choose another namespace with -n, or write KIND/NAMESPACE/NAME")
                .next_where(suggest::remedy(&named.name, &all, &names)))
        }
    }
}

/// Kind and group, as a command takes them.
fn kind_of(object: &Value) -> Option<String> {
    Gvk::of(object).map(|gvk| format!("{}.{}", gvk.kind, gvk.group))
}
