//! The cluster of a command, with the caller's rights.

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::{HeaderValue, header};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::BoxError;
use tower::timeout::TimeoutLayer;
use tower::util::MapErrLayer;

use super::error::{AtAddress, CliError, of_client};
use super::exit;
use crate::cluster::client::{ClientError, Connection};
use crate::telemetry::build;

/// A connection that is not there after this long will not come.
const CONNECT: Duration = Duration::from_secs(10);
/// An answer that has not begun after this long is lost: the API server itself gives up after 60 s.
const ANSWER: Duration = Duration::from_secs(75);

/// Flags that choose a cluster, a namespace and a user, as kubectl's.
#[derive(Args, Clone, Debug, Default)]
pub(in crate::cli) struct TargetFlags {
    /// Namespace; by default that of the kubeconfig's context.
    #[arg(long, short, global = true)]
    pub(in crate::cli) namespace: Option<String>,
    /// Kubeconfig; by default KUBECONFIG or ~/.kube/config.
    #[arg(long, global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, global = true)]
    context: Option<String>,
    /// User to act as; needs the verb impersonate.
    #[arg(long = "as", value_name = "USER", global = true)]
    impersonate: Option<String>,
    /// Group to act as; can be repeated.
    #[arg(long = "as-group", value_name = "GROUP", global = true)]
    impersonate_groups: Vec<String>,
}

/// The flag for objects of all namespaces.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct AllNamespaces {
    /// All namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
}

impl AllNamespaces {
    /// The namespace of a list; `None` for all.
    pub(in crate::cli) fn scope<'n>(
        self,
        flags: &TargetFlags,
        default: &'n str,
    ) -> Result<Option<&'n str>, CliError> {
        match (self.all_namespaces, &flags.namespace) {
            (true, Some(_)) => Err(CliError::usage("-n names one namespace, and -A means all")
                .next("leave one of the two flags out")),
            (true, None) => Ok(None),
            (false, _) => Ok(Some(default)),
        }
    }

    pub(in crate::cli) fn given(self) -> bool {
        self.all_namespaces
    }
}

impl TargetFlags {
    /// A client, and the default namespace.
    pub(in crate::cli) async fn connect(&self) -> Result<(Client, String), CliError> {
        if self.impersonate.is_none() && !self.impersonate_groups.is_empty() {
            return Err(CliError::usage("--as-group is given without --as").next("name the user with --as"));
        }
        let connection = Connection { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        let mut config = connection.config().await.map_err(|error| of_client(&error))?;
        if self.impersonate.is_some() {
            config.auth_info.impersonate = self.impersonate.clone();
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        // The API server records field ownership by its first word.
        if let Ok(agent) = HeaderValue::from_str(&build::user_agent(" command line")) {
            config.headers.push((header::USER_AGENT, agent));
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok((client(config)?, namespace))
    }
}

/// A client whose errors name the address.
fn client(mut config: Config) -> Result<Client, CliError> {
    config.connect_timeout = Some(CONNECT);
    let address = address(&config);
    let at = move |error: BoxError| -> BoxError {
        match error.downcast::<kube::Error>() {
            Ok(known) => known,
            Err(source) => Box::new(AtAddress { address: address.clone(), source }),
        }
    };
    let builder = ClientBuilder::try_from(config).map_err(|error| of_client(&ClientError::Client(error)))?;
    Ok(builder.with_layer(&TimeoutLayer::new(ANSWER)).with_layer(&MapErrLayer::new(at)).build())
}

/// Scheme, host and port; a URL may hold a password.
fn address(config: &Config) -> String {
    let url = &config.cluster_url;
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme_str().unwrap_or("https"), url.host().unwrap_or_default())
}

/// Runs a command's asynchronous work on this thread.
pub(in crate::cli) fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    exit::done(finish(work))
}

/// Runs a command's asynchronous work on this thread; returns its result.
pub(in crate::cli) fn finish<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("the process could not be started")?.block_on(work)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};

    use clap::Parser as _;

    use super::*;
    use crate::cli::common::error::api;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        flags: TargetFlags,
        #[command(flatten)]
        all: AllNamespaces,
    }

    fn read(line: &str) -> Line {
        Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace())).unwrap()
    }

    /// The error of a request to this port, with TLS.
    async fn error_at(port: u16) -> String {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let url = format!("https://user:s3cret@127.0.0.1:{port}").parse().unwrap();
        let client = client(Config::new(url)).unwrap();
        api("it cannot be read")(client.apiserver_version().await.unwrap_err()).text()
    }

    #[tokio::test]
    async fn a_closed_port_is_named() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let text = error_at(port).await;
        assert!(
            text.starts_with(&format!(
                "error: it cannot be read\n  where: https://127.0.0.1:{port}\n  why:   the connection was refused\n"
            )),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_server_without_tls_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        });
        let text = error_at(port).await;
        server.join().unwrap();
        assert!(text.contains("why:   no TLS connection was established\n"), "{text}");
    }

    #[tokio::test]
    async fn a_group_needs_a_user() {
        let error = read("--as-group=admins").flags.connect().await.err().unwrap();
        assert_eq!(
            error.text(),
            "error: --as-group is given without --as\n  next:  name the user with --as\n"
        );
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_absent_is_named() {
        let error = read("--kubeconfig=/no/such/file").flags.connect().await.err().unwrap();
        assert_eq!(
            error.text(),
            "error: the kubeconfig cannot be used\n\
             \x20 where: /no/such/file\n\
             \x20 why:   /no/such/file does not exist\n\
             \x20 next:  give a readable kubeconfig with --kubeconfig or KUBECONFIG; `kubectl config view` shows what is read\n"
        );
        assert_eq!(error.exit().code(), 2);
    }

    #[test]
    fn the_scope_of_a_list() {
        let scope = |line: &str| {
            let Line { flags, all } = read(line);
            all.scope(&flags, flags.namespace.as_deref().unwrap_or("home"))
                .map(|scope| scope.map(str::to_owned))
        };
        assert_eq!(scope(""), Ok(Some("home".to_owned())));
        assert_eq!(scope("-n team"), Ok(Some("team".to_owned())));
        assert_eq!(scope("-A"), Ok(None));
        assert_eq!(scope("-A -n team").unwrap_err().exit().code(), 2);
    }
}
