//! Files that the pods read, and the flags that name them.

use interlock_core::api::meta::install;
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount};

use super::role::DeploymentRole;
use super::{CertificateIssuer, ClientCa, InstallOptions};

/// Mount path of a certificate that the process does not make itself.
const CERTIFICATE_DIR: &str = "/etc/interlock/certificate";
/// Mount path of the CA of the API server's client certificate.
const CLIENT_CA_DIR: &str = "/etc/interlock/client-ca";

/// One folder of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mounted<'a> {
    /// The certificate of the webhook: for a process that must not read Secrets, or does not make it.
    Certificate,
    /// The CA whose client certificates reviews require.
    ClientCa(&'a ClientCa),
}

/// The mounts of the pods of a Deployment.
pub(super) fn mounted(role: DeploymentRole, options: &InstallOptions) -> Vec<Mounted<'_>> {
    let certificate =
        role == DeploymentRole::Webhook || options.certificates == CertificateIssuer::CertManager;
    let all =
        [certificate.then_some(Mounted::Certificate), options.client_ca.as_ref().map(Mounted::ClientCa)];
    all.into_iter().flatten().filter(|_| role.serves()).collect()
}

impl Mounted<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::ClientCa(_) => "client-ca",
        }
    }

    fn folder(&self) -> &'static str {
        match self {
            Self::Certificate => CERTIFICATE_DIR,
            Self::ClientCa(_) => CLIENT_CA_DIR,
        }
    }

    pub(super) fn volume(&self) -> Volume {
        let item = |key: &str| KeyToPath { key: key.to_owned(), path: key.to_owned(), mode: None };
        let volume = Volume { name: self.name().to_owned(), ..Volume::default() };
        match self {
            // The Secret holds the CA's key as well, which the server does not need.
            Self::Certificate => Volume {
                secret: Some(SecretVolumeSource {
                    secret_name: Some(install::CERTIFICATE_SECRET.to_owned()),
                    items: Some(["tls.crt", "tls.key"].map(item).into()),
                    ..SecretVolumeSource::default()
                }),
                ..volume
            },
            Self::ClientCa(ca) => Volume {
                config_map: Some(ConfigMapVolumeSource {
                    name: ca.config_map.clone(),
                    items: Some(vec![item(install::CLIENT_CA_KEY)]),
                    ..ConfigMapVolumeSource::default()
                }),
                ..volume
            },
        }
    }

    pub(super) fn mount(&self) -> VolumeMount {
        VolumeMount {
            name: self.name().to_owned(),
            mount_path: self.folder().to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        }
    }

    /// Flags of `interlock run`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let folder = self.folder();
        match self {
            Self::Certificate => vec!["--cert-mode=files".to_owned(), format!("--cert-dir={folder}")],
            Self::ClientCa(ca) => {
                let file = format!("--client-ca={folder}/{}", install::CLIENT_CA_KEY);
                let names = (!ca.names.is_empty()).then(|| format!("--client-name={}", ca.names.join(",")));
                [Some(file), names].into_iter().flatten().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, workload};
    use super::*;

    /// The CA's key can sign certificates for any name that the API server trusts.
    #[test]
    fn no_pod_mounts_the_key_of_the_ca() {
        let layouts = [
            (Layout::Together, CertificateIssuer::BuiltIn),
            (Layout::Split, CertificateIssuer::BuiltIn),
            (Layout::Together, CertificateIssuer::CertManager),
            (Layout::Split, CertificateIssuer::CertManager),
        ];
        let mut mounted = 0;
        for (layout, certificates) in layouts {
            let all = workload::all(&InstallOptions { layout, certificates, ..InstallOptions::default() });
            for deployment in all.iter().filter(|o| o["kind"] == "Deployment") {
                let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
                for volume in volumes.as_array().into_iter().flatten() {
                    let items = volume["secret"]["items"].as_array().expect("items");
                    let keys: Vec<_> = items.iter().map(|item| item["key"].as_str().unwrap()).collect();
                    assert_eq!(keys, ["tls.crt", "tls.key"]);
                    mounted += 1;
                }
            }
        }
        assert_eq!(mounted, 3);
    }

    #[test]
    fn what_serves_asks_for_client_certificates() {
        let client_ca =
            ClientCa { config_map: "callers".to_owned(), names: vec!["kube-apiserver".to_owned()] };
        let options = InstallOptions {
            layout: Layout::Split,
            client_ca: Some(client_ca.clone()),
            ..InstallOptions::default()
        };
        assert_eq!(mounted(DeploymentRole::Controller, &options), []);
        let serving = mounted(DeploymentRole::Webhook, &options);
        assert_eq!(serving, [Mounted::Certificate, Mounted::ClientCa(&client_ca)]);
        let (volume, mount) = (serving[1].volume(), serving[1].mount());
        assert_eq!(volume.name, mount.name);
        assert_eq!(volume.config_map.expect("a ConfigMap").name, "callers");
        let flags = ["--client-ca=/etc/interlock/client-ca/client-ca.crt", "--client-name=kube-apiserver"];
        assert_eq!(serving[1].arguments(), flags);
        assert!(flags[0].contains(&mount.mount_path));
    }
}
