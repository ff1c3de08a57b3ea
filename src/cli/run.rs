//! `interlock run`: flags, each also an environment variable.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::Kinds;
use interlock_kudo::engine::run::{PIPE_IMAGE, PipeHelper};
use serde_json::Value;

use crate::cli::common::error::{CliError, of_client};
use crate::cli::common::exit;
use crate::cli::common::flags::{
    Cidrs, DocsFlag, FreezeFlag, Namespaces, cidrs, dns_label, duration, namespaces,
};
use crate::cluster::lease::Timing;
use crate::run;
use crate::run::{CallerOptions, LeaseOptions, Roles, RunError, RunOptions, Runtimes, ServingCertificate};
use crate::server::tls::MinVersion;
use crate::telemetry::log;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProcessRole {
    /// Both.
    All,
    /// Answers admission reviews; writes nothing.
    Webhook,
    /// Runs the controllers, while it leads.
    Controller,
}

/// Where the serving certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CertMode {
    /// A CA of its own in a Secret, shared by the replicas and renewed in time.
    Builtin,
    /// tls.crt and tls.key in --cert-dir, as cert-manager or a person puts them there.
    Files,
}

/// Oldest version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsVersion {
    /// TLS 1.2 and 1.3.
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3 only.
    #[value(name = "1.3")]
    Tls13,
}

impl From<TlsVersion> for MinVersion {
    fn from(flag: TlsVersion) -> Self {
        match flag {
            TlsVersion::Tls12 => Self::Tls12,
            TlsVersion::Tls13 => Self::Tls13,
        }
    }
}

/// Flags of `interlock run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// What this process does.
    #[arg(long, env = "INTERLOCK_ROLE", value_enum, default_value = "all")]
    role: ProcessRole,
    /// Address of the webhook.
    #[arg(long, env = "INTERLOCK_WEBHOOK_BIND_ADDRESS", default_value = "0.0.0.0")]
    webhook_bind_address: std::net::IpAddr,
    /// Port of the webhook.
    #[arg(long, env = "INTERLOCK_WEBHOOK_PORT", default_value_t = meta::install::WEBHOOK_PORT)]
    webhook_port: u16,
    /// Address of health and metrics. Beyond loopback it speaks TLS, and asks the API server who may read
    /// /metrics.
    #[arg(long, env = "INTERLOCK_OPS_BIND_ADDRESS", default_value = "127.0.0.1:8080")]
    ops_bind_address: SocketAddr,
    /// Address of the metrics for a Prometheus in the cluster, such as 0.0.0.0:8443, with health and without
    /// the page. Beyond loopback it speaks TLS, and asks the API server who may read /metrics. Off by
    /// default.
    #[arg(long, env = "INTERLOCK_METRICS_BIND_ADDRESS")]
    metrics_bind_address: Option<SocketAddr>,
    /// Where the serving certificate comes from; by default files where --cert-dir is given,
    /// else builtin.
    #[arg(long, env = "INTERLOCK_CERT_MODE", value_enum)]
    cert_mode: Option<CertMode>,
    /// Directory with tls.crt and tls.key.
    #[arg(long, env = "INTERLOCK_CERT_DIR")]
    cert_dir: Option<PathBuf>,
    /// Time between two reads of these files, and of --client-ca.
    #[arg(long, env = "INTERLOCK_CERT_INTERVAL", default_value = "10s", value_parser = duration)]
    cert_interval: Duration,
    /// Oldest accepted version of TLS.
    #[arg(long, env = "INTERLOCK_TLS_MIN_VERSION", value_enum, default_value = "1.3")]
    tls_min_version: TlsVersion,
    /// PEM file of a CA. Only reviews with a client certificate of that CA are answered; the
    /// --admission-control-config-file of the API server says which one it shows. Health needs none.
    #[arg(long, env = "INTERLOCK_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// Subjects of these certificates that are accepted, separated by commas: a common name or an
    /// alternative name of the certificate; all by default.
    #[arg(long, env = "INTERLOCK_CLIENT_NAME", value_delimiter = ',', requires = "client_ca")]
    client_name: Vec<String>,
    /// Addresses that the API servers call from, separated by commas: 10.0.0.0/24,10.1.0.7. The limits for
    /// each address do not apply to them. Without --client-ca, only reviews from these addresses are
    /// answered.
    #[arg(long, env = "INTERLOCK_API_SERVER_CIDR", value_parser = cidrs)]
    api_server_cidr: Vec<Cidrs>,
    /// Service through which the API server calls the webhook.
    #[arg(long, env = "INTERLOCK_SERVICE_NAME", default_value = meta::install::SERVICE, value_parser = dns_label)]
    service_name: String,
    /// Namespace of this process: its Service, Lease and Secrets.
    #[arg(long, env = "INTERLOCK_NAMESPACE", default_value = meta::NAMESPACE, value_parser = dns_label)]
    namespace: String,
    /// Name of the pod, for the Lease.
    #[arg(long, env = "INTERLOCK_POD_NAME")]
    pod_name: Option<String>,
    /// URL at which the API server calls the webhook instead of the Service, for a process
    /// outside the cluster.
    #[arg(long, env = "INTERLOCK_WEBHOOK_URL")]
    webhook_url: Option<String>,
    /// Name of the Mutating- and ValidatingWebhookConfiguration whose caBundle the process maintains.
    #[arg(long, env = "INTERLOCK_WEBHOOK_CONFIGURATION", default_value = meta::install::WEBHOOK_CONFIGURATION)]
    webhook_configuration: String,
    /// Secret of the built-in certificates.
    #[arg(long, env = "INTERLOCK_CERT_SECRET", default_value = meta::install::CERTIFICATE_SECRET)]
    cert_secret: String,
    /// Life of the built-in serving certificate; renewed at two thirds.
    #[arg(long, env = "INTERLOCK_CERT_LIFETIME", default_value = "90d", value_parser = duration)]
    cert_lifetime: Duration,
    /// Life of the built-in CA; exchanged at two thirds.
    #[arg(long, env = "INTERLOCK_CA_LIFETIME", default_value = "3650d", value_parser = duration)]
    ca_lifetime: Duration,
    /// API user of the controllers, the only one that admission skips. Found by asking the API
    /// server where controllers run, required with --role=webhook.
    #[arg(long, env = "INTERLOCK_CONTROLLER_USER")]
    controller_user: Option<String>,
    /// Service account that packages act as: NAMESPACE/NAME, or a NAME in
    /// --namespace.
    #[arg(long, env = "INTERLOCK_PACKAGES_SERVICE_ACCOUNT", default_value = meta::PACKAGES_SERVICE_ACCOUNT)]
    packages_service_account: String,
    /// Image of the container that keeps the Pod of a Pipe task alive until its files are read; it needs
    /// /bin/sh, sleep and cat.
    #[arg(long, env = "INTERLOCK_PIPE_IMAGE", default_value = PIPE_IMAGE)]
    pipe_image: String,
    /// securityContext of that container, as JSON, where the cluster asks for one.
    #[arg(long, env = "INTERLOCK_PIPE_SECURITY_CONTEXT", value_name = "JSON", value_parser = json_object)]
    pipe_security_context: Option<Value>,
    /// How strictly an Instance is frozen while a plan runs.
    #[arg(long, env = "INTERLOCK_FREEZE", value_enum, default_value = "strict")]
    freeze: FreezeFlag,
    #[command(flatten)]
    docs: DocsFlag,
    /// Namespaces to watch, separated by commas; by default, or if empty, all.
    #[arg(long, env = "INTERLOCK_WATCH_NAMESPACES", value_parser = namespaces)]
    watch_namespaces: Vec<Namespaces>,
    /// Label the Secrets that router flavors of gateways come from, so that admission checks their changes.
    /// Needs the rights that `interlock render rbac --flavor-secrets` prints.
    #[arg(long, env = "INTERLOCK_FLAVOR_SECRETS")]
    flavor_secrets: bool,
    /// Name of the Lease that one controller holds.
    #[arg(long, env = "INTERLOCK_LEADER_ELECTION_ID", default_value = meta::install::LEASE)]
    leader_election_id: String,
    /// How long other candidates wait for a Lease that is not renewed.
    #[arg(long, env = "INTERLOCK_LEASE_DURATION", default_value = "15s", value_parser = duration)]
    lease_duration: Duration,
    /// How long a leader continues without renewing.
    #[arg(long, env = "INTERLOCK_RENEW_DEADLINE", default_value = "10s", value_parser = duration)]
    renew_deadline: Duration,
    /// Pause between two attempts at the Lease.
    #[arg(long, env = "INTERLOCK_RETRY_PERIOD", default_value = "2s", value_parser = duration)]
    retry_period: Duration,
    /// Longest time of a processor for rendering the templates of one task. A longer rendering is
    /// interrupted, and retried later.
    #[arg(long, env = "INTERLOCK_RENDER_LIMIT", default_value = "2s", value_parser = duration)]
    render_limit: Duration,
    /// How long the webhook still answers after a signal to stop, so that callers can move to other
    /// replicas.
    #[arg(long, env = "INTERLOCK_SHUTDOWN_DELAY", default_value = "15s", value_parser = duration)]
    shutdown_delay: Duration,
    /// Kubeconfig; by default KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, env = "INTERLOCK_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, env = "INTERLOCK_CONTEXT")]
    context: Option<String>,
    /// Log level: error, warn, info, debug, trace or TARGET=LEVEL,...
    #[arg(long, env = "INTERLOCK_LOG_LEVEL", default_value = "info")]
    log_level: String,
    /// Log format.
    #[arg(long, env = "INTERLOCK_LOG_FORMAT", value_enum, default_value = "text")]
    log_format: log::Format,
}

/// `NAMESPACE/NAME`, or `NAME` in a default namespace.
fn service_account(text: &str, namespace: &str) -> Result<NamespacedName, String> {
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return Err(format!("--packages-service-account {text:?}: write it as NAMESPACE/NAME or NAME"));
    }
    Ok(NamespacedName::new(namespace, name))
}

/// A JSON object, such as a securityContext.
fn json_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => {
            Err("write it as a JSON object, such as {\"runAsNonRoot\": true, \"runAsUser\": 65532}"
                .to_owned())
        }
    }
}

/// `--cert-dir` implies files, unless `--cert-mode` is set.
fn certificates(a: &RunArguments) -> Result<ServingCertificate, String> {
    match (a.cert_mode, &a.cert_dir) {
        (Some(CertMode::Files), None) => {
            Err("--cert-mode=files needs --cert-dir, the directory with tls.crt and tls.key".to_owned())
        }
        (None | Some(CertMode::Files), Some(dir)) => {
            Ok(ServingCertificate::Files { dir: dir.clone(), interval: a.cert_interval })
        }
        (None | Some(CertMode::Builtin), _) => Ok(ServingCertificate::Builtin {
            secret: a.cert_secret.clone(),
            leaf_lifetime: a.cert_lifetime,
            ca_lifetime: a.ca_lifetime,
        }),
    }
}

/// Runs until a signal.
pub fn main(arguments: RunArguments, kinds: Kinds) -> ExitCode {
    if let Err(error) = log::start(&arguments.log_level, arguments.log_format) {
        return exit::print(&CliError::usage(error.to_string()));
    }
    let options = match options(arguments, kinds) {
        Ok(options) => options,
        Err(misuse) => return exit::print(&CliError::usage(misuse)),
    };
    let runtimes = match Runtimes::start() {
        Ok(runtimes) => runtimes,
        Err(error) => {
            let failed = CliError::refused("the threads of the process could not be started");
            return exit::print(&failed.why(error.to_string()));
        }
    };
    let handles = runtimes.handles();
    let result = runtimes.run(run::run(options, handles));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = match &error {
                RunError::Client(error) => of_client(error),
                error => CliError::refused(error.to_string()),
            };
            tracing::error!(%error, "stopped");
            exit::print(&error)
        }
    }
}

fn options(arguments: RunArguments, kinds: Kinds) -> Result<RunOptions, String> {
    let a = arguments;
    if a.role == ProcessRole::Webhook && a.controller_user.is_none() {
        return Err("--role=webhook needs --controller-user, the API user of the controllers: this process \
                    cannot find it out"
            .to_owned());
    }
    if !(a.retry_period < a.renew_deadline && a.renew_deadline < a.lease_duration) {
        return Err(format!(
            "--retry-period ({:?}) must be less than --renew-deadline ({:?}), and that less than \
             --lease-duration ({:?})",
            a.retry_period, a.renew_deadline, a.lease_duration
        ));
    }
    let certificates = certificates(&a)?;
    Ok(RunOptions {
        kinds,
        certificates,
        roles: match a.role {
            ProcessRole::All => Roles { webhook: true, controllers: true },
            ProcessRole::Webhook => Roles { webhook: true, controllers: false },
            ProcessRole::Controller => Roles { webhook: false, controllers: true },
        },
        webhook_address: SocketAddr::new(a.webhook_bind_address, a.webhook_port),
        ops_address: a.ops_bind_address,
        metrics_address: a.metrics_bind_address,
        callers: CallerOptions {
            api_servers: Cidrs::union(a.api_server_cidr),
            authority: a.client_ca,
            names: a.client_name.into_iter().filter(|name| !name.is_empty()).collect(),
            interval: a.cert_interval,
        },
        tls_min_version: a.tls_min_version.into(),
        service: a.service_name,
        webhook_url: a.webhook_url,
        webhook_configuration: a.webhook_configuration,
        pod_name: a.pod_name,
        controller_user: a.controller_user,
        packages: service_account(&a.packages_service_account, &a.namespace)?,
        pipe_helper: PipeHelper { image: a.pipe_image, security_context: a.pipe_security_context },
        namespace: a.namespace,
        freeze: a.freeze.into(),
        docs: a.docs.get(),
        flavor_secrets: a.flavor_secrets,
        watch_namespaces: Namespaces::union(a.watch_namespaces),
        lease: LeaseOptions {
            name: a.leader_election_id,
            timing: Timing {
                duration: a.lease_duration,
                renew_deadline: a.renew_deadline,
                retry_period: a.retry_period,
            },
        },
        render_limit: a.render_limit,
        shutdown_delay: a.shutdown_delay,
        kubeconfig: a.kubeconfig,
        context: a.context,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use rstest::rstest;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RunArguments,
    }

    fn read(line: &str) -> Result<RunOptions, String> {
        let words = std::iter::once("run").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        options(line.arguments, crate::kinds::all())
    }

    #[rstest]
    #[case::webhook_alone("--role=webhook", "needs --controller-user")]
    #[case::lease("--lease-duration=5s", "must be less than")]
    #[case::account("--packages-service-account=a/b/c", "NAMESPACE/NAME")]
    #[case::security("--pipe-security-context=[]", "write it as a JSON object")]
    #[case::files("--cert-mode=files", "needs --cert-dir")]
    #[case::duration("--cert-lifetime=soon", "write it as 15s")]
    #[case::namespace("--namespace=", "invalid value '' for '--namespace <NAMESPACE>': write ")]
    #[case::service("--service-name=a.b", "invalid value 'a.b' for '--service-name <SERVICE_NAME>'")]
    #[case::watched("--watch-namespaces=,a", "\"\" is no name of a namespace")]
    #[case::api_server("--api-server-cidr=10.0.0.0/24,api", "\"api\" is no range of addresses")]
    #[case::client_name("--client-name=kube-apiserver", "--client-ca <CLIENT_CA>")]
    #[case::docs("--docs-url=docs.example.org", "write it as https://HOST/PATH")]
    #[case::tls("--tls-min-version=1.1", "[possible values: 1.2, 1.3]")]
    fn misuse_is_named(#[case] line: &str, #[case] text: &str) {
        let error = read(line).expect_err("misuse");
        assert!(error.contains(text), "{error}");
    }

    #[rstest]
    #[case::empty("--watch-namespaces=", &[])]
    #[case::two("--watch-namespaces=a,b", &["a", "b"])]
    fn watches_what_is_named(#[case] line: &str, #[case] names: &[&str]) {
        assert_eq!(read(line).expect("read").watch_namespaces, names);
    }

    #[test]
    fn callers_are_those_that_are_named() {
        let line = "--client-ca=/ca.crt --client-name=a,b --client-name=c \
                    --api-server-cidr=10.0.0.0/24,10.1.0.7 --api-server-cidr=fd00::/64";
        let callers = read(line).expect("read").callers;
        let ranges: Vec<_> = callers.api_servers.iter().map(ToString::to_string).collect();
        assert_eq!(ranges, ["10.0.0.0/24", "10.1.0.7/32", "fd00::/64"]);
        assert_eq!(callers.names, ["a", "b", "c"]);
        assert!(callers.authority.is_some());
        let callers = read("--api-server-cidr=").expect("read").callers;
        assert!(callers.api_servers.is_empty() && callers.authority.is_none());
    }

    #[test]
    fn defaults_are_those_of_the_manifests() {
        let options = read("--namespace=here --cert-lifetime=36h").expect("read");
        assert_eq!(options.packages, NamespacedName::new("here", "interlock-packages"));
        assert_eq!(options.webhook_address, "0.0.0.0:9443".parse().expect("address"));
        assert_eq!(options.tls_min_version, MinVersion::Tls13);
        assert!(options.roles.webhook && options.roles.controllers);
        let ServingCertificate::Builtin { leaf_lifetime, ca_lifetime, .. } = options.certificates else {
            panic!("built-in by default");
        };
        assert_eq!((leaf_lifetime.as_secs(), ca_lifetime.as_secs()), (36 * 3600, 3650 * 86400));
    }
}
