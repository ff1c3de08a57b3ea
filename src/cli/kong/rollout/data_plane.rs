//! The DataPlane of a command.

use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use interlock_core::api::revision;
use interlock_core::api::stamp::SpecHash;
use interlock_kong::api as kong;
use interlock_kong::data_plane::flavor::gateway::referenced_spec;
use interlock_kong::data_plane::live_spec;
use interlock_kong::data_plane::rollout::verbs::VerbRefusal;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::cli::common::error::{CliError, api, reason};
use crate::cli::common::object_kind::ObjectKind;
use crate::cli::common::object_ref::ObjectRef;
use crate::cli::common::target::TargetFlags;

/// Most ControllerRevisions of a history that are read.
const LISTED: u32 = 500;

const DATA_PLANE: ObjectKind = ObjectKind {
    kind: "DataPlane",
    resource: "dataplanes.gateway-operator.konghq.com",
    definitions: "kong-crds",
};

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
    pub(in crate::cli) async fn connect(flags: &TargetFlags, name: String) -> Result<Self, CliError> {
        let (client, namespace) = flags.connect().await?;
        Ok(Self::of(client, &namespace, &name))
    }

    pub(in crate::cli) fn of(client: Client, namespace: &str, name: &str) -> Self {
        let kind = GroupVersionKind::gvk(kong::GROUP, kong::VERSION, "DataPlane");
        let resource = ApiResource::from_gvk_with_plural(&kind, "dataplanes");
        let objects = Api::namespaced_with(client.clone(), namespace, &resource);
        Self { client, objects, kind: &DATA_PLANE, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(in crate::cli) fn client(&self) -> &Client {
        &self.client
    }

    pub(in crate::cli) async fn get(&self) -> Result<Value, CliError> {
        value(self.read().await?)
    }

    /// Patches the object; `None` where it was changed since it was read.
    pub(in crate::cli) async fn patch(&self, patch: Patch<Value>) -> Result<Option<Value>, CliError> {
        self.patch_or_try(patch, false).await
    }

    /// The same; a dry run stores nothing.
    pub(super) async fn patch_or_try(
        &self,
        patch: Patch<Value>,
        dry_run: bool,
    ) -> Result<Option<Value>, CliError> {
        self.patched(&patch, dry_run).await?.map(value).transpose()
    }

    /// The live spec, where the stamp only refers to it and something else is stored.
    pub(in crate::cli) async fn kept(&self, object: &Value) -> KeptLiveSpec {
        let referenced = referenced_spec(object).filter(|hash| live_spec::hash(&object["spec"]) != *hash);
        let Some(hash) = referenced else { return KeptLiveSpec::default() };
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
        let what = || format!("the ControllerRevisions of DataPlane {} cannot be read", self.key());
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
        let (mut parts, mut count) = (Vec::new(), 1);
        while parts.len() < count.min(revision::MAX_PARTS) {
            let name = revision::name(&self.name, uid, hash, parts.len());
            let unread = |why: &str| format!("ControllerRevision {name} {why}");
            let found = revisions
                .get_opt(&name)
                .await
                .map_err(|error| unread(&format!("cannot be read: {}", reason(&error))))?;
            let found = found.ok_or_else(|| unread("does not exist"))?;
            let part = serde_json::to_value(found).map_err(|error| unread(&error.to_string()))?;
            count = revision::count(&part);
            parts.push(revision::data(&part).ok_or_else(|| unread("keeps no spec"))?);
        }
        let text = revision::unpack(&parts).filter(|text| SpecHash::of(text) == *hash);
        let spec = text.and_then(|text| serde_json::from_str(&text).ok());
        spec.ok_or_else(|| format!("the ControllerRevisions of spec {} keep another one", hash.short()))
    }

    /// Watches until a condition is met; `None` after a timeout.
    pub(in crate::cli) async fn until<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut(Value) -> Option<Result<T, CliError>>,
    ) -> Result<Option<T>, CliError> {
        let gone = || CliError::unreached(format!("DataPlane {} was deleted meanwhile", self.key()));
        let seen = |seen: Option<DynamicObject>| match seen.map(value) {
            None => Some(Err(gone())),
            Some(Ok(object)) => look(object),
            Some(Err(error)) => Some(Err(error)),
        };
        self.watched(limit, seen).await?.transpose()
    }

    /// The error of a verb that cannot be carried out.
    pub(in crate::cli) fn refusal(&self, what: &str, why: &VerbRefusal) -> CliError {
        let arguments = self.arguments();
        let error = CliError::refused(format!("DataPlane {} is not {what}", self.key())).why(why.to_string());
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

fn value(object: DynamicObject) -> Result<Value, CliError> {
    let read = serde_json::to_value(object);
    let mut object =
        read.map_err(|error| CliError::refused("the answer cannot be read").why(error.to_string()))?;
    // Items of lists carry no kind.
    object["apiVersion"] = kong::API_VERSION.into();
    object["kind"] = "DataPlane".into();
    Ok(object)
}
