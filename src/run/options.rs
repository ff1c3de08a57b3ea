//! What `interlock run` was asked for, checked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use interlock_core::admission::Freeze;
use interlock_core::api::cidr::Cidr;
use interlock_core::api::object::NamespacedName;

use crate::cluster::lease::Timing;
use crate::server::tls::MinVersion;

/// What this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Answers admission reviews.
    pub webhook: bool,
    /// Runs the controllers, while it leads.
    pub controllers: bool,
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug)]
pub enum ServingCertificate {
    /// Made by the process, kept in a Secret.
    Builtin {
        /// Name of the Secret.
        secret: String,
        /// Life of a leaf.
        leaf_lifetime: Duration,
        /// Life of a CA.
        ca_lifetime: Duration,
    },
    /// Made by somebody else, in files.
    Files {
        /// Directory with tls.crt and tls.key.
        dir: PathBuf,
        /// Time between two looks.
        interval: Duration,
    },
}

/// The lease of the controllers.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Name, in the namespace of the process.
    pub name: String,
    /// The durations.
    pub timing: Timing,
}

/// Who is answered on the webhook port.
#[derive(Clone, Debug, Default)]
pub struct CallerOptions {
    /// Addresses of the API servers; empty: not known.
    pub api_servers: Vec<Cidr>,
    /// File of the CA whose client certificates are required of reviews.
    pub authority: Option<PathBuf>,
    /// Subjects that are accepted; empty: all of that CA.
    pub names: Vec<String>,
    /// Time between two looks at the file.
    pub interval: Duration,
}

/// Everything that can be chosen.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What this process does.
    pub roles: Roles,
    /// Address of the webhook.
    pub webhook_address: SocketAddr,
    /// Address of health and metrics.
    pub ops_address: SocketAddr,
    /// Who is answered on the webhook port.
    pub callers: CallerOptions,
    /// Oldest version of TLS that the ports speak.
    pub tls_min_version: MinVersion,
    /// Where the serving certificate comes from.
    pub certificates: ServingCertificate,
    /// Service that the API server reaches the webhook by.
    pub service: String,
    /// URL that it reaches the webhook by instead.
    pub webhook_url: Option<String>,
    /// Name of our webhook configurations.
    pub webhook_configuration: String,
    /// Namespace of the process.
    pub namespace: String,
    /// Name of the pod, where there is one.
    pub pod_name: Option<String>,
    /// API user of the controllers.
    pub controller_user: Option<String>,
    /// Service account that effects of packages are made as.
    pub packages: NamespacedName,
    /// How strictly a locked Instance is frozen.
    pub freeze: Freeze,
    /// Whether Secrets that flavors come from are labelled; it takes rights on Secrets.
    pub flavor_secrets: bool,
    /// The only namespaces that are looked at; empty means all.
    pub watch_namespaces: Vec<String>,
    /// The lease of the controllers.
    pub lease: LeaseOptions,
    /// Longest processor time of one rendering.
    pub render_limit: Duration,
    /// How long the webhook answers after a signal to stop.
    pub shutdown_delay: Duration,
    /// Kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// Context of it.
    pub context: Option<String>,
}

impl RunOptions {
    /// Names that the API server may call the webhook by: those of the Service, and the host of
    /// the URL.
    pub fn names(&self) -> Result<Vec<String>, String> {
        let service = format!("{}.{}.svc", self.service, self.namespace);
        let mut names = vec![service.clone(), format!("{service}.cluster.local")];
        if let Some(url) = &self.webhook_url {
            let url: http::Uri = url.parse().map_err(|error| format!("{error}"))?;
            if url.scheme_str() != Some("https") {
                return Err("it must begin with https://".to_owned());
            }
            let host = url.host().ok_or_else(|| "it has no host".to_owned())?;
            names.push(host.trim_matches(['[', ']']).to_owned());
        }
        Ok(names)
    }
}
