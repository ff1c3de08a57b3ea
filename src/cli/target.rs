//! The cluster of a command, with the caller's rights.

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use http::{HeaderValue, header};
use kube::Client;

use super::exit;
use crate::cluster::client::Connection;
use crate::telemetry::build;

/// Flags that choose a cluster and a namespace, as kubectl's.
#[derive(Args, Debug)]
pub(super) struct TargetFlags {
    /// Namespace; by default that of the kubeconfig's context.
    #[arg(long, short, global = true)]
    pub(super) namespace: Option<String>,
    /// Kubeconfig; by default KUBECONFIG or ~/.kube/config.
    #[arg(long, global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, global = true)]
    context: Option<String>,
}

impl TargetFlags {
    /// A client, and the default namespace.
    pub(super) async fn connect(&self) -> anyhow::Result<(Client, String)> {
        let connection = Connection { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() };
        let mut config = connection.config().await?;
        // The API server records field ownership by its first word.
        if let Ok(agent) = HeaderValue::from_str(&build::user_agent(" command line")) {
            config.headers.push((header::USER_AGENT, agent));
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).context("the client cannot be made")?;
        Ok((client, namespace))
    }
}

/// The API server's own message, without kube's wrapping.
pub(super) fn api_message(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::anyhow!("{}", status.message),
        other => anyhow::anyhow!(other),
    }
}

/// Runs a command's asynchronous work on this thread.
pub(super) fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    exit::done(finish(work))
}

/// Runs a command's asynchronous work on this thread; returns its result.
pub(super) fn finish<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("the process could not be started")?.block_on(work)
}
