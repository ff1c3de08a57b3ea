//! Waits for a condition on an object, with the caller's rights.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Error};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::error::{CliError, of_watch};
use super::object_kind::ObjectKind;

/// Watches an object until a condition is met, which may be its deletion; `None` after a timeout. A
/// broken watch is restarted.
///
/// # Errors
/// Where the caller may not watch it, and where the watch was broken at the timeout: earlier events prove
/// nothing then.
pub(in crate::cli) async fn until<K, T>(
    objects: Api<K>,
    kind: &ObjectKind,
    name: &str,
    limit: Duration,
    mut look: impl FnMut(Option<K>) -> Option<T>,
) -> Result<Option<T>, CliError>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut unseen = None;
    let found = async {
        let mut events = pin!(watcher::watch_object(objects, name).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(seen) => {
                    unseen = None;
                    if let Some(found) = look(seen) {
                        return Ok(Some(found));
                    }
                }
                Err(error) if is_refusal(&error) => return Err(unwatchable(kind, name, &error)),
                Err(error) => {
                    tracing::debug!(%error, "the watch starts again");
                    unseen = Some(error);
                }
            }
        }
        Ok(None)
    };
    match (tokio::time::timeout(limit, found).await, unseen) {
        (Ok(ended), _) => ended,
        (Err(_), None) => Ok(None),
        (Err(_), Some(error)) => {
            Err(of_watch(&format!("{} {name} could not be watched within {limit:?}", kind.kind), &error))
        }
    }
}

/// The error of who may not watch an object.
pub(in crate::cli) fn unwatchable(kind: &ObjectKind, name: &str, error: &Error) -> CliError {
    of_watch(&format!("{} {name} cannot be waited for", kind.kind), error).next(format!(
        "ask an administrator for the verbs list and watch on {}; what was asked for goes on all the same",
        kind.resource
    ))
}

/// Whether a retry would not help.
pub(in crate::cli) fn is_refusal(error: &Error) -> bool {
    let code = match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchError(status) => status.code,
        _ => return false,
    };
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].iter().any(|refusal| refusal.as_u16() == code)
}
