//! `interlock render`: all objects of an installation, as YAML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::Kinds;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::cli::common::error::Exit;
use crate::cli::common::flags::{
    Cidrs, DocsFlag, FreezeFlag, Namespaces, cidrs, dns_label, namespaced_name, namespaces,
};
use crate::cli::common::{exit, output};
use crate::install;
use crate::install::{CertificateIssuer, ClientCa, Endpoint, InstallOptions, Layout, Part};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RenderPart {
    Part(Part),
    Kustomize,
    Helm,
}

impl ValueEnum for RenderPart {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Part(Part::Crds),
            Self::Part(Part::KongCrds),
            Self::Part(Part::KuadrantCrds),
            Self::Part(Part::Webhooks),
            Self::Part(Part::Policies),
            Self::Part(Part::Rbac),
            Self::Part(Part::Workload),
            Self::Part(Part::Install),
            Self::Part(Part::Monitoring),
            Self::Part(Part::All),
            Self::Kustomize,
            Self::Helm,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Part(part) => part.to_possible_value(),
            Self::Kustomize => Some(
                PossibleValue::new("kustomize")
                    .help("The kustomize base and overlays, into the folder --into"),
            ),
            Self::Helm => Some(PossibleValue::new("helm").help("The Helm chart, into the folder --into")),
        }
    }
}

/// Flags of `interlock render`.
#[derive(Args, Debug)]
pub struct RenderArguments {
    /// What to render.
    #[arg(value_enum)]
    what: RenderPart,
    /// Namespace of the process.
    #[arg(long, short, default_value = meta::NAMESPACE, value_parser = dns_label)]
    namespace: String,
    /// Service that the API server calls.
    #[arg(long, default_value = meta::install::SERVICE, value_parser = dns_label)]
    service_name: String,
    /// User of the process, the only one that admission skips; by default its service account.
    #[arg(long)]
    controller_user: Option<String>,
    /// NAMESPACE/NAME of the service account that packages act as; by default
    /// interlock-packages in --namespace.
    #[arg(long, value_parser = namespaced_name)]
    packages_service_account: Option<NamespacedName>,
    /// URL of a process outside the cluster, in place of a Service and a Deployment.
    #[arg(long)]
    webhook_url: Option<String>,
    /// PEM file of the CA of --webhook-url; without it the process fills the CA in.
    #[arg(long, requires = "webhook_url")]
    ca_bundle: Option<PathBuf>,
    /// How strictly an Instance is frozen while a plan runs.
    #[arg(long, value_enum, default_value = "strict")]
    freeze: FreezeFlag,
    #[command(flatten)]
    docs: DocsFlag,
    /// Namespaces to watch, separated by commas; by default, or if empty, all.
    #[arg(long, value_parser = namespaces)]
    watch_namespaces: Vec<Namespaces>,
    /// Grant get and patch of all Secrets, to label those that router flavors of gateways come from.
    #[arg(long)]
    flavor_secrets: bool,
    /// Grant the rights to carry DataPlanes out: writing Deployments, Services, HorizontalPodAutoscalers and
    /// PodDisruptionBudgets in every namespace.
    #[arg(long)]
    dataplanes: bool,
    /// Grant the rights to carry RateLimitPolicies out: writing EnvoyPatchPolicies in every namespace, and ConfigMaps and
    /// Limitadors.
    #[arg(long)]
    policies: bool,
    /// Add the policy interlock-protect-live: users may not delete live children of a DataPlane.
    #[arg(long)]
    protect_live: bool,
    /// Grant create, get and patch of all Secrets, to create the certificates of the admin APIs of
    /// DataPlanes.
    #[arg(long)]
    dataplane_certificates: bool,
    /// How webhook and controllers are spread over Deployments.
    #[arg(long, value_enum, default_value = "together")]
    layout: Layout,
    /// Issuer of the certificate of the webhook.
    #[arg(long, value_enum, default_value = "builtin")]
    certificates: CertificateIssuer,
    /// Container image.
    #[arg(long, default_value = concat!("interlock:", env!("CARGO_PKG_VERSION")), value_parser = image)]
    image: String,
    /// Replicas of each Deployment.
    #[arg(long, default_value_t = 2, value_parser = replicas)]
    replicas: i32,
    /// Addresses that the API servers call from, as the pods see them, separated by commas. Reviews from
    /// other addresses are then not answered, and where the network plug-in enforces NetworkPolicies, they do
    /// not reach the webhook. By default any address.
    #[arg(long, value_parser = cidrs)]
    api_server_cidr: Vec<Cidrs>,
    /// ConfigMap in --namespace with a CA under client-ca.crt. Only reviews with a client certificate of that
    /// CA are answered; the --admission-control-config-file of the API server says which one it shows.
    #[arg(long, value_parser = dns_label)]
    client_ca_configmap: Option<String>,
    /// Subjects of these certificates that are accepted, separated by commas: a common name or an
    /// alternative name of the certificate; all by default.
    #[arg(long, value_delimiter = ',', requires = "client_ca_configmap")]
    client_name: Vec<String>,
    /// Folder that `render kustomize` and `render helm` write.
    #[arg(long, required_if_eq_any([("what", "kustomize"), ("what", "helm")]))]
    into: Option<PathBuf>,
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("write it as NAME:TAG or REGISTRY/NAME:TAG".to_owned());
    }
    Ok(text.to_owned())
}

fn replicas(text: &str) -> Result<i32, String> {
    text.parse().ok().filter(|&count| count >= 0).ok_or_else(|| "give a whole number, 0 or more".to_owned())
}

/// Prints or writes the rendered objects.
pub fn main(arguments: RenderArguments, kinds: Kinds) -> ExitCode {
    match render(arguments, kinds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::failed(&error, Exit::Usage),
    }
}

fn render(arguments: RenderArguments, kinds: Kinds) -> anyhow::Result<()> {
    let part = match arguments.what {
        RenderPart::Part(part) => part,
        RenderPart::Kustomize | RenderPart::Helm => {
            let files = match arguments.what {
                RenderPart::Helm => install::helm::chart()?,
                _ => install::kustomize::tree()?,
            };
            return write_tree(files, arguments.into.as_deref().context("--into names no folder")?);
        }
    };
    let text = install::yaml(&install::objects(part, &options(arguments, kinds)?)?)?;
    Ok(output::print(&text)?)
}

fn options(arguments: RenderArguments, kinds: Kinds) -> anyhow::Result<InstallOptions> {
    let a = arguments;
    let endpoint = match a.webhook_url {
        None => Endpoint::Service { name: a.service_name },
        Some(base) if !base.starts_with("https://") => {
            bail!("--webhook-url {base}: the API server calls https:// addresses only")
        }
        Some(base) => {
            let ca_bundle = match &a.ca_bundle {
                Some(file) => ca_bundle(file).with_context(|| format!("--ca-bundle {}", file.display()))?,
                None => Vec::new(),
            };
            Endpoint::Url { base, ca_bundle }
        }
    };
    Ok(InstallOptions {
        kinds,
        endpoint,
        controller_user: a.controller_user,
        packages: a
            .packages_service_account
            .unwrap_or_else(|| NamespacedName::new(&*a.namespace, meta::PACKAGES_SERVICE_ACCOUNT)),
        namespace: a.namespace,
        freeze: a.freeze.into(),
        docs: a.docs.get(),
        flavor_secrets: a.flavor_secrets,
        data_planes: a.dataplanes,
        policies: a.policies,
        protect_live: a.protect_live,
        data_plane_certificates: a.dataplane_certificates,
        packages_cluster_admin: false,
        strict_egress: false,
        watch_namespaces: Namespaces::union(a.watch_namespaces),
        layout: a.layout,
        certificates: a.certificates,
        image: a.image,
        replicas: a.replicas,
        api_servers: Cidrs::union(a.api_server_cidr),
        client_ca: a.client_ca_configmap.map(|config_map| ClientCa {
            config_map,
            names: a.client_name.into_iter().filter(|name| !name.is_empty()).collect(),
        }),
    })
}

/// With an invalid bundle the API server calls no webhook.
fn ca_bundle(file: &Path) -> anyhow::Result<Vec<u8>> {
    let pem = std::fs::read(file)?;
    let remedy = "give a file of PEM with the certificate of the CA";
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| anyhow!("it is not PEM: {error}; {remedy}"))?;
    ensure!(!certificates.is_empty(), "it holds no certificate; {remedy}");
    for certificate in &certificates {
        x509_parser::parse_x509_certificate(certificate)
            .map_err(|error| anyhow!("it holds an invalid certificate: {error}; {remedy}"))?;
    }
    Ok(pem)
}

fn write_tree(files: BTreeMap<String, String>, folder: &Path) -> anyhow::Result<()> {
    for (path, text) in files {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use rstest::rstest;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RenderArguments,
    }

    fn read(line: &[&str]) -> Result<InstallOptions, String> {
        let words = ["render", "all"].iter().chain(line);
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        options(line.arguments, crate::kinds::all()).map_err(|error| format!("{error:#}"))
    }

    #[rstest]
    #[case::unset("--watch-namespaces=", &[])]
    #[case::two("--watch-namespaces=a,b", &["a", "b"])]
    fn an_installation_guards_what_is_named(#[case] line: &str, #[case] names: &[&str]) {
        assert_eq!(read(&[line]).expect("read").watch_namespaces, names);
    }

    #[rstest]
    #[case::watched(
        "--watch-namespaces=,a",
        "'--watch-namespaces <WATCH_NAMESPACES>': \"\" is no name of a namespace"
    )]
    #[case::namespace("--namespace=Team", "invalid value 'Team' for '--namespace <NAMESPACE>': write a name")]
    #[case::no_namespace("--namespace=", "invalid value '' for '--namespace <NAMESPACE>': write ")]
    #[case::service("--service-name=", "invalid value '' for '--service-name <SERVICE_NAME>': write ")]
    #[case::image("--image=", "invalid value '' for '--image <IMAGE>': write ")]
    #[case::api_server("--api-server-cidr=api", "\"api\" is no range of addresses; write it as")]
    #[case::client_name("--client-name=kube-apiserver", "--client-ca-configmap <CLIENT_CA_CONFIGMAP>")]
    #[case::client_ca(
        "--client-ca-configmap=",
        "invalid value '' for '--client-ca-configmap <CLIENT_CA_CONFIGMAP>'"
    )]
    #[case::docs(
        "--docs-url=https://a b",
        "' ' stands in no address of a folder: write it as https://HOST/PATH"
    )]
    #[case::two_images("--image=a b", "write it as NAME:TAG")]
    #[case::replicas("--replicas=-1", "invalid value '-1' for '--replicas <REPLICAS>': give a whole number")]
    fn misuse_is_named(#[case] line: &str, #[case] text: &str) {
        let error = read(&[line]).expect_err("misuse");
        assert!(error.contains(text), "{error}");
    }

    #[rstest]
    #[case::empty("", "it holds no certificate")]
    #[case::text("a certificate", "it holds no certificate")]
    #[case::a_key(
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "it holds no certificate"
    )]
    #[case::cut("-----BEGIN CERTIFICATE-----\nAAAA\n", "it is not PEM")]
    #[case::of_nothing(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "an invalid certificate"
    )]
    fn a_bundle_without_a_certificate_is_refused(#[case] text: &str, #[case] complaint: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        std::fs::write(&file, text).unwrap();
        let flag = format!("--ca-bundle={}", file.display());
        let error = read(&["--webhook-url=https://127.0.0.1:9443", &flag]).expect_err("no certificate");
        assert!(error.starts_with("--ca-bundle ") && error.contains(complaint), "{error}");
    }

    #[test]
    fn a_bundle_is_rendered_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
        std::fs::write(&file, &pem).unwrap();
        let flag = format!("--ca-bundle={}", file.display());
        let options = read(&["--webhook-url=https://127.0.0.1:9443", &flag]).expect("read");
        let Endpoint::Url { ca_bundle, .. } = options.endpoint else { panic!("an address of its own") };
        assert_eq!(ca_bundle, pem.into_bytes());
    }
}
