//! Requirements of routes on a router, object by object, as far as flavors differ in them.
//!
//! How objects become routes: Kong/kubernetes-ingress-controller 3.x,
//! `internal/dataplane/translator`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, annotation, meta_str};
use serde_json::Value;

use super::group::DEFAULT_CLASS;
use super::pattern::{Compiled, NamespaceBudget, Pattern};
use super::serving::{Attachment, Counts, Serving};

/// How many routes a text names; further ones are counted.
const NAMED: usize = 5;

/// Prefix of a regular expression in the path of an Ingress.
const REGEX_PREFIX: &str = "/~";

/// A trait of a route that not every flavor serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trait {
    /// A regular expression in a path.
    Pattern(Arc<Pattern>),
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
    pub what: Trait,
}

/// An object with routes, and its traits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub kind: String,
    pub name: NamespacedName,
    /// What it asks to be served by.
    pub attachment: Attachment,
    /// In order of the object.
    pub traits: Vec<RouteTrait>,
}

/// The existing routes that a gateway can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inventory {
    /// Not observed.
    Unseen,
    /// Observed.
    Seen {
        /// All observed routes with traits, by namespace, the gateway's own first.
        routes: Vec<Arc<Route>>,
        /// Kinds that affect a change of flavor and were not observed, or not everywhere, each with the
        /// reason.
        unlisted: Vec<String>,
    },
}

impl Inventory {
    /// An inventory without routes.
    pub fn empty() -> Self {
        Self::Seen { routes: Vec::new(), unlisted: Vec::new() }
    }

    /// The routes of a gateway among the objects of a cluster; `namespace` is the default for an absent one.
    pub fn of(gateway: &Value, objects: &[impl Borrow<Value>], namespace: &str) -> Self {
        let routes = objects.iter().filter_map(|object| Route::of(object.borrow(), namespace)).map(Arc::new);
        Self::served(&Serving::of(Some(gateway), objects, namespace), routes)
    }

    /// Those of the routes that a gateway can serve.
    pub(super) fn served(serving: &Serving<'_>, all: impl IntoIterator<Item = Arc<Route>>) -> Self {
        let (mut routes, mut passed_over) = (Vec::new(), 0);
        for route in all {
            match serving.counts(&route.name.namespace, &route.attachment) {
                Counts::Yes => routes.push(route),
                Counts::No => {}
                Counts::PassedOver => passed_over += 1,
            }
        }
        // Stable: within a namespace they keep their order.
        routes.sort_by(|a, b| {
            let order = |route: &Route| !serving.owns(&route.name.namespace);
            order(a).cmp(&order(b)).then_with(|| a.name.namespace.cmp(&b.name.namespace))
        });
        Self::Seen { routes, unlisted: passed_over_text(passed_over).into_iter().collect() }
    }

    /// The same, for an observer from whom these kinds are hidden.
    #[must_use]
    pub fn with_unlisted(&self, kinds: Vec<String>) -> Self {
        match self {
            Self::Unseen => Self::Unseen,
            Self::Seen { routes, unlisted } => {
                Self::Seen { routes: routes.clone(), unlisted: [kinds, unlisted.clone()].concat() }
            }
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
        let mut list = List::of(namespace);
        for (route, found) in self.traits() {
            which(&found.what).into_iter().for_each(|word| list.add(route, found, &word));
        }
        list.finish()
    }

    fn traits(&self) -> impl Iterator<Item = (&Route, &RouteTrait)> {
        let routes: &[Arc<Route>] = match self {
            Self::Unseen => &[],
            Self::Seen { routes, .. } => routes,
        };
        routes.iter().flat_map(|route| route.traits.iter().map(|found| (&**route, found)))
    }

    /// Patterns that the Rust router does not compile, and those that were not tried.
    pub fn rejected_patterns(&self, namespace: &str) -> (Option<Listed>, Option<Listed>) {
        let (mut rejected, mut not_tried) = (List::of(namespace), List::of(namespace));
        let (mut of, mut budget) = ("", NamespaceBudget::default());
        for (route, found) in self.traits() {
            let Trait::Pattern(pattern) = &found.what else { continue };
            if of != route.name.namespace {
                (of, budget) = (&route.name.namespace, NamespaceBudget::default());
            }
            match pattern.compiled(&mut budget) {
                Compiled::Fine => {}
                Compiled::NotTried => {
                    not_tried.add(route, found, &format!("{} bytes", pattern.text().len()));
                }
                Compiled::Rejected(why) => {
                    rejected.add(route, found, &format!("path {}: {why}", pattern.text()));
                }
            }
        }
        (rejected.finish(), not_tried.finish())
    }
}

fn passed_over_text(count: usize) -> Option<String> {
    let ingresses = if count == 1 { "Ingress" } else { "Ingresses" };
    (count > 0).then(|| {
        format!(
            "{count} {ingresses} of other namespaces with a class other than {DEFAULT_CLASS} (name the producer of \
             this gateway in {})",
            meta::CONFIG_PRODUCER
        )
    })
}

/// A list under construction.
struct List<'a> {
    namespace: &'a str,
    named: Vec<String>,
    count: usize,
}

impl<'a> List<'a> {
    fn of(namespace: &'a str) -> Self {
        Self { namespace, named: Vec::new(), count: 0 }
    }

    fn add(&mut self, route: &Route, found: &RouteTrait, word: &str) {
        self.count += 1;
        if route.name.namespace == self.namespace && self.named.len() < NAMED {
            let space = if found.place.is_empty() { "" } else { " " };
            self.named.push(format!("{} {}{space}{} ({word})", route.kind, route.name, found.place));
        }
    }

    fn finish(self) -> Option<Listed> {
        let Self { named, count, .. } = self;
        (count > 0).then(|| Listed { count, text: listed(named, count) })
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
        let attachment = match gvk.kind == "Ingress" {
            true => Attachment::classes(object),
            false => Attachment::gateways(object, own),
        };
        (!traits.is_empty()).then_some(Self { kind: gvk.kind, name, attachment, traits })
    }

    /// The same, with the patterns of its earlier version, which may be compiled.
    #[must_use]
    pub(super) fn after(mut self, earlier: &Self) -> Self {
        let known: BTreeMap<&str, &Arc<Pattern>> =
            earlier.patterns().map(|pattern| (pattern.text(), pattern)).collect();
        for found in &mut self.traits {
            if let Trait::Pattern(pattern) = &mut found.what
                && let Some(known) = known.get(pattern.text())
            {
                *pattern = (*known).clone();
            }
        }
        self
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &Arc<Pattern>> {
        self.traits.iter().filter_map(|found| match &found.what {
            Trait::Pattern(pattern) => Some(pattern),
            Trait::QueryParameters | Trait::WildcardSni | Trait::Ignored(_) => None,
        })
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value[field].as_array().into_iter().flatten().enumerate()
}

fn pattern_of(text: &str) -> Trait {
    Trait::Pattern(Arc::new(Pattern::new(text)))
}

fn ingress(object: &Value) -> Vec<RouteTrait> {
    let prefix = annotation(object, "konghq.com/regex-prefix").unwrap_or(REGEX_PREFIX);
    let mut found = Vec::new();
    for (i, rule) in items(&object["spec"], "rules") {
        for (j, path) in items(&rule["http"], "paths") {
            let pattern = path["path"].as_str().and_then(|path| path.strip_prefix(prefix));
            if let Some(pattern) = pattern.filter(|_| path["pathType"] == "ImplementationSpecific") {
                let what = pattern_of(pattern);
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
            found.push(RouteTrait { place: place.clone(), what: pattern_of(pattern) });
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
            let what = pattern_of(&format!("/{}/{}", part("service"), part("method")));
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
