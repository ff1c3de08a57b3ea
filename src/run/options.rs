//! The validated options of `interlock run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use interlock_core::admission::Freeze;
use interlock_core::api::cidr::Cidr;
use interlock_core::api::docs::DocsUrl;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::Kinds;
use interlock_kudo::engine::run::PipeHelper;

use crate::cluster::lease::Timing;
use crate::server::tls::MinVersion;

/// The roles of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Answers admission reviews.
    pub webhook: bool,
    /// Runs the controllers, while it leads.
    pub controllers: bool,
}

/// The source of the serving certificate.
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
    /// Files that another process writes.
    Files {
        /// Directory with tls.crt and tls.key.
        dir: PathBuf,
        /// Time between two reads.
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

/// Accepted callers of the webhook port.
#[derive(Clone, Debug, Default)]
pub struct CallerOptions {
    /// Addresses of the API servers; empty: not known.
    pub api_servers: Vec<Cidr>,
    /// File of the CA whose client certificates reviews require.
    pub authority: Option<PathBuf>,
    /// Accepted subjects; empty: all of that CA.
    pub names: Vec<String>,
    /// Time between two reads of the file.
    pub interval: Duration,
}

#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The kinds that the process knows.
    pub kinds: Kinds,
    /// The roles of this process.
    pub roles: Roles,
    pub webhook_address: SocketAddr,
    /// Address of health and metrics.
    pub ops_address: SocketAddr,
    /// Address of the metrics for other machines.
    pub metrics_address: Option<SocketAddr>,
    /// Accepted callers of the webhook port.
    pub callers: CallerOptions,
    /// Oldest TLS version of the ports.
    pub tls_min_version: MinVersion,
    /// The source of the serving certificate.
    pub certificates: ServingCertificate,
    /// Service through which the API server reaches the webhook.
    pub service: String,
    /// URL at which it reaches the webhook instead.
    pub webhook_url: Option<String>,
    /// Name of our webhook configurations.
    pub webhook_configuration: String,
    /// Namespace of the process.
    pub namespace: String,
    /// Name of the pod, if there is one.
    pub pod_name: Option<String>,
    /// API user of the controllers.
    pub controller_user: Option<String>,
    /// Service account that packages act as.
    pub packages: NamespacedName,
    /// The helper of Pipe tasks.
    pub pipe_helper: PipeHelper,
    /// How strictly a locked Instance is frozen.
    pub freeze: Freeze,
    /// Where the pages can be read that refusals refer to.
    pub docs: Option<DocsUrl>,
    /// Whether Secrets that are sources of flavors are labelled; it needs rights on Secrets.
    pub flavor_secrets: bool,
    /// The only watched namespaces; empty means all.
    pub watch_namespaces: Vec<String>,
    /// The lease of the controllers.
    pub lease: LeaseOptions,
    /// Longest processor time of one rendering.
    pub render_limit: Duration,
    /// How long the webhook answers after a signal to stop.
    pub shutdown_delay: Duration,
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

impl RunOptions {
    /// Names by which the API server may call the webhook: those of the Service, and the host of the URL.
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
