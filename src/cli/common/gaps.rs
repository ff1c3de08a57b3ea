//! The kinds that could not be listed, and why.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::error::CliError;

/// Why a kind was not listed, or not everywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum ListProblem {
    /// The API server does not serve it.
    NotServed,
    /// The caller may list it in this namespace only.
    OnlyIn(String),
    /// The caller may not list it.
    Forbidden,
    /// The API server's message.
    Failed(String),
}

impl ListProblem {
    fn text(&self) -> String {
        match self {
            Self::NotServed => "not served by this cluster".to_owned(),
            Self::OnlyIn(namespace) => {
                format!("seen in namespace {namespace} only, as you may not list all namespaces")
            }
            Self::Forbidden => "you may not list them".to_owned(),
            Self::Failed(why) => why.clone(),
        }
    }

    fn is_a_right(&self) -> bool {
        matches!(self, Self::OnlyIn(_) | Self::Forbidden)
    }
}

/// The kinds that were listed incompletely, by reason, each as `PLURAL.GROUP`.
#[derive(Debug, Default)]
pub(in crate::cli) struct Gaps {
    kinds: BTreeMap<ListProblem, BTreeSet<String>>,
    /// Whether any kind was listed.
    seen: bool,
}

impl Gaps {
    /// A kind was listed, if only in one namespace.
    pub(in crate::cli) fn seen(&mut self) {
        self.seen = true;
    }

    /// A kind was not listed everywhere.
    pub(in crate::cli) fn add(&mut self, kind: &str, why: ListProblem) {
        self.kinds.entry(why).or_default().insert(kind.to_owned());
    }

    /// Whether every kind was listed everywhere.
    pub(in crate::cli) fn is_none(&self) -> bool {
        self.kinds.is_empty()
    }

    /// For people: a line for each reason, and the remedy where rights are missing.
    pub(in crate::cli) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.reasons().map(|line| format!("not seen, {line}")).collect();
        if self.kinds.keys().any(ListProblem::is_a_right) {
            lines.push(format!("to see more, {REMEDY}"));
        }
        lines
    }

    /// A line for each reason: the reason, and the first of its kinds.
    fn reasons(&self) -> impl Iterator<Item = String> + '_ {
        self.kinds.iter().map(|(why, kinds)| {
            let mut named: Vec<&str> = kinds.iter().map(String::as_str).collect();
            named.sort_by_key(|kind| is_builtin(kind));
            named.truncate(NAMED);
            let rest = match kinds.len().saturating_sub(NAMED) {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            format!("{}: {}{rest}", why.text(), named.join(", "))
        })
    }

    /// For programs.
    pub(in crate::cli) fn json(&self) -> Vec<Value> {
        let mut all: Vec<(&String, String)> =
            self.kinds.iter().flat_map(|(why, kinds)| kinds.iter().map(|kind| (kind, why.text()))).collect();
        all.sort();
        all.into_iter().map(|(kind, why)| json!({ "kind": kind, "why": why })).collect()
    }

    /// The error where nothing could be listed at all.
    pub(in crate::cli) fn nothing(&self) -> Option<CliError> {
        if self.seen {
            return None;
        }
        let why: Vec<String> = self.reasons().collect();
        Some(CliError::refused("no objects could be read").why(why.join("\n")).next(REMEDY))
    }
}

/// Whether Kubernetes brings the kind: the others are named first.
fn is_builtin(kind: &str) -> bool {
    kind.split_once('.').is_none_or(|(_, group)| !group.contains('.') || group.ends_with("k8s.io"))
}

/// How many kinds a line names; JSON has all of them.
const NAMED: usize = 6;

/// What gives the rights.
const REMEDY: &str = "choose a namespace that you may read with -n, or ask an administrator for the verbs get and \
                      list on these kinds, such as with `kubectl create rolebinding NAME --clusterrole=view \
                      --user=USER -n NAMESPACE`";

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps() -> Gaps {
        let mut gaps = Gaps::default();
        gaps.add("secrets", ListProblem::Forbidden);
        gaps.add("instances.kudo.dev", ListProblem::Forbidden);
        gaps.add("secrets", ListProblem::Forbidden);
        gaps.add("gateways.gateway.networking.k8s.io", ListProblem::NotServed);
        gaps
    }

    #[test]
    fn a_line_for_each_reason_and_a_remedy() {
        assert_eq!(
            gaps().lines(),
            [
                "not seen, not served by this cluster: gateways.gateway.networking.k8s.io".to_owned(),
                "not seen, you may not list them: instances.kudo.dev, secrets".to_owned(),
                format!("to see more, {REMEDY}"),
            ]
        );
        let mut absent = Gaps::default();
        absent.add("a", ListProblem::NotServed);
        assert_eq!(absent.lines(), ["not seen, not served by this cluster: a"]);
        assert_eq!(gaps().json()[2], json!({"kind": "secrets", "why": "you may not list them"}));
    }

    #[test]
    fn of_many_kinds_the_first_are_named() {
        let mut gaps = Gaps::default();
        for kind in 0..60 {
            gaps.add(&format!("kind{kind:02}"), ListProblem::Forbidden);
        }
        gaps.add("instances.kudo.dev", ListProblem::Forbidden);
        assert_eq!(
            gaps.lines()[0],
            "not seen, you may not list them: instances.kudo.dev, kind00, kind01, kind02, kind03, kind04 and 55 more"
        );
        assert_eq!(gaps.json().len(), 61);
    }

    #[test]
    fn who_may_see_nothing_is_refused() {
        let mut gaps = gaps();
        let error = gaps.nothing().unwrap();
        assert_eq!(error.exit().code(), 1);
        assert!(
            error.text().starts_with(
                "error: no objects could be read\n\
                 \x20 why:   not served by this cluster: gateways.gateway.networking.k8s.io\n\
                 \x20        you may not list them: instances.kudo.dev, secrets\n\
                 \x20 next:  choose a namespace"
            ),
            "{}",
            error.text()
        );
        gaps.seen();
        assert_eq!(gaps.nothing(), None);
    }
}
