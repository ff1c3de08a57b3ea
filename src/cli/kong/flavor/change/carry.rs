//! Carries out the moves of a change of flavor, and waits between them.

use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::plan::{FlavorPlan, stations};
use interlock_kong::data_plane::rollout::flavor_change::edit::edit;
use interlock_kong::data_plane::rollout::flavor_change::facts::FlavorChangeFacts;
use interlock_kong::data_plane::rollout::flavor_change::next_move::{
    AwaitedState, FlavorHop, FlavorMove, is_stopped_in_vain, next_move,
};
use interlock_kong::data_plane::rollout::flavor_change::producer::ProducerState;
use interlock_kong::data_plane::rollout::flavor_change::refusal::FlavorChangeRefusal;
use interlock_kong::data_plane::rollout::staged_hash;
use interlock_kong::data_plane::rollout::summary::RolloutSummary;
use kube::api::Patch;
use serde_json::Value;

use super::error::{TRIES, contended, unchanged};
use super::preview;
use super::producer::ProducerRef;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;
use crate::cli::kong::flavor::cluster::FoundSources;
use crate::cli::kong::rollout::data_plane::DataPlaneRef;
use crate::cli::kong::rollout::{promote, status, wait};

/// A change of flavor under way.
pub(super) struct FlavorCarrier {
    pub(super) plane: DataPlaneRef,
    pub(super) to: Flavor,
    pub(super) plan: FlavorPlan,
    pub(super) sources: FoundSources,
    /// The producer that is stopped and started.
    pub(super) producer: Option<ProducerRef>,
    /// The same, or one that is known and left alone.
    pub(super) known: Option<ProducerRef>,
    pub(super) wait: bool,
    /// The longest wait for one step.
    pub(super) limit: Duration,
    pub(super) progress: CarryProgress,
}

/// What has happened since the command was called.
#[derive(Default)]
pub(super) struct CarryProgress {
    /// The flavor that was live when it was looked at last.
    live: Option<Flavor>,
    /// The hop whose promotion has changed the dialect.
    crossed: Option<FlavorHop>,
    /// Whether the producer still speaks the dialect of before that.
    is_stale: bool,
    /// The hop whose promotion was requested.
    requested: Option<FlavorHop>,
    /// The hop for whose preview a producer was asked for.
    explained: Option<FlavorHop>,
    shown: Option<String>,
}

/// A version of the DataPlane, and what it means.
struct Look {
    object: Value,
    kept: Option<Value>,
    producer: Option<Value>,
    facts: FlavorChangeFacts,
}

impl FlavorCarrier {
    /// Carries out what is left: with `wait` all of it, else one move.
    pub(super) async fn run(&mut self) -> Result<(), CliError> {
        let ended = self.moves().await;
        if ended.is_err() {
            self.start_in_vain_stopped().await;
        }
        ended
    }

    async fn moves(&mut self) -> Result<(), CliError> {
        let mut conflicts = 0;
        loop {
            let look = self.look().await?;
            self.observe(look.facts.live)?;
            let next = next_move(&look.facts);
            let made = match next {
                FlavorMove::Done => return self.done().await,
                FlavorMove::Refuse(why) => return Err(self.refused(&why)),
                FlavorMove::Await(what) => {
                    self.explain(what).await?;
                    if !self.wait {
                        return self.say_state(&look);
                    }
                    self.wait_for(&look, what).await?;
                    continue;
                }
                FlavorMove::Stage(hop) => self.stage(&look, hop).await?,
                FlavorMove::Promote(hop) => {
                    self.promote(look, hop).await?;
                    true
                }
                FlavorMove::StopProducer => self.stop_producer(&look).await?,
                FlavorMove::StartProducer | FlavorMove::RestartProducer => {
                    self.start_producer(&look, next == FlavorMove::StartProducer).await?
                }
            };
            match made {
                true if self.wait => {}
                true => return self.say_next(),
                // Another client's write came first: what it has made of the object is looked at.
                false => conflicts += 1,
            }
            if conflicts >= TRIES {
                return Err(contended(&self.plane));
            }
        }
    }

    async fn look(&self) -> Result<Look, CliError> {
        let object = self.plane.get().await?;
        let kept = self.plane.kept(&object).await.spec;
        let producer = match &self.producer {
            Some(producer) => Some(producer.get().await?),
            None => None,
        };
        let facts =
            self.facts(&object, kept.as_ref(), producer.as_ref()).map_err(|why| self.refused(&why))?;
        Ok(Look { object, kept, producer, facts })
    }

    fn facts(
        &self,
        object: &Value,
        kept: Option<&Value>,
        producer: Option<&Value>,
    ) -> Result<FlavorChangeFacts, FlavorChangeRefusal> {
        let state = producer.map_or(ProducerState::NotGiven, |deployment| {
            ProducerState::of(deployment, &self.plane.key(), self.progress.is_stale)
        });
        FlavorChangeFacts::of(object, kept, self.to, &self.sources, state)
    }

    /// Takes in which flavor is live.
    fn observe(&mut self, live: Flavor) -> Result<(), CliError> {
        let key = self.plane.key();
        match self.progress.live.replace(live) {
            None if live != self.to => {
                let way: Vec<&str> = stations(live, self.to).into_iter().map(Flavor::as_str).collect();
                output::line(&format!("dataplane {key}: {}", way.join(" -> ")))
            }
            Some(before) if before != live => {
                let hop = FlavorHop { from: before, to: live };
                if hop.crosses_dialects() {
                    self.progress.crossed = Some(hop);
                    self.progress.is_stale = true;
                }
                output::line(&format!("dataplane {key}: router flavor {live} is live"))
            }
            _ => Ok(()),
        }
    }

    /// Writes the flavor of a hop; `false` where the DataPlane was changed since it was read.
    async fn stage(&self, look: &Look, hop: FlavorHop) -> Result<bool, CliError> {
        if let Some(refusal) = self.plan.refusal(false) {
            let show =
                format!("see the plan: `interlock flavor plan {} --to {}`", self.plane.arguments(), self.to);
            return Err(unchanged(&self.plane).why(refusal).next(show));
        }
        let patch = edit(&look.object, hop.from, hop.to, &self.sources).map_err(|why| {
            let remedy = why.remedy(self.plane.name(), self.plane.namespace());
            unchanged(&self.plane).why(why.to_string()).next(remedy)
        })?;
        if self.plane.patch(Patch::Json(json_patch::Patch(patch))).await?.is_none() {
            return Ok(false);
        }
        output::line(&format!("dataplane {}: router flavor {hop} is staged", self.plane.key()))?;
        for warning in self.plan.warnings(hop.from, hop.to) {
            output::line(&plain(&format!("  warning {warning}")))?;
        }
        Ok(true)
    }

    async fn promote(&mut self, look: Look, hop: FlavorHop) -> Result<(), CliError> {
        if self.progress.requested.replace(hop) == Some(hop) {
            return Err(wait::withdrawn(&self.plane));
        }
        let hash = staged_hash(&look.object["spec"]);
        let requested = promote::request(&self.plane, look.object, &hash).await?;
        output::line(&plain(&promote::requested_line(&self.plane, &requested, &hash)))
    }

    /// `false` where the producer was changed since it was read.
    async fn stop_producer(&self, look: &Look) -> Result<bool, CliError> {
        let (Some(producer), Some(deployment)) = (&self.producer, &look.producer) else { return Ok(true) };
        producer.stop(deployment, &self.plane.key()).await
    }

    /// `false` where the producer was changed since it was read.
    async fn start_producer(&mut self, look: &Look, is_stopped: bool) -> Result<bool, CliError> {
        let (Some(producer), Some(deployment)) = (&self.producer, &look.producer) else { return Ok(true) };
        let started = match is_stopped {
            true => producer.start(deployment).await?,
            false => producer.restart(deployment).await?,
        };
        if started {
            self.progress.is_stale = false;
        }
        Ok(started)
    }

    /// After a failure: a producer that waits for no promotion is started again. What fails here has failed before.
    async fn start_in_vain_stopped(&mut self) {
        if let Ok(look) = self.look().await
            && is_stopped_in_vain(&look.facts)
        {
            drop(self.start_producer(&look, true).await);
        }
    }

    async fn wait_for(&mut self, look: &Look, what: AwaitedState) -> Result<(), CliError> {
        if let (AwaitedState::ProducerStopped | AwaitedState::ProducerReady, Some(producer)) =
            (what, &self.producer)
        {
            let moved = |deployment: &Value| {
                let facts = self.facts(&look.object, look.kept.as_ref(), Some(deployment));
                facts.is_ok_and(|facts| next_move(&facts) != FlavorMove::Await(what))
            };
            return producer.until(self.limit, moved).await;
        }
        let mut shown = self.progress.shown.take();
        // The state is known even if no event follows.
        show(&look.object, look.kept.as_ref(), &mut shown)?;
        let looked = self.plane.until(self.limit, |object| {
            let facts = self.facts(&object, look.kept.as_ref(), look.producer.as_ref());
            if let Err(error) = show(&object, look.kept.as_ref(), &mut shown) {
                return Some(Err(error));
            }
            // What is not known from this version alone is read again.
            let stays = facts.is_ok_and(|facts| next_move(&facts) == FlavorMove::Await(what));
            (!stays).then_some(Ok(()))
        });
        let ended = looked.await?;
        let late = || self.late(shown.as_deref());
        ended.ok_or_else(late)?;
        self.progress.shown = shown;
        Ok(())
    }

    /// Says what the preview needs and only people can give it; once for each hop.
    async fn explain(&mut self, what: AwaitedState) -> Result<(), CliError> {
        let AwaitedState::Preview(hop) = what else { return Ok(()) };
        if self.progress.explained.replace(hop) == Some(hop) {
            return Ok(());
        }
        preview::say_needed(&self.plane.namespaced_name(), hop, self.known.as_ref()).await
    }

    fn say_state(&self, look: &Look) -> Result<(), CliError> {
        show(&look.object, look.kept.as_ref(), &mut None)?;
        self.say_next()
    }

    fn say_next(&self) -> Result<(), CliError> {
        output::line(&format!(
            "next: `{}` once that is done (`interlock rollout status {}`); with --wait it carries out all that is left",
            self.command(),
            self.plane.arguments()
        ))
    }

    fn command(&self) -> String {
        let wait = if self.wait { " --wait" } else { "" };
        let producer = self.producer.as_ref().map_or_else(String::new, |producer| {
            format!(" --producer deploy/{}/{}", producer.name.namespace, producer.name.name)
        });
        format!("{}{wait}{producer}", self.one_step())
    }

    /// The command without flags.
    fn one_step(&self) -> String {
        format!("interlock flavor change {} --to {}", self.plane.arguments(), self.to)
    }

    async fn done(&self) -> Result<(), CliError> {
        if self.progress.requested.is_none() && self.progress.crossed.is_none() {
            output::line(&format!("dataplane {}: router flavor {} is live", self.plane.key(), self.to))?;
        }
        match (self.progress.crossed, self.left_stopped().await) {
            (_, Some(producer)) => output::line(&format!(
                "next: `{} --wait --producer deploy/{}/{}`: that Deployment is still scaled to 0 for this DataPlane",
                self.one_step(),
                producer.namespace,
                producer.name
            )),
            (Some(hop), None) => preview::say_left(hop, self.known.as_ref(), self.producer.is_some()),
            (None, None) => Ok(()),
        }
    }

    /// The producer that the DataPlane names, where an interrupted command has left it stopped.
    async fn left_stopped(&self) -> Option<&NamespacedName> {
        let known = self.known.as_ref().filter(|_| self.producer.is_none())?;
        let state = ProducerState::of(&known.find().await?, &self.plane.key(), false);
        matches!(state, ProducerState::Stopping | ProducerState::Stopped).then_some(&known.name)
    }

    fn refused(&self, why: &FlavorChangeRefusal) -> CliError {
        unchanged(&self.plane).why(why.to_string()).next(why.remedy(&self.plane.arguments()))
    }

    fn late(&self, shown: Option<&str>) -> CliError {
        CliError::unreached(format!("DataPlane {} is not done after {:?}", self.plane.key(), self.limit))
            .why(shown.unwrap_or_default())
            .next(format!(
                "see to what it waits for, or wait longer with --timeout; `{}` goes on where it was",
                self.command()
            ))
    }
}

/// Prints the state of a rollout where it is another than before.
fn show(object: &Value, kept: Option<&Value>, shown: &mut Option<String>) -> Result<(), CliError> {
    let line = status::line(&RolloutSummary::of(object, kept));
    if shown.as_ref() == Some(&line) {
        return Ok(());
    }
    output::line(&plain(&line))?;
    *shown = Some(line);
    Ok(())
}
