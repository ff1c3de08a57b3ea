//! Carries out a change of flavor while no pod runs.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::plan::FlavorPlan;
use interlock_kong::data_plane::rollout::flavor_change::edit::edit;
use interlock_kong::data_plane::rollout::flavor_change::next_move::FlavorHop;
use interlock_kong::data_plane::rollout::flavor_change::outage::{
    OutageFacts, OutageMove, OutageRefusal, next_move, start_pods, stop_pods,
};
use interlock_kong::data_plane::rollout::flavor_change::producer::ProducerState;
use kube::api::Patch;
use serde_json::Value;

use super::error::{TRIES, contended, unchanged};
use super::producer::ProducerRef;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;
use crate::cli::kong::flavor::cluster::FoundSources;
use crate::cli::kong::rollout::data_plane::DataPlaneRef;

/// A change of flavor under way, through an outage.
pub(super) struct OutageCarrier {
    pub(super) plane: DataPlaneRef,
    pub(super) to: Flavor,
    pub(super) plan: FlavorPlan,
    pub(super) sources: FoundSources,
    pub(super) producer: Option<ProducerRef>,
    /// Whether it is not asked for a confirmation.
    pub(super) yes: bool,
    /// The longest wait for one step.
    pub(super) limit: Duration,
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
        if look.facts.from != self.to {
            self.permitted(&look)?;
        }
        let ended = self.moves().await;
        if ended.is_err() {
            self.start_again().await;
            return ended;
        }
        let hop = FlavorHop { from: look.facts.from, to: self.to };
        match self.producer.is_none() && hop.crosses_dialects() {
            true => output::line(&format!(
                "next: restart its configuration producer, such as with `kubectl rollout restart deployment/NAME -n \
                 NAMESPACE`, so that it takes up {}",
                self.to
            )),
            false => Ok(()),
        }
    }

    /// Judges the change and asks for a confirmation before anything is scaled to 0.
    fn permitted(&self, look: &Look) -> Result<(), CliError> {
        let arguments = self.plane.arguments();
        if let Some(refusal) = self.plan.refusal(true) {
            let show = format!("see the plan: `interlock flavor plan {arguments} --to {} --outage`", self.to);
            return Err(unchanged(&self.plane).why(refusal).next(show));
        }
        // What cannot be written is known before the pods are gone.
        self.edit(look)?;
        if look.facts.remembered.is_some() {
            return Ok(());
        }
        output::line(&format!(
            "dataplane {}: {} -> {} with no pod running: all of its {} pods are stopped, and it serves no request until \
             new ones are ready and configured",
            self.plane.key(),
            look.facts.from,
            self.to,
            look.facts.pods
        ))?;
        if self.yes || is_confirmed()? {
            Ok(())
        } else {
            Err(unchanged(&self.plane).why("it was not confirmed"))
        }
    }

    async fn moves(&self) -> Result<(), CliError> {
        let mut conflicts = 0;
        loop {
            let look = self.look().await?;
            let made = match next_move(&look.facts) {
                OutageMove::Done => return self.done(),
                OutageMove::StopProducer => match (&self.producer, &look.producer) {
                    (Some(producer), Some(found)) => producer.stop(found, &self.plane.key()).await?,
                    _ => true,
                },
                OutageMove::StartProducer => self.start_producer(&look).await?,
                OutageMove::StopPods => {
                    self.write(Patch::Merge(stop_pods(&look.object)), "scaled to 0").await?
                }
                OutageMove::StartPods => self.start_pods(&look).await?,
                OutageMove::Change => {
                    let done = format!("router flavor {} -> {} is written", look.facts.from, self.to);
                    self.write(Patch::Json(json_patch::Patch(self.edit(&look)?)), &done).await?
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
            if !made {
                conflicts += 1;
            }
            if conflicts >= TRIES {
                return Err(contended(&self.plane));
            }
        }
    }

    async fn look(&self) -> Result<Look, CliError> {
        let object = self.plane.get().await?;
        let producer = match &self.producer {
            Some(producer) => Some(producer.get().await?),
            None => None,
        };
        let facts = self.facts(&object, producer.as_ref()).map_err(|why| {
            unchanged(&self.plane).why(why.to_string()).next(why.remedy(&self.plane.arguments()))
        })?;
        Ok(Look { object, producer, facts })
    }

    fn facts(&self, object: &Value, producer: Option<&Value>) -> Result<OutageFacts, OutageRefusal> {
        let key = self.plane.key();
        let state = producer.map_or(ProducerState::NotGiven, |found| ProducerState::of(found, &key, false));
        OutageFacts::of(object, self.to, &self.sources, state)
    }

    fn edit(&self, look: &Look) -> Result<Vec<json_patch::PatchOperation>, CliError> {
        edit(&look.object, look.facts.from, self.to, &self.sources).map_err(|why| {
            let remedy = why.remedy(self.plane.name(), self.plane.namespace());
            unchanged(&self.plane).why(why.to_string()).next(remedy)
        })
    }

    /// Writes to the DataPlane; `false` where it was changed since it was read.
    async fn write(&self, patch: Patch<Value>, done: &str) -> Result<bool, CliError> {
        if self.plane.patch(patch).await?.is_none() {
            return Ok(false);
        }
        output::line(&format!("dataplane {}: {done}", self.plane.key()))?;
        Ok(true)
    }

    async fn start_pods(&self, look: &Look) -> Result<bool, CliError> {
        let replicas = look.facts.remembered.unwrap_or(1);
        let patch = Patch::Merge(start_pods(&look.object, replicas));
        self.write(patch, &format!("scaled back to {replicas} replicas")).await
    }

    async fn start_producer(&self, look: &Look) -> Result<bool, CliError> {
        match (&self.producer, &look.producer) {
            (Some(producer), Some(found)) => producer.start(found).await,
            _ => Ok(true),
        }
    }

    /// After a failure: what was stopped for a change that was not made is started again. What fails here has failed
    /// before.
    async fn start_again(&self) {
        let Ok(look) = self.look().await else { return };
        if look.facts.from == self.to {
            return;
        }
        if look.facts.remembered.is_some() {
            drop(self.start_pods(&look).await);
        }
        if matches!(look.facts.producer, ProducerState::Stopping | ProducerState::Stopped) {
            drop(self.start_producer(&look).await);
        }
    }

    async fn wait_for_producer(&self, look: &Look, wait: OutageMove) -> Result<(), CliError> {
        let Some(producer) = &self.producer else { return Ok(()) };
        let moved = |found: &Value| {
            self.facts(&look.object, Some(found)).is_ok_and(|facts| next_move(&facts) != wait)
        };
        producer.until(self.limit, moved).await
    }

    async fn wait_for_pods(&self, look: &Look, wait: OutageMove) -> Result<(), CliError> {
        let mut shown = String::new();
        let ended = self.plane.until(self.limit, |object| {
            let Ok(facts) = self.facts(&object, look.producer.as_ref()) else { return Some(Ok(())) };
            if next_move(&facts) != wait {
                return Some(Ok(()));
            }
            let line = format!(
                "dataplane {}: {} pods, {} wanted, {} ready",
                self.plane.key(),
                facts.pods,
                facts.replicas,
                object["status"]["readyReplicas"].as_i64().unwrap_or_default()
            );
            if line == shown {
                return None;
            }
            let printed = output::line(&plain(&line));
            shown = line;
            printed.err().map(Err)
        });
        ended.await?.ok_or_else(|| {
            CliError::unreached(format!("DataPlane {} is not done after {:?}", self.plane.key(), self.limit))
                .why(&shown)
                .next(format!(
                    "look at its pods (`kubectl describe dataplane {}`), and call this again: it goes on where it was",
                    self.plane.arguments()
                ))
        })
    }

    fn done(&self) -> Result<(), CliError> {
        let key = self.plane.key();
        output::line(&format!("dataplane {key}: router flavor {} is live", self.to))
    }
}

fn is_confirmed() -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::usage("nobody can be asked here").next("repeat the command with --yes"));
    }
    output::print("Stop them? Type yes: ")?;
    let unread = |error: std::io::Error| CliError::usage("the answer cannot be read").why(error.to_string());
    std::io::stdout().flush().map_err(unread)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(unread)?;
    Ok(answer.trim() == "yes")
}
