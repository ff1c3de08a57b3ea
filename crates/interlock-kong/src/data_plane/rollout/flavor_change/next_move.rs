//! The next move of a change of flavor, and the hop that it belongs to.

use std::fmt;

use super::facts::{FlavorChangeFacts, StagedFlavor};
use super::producer::ProducerState;
use super::refusal::FlavorChangeRefusal;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::plan::stations;
use crate::data_plane::rollout::report::RolloutPhase;

/// One change of flavor on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorHop {
    /// The flavor of the live pods.
    pub from: Flavor,
    /// The flavor of the preview.
    pub to: Flavor,
}

impl FlavorHop {
    /// The first hop of the way between two flavors; `None` where they are the same.
    pub fn first(from: Flavor, to: Flavor) -> Option<Self> {
        stations(from, to).get(1).map(|next| Self { from, to: *next })
    }

    /// Whether the producer has to speak another dialect after it.
    pub fn crosses_dialects(self) -> bool {
        self.from.dialect() != self.to.dialect()
    }
}

impl fmt::Display for FlavorHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlavorMove {
    /// Nothing: the wanted flavor is live.
    Done,
    /// Stop: it cannot go on.
    Refuse(FlavorChangeRefusal),
    /// Write the flavor of this hop.
    Stage(FlavorHop),
    /// Request the promotion of this hop.
    Promote(FlavorHop),
    /// Scale the producer to 0.
    StopProducer,
    /// Scale the producer up again, with new pods.
    StartProducer,
    /// Replace the pods of the producer, which still speaks the former dialect.
    RestartProducer,
    /// Wait, and look again.
    Await(AwaitedState),
}

/// What a change of flavor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedState {
    /// The controller's report on the spec that is stored.
    Report,
    /// The end of the former side's pods: until then the preview would have pods of two flavors.
    GracePeriod,
    /// A preview of this hop whose pods all hold a configuration.
    Preview(FlavorHop),
    /// The end of the promotion.
    Promotion,
    /// The end of the producer's pods.
    ProducerStopped,
    /// New pods of the producer that are ready.
    ProducerReady,
}

pub fn next_move(facts: &FlavorChangeFacts) -> FlavorMove {
    if let Some(refusal) = refusal(facts) {
        return FlavorMove::Refuse(refusal);
    }
    match (facts.phase, staged_hop(facts)) {
        (RolloutPhase::InPlace, _) => FlavorMove::Done,
        (RolloutPhase::Promoting, _) => FlavorMove::Await(AwaitedState::Promotion),
        (RolloutPhase::AwaitingPromotion, Some(_)) if facts.requested => {
            FlavorMove::Await(AwaitedState::Promotion)
        }
        (RolloutPhase::AwaitingPromotion, Some(hop)) => promotion(facts, hop),
        // The routes of the two sides came apart since: without their producer, those of the live side stay as they are.
        (RolloutPhase::Staging | RolloutPhase::Asking, Some(_))
            if facts.producer == ProducerState::Stopped =>
        {
            FlavorMove::StartProducer
        }
        (_, Some(hop)) => FlavorMove::Await(AwaitedState::Preview(hop)),
        (_, None) => at_rest(facts),
    }
}

/// Whether the producer was stopped for a promotion that has not been requested: a command that fails here starts it
/// again.
pub fn is_stopped_in_vain(facts: &FlavorChangeFacts) -> bool {
    let is_stopped = matches!(facts.producer, ProducerState::Stopping | ProducerState::Stopped);
    is_stopped && !facts.requested && facts.phase != RolloutPhase::Promoting
}

fn refusal(facts: &FlavorChangeFacts) -> Option<FlavorChangeRefusal> {
    let is_promoting = facts.phase == RolloutPhase::Promoting;
    match (facts.phase, &facts.staged, &facts.producer) {
        (RolloutPhase::InPlace, ..) => (facts.live != facts.to).then_some(FlavorChangeRefusal::InPlace),
        (_, StagedFlavor::Other(fields), _) => Some(FlavorChangeRefusal::OtherStaged(fields.clone())),
        (_, StagedFlavor::Flavor(flavor), _) if staged_hop(facts).is_none() => {
            Some(FlavorChangeRefusal::OtherFlavor(*flavor))
        }
        (phase, ..) if phase.has_failed() => Some(FlavorChangeRefusal::Failed(facts.message.clone())),
        (_, _, ProducerState::Absent) if !is_promoting => Some(FlavorChangeRefusal::ProducerAbsent),
        (_, _, ProducerState::Taken(by)) if !is_promoting => {
            Some(FlavorChangeRefusal::ProducerTaken(by.clone()))
        }
        _ => None,
    }
}

/// The hop that is staged, if it is the next one on the way.
fn staged_hop(facts: &FlavorChangeFacts) -> Option<FlavorHop> {
    let StagedFlavor::Flavor(staged) = facts.staged else { return None };
    FlavorHop::first(facts.live, facts.to).filter(|hop| hop.to == staged)
}

/// The preview is ready. A producer that is given is stopped first: it would send the former dialect to the promoted
/// pods.
fn promotion(facts: &FlavorChangeFacts, hop: FlavorHop) -> FlavorMove {
    match facts.producer {
        ProducerState::Running { .. } if hop.crosses_dialects() => FlavorMove::StopProducer,
        ProducerState::Stopping => FlavorMove::Await(AwaitedState::ProducerStopped),
        _ => FlavorMove::Promote(hop),
    }
}

/// Nothing is staged: the producer comes first, as it may have been left stopped.
fn at_rest(facts: &FlavorChangeFacts) -> FlavorMove {
    match (&facts.producer, facts.phase) {
        (ProducerState::Stopping, _) => return FlavorMove::Await(AwaitedState::ProducerStopped),
        (ProducerState::Stopped, _) => return FlavorMove::StartProducer,
        (ProducerState::Running { is_stale: true, .. }, _) => return FlavorMove::RestartProducer,
        (ProducerState::Running { is_ready: false, .. }, _) => {
            return FlavorMove::Await(AwaitedState::ProducerReady);
        }
        _ => {}
    }
    match (FlavorHop::first(facts.live, facts.to), facts.phase) {
        (None, RolloutPhase::Idle | RolloutPhase::Grace) => FlavorMove::Done,
        (Some(hop), RolloutPhase::Idle) => FlavorMove::Stage(hop),
        (Some(_), RolloutPhase::Grace) => FlavorMove::Await(AwaitedState::GracePeriod),
        _ => FlavorMove::Await(AwaitedState::Report),
    }
}
