//! Removes what a plan names, in its order.

use std::time::Duration;

use interlock_core::api::meta;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::plan::{Removal, RemovalPlan, RemovalTarget};
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, api_message, code};
use crate::install::removal::without_finalizer;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// How long API servers may still ask a webhook or a policy that was deleted.
const GUARDS_LINGER: Duration = Duration::from_secs(30);

/// Removes with the caller's rights.
pub(super) struct Remover<'a> {
    pub(super) client: &'a Client,
    /// Longest wait for one thing.
    pub(super) timeout: Duration,
}

impl Remover<'_> {
    /// Removes everything; an error names the first object that was not removed, and why.
    pub(super) async fn remove(&self, plan: &RemovalPlan) -> Result<(), String> {
        self.remove_all(&plan.first).await?;
        self.until_nobody_leads(plan).await?;
        self.remove_all(&plan.then).await
    }

    async fn remove_all(&self, targets: &[(Removal, RemovalTarget)]) -> Result<(), String> {
        for (removal, target) in targets {
            match removal {
                Removal::Delete => self.delete(target).await?,
                Removal::DeleteFully => {
                    self.delete(target).await?;
                    self.until_gone(target).await?;
                }
                Removal::Release => self.release(target).await?,
                Removal::Unlabel => self.unlabel(target).await?,
            }
        }
        Ok(())
    }

    fn api(&self, target: &RemovalTarget) -> Api<DynamicObject> {
        if target.namespace.is_empty() {
            return Api::all_with(self.client.clone(), &target.resource.api);
        }
        Api::namespaced_with(self.client.clone(), &target.namespace, &target.resource.api)
    }

    async fn delete(&self, target: &RemovalTarget) -> Result<(), String> {
        match self.api(target).delete(&target.name, &DeleteParams::background()).await {
            Ok(_) => println!("deleted {target}"),
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => return Err(format!("{target} was not deleted: {}", api_message(&error))),
        }
        Ok(())
    }

    async fn until_gone(&self, target: &RemovalTarget) -> Result<(), String> {
        let until = Instant::now() + self.timeout;
        while Instant::now() < until {
            match reader::get(self.client, &target.resource, &target.namespace, &target.name).await {
                ReadOutcome::Missing => return Ok(()),
                ReadOutcome::There(_) | ReadOutcome::Unknown(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(format!(
            "{target} is still being deleted; look at its conditions: `kubectl get namespace {} -o yaml`",
            target.name
        ))
    }

    /// A process that leads would put the finalizers back.
    async fn until_nobody_leads(&self, plan: &RemovalPlan) -> Result<(), String> {
        let Some(lease) = &plan.lease else { return Ok(()) };
        let (mut watch, until, mut last) =
            (LeaseWatch::default(), Instant::now() + self.timeout, Instant::now());
        let mut said = false;
        loop {
            let read = reader::get(self.client, &lease.resource, &lease.namespace, &lease.name).await;
            let found = match &read {
                ReadOutcome::There(found) => Some(&**found),
                ReadOutcome::Missing => None,
                ReadOutcome::Unknown(why) => return Err(format!("{lease} cannot be read: {why}")),
            };
            let passed = last.elapsed();
            last = Instant::now();
            let Some(holder) = watch.observe(found, passed) else { return Ok(()) };
            if Instant::now() >= until {
                return Err(format!(
                    "{holder} still renews {lease}: stop that process, which would put finalizers back (a \
                     Deployment in namespace {} without the label app.kubernetes.io/part-of, or a process \
                     outside of the cluster)",
                    plan.namespace
                ));
            }
            if !said {
                eprintln!("waiting until {holder} no longer leads");
                said = true;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Takes our finalizer off an Instance. Policies that were deleted count for a moment longer.
    async fn release(&self, target: &RemovalTarget) -> Result<(), String> {
        let until = Instant::now() + GUARDS_LINGER.min(self.timeout);
        let mut object = target.object.clone();
        loop {
            let Some(left) = without_finalizer(&object) else { return Ok(()) };
            let version = &object["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version, "finalizers": left}});
            match self.patch(target, &patch).await {
                Ok(()) => {
                    println!("released {target} from the finalizer {}", meta::FINALIZER);
                    return Ok(());
                }
                Err(error) if code(&error) == Some(404) => return Ok(()),
                Err(error) if Instant::now() >= until => {
                    return Err(format!("{target} keeps its finalizer: {}", api_message(&error)));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
            match self.read(target).await? {
                Some(now) => object = now,
                None => return Ok(()),
            }
        }
    }

    async fn unlabel(&self, target: &RemovalTarget) -> Result<(), String> {
        let patch = json!({"metadata": {"labels": {meta::FLAVOR_SOURCE: null}}});
        match self.patch(target, &patch).await {
            Ok(()) => println!("removed the label {} of {target}", meta::FLAVOR_SOURCE),
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => return Err(format!("{target} keeps its label: {}", api_message(&error))),
        }
        Ok(())
    }

    async fn read(&self, target: &RemovalTarget) -> Result<Option<Value>, String> {
        match reader::get(self.client, &target.resource, &target.namespace, &target.name).await {
            ReadOutcome::There(found) => Ok(Some((*found).clone())),
            ReadOutcome::Missing => Ok(None),
            ReadOutcome::Unknown(why) => Err(format!("{target} cannot be read: {why}")),
        }
    }

    /// Changes only metadata.
    async fn patch(&self, target: &RemovalTarget, patch: &Value) -> Result<(), Error> {
        let api = self.api(target);
        api.patch_metadata(&target.name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }
}

/// Follows the versions of a Lease: whether a process still leads. No clock of another machine is trusted: a Lease that
/// does not change for its own duration has no holder.
#[derive(Debug, Default)]
struct LeaseWatch {
    version: Option<String>,
    unchanged: Duration,
}

impl LeaseWatch {
    /// Takes in the Lease as it is `passed` after the last time; returns who may still lead.
    fn observe(&mut self, lease: Option<&Value>, passed: Duration) -> Option<String> {
        let spec = &lease?["spec"];
        let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
        let version = lease?["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if self.version.as_deref() == Some(version) {
            self.unchanged += passed;
        } else {
            self.version = Some(version.to_owned());
            self.unchanged = Duration::ZERO;
        }
        let duration = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(15));
        (self.unchanged <= duration).then(|| holder.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(version: &str, holder: &str) -> Value {
        json!({
            "metadata": {"resourceVersion": version},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3},
        })
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_held_by_nobody() {
        let second = Duration::from_secs(2);
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.observe(Some(&lease("1", "a")), second).as_deref(), Some("a"));
        assert_eq!(watch.observe(Some(&lease("1", "a")), second).as_deref(), Some("a"));
        assert_eq!(watch.observe(Some(&lease("2", "a")), second).as_deref(), Some("a"), "it was renewed");
        assert_eq!(watch.observe(Some(&lease("2", "a")), second).as_deref(), Some("a"));
        assert_eq!(watch.observe(Some(&lease("2", "a")), second), None);
    }

    #[test]
    fn one_that_was_given_back_or_is_gone_is_held_by_nobody() {
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.observe(Some(&lease("1", "")), Duration::ZERO), None);
        assert_eq!(watch.observe(None, Duration::ZERO), None);
    }
}
