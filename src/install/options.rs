//! The options of an installation.

use clap::ValueEnum;
use interlock_core::admission::Freeze;
use interlock_core::api::cidr::Cidr;
use interlock_core::api::docs::DocsUrl;
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::rule::Rule;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::descriptor::PolicyOptions;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::telemetry::build;

/// Where the API server finds the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Behind a Service in our namespace; the process fills in the CA bundle.
    Service {
        /// Name of the Service.
        name: String,
    },
    /// At an address of its own, for a process outside the cluster.
    Url {
        /// `https://HOST[:PORT]`, without a path.
        base: String,
        /// PEM of the CA that signed its certificate; empty where the process fills it in.
        ca_bundle: Vec<u8>,
    },
}

/// How the roles are spread over Deployments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// One Deployment that does everything.
    #[default]
    Together,
    /// The webhook apart, without any right to write or to read Secrets.
    Split,
}

/// Who makes the certificate of the webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CertificateIssuer {
    /// The process itself.
    #[default]
    #[value(name = "builtin")]
    BuiltIn,
    /// cert-manager, which also fills in the CA bundle.
    CertManager,
}

/// The client certificates that reviews require.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCa {
    /// ConfigMap in our namespace with the CA under [`meta::install::CLIENT_CA_KEY`].
    pub config_map: String,
    /// Accepted subjects; empty means all.
    pub names: Vec<String>,
}

/// The options of an installation.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The kinds whose entries, policies and rights are rendered.
    pub kinds: Kinds,
    /// Namespace of the process.
    pub namespace: String,
    /// Where the API server finds the webhook.
    pub endpoint: Endpoint,
    /// User of the process, the only one that admission skips; `None` means its service account.
    pub controller_user: Option<String>,
    /// Service account that packages act as.
    pub packages: NamespacedName,
    /// How strictly a locked Instance is frozen.
    pub freeze: Freeze,
    /// Where the pages can be read that refusals refer to.
    pub docs: Option<DocsUrl>,
    /// Whether Secrets that are sources of flavors are labelled, which needs rights to read and patch all
    /// Secrets.
    pub flavor_secrets: bool,
    /// Whether the process gets the rights to carry DataPlanes out.
    pub data_planes: bool,
    /// Whether the process gets the rights to carry out policies of the Gateway API.
    pub policies: bool,
    /// Whether the policy is rendered that keeps people from deleting what is live of a DataPlane.
    pub protect_live: bool,
    /// Whether the process gets the rights to make the certificates of their admin APIs, which are rights to read and
    /// write all Secrets.
    pub data_plane_certificates: bool,
    /// Whether packages get the rights that KUDO gives them: everything.
    pub packages_cluster_admin: bool,
    /// Whether only the API server, DNS and gateways may be reached from the pods.
    pub strict_egress: bool,
    /// The only watched namespaces; empty means all.
    pub watch_namespaces: Vec<String>,
    /// How the roles are spread.
    pub layout: Layout,
    /// Who makes the certificate.
    pub certificates: CertificateIssuer,
    /// Container image.
    pub image: String,
    /// Replicas of each Deployment that serves the webhook.
    pub replicas: i32,
    /// Addresses of the API servers as the pods see them; empty: not known.
    pub api_servers: Vec<Cidr>,
    /// Client certificates that reviews require; `None` accepts all callers.
    pub client_ca: Option<ClientCa>,
}

impl Default for InstallOptions {
    fn default() -> Self {
        Self {
            kinds: crate::kinds::all(),
            namespace: meta::NAMESPACE.to_owned(),
            endpoint: Endpoint::Service { name: meta::install::SERVICE.to_owned() },
            controller_user: None,
            packages: NamespacedName::new(meta::NAMESPACE, meta::PACKAGES_SERVICE_ACCOUNT),
            freeze: Freeze::Strict,
            docs: build::docs(),
            flavor_secrets: false,
            data_planes: false,
            policies: false,
            protect_live: false,
            data_plane_certificates: false,
            packages_cluster_admin: false,
            strict_egress: false,
            watch_namespaces: Vec::new(),
            layout: Layout::default(),
            certificates: CertificateIssuer::default(),
            image: concat!("interlock:", env!("CARGO_PKG_VERSION")).to_owned(),
            replicas: 2,
            api_servers: Vec::new(),
            client_ca: None,
        }
    }
}

impl InstallOptions {
    /// User name of the process.
    pub fn controller_user(&self) -> String {
        self.controller_user
            .clone()
            .unwrap_or_else(|| format!("system:serviceaccount:{}:{}", self.namespace, meta::install::NAME))
    }

    /// Name of the Service; a process outside the cluster has none.
    pub fn service(&self) -> &str {
        match &self.endpoint {
            Endpoint::Service { name } => name,
            Endpoint::Url { .. } => meta::install::SERVICE,
        }
    }

    pub(super) fn ca_bundle(&self) -> Option<ByteString> {
        match &self.endpoint {
            Endpoint::Url { ca_bundle, .. } if !ca_bundle.is_empty() => Some(ByteString(ca_bundle.clone())),
            _ => None,
        }
    }

    /// What the policies take from the options.
    pub(super) fn policies(&self) -> PolicyOptions {
        PolicyOptions {
            controller_user: self.controller_user(),
            namespaces: self.namespace_selector(),
            freeze: self.freeze,
            docs: self.docs.clone(),
            see: Rule::see,
            rules: interlock_core::kinds::rules(self.kinds).collect(),
        }
    }

    /// The namespaces that admission covers: the watched ones, by a label that only the API server writes,
    /// or all. No label excludes a namespace.
    pub(super) fn namespace_selector(&self) -> Option<LabelSelector> {
        if self.watch_namespaces.is_empty() {
            return None;
        }
        Some(LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "kubernetes.io/metadata.name".to_owned(),
                operator: "In".to_owned(),
                values: Some(self.watch_namespaces.clone()),
            }]),
            match_labels: None,
        })
    }
}
