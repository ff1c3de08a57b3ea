//! The DataPlane of a command.

use clap::Args;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::revision;
use interlock_core::api::revision::PartsReader;
use interlock_core::api::stamp::SpecHash;
use interlock_kong::api as kong;
use interlock_kong::data_plane::flavor::gateway::unread_spec;
use interlock_kong::data_plane::rollout::report::verbs::VerbRefusal;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;

use crate::cli::common::error::{CliError, api, reason};
use crate::cli::common::flags::Limit;
use crate::cli::common::object_ref::{ObjectKind, ObjectRef, bare};
use crate::cli::common::target::TargetFlags;

/// Most ControllerRevisions of a history that are read.
const LISTED: u32 = 500;

const DATA_PLANE: ObjectKind = ObjectKind {
    api_version: kong::API_VERSION,
    kind: "DataPlane",
    resource: "dataplanes.gateway-operator.konghq.com",
    definitions: "kong-crds",
};

/// Which DataPlane, as kubectl prints it or by its name.
#[derive(Args, Debug)]
pub(super) struct DataPlaneName {
    /// The DataPlane: NAME or dataplane/NAME.
    #[arg(value_name = "NAME")]
    name: String,
}

impl DataPlaneName {
    pub(super) fn get(&self) -> &str {
        bare(&self.name)
    }
}

/// Flags of a verb.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct VerbFlags {
    #[command(flatten)]
    pub(super) name: DataPlaneName,
    /// Wait until it is done: 1 if it fails, 3 if it is not done in time.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) limit: Limit,
}

/// A DataPlane of a cluster.
pub(in crate::cli) type DataPlaneRef = ObjectRef<DynamicObject>;

/// The live spec that a stamp refers to.
#[derive(Debug, Default)]
pub(in crate::cli) struct KeptLiveSpec {
    /// The spec, where it was read.
    pub(in crate::cli) spec: Option<Value>,
    /// Why it was not.
    pub(in crate::cli) unread: Option<String>,
}

impl ObjectRef<DynamicObject> {
    pub(in crate::cli) async fn connect(flags: &TargetFlags, name: &str) -> Result<Self, CliError> {
        let (client, namespace) = flags.connect().await?;
        Ok(Self::of(client, &namespace, name))
    }

    pub(in crate::cli) fn of(client: Client, namespace: &str, name: &str) -> Self {
        Self::untyped(client, &DATA_PLANE, NamespacedName::new(namespace, name))
    }

    /// The live spec, where the stamp only refers to it and something else is stored.
    pub(in crate::cli) async fn kept(&self, object: &Value) -> KeptLiveSpec {
        let Some(hash) = unread_spec(object) else { return KeptLiveSpec::default() };
        match self.revision(object, &hash).await {
            Ok(spec) => KeptLiveSpec { spec: Some(spec), unread: None },
            Err(why) => KeptLiveSpec { spec: None, unread: Some(why) },
        }
    }

    /// The ControllerRevisions of the history.
    pub(super) async fn history(&self, object: &Value) -> Result<Vec<Value>, CliError> {
        let revisions: Api<ControllerRevision> = Api::namespaced(self.client.clone(), &self.namespace);
        let uid = meta_str(object, "uid").unwrap_or_default();
        let wanted = ListParams::default().labels(&format!("{}={uid}", meta::HISTORY_OF)).limit(LISTED);
        let found = revisions.list(&wanted).await;
        let what = || format!("the ControllerRevisions of {self} cannot be read");
        let values = found.map_err(api(what()))?.items.into_iter().map(|revision| {
            let mut value = serde_json::to_value(revision)?;
            // Items of lists carry no kind.
            value["apiVersion"] = revision::API_VERSION.into();
            value["kind"] = revision::KIND.into();
            Ok(value)
        });
        let read = values.collect::<Result<_, serde_json::Error>>();
        read.map_err(|error| CliError::refused(what()).why(error.to_string()))
    }

    async fn revision(&self, object: &Value, hash: &SpecHash) -> Result<Value, String> {
        let revisions: Api<ControllerRevision> = Api::namespaced(self.client.clone(), &self.namespace);
        let uid = meta_str(object, "uid").unwrap_or_default();
        let mut parts = PartsReader::default();
        while let Some(number) = parts.next() {
            let name = revision::name(&self.name, uid, hash, number);
            let unread = |why: &str| format!("ControllerRevision {name} {why}");
            let found = revisions
                .get_opt(&name)
                .await
                .map_err(|error| unread(&format!("cannot be read: {}", reason(&error))))?;
            let found = found.ok_or_else(|| unread("does not exist"))?;
            let part = serde_json::to_value(found).map_err(|error| unread(&error.to_string()))?;
            parts.take(&part).ok_or_else(|| unread("keeps no spec"))?;
        }
        let spec = parts.spec(hash).and_then(|text| serde_json::from_str(&text).ok());
        spec.ok_or_else(|| format!("the ControllerRevisions of spec {} keep another one", hash.short()))
    }

    /// The error of a verb that cannot be carried out.
    pub(in crate::cli) fn refusal(&self, what: &str, why: &VerbRefusal) -> CliError {
        let arguments = self.arguments();
        let error = CliError::refused(format!("{self} is not {what}")).why(why.to_string());
        match why {
            VerbRefusal::InPlace => error.next("set spec.deployment.rollout.strategy.blueGreen in a change of its own"),
            VerbRefusal::NothingStaged => {
                error.next(format!("look at it: `interlock rollout status {arguments}`"))
            }
            VerbRefusal::Unrecorded(_) => error.next(format!(
                "compare the spec with what the pods run (`kubectl describe dataplane {arguments}`): the next write of it \
                 records the stored spec as live"
            )),
            VerbRefusal::Referenced(_) => error.next(format!(
                "ask for the verb get on controllerrevisions.apps in namespace {}, or write the live spec back yourself",
                self.namespace
            )),
            VerbRefusal::SourcedFlavor(_) => {
                error.next("write the former value there, and nothing is staged any more")
            }
            VerbRefusal::InProgress => {
                error.next(format!("wait for its end: `interlock rollout status {arguments} --watch`"))
            }
        }
    }
}
