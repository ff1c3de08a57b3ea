//! The Instance of a command.

use std::time::Duration;

use anyhow::bail;
use interlock_core::api::kudo::{ExecutionStatus, Instance, PlanStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::cli::target::{TargetFlags, api_message};
use crate::cli::watch;

/// An Instance of a cluster.
pub(super) struct InstanceRef {
    instances: Api<Instance>,
    namespace: String,
    name: String,
}

impl InstanceRef {
    pub(super) async fn connect(flags: &TargetFlags, name: String) -> anyhow::Result<Self> {
        let (client, namespace) = flags.connect().await?;
        Ok(Self { instances: Api::namespaced(client, &namespace), namespace, name })
    }

    /// `NAMESPACE/NAME`.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    pub(super) async fn get(&self) -> anyhow::Result<Instance> {
        match self.instances.get_opt(&self.name).await.map_err(api_message)? {
            Some(instance) => Ok(instance),
            None => bail!("instance {} does not exist; choose another namespace with -n", self.key()),
        }
    }

    pub(super) async fn patch(&self, patch: Value) -> anyhow::Result<Instance> {
        self.instances
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map_err(api_message)
    }

    /// Watches until a condition is met; `None` after a timeout.
    pub(super) async fn until<T>(
        &self,
        limit: Duration,
        look: impl FnMut(Option<Instance>) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        watch::until(self.instances.clone(), &self.name, limit, look).await
    }
}

/// Plan and uid of the run that is scheduled or runs.
pub(super) fn current(instance: &Instance) -> Option<(String, String)> {
    let execution = instance.spec.plan_execution.as_ref().filter(|e| !e.plan().is_empty());
    let over = |plan: &str, uid: &str| {
        entries(instance).any(|(p, e)| p == plan && e.uid == uid && e.status.is_terminal())
    };
    let named = execution.map(|e| (e.plan().to_owned(), e.uid().to_owned())).filter(|(p, u)| !over(p, u));
    let running = || entries(instance).find(|(_, e)| e.status.is_running());
    named.or_else(|| running().map(|(plan, entry)| (plan.clone(), entry.uid.clone())))
}

/// The newest failed run: plan and uid.
pub(super) fn failed(instance: &Instance) -> Option<(String, String)> {
    let failed =
        entries(instance).filter(|(_, e)| e.status == ExecutionStatus::FatalError && !e.uid.is_empty());
    let newest = failed.max_by_key(|(_, e)| e.last_updated_timestamp.as_ref().map(|time| time.0));
    newest.map(|(plan, entry)| (plan.clone(), entry.uid.clone()))
}

/// The recorded plans.
pub(super) fn entries(instance: &Instance) -> impl Iterator<Item = (&String, &PlanStatus)> {
    instance.status.iter().flat_map(|status| &status.plan_status)
}

/// The last ended run.
pub(super) fn last(instance: &Instance) -> Option<(&String, &PlanStatus)> {
    let ended = entries(instance).filter(|(_, e)| e.status.is_terminal());
    ended.max_by_key(|(_, e)| e.last_updated_timestamp.as_ref().map(|time| time.0))
}

/// An annotation.
pub(super) fn annotation<'i>(instance: &'i Instance, key: &str) -> Option<&'i str> {
    instance.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
