//! The kinds that the API server serves, and their names.

use interlock_core::api::suggest;
use interlock_core::kinds;
use kube::Client;
use kube::api::ApiResource;
use kube::core::discovery::v2::APIResourceDiscovery;

use super::error::{CliError, api};
use super::progress::ProgressLine;

/// A kind in the version that the API server prefers.
#[derive(Clone, Debug)]
pub(in crate::cli) struct ServedResource {
    pub(in crate::cli) api: ApiResource,
    pub(in crate::cli) namespaced: bool,
    pub(in crate::cli) listable: bool,
    singular: String,
    short: Vec<String>,
}

/// All kinds, in the API server's order.
#[derive(Debug, Default)]
pub(in crate::cli) struct ServedKinds {
    resources: Vec<ServedResource>,
    /// Groups whose kinds are unknown at present, as their API server does not answer.
    pub(in crate::cli) stale: Vec<String>,
}

impl ServedKinds {
    /// Discovers all kinds: two requests.
    pub(in crate::cli) async fn discover(client: &Client) -> Result<Self, CliError> {
        let _progress = ProgressLine::start("asking the API server which kinds it serves");
        let what = "the kinds that the API server serves cannot be read";
        let core = client.list_core_api_versions_aggregated().await.map_err(api(what))?;
        let groups = client.list_api_groups_aggregated().await.map_err(api(what))?;
        let mut served = Self::default();
        for group in core.items.into_iter().chain(groups.items) {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            for version in group.versions {
                if version.freshness.as_deref() == Some("Stale") && !served.stale.contains(&name) {
                    served.stale.push(name.clone());
                }
                let at = version.version.unwrap_or_default();
                version.resources.into_iter().for_each(|found| served.add(&name, &at, found));
            }
        }
        Ok(served)
    }

    /// The first version of a kind is the preferred one.
    fn add(&mut self, group: &str, version: &str, found: APIResourceDiscovery) {
        let (Some(plural), Some(kind)) = (found.resource, found.response_kind.and_then(|gvk| gvk.kind))
        else {
            return;
        };
        if self.resources.iter().any(|known| known.api.group == group && known.api.plural == plural) {
            return;
        }
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        self.resources.push(ServedResource {
            api: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version,
                kind,
                plural,
            },
            namespaced: found.scope.as_deref() == Some("Namespaced"),
            listable: found.verbs.iter().any(|verb| verb == "list"),
            singular: found.singular_resource.unwrap_or_default(),
            short: found.short_names,
        });
    }

    pub(in crate::cli) fn all(&self) -> impl Iterator<Item = &ServedResource> {
        self.resources.iter()
    }

    pub(in crate::cli) fn of(&self, group: &str, kind: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|known| known.api.group == group && known.api.kind == kind)
    }

    /// A kind as people write it: `Instance`, `instances`, `inst`, `instance.kudo.dev`. Where several
    /// groups have it, prefers one that the topology declares, else takes the first.
    pub(in crate::cli) fn find(&self, word: &str) -> Result<&ServedResource, CliError> {
        let declared = |found: &&&ServedResource| is_declared(found);
        let found: Vec<&ServedResource> =
            self.resources.iter().filter(|known| known.is_called(word)).collect();
        if let Some(found) = found.iter().find(declared).or(found.first()) {
            return Ok(found);
        }
        if word.is_empty() {
            return Err(CliError::usage("the kind is empty").next(OBJECT_SYNTAX));
        }
        let error = CliError::unreached(format!("the API server serves no kind {word:?}"));
        let error = match self.stale.as_slice() {
            [] => error,
            stale => error.why(format!("the servers of these groups do not answer: {}", stale.join(", "))),
        };
        Err(error.next(self.remedy(word)))
    }

    /// What to do about a kind that is not served: kinds of a like name, else those that Interlock knows.
    fn remedy(&self, word: &str) -> String {
        let known: Vec<String> =
            self.resources.iter().filter(|kind| is_declared(kind)).map(ServedResource::name).collect();
        let names: Vec<&str> = self.resources.iter().flat_map(ServedResource::names).collect();
        let like = suggest::similar(word.split('.').next().unwrap_or_default(), &names);
        let all = "`kubectl api-resources` lists all kinds";
        match (like.as_slice(), known.as_slice()) {
            ([], []) => all.to_owned(),
            ([], known) => format!("Interlock knows {}; {all}", known.join(", ")),
            (like, _) => format!("did you mean {}? {all}", like.join(" or ")),
        }
    }
}

/// Whether the topology declares a kind.
fn is_declared(resource: &ServedResource) -> bool {
    let name = (resource.api.group.as_str(), resource.api.kind.as_str());
    kinds::schemas(crate::kinds::all()).iter().any(|kind| (kind.name.group, kind.name.kind) == name)
}

impl ServedResource {
    /// Whether a word names this kind: kind, plural, singular or short name, perhaps with the group.
    fn is_called(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let names = |word: &str| {
            word == self.api.kind.to_lowercase()
                || word == self.api.plural
                || word == self.singular
                || self.short.iter().any(|short| short == word)
        };
        match word.split_once('.') {
            None => names(&word),
            Some((name, rest)) => {
                let with_version = format!("{}.{}", self.api.version, self.api.group);
                names(name) && (rest == self.api.group || rest == with_version)
            }
        }
    }

    /// What people call it, without the group.
    fn names(&self) -> impl Iterator<Item = &str> {
        [self.api.plural.as_str(), self.singular.as_str()].into_iter().filter(|name| !name.is_empty())
    }

    /// `instances.kudo.dev`, as `kubectl api-resources` and roles name it.
    pub(in crate::cli) fn name(&self) -> String {
        let ApiResource { group, plural, .. } = &self.api;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }
}

/// An object as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct NamedObject {
    /// Kind, in whatever spelling.
    pub(in crate::cli) kind: String,
    /// Namespace, where one was given.
    pub(in crate::cli) namespace: Option<String>,
    pub(in crate::cli) name: String,
}

impl NamedObject {
    /// From `KIND/NAMESPACE/NAME`, `KIND/NAME`, or `KIND NAME`.
    pub(in crate::cli) fn parse(words: &[&str]) -> Result<Self, CliError> {
        let parts: Vec<&str> = words.iter().flat_map(|word| word.split('/')).collect();
        let (kind, namespace, name) = match parts.as_slice() {
            [kind, name] => (kind, None, name),
            [kind, namespace, name] => (kind, Some((*namespace).to_owned()), name),
            _ => {
                return Err(
                    CliError::usage(format!("{:?} names no object", words.join(" "))).next(OBJECT_SYNTAX)
                );
            }
        };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(
                CliError::usage(format!("{:?} has an empty part", words.join(" "))).next(OBJECT_SYNTAX)
            );
        }
        Ok(Self { kind: (*kind).to_owned(), namespace, name: (*name).to_owned() })
    }
}

const OBJECT_SYNTAX: &str = "write KIND/NAMESPACE/NAME, KIND/NAME, or KIND NAME -n NAMESPACE";

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn served() -> ServedKinds {
        let mut served = ServedKinds::default();
        let mut add = |group: &str, version: &str, resource: Value| {
            served.add(group, version, serde_json::from_value(resource).unwrap());
        };
        let resource = |kind: &str, plural: &str, short: &str| {
            json!({
                "resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced",
                "singularResource": kind.to_lowercase(), "verbs": ["get", "list"], "shortNames": [short],
            })
        };
        add("", "v1", resource("Service", "services", "svc"));
        add("apps", "v1", resource("Deployment", "deployments", "deploy"));
        add("apps", "v1beta1", resource("Deployment", "deployments", "deploy"));
        add("networking.istio.io", "v1", resource("Gateway", "gateways", "gw"));
        add("gateway.networking.k8s.io", "v1", resource("Gateway", "gateways", "gtw"));
        served
    }

    #[rstest]
    #[case("Deployment", "deployments.apps")]
    #[case("deploy", "deployments.apps")]
    #[case("deployments", "deployments.apps")]
    #[case("deployment.apps", "deployments.apps")]
    #[case("deployments.v1.apps", "deployments.apps")]
    #[case("SVC", "services")]
    #[case("gateway", "gateways.gateway.networking.k8s.io")]
    #[case("gw", "gateways.networking.istio.io")]
    #[case("gateway.networking.istio.io", "gateways.networking.istio.io")]
    fn a_kind_is_found_as_people_call_it(#[case] word: &str, #[case] name: &str) {
        let served = served();
        let found = served.find(word).unwrap();
        assert_eq!((found.name().as_str(), found.api.version.as_str()), (name, "v1"));
    }

    #[test]
    fn a_kind_that_is_not_served_is_named() {
        let text = |word: &str| served().find(word).unwrap_err().text();
        assert_eq!(
            text("deploymnt.apps"),
            "error: the API server serves no kind \"deploymnt.apps\"\n\
             \x20 next:  did you mean deployment or deployments? `kubectl api-resources` lists all kinds\n"
        );
        assert_eq!(
            text("gizmo"),
            "error: the API server serves no kind \"gizmo\"\n\
             \x20 next:  Interlock knows services, gateways.gateway.networking.k8s.io; `kubectl api-resources` lists all kinds\n"
        );
    }

    #[rstest]
    #[case(&["inst/ns/x"], Some("ns"))]
    #[case(&["inst/x"], None)]
    #[case(&["inst", "x"], None)]
    #[case(&["inst", "ns/x"], Some("ns"))]
    fn objects_are_named_as_kubectl_and_as_the_graph_names_them(
        #[case] words: &[&str],
        #[case] namespace: Option<&str>,
    ) {
        let named = NamedObject {
            kind: "inst".into(),
            namespace: namespace.map(str::to_owned),
            name: "x".to_owned(),
        };
        assert_eq!(NamedObject::parse(words), Ok(named));
    }

    #[rstest]
    #[case(&["inst"], "error: \"inst\" names no object\n")]
    #[case(&["a/b/c/d"], "error: \"a/b/c/d\" names no object\n")]
    #[case(&["inst//x"], "error: \"inst//x\" has an empty part\n")]
    fn a_text_that_names_no_object_is_refused(#[case] words: &[&str], #[case] text: &str) {
        let error = NamedObject::parse(words).unwrap_err().text();
        assert!(error.starts_with(text) && error.ends_with("-n NAMESPACE\n"), "{error}");
    }
}
