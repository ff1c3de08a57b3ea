//! The route that a command is about, and one of its rules.

use std::sync::Arc;

use gateway_policies::{NodeKey, ObjectKind, Path};
use interlock_core::api::suggest;
use interlock_gateway::policies::PolicySurvey;

use crate::cli::common::error::CliError;

const SYNTAX: &str = "write KIND/NAMESPACE/NAME, NAMESPACE/NAME, or NAME -n NAMESPACE; kinds are HTTPRoute, GRPCRoute, \
                      TLSRoute, TCPRoute and UDPRoute";

/// The route and the rule that are asked about; without, all of them.
#[derive(Default)]
pub(super) struct Choice {
    pub(super) route: Option<NodeKey>,
    rule: Option<usize>,
}

impl Choice {
    /// From what people write.
    pub(super) fn of(
        survey: &PolicySurvey,
        namespace: &str,
        route: Option<&str>,
        rule: Option<&str>,
    ) -> Result<Self, CliError> {
        let Some(word) = route else { return Ok(Self::default()) };
        let route = find(survey, word, namespace)?;
        let rule = rule.map(|rule| self::rule(survey, &route, rule)).transpose()?;
        Ok(Self { route: Some(route), rule })
    }

    /// The chosen paths, by route.
    pub(super) fn paths<'a>(&'a self, survey: &'a PolicySurvey) -> impl Iterator<Item = &'a Arc<Path>> {
        let (route, rule) = (self.route.as_ref(), self.rule);
        let paths = survey.index().paths();
        paths.filter(move |path| {
            route.is_none_or(|route| path.route == *route) && rule.is_none_or(|rule| path.rule_index == rule)
        })
    }
}

/// A route as people write it: the kind can be left out where one route has the name.
fn find(survey: &PolicySurvey, word: &str, namespace: &str) -> Result<NodeKey, CliError> {
    let parts: Vec<&str> = word.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(CliError::usage(format!("{word:?} has an empty part")).next(SYNTAX));
    }
    let (kind, namespace, name) = match parts.as_slice() {
        [name] => (None, namespace, *name),
        [first, name] => match kind_of(first) {
            Some(kind) => (Some(kind), namespace, *name),
            None => (None, *first, *name),
        },
        [kind, namespace, name] => {
            let found = kind_of(kind);
            let known = || CliError::usage(format!("{kind:?} is no kind of routes")).next(SYNTAX);
            (Some(found.ok_or_else(known)?), *namespace, *name)
        }
        _ => return Err(CliError::usage(format!("{word:?} names no route")).next(SYNTAX)),
    };
    let is_kind = |route: &NodeKey| kind.is_none_or(|kind| route.kind == kind);
    let routes = survey.index().routes().map(|(route, _)| route);
    let there: Vec<&NodeKey> =
        routes.filter(|route| is_kind(route) && &*route.namespace == namespace).collect();
    let found: Vec<&NodeKey> = there.iter().copied().filter(|route| &*route.name == name).collect();
    match found.as_slice() {
        [route] => Ok((*route).clone()),
        [] => {
            let (kind_given, kind) = (kind, kind.map_or("a route", ObjectKind::name));
            let names: Vec<&str> = there.iter().map(|route| &*route.name).collect();
            let all = format!("routes of namespace {namespace}");
            let is_seen = kind_seen(survey, kind_given, namespace);
            let how = if is_seen { "does not exist" } else { "is not among the routes that can be seen" };
            Err(CliError::unreached(format!("{kind} {namespace}/{name} {how}"))
                .next("choose another namespace with -n, or name it NAMESPACE/NAME")
                .next_where(suggest::remedy(name, &all, &names)))
        }
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(CliError::usage(format!("{} routes have the name {namespace}/{name}", several.len()))
                .next(format!("name one of {}", names.join(", "))))
        }
    }
}

/// Whether all routes of a namespace were listed, of one kind or of all.
fn kind_seen(survey: &PolicySurvey, kind: Option<ObjectKind>, namespace: &str) -> bool {
    let routes = ObjectKind::ALL.into_iter().filter(|own| own.is_route());
    routes.filter(|own| kind.is_none_or(|kind| kind == *own)).all(|own| survey.is_seen(own, namespace))
}

/// A kind of routes in whatever spelling, with or without its group.
fn kind_of(word: &str) -> Option<ObjectKind> {
    let word = word.to_lowercase();
    let word = word.split_once('.').map_or(word.as_str(), |(kind, _)| kind);
    let mut routes = ObjectKind::ALL.into_iter().filter(|kind| kind.is_route());
    routes.find(|kind| {
        let name = kind.name().to_lowercase();
        word == name || word.strip_suffix('s') == Some(name.as_str())
    })
}

/// The position of a rule, by its position or its name. A number is a position.
fn rule(survey: &PolicySurvey, route: &NodeKey, word: &str) -> Result<usize, CliError> {
    let rules = survey.index().links(route).map(|links| links.rules.as_slice()).unwrap_or_default();
    let named = rules.iter().position(|rule| rule.section.as_deref() == Some(word));
    let position = word.parse().ok().filter(|position| *position < rules.len());
    position.or(named).ok_or_else(|| {
        let names: Vec<&str> = rules.iter().filter_map(|rule| rule.section.as_deref()).collect();
        let remedy = match rules.len() {
            0 => "the route has no rules".to_owned(),
            count => format!("give a number from 0 to {}, or a name: {}", count - 1, names.join(", ")),
        };
        CliError::unreached(format!("{route} has no rule {word}")).next(remedy)
    })
}
