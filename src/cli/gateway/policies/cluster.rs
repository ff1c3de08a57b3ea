//! Gateways, routes and policies of a cluster, as far as the caller may list them.

use futures::stream::{self, StreamExt as _};
use interlock_gateway::names::GATEWAY_API;
use interlock_gateway::policies::{POLICY_LABEL, PolicyKinds, UnlistedKind, path_kinds};
use kube::Client;
use serde_json::Value;

use crate::cli::common::discovery::{ServedKinds, ServedResource};
use crate::cli::common::error::CliError;
use crate::cli::common::gaps::{Gaps, ListProblem};
use crate::cli::common::progress::ProgressLine;
use crate::cli::common::reader::{self, Selection};

/// Concurrent lists.
const CONCURRENCY: usize = 8;

/// Objects of all kinds together.
const MAX_OBJECTS: usize = 200_000;

/// What was listed, and what was not.
pub(super) struct ClusterObjects {
    pub(super) namespace: String,
    pub(super) kinds: PolicyKinds,
    pub(super) objects: Vec<Value>,
    pub(super) unlisted: Vec<UnlistedKind>,
    pub(super) gaps: Gaps,
    /// Whether GatewayClasses could be listed, so that an absent one is absent.
    pub(super) has_classes: bool,
}

impl ClusterObjects {
    /// Lists every kind that decides about paths, and every kind of policies, where the API server serves it.
    pub(super) async fn list(
        client: &Client,
        served: &ServedKinds,
        namespace: String,
    ) -> Result<Self, CliError> {
        if served.of(GATEWAY_API, "Gateway").is_none() {
            return Err(CliError::unreached("the API server serves no Gateways").next(
                "install the definitions of the Gateway API, choose another cluster with --context, or give the \
                 objects with -f",
            ));
        }
        let (kinds, gaps) = (PolicyKinds::known(), Gaps::default());
        let mut found =
            Self { namespace, kinds, objects: Vec::new(), unlisted: Vec::new(), gaps, has_classes: false };
        found.add_labelled_kinds(client, served).await;
        let policies: Vec<(String, String)> =
            found.kinds.names().map(|(_, group, kind)| (group.to_owned(), kind.to_owned())).collect();
        let nodes = path_kinds().map(|(group, kind)| (group.to_owned(), kind.to_owned()));
        let wanted = nodes.chain(policies);
        let resources: Vec<&ServedResource> =
            wanted.filter_map(|(group, kind)| served.of(&group, &kind)).collect();
        let _progress = ProgressLine::start(&format!("listing objects of {} kinds", resources.len()));
        let default_namespace = found.namespace.clone();
        let lists = resources.into_iter().map(|resource| {
            let namespace = default_namespace.as_str();
            async move { (resource, list(client, resource, namespace).await) }
        });
        let mut lists = stream::iter(lists).buffered(CONCURRENCY);
        while let Some((resource, (objects, problem))) = lists.next().await {
            found.add(resource, objects, problem)?;
        }
        Ok(found)
    }

    /// Who may not list definitions sees the policies of the kinds that are known by name.
    async fn add_labelled_kinds(&mut self, client: &Client, served: &ServedKinds) {
        let Some(definitions) = served.of("apiextensions.k8s.io", "CustomResourceDefinition") else { return };
        let selection = Selection { labels: Some(POLICY_LABEL), metadata_only: true, ..Selection::default() };
        let found = match reader::list(client, definitions, &selection).await {
            Ok(found) => found,
            Err(error) => return self.gaps.add(&definitions.name(), problem(&error)),
        };
        for definition in &found {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            let label = definition["metadata"]["labels"][POLICY_LABEL].as_str().unwrap_or_default();
            if let Some(resource) = served.all().find(|resource| resource.name() == name) {
                self.kinds.add_labelled(&resource.api.group, &resource.api.kind, label);
            }
        }
    }

    fn add(
        &mut self,
        resource: &ServedResource,
        objects: Option<Vec<Value>>,
        problem: Option<ListProblem>,
    ) -> Result<(), CliError> {
        let (group, kind) = (resource.api.group.as_str(), resource.api.kind.as_str());
        if objects.is_some() {
            self.gaps.seen();
            self.has_classes |= (group, kind) == (GATEWAY_API, "GatewayClass");
        }
        self.objects.extend(objects.into_iter().flatten());
        if self.objects.len() > MAX_OBJECTS {
            let message = format!("the cluster has more than {MAX_OBJECTS} Gateways, routes and policies");
            return Err(CliError::refused(message).next("give those that matter with -f"));
        }
        let Some(problem) = problem else { return Ok(()) };
        if (group, kind) == (GATEWAY_API, "Gateway") && !matches!(problem, ListProblem::OnlyIn(_)) {
            self.gaps.add(&resource.name(), problem);
            let why = self.gaps.lines().join("\n");
            return Err(CliError::refused("without Gateways no path is known").why(why).next(format!(
                "ask an administrator for the verb list on {}, or give the objects with -f",
                resource.name()
            )));
        }
        let listed_namespace = match &problem {
            ListProblem::OnlyIn(namespace) => Some(namespace.clone()),
            _ => None,
        };
        let name = self.kinds.name_of(group, kind).unwrap_or(kind).to_owned();
        self.unlisted.push(UnlistedKind { kind: name, listed_namespace });
        self.gaps.add(&resource.name(), problem);
        Ok(())
    }
}

/// All objects of a kind, or those of one namespace where the caller may not list all.
async fn list(
    client: &Client,
    resource: &ServedResource,
    namespace: &str,
) -> (Option<Vec<Value>>, Option<ListProblem>) {
    let error = match reader::list(client, resource, &Selection::default()).await {
        Ok(objects) => return (Some(objects), None),
        Err(error) => error,
    };
    if reader::code(&error) == Some(403) && resource.namespaced {
        let selection = Selection { namespace: Some(namespace), ..Selection::default() };
        if let Ok(objects) = reader::list(client, resource, &selection).await {
            return (Some(objects), Some(ListProblem::OnlyIn(namespace.to_owned())));
        }
    }
    (None, Some(problem(&error)))
}

fn problem(error: &kube::Error) -> ListProblem {
    match reader::code(error) {
        Some(403) => ListProblem::Forbidden,
        _ => ListProblem::Failed(reader::api_message(error)),
    }
}
