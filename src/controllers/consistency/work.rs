//! Hands gateways to those who look at them, while that may be.

use tokio::sync::watch::error::RecvError;
use tracing::debug;

use super::permit::Permit;
use crate::cluster::queue::Queue;
use crate::controllers::observe::watches::GATEWAY_BURST;
use crate::effect::ApiFailure;
use crate::rollout::flavor::subject::Subject;

/// Has one gateway after the other looked at, until the process ends. Those that are due while
/// that may not be stay in the queue; a look that is under way then is given up where it stands.
pub async fn work<L: Future<Output = Result<(), ApiFailure>>>(
    queue: &Queue<Subject>,
    mut permit: Permit,
    look: impl Fn(Subject) -> L,
) {
    while permit.given().await.is_ok() {
        let subject = queue.next().await;
        tokio::select! {
            biased;
            () = permit.withdrawn() => queue.add(subject.clone()),
            looked = look(subject.clone()) => match looked {
                Ok(()) => queue.forget(&subject),
                Err(failure) => {
                    debug!(gateway = %subject, error = failure.message, "its pods were not looked at");
                    queue.retry(subject.clone());
                }
            }
        }
        queue.done(&subject);
    }
}

/// Each time that the capability stops, has what is remembered forgotten; each time that it comes
/// back, has every gateway looked at as when the process starts: meanwhile nobody told of them.
pub async fn resume(
    queue: &Queue<Subject>,
    mut permit: Permit,
    forget: impl Fn(),
    gateways: impl Fn() -> Vec<Subject>,
) -> Result<(), RecvError> {
    loop {
        permit.stops().await?;
        forget();
        permit.starts().await?;
        gateways().into_iter().for_each(|gateway| queue.add_after(gateway, GATEWAY_BURST));
    }
}
