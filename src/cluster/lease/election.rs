//! The API calls around [`step`](super::step): read, write, publish, and release at the end.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::step::{LeaseDecision, Peer, Timing, step};
use super::{Heartbeat, Leadership};
use crate::telemetry::metrics::Metrics;

#[derive(Clone, Debug)]
pub struct LeaseName {
    pub namespace: String,
    pub name: String,
}

/// One candidate, running.
pub struct Election {
    leases: Api<Lease>,
    name: String,
    peer: Peer,
    start: Instant,
    /// The Lease as it was last read or written, and its version; `None`: read it again.
    observed: Option<(LeaseSpec, String)>,
    claim: watch::Sender<Leadership>,
    epochs: LeaderEpochs,
    /// The heartbeat of the workers under the lease.
    heartbeat: Heartbeat,
    /// Whether it had none at the last check.
    stuck: bool,
    metrics: Arc<Metrics>,
}

/// Counts the leader epochs of this process: stretches of leading without a break.
#[derive(Debug, Default)]
struct LeaderEpochs {
    count: u64,
    /// `leaseTransitions` at the start of the last epoch.
    term: i32,
}

impl LeaderEpochs {
    /// The leadership that follows `published`, where this process leads until then by its lease's `term`.
    fn claim(&mut self, published: Leadership, term: i32, until: Option<Instant>) -> Leadership {
        let Some(until) = until else { return Leadership::Standby };
        // An expired claim was a break, even if it was never published.
        if published.leader_epoch().is_none() || term != self.term {
            (self.count, self.term) = (self.count + 1, term);
        }
        Leadership::Leader { leader_epoch: self.count, until }
    }
}

impl Election {
    /// A candidate; `id` is unique among all processes that ever ran, `heartbeat` is that of the workers
    /// under the lease.
    pub fn new(
        client: Client,
        lease: LeaseName,
        id: String,
        timing: Timing,
        heartbeat: Heartbeat,
        metrics: Arc<Metrics>,
    ) -> Self {
        metrics.leads("interlock", false);
        Self {
            leases: Api::namespaced(client, &lease.namespace),
            name: lease.name,
            peer: Peer::new(id, timing),
            start: Instant::now(),
            observed: None,
            claim: watch::channel(Leadership::Standby).0,
            epochs: LeaderEpochs::default(),
            heartbeat,
            stuck: false,
            metrics,
        }
    }

    /// Leadership; a change and a new leader epoch notify, a renewal only moves the end.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.claim.subscribe()
    }

    /// Takes part until `stop`, then releases the lease. After a loss the process continues as a standby.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
            // A process that was suspended publishes that it lost the lease before it leads again.
            self.publish();
            let limit = self.call_limit();
            if let Err(problem) = with_timeout(limit, self.acquire_or_renew()).await {
                self.observed = None;
                tracing::debug!(lease = self.name, problem, "the election step failed");
            }
            self.publish();
            pause = self.pause();
        }
        self.release().await;
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// A leader must learn of its end in time; a standby can wait.
    fn call_limit(&self) -> Duration {
        let timing = self.peer.timing;
        match self.peer.leads_until(self.now()) {
            Some(until) => until - self.now(),
            None => timing.renew_deadline,
        }
    }

    /// Time to the next attempt, or to the end of leadership if that is earlier. Jitter keeps candidates
    /// from finding the lease free at the same moment.
    fn pause(&self) -> Duration {
        let retry = self.peer.timing.retry_period;
        match self.peer.leads_until(self.now()) {
            Some(until) => retry.min(until - self.now()),
            None => {
                retry
                    + retry.mul_f64(
                        0.2 * f64::from(self.peer.id.as_bytes().last().copied().unwrap_or(0)) / 255.0,
                    )
            }
        }
    }

    /// Whether the workers under the lease have a heartbeat; logs when that changes.
    fn check_heartbeat(&mut self) -> bool {
        let age = self.heartbeat.age();
        let alive = age < self.heartbeat.limit();
        if self.stuck == alive {
            self.stuck = !alive;
            self.metrics.reconciler_stuck(self.stuck);
            if alive {
                tracing::info!(lease = self.name, "the controllers run again");
            } else {
                let limit = self.heartbeat.limit();
                tracing::error!(
                    lease = self.name,
                    "the controllers have run nothing for {age:?} (limit: {limit:?}): this process does not \
                     lead until they do; admission continues"
                );
            }
        }
        alive
    }

    async fn acquire_or_renew(&mut self) -> Result<(), Error> {
        let alive = self.check_heartbeat();
        // A leader updates its own last write; only a conflict makes it read.
        if self.peer.leads_until(self.now()).is_none() || self.observed.is_none() {
            let lease = self.leases.get_opt(&self.name).await?;
            self.observed = lease.map(observed);
        }
        let known = self.observed.as_ref().map(|(spec, version)| (spec, version.as_str()));
        let sent = self.now();
        let (spec, over, leads) = match step(sent, Timestamp::now(), known, alive, &mut self.peer) {
            LeaseDecision::Wait => return Ok(()),
            LeaseDecision::Create(spec) => (spec, None, true),
            LeaseDecision::Update(spec, version) => (spec, Some(version), true),
            LeaseDecision::Release(spec, version) => {
                self.publish();
                (spec, Some(version), false)
            }
        };
        let written = observed(self.write(spec, over).await?);
        match leads {
            true => self.peer.written(sent, self.now(), written.1.clone()),
            false => self.peer.released_without_heartbeat(self.now(), written.1.clone()),
        }
        self.observed = Some(written);
        Ok(())
    }

    /// Writes the Lease, over this version where there is one.
    async fn write(&self, spec: LeaseSpec, over: Option<String>) -> Result<Lease, Error> {
        let parameters = PostParams::default();
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            resource_version: over.clone(),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata, spec: Some(spec) };
        match over {
            Some(_) => self.leases.replace(&self.name, &parameters, &lease).await,
            None => self.leases.create(&parameters, &lease).await,
        }
    }

    fn publish(&mut self) {
        let spec = self.observed.as_ref().map(|(spec, _)| spec);
        let term = spec.map_or(self.epochs.term, |spec| spec.lease_transitions.unwrap_or_default());
        let until = self.peer.leads_until(self.now()).map(|until| self.start + until);
        let published = *self.claim.borrow();
        let claim = self.epochs.claim(published, term, until);
        let number = |leadership: &Leadership| match leadership {
            Leadership::Leader { leader_epoch, .. } => Some(*leader_epoch),
            Leadership::Standby => None,
        };
        let changed = number(&published) != number(&claim);
        self.claim.send_if_modified(|published| {
            *published = claim;
            changed
        });
        if changed {
            let leads = claim != Leadership::Standby;
            self.metrics.leads("interlock", leads);
            let who = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
            tracing::info!(lease = self.name, leads, term, holder = who, "leadership changed");
        }
    }

    /// Releases the lease, so that others need not wait for its expiry.
    async fn release(mut self) {
        let (now, wall) = (self.now(), Timestamp::now());
        let Some((spec, version)) = self.observed.clone() else { return self.step_down() };
        let released = self.peer.release(now, wall, &spec);
        self.step_down();
        if let Some(spec) = released {
            match with_timeout(Duration::from_secs(2), self.write(spec, Some(version))).await {
                Ok(_) => tracing::info!(lease = self.name, "lease released"),
                Err(problem) => tracing::warn!(lease = self.name, problem, "the lease could not be released"),
            }
        }
    }

    fn step_down(&mut self) {
        self.peer.step_down();
        self.publish();
    }
}

/// The content of a Lease, and its version.
fn observed(lease: Lease) -> (LeaseSpec, String) {
    (lease.spec.unwrap_or_default(), lease.metadata.resource_version.unwrap_or_default())
}

/// A call with a time limit.
async fn with_timeout<T>(limit: Duration, call: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("the API server did not answer within {limit:?}")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// A continued epoch keeps its number, and each new epoch gets the next.
    #[rstest]
    #[case::renewed(true, 7, Some(1))]
    #[case::taken_by_another_between(true, 8, Some(2))]
    #[case::run_out_and_taken_again(false, 7, Some(2))]
    fn a_break_starts_another_epoch(
        #[case] holds: bool,
        #[case] term: i32,
        #[case] leader_epoch: Option<u64>,
    ) {
        let mut epochs = LeaderEpochs::default();
        let now = Instant::now();
        assert_eq!(epochs.claim(Leadership::Standby, 7, None), Leadership::Standby);
        let first = epochs.claim(Leadership::Standby, 7, Some(now + LONG));
        assert_eq!(first.leader_epoch(), Some(1));
        let published = if holds { first } else { Leadership::Leader { leader_epoch: 1, until: now } };
        assert_eq!(epochs.claim(published, term, Some(now + LONG)).leader_epoch(), leader_epoch);
    }
}
