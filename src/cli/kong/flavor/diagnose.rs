//! `interlock flavor diagnose`: finds what blocks gateways of a cluster, with the caller's rights.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use futures::stream::{self, StreamExt as _};
use http::Request;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::watched::Labelled;
use interlock_kong::api as kong;
use interlock_kong::data_plane::flavor::diagnosis::{Diagnosis, PodDiagnosis, Producer, Symptoms};
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::group::ProducerGroup;
use interlock_kong::data_plane::flavor::kong_container;
use interlock_kong::data_plane::flavor::running::report::StatusReport;
use interlock_kong::data_plane::flavor::running::{Pod, RouterState, Selector, pod};
use interlock_kong::data_plane::flavor::sources::Nothing;
use interlock_kong::data_plane::labelled::GUARDED_DEPLOYMENTS;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::cluster;
use crate::cli::common::discovery::ServedKinds;
use crate::cli::common::error::CliError;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::progress::ProgressLine;
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};
use crate::cli::common::target::{AllNamespaces, TargetFlags};
use crate::cluster::path;

/// Timeout of a probe of one pod, through the API server.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Concurrent probes of pods.
const CONCURRENCY: usize = 8;

/// Flags of `interlock flavor diagnose`.
#[derive(Args, Debug)]
pub(super) struct DiagnoseArguments {
    /// The gateway: NAME, dataplane/NAME or deployment/NAME; without, every gateway of the namespace.
    #[arg(value_name = "NAME", conflicts_with = "all_namespaces")]
    name: Option<String>,
    #[command(flatten)]
    all: AllNamespaces,
    #[command(flatten)]
    form: OutputFlag,
    #[command(flatten)]
    target: TargetFlags,
}

/// Prints the findings; returns whether there are none.
pub(super) async fn run(arguments: &DiagnoseArguments) -> anyhow::Result<bool> {
    let (client, namespace) = arguments.target.connect().await?;
    let scope = arguments.all.scope(&arguments.target, &namespace)?.map(str::to_owned);
    let served = ServedKinds::discover(&client).await?;
    let mut cluster_reader = ClusterReader { client, served, namespace, unseen: BTreeMap::new() };
    let gateways = match &arguments.name {
        Some(name) => vec![
            cluster::find(&cluster_reader.client, &cluster_reader.served, &cluster_reader.namespace, name)
                .await?,
        ],
        None => cluster_reader.gateways(scope.as_deref()).await,
    };
    if gateways.is_empty() {
        let hidden: Vec<String> =
            cluster_reader.text().iter().map(|line| format!("not seen: {line}")).collect();
        let place = scope.map_or_else(|| "any namespace".to_owned(), |scope| format!("namespace {scope}"));
        return Err(CliError::unreached(format!("no gateway was found in {place}"))
            .why(hidden.join("\n"))
            .next("choose another namespace with -n")
            .into());
    }
    let progress = ProgressLine::start("reading pods and asking them for their flavor");
    let mut found = Vec::new();
    for gateway in &gateways {
        cluster_reader.namespace = meta_str(gateway, "namespace").unwrap_or_default().to_owned();
        found.push(cluster_reader.diagnose(gateway).await?);
    }
    drop(progress);
    let json: Vec<Value> = found.iter().map(Diagnosis::json).collect();
    let text = || found.iter().map(Diagnosis::to_string).collect::<Vec<_>>().join("\n");
    arguments.form.output.print(&json, text)?;
    Ok(found.iter().all(Diagnosis::is_well))
}

struct ClusterReader {
    client: Client,
    served: ServedKinds,
    namespace: String,
    /// Kinds that could not be read, and why.
    unseen: BTreeMap<String, String>,
}

impl ClusterReader {
    fn text(&self) -> Vec<String> {
        self.unseen.iter().map(|(what, why)| format!("{what}: {why}")).collect()
    }

    /// Objects of a kind; records a failure.
    async fn list(
        &mut self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Vec<Value> {
        let Some(resource) = self.served.of(group, kind) else {
            self.unseen.insert(format!("{kind}s"), "not served by this cluster".to_owned());
            return Vec::new();
        };
        let selection = Selection { namespace, labels, ..Selection::default() };
        match reader::list(&self.client, resource, &selection).await {
            Ok(objects) => objects,
            Err(error) => {
                let place =
                    namespace.map_or_else(String::new, |namespace| format!(" of namespace {namespace}"));
                self.unseen.insert(format!("{kind}s{place}"), reader::api_message(&error));
                Vec::new()
            }
        }
    }

    async fn labelled(&mut self, labelled: &Labelled, namespace: Option<&str>) -> Vec<Value> {
        self.list(labelled.group, labelled.kind, namespace, Some(&labelled.selector())).await
    }

    /// DataPlanes and labelled Deployments that run Kong, of one namespace or of all.
    async fn gateways(&mut self, namespace: Option<&str>) -> Vec<Value> {
        let mut all = self.list(kong::GROUP, "DataPlane", namespace, None).await;
        let deployments = self.labelled(&GUARDED_DEPLOYMENTS, namespace).await;
        all.extend(deployments.into_iter().filter(kong_container::may_be_in));
        all
    }

    async fn diagnose(&mut self, object: &Value) -> anyhow::Result<Diagnosis> {
        let namespace = self.namespace.clone();
        let gateway = Gateway::read(object, &namespace, &Nothing)?.context("it is no gateway")?;
        let services = self.list("", "Service", Some(&namespace), None).await;
        let producer = self.producer(object, &services).await?;
        let objects = self.pods(object).await;
        let client = &self.client;
        let pods = stream::iter(objects).map(|pod| async move { current_state(client, &pod).await });
        let pods: Vec<PodDiagnosis> = pods.buffered(CONCURRENCY).collect().await;
        let staged = if gateway.spec.staged { ", and a change is staged first" } else { "" };
        Ok(Diagnosis::of(&Symptoms {
            subject: &gateway.subject,
            says: format!("says {}{staged}", gateway.spec.reading.effective),
            pods: &pods,
            services: &services.iter().map(Selector::of).collect::<Vec<_>>(),
            producer: producer.as_ref(),
            unseen: self.text(),
            now: Timestamp::now(),
        }))
    }

    /// Pods of the ReplicaSets of its Deployments, by name.
    async fn pods(&mut self, object: &Value) -> Vec<Value> {
        let namespace = self.namespace.clone();
        let deployments: BTreeSet<String> = match object["kind"] == "DataPlane" {
            true => self.owned("apps", "Deployment", &BTreeSet::from([uid(object)])).await,
            false => BTreeSet::from([uid(object)]),
        };
        let sets = self.owned("apps", "ReplicaSet", &deployments).await;
        let mut pods = self.list("", "Pod", Some(&namespace), None).await;
        pods.retain(|pod| pod::is_alive(pod) && pod::is_of(pod, &sets));
        pods.sort_by(|a, b| meta_str(a, "name").cmp(&meta_str(b, "name")));
        pods
    }

    async fn owned(&mut self, group: &str, kind: &str, owners: &BTreeSet<String>) -> BTreeSet<String> {
        let namespace = self.namespace.clone();
        let all = self.list(group, kind, Some(&namespace), None).await;
        all.iter().filter(|object| pod::is_of(object, owners)).map(uid).collect()
    }

    /// The ingress controller's Deployment of a gateway, as the rule about dialects finds it.
    async fn producer(&mut self, gateway: &Value, services: &[Value]) -> anyhow::Result<Option<Producer>> {
        let namespace = self.namespace.clone();
        let mut objects = self.labelled(&GUARDED_DEPLOYMENTS, Some(&namespace)).await;
        objects.extend(services.iter().cloned());
        let Some(group) = ProducerGroup::of(gateway, &objects, &self.namespace, &Nothing)? else {
            let how = "annotation interlock.dev/config-producer names it".to_owned();
            self.unseen.insert("the configuration producer".to_owned(), how);
            return Ok(None);
        };
        let name = group.producer.strip_prefix("Deployment ").unwrap_or(&group.producer);
        let Some((namespace, name)) = name.split_once('/') else { return Ok(None) };
        let name = NamespacedName::new(namespace, name);
        let found = match self.served.of("apps", "Deployment") {
            Some(resource) => reader::get(&self.client, resource, &name.namespace, &name.name).await,
            None => ReadOutcome::Missing,
        };
        let deployment = match found {
            ReadOutcome::There(deployment) => deployment,
            ReadOutcome::Missing => {
                self.unseen
                    .insert(format!("the configuration producer {name}"), "no such Deployment".to_owned());
                return Ok(None);
            }
            ReadOutcome::Unknown(why) => {
                self.unseen.insert(format!("the configuration producer {name}"), why);
                return Ok(None);
            }
        };
        let labels = pod::texts(&deployment["spec"]["selector"]["matchLabels"]);
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let pods = self.list("", "Pod", Some(&name.namespace), Some(&labels.join(","))).await;
        let since = pods.iter().filter(|pod| pod::is_alive(pod)).filter_map(created).min();
        Ok(Some(Producer { name, since }))
    }
}

/// The state of a pod; probed through the API server, which checks the caller's rights.
async fn current_state(client: &Client, object: &Value) -> PodDiagnosis {
    let why = match pod::endpoint(object) {
        Ok(endpoint) => match probe(client, object, endpoint.port).await {
            Ok(report) => return pod_diagnosis(object, RouterState::Reports(report.flavor)),
            Err(why) => why,
        },
        Err(why) => why,
    };
    let text = match pod::declared(object, &Nothing) {
        Ok(flavor) => RouterState::Declares(flavor, why),
        Err(unknown) => RouterState::Nothing(format!("{why}, and {unknown}")),
    };
    pod_diagnosis(object, text)
}

fn pod_diagnosis(object: &Value, text: RouterState) -> PodDiagnosis {
    let name = meta_str(object, "name").unwrap_or_default().to_owned();
    PodDiagnosis {
        pod: Pod { name, labels: pod::labels(object), reported: text },
        made: created(object).unwrap_or(Timestamp::UNIX_EPOCH),
        unready_since: pod::unready_since(object).and_then(|text| text.parse().ok()),
    }
}

async fn probe(client: &Client, object: &Value, port: u16) -> Result<StatusReport, String> {
    let text = |field| meta_str(object, field).unwrap_or_default();
    let pod = format!("{}:{port}", text("name"));
    let path = path::of("v1", Some(text("namespace")), "pods", &[&pod, "proxy"]);
    let path = path.map_err(|failure| failure.message)?;
    let request = Request::get(format!("{path}/")).body(Vec::new()).map_err(|error| error.to_string())?;
    match tokio::time::timeout(PROBE_TIMEOUT, client.request_text(request)).await {
        Err(_) => Err("its Admin API does not answer".to_owned()),
        Ok(Err(error)) if reader::code(&error) == Some(403) => {
            Err("you may not ask it: pods/proxy".to_owned())
        }
        Ok(Err(_)) => Err("its Admin API does not answer".to_owned()),
        Ok(Ok(body)) => StatusReport::read(body.as_bytes()),
    }
}

fn uid(object: &Value) -> String {
    meta_str(object, "uid").unwrap_or_default().to_owned()
}

fn created(object: &Value) -> Option<Timestamp> {
    meta_str(object, "creationTimestamp")?.parse().ok()
}
