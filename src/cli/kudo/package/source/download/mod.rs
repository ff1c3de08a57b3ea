//! Downloads over HTTP(S), each within budgets: of bytes, of time, of redirects, and all of a command together.

use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use url::Url;

use crate::cli::common::error::{CliError, causes};
use crate::telemetry::build;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Bytes that a command downloads.
const MAX_BYTES: usize = 64 << 20;

/// Files that a command downloads.
const MAX_FILES: usize = 64;

/// How long is waited.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// For the connection and the beginning of an answer.
    answer: Duration,
    /// For a file with all its redirects.
    whole: Duration,
}

const PATIENCE: Patience = Patience { answer: Duration::from_secs(30), whole: Duration::from_secs(120) };

/// The downloads of a command.
pub(in crate::cli::kudo::package) struct Downloads {
    runtime: Runtime,
    bytes: usize,
    files: usize,
    patience: Patience,
    /// Certificates to trust instead of those of the system, in DER.
    roots: Option<Vec<Vec<u8>>>,
}

impl Downloads {
    /// With the certificates that the system trusts.
    pub(in crate::cli::kudo::package) fn new() -> Result<Self, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CliError::refused("the process could not be started").why(error.to_string()))?;
        Ok(Self { runtime, bytes: MAX_BYTES, files: MAX_FILES, patience: PATIENCE, roots: None })
    }

    /// Downloads a file of at most so many bytes.
    pub(super) fn get(&mut self, url: &Url, most: usize) -> Result<Vec<u8>, CliError> {
        self.files = self
            .files
            .checked_sub(1)
            .ok_or_else(|| too_much(url, &format!("a command downloads at most {MAX_FILES} files")))?;
        let most = most.min(self.bytes);
        let whole = self.patience.whole;
        let file = self.runtime.block_on(async { in_time(url, whole, self.file(url, most)).await? })?;
        self.bytes = self.bytes.saturating_sub(file.len());
        Ok(file)
    }

    async fn file(&self, url: &Url, most: usize) -> Result<Vec<u8>, CliError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let answer = in_time(&url, self.patience.answer, self.ask(&url)).await??;
            match redirect(&url, &answer)? {
                Some(next) => url = next,
                None if answer.status() == StatusCode::OK => return body(&url, answer, most).await,
                None => return Err(no_file(&url, answer.status())),
            }
        }
        Err(failed(&url)
            .why(format!("there are more than {MAX_REDIRECTS} redirects"))
            .next("give the address that the last one leads to"))
    }

    async fn ask(&self, url: &Url) -> Result<Response<Incoming>, CliError> {
        if url.scheme() == "http" {
            return ask(url, HttpConnector::new()).await;
        }
        let mut config = Config::new(
            url.as_str()
                .parse()
                .map_err(|error: http::uri::InvalidUri| failed(url).why(error.to_string()))?,
        );
        config.root_cert.clone_from(&self.roots);
        let connector = config.rustls_https_connector().map_err(|error| {
            failed(url)
                .why(reason(&error))
                .next("install the certificates that this machine trusts, or name them in SSL_CERT_FILE")
        })?;
        ask(url, connector).await
    }
}

async fn ask<C>(url: &Url, connector: C) -> Result<Response<Incoming>, CliError>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let request = Request::get(url.as_str())
        .header(header::USER_AGENT, build::user_agent(" command line"))
        .header(header::ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(url).why(error.to_string()))?;
    let client = Client::builder(TokioExecutor::new()).build(connector);
    client.request(request).await.map_err(|error| unreached(url, &error))
}

/// An address of a file: HTTP or HTTPS, and without a password, which would stand in the history of the shell.
pub(in crate::cli::kudo::package) fn address(text: &str) -> Result<Url, CliError> {
    let wrong = |what: String| CliError::usage(what);
    let url = Url::parse(text)
        .map_err(|error| wrong("it is no address".to_owned()).why(error.to_string()).next(EXAMPLE))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(wrong(format!("{} is no address of HTTP or HTTPS", shown(&url))).next(EXAMPLE));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(format!(
            "the address at {} has a user or a password",
            url.host_str().unwrap_or_default()
        ))
        .next("download the file with another program, and give its path"));
    }
    Ok(url)
}

const EXAMPLE: &str = "write it as https://HOST/PATH";

/// An address without what may be secret in it: what stands behind a question mark often signs it.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Only an address that has none refuses it.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// Where an answer redirects to; never from HTTPS to HTTP.
fn redirect(url: &Url, answer: &Response<Incoming>) -> Result<Option<Url>, CliError> {
    if ![301, 302, 303, 307, 308].contains(&answer.status().as_u16()) {
        return Ok(None);
    }
    let location = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    let Some(next) = location.and_then(|location| url.join(location).ok()) else {
        return Err(failed(url).why(format!("the answer {} names no address", answer.status())));
    };
    let next =
        address(next.as_str()).map_err(|error| error.within(&format!("redirected by {}", shown(url))))?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(CliError::refused(format!("{} is not downloaded", shown(url)))
            .why(format!("it redirects to {}, which is not encrypted", shown(&next)))
            .next("tell who keeps the address, or give the other one if you trust the network"));
    }
    Ok(Some(next))
}

/// The content of an answer, of at most so many bytes, whatever its header says.
async fn body(url: &Url, answer: Response<Incoming>, most: usize) -> Result<Vec<u8>, CliError> {
    let mut body = answer.into_body();
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreached(url, &error))?;
        let Ok(data) = frame.into_data() else { continue };
        if content.len() + data.len() > most {
            return Err(too_much(url, &format!("it has more than {most} bytes")));
        }
        content.extend_from_slice(&data);
    }
    Ok(content)
}

async fn in_time<T>(url: &Url, limit: Duration, work: impl Future<Output = T>) -> Result<T, CliError> {
    let late = || {
        CliError::unreached(format!("{} cannot be downloaded", shown(url)))
            .why(format!("no answer came within {limit:?}"))
            .next(REMEDY)
    };
    timeout(limit, work).await.map_err(|_| late())
}

const REMEDY: &str =
    "check the address and the network; what another program downloads can be given as a file";

fn failed(url: &Url) -> CliError {
    CliError::unreached(format!("{} cannot be downloaded", shown(url)))
}

fn unreached(url: &Url, error: &(dyn StdError + 'static)) -> CliError {
    failed(url).why(reason(error)).next(REMEDY)
}

fn no_file(url: &Url, status: StatusCode) -> CliError {
    failed(url).why(format!("the answer is {status}")).next(match status.as_u16() {
        401 | 403 => "download it with a program that logs in, and give its path",
        404 | 410 => "check the address: there is nothing",
        _ => "try again later",
    })
}

fn too_much(url: &Url, why: &str) -> CliError {
    CliError::refused(format!("{} is not downloaded", shown(url)))
        .why(why)
        .next("give the address of a package or of a repository")
}

/// The innermost cause, which names what happened.
fn reason(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests;
