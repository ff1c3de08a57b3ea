//! The Instance of a command.

use std::time::Duration;

use interlock_kudo::api::{ExecutionStatus, Instance, OperatorVersion, PlanStatus};
use interlock_kudo::instance::change::lock;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

use crate::cli::common::error::{CliError, api};
use crate::cli::common::target::TargetFlags;
use crate::cli::common::watch;
use crate::cli::kudo::instances;

/// An Instance of a cluster.
pub(super) struct InstanceRef {
    client: Client,
    instances: Api<Instance>,
    namespace: String,
    name: String,
}

impl InstanceRef {
    pub(super) async fn connect(flags: &TargetFlags, name: String) -> Result<Self, CliError> {
        let (client, namespace) = flags.connect().await?;
        let instances = Api::namespaced(client.clone(), &namespace);
        Ok(Self { client, instances, namespace, name })
    }

    /// `NAMESPACE/NAME`.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// `NAME -n NAMESPACE`, as further commands name it.
    pub(super) fn arguments(&self) -> String {
        format!("{} -n {}", self.name, self.namespace)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a kind in its namespace.
    pub(super) fn beside<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(super) async fn get(&self) -> Result<Instance, CliError> {
        let found = self.instances.get_opt(&self.name).await;
        match found.map_err(api(format!("Instance {} cannot be read", self.key())))? {
            Some(instance) => Ok(instance),
            None => Err(instances::missing(&self.instances, &self.namespace, &self.name).await),
        }
    }

    /// The OperatorVersion that it refers to; `None` where there is none.
    pub(super) async fn operator_version(
        &self,
        instance: &Instance,
    ) -> Result<Option<OperatorVersion>, CliError> {
        let reference = instance.spec.operator_version.clone().unwrap_or_default();
        let namespace = reference.namespace_or(&self.namespace);
        if reference.name().is_empty() {
            return Ok(None);
        }
        let versions: Api<OperatorVersion> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("OperatorVersion {namespace}/{} cannot be read", reference.name());
        versions.get_opt(reference.name()).await.map_err(api(what))
    }

    pub(super) async fn patch(&self, patch: Value) -> Result<Instance, CliError> {
        let patched = self.instances.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map_err(api(format!("Instance {} is not changed", self.key())))
    }

    /// Watches until a condition is met; `None` after a timeout.
    pub(super) async fn until<T>(
        &self,
        limit: Duration,
        look: impl FnMut(Option<Instance>) -> Option<T>,
    ) -> Result<Option<T>, CliError> {
        watch::until(self.instances.clone(), &watch::INSTANCE, &self.name, limit, look).await
    }
}

/// Plan and uid of the run that holds the lock.
pub(super) fn current(instance: &Instance) -> Option<(String, String)> {
    lock::of(instance).map(|lock| (lock.plan.to_owned(), lock.uid.to_owned()))
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// What admission locks is under way for the commands, too.
    #[rstest]
    #[case::without_a_uid(json!({"planName": "deploy"}), "", "COMPLETE", true)]
    #[case::another_run(json!({"planName": "deploy", "uid": "b"}), "a", "COMPLETE", true)]
    #[case::over(json!({"planName": "deploy", "uid": "a"}), "a", "COMPLETE", false)]
    #[case::running(Value::Null, "a", "IN_PROGRESS", true)]
    fn a_run_is_current_while_it_locks(
        #[case] execution: Value,
        #[case] uid: &str,
        #[case] status: &str,
        #[case] is_current: bool,
    ) {
        let entry = json!({"name": "deploy", "status": status, "uid": uid, "phases": []});
        let instance: Instance = serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "a"},
            "spec": {"operatorVersion": {"name": "v"}, "planExecution": execution},
            "status": {"planStatus": {"deploy": entry}},
        }))
        .unwrap();
        assert_eq!(lock::of(&instance).is_some(), is_current);
        assert_eq!(current(&instance).is_some(), is_current);
    }
}
