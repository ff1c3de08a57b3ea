//! Calls to the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use interlock_kudo::api::{Instance, Operator, OperatorVersion, OperatorVersionSpec};
use interlock_kudo::package::bundle::PackageBundle;
use interlock_kudo::package::versions;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::dependencies::PackageTree;
use super::rights;
use crate::cli::common::error::{CliError, api, of_api};
use crate::cli::common::output;
use crate::cli::common::target::TargetFlags;
use crate::cli::kudo::instance::InstanceRef;
use crate::cli::kudo::wait::{Follower, PlanEnd};

pub(super) struct WantedInstance<'a> {
    pub(super) tree: &'a PackageTree,
    pub(super) name: &'a str,
    pub(super) parameters: &'a BTreeMap<String, String>,
    /// How long to wait for its plan, if at all.
    pub(super) limit: Option<Duration>,
}

/// A namespace of a cluster.
pub(super) struct PackageNamespace {
    client: Client,
    namespace: String,
}

impl PackageNamespace {
    pub(super) async fn connect(flags: &TargetFlags) -> Result<Self, CliError> {
        let (client, namespace) = flags.connect().await?;
        Ok(Self { client, namespace })
    }

    /// Whether the cluster is new enough for a package and those that it installs.
    pub(super) async fn check_versions(&self, tree: &PackageTree) -> Result<(), CliError> {
        for package in tree.installed.iter().chain([&tree.package]) {
            self.check_version(package).await?;
        }
        Ok(())
    }

    /// Only major and minor count, as for KUDO.
    async fn check_version(&self, package: &PackageBundle) -> Result<(), CliError> {
        let Some(wanted) = &package.kubernetes_version else { return Ok(()) };
        let Some(needed) = versions::parse(wanted) else {
            return Err(CliError::usage(format!("kubernetesVersion {wanted} is no version"))
                .place("operator.yaml")
                .next("write it as 1.30.0"));
        };
        let found = self.client.apiserver_version().await;
        let found = found.map_err(api("the version of the API server cannot be read"))?.git_version;
        let Some(server) = versions::parse(&found) else {
            return Err(CliError::refused(format!(
                "the API server calls its version {found}, which cannot be compared with kubernetesVersion {wanted}"
            )));
        };
        if (server.major, server.minor) < (needed.major, needed.minor) {
            return Err(CliError::refused(format!(
                "the package needs Kubernetes {wanted}, but the cluster is {found}"
            ))
            .next("upgrade the cluster, or choose another with --context"));
        }
        Ok(())
    }

    /// Warns where packages here may do more than this user, or where that is unknown.
    pub(super) async fn warn_of_rights(&self, default: &NamespacedName) {
        if let Some(warning) = rights::warning(&self.client, &self.namespace, default).await {
            output::note(&warning);
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.namespace
    }

    /// Has the API server answer for objects as if it stored them; one that is there already is left as it is.
    pub(super) async fn dry_run(&self, objects: Vec<Value>) -> Result<Vec<Value>, CliError> {
        let mut answers = Vec::new();
        for object in objects {
            let what = format!("{} {}", object["kind"].as_str().unwrap_or_default(), self.key(&object));
            let kind = match object["kind"].as_str() {
                Some("Operator") => ApiResource::erase::<Operator>(&()),
                Some("OperatorVersion") => ApiResource::erase::<OperatorVersion>(&()),
                _ => ApiResource::erase::<Instance>(&()),
            };
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
            let wanted: DynamicObject = serde_json::from_value(object.clone()).map_err(unusable)?;
            let params = PostParams { dry_run: true, ..PostParams::default() };
            answers.push(match api.create(&params, &wanted).await {
                Ok(mut answer) => {
                    answer.metadata.managed_fields = None;
                    serde_json::to_value(answer).map_err(unusable)?
                }
                Err(kube::Error::Api(status)) if status.is_already_exists() && kind.kind != "Instance" => {
                    object
                }
                Err(error) => return Err(of_api(&format!("{what} would not be created"), &error)),
            });
        }
        Ok(answers)
    }

    fn key(&self, object: &Value) -> String {
        format!("{}/{}", self.namespace, object["metadata"]["name"].as_str().unwrap_or_default())
    }

    pub(super) async fn install(&self, wanted: WantedInstance<'_>) -> Result<(), CliError> {
        let WantedInstance { tree, name, parameters, limit } = wanted;
        let subject = self.instance(name);
        if subject.find().await?.is_some() {
            return Err(CliError::refused(format!(
                "cannot install instance '{name}' because an instance of that name already exists in namespace {}",
                self.namespace
            ))
            .next("choose another name with --instance, or upgrade it: `interlock package upgrade`"));
        }
        self.ensure_versions(tree).await?;
        let instance = self.create::<Instance>(tree.package.instance(name, parameters)).await?;
        let instance = serde_json::to_value(instance).and_then(serde_json::from_value).map_err(unusable)?;
        output::line(&format!("instance {} created", subject.key()))?;
        wait_for_plan(&subject, &instance, limit).await
    }

    pub(super) async fn upgrade(&self, wanted: WantedInstance<'_>) -> Result<(), CliError> {
        let WantedInstance { tree, name, parameters, limit } = wanted;
        let subject = self.instance(name);
        let instance = subject.read().await?;
        let reference = instance.spec.operator_version.as_ref();
        // The next version belongs where the Instance refers to.
        let home = reference.map_or(self.namespace.as_str(), |v| v.namespace_or(&self.namespace));
        let home = Self { client: self.client.clone(), namespace: home.to_owned() };
        let Some(old) = subject.operator_version(&instance).await? else {
            let old = reference.map_or("", |v| v.name());
            return Err(CliError::unreached(format!("OperatorVersion {}/{old} does not exist", home.namespace))
                .place(subject.to_string())
                .next(format!(
                    "install the version that it refers to: `interlock package install --skip-instance PACKAGE -n {}`",
                    home.namespace
                )));
        };
        compare(&old.spec, &tree.package)?;
        home.ensure_versions(tree).await?;
        let mut spec = json!({ "operatorVersion": { "name": tree.package.operator_version_name } });
        if !parameters.is_empty() {
            spec["parameters"] = json!(parameters);
        }
        let patch = Patch::Merge(json!({ "spec": spec }));
        let instance = subject.objects.patch(name, &PatchParams::default(), &patch).await;
        let instance = instance.map_err(api(format!("{subject} is not upgraded")))?;
        output::line(&format!("instance {} updated", subject.key()))?;
        wait_for_plan(&subject, &instance, limit).await
    }

    pub(super) async fn uninstall(&self, name: &str, limit: Option<Duration>) -> Result<(), CliError> {
        let subject = self.instance(name);
        let done = format!("instance {} deleted", subject.key());
        let deleted = match subject.objects.delete(name, &DeleteParams::background()).await {
            Ok(deleted) => deleted,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Err(subject.missing().await),
            Err(error) => return Err(of_api(&format!("{subject} is not deleted"), &error)),
        };
        let Some(limit) = limit.filter(|_| deleted.is_left()) else { return output::line(&done) };
        let mut follower = Follower::default();
        let gone = subject.watched(limit, |seen| {
            let Some(instance) = seen else { return Some(()) };
            print_lines(&follower.observe(&instance).0);
            None
        });
        match gone.await? {
            Some(()) => output::line(&done),
            None => Err(CliError::unreached(format!("{subject} still exists after {limit:?}"))
                .why(follower.current_state())
                .next(format!("wait longer with --timeout, or {}", look(&subject)))),
        }
    }

    /// Creates Operator and OperatorVersion of a package and of those that it installs, unless they exist.
    pub(super) async fn ensure_versions(&self, tree: &PackageTree) -> Result<(), CliError> {
        let namespace = &self.namespace;
        let versions: Api<OperatorVersion> = Api::namespaced(self.client.clone(), namespace);
        for name in &tree.elsewhere {
            let what = format!("OperatorVersion {namespace}/{name}");
            let found = versions.get_opt(name).await.map_err(api(format!("{what} cannot be read")))?;
            if found.is_none() {
                return Err(CliError::unreached(format!("{what} does not exist, and the package installs it"))
                    .next(
                        "install it first: `interlock package install --skip-instance PACKAGE`; write where it is as package \
                         into the task of operator.yaml; or give the repository that has it with --repo URL",
                    ));
            }
        }
        for package in tree.installed.iter().chain([&tree.package]) {
            self.ensure_version(package).await?;
        }
        Ok(())
    }

    /// Creates Operator and OperatorVersion, unless they exist.
    async fn ensure_version(&self, package: &PackageBundle) -> Result<(), CliError> {
        let namespace = &self.namespace;
        let operators: Api<Operator> = Api::namespaced(self.client.clone(), namespace);
        let name = &package.operator_name;
        let unread = |kind: &str, name: &str| api(format!("{kind} {namespace}/{name} cannot be read"));
        if operators.get_opt(name).await.map_err(unread("Operator", name))?.is_none() {
            self.create::<Operator>(package.operator.clone()).await?;
            output::line(&format!("operator {namespace}/{name} created"))?;
        }
        let versions: Api<OperatorVersion> = Api::namespaced(self.client.clone(), namespace);
        let name = &package.operator_version_name;
        let Some(found) = versions.get_opt(name).await.map_err(unread("OperatorVersion", name))? else {
            self.create::<OperatorVersion>(package.operator_version.clone()).await?;
            return output::line(&format!("operatorversion {namespace}/{name} created"));
        };
        output::line(&format!("operatorversion {namespace}/{name} already installed"))?;
        let ours: OperatorVersionSpec =
            serde_json::from_value(package.operator_version["spec"].clone()).map_err(unusable)?;
        if found.spec != ours {
            eprintln!(
                "warning: operatorversion {}/{name} differs from this package and is used as it is; \
                 raise operatorVersion in operator.yaml to install what is here",
                self.namespace
            );
        }
        Ok(())
    }

    fn instance(&self, name: &str) -> InstanceRef {
        InstanceRef::of(self.client.clone(), &self.namespace, name)
    }

    /// POSTs a converted object: null and empty fields stay as KUDO writes them.
    async fn create<K>(&self, mut object: Value) -> Result<DynamicObject, CliError>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        object["metadata"]["namespace"] = json!(self.namespace);
        let what = format!("{} {}", K::kind(&()), self.key(&object));
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::erase::<K>(&()));
        let object: DynamicObject = serde_json::from_value(object).map_err(unusable)?;
        let created = api.create(&PostParams::default(), &object).await;
        created.map_err(|error| of_api(&format!("{what} is not created"), &error))
    }
}

/// Waits, by events, for the plan that a write has scheduled.
async fn wait_for_plan(
    subject: &InstanceRef,
    written: &Instance,
    limit: Option<Duration>,
) -> Result<(), CliError> {
    let Some(limit) = limit else { return Ok(()) };
    let mut follower = Follower::default();
    follower.observe(written);
    if !follower.has_plan() && written.status.is_some() {
        return output::line(&format!("instance {}: nothing to do", subject.key()));
    }
    let end = subject.watched(limit, |seen| {
        let Some(instance) = seen else {
            return Some(PlanEnd::Failed("it was deleted meanwhile".to_owned()));
        };
        let (lines, end) = follower.observe(&instance);
        print_lines(&lines);
        end
    });
    match end.await? {
        Some(PlanEnd::Complete(plan)) => {
            output::line(&format!("instance {} ready: plan {plan} is COMPLETE", subject.key()))
        }
        Some(PlanEnd::Failed(why)) => {
            Err(CliError::refused(why).place(subject.to_string()).next(look(subject)))
        }
        None => Err(subject
            .not_done(limit)
            .why(follower.current_state())
            .next(format!("wait longer with --timeout, or {}", look(subject)))),
    }
}

/// The command that shows the plans of an Instance.
fn look(subject: &InstanceRef) -> String {
    format!("look at it: `interlock plan status {}`", subject.arguments())
}

/// The wait goes on where the lines are not read.
fn print_lines(lines: &[String]) {
    lines.iter().for_each(|line| drop(output::line(line)));
}

fn unusable(error: serde_json::Error) -> CliError {
    CliError::refused("an object of the package cannot be used").why(error.to_string())
}

/// KUDO's client upgrades to a higher version only.
fn compare(old: &OperatorVersionSpec, package: &PackageBundle) -> Result<(), CliError> {
    let old = old.version.as_deref().unwrap_or_default();
    let new = &package.version;
    let parse = |text: &str| {
        versions::parse(text).ok_or_else(|| {
            CliError::usage(format!("{text:?} is no version")).next("write operatorVersion as 1.2.3")
        })
    };
    if parse(old)? >= parse(new)? {
        return Err(CliError::refused(format!(
            "upgraded version {new} is the same or smaller as current version {old} -> not upgrading"
        ))
        .next("raise operatorVersion in operator.yaml"));
    }
    Ok(())
}
