//! Clients of the API server: one for the process's own writes, one for the effects of packages.
//!
//! Neither retries a request: a write is conditional on the state that it was decided on, and its caller
//! must see the failure (watches repeat reads, with a back-off).

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};
use tower::timeout::TimeoutLayer;
use tower::{Layer, Service};

use super::kubeconfig::KubeconfigProblem;
use crate::telemetry::build;
use crate::telemetry::metrics::Metrics;

/// An answer that has not begun after this long is lost: the API server itself gives up after 60 s.
const ANSWER: Duration = Duration::from_secs(75);

/// An answer without data for this long is broken; longer than the quiet periods of an open watch.
const SILENCE: Duration = Duration::from_secs(300);

/// Which cluster, and which user.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// A kubeconfig; else `KUBECONFIG`, `~/.kube/config` or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

/// The client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file that --kubeconfig names is absent or no kubeconfig.
    #[error("kubeconfig {} cannot be used: {problem}; correct it, or give another with --kubeconfig", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        problem: KubeconfigProblem,
    },
    /// The kubeconfig has no such context, or it is incomplete.
    #[error("context {context:?} cannot be used: {problem}; `kubectl config get-contexts` lists them")]
    Context { context: String, problem: KubeconfigProblem },
    /// There is no kubeconfig, and the process does not run in a pod.
    #[error("no cluster is configured: {0}; set --kubeconfig or KUBECONFIG, or run in a pod")]
    Nowhere(KubeconfigProblem),
    /// The configuration was read, but is unusable (a bad CA or key).
    #[error("the client cannot be made: {0}")]
    Client(kube::Error),
    /// SelfSubjectReview failed.
    #[error("SelfSubjectReview failed: {0}; check the credentials of this process")]
    WhoAmI(kube::Error),
    /// SelfSubjectReview was answered without a name.
    #[error("SelfSubjectReview returned no user name; check the credentials of this process")]
    Nameless,
}

impl Connection {
    /// Reads the configuration of a client; makes no call.
    pub async fn config(&self) -> Result<Config, ClientError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let bad = |error: KubeconfigError| ClientError::Kubeconfig {
                    path: path.clone(),
                    problem: error.into(),
                };
                let kubeconfig = Kubeconfig::read_from(path).map_err(bad)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(bad)?
            }
            (None, Some(context)) => {
                let bad = |error: KubeconfigError| ClientError::Context {
                    context: context.clone(),
                    problem: error.into(),
                };
                Config::from_kubeconfig(&options).await.map_err(bad)?
            }
            (None, None) => Config::infer().await.map_err(|error| ClientError::Nowhere(error.into()))?,
        };
        config.default_retry = false;
        Ok(config)
    }
}

/// The client for the process's own reads and writes, as its API user.
pub fn bookkeeping(config: &Config, metrics: Arc<Metrics>) -> Result<Client, ClientError> {
    client(config.clone(), "", metrics)
}

/// The client for effects of packages; each of its requests names the user it impersonates
/// ([`super::api_writer::Objects`]).
pub fn effects(config: &Config, metrics: Arc<Metrics>) -> Result<Client, ClientError> {
    let mut config = config.clone();
    config.auth_info.impersonate = None;
    client(config, " packages", metrics)
}

fn client(mut config: Config, part: &str, metrics: Arc<Metrics>) -> Result<Client, ClientError> {
    // A user agent made of a version, a platform and a commit is always a header value.
    if let Ok(agent) = HeaderValue::from_str(&build::user_agent(part)) {
        config.headers.push((header::USER_AGENT, agent));
    }
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    let builder = ClientBuilder::try_from(config).map_err(ClientError::Client)?;
    Ok(builder.with_layer(&TimeoutLayer::new(ANSWER)).with_layer(&Count(metrics)).build())
}

/// The user name of the process at the API server.
pub async fn self_subject_review(client: &Client) -> Result<String, ClientError> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&kube::api::PostParams::default(), &SelfSubjectReview::default()).await;
    let status = review.map_err(ClientError::WhoAmI)?.status;
    status.and_then(|s| s.user_info).and_then(|user| user.username).ok_or(ClientError::Nameless)
}

/// Counts calls by method and status.
#[derive(Clone)]
struct Count(Arc<Metrics>);

impl<S> Layer<S> for Count {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, metrics: self.0.clone() }
    }
}

struct Counted<S> {
    inner: S,
    metrics: Arc<Metrics>,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        let metrics = self.metrics.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            metrics.rest_call(method, answer.as_ref().map_or(0, |response| response.status().as_u16()));
            answer
        })
    }
}
