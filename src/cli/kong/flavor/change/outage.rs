//! Carries out a change of flavor while no pod runs.

use std::io::IsTerminal as _;

use interlock_kong::data_plane::rollout::flavor_change::next_move::FlavorHop;
use interlock_kong::data_plane::rollout::flavor_change::outage::{
    OutageFacts, OutageMove, OutageRefusal, next_move, start_pods, stop_pods,
};
use interlock_kong::data_plane::rollout::flavor_change::producer::ProducerState;
use kube::api::Patch;
use serde_json::Value;

use super::flavor_change::{Conflicts, FlavorChange, unchanged};
use crate::cli::common::error::CliError;
use crate::cli::common::output;
use crate::cli::common::output::News;

/// A change of flavor under way, through an outage.
pub(super) struct OutageCarrier {
    pub(super) change: FlavorChange,
    /// Whether it is not asked for a confirmation.
    pub(super) yes: bool,
}

/// A version of the DataPlane and its producer, and what they mean.
struct Look {
    object: Value,
    producer: Option<Value>,
    facts: OutageFacts,
}

impl OutageCarrier {
    /// Carries out what is left.
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let look = self.look().await?;
        let to = self.change.to;
        if look.facts.from != to {
            self.permitted(&look)?;
        }
        let ended = self.moves().await;
        if ended.is_err() {
            self.start_again().await;
            return ended;
        }
        let hop = FlavorHop { from: look.facts.from, to };
        match self.change.producer.is_none() && hop.crosses_dialects() {
            true => output::line(&format!(
                "next: restart its configuration producer, such as with `kubectl rollout restart deployment/NAME -n \
                 NAMESPACE`, so that it takes up {to}"
            )),
            false => Ok(()),
        }
    }

    /// Judges the change and asks for a confirmation before anything is scaled to 0.
    fn permitted(&self, look: &Look) -> Result<(), CliError> {
        let OutageFacts { from, pods, remembered, .. } = &look.facts;
        self.change.permitted(true)?;
        // What cannot be written is known before the pods are gone.
        self.change.edit(&look.object, *from, self.change.to)?;
        if remembered.is_some() {
            return Ok(());
        }
        self.change.say(&format!(
            "{from} -> {} with no pod running: all of its {pods} pods are stopped, and it serves no request until new \
             ones are ready and configured",
            self.change.to
        ))?;
        if self.yes || is_confirmed()? {
            Ok(())
        } else {
            Err(unchanged(&self.change.plane).why("it was not confirmed"))
        }
    }

    async fn moves(&self) -> Result<(), CliError> {
        let (change, mut conflicts) = (&self.change, Conflicts::default());
        loop {
            let look = self.look().await?;
            let made = match next_move(&look.facts) {
                OutageMove::Done => return change.say_live(),
                OutageMove::StopProducer => change.stop_producer(look.producer.as_ref()).await?,
                OutageMove::StartProducer => change.start_producer(look.producer.as_ref(), true).await?,
                OutageMove::StopPods => {
                    change.write(Patch::Merge(stop_pods(&look.object)), "scaled to 0").await?
                }
                OutageMove::StartPods => self.start_pods(&look).await?,
                OutageMove::Change => {
                    let done = format!("router flavor {} -> {} is written", look.facts.from, change.to);
                    change.write(change.edit(&look.object, look.facts.from, change.to)?, &done).await?
                }
                wait @ (OutageMove::AwaitProducerStopped | OutageMove::AwaitProducerReady) => {
                    self.wait_for_producer(&look, wait).await?;
                    true
                }
                wait @ (OutageMove::AwaitNoPods | OutageMove::AwaitTaken | OutageMove::AwaitPods) => {
                    self.wait_for_pods(&look, wait).await?;
                    true
                }
            };
            change.count(&mut conflicts, made)?;
        }
    }

    async fn look(&self) -> Result<Look, CliError> {
        let object = self.change.plane.get().await?;
        let producer = self.change.producer().await?;
        let facts = self.facts(&object, producer.as_ref()).map_err(|why| {
            self.change.refused(&why.to_string(), &why.remedy(&self.change.plane.arguments()))
        })?;
        Ok(Look { object, producer, facts })
    }

    fn facts(&self, object: &Value, producer: Option<&Value>) -> Result<OutageFacts, OutageRefusal> {
        let FlavorChange { plane, to, sources, .. } = &self.change;
        let key = plane.key();
        let state = producer.map_or(ProducerState::NotGiven, |found| ProducerState::of(found, &key, false));
        OutageFacts::of(object, *to, sources, state)
    }

    async fn start_pods(&self, look: &Look) -> Result<bool, CliError> {
        let replicas = look.facts.remembered.unwrap_or(1);
        let patch = Patch::Merge(start_pods(&look.object, replicas));
        self.change.write(patch, &format!("scaled back to {replicas} replicas")).await
    }

    /// After a failure: what was stopped for a change that was not made is started again. What fails here has failed
    /// before.
    async fn start_again(&self) {
        let Ok(look) = self.look().await else { return };
        if look.facts.from == self.change.to {
            return;
        }
        if look.facts.remembered.is_some() {
            drop(self.start_pods(&look).await);
        }
        if matches!(look.facts.producer, ProducerState::Stopping | ProducerState::Stopped) {
            drop(self.change.start_producer(look.producer.as_ref(), true).await);
        }
    }

    async fn wait_for_producer(&self, look: &Look, wait: OutageMove) -> Result<(), CliError> {
        let Some(producer) = &self.change.producer else { return Ok(()) };
        let moved = |found: &Value| {
            self.facts(&look.object, Some(found)).is_ok_and(|facts| next_move(&facts) != wait)
        };
        producer.until(self.change.limit, moved).await
    }

    async fn wait_for_pods(&self, look: &Look, wait: OutageMove) -> Result<(), CliError> {
        let FlavorChange { plane, limit, .. } = &self.change;
        let mut shown = News::default();
        let ended = plane.until_value(*limit, |object| {
            let Ok(facts) = self.facts(&object, look.producer.as_ref()) else { return Some(Ok(())) };
            if next_move(&facts) != wait {
                return Some(Ok(()));
            }
            let ready = object["status"]["readyReplicas"].as_i64().unwrap_or_default();
            let OutageFacts { pods, replicas, .. } = facts;
            let line = format!("dataplane {}: {pods} pods, {replicas} wanted, {ready} ready", plane.key());
            shown.line(line).err().map(Err)
        });
        ended.await?.ok_or_else(|| {
            plane.not_done(*limit).why(&shown.last).next(format!(
                "look at its pods (`kubectl describe dataplane {}`), and call this again: it goes on where it was",
                plane.arguments()
            ))
        })
    }
}

fn is_confirmed() -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::usage("nobody can be asked here").next("repeat the command with --yes"));
    }
    output::is_confirmed("Stop them? Type yes: ")
        .map_err(|error| CliError::usage("the answer cannot be read").why(error.to_string()))
}
