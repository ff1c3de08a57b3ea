//! The proof that a run is current, before its writes: the status that says how far it is, written on the version that was
//! read, or the Instance, read again.

use std::sync::Arc;

use interlock_core::api::meta::plan;
use interlock_kudo::api::ExecutionStatus;
use jiff::Timestamp;
use serde_json::Value;
use tracing::warn;

use super::{CONFLICTS, Pass, Stop};
use crate::cluster::watch::WatchChange;
use crate::controllers::instance::record::{self, RecordPhase};
use crate::controllers::instance::view::InstanceView;
use crate::controllers::instance::{api_calls, plan_intent, status_patch};
use crate::runtime::rounds::Rounds as _;

impl Pass<'_> {
    /// Proves that the run is current: by recording its phase if that has changed, else by reading the
    /// Instance. The report of an error stays until a retry succeeds, unless something must be saved
    /// before the write.
    pub(super) async fn prove(&mut self, save: bool) -> Result<(), Stop> {
        let keeps = !save && self.started && self.subject.reports_error();
        if !keeps && self.record(RecordPhase::Running).await? {
            return Ok(());
        }
        self.read_again().await?;
        self.watch_state.proved();
        Ok(())
    }

    async fn read_again(&mut self) -> Result<(), Stop> {
        let found = self.ctx.bookkeeping.instance(&self.subject.key).await?.ok_or(Stop::Gone)?;
        self.adopt(found)
    }

    /// Takes over the Instance as read, if it still names this run and shows no progress unknown to this
    /// pass: another process's progress would be overwritten.
    pub(super) fn adopt(&mut self, object: Arc<Value>) -> Result<(), Stop> {
        self.ctx.saw(&self.subject.key, &WatchChange::Applied(object.clone()));
        let subject = InstanceView::read(&self.subject.key, object).map_err(|error| {
            warn!(%error, "an Instance could not be read");
            Stop::Superseded
        })?;
        let named = subject.plan() == self.plan && subject.plan_uid() == self.uid;
        let same = subject.uid() == self.subject.uid();
        let entries = subject.entries();
        let entry = entries.get(&self.plan);
        let moved =
            entry != self.subject.entries().get(&self.plan) || subject.progress != self.subject.progress;
        let deleted = subject.deleted_at().is_some() && self.plan != plan::CLEANUP;
        let interrupted = plan_intent::interrupts(self.ctx, &subject, &self.uid);
        if !named || !same || moved || deleted || interrupted {
            return Err(Stop::Superseded);
        }
        drop(entries);
        self.subject = subject;
        Ok(())
    }

    /// Writes the status when it differs; returns whether it was written, which is a proof.
    pub(super) async fn record(&mut self, phase: RecordPhase) -> Result<bool, Stop> {
        for _ in 0..CONFLICTS {
            self.leads()?;
            // Only needed at the start of a run.
            let old = (!self.started).then(|| self.ctx.package_of_basis(&self.subject)).flatten();
            let view = record::RecordInput {
                subject: &self.subject,
                package: self.package,
                old: old.as_deref(),
                spec: self.spec,
                state: &self.state,
                started: self.started,
                adopts: &self.adopts,
                began: self.engine.started(),
                vouches: true,
            };
            let now = Timestamp::now();
            let Some(status) = status_patch::status(&self.subject, record::change(&view, &phase, now), now)
            else {
                return Ok(false);
            };
            match api_calls::send_status(self.ctx, &self.subject, status).await {
                Ok(object) => {
                    self.recorded(object, &phase).await;
                    return Ok(true);
                }
                Err(failure) if failure.code == 409 => self.read_again().await?,
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(Stop::Superseded)
    }

    async fn recorded(&mut self, object: Arc<Value>, phase: &RecordPhase) {
        self.ctx.saw(&self.subject.key, &WatchChange::Applied(object.clone()));
        let mut stalled = None;
        if let Ok(subject) = InstanceView::read(&self.subject.key, object) {
            self.ctx.status_cache.record_write(&subject);
            stalled = record::stalled_since(&self.subject.conditions(), &subject.conditions());
            self.subject = subject;
        }
        self.untold = !matches!(phase, RecordPhase::Over { .. }) && (self.untold || !self.started);
        self.started = true;
        self.state.unsaved.clear();
        self.watch_state.proved();
        let stalled = stalled.filter(|_| !matches!(phase, RecordPhase::Over { .. }));
        for note in stalled.into_iter().chain(record::notes(&self.state, phase)) {
            self.publish(note).await;
        }
        if let RecordPhase::Over { fatal, .. } = phase {
            self.ctx.inventories.forget(&self.subject.key);
            let status = &self.state.status.status;
            self.ctx.metrics.plan_ended(status.as_str());
            if *status != ExecutionStatus::Complete {
                let why = fatal.as_ref().map_or("", |fatal| fatal.message.as_str());
                warn!(instance = %self.subject.key, plan = %self.plan, uid = %self.uid, why, "a plan failed");
            }
        }
    }
}
