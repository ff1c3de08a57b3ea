//! Where a change of flavor stands, from a DataPlane and its producer.

use serde_json::Value;

use super::producer::ProducerState;
use super::refusal::FlavorChangeRefusal;
use crate::api::PROXY;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::reading::VARIABLE;
use crate::data_plane::flavor::sources::Sources;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::promotion;
use crate::data_plane::rollout::promotion::PromotionRequest;
use crate::data_plane::rollout::report::changes::{LiveSpec, StagedChanges, StagedState};
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};
use crate::data_plane::rollout::sourced_flavor;

/// Paths that a sentence names.
const NAMED: usize = 3;

/// What the next move is decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorChangeFacts {
    /// The wanted flavor.
    pub to: Flavor,
    /// The flavor of the live pods.
    pub live: Flavor,
    pub staged: StagedFlavor,
    /// How far the rollout is: [`RolloutPhase::Unreported`] without a report on the spec that is stored.
    pub phase: RolloutPhase,
    /// What is said of it.
    pub message: String,
    /// Whether the promotion of what is staged is requested.
    pub requested: bool,
    /// The configuration producer of the live pods.
    pub producer: ProducerState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagedFlavor {
    Nothing,
    /// This router flavor, and nothing else.
    Flavor(Flavor),
    /// Something else; which fields.
    Other(String),
}

impl FlavorChangeFacts {
    /// The facts of an object; `kept` is the live spec of its ControllerRevision, where that was read.
    pub fn of(
        object: &Value,
        kept: Option<&Value>,
        to: Flavor,
        sources: &dyn Sources,
        producer: ProducerState,
    ) -> Result<Self, FlavorChangeRefusal> {
        let unreadable = |error: &dyn std::fmt::Display| FlavorChangeRefusal::UnknownLive(error.to_string());
        let runs = Gateway::runs(object, "", sources).map_err(|error| unreadable(&error))?;
        let runs = runs.ok_or_else(|| unreadable(&"it is no DataPlane"))?;
        let live = runs.known().ok_or_else(|| unreadable(&runs))?;
        let (phase, message) = stage(object);
        Ok(Self {
            to,
            live,
            staged: StagedFlavor::of(object, kept, live, sources)?,
            phase,
            message,
            requested: promotion::of(object).is_some_and(PromotionRequest::is_for_this),
            producer,
        })
    }
}

impl StagedFlavor {
    fn of(
        object: &Value,
        kept: Option<&Value>,
        runs: Flavor,
        sources: &dyn Sources,
    ) -> Result<Self, FlavorChangeRefusal> {
        let spec = &object["spec"];
        let live = LiveSpec::of(object, kept);
        match (StagedState::of(&live, spec), &live) {
            // What the flavor comes from may have changed: that is staged as a hop is.
            (StagedState::Nothing, _) => {
                let written = Gateway::read(object, "", sources).ok().flatten();
                let flavor = written.and_then(|gateway| gateway.spec.reading.effective.known());
                let is_staged = sourced_flavor::staged(&object["status"]).is_some();
                Ok(flavor.filter(|flavor| is_staged && *flavor != runs).map_or(Self::Nothing, Self::Flavor))
            }
            (StagedState::Unknown(why), _) => Err(FlavorChangeRefusal::UnknownSpec(why.to_string())),
            (StagedState::Something | StagedState::Fields(_), LiveSpec::Known(live)) => {
                let changes = StagedChanges::between(live, spec);
                let written = Gateway::read(object, "", sources).ok().flatten();
                let flavor = written.and_then(|gateway| gateway.spec.reading.effective.known());
                let is_flavor_alone = !live_spec::is_changed(&without_flavor(live), &without_flavor(spec));
                Ok(match flavor {
                    Some(flavor) if is_flavor_alone && flavor != runs => Self::Flavor(flavor),
                    _ => Self::Other(changes.paths(NAMED)),
                })
            }
            (StagedState::Something | StagedState::Fields(_), _) => Err(FlavorChangeRefusal::UnknownSpec(
                "the ControllerRevision that keeps it was not read".to_owned(),
            )),
        }
    }
}

/// How far the rollout is, and what is said of it. A report on another spec counts for a promotion alone, which no spec
/// changes.
fn stage(object: &Value) -> (RolloutPhase, String) {
    if !live_spec::is_staged(&object["spec"]) {
        return (RolloutPhase::InPlace, String::new());
    }
    let reported = ReportedRollout::of(object);
    match reported.filter(|found| found.is_current || found.phase() == RolloutPhase::Promoting) {
        // A preview that is on its way, whatever another operator calls that.
        Some(found) if found.phase() == RolloutPhase::Unknown => (RolloutPhase::Staging, String::new()),
        Some(found) => (found.phase(), found.message.to_owned()),
        None => (RolloutPhase::Unreported, String::new()),
    }
}

/// A spec without the variable of the flavor.
fn without_flavor(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let containers =
        spec.pointer_mut("/deployment/podTemplateSpec/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter(|container| container["name"] == PROXY) {
        let Some(env) = container.get_mut("env").and_then(Value::as_array_mut) else { continue };
        env.retain(|entry| entry["name"] != VARIABLE);
        if env.is_empty()
            && let Some(container) = container.as_object_mut()
        {
            container.remove("env");
        }
    }
    spec
}
