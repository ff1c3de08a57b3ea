//! Calls to the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use interlock_core::api::kudo::{Instance, Operator, OperatorVersion, OperatorVersionSpec};
use interlock_core::api::object::NamespacedName;
use interlock_core::package::bundle::PackageBundle;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{rights, versions};
use crate::cli::follow::{Follower, PlanEnd};
use crate::cli::target::{TargetFlags, api_message};
use crate::cli::watch;

/// The wanted Instance.
pub(super) struct WantedInstance<'a> {
    pub(super) package: &'a PackageBundle,
    pub(super) name: &'a str,
    pub(super) parameters: &'a BTreeMap<String, String>,
    /// How long to wait for its plan, if at all.
    pub(super) limit: Option<Duration>,
}

/// A namespace of a cluster.
pub(super) struct Target {
    client: Client,
    namespace: String,
}

impl Target {
    pub(super) async fn connect(flags: &TargetFlags) -> anyhow::Result<Self> {
        let (client, namespace) = flags.connect().await?;
        Ok(Self { client, namespace })
    }

    /// Whether the cluster is new enough; only major and minor count, as for KUDO.
    pub(super) async fn check_version(&self, package: &PackageBundle) -> anyhow::Result<()> {
        let Some(wanted) = &package.kubernetes_version else { return Ok(()) };
        let Some(needed) = versions::parse(wanted) else {
            bail!("operator.yaml: kubernetesVersion {wanted} is no version; write it as 1.30.0");
        };
        let found = self.client.apiserver_version().await.map_err(api_message)?.git_version;
        let Some(server) = versions::parse(&found) else {
            bail!(
                "the API server calls its version {found}, which cannot be compared with kubernetesVersion {wanted}"
            );
        };
        if (server.major, server.minor) < (needed.major, needed.minor) {
            bail!("the package needs Kubernetes {wanted}, but the cluster is {found}");
        }
        Ok(())
    }

    /// Warns where packages here may do more than this user, or where that is unknown.
    pub(super) async fn warn_of_rights(&self, default: &NamespacedName) {
        if let Some(warning) = rights::warning(&self.client, &self.namespace, default).await {
            eprintln!("{warning}");
        }
    }

    pub(super) async fn install(&self, wanted: WantedInstance<'_>) -> anyhow::Result<()> {
        let WantedInstance { package, name, parameters, limit } = wanted;
        if self.instances().get_opt(name).await.map_err(api_message)?.is_some() {
            bail!(
                "cannot install instance '{name}' because an instance of that name already exists in namespace {}; \
                 choose another name with --instance, or upgrade it",
                self.namespace
            );
        }
        self.ensure_version(package).await?;
        let instance = self.create::<Instance>(package.instance(name, parameters)).await?;
        println!("instance {}/{name} created", self.namespace);
        self.wait_for_plan(name, &read(instance)?, limit).await
    }

    pub(super) async fn upgrade(&self, wanted: WantedInstance<'_>) -> anyhow::Result<()> {
        let WantedInstance { package, name, parameters, limit } = wanted;
        let Some(instance) = self.instances().get_opt(name).await.map_err(api_message)? else {
            bail!(
                "instance {}/{name} does not exist in the cluster; install the package first",
                self.namespace
            );
        };
        let old = instance.spec.operator_version.as_ref().map_or("", |v| v.name());
        let versions: Api<OperatorVersion> = Api::namespaced(self.client.clone(), &self.namespace);
        let Some(old) = versions.get_opt(old).await.map_err(api_message)? else {
            bail!("operatorversion {}/{old} does not exist in the cluster", self.namespace);
        };
        compare(&old.spec, package)?;
        self.ensure_version(package).await?;
        let mut spec = json!({ "operatorVersion": { "name": package.operator_version_name } });
        if !parameters.is_empty() {
            spec["parameters"] = json!(parameters);
        }
        let patch = Patch::Merge(json!({ "spec": spec }));
        let instance =
            self.instances().patch(name, &PatchParams::default(), &patch).await.map_err(api_message)?;
        println!("instance {}/{name} updated", self.namespace);
        self.wait_for_plan(name, &instance, limit).await
    }

    pub(super) async fn uninstall(&self, name: &str, limit: Option<Duration>) -> anyhow::Result<()> {
        let instances = self.instances();
        if instances.get_opt(name).await.map_err(api_message)?.is_none() {
            bail!("instance {name} in namespace {} does not exist in the cluster", self.namespace);
        }
        let deleted = instances.delete(name, &DeleteParams::background()).await.map_err(api_message)?;
        let Some(limit) = limit.filter(|_| deleted.is_left()) else {
            println!("instance {}/{name} deleted", self.namespace);
            return Ok(());
        };
        let mut follower = Follower::default();
        let gone = watch::until(instances, name, limit, |seen| {
            let Some(instance) = seen else { return Some(()) };
            print_lines(&follower.observe(&instance).0);
            None
        });
        if gone.await?.is_none() {
            bail!(
                "instance {}/{name} still exists after {limit:?}: {}",
                self.namespace,
                follower.current_state()
            );
        }
        println!("instance {}/{name} deleted", self.namespace);
        Ok(())
    }

    /// Creates Operator and OperatorVersion, unless they exist.
    pub(super) async fn ensure_version(&self, package: &PackageBundle) -> anyhow::Result<()> {
        let operators: Api<Operator> = Api::namespaced(self.client.clone(), &self.namespace);
        if operators.get_opt(&package.operator_name).await.map_err(api_message)?.is_none() {
            self.create::<Operator>(package.operator.clone()).await?;
            println!("operator {}/{} created", self.namespace, package.operator_name);
        }
        let versions: Api<OperatorVersion> = Api::namespaced(self.client.clone(), &self.namespace);
        let name = &package.operator_version_name;
        let Some(found) = versions.get_opt(name).await.map_err(api_message)? else {
            self.create::<OperatorVersion>(package.operator_version.clone()).await?;
            println!("operatorversion {}/{name} created", self.namespace);
            return Ok(());
        };
        println!("operatorversion {}/{name} already installed", self.namespace);
        let ours: OperatorVersionSpec = serde_json::from_value(package.operator_version["spec"].clone())?;
        if found.spec != ours {
            eprintln!(
                "warning: operatorversion {}/{name} differs from this package and is used as it is; \
                 raise operatorVersion in operator.yaml to install what is here",
                self.namespace
            );
        }
        Ok(())
    }

    fn instances(&self) -> Api<Instance> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// POSTs a converted object: null and empty fields stay as KUDO writes them.
    async fn create<K>(&self, mut object: Value) -> anyhow::Result<DynamicObject>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        object["metadata"]["namespace"] = json!(self.namespace);
        let what = format!(
            "{} {}/{}",
            K::kind(&()).to_lowercase(),
            self.namespace,
            object["metadata"]["name"].as_str().unwrap_or_default()
        );
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::erase::<K>(&()));
        let object: DynamicObject = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object)
            .await
            .map_err(api_message)
            .with_context(|| format!("failed to install {what}"))
    }

    /// Waits, by events, for the plan that a write has scheduled.
    async fn wait_for_plan(
        &self,
        name: &str,
        written: &Instance,
        limit: Option<Duration>,
    ) -> anyhow::Result<()> {
        let Some(limit) = limit else { return Ok(()) };
        let mut follower = Follower::default();
        follower.observe(written);
        if !follower.has_plan() && written.status.is_some() {
            println!("instance {}/{name}: nothing to do", self.namespace);
            return Ok(());
        }
        let end = watch::until(self.instances(), name, limit, |seen| {
            let Some(instance) = seen else {
                return Some(PlanEnd::Failed("it was deleted meanwhile".to_owned()));
            };
            let (lines, end) = follower.observe(&instance);
            print_lines(&lines);
            Some(end).filter(|end| *end != PlanEnd::No)
        });
        match end.await? {
            Some(PlanEnd::Complete(plan)) => {
                println!("instance {}/{name} ready: plan {plan} is COMPLETE", self.namespace);
                Ok(())
            }
            Some(PlanEnd::Failed(why)) => bail!("instance {}/{name}: {why}", self.namespace),
            Some(PlanEnd::No) | None => {
                bail!(
                    "instance {}/{name} is not done after {limit:?}: {}",
                    self.namespace,
                    follower.current_state()
                )
            }
        }
    }
}

fn print_lines(lines: &[String]) {
    lines.iter().for_each(|line| println!("{line}"));
}

fn read(object: DynamicObject) -> anyhow::Result<Instance> {
    Ok(serde_json::from_value(serde_json::to_value(object)?)?)
}

/// KUDO's client upgrades to a higher version only.
fn compare(old: &OperatorVersionSpec, package: &PackageBundle) -> anyhow::Result<()> {
    let old = old.version.as_deref().unwrap_or_default();
    let new = &package.version;
    let parse = |text: &str| {
        versions::parse(text).with_context(|| format!("{text} is no version; write it as 1.2.3"))
    };
    if parse(old)? >= parse(new)? {
        bail!("upgraded version {new} is the same or smaller as current version {old} -> not upgrading");
    }
    Ok(())
}
