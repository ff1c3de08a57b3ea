//! Carries out the moves of a change of flavor, and waits between them.

use interlock_core::api::object::NamespacedName;
use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::plan::stations;
use interlock_kong::data_plane::rollout::flavor_change::facts::FlavorChangeFacts;
use interlock_kong::data_plane::rollout::flavor_change::next_move::{
    AwaitedState, FlavorHop, FlavorMove, is_stopped_in_vain, next_move,
};
use interlock_kong::data_plane::rollout::flavor_change::producer::ProducerState;
use interlock_kong::data_plane::rollout::flavor_change::refusal::FlavorChangeRefusal;
use interlock_kong::data_plane::rollout::report::summary::RolloutSummary;
use interlock_kong::data_plane::rollout::staged_hash;
use serde_json::Value;

use super::flavor_change::{Conflicts, FlavorChange};
use super::producer;
use super::producer::ProducerRef;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;
use crate::cli::common::output::News;
use crate::cli::kong::rollout::{status, verbs};

/// A change of flavor under way, hop by hop.
pub(super) struct FlavorCarrier {
    pub(super) change: FlavorChange,
    /// The producer that is stopped and started, or one that is known and left alone.
    pub(super) known: Option<ProducerRef>,
    pub(super) wait: bool,
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
    shown: News,
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
        let mut conflicts = Conflicts::default();
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
                FlavorMove::StopProducer => self.change.stop_producer(look.producer.as_ref()).await?,
                FlavorMove::StartProducer | FlavorMove::RestartProducer => {
                    self.start_producer(&look, next == FlavorMove::StartProducer).await?
                }
            };
            if made && !self.wait {
                return self.say_next();
            }
            self.change.count(&mut conflicts, made)?;
        }
    }

    async fn look(&self) -> Result<Look, CliError> {
        let plane = &self.change.plane;
        let object = plane.get().await?;
        let kept = plane.kept(&object).await.spec;
        let producer = self.change.producer().await?;
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
            ProducerState::of(deployment, &self.change.plane.key(), self.progress.is_stale)
        });
        FlavorChangeFacts::of(object, kept, self.change.to, &self.change.sources, state)
    }

    /// Takes in which flavor is live.
    fn observe(&mut self, live: Flavor) -> Result<(), CliError> {
        let change = &self.change;
        match self.progress.live.replace(live) {
            None if live != change.to => {
                let way: Vec<&str> = stations(live, change.to).into_iter().map(Flavor::as_str).collect();
                change.say(&way.join(" -> "))
            }
            Some(before) if before != live => {
                let hop = FlavorHop { from: before, to: live };
                if hop.crosses_dialects() {
                    self.progress.crossed = Some(hop);
                    self.progress.is_stale = true;
                }
                change.say(&format!("router flavor {live} is live"))
            }
            _ => Ok(()),
        }
    }

    /// Writes the flavor of a hop; `false` where the DataPlane was changed since it was read.
    async fn stage(&self, look: &Look, hop: FlavorHop) -> Result<bool, CliError> {
        self.change.permitted(false)?;
        let patch = self.change.edit(&look.object, hop.from, hop.to)?;
        if !self.change.write(patch, &format!("router flavor {hop} is staged")).await? {
            return Ok(false);
        }
        for warning in self.change.plan.warnings(hop.from, hop.to) {
            output::line(&plain(&format!("  warning {warning}")))?;
        }
        Ok(true)
    }

    async fn promote(&mut self, look: Look, hop: FlavorHop) -> Result<(), CliError> {
        let plane = &self.change.plane;
        if self.progress.requested.replace(hop) == Some(hop) {
            return Err(status::withdrawn(plane));
        }
        let hash = staged_hash(&look.object["spec"]);
        let requested = verbs::request_promotion(plane, look.object, &hash).await?;
        output::line(&plain(&verbs::requested_line(plane, &requested, &hash)))
    }

    /// `false` where the producer was changed since it was read.
    async fn start_producer(&mut self, look: &Look, is_stopped: bool) -> Result<bool, CliError> {
        let started = self.change.start_producer(look.producer.as_ref(), is_stopped).await?;
        self.progress.is_stale &= !started;
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
        let limit = self.change.limit;
        let stays = |object: &Value, producer: Option<&Value>| {
            let facts = self.facts(object, look.kept.as_ref(), producer);
            facts.map(|facts| next_move(&facts) == FlavorMove::Await(what)).ok()
        };
        if let (AwaitedState::ProducerStopped | AwaitedState::ProducerReady, Some(producer)) =
            (what, &self.change.producer)
        {
            let moved = |deployment: &Value| stays(&look.object, Some(deployment)) == Some(false);
            return producer.until(limit, moved).await;
        }
        let mut shown = News { last: self.progress.shown.last.clone() };
        // The state is known even if no event follows.
        show(&look.object, look.kept.as_ref(), &mut shown)?;
        let looked = self.change.plane.until_value(limit, |object| {
            // What is not known from this version alone is read again.
            let stays = stays(&object, look.producer.as_ref()) == Some(true);
            let printed = show(&object, look.kept.as_ref(), &mut shown);
            printed.map_or_else(|error| Some(Err(error)), |()| (!stays).then_some(Ok(())))
        });
        looked.await?.ok_or_else(|| {
            self.change.plane.not_done(limit).why(&shown.last).next(format!(
                "see to what it waits for, or wait longer with --timeout; `{}` goes on where it was",
                self.command()
            ))
        })?;
        self.progress.shown = shown;
        Ok(())
    }

    /// Says what the preview needs and only people can give it; once for each hop.
    async fn explain(&mut self, what: AwaitedState) -> Result<(), CliError> {
        let AwaitedState::Preview(hop) = what else { return Ok(()) };
        if self.progress.explained.replace(hop) == Some(hop) {
            return Ok(());
        }
        producer::say_needed(&self.change.plane.namespaced_name(), hop, self.known.as_ref()).await
    }

    fn say_state(&self, look: &Look) -> Result<(), CliError> {
        show(&look.object, look.kept.as_ref(), &mut News::default())?;
        self.say_next()
    }

    fn say_next(&self) -> Result<(), CliError> {
        output::line(&format!(
            "next: `{}` once that is done (`interlock rollout status {}`); with --wait it carries out all that is left",
            self.command(),
            self.change.plane.arguments()
        ))
    }

    fn command(&self) -> String {
        let wait = if self.wait { " --wait" } else { "" };
        let producer = self
            .change
            .producer
            .as_ref()
            .map_or_else(String::new, |producer| format!(" --producer deploy/{}", producer.name()));
        format!("{}{wait}{producer}", self.one_step())
    }

    /// The command without flags.
    fn one_step(&self) -> String {
        format!("interlock flavor change {} --to {}", self.change.plane.arguments(), self.change.to)
    }

    async fn done(&self) -> Result<(), CliError> {
        if self.progress.requested.is_none() && self.progress.crossed.is_none() {
            self.change.say_live()?;
        }
        match (self.progress.crossed, self.left_stopped().await) {
            (_, Some(producer)) => output::line(&format!(
                "next: `{} --wait --producer deploy/{producer}`: that Deployment is still scaled to 0 for this DataPlane",
                self.one_step()
            )),
            (Some(hop), None) => producer::say_left(hop, self.known.as_ref(), self.change.producer.is_some()),
            (None, None) => Ok(()),
        }
    }

    /// The producer that the DataPlane names, where an interrupted command has left it stopped.
    async fn left_stopped(&self) -> Option<NamespacedName> {
        let known = self.known.as_ref().filter(|_| self.change.producer.is_none())?;
        let state = ProducerState::of(&known.find().await?, &self.change.plane.key(), false);
        matches!(state, ProducerState::Stopping | ProducerState::Stopped).then(|| known.name())
    }

    fn refused(&self, why: &FlavorChangeRefusal) -> CliError {
        self.change.refused(&why.to_string(), &why.remedy(&self.change.plane.arguments()))
    }
}

/// Prints the state of a rollout where it is another than before.
fn show(object: &Value, kept: Option<&Value>, shown: &mut News) -> Result<(), CliError> {
    shown.line(status::line(&RolloutSummary::of(object, kept)))
}
