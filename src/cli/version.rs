//! `interlock version`: of this program, of the API server, and of what runs in the cluster.

use std::process::ExitCode;

use clap::Args;
use interlock_core::api::meta;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams};
use kube::{Client, Error};
use serde::Serialize;

use crate::cli::common::error::{CliError, api, of_api};
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::{TargetFlags, block_on};
use crate::telemetry::build;

/// The label of everything that an installation holds.
const INSTALLED: &str = "app.kubernetes.io/name=interlock";

/// Flags of `interlock version`.
#[derive(Args, Debug)]
pub struct VersionArguments {
    /// Ask no cluster.
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    form: OutputFlag,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    client: ClientVersion,
    /// Version of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<String>,
    /// What runs in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    interlock: Option<Vec<InstalledVersion>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientVersion {
    version: &'static str,
    commit: &'static str,
    compiler: &'static str,
    kubernetes_types: &'static str,
}

/// A Deployment of Interlock.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstalledVersion {
    namespace: String,
    deployment: String,
    image: String,
    /// The tag of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    ready: i32,
    replicas: i32,
}

/// Prints the versions. What cannot be asked is an error, after what is known has been printed.
pub fn main(arguments: VersionArguments) -> ExitCode {
    block_on(async move {
        let mut versions = Versions { client: client(), kubernetes: None, interlock: None };
        let asked = if arguments.client { Ok(()) } else { ask(&arguments.target, &mut versions).await };
        arguments.form.output.print(&versions, || versions.text())?;
        Ok(asked?)
    })
}

fn client() -> ClientVersion {
    ClientVersion {
        version: build::VERSION,
        commit: build::COMMIT,
        compiler: build::RUSTC,
        kubernetes_types: build::KUBERNETES_TYPES,
    }
}

async fn ask(target: &TargetFlags, versions: &mut Versions) -> Result<(), CliError> {
    let (client, _) = target.connect().await?;
    let found = client.apiserver_version().await;
    let found = found.map_err(api("the version of the API server cannot be read"))?;
    versions.kubernetes = Some(found.git_version);
    let namespace = target.namespace.as_deref().unwrap_or(meta::NAMESPACE);
    versions.interlock = Some(installed(&client, namespace).await?);
    Ok(())
}

/// The Deployments of all namespaces; of this one, where the caller may not list all.
async fn installed(client: &Client, namespace: &str) -> Result<Vec<InstalledVersion>, CliError> {
    let chosen = ListParams::default().labels(INSTALLED);
    let everywhere: Api<Deployment> = Api::all(client.clone());
    let listed = match everywhere.list(&chosen).await {
        Err(Error::Api(status)) if status.is_forbidden() => {
            Api::<Deployment>::namespaced(client.clone(), namespace).list(&chosen).await
        }
        other => other,
    };
    let what = "the Deployments of Interlock cannot be listed";
    let listed = listed.map_err(|error| of_api(what, &error))?;
    Ok(listed.items.iter().map(InstalledVersion::of).collect())
}

impl InstalledVersion {
    fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.as_ref();
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        let image = pod.and_then(|pod| pod.containers.first()).and_then(|container| container.image.clone());
        let image = image.unwrap_or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            namespace: text(&deployment.metadata.namespace),
            deployment: text(&deployment.metadata.name),
            version: tag(&image).map(str::to_owned),
            image,
            ready: deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default(),
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        }
    }
}

/// The tag of an image, without its registry, whose port also follows a colon, and without its digest.
fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let name = image.rsplit_once('/').map_or(image, |(_, name)| name);
    name.split_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
}

impl Versions {
    fn text(&self) -> String {
        let ClientVersion { version, commit, compiler, .. } = &self.client;
        let mut lines = vec![format!("client:     {version} (commit {commit}, {compiler})")];
        lines.extend(self.kubernetes.iter().map(|version| format!("kubernetes: {version}")));
        lines.extend(self.interlock.iter().flatten().map(|found| {
            let InstalledVersion { namespace, deployment, image, version, ready, replicas } = found;
            let version = version.as_deref().unwrap_or("unknown");
            format!(
                "interlock:  {version} (Deployment {namespace}/{deployment}, image {image}, {ready} of {replicas} ready)"
            )
        }));
        if self.interlock.as_ref().is_some_and(Vec::is_empty) {
            lines.push(format!("interlock:  no Deployment with the label {INSTALLED} was found"));
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("interlock:0.1.0", Some("0.1.0"))]
    #[case("registry.local:5000/team/interlock:0.1.0", Some("0.1.0"))]
    #[case("registry.local:5000/team/interlock", None)]
    #[case("interlock:0.1.0@sha256:abc", Some("0.1.0"))]
    #[case("interlock@sha256:abc", None)]
    #[case("", None)]
    fn the_version_is_the_tag(#[case] image: &str, #[case] version: Option<&str>) {
        assert_eq!(tag(image), version);
    }

    #[test]
    fn text_for_people() {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"namespace": "interlock-system", "name": "interlock"},
            "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [
                {"name": "interlock", "image": "registry.local/interlock:0.1.0"}]}}},
            "status": {"readyReplicas": 1},
        }))
        .unwrap();
        let client =
            ClientVersion { version: "0.1.0", commit: "abc", compiler: "rustc 1", kubernetes_types: "v1" };
        let mut versions = Versions {
            client,
            kubernetes: Some("v1.36.2".to_owned()),
            interlock: Some(vec![InstalledVersion::of(&deployment)]),
        };
        assert_eq!(
            versions.text(),
            "client:     0.1.0 (commit abc, rustc 1)\n\
             kubernetes: v1.36.2\n\
             interlock:  0.1.0 (Deployment interlock-system/interlock, image registry.local/interlock:0.1.0, 1 of 2 ready)\n"
        );
        versions.interlock = Some(Vec::new());
        assert!(versions.text().ends_with(
            "interlock:  no Deployment with the label app.kubernetes.io/name=interlock was found\n"
        ));
    }
}
