//! `interlock render`: everything that an installation consists of, as YAML.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::exit;
use super::flags::{FreezeFlag, namespaced_name};
use crate::api::meta;
use crate::api::object::NamespacedName;
use crate::install::{self, Certificates, Endpoint, Layout, Options, Part};

/// What is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Part(Part),
    Kustomize,
}

impl ValueEnum for What {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Part(Part::Crds),
            Self::Part(Part::KongCrds),
            Self::Part(Part::Webhooks),
            Self::Part(Part::Policies),
            Self::Part(Part::Rbac),
            Self::Part(Part::Workload),
            Self::Part(Part::All),
            Self::Kustomize,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Part(part) => part.to_possible_value(),
            Self::Kustomize => Some(
                PossibleValue::new("kustomize")
                    .help("The kustomize base and overlays, into the folder --into"),
            ),
        }
    }
}

/// Flags of `interlock render`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// What to render.
    #[arg(value_enum)]
    what: What,
    /// Namespace of the process.
    #[arg(long, short, default_value = meta::NAMESPACE)]
    namespace: String,
    /// Service that the API server calls.
    #[arg(long, default_value = meta::install::SERVICE)]
    service_name: String,
    /// User of the process, the only one that admission skips; by default its service account.
    #[arg(long)]
    controller_user: Option<String>,
    /// NAMESPACE/NAME of the service account that effects of packages are made as; by default
    /// interlock-packages in --namespace.
    #[arg(long, value_parser = namespaced_name)]
    packages_service_account: Option<NamespacedName>,
    /// URL of a process outside the cluster, instead of a Service, a Deployment and so on.
    #[arg(long)]
    webhook_url: Option<String>,
    /// PEM file of the CA of --webhook-url; without it the process fills the CA in.
    #[arg(long, requires = "webhook_url")]
    ca_bundle: Option<PathBuf>,
    /// How strictly an Instance is frozen while a plan runs.
    #[arg(long, value_enum, default_value = "strict")]
    freeze: FreezeFlag,
    /// Namespaces to look after, separated by commas; all by default.
    #[arg(long, value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// How the roles are spread over Deployments.
    #[arg(long, value_enum, default_value = "together")]
    layout: Layout,
    /// Who makes the certificate of the webhook.
    #[arg(long, value_enum, default_value = "builtin")]
    certificates: Certificates,
    /// Container image.
    #[arg(long, default_value = concat!("interlock:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Replicas of each Deployment.
    #[arg(long, default_value_t = 2)]
    replicas: i32,
    /// Folder that `render kustomize` writes.
    #[arg(long, required_if_eq("what", "kustomize"))]
    into: Option<PathBuf>,
}

/// Prints or writes what was asked for.
pub fn main(arguments: Arguments) -> ExitCode {
    exit::done(render(arguments))
}

fn render(arguments: Arguments) -> anyhow::Result<()> {
    let part = match arguments.what {
        What::Part(part) => part,
        What::Kustomize => {
            return write_tree(arguments.into.as_deref().context("--into names no folder")?);
        }
    };
    let text = install::yaml(&install::objects(part, &options(arguments)?))?;
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

fn options(arguments: Arguments) -> anyhow::Result<Options> {
    let a = arguments;
    let endpoint = match a.webhook_url {
        None => Endpoint::Service { name: a.service_name },
        Some(base) if !base.starts_with("https://") => {
            bail!("--webhook-url {base}: the API server calls https:// addresses only")
        }
        Some(base) => {
            let ca_bundle = match &a.ca_bundle {
                Some(file) => {
                    std::fs::read(file).with_context(|| format!("--ca-bundle {}", file.display()))?
                }
                None => Vec::new(),
            };
            Endpoint::Url { base, ca_bundle }
        }
    };
    Ok(Options {
        endpoint,
        controller_user: a.controller_user,
        packages: a
            .packages_service_account
            .unwrap_or_else(|| NamespacedName::new(&*a.namespace, meta::PACKAGES_SERVICE_ACCOUNT)),
        namespace: a.namespace,
        freeze: a.freeze.into(),
        watch_namespaces: a.watch_namespaces,
        layout: a.layout,
        certificates: a.certificates,
        image: a.image,
        replicas: a.replicas,
    })
}

fn write_tree(folder: &Path) -> anyhow::Result<()> {
    for (path, text) in install::kustomize::tree()? {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}
