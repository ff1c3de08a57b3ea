//! Reconciles a DataPlane: the children of the live side from the last-applied spec, those of the preview from the
//! spec, the promotion between them, and the status.

mod certificate;
mod certificate_state;
mod housekeeping;
mod phase_facts;
mod refused;
mod restore_children;
mod taken_over;

use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::certificate::CertificateAnswer;
use interlock_core::effect::{Effect, Severity};
use interlock_core::kinds::capabilities::DATA_PLANES;
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::housekeeping::Housekeeping;
use super::children::DataPlaneOwner;
use super::live_record;
use super::live_record::{LiveRecord, LiveSide, LostSpec, commit};
use super::phase::RolloutState;
use super::refused_child;
use super::refused_child::{RefusedChild, Stall};
use super::report::RolloutPhase;
use super::sourced_flavor::{SourcedFlavorChange, SourcedFlavors};
use super::status;
use super::status::{DataPlaneStatusInput, RolloutInput};
use super::take_over;
use super::take_over::{LeftAlone, TakeOver, TakenOver};
use super::view::DataPlaneView;
use super::wanted::ChildRole;
use crate::data_plane::live_spec;

/// Reconciles DataPlanes.
pub static RECONCILER: Reconciler = Reconciler { name: "dataplane", capability: &DATA_PLANES, reconcile };

/// How long the first status waits for that of a Deployment that was just made: it tells of its pods then.
const FIRST_REPORT: Duration = Duration::from_secs(1);
/// Pause before traffic is looked at again that has not followed yet, if no event comes first.
const TRAFFIC: Duration = Duration::from_secs(1);
/// Pause before pods are asked again that have no configuration yet: nothing tells when they get one.
const CONFIGURATION: Duration = Duration::from_secs(5);

fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let Some(of) = DataPlaneView::of(view.object()) else { return Ok(ReconcileStep::Await(None)) };
    if let Some(owner) = of.other_owner() {
        let message = format!("its owner is a {owner}: Kong's operator reconciles it");
        return Ok(left_alone(&of, LeftAlone::new("OwnedByAnother", message), view.now()));
    }
    let taken = match take_over::decide(&of, view)? {
        TakeOver::NotAsked => None,
        TakeOver::Done(taken) => Some(*taken),
        TakeOver::LeftAlone(why) => return Ok(left_alone(&of, why, view.now())),
        TakeOver::Write(effects) => return Ok(taking_over(&of, effects, view)),
    };
    let owner = match DataPlaneOwner::of(view.object(), taken.as_ref().map(|taken| taken.kept.clone())) {
        Ok(owner) => owner,
        Err(error) => {
            let why = LeftAlone::new("InvalidSpec", error.to_string());
            return Ok(left_alone(&of, why, view.now()));
        }
    };
    match live_record::record(&of, &owner, view)? {
        LiveRecord::OfAnother { selector } => {
            let message = format!(
                "another operator made its live pods, those with selector {selector}: to have Interlock take it over, scale \
                 Kong's operator to 0, and set annotation {}",
                meta::TAKE_OVER
            );
            Ok(left_alone(&of, LeftAlone::new("AnotherOperator", message), view.now()))
        }
        LiveRecord::Known(side) => Pass::begin(of, owner, *view, side, None, taken),
        LiveRecord::Lost(side, why) => Pass::begin(of, owner, *view, side, Some(why), taken),
    }
}

/// Says in the status that the DataPlane is another operator's, and does nothing else.
fn left_alone(of: &DataPlaneView<'_>, why: LeftAlone, now: Timestamp) -> ReconcileStep {
    let is_handed_back = why.reason == meta::condition::HANDED_BACK;
    let effects = match is_handed_back {
        true => status::handed_back(of, why.message, now),
        false => status::not_managed(of, why.reason, why.message, now).into_iter().collect(),
    };
    if effects.is_empty() { ReconcileStep::Await(why.again) } else { ReconcileStep::Write(effects) }
}

/// Writes what a take-over begins with, and says in the status what the API server refuses of it.
fn taking_over(of: &DataPlaneView<'_>, effects: Vec<Effect>, view: &View<'_>) -> ReconcileStep {
    let waits = |effect: &Effect| {
        let (key, refused) = view.refused_write(effect)?;
        let again = left(refused.retry, view.now());
        (!again.is_zero()).then(|| (RefusedChild::of(&key, refused, false).message(), again))
    };
    match effects.iter().find_map(waits) {
        Some((message, again)) => {
            let why = LeftAlone { again: Some(again), ..LeftAlone::refused(message) };
            left_alone(of, why, view.now())
        }
        None => ReconcileStep::InOrder(effects),
    }
}

/// One pass over a DataPlane.
struct Pass<'p> {
    of: DataPlaneView<'p>,
    owner: DataPlaneOwner,
    view: View<'p>,
    side: LiveSide,
    flavors: SourcedFlavors<'p>,
    /// Why the spec of the live side is not known.
    lost: Option<LostSpec>,
    /// What is kept of it, if it was taken over.
    taken: Option<TakenOver>,
}

/// What a pass wants written, and what only a person can mend.
#[derive(Default)]
struct Wants {
    effects: Vec<Effect>,
    stalled: Option<Stall>,
    /// Children that the API server refused.
    refused: Vec<RefusedChild>,
    /// Whether a child of the live side is not as its spec asks for.
    untaken: bool,
}

impl Wants {
    /// Of several, the first is said.
    fn stall(&mut self, found: Option<Stall>) {
        self.stalled = self.stalled.take().or(found);
    }
}

impl<'p> Pass<'p> {
    /// A pass, once it is known where the router flavors come from and the live side is recorded.
    fn begin(
        of: DataPlaneView<'p>,
        owner: DataPlaneOwner,
        view: View<'p>,
        side: LiveSide,
        lost: Option<LostSpec>,
        taken: Option<TakenOver>,
    ) -> Result<ReconcileStep, Needs> {
        let flavors = SourcedFlavors::read(&of, [&side.spec, of.spec()], view)?;
        let side = if lost.is_none() { flavors.of_live(&of, side) } else { side };
        match lost.is_none() && !side.is_stamped {
            true => Ok(ReconcileStep::Write(vec![commit(&of, &side, false)])),
            false => Pass { of, owner, view, side, flavors, lost, taken }.step(),
        }
    }
}

impl Pass<'_> {
    fn step(&self) -> Result<ReconcileStep, Needs> {
        self.view.have(ChildRole::ALL.iter().map(|child| self.key(*child)))?;
        if let Some(taken) = &self.taken
            && let Some(step) = self.own(taken)?
        {
            return Ok(step);
        }
        let mut wants = Wants::default();
        if self.lost.is_none() {
            self.restore_live(&mut wants);
        }
        // The live side waits for no answer of a preview.
        if !wants.effects.is_empty() {
            return Ok(ReconcileStep::Write(wants.effects));
        }
        let (certificate, certificate_stalls) = self.certificate()?;
        let rollout = self.phase(certificate)?;
        let phase = rollout.as_ref().map(|rollout| rollout.phase);
        self.preview(phase, &mut wants);
        self.others_refused(phase, &mut wants);
        // The status tells of the preview as these leave it.
        if !wants.effects.is_empty() {
            return Ok(ReconcileStep::Write(wants.effects));
        }
        wants.stall(self.lost.map(|why| (why.reason(), self.lost_message(why))));
        wants.stall(self.side.refused.clone().map(|why| (meta::condition::SPEC_DRIFT, why)));
        wants.stall(refused_child::stall(&wants.refused, self.view.now()));
        wants.stall(self.pods_refused());
        wants.stall(certificate_stalls);
        let (managed, of_secrets) = self.managed(certificate)?;
        self.want_all(of_secrets, false, &mut wants);
        if self.is_unreported() && wants.stalled.is_none() && wants.effects.is_empty() {
            return Ok(ReconcileStep::Await(Some(FIRST_REPORT)));
        }
        let status = self.status(rollout.as_ref(), certificate, &mut wants, managed);
        wants.effects.extend(status);
        if !wants.effects.is_empty() {
            return Ok(ReconcileStep::Write(wants.effects));
        }
        if self.side.previous.is_some() && !wants.untaken {
            let side = LiveSide { previous: None, ..self.side.clone() };
            return Ok(ReconcileStep::Write(vec![commit(&self.of, &side, false)]));
        }
        if phase == Some(RolloutPhase::Committing) {
            self.view.fresh_answers()?;
            return Ok(self.promote());
        }
        let effects = self.housekeeping(phase)?;
        if !effects.is_empty() {
            return Ok(ReconcileStep::InOrder(effects));
        }
        let look = certificate::again(certificate, !self.waiting().is_empty(), self.view.now());
        Ok(ReconcileStep::Await(certificate::sooner(self.again(rollout.as_ref()), look)))
    }

    /// Whether the Deployment of a new DataPlane was made just now, and has no pods yet.
    fn is_unreported(&self) -> bool {
        let Some(found) = self.found(ChildRole::LiveDeployment).filter(|_| self.of.conditions().is_empty())
        else {
            return false;
        };
        let made = meta_str(found, "creationTimestamp").and_then(|at| at.parse::<Timestamp>().ok());
        let is_new = made.is_some_and(|made| self.view.now().duration_since(made).as_secs() <= 3);
        is_new && found["status"]["replicas"].is_null() && found["spec"]["replicas"] != 0
    }

    /// What follows a change of what is live, once it has the traffic.
    fn housekeeping(&self, phase: Option<RolloutPhase>) -> Result<Vec<Effect>, Needs> {
        if self.lost.is_some() || phase == Some(RolloutPhase::Following) || !live_record::has_served(&self.of)
        {
            return Ok(Vec::new());
        }
        let ingress = [ChildRole::LiveIngress, ChildRole::PreviewIngress].map(|child| self.key(child).name);
        Housekeeping { of: &self.of, live: &self.side.spec, ingress }.writes(&self.view)
    }

    fn key(&self, child: ChildRole) -> ObjectKey {
        // The live side of a lost spec is left as it is: its names are those of the spec.
        let wanted;
        let spec = match child.is_live() && self.lost.is_none() {
            true => &self.side.spec,
            false => {
                wanted = self.of.wanted_spec();
                &wanted
            }
        };
        child.key(&self.owner, self.side.colour, spec)
    }

    fn found(&self, child: ChildRole) -> Option<&Value> {
        self.view.get(&self.key(child)).ok()?.map(|found| &**found)
    }

    /// The spec that the pods of the live side are made from. Those that were taken over keep their template, with
    /// the reference to a source of the flavor, until something else is staged.
    fn live_spec(&self, spec: &Value) -> Value {
        if self.taken.as_ref().is_some_and(|taken| taken.kept.is_made_from(spec)) {
            return spec.clone();
        }
        self.flavors.pinned(&self.of, spec, self.side.sourced).into_owned()
    }

    /// The spec that the pods of a preview with something staged are made from.
    fn preview_spec(&self) -> Value {
        let spec = self.of.wanted_spec();
        self.flavors.pinned(&self.of, &spec, self.flavors.now(&self.of, &spec)).into_owned()
    }

    /// The router flavor that a changed source stages.
    fn staged_flavor(&self) -> Option<SourcedFlavorChange> {
        self.flavors.staged(&self.of, &self.side, self.of.spec())
    }

    fn status(
        &self,
        rollout: Option<&RolloutState>,
        certificate: Option<&CertificateAnswer>,
        wants: &mut Wants,
        managed: Option<String>,
    ) -> Vec<Effect> {
        let certificate = certificate::note(&self.owner.certificate_name(), certificate);
        let previous = self.side.previous.as_ref().filter(|_| wants.untaken);
        let live_spec = previous.unwrap_or(&self.side.spec);
        let input = DataPlaneStatusInput {
            certificate: &certificate,
            selector: &self.side.selector,
            live_spec: self.lost.is_none().then_some(live_spec),
            refused: refused_child::of_live(&wants.refused),
            sourced: self.side.sourced,
            staged_flavor: rollout.and_then(|_| self.staged_flavor()),
            staged: rollout.is_some() && live_spec::is_changed(&self.side.spec, self.of.spec()),
            deployment: self.found(ChildRole::LiveDeployment),
            ingress: self.found(ChildRole::LiveIngress),
            rollout: rollout.filter(|_| live_record::has_served(&self.of)).map(|state| RolloutInput {
                state,
                selector: self.owner.selector(self.side.colour.other()),
                ingress: self.found(ChildRole::PreviewIngress),
                admin: self.found(ChildRole::PreviewAdmin),
            }),
            stalled: wants.stalled.take(),
            taken_over: managed,
        };
        status::write(&self.of, &input, self.view.now())
    }

    /// The promotion itself: one write.
    fn promote(&self) -> ReconcileStep {
        let colour = self.side.colour.other();
        let spec = self.of.wanted_spec();
        let sourced = self.flavors.now(&self.of, &spec);
        let side = LiveSide { sourced, ..LiveSide::of(self.owner.selector(colour), colour, spec) };
        let message = format!(
            "the staged spec is live: its pods are those of Deployment {}",
            self.key(ChildRole::PreviewDeployment).name
        );
        ReconcileStep::InOrder(vec![
            // A patch of nothing, on the version that was seen: the preview is as it was when its pods answered.
            self.proof(ChildRole::PreviewDeployment),
            commit(&self.of, &side, true),
            self.of.event(Severity::Normal, meta::event::PROMOTED, message),
        ])
    }

    fn proof(&self, child: ChildRole) -> Effect {
        let found = self.found(child).and_then(|found| meta_str(found, "resourceVersion"));
        Effect::Patch {
            key: self.key(child),
            resource_version: found.unwrap_or_default().to_owned(),
            patch: json!({}),
        }
    }

    fn again(&self, rollout: Option<&RolloutState>) -> Option<Duration> {
        let rollout = rollout?;
        match rollout.phase {
            RolloutPhase::Following => Some(TRAFFIC),
            RolloutPhase::Grace => rollout.until.map(|until| left(until, self.view.now())),
            RolloutPhase::Asking => Some(CONFIGURATION),
            _ => None,
        }
    }

    fn lost_message(&self, why: LostSpec) -> String {
        let what = match why {
            LostSpec::Missing => "the spec that the live pods are made from is not recorded any more",
            LostSpec::Mismatch => "the annotation interlock.dev/last-applied-spec is not what was recorded",
        };
        let (name, namespace) = (self.of.name, self.of.namespace);
        format!(
            "{what}, so that the live side is not healed: promote what is staged, or write the spec of the live pods back; `interlock rollout status {name} -n {namespace}` shows both"
        )
    }
}

fn left(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default()
}
