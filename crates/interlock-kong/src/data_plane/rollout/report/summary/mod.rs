//! The state of a DataPlane's rollout, for people and programs: what is live, what is staged, what it waits
//! for, and the next command.

use std::fmt;

use interlock_core::api::display::display;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::stamp::SpecHash;
use serde::Serialize;
use serde_json::Value;

use crate::api::stamp::{LiveStamp, StatusSelectors};
use crate::api::{condition, proxy};
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::sources::Nothing;
use crate::data_plane::rollout::promotion;
use crate::data_plane::rollout::promotion::{PromotionRequest, staged_hash};
use crate::data_plane::rollout::report::changes::{LiveSpec, StagedChanges, StagedState};
use crate::data_plane::rollout::report::next_step::NextStep;
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase, readiness};
use crate::data_plane::rollout::sourced_flavor;

/// Characters of what a condition says that are shown.
const MESSAGE: usize = 400;

/// The state of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSummary {
    /// Namespace of the DataPlane.
    pub namespace: String,
    pub name: String,
    pub phase: RolloutPhase,
    /// Since when the phase is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    pub live: LiveSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedSide>,
    /// The router flavor that a changed ConfigMap or Secret stages beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged_flavor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionRequest>,
    /// What the rollout waits for, or why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// What only a person can mend, or what Kubernetes refuses: reason and message of the condition `Stalled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<String>,
    /// The next command, or a remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What [`Self::next`] says.
    #[serde(skip)]
    pub step: Option<NextStep>,
}

/// The live side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSummary {
    /// Value of the label that selects its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Image of the container `proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Router flavor of its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_flavor: Option<String>,
    /// How many pods there are.
    pub replicas: i64,
    /// How many of them are ready.
    pub ready_replicas: i64,
    /// Why its spec is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedSide {
    /// Hash of the spec that a promotion makes live.
    pub hash: SpecHash,
    /// The fields that it changes.
    #[serde(flatten)]
    pub changes: StagedChanges,
}

impl RolloutSummary {
    /// The state of an object; `kept` is the live spec of its ControllerRevision, where that was read.
    pub fn of(object: &Value, kept: Option<&Value>) -> Self {
        let text = |field: &str| meta_str(object, field).unwrap_or_default().to_owned();
        let spec = &object["spec"];
        let live = LiveSpec::of(object, kept);
        let staged = StagedState::of(&live, spec);
        let condition = ReportedRollout::of(object);
        let phase = phase(object, condition.as_ref(), || staged.is_something());
        let promotion = promotion::of(object);
        let (namespace, name) = (text("namespace"), text("name"));
        let staged_flavor = sourced_flavor::staged(&object["status"]).map(|said| display(said, MESSAGE));
        let stalled = stalled(object);
        let step = NextStep::of(phase, &staged, staged_flavor.is_some(), promotion);
        let step = step.or_else(|| stalled.is_some().then_some(NextStep::CorrectStalled));
        let next = step.map(|step| step.line(&NamespacedName::new(namespace.as_str(), name.as_str())));
        Self {
            phase,
            // That of an earlier spec is no news of this one.
            since: condition
                .as_ref()
                .filter(|found| found.is_current)
                .and_then(|found| found.since)
                .map(str::to_owned),
            live: LiveSummary::of(object, &live),
            waits_for: match phase {
                RolloutPhase::Starting => readiness(object).map(str::to_owned),
                _ => waits_for(phase, condition.as_ref(), &staged),
            },
            staged: match staged {
                StagedState::Fields(changes) => Some(StagedSide { hash: staged_hash(spec), changes }),
                StagedState::Something => {
                    Some(StagedSide { hash: staged_hash(spec), changes: StagedChanges::default() })
                }
                StagedState::Nothing | StagedState::Unknown(_) => None,
            },
            staged_flavor,
            promotion,
            next,
            step,
            stalled,
            namespace,
            name,
        }
    }
}

/// What the rollout of a DataPlane waits for, and what to do: texts that a graph of many objects does not keep.
pub(crate) fn node_facts(data_plane: &Value) -> Vec<(&'static str, String)> {
    let RolloutSummary { waits_for, next, .. } = RolloutSummary::of(data_plane, None);
    let facts = [("waitsFor", waits_for), ("next", next)];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

impl LiveSummary {
    fn of(object: &Value, live: &LiveSpec) -> Self {
        let status = &object["status"];
        let stamp = LiveStamp::of_object(object).ok();
        let stamped = stamp.and_then(|stamp| stamp.selector.map(|selector| selector.into_owned()));
        let spec = match live {
            LiveSpec::Known(spec) => Some(spec),
            LiveSpec::Referenced(_) | LiveSpec::Unrecorded(_) => None,
        };
        let flavor = Gateway::runs(object, "", &Nothing).ok().flatten().filter(|_| is_recorded(spec, object));
        Self {
            selector: stamped.or(StatusSelectors::of(status).live),
            image: spec.and_then(image),
            router_flavor: flavor.map(|flavor| flavor.to_string()),
            replicas: status["replicas"].as_i64().unwrap_or_default(),
            ready_replicas: status["readyReplicas"].as_i64().unwrap_or_default(),
            unknown: match live {
                LiveSpec::Known(_) => None,
                LiveSpec::Referenced(hash) => {
                    Some(format!("the ControllerRevision that keeps spec {} was not read", hash.short()))
                }
                LiveSpec::Unrecorded(why) => Some(why.to_string()),
            },
        }
    }
}

/// Whether the flavor of live pods is known: from their spec, or from a stamp that only refers to it.
fn is_recorded(spec: Option<&Value>, object: &Value) -> bool {
    spec.is_some() || LiveStamp::of_object(object).is_ok()
}

/// The image of the container `proxy` of a spec.
pub fn image(spec: &Value) -> Option<String> {
    proxy(&spec["deployment"]["podTemplateSpec"])?["image"].as_str().map(str::to_owned)
}

/// The phase of a DataPlane, for people.
pub(super) fn phase_of(object: &Value) -> RolloutPhase {
    phase(object, ReportedRollout::of(object).as_ref(), || StagedState::of_object(object).is_something())
}

/// What a person can do about it, without the fields that are staged.
pub(super) fn step_of(object: &Value) -> Option<NextStep> {
    let staged = StagedState::of_object(object);
    let phase = phase(object, ReportedRollout::of(object).as_ref(), || staged.is_something());
    let is_sourced = sourced_flavor::staged(&object["status"]).is_some();
    let step = NextStep::of(phase, &staged, is_sourced, promotion::of(object));
    step.or_else(|| stalled(object).is_some().then_some(NextStep::CorrectStalled))
}

fn phase(
    object: &Value,
    condition: Option<&ReportedRollout<'_>>,
    is_staged: impl Fn() -> bool,
) -> RolloutPhase {
    let is_older = condition.is_some_and(|condition| !condition.is_current);
    match RolloutPhase::reported(object) {
        // The controller has not seen this spec yet.
        RolloutPhase::Idle | RolloutPhase::AwaitingPromotion if is_older && is_staged() => {
            RolloutPhase::Staging
        }
        phase => phase,
    }
}

fn waits_for(
    phase: RolloutPhase,
    condition: Option<&ReportedRollout<'_>>,
    staged: &StagedState,
) -> Option<String> {
    let message = condition.filter(|condition| condition.is_current && !condition.message.is_empty());
    let phase = match phase {
        RolloutPhase::Idle if staged.is_something() => RolloutPhase::Staging,
        phase => phase,
    };
    phase.waits_for_as(message.map(|condition| condition.message))
}

impl fmt::Display for RolloutSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.as_ref().map_or_else(String::new, |since| format!(", last change {since}"));
        writeln!(f, "DataPlane {}/{}: {}{since}", self.namespace, self.name, self.phase)?;
        writeln!(f, "live: {}", self.live)?;
        self.staged_lines().iter().try_for_each(|line| writeln!(f, "{line}"))?;
        if let Some(waits_for) = &self.waits_for {
            let label = if self.phase.has_failed() { "why" } else { "waits for" };
            writeln!(f, "{label}: {waits_for}")?;
        }
        if let Some(stalled) = &self.stalled {
            writeln!(f, "stalled: {stalled}")?;
        }
        if let Some(next) = &self.next {
            writeln!(f, "next: {next}")?;
        }
        Ok(())
    }
}

/// Reason and message of the condition `Stalled`, where it is true of the stored spec.
fn stalled(object: &Value) -> Option<String> {
    let found = condition(&object["status"], meta::condition::STALLED)?;
    let text = |member: &str| display(found[member].as_str().unwrap_or_default(), MESSAGE);
    (found["status"] == "True").then(|| format!("{}: {}", text("reason"), text("message")))
}

impl RolloutSummary {
    fn stages_nothing(&self) -> bool {
        self.staged.is_none() && self.staged_flavor.is_none()
    }

    /// What is staged, and whether its promotion is requested.
    pub fn staged_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.staged_flavor.iter().map(|flavor| format!("staged: {flavor}")).collect();
        match (&self.staged, &self.live.unknown) {
            _ if self.phase == RolloutPhase::InPlace => lines.push(
                "staged: nothing; without spec.deployment.rollout.strategy.blueGreen changes are live at once".to_owned(),
            ),
            (None, _) if self.staged_flavor.is_some() => {}
            (None, None) => lines.push("staged: nothing".to_owned()),
            (None, Some(why)) => lines.push(format!("staged: unknown, as {why}")),
            (Some(staged), _) => {
                lines.push(format!("staged: spec {}", staged.hash.short()));
                lines.extend(staged.changes.fields.iter().map(|field| format!("  {field}")));
                let more = Some(staged.changes.more).filter(|more| *more > 0);
                lines.extend(more.map(|more| format!("  and {more} more")));
            }
        }
        lines.extend(self.promotion.map(|request| format!("promotion: {}", self.requested(request))));
        lines
    }

    fn requested(&self, request: PromotionRequest) -> String {
        let annotation = meta::PROMOTE_WHEN_READY;
        match request {
            PromotionRequest::Nonsense => {
                format!("not requested; annotation {annotation} is neither true nor a hash")
            }
            _ if self.stages_nothing() && self.live.unknown.is_none() => {
                format!("requested, with nothing staged; remove annotation {annotation}")
            }
            PromotionRequest::True => "requested, of whatever is staged".to_owned(),
            PromotionRequest::ThisSpec => "requested".to_owned(),
            PromotionRequest::AnotherSpec => "requested of another spec than what is staged now".to_owned(),
        }
    }
}

impl fmt::Display for LiveSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(image) = &self.image {
            write!(f, "{image}, ")?;
        }
        if let Some(flavor) = &self.router_flavor {
            write!(f, "router flavor {flavor}, ")?;
        }
        write!(f, "{} of {} replicas ready", self.ready_replicas, self.replicas)?;
        if let Some(selector) = &self.selector {
            write!(f, ", selector {selector}")?;
        }
        match &self.unknown {
            Some(why) => write!(f, "; its spec is unknown: {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
