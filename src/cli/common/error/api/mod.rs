//! Errors of the client and answers of the API server.

use std::error::Error as StdError;
use std::io;

use kube::Error;
use kube::core::Status;
use kube::runtime::watcher;
use rustls::CertificateError;
use tower::BoxError;

use super::shape::{CliError, Exit};
use crate::cluster::client::ClientError;

/// An error of the connection, with the address of the API server.
#[derive(Debug, thiserror::Error)]
#[error("{address}")]
pub struct AtAddress {
    pub address: String,
    #[source]
    pub source: BoxError,
}

/// The error of a request; `what` failed, such as "Instance team/demo cannot be read".
pub fn api(what: impl Into<String>) -> impl FnOnce(Error) -> CliError {
    let what = what.into();
    move |error| of_api(&what, &error)
}

/// The error of a request.
pub fn of_api(what: &str, error: &Error) -> CliError {
    match error {
        Error::Api(status) => of_answer(what, status),
        Error::Auth(_) => credentials(what),
        Error::SerdeError(error) => CliError::refused(what)
            .why(format!("the answer is none of a Kubernetes API server: {error}"))
            .next("choose another cluster with --context or --kubeconfig"),
        other => of_connection(what, other),
    }
}

pub fn of_watch(what: &str, error: &watcher::Error) -> CliError {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => of_api(what, error),
        watcher::Error::WatchError(status) => of_answer(what, status),
        watcher::Error::NoResourceVersion => {
            CliError::refused(what).why("the API server serves no watch of this kind")
        }
    }
}

/// The error of a client that cannot be made.
pub fn of_client(error: &ClientError) -> CliError {
    match error {
        ClientError::Kubeconfig { path, problem } => CliError::usage("the kubeconfig cannot be used")
            .place(path.display().to_string())
            .why(problem.to_string())
            .next(KUBECONFIG),
        ClientError::Context { context, problem } => {
            CliError::usage(format!("context {context:?} cannot be used"))
                .why(problem.to_string())
                .next("choose one that `kubectl config get-contexts` lists")
        }
        ClientError::Nowhere(problem) => CliError::usage("no cluster is configured")
            .place(std::env::var("KUBECONFIG").unwrap_or_else(|_| "~/.kube/config".to_owned()))
            .why(problem.to_string())
            .next(KUBECONFIG),
        ClientError::Client(Error::Auth(_)) => credentials("the client cannot be made"),
        ClientError::Client(_) => CliError::usage("the client cannot be made")
            .why("a certificate or a key of the kubeconfig cannot be read")
            .next("correct certificate-authority, client-certificate and client-key in the kubeconfig"),
        ClientError::WhoAmI(error) => of_api("the user of this process is not known", error),
        ClientError::Nameless => CliError::refused(error.to_string()),
    }
}

const KUBECONFIG: &str =
    "give a readable kubeconfig with --kubeconfig or KUBECONFIG; `kubectl config view` shows what is read";

/// Why a request failed, in one line: the API server's own sentence where it answered.
pub fn reason(error: &Error) -> String {
    match error {
        Error::Api(status) => sentence(status).to_owned(),
        other => Cause::of(other).text(),
    }
}

fn sentence(status: &Status) -> &str {
    if status.message.is_empty() { &status.reason } else { &status.message }
}

/// What the API server answers about a kind or a group that it does not serve.
const NOT_SERVED: [&str; 2] = ["the server could not find the requested resource", "404 page not found"];

fn of_answer(what: &str, status: &Status) -> CliError {
    let message = sentence(status);
    let of = |exit| CliError::with(exit, what).why(message);
    match status.code {
        401 => of(Exit::Refused).next(
            "log in again, or choose other credentials with --context or --kubeconfig; `kubectl auth whoami` shows \
             whom the API server sees",
        ),
        403 => match MissingRight::read(message) {
            Some(right) => of(Exit::Refused).next(right.remedy()),
            None => of(Exit::Refused),
        },
        404 if NOT_SERVED.iter().any(|answer| message.starts_with(answer)) => {
            CliError::unreached(what).why("the API server does not serve this kind").next(
                "install its definition, such as those of `interlock render crds`, or choose another cluster with \
                 --context",
            )
        }
        404 => of(Exit::Unreached).next("choose another namespace with -n, or another cluster with --context"),
        429 | 500..=599 => of(Exit::Unreached).next("try again: the API server could not answer"),
        _ => of(Exit::Refused),
    }
}

/// The output of a plug-in for credentials may hold them, so nothing of the error is shown.
fn credentials(what: &str) -> CliError {
    CliError::usage(what).why("the kubeconfig gives no usable credentials").next(
        "run `kubectl auth whoami` with the same kubeconfig and context, and correct its user as that says",
    )
}

fn of_connection(what: &str, error: &(dyn StdError + 'static)) -> CliError {
    let address = causes(error).find_map(|cause| cause.downcast_ref::<AtAddress>());
    let cause = Cause::of(error);
    let found = CliError::unreached(what).why(cause.text()).next(cause.remedy());
    match address {
        Some(at) => found.place(&at.address),
        None => found,
    }
}

/// An error, what caused it, and so on; an I/O error hides what it wraps from `source`.
pub fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
        None => error.source(),
    })
}

/// Why a request was not answered.
enum Cause {
    ConnectionRefused,
    NoAnswer,
    UnknownHost,
    Certificate(&'static str),
    NoTls,
    Other(String),
}

impl Cause {
    fn of(error: &(dyn StdError + 'static)) -> Self {
        causes(error).find_map(Self::known).unwrap_or_else(|| {
            let last = causes(error).last().map(ToString::to_string).unwrap_or_default();
            match last.as_str() {
                text if text.starts_with("failed to lookup address") => Self::UnknownHost,
                text => Self::Other(text.to_owned()),
            }
        })
    }

    fn known(error: &(dyn StdError + 'static)) -> Option<Self> {
        if error.is::<tower::timeout::error::Elapsed>() || error.is::<tokio::time::error::Elapsed>() {
            return Some(Self::NoAnswer);
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(match tls {
                rustls::Error::InvalidCertificate(why) => Self::Certificate(certificate(why)),
                _ => Self::NoTls,
            });
        }
        match error.downcast_ref::<io::Error>()?.kind() {
            io::ErrorKind::ConnectionRefused => Some(Self::ConnectionRefused),
            io::ErrorKind::TimedOut => Some(Self::NoAnswer),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::ConnectionRefused => "the connection was refused".to_owned(),
            Self::NoAnswer => "no answer came in time".to_owned(),
            Self::UnknownHost => "the name of the host is not known".to_owned(),
            Self::Certificate(why) => (*why).to_owned(),
            Self::NoTls => "no TLS connection was established".to_owned(),
            Self::Other(text) => text.clone(),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Certificate(_) => {
                "correct server and certificate-authority-data of the cluster in the kubeconfig, or choose another \
                 with --context"
            }
            Self::NoTls => {
                "correct server of the cluster in the kubeconfig, or choose another with --context"
            }
            _ => {
                "check that the API server runs and can be reached (`kubectl version`), or choose another with \
                 --context"
            }
        }
    }
}

fn certificate(why: &CertificateError) -> &'static str {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the API server has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the API server is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate of the API server is for another name"
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate of the API server is of a CA that the kubeconfig does not trust"
        }
        _ => "the certificate of the API server is not accepted",
    }
}

/// The right that the API server's authorizer names in its refusal.
#[derive(Debug, PartialEq, Eq)]
struct MissingRight<'m> {
    user: &'m str,
    verb: &'m str,
    resource: String,
    namespace: Option<&'m str>,
}

impl<'m> MissingRight<'m> {
    /// From `User "U" cannot V resource "R" in API group "G" in the namespace "N"`.
    fn read(message: &'m str) -> Option<Self> {
        let quoted = |text: &'m str, before: &str| text.split_once(before)?.1.split('"').next();
        let user = quoted(message, "User \"")?;
        let (verb, rest) = message.split_once("\" cannot ")?.1.split_once(" resource \"")?;
        let resource = rest.split('"').next()?;
        let group = quoted(rest, "in API group \"").unwrap_or_default();
        let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        Some(Self { user, verb, resource, namespace: quoted(rest, "in the namespace \"") })
    }

    fn remedy(&self) -> String {
        let Self { user, verb, resource, namespace } = self;
        if *user == "system:anonymous" {
            return "log in, or choose other credentials with --context or --kubeconfig: the request named no user"
                .to_owned();
        }
        let (place, flag) = match namespace {
            Some(namespace) => (format!(" in namespace {namespace}"), format!(" -n {namespace}")),
            None => (" in the whole cluster".to_owned(), " -A".to_owned()),
        };
        format!(
            "ask an administrator for the verb {verb} on {resource}{place}; `kubectl auth can-i {verb} {resource}{flag}` \
             tells when you have it"
        )
    }
}

#[cfg(test)]
mod tests;
