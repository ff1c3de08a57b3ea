//! Workers that check gateways, while the permit lasts.

use interlock_core::effect::ApiFailure;
use interlock_core::kinds::data_plane::flavor::gateway_ref::GatewayRef;
use tokio::sync::watch::error::RecvError;
use tokio::time::Instant;
use tracing::{debug, error};

use super::leader_gate::Permit;
use crate::runtime::index::watches::GATEWAY_BURST;
use crate::runtime::queue::Queue;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::panics::{Panicked, caught};

/// Checks one gateway after the other, until the process ends. Checks none without a permit, and drops a
/// running check when the permit is withdrawn.
pub async fn work<L: Future<Output = Result<(), ApiFailure>>>(
    queue: &Queue<GatewayRef>,
    metrics: &Metrics,
    mut permit: Permit,
    look: impl Fn(GatewayRef) -> L,
) {
    while permit.given().await.is_ok() {
        let subject = queue.next().await;
        let start = Instant::now();
        tokio::select! {
            biased;
            () = permit.withdrawn() => queue.add(subject.clone()),
            looked = caught(look(subject.clone())) => {
                let result = settle(queue, &subject, looked);
                metrics.reconciled("gateway", result, start.elapsed());
            }
        }
        queue.done(&subject);
    }
}

/// Requeues after a check, and returns its result for metrics. A panic affects one gateway; its worker
/// continues.
fn settle(
    queue: &Queue<GatewayRef>,
    subject: &GatewayRef,
    looked: Result<Result<(), ApiFailure>, Panicked>,
) -> &'static str {
    match looked {
        Ok(Ok(())) => {
            queue.forget(subject);
            "success"
        }
        Ok(Err(failure)) => {
            debug!(gateway = %subject, error = failure.message, "its pods were not looked at");
            queue.retry(subject.clone());
            "error"
        }
        Err(panicked) => {
            error!(gateway = %subject, %panicked, "its pods were not looked at; trying again");
            queue.retry(subject.clone());
            "panic"
        }
    }
}

/// Without a permit, keeps the queue closed and no state; with each new permit, enqueues every gateway.
pub async fn resume(
    queue: &Queue<GatewayRef>,
    mut permit: Permit,
    forget: impl Fn(),
    gateways: impl Fn() -> Vec<GatewayRef>,
) -> Result<(), RecvError> {
    loop {
        queue.close();
        forget();
        permit.given().await?;
        queue.open();
        gateways().into_iter().for_each(|gateway| queue.add_after(gateway, GATEWAY_BURST));
        permit.withdrawn().await;
    }
}
