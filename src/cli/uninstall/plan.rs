//! What there is to remove, read before anything is removed.

use interlock_core::api::meta;
use interlock_core::api::meta::install;
use interlock_core::kinds::Kinds;
use interlock_kudo::api::Instance;
use interlock_kudo::instance::change::lock;
use kube::Client;
use serde::Deserialize as _;
use serde_json::Value;

use crate::cli::common::discovery::ServedResource;
use crate::cli::common::installation::Installation;
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};
use crate::install::removal;
use crate::install::removal::RemovedKind;
use crate::install::{InstallOptions, crds};

/// An object to remove, or to change.
#[derive(Clone, Debug)]
pub(super) struct RemovalTarget {
    /// Its kind.
    pub(super) resource: ServedResource,
    /// Namespace; empty for none.
    pub(super) namespace: String,
    pub(super) name: String,
    /// As it was read.
    pub(super) object: Value,
}

impl RemovalTarget {
    fn of(resource: &ServedResource, object: Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { resource: resource.clone(), namespace: text("namespace"), name: text("name"), object }
    }
}

impl std::fmt::Display for RemovalTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) };
        write!(f, "{} {place}{}", self.resource.api.kind, self.name)
    }
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Delete,
    /// Deletes it, and waits until it is gone.
    DeleteFully,
    /// Takes our finalizer off an Instance.
    Release,
    /// Takes off a label that the process wrote.
    Unlabel,
}

/// Everything to remove, in order.
pub(super) struct RemovalPlan {
    /// Namespace of the process.
    pub(super) namespace: String,
    /// Webhook configurations, bindings and policies, and the Deployments.
    pub(super) first: Vec<(Removal, RemovalTarget)>,
    /// The Lease, if there is one.
    pub(super) lease: Option<RemovalTarget>,
    /// What a process that leads would write again.
    pub(super) then: Vec<(Removal, RemovalTarget)>,
    /// What stays, for people.
    notes: Vec<String>,
}

/// Why nothing is removed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// What cannot be read is not known to be absent.
    #[error("{0:#}; nothing was removed: run this as a user who may read it, such as a cluster-admin")]
    Unreadable(anyhow::Error),
    /// A definition would take objects of people with it.
    #[error(
        "there are {count} {kind}: deleting their definition deletes them, and what they own; delete them first, \
         or leave out --crds"
    )]
    InUse {
        /// Plural.
        kind: String,
        /// How many there are.
        count: usize,
    },
}

impl RemovalPlan {
    /// Reads what there is, with the caller's rights. The outer error: the cluster is not reached.
    pub(super) async fn read(
        client: &Client,
        namespace: Option<&str>,
        kinds: Kinds,
        with_definitions: bool,
    ) -> anyhow::Result<Result<Self, Refused>> {
        let reading = Reading { installation: Installation::read(client, namespace, kinds).await? };
        let read = reading.plan(with_definitions).await;
        Ok(read.unwrap_or_else(|error| Err(Refused::Unreadable(error))))
    }

    /// Whether there is nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.then.is_empty()
    }

    /// One line an object, for people.
    pub(super) fn describe(&self) -> String {
        let line = |(removal, target): &(Removal, RemovalTarget)| match removal {
            Removal::Delete | Removal::DeleteFully => format!("delete    {target}\n"),
            Removal::Release => format!("release   {target} from the finalizer {}\n", meta::FINALIZER),
            Removal::Unlabel => format!("unlabel   {target} ({})\n", meta::FLAVOR_SOURCE),
        };
        let notes = self.notes.iter().map(|note| format!("note      {note}\n"));
        self.first.iter().chain(&self.then).map(line).chain(notes).collect()
    }
}

const DEFINITIONS_STAY: &str =
    "the definitions stay, and with them all Operators, OperatorVersions, Instances and Interlocks";

/// Reads with the caller's rights.
struct Reading {
    installation: Installation,
}

impl Reading {
    async fn plan(&self, with_definitions: bool) -> anyhow::Result<Result<RemovalPlan, Refused>> {
        self.check()?;
        let options = &self.installation.options;
        let first = [&removal::GUARDS[..], &removal::PROCESS].concat();
        let first = self.ours(&first, options).await?;
        let (finalized, mut notes) = self.instances().await?;
        let records = self.records(options).await?;
        let lease = records.iter().find(|record| record.resource.api.kind == "Lease").cloned();
        let rest = self.ours(&removal::REST, options).await?;
        let (own_namespace, kept) = self.namespace(options).await?;
        notes.extend(kept);
        let definitions = if with_definitions {
            match self.definitions().await? {
                Ok(definitions) => definitions,
                Err(refused) => return Ok(Err(refused)),
            }
        } else {
            notes.push(DEFINITIONS_STAY.to_owned());
            Vec::new()
        };
        let each = |removal, targets: Vec<RemovalTarget>| {
            targets.into_iter().map(move |target| (removal, target)).collect::<Vec<_>>()
        };
        let then = [
            each(Removal::Release, finalized),
            each(Removal::Unlabel, self.labelled().await?),
            each(Removal::Delete, records),
            each(Removal::Delete, rest),
            each(Removal::DeleteFully, own_namespace.into_iter().collect()),
            each(Removal::Delete, definitions),
        ];
        let (first, then) = (each(Removal::Delete, first), then.concat());
        Ok(Ok(RemovalPlan { namespace: options.namespace.clone(), first, lease, then, notes }))
    }

    /// Whether the options of the installation are known: what is its own depends on them.
    fn check(&self) -> anyhow::Result<()> {
        let Installation { mutating, validating, deployments, .. } = &self.installation;
        for (read, (_, kind)) in [mutating, validating].into_iter().zip(removal::GUARDS) {
            if let ReadOutcome::Unknown(why) = read {
                anyhow::bail!("{kind} {} cannot be read: {why}", install::WEBHOOK_CONFIGURATION);
            }
        }
        match deployments {
            Ok(_) => Ok(()),
            Err(why) => Err(anyhow::anyhow!("deployments.apps cannot be listed: {why}")),
        }
    }

    async fn get(
        &self,
        (group, kind): RemovedKind,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Option<RemovalTarget>> {
        let Some(resource) = self.installation.served.of(group, kind) else { return Ok(None) };
        match reader::get(&self.installation.client, resource, namespace, name).await {
            ReadOutcome::There(object) => Ok(Some(RemovalTarget::of(resource, (*object).clone()))),
            ReadOutcome::Missing => Ok(None),
            ReadOutcome::Unknown(why) => Err(anyhow::anyhow!("{kind} {name} cannot be read: {why}")),
        }
    }

    async fn list(
        &self,
        kind: RemovedKind,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> anyhow::Result<Vec<RemovalTarget>> {
        self.selected(kind, Selection { namespace, labels, ..Selection::default() }).await
    }

    async fn selected(
        &self,
        (group, kind): RemovedKind,
        selection: Selection<'_>,
    ) -> anyhow::Result<Vec<RemovalTarget>> {
        let Some(resource) = self.installation.served.of(group, kind) else { return Ok(Vec::new()) };
        let found = reader::list(&self.installation.client, resource, &selection).await.map_err(|error| {
            anyhow::anyhow!("{} cannot be listed: {}", resource.name(), reader::api_message(&error))
        })?;
        Ok(found.into_iter().map(|object| RemovalTarget::of(resource, object)).collect())
    }

    /// The objects of these kinds that are ours.
    async fn ours(
        &self,
        kinds: &[RemovedKind],
        options: &InstallOptions,
    ) -> anyhow::Result<Vec<RemovalTarget>> {
        let mut all = Vec::new();
        for kind in kinds {
            let found = self.list(*kind, None, Some(removal::SELECTOR)).await?;
            all.extend(found.into_iter().filter(|target| removal::is_ours(&target.object, options)));
        }
        Ok(all)
    }

    /// Instances with our finalizer, and what people should know of them.
    async fn instances(&self) -> anyhow::Result<(Vec<RemovalTarget>, Vec<String>)> {
        let all = self.list((meta::KUDO_GROUP, "Instance"), None, None).await?;
        let running = all.iter().filter(|target| {
            Instance::deserialize(&target.object).is_ok_and(|instance| lock::of(&instance).is_some())
        });
        let running: Vec<String> = running.map(ToString::to_string).collect();
        let finalized = |target: &RemovalTarget| removal::without_finalizer(&target.object).is_some();
        let (finalized, _): (Vec<_>, Vec<_>) = all.into_iter().partition(finalized);
        let mut notes = Vec::new();
        if !running.is_empty() {
            notes.push(format!(
                "the plan of {} is scheduled or runs: it stops where it is",
                running.join(", ")
            ));
        }
        let going =
            finalized.iter().filter(|target| !target.object["metadata"]["deletionTimestamp"].is_null());
        let going: Vec<String> = going.map(ToString::to_string).collect();
        if !going.is_empty() {
            notes.push(format!("{} is being deleted, and goes without its plan cleanup", going.join(", ")));
        }
        Ok((finalized, notes))
    }

    /// What the labeller of flavor sources marked.
    async fn labelled(&self) -> anyhow::Result<Vec<RemovalTarget>> {
        let selector = format!("{}={}", meta::FLAVOR_SOURCE, meta::FLAVOR_SOURCE_OURS);
        let mut all = Vec::new();
        for kind in ["ConfigMap", "Secret"] {
            let selection =
                Selection { labels: Some(&selector), metadata_only: true, ..Selection::default() };
            all.extend(self.selected(("", kind), selection).await?);
        }
        Ok(all)
    }

    async fn records(&self, options: &InstallOptions) -> anyhow::Result<Vec<RemovalTarget>> {
        let mut all = Vec::new();
        for (kind, name) in removal::RECORDS {
            all.extend(self.get(kind, &options.namespace, name).await?);
        }
        Ok(all)
    }

    /// The namespace, where it goes; else why it stays.
    async fn namespace(
        &self,
        options: &InstallOptions,
    ) -> anyhow::Result<(Option<RemovalTarget>, Option<String>)> {
        let name = options.namespace.as_str();
        let Some(found) = self.get(("", "Namespace"), "", name).await? else { return Ok((None, None)) };
        if !removal::is_ours(&found.object, options) {
            return Ok((None, Some(format!("the namespace {name} stays, as it was not rendered"))));
        }
        for kind in removal::IN_USE {
            let foreign = |target: &RemovalTarget| {
                let labels = &target.object["metadata"]["labels"];
                labels["app.kubernetes.io/part-of"] != "interlock"
                    && labels["app.kubernetes.io/name"] != "interlock"
            };
            let found = self.list(kind, Some(name), None).await?;
            if let Some(foreign) = found.iter().find(|target| foreign(target)) {
                return Ok((None, Some(format!("the namespace {name} stays, as it holds {foreign}"))));
            }
        }
        Ok((Some(found), None))
    }

    async fn definitions(&self) -> anyhow::Result<Result<Vec<RemovalTarget>, Refused>> {
        for kind in ["Instance", "OperatorVersion", "Operator"] {
            let count = self.list((meta::KUDO_GROUP, kind), None, None).await?.len();
            if count > 0 {
                return Ok(Err(Refused::InUse { kind: format!("{kind}s"), count }));
            }
        }
        let mut all = Vec::new();
        for crd in crds::all() {
            let name = crd.metadata.name.unwrap_or_default();
            all.extend(self.get(("apiextensions.k8s.io", "CustomResourceDefinition"), "", &name).await?);
        }
        Ok(Ok(all))
    }
}
