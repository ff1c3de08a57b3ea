//! The Instance of a command.

use interlock_kudo::api::{ExecutionStatus, Instance, OperatorVersion, PlanStatus};
use interlock_kudo::instance::change::lock;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::cli::common::error::{CliError, api};
use crate::cli::common::object_ref::ObjectRef;
use crate::cli::common::target::TargetFlags;
use crate::cli::kudo::instances;

/// An Instance of a cluster.
pub(super) type InstanceRef = ObjectRef<Instance>;

impl ObjectRef<Instance> {
    pub(super) async fn connect(flags: &TargetFlags, name: String) -> Result<Self, CliError> {
        let (client, namespace) = flags.connect().await?;
        let objects = Api::namespaced(client.clone(), &namespace);
        Ok(Self { client, objects, kind: &instances::INSTANCE, namespace, name })
    }

    pub(super) async fn get(&self) -> Result<Instance, CliError> {
        self.read().await
    }

    pub(super) async fn patch(&self, patch: Value) -> Result<Instance, CliError> {
        let patched = self.objects.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map_err(api(format!("Instance {} is not changed", self.key())))
    }

    /// Objects of a kind in its namespace.
    pub(super) fn beside<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
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
}

/// Plan and uid of the run that holds the lock.
pub(super) fn locking_run(instance: &Instance) -> Option<(String, String)> {
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
        assert_eq!(locking_run(&instance).is_some(), is_current);
    }
}
