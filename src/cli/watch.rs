//! Waiting for something to hold of an Instance, with the rights of whoever calls.

use std::pin::pin;
use std::time::Duration;

use anyhow::anyhow;
use futures::StreamExt as _;
use http::StatusCode;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Error};

use interlock_core::api::kudo::Instance;

/// Watches an Instance until something holds of it, which may be that it is gone; `None` where the
/// time is over before. A broken watch is taken up again.
///
/// # Errors
/// Where the caller may not watch it, and where it was not seen when the time was over: what was
/// seen before tells nothing then.
pub(super) async fn until<T>(
    instances: Api<Instance>,
    name: &str,
    limit: Duration,
    mut look: impl FnMut(Option<Instance>) -> Option<T>,
) -> anyhow::Result<Option<T>> {
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
                Err(error) if is_refusal(&error) => {
                    return Err(anyhow!(
                        "to wait for instance {name} takes the verbs list and watch on instances.kudo.dev ({error}); \
                         what was asked for goes on all the same"
                    ));
                }
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
        (Err(_), Some(error)) => Err(anyhow!("instance {name} could not be seen after {limit:?}: {error}")),
    }
}

/// Whether trying again changes nothing.
fn is_refusal(error: &Error) -> bool {
    let code = match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchError(status) => status.code,
        _ => return false,
    };
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].iter().any(|refusal| refusal.as_u16() == code)
}
