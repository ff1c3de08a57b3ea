//! The controller's view of an Instance: JSON -> typed, with stamp, baseline and progress.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::condition;
use interlock_core::api::condition::Condition;
use interlock_core::api::meta;
use interlock_core::api::meta::condition as types;
use interlock_core::api::object::{NamespacedName, annotation};
use interlock_core::api::stamp::{Applied, Envelope, KeptSpec, SpecHash};
use interlock_kudo::api::{ExecutionStatus, Instance, PlanStatus, RunRequests};
use interlock_kudo::engine::progress::Progress;
use interlock_kudo::instance::change::baseline::{Baseline, carried_out};
use interlock_kudo::instance::change::creation::Creation;
use interlock_kudo::instance::change::history;
use interlock_kudo::instance::change::plan_request::{PendingRequest, RequestError};
use interlock_kudo::instance::change::uid::Retry;
use interlock_kudo::package::Package;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// An Instance from the API server that cannot be decoded.
#[derive(Debug, Error)]
#[error("Instance {key} cannot be read: {source}; mend the object")]
pub struct UnreadableInstance {
    key: NamespacedName,
    source: serde_json::Error,
}

/// One Instance at one version.
#[derive(Clone, Debug)]
pub struct InstanceView {
    /// Namespace and name.
    pub key: NamespacedName,
    /// The object as received.
    pub object: Arc<Value>,
    /// The same, typed.
    pub instance: Instance,
    /// The part of the spec that a run applies.
    pub spec: Applied<'static>,
    /// Hash of `spec`.
    pub hash: SpecHash,
    /// The annotation, when it can be decoded.
    pub stamp: Option<Envelope<'static>>,
    /// The stored baseline.
    pub basis: Option<Baseline>,
    /// The run in progress, as recorded.
    pub progress: Option<Progress>,
    /// What requests have changed about the run.
    pub requests: Option<RunRequests>,
}

impl InstanceView {
    pub fn read(key: &NamespacedName, object: Arc<Value>) -> Result<Self, UnreadableInstance> {
        let instance = Instance::deserialize(object.as_ref())
            .map_err(|source| UnreadableInstance { key: key.clone(), source })?;
        let spec = carried_out(&instance, &key.namespace);
        let own = instance.metadata.uid.as_deref();
        // The uid of another object: a manifest copied from it, whose stamp does not count.
        let stamp = annotation(&object, meta::LAST_APPLIED_SPEC)
            .and_then(Envelope::parse)
            .filter(|stamp| stamp.uid.as_deref().is_none_or(|uid| Some(uid) == own))
            .map(Envelope::into_owned);
        let basis = instance.status.as_ref().and_then(|status| status.last_applied.clone());
        let progress = instance.status.as_ref().and_then(|status| status.progress.clone());
        let requests = instance.status.as_ref().and_then(|status| status.requests.clone());
        let hash = spec.hash();
        Ok(Self { key: key.clone(), instance, spec, hash, stamp, basis, progress, requests, object })
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.instance.metadata.uid.as_deref().unwrap_or_default()
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.instance.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> Option<i64> {
        self.instance.metadata.generation
    }

    /// `spec.planExecution.planName`, empty when absent.
    pub fn plan(&self) -> &str {
        self.instance.spec.plan_execution.as_ref().map_or("", |e| e.plan())
    }

    /// `spec.planExecution.uid`, empty when absent.
    pub fn plan_uid(&self) -> &str {
        self.instance.spec.plan_execution.as_ref().map_or("", |e| e.uid())
    }

    /// `status.planStatus`.
    pub fn entries(&self) -> Cow<'_, BTreeMap<String, PlanStatus>> {
        match &self.instance.status {
            Some(status) => Cow::Borrowed(&status.plan_status),
            None => Cow::Owned(BTreeMap::new()),
        }
    }

    /// Whether any plan ever ran.
    pub fn has_run(&self) -> bool {
        self.entries().values().any(|entry| entry.status != ExecutionStatus::NeverRun)
    }

    /// `status.conditions`.
    pub fn conditions(&self) -> Vec<Condition> {
        self.instance.status.as_ref().map(|s| s.conditions.clone()).unwrap_or_default()
    }

    /// Whether its run reports an error, after which it is tried again.
    pub fn reports_error(&self) -> bool {
        let conditions = self.conditions();
        let retries =
            condition::find(&conditions, types::RECONCILING).is_some_and(|c| c.reason == types::RETRYING);
        retries || condition::is_true(&conditions, types::STALLED)
    }

    /// Whether it has our finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.instance.metadata.finalizers.iter().flatten().any(|f| f == meta::FINALIZER)
    }

    /// The deletion timestamp.
    pub fn deleted_at(&self) -> Option<Timestamp> {
        self.instance.metadata.deletion_timestamp.as_ref().map(|t| t.0)
    }

    pub fn history(&self) -> Vec<history::EndedRun> {
        history::read(annotation(&self.object, meta::HISTORY))
    }

    /// The plan request; `None` without one, an error where it cannot be decoded.
    pub fn asked(&self) -> Result<Option<PendingRequest>, RequestError> {
        let text = |key| annotation(&self.object, key);
        let Some(request) = text(meta::REQUEST).filter(|request| !request.is_empty()) else {
            return Ok(None);
        };
        let of = Retry { namespace: &self.key.namespace, name: &self.key.name };
        let reason = text(meta::REASON).unwrap_or_default();
        PendingRequest::read(request, reason, text(meta::REQUESTED_BY).unwrap_or_default(), of).map(Some)
    }

    /// The stamp's spec where the annotation or the object itself holds it, and it matches its hash.
    pub fn stamped_spec(&self) -> Option<Applied<'static>> {
        let stamp = self.stamp.as_ref()?;
        if stamp.hash == self.hash {
            return Some(self.spec.clone());
        }
        match &stamp.kept {
            KeptSpec::Inline { spec } if spec.hash() == stamp.hash => Some(spec.clone()),
            _ => None,
        }
    }

    /// Whether everything is set that admission adds at creation.
    pub fn created_whole(&self, package: &Package) -> bool {
        Creation::new(package, &self.spec.parameters).is_complete(self.has_finalizer())
    }
}
