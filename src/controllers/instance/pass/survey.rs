//! A survey of a run: how far it gets if all its writes succeed, so that one proof covers what it reads on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::effect::Effect;
use interlock_core::reconcile::{Facts, Lookup, Needs};
use interlock_kudo::engine::lookup::{EngineStep, Observed, PlanState};
use serde_json::Value;

use super::{Pass, ROUNDS, Stop};
use crate::runtime::rounds::{self, Decided, Decision, Flow, Rounds};

impl Pass<'_> {
    /// Looks up everything that the run can reach if all goes well.
    pub(super) async fn survey(&mut self) -> Result<(), Stop> {
        let (state, imagined) = (self.state.clone(), self.watch_state.observed.clone());
        rounds::drive(&mut Survey { pass: self, state, imagined }, ROUNDS).await.map(drop)
    }
}

struct Survey<'s, 'p> {
    pass: &'s mut Pass<'p>,
    state: PlanState,
    /// What is observed, and the expected answers of planned writes.
    imagined: Observed,
}

impl Rounds for Survey<'_, '_> {
    type Lacks = Needs;
    type Writes = EngineStep;
    type End = ();
    type Stop = Stop;

    fn leads(&self) -> Result<(), Stop> {
        self.pass.leads()
    }

    async fn decide(&mut self) -> Decided<Self> {
        let (step, imagined) = self.pass.ask(self.state.clone(), std::mem::take(&mut self.imagined)).await?;
        self.imagined = imagined;
        Ok(if !step.needs.is_empty() {
            Decision::Lacks(step.needs)
        } else if step.effects.is_empty() || step.state.status.status.is_terminal() {
            Decision::End(())
        } else {
            Decision::Write(step)
        })
    }

    async fn read(&mut self, needs: Needs) -> Result<Flow<()>, Stop> {
        self.pass.read(needs.clone()).await?;
        see(&mut self.imagined.facts, &self.pass.watch_state.observed.facts, &needs);
        Ok(Flow::Again)
    }

    /// Imagines the writes.
    async fn write(&mut self, step: EngineStep) -> Result<Flow<()>, Stop> {
        self.state = step.state;
        step.effects.into_iter().flatten().for_each(|write| imagine(&mut self.imagined.facts, write));
        Ok(Flow::Again)
    }
}

/// Adds the results of lookups.
fn see(facts: &mut Facts, observed: &Facts, needs: &Needs) {
    copy(&mut facts.kinds, &observed.kinds, &needs.kinds);
    copy(&mut facts.digests, &observed.digests, &needs.digests);
    copy(&mut facts.pod_failures, &observed.pod_failures, &needs.pod_failures);
    copy(&mut facts.files, &observed.files, &needs.files);
    for keys in [&needs.objects, &needs.certainly] {
        keys.iter().for_each(|key| drop(facts.failures.remove(key)));
        copy(&mut facts.objects, &observed.objects, keys);
        copy(&mut facts.failures, &observed.failures, keys);
    }
    if needs.inventory {
        facts.inventory.clone_from(&observed.inventory);
    }
}

/// Adds the expected answer of a write.
fn imagine(facts: &mut Facts, write: Effect) {
    let Some(key) = write.key() else { return };
    let seen = match write {
        Effect::Create { object } => Some(Arc::new(object)),
        Effect::Patch { patch, .. } => facts.get(&key).ok().flatten().map(|current| {
            let mut object = Value::clone(current);
            json_patch::merge(&mut object, &patch);
            Arc::new(object)
        }),
        Effect::Delete { .. } => None,
        // The engine wants none of these: a run ends at what they would answer.
        Effect::Apply { .. } | Effect::Status { .. } | Effect::Event { .. } | Effect::Healed { .. } => {
            return;
        }
    };
    facts.objects.insert(key, seen.map_or(Lookup::Absent, Lookup::Found));
}

/// Copies what there is of these keys.
fn copy<K: Ord + Clone, V: Clone>(to: &mut BTreeMap<K, V>, from: &BTreeMap<K, V>, keys: &BTreeSet<K>) {
    to.extend(keys.iter().filter_map(|key| Some((key.clone(), from.get(key)?.clone()))));
}
