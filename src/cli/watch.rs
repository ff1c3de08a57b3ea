//! Waits for a condition on an Instance, with the caller's rights.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Error};

use interlock_core::api::kudo::Instance;

use super::error::{CliError, of_watch};

/// Watches an Instance until a condition is met, which may be its deletion; `None` after a timeout. A
/// broken watch is restarted.
///
/// # Errors
/// Where the caller may not watch it, and where the watch was broken at the timeout: earlier events prove
/// nothing then.
pub(super) async fn until<T>(
    instances: Api<Instance>,
    name: &str,
    limit: Duration,
    mut look: impl FnMut(Option<Instance>) -> Option<T>,
) -> Result<Option<T>, CliError> {
    let mut unseen = None;
    let found = async {
        let mut events = pin!(watcher::watch_object(instances, name).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(seen) => {
                    unseen = None;
                    if let Some(found) = look(seen) {
                        return Ok(Some(found));
                    }
                }
                Err(error) if is_refusal(&error) => return Err(unwatchable(name, &error)),
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
            Err(of_watch(&format!("Instance {name} could not be watched within {limit:?}"), &error))
        }
    }
}

/// The error of who may not watch an Instance.
pub(super) fn unwatchable(name: &str, error: &Error) -> CliError {
    of_watch(&format!("Instance {name} cannot be waited for"), error).next(
        "ask an administrator for the verbs list and watch on instances.kudo.dev; what was asked for goes on all \
         the same",
    )
}

/// Whether a retry would not help.
pub(super) fn is_refusal(error: &Error) -> bool {
    let code = match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchError(status) => status.code,
        _ => return false,
    };
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].iter().any(|refusal| refusal.as_u16() == code)
}
