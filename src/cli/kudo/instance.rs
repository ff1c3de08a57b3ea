//! The Instance of a command.

use clap::Args;
use interlock_core::api::meta::KUDO_API_VERSION;
use interlock_kudo::api::{ExecutionStatus, Instance, OperatorVersion, PlanStatus};
use interlock_kudo::instance::change::{drift, lock};
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::Value;

use crate::cli::common::error::{CliError, api};
use crate::cli::common::flags::Limit;
use crate::cli::common::object_ref::{ObjectKind, ObjectRef, bare};
use crate::cli::common::target::TargetFlags;

pub(in crate::cli) const INSTANCE: ObjectKind = ObjectKind {
    api_version: KUDO_API_VERSION,
    kind: "Instance",
    resource: "instances.kudo.dev",
    definitions: "crds",
};

/// Which Instance, as an argument or as a flag.
#[derive(Args, Debug)]
pub(in crate::cli) struct InstanceName {
    /// Name of the Instance.
    #[arg(value_name = "INSTANCE", required_unless_present = "instance")]
    name: Option<String>,
    /// The same as a flag, as `kubectl kudo` has it.
    #[arg(long, conflicts_with = "name")]
    instance: Option<String>,
}

impl InstanceName {
    /// The name; clap guarantees that there is one. `instance/NAME` is what kubectl prints.
    pub(in crate::cli) fn get(&self) -> &str {
        bare(self.name.as_deref().or(self.instance.as_deref()).unwrap_or_default())
    }
}

/// How long something is waited for.
#[derive(Args, Debug)]
pub(in crate::cli) struct WaitFlags {
    /// Wait until it is done.
    #[arg(long)]
    pub(in crate::cli) wait: bool,
    #[command(flatten)]
    pub(in crate::cli) limit: Limit,
}

/// An Instance of a cluster.
pub(in crate::cli) type InstanceRef = ObjectRef<Instance>;

impl ObjectRef<Instance> {
    pub(in crate::cli) async fn connect(flags: &TargetFlags, name: &str) -> Result<Self, CliError> {
        let (client, namespace) = flags.connect().await?;
        Ok(Self::of(client, &namespace, name))
    }

    pub(in crate::cli) fn of(client: Client, namespace: &str, name: &str) -> Self {
        let objects = Api::namespaced(client.clone(), namespace);
        Self { client, objects, kind: &INSTANCE, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Merges a patch into it.
    pub(in crate::cli) async fn merge(&self, patch: Value) -> Result<Instance, CliError> {
        let patched = self.objects.patch(&self.name, &Default::default(), &Patch::Merge(patch)).await;
        patched.map_err(api(format!("{self} is not changed")))
    }

    /// The OperatorVersion that it refers to; `None` where there is none.
    pub(in crate::cli) async fn operator_version(
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
pub(in crate::cli) fn locking_run(instance: &Instance) -> Option<(String, String)> {
    lock::of(instance).map(|lock| (lock.plan.to_owned(), lock.uid.to_owned()))
}

/// The newest failed run: plan and uid.
pub(in crate::cli) fn failed(instance: &Instance) -> Option<(String, String)> {
    let failed =
        entries(instance).filter(|(_, e)| e.status == ExecutionStatus::FatalError && !e.uid.is_empty());
    let newest = failed.max_by_key(|(_, e)| e.last_updated_timestamp.as_ref().map(|time| time.0));
    newest.map(|(plan, entry)| (plan.clone(), entry.uid.clone()))
}

/// The recorded plans.
pub(in crate::cli) fn entries(instance: &Instance) -> impl Iterator<Item = (&String, &PlanStatus)> {
    instance.status.iter().flat_map(|status| &status.plan_status)
}

/// The last ended run; of two that ended in one second, which is how exact the times are, the one that failed.
pub(in crate::cli) fn last(instance: &Instance) -> Option<(&String, &PlanStatus)> {
    let ended = entries(instance).filter(|(_, e)| e.status.is_terminal());
    let failed = |entry: &PlanStatus| entry.status == ExecutionStatus::FatalError;
    ended.max_by_key(|(_, e)| (e.last_updated_timestamp.as_ref().map(|time| time.0), failed(e)))
}

/// The plan that is queued behind the last run, where that is over.
pub(in crate::cli) fn queued(instance: &Instance) -> Option<String> {
    // Of an Instance that is deleted only the plan cleanup runs.
    let instance = Some(instance).filter(|instance| instance.metadata.deletion_timestamp.is_none())?;
    let baseline = instance.status.as_ref()?.last_applied.as_ref()?;
    drift::queue(baseline).into_iter().next()
}

pub(in crate::cli) fn annotation<'i>(instance: &'i Instance, key: &str) -> Option<&'i str> {
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
