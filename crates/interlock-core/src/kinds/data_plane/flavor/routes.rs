//! Requirements of routes on a router, object by object, as far as flavors differ in them.
//!
//! How objects become routes: Kong/kubernetes-ingress-controller 3.x,
//! `internal/dataplane/translator`.

use serde_json::Value;

use super::pattern::{Compiled, Compiler};
use crate::api::object::{Gvk, NamespacedName, annotation, meta_str};

/// How many routes a text names; further ones are counted.
const NAMED: usize = 5;

/// Prefix of a regular expression in the path of an Ingress.
const REGEX_PREFIX: &str = "/~";

/// A trait of a route that not every flavor serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trait {
    /// A regular expression in a path.
    Pattern(String),
    /// A match on query parameters: `expressions` only.
    QueryParameters,
    /// A host name with `*`, matched by SNI.
    WildcardSni,
    /// An annotation that is ignored under `expressions`.
    Ignored(&'static str),
}

/// A trait and its place in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTrait {
    /// Such as `rules[0].matches[1]`; empty for the whole object.
    pub place: String,
    /// The trait.
    pub what: Trait,
}

/// An object with routes, and its traits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: NamespacedName,
    /// In order of the object.
    pub traits: Vec<RouteTrait>,
}

/// The existing routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inventory {
    /// Not observed.
    Unseen,
    /// Observed.
    Seen {
        /// All observed routes with traits.
        routes: Vec<Route>,
        /// Kinds that affect a change of flavor and were not observed, or not everywhere, each with the
        /// reason.
        unlisted: Vec<String>,
    },
}

impl Inventory {
    /// The routes among objects of any kind; `namespace` is the default for an absent one.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>, namespace: &str) -> Self {
        Self::seen(objects.into_iter().filter_map(|object| Route::of(object, namespace)))
    }

    /// An inventory of the routes with traits, with no hidden kinds.
    pub fn seen(routes: impl IntoIterator<Item = Route>) -> Self {
        Self::Seen { routes: routes.into_iter().collect(), unlisted: Vec::new() }
    }

    /// The same, for an observer from whom these kinds are hidden.
    #[must_use]
    pub fn with_unlisted(&self, unlisted: Vec<String>) -> Self {
        match self {
            Self::Unseen => Self::Unseen,
            Self::Seen { routes, .. } => Self::Seen { routes: routes.clone(), unlisted },
        }
    }

    /// The kinds that were not observed.
    pub fn unlisted(&self) -> &[String] {
        match self {
            Self::Unseen => &[],
            Self::Seen { unlisted, .. } => unlisted,
        }
    }

    /// Some traits, as a list that names those of a namespace and counts the others; `None` if there
    /// are none.
    pub fn list(&self, namespace: &str, mut which: impl FnMut(&Trait) -> Option<String>) -> Option<Listed> {
        let Self::Seen { routes, .. } = self else { return None };
        let (mut named, mut count) = (Vec::new(), 0);
        for route in routes {
            for found in &route.traits {
                let Some(word) = which(&found.what) else { continue };
                count += 1;
                if route.name.namespace == namespace && named.len() < NAMED {
                    let space = if found.place.is_empty() { "" } else { " " };
                    named.push(format!("{} {}{space}{} ({word})", route.kind, route.name, found.place));
                }
            }
        }
        (count > 0).then(|| Listed { count, text: listed(named, count) })
    }

    /// Patterns that the Rust router does not compile, and how many were not tried.
    pub fn rejected_patterns(&self, namespace: &str) -> (Option<Listed>, usize) {
        let (mut compiler, mut not_tried) = (Compiler::default(), 0);
        let rejected = self.list(namespace, |what| match what {
            Trait::Pattern(pattern) => match compiler.try_out(pattern) {
                Compiled::Fine => None,
                Compiled::NotTried => {
                    not_tried += 1;
                    None
                }
                Compiled::Rejected(why) => Some(format!("path {pattern}: {why}")),
            },
            Trait::QueryParameters | Trait::WildcardSni | Trait::Ignored(_) => None,
        });
        (rejected, not_tried)
    }
}

/// Traits as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// How many there are.
    pub count: usize,
    /// The first by name, the others counted.
    pub text: String,
}

fn listed(mut named: Vec<String>, count: usize) -> String {
    match count - named.len() {
        0 => {}
        rest if named.is_empty() => named.push(format!("{rest} in other namespaces")),
        rest => named.push(format!("and {rest} more")),
    }
    named.join(", ")
}

impl Route {
    /// Reads an object; `None` if all flavors treat it alike.
    pub fn of(object: &Value, namespace: &str) -> Option<Self> {
        let gvk = Gvk::of(object)?;
        let mut traits = match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("networking.k8s.io", "Ingress") => ingress(object),
            ("gateway.networking.k8s.io", "HTTPRoute") => http_route(object),
            ("gateway.networking.k8s.io", "GRPCRoute") => grpc_route(object),
            ("gateway.networking.k8s.io", "TLSRoute") => tls_route(object),
            _ => return None,
        };
        traits.extend(annotations(object));
        let own = meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(namespace);
        let name = NamespacedName::new(own, meta_str(object, "name")?);
        (!traits.is_empty()).then_some(Self { kind: gvk.kind, name, traits })
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value[field].as_array().into_iter().flatten().enumerate()
}

fn ingress(object: &Value) -> Vec<RouteTrait> {
    let prefix = annotation(object, "konghq.com/regex-prefix").unwrap_or(REGEX_PREFIX);
    let mut found = Vec::new();
    for (i, rule) in items(&object["spec"], "rules") {
        for (j, path) in items(&rule["http"], "paths") {
            let pattern = path["path"].as_str().and_then(|path| path.strip_prefix(prefix));
            if let Some(pattern) = pattern.filter(|_| path["pathType"] == "ImplementationSpecific") {
                let what = Trait::Pattern(pattern.to_owned());
                found.push(RouteTrait { place: format!("rules[{i}].http.paths[{j}]"), what });
            }
        }
    }
    found
}

fn matches(object: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(&object["spec"], "rules").flat_map(|(i, rule)| {
        items(rule, "matches").map(move |(j, found)| (format!("rules[{i}].matches[{j}]"), found))
    })
}

fn http_route(object: &Value) -> Vec<RouteTrait> {
    let mut found = Vec::new();
    for (place, matched) in matches(object) {
        if matched["path"]["type"] == "RegularExpression"
            && let Some(pattern) = matched["path"]["value"].as_str()
        {
            found.push(RouteTrait { place: place.clone(), what: Trait::Pattern(pattern.to_owned()) });
        }
        if matched["queryParams"].as_array().is_some_and(|parameters| !parameters.is_empty()) {
            found.push(RouteTrait { place, what: Trait::QueryParameters });
        }
    }
    found
}

fn grpc_route(object: &Value) -> Vec<RouteTrait> {
    let mut found = Vec::new();
    for (place, matched) in matches(object) {
        let method = &matched["method"];
        if method["type"] == "RegularExpression" {
            let part = |field: &str| method[field].as_str().unwrap_or(".+").to_owned();
            let what = Trait::Pattern(format!("/{}/{}", part("service"), part("method")));
            found.push(RouteTrait { place, what });
        }
    }
    found
}

fn tls_route(object: &Value) -> Vec<RouteTrait> {
    let wildcards = items(&object["spec"], "hostnames")
        .filter(|(_, host)| host.as_str().is_some_and(|h| h.contains('*')));
    wildcards
        .map(|(i, _)| RouteTrait { place: format!("hostnames[{i}]"), what: Trait::WildcardSni })
        .collect()
}

fn annotations(object: &Value) -> Vec<RouteTrait> {
    let mut found: Vec<RouteTrait> = ["konghq.com/regex-priority", "konghq.com/path-handling"]
        .into_iter()
        .filter(|key| annotation(object, key).is_some())
        .map(|key| RouteTrait { place: String::new(), what: Trait::Ignored(key) })
        .collect();
    if annotation(object, "konghq.com/snis").is_some_and(|names| names.contains('*')) {
        found.push(RouteTrait { place: "konghq.com/snis".to_owned(), what: Trait::WildcardSni });
    }
    found
}
