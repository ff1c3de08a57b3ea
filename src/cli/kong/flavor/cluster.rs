//! A gateway of a cluster and its context, with the caller's rights.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _};
use interlock_core::api::object::meta_str;
use interlock_kong::api as kong;
use interlock_kong::data_plane::flavor::gateway::sources_of;
use interlock_kong::data_plane::flavor::running::rolled_out;
use interlock_kong::data_plane::flavor::running::rolled_out::is_rolled_out;
use interlock_kong::data_plane::flavor::sources::{FlavorSource, GivenSources, KeyLookup, Sources};
use interlock_kong::data_plane::labelled::{GUARDED_DEPLOYMENTS, GUARDED_SERVICES};
use kube::Client;
use serde_json::{Value, json};

use crate::cli::common::discovery::{ServedKinds, ServedResource};
use crate::cli::common::error::CliError;
use crate::cli::common::progress::ProgressLine;
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};
use crate::cli::common::target::TargetFlags;

/// Concurrent lists.
const CONCURRENCY: usize = 4;

/// The objects that were read.
pub(super) struct GatewayInputs {
    /// The gateway, with the running pod template.
    pub(super) gateway: Value,
    pub(super) sources: FoundSources,
    /// Routes, other gateways and their ingress controllers.
    pub(super) objects: Vec<Value>,
    /// Notes on the reads, above all on missing ones.
    pub(super) notes: Vec<String>,
}

/// The sources that were looked up.
#[derive(Default)]
pub(super) struct FoundSources {
    found: GivenSources,
    missing: BTreeSet<FlavorSource>,
}

impl Sources for FoundSources {
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup {
        if self.missing.contains(source) { KeyLookup::NoObject } else { self.found.ask(source, key) }
    }
}

/// The kinds to list: group, kind, label selector.
fn wanted() -> [(&'static str, &'static str, Option<String>); 10] {
    const ROUTES: &str = "gateway.networking.k8s.io";
    [
        ("networking.k8s.io", "Ingress", None),
        (ROUTES, "HTTPRoute", None),
        (ROUTES, "GRPCRoute", None),
        (ROUTES, "TLSRoute", None),
        (ROUTES, "Gateway", None),
        (ROUTES, "GatewayClass", None),
        (kong::GROUP, "DataPlane", None),
        (kong::GROUP, "ControlPlane", None),
        (GUARDED_DEPLOYMENTS.group, GUARDED_DEPLOYMENTS.kind, Some(GUARDED_DEPLOYMENTS.selector())),
        (GUARDED_SERVICES.group, GUARDED_SERVICES.kind, Some(GUARDED_SERVICES.selector())),
    ]
}

/// Reads a gateway, called `NAME` or `KIND/NAME`, and its context.
pub(super) async fn read_gateway(target: &TargetFlags, name: &str) -> anyhow::Result<GatewayInputs> {
    let (client, namespace) = target.connect().await?;
    let served = ServedKinds::discover(&client).await?;
    let gateway = find(&client, &served, &namespace, name).await?;
    let mut seen =
        GatewayInputs { sources: FoundSources::default(), objects: Vec::new(), notes: Vec::new(), gateway };
    seen.read_live(&client, &served, &namespace).await;
    seen.read_sources(&client, &served).await?;
    seen.read_surroundings(&client, &served, &namespace).await;
    Ok(seen)
}

/// The gateway; the kind distinguishes a DataPlane and a Deployment of one name.
pub(super) async fn find(
    client: &Client,
    served: &ServedKinds,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Value> {
    let (kind, name) = match name.split_once('/') {
        Some((kind, name)) => (Some(kind.to_lowercase()), name),
        None => (None, name),
    };
    let kinds = [(kong::GROUP, "DataPlane"), ("apps", "Deployment")];
    let meant = |it: &str| {
        kind.as_ref().is_none_or(|kind| {
            let it = it.to_lowercase();
            kind.split('.').next().is_some_and(|kind| kind == it || kind == format!("{it}s"))
        })
    };
    let (mut found, mut why) = (Vec::new(), Vec::new());
    for (group, kind) in kinds.into_iter().filter(|(_, kind)| meant(kind)) {
        let Some(resource) = served.of(group, kind) else {
            why.push(format!("{kind}: not served by this cluster"));
            continue;
        };
        match reader::get(client, resource, namespace, name).await {
            ReadOutcome::There(object) => found.push((*object).clone()),
            ReadOutcome::Missing => why.push(format!("{kind}: none of that name")),
            ReadOutcome::Unknown(api_message) => why.push(format!("{kind}: {api_message}")),
        }
    }
    match <[Value; 1]>::try_from(found) {
        Ok([gateway]) => Ok(gateway),
        Err(found) if found.is_empty() && why.is_empty() => {
            Err(CliError::usage("a gateway is a DataPlane or a Deployment")
                .next(format!("write dataplane/{name} or deployment/{name}"))
                .into())
        }
        Err(found) if found.is_empty() => {
            Err(CliError::unreached(format!("no gateway {namespace}/{name} was found"))
                .why(why.join("; "))
                .next("choose another namespace with -n")
                .into())
        }
        Err(_) => Err(CliError::usage(format!("{namespace}/{name} is a DataPlane and a Deployment"))
            .next(format!("write dataplane/{name} or deployment/{name}"))
            .into()),
    }
}

impl GatewayInputs {
    /// During a rollout of a Deployment, the template of its last ready ReplicaSet is the running one.
    async fn read_live(&mut self, client: &Client, served: &ServedKinds, namespace: &str) {
        if self.gateway["kind"] != "Deployment" || is_rolled_out(&self.gateway) {
            return;
        }
        let all = match served.of("apps", "ReplicaSet") {
            Some(resource) => list(client, resource, Some(namespace), None).await,
            None => return,
        };
        let under_way = "a rollout is under way";
        let sets = match all {
            Ok(sets) => sets,
            Err(error) => {
                let why = reader::api_message(&error);
                self.notes
                    .push(format!("{under_way}, and what ran before it was not seen: ReplicaSets ({why})"));
                return;
            }
        };
        match rolled_out::find(&self.gateway, &sets) {
            rolled_out::RolloutEvidence::Earlier(live) => {
                self.gateway["spec"]["template"] = live["spec"]["template"].clone();
                let name = meta_str(live, "name").unwrap_or_default();
                self.notes.push(format!("{under_way}: the plan begins with what runs, ReplicaSet {name}"));
            }
            rolled_out::RolloutEvidence::Current { .. } => {}
            rolled_out::RolloutEvidence::Untold => self.notes.push(format!(
                "{under_way}, and no ReplicaSet before it has all its pods ready: the plan begins with what is stored"
            )),
        }
    }

    async fn read_sources(&mut self, client: &Client, served: &ServedKinds) -> anyhow::Result<()> {
        for source in sources_of(&self.gateway) {
            let resource = served.of("", source.kind().0).context("the API server serves no core kinds")?;
            match reader::get(client, resource, &source.name.namespace, &source.name.name).await {
                ReadOutcome::There(object) => self.sources.found.add(&object, ""),
                ReadOutcome::Missing => drop(self.sources.missing.insert(source)),
                ReadOutcome::Unknown(why) => self.notes.push(format!("not seen: {source} ({why})")),
            }
        }
        Ok(())
    }

    async fn read_surroundings(&mut self, client: &Client, served: &ServedKinds, namespace: &str) {
        let wanted = wanted();
        let _progress = ProgressLine::start("reading routes and other gateways");
        let lists = wanted.iter().map(|(group, kind, labels)| async move {
            let Some(resource) = served.of(group, kind) else { return (*kind, None) };
            (*kind, Some(everywhere(client, resource, namespace, labels.as_deref()).await))
        });
        let mut lists = stream::iter(lists).buffered(CONCURRENCY);
        let mut absent = Vec::new();
        let mut blind: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        while let Some((kind, listed)) = lists.next().await {
            match listed {
                None => absent.push(kind),
                Some((objects, why)) => {
                    self.objects.extend(objects);
                    why.into_iter().for_each(|why| blind.entry(why).or_default().push(kind));
                }
            }
        }
        if !absent.is_empty() {
            self.notes.push(format!("not served by this cluster, so there are none: {}", absent.join(", ")));
        }
        let hidden = |(why, kinds): (String, Vec<&str>)| {
            format!("not judged by what was not seen ({why}): {}", kinds.join(", "))
        };
        self.notes.extend(blind.into_iter().map(hidden));
        if !served.stale.is_empty() {
            self.notes.push(format!("groups whose servers do not answer: {}", served.stale.join(", ")));
        }
    }
}

/// All objects of a kind, or those of one namespace and the reason.
async fn everywhere(
    client: &Client,
    resource: &ServedResource,
    namespace: &str,
    labels: Option<&str>,
) -> (Vec<Value>, Option<String>) {
    let error = match list(client, resource, None, labels).await {
        Ok(objects) => return (objects, None),
        Err(error) => error,
    };
    if reader::code(&error) != Some(403) {
        return (Vec::new(), Some(reader::api_message(&error)));
    }
    match list(client, resource, Some(namespace), labels).await {
        Ok(objects) => (objects, Some(format!("outside of namespace {namespace}, as you may not list all"))),
        Err(error) if reader::code(&error) == Some(403) => {
            (Vec::new(), Some("you may not list them".to_owned()))
        }
        Err(error) => (Vec::new(), Some(reader::api_message(&error))),
    }
}

async fn list(
    client: &Client,
    resource: &ServedResource,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<Value>, kube::Error> {
    let selection = Selection { namespace, labels, ..Selection::default() };
    let mut objects = reader::list(client, resource, &selection).await?;
    objects.iter_mut().for_each(|object| object["metadata"]["managedFields"] = json!(null));
    Ok(objects)
}
