//! Clients of the API server: one that keeps the books, one that acts for packages.
//!
//! Neither repeats a request by itself: a write is conditional on what was decided on, and who
//! decided must see the failure (reads are repeated by the watches, with a back-off).

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tower::timeout::TimeoutLayer;
use tower::{Layer, Service};

use crate::telemetry::build;
use crate::telemetry::metrics::Metrics;

/// An answer that has not begun after this long does not come: the API server itself gives up after
/// 60 s.
const ANSWER: Duration = Duration::from_secs(75);

/// An answer of which nothing more comes for this long has broken off; longer than a watch is open
/// and quiet.
const SILENCE: Duration = Duration::from_secs(300);

/// Which cluster, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// A kubeconfig; else `KUBECONFIG`, `~/.kube/config` or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it.
    pub context: Option<String>,
}

/// There is no client to be had.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file that --kubeconfig names is absent or no kubeconfig.
    #[error("kubeconfig {path:?} cannot be used: {source}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: kube::config::KubeconfigError,
    },
    /// The kubeconfig has no such context, or it is incomplete.
    #[error("context {context:?} cannot be used: {source}; `kubectl config get-contexts` lists them")]
    Context {
        /// The context.
        context: String,
        /// What is wrong with it.
        source: kube::config::KubeconfigError,
    },
    /// There is neither a kubeconfig nor a pod around this process.
    #[error("no cluster is configured: {0}; set --kubeconfig or KUBECONFIG, or run in a pod")]
    Nowhere(kube::config::InferConfigError),
    /// The configuration was read, but no client comes of it (a bad CA or key).
    #[error("the client cannot be made: {0}")]
    Client(kube::Error),
    /// SelfSubjectReview failed.
    #[error("the API server did not say who this process is: {0}")]
    WhoAmI(kube::Error),
    /// SelfSubjectReview was answered without a name.
    #[error("the API server knows no name for this process")]
    Nameless,
}

impl Connection {
    /// Reads what is needed for a client; makes no call.
    pub async fn config(&self) -> Result<Config, ClientError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let bad = |source| ClientError::Kubeconfig { path: path.clone(), source };
                let kubeconfig = Kubeconfig::read_from(path).map_err(bad)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(bad)?
            }
            (None, Some(context)) => {
                let bad = |source| ClientError::Context { context: context.clone(), source };
                Config::from_kubeconfig(&options).await.map_err(bad)?
            }
            (None, None) => Config::infer().await.map_err(ClientError::Nowhere)?,
        };
        config.default_retry = false;
        Ok(config)
    }
}

/// The client that keeps the books: the API user of the process.
pub fn bookkeeping(config: &Config, metrics: Arc<Metrics>) -> Result<Client, ClientError> {
    client(config.clone(), "", metrics)
}

/// The client for effects of packages; each of its requests names whom it acts as
/// ([`crate::cluster::apply::Objects`]).
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

/// The name that the API server knows the process by.
pub async fn who_am_i(client: &Client) -> Result<String, ClientError> {
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
