//! Reconciles a DataPlane: the children of the live side from the last-applied spec, those of the preview from the
//! spec, the promotion between them, and the status.

mod certificate_state;
mod phase_facts;
mod route_gate;
mod taken_over;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::certificate;
use super::children::DataPlaneOwner;
use super::commit::commit;
use super::healing;
use super::housekeeping::Housekeeping;
use super::live::{self, LiveRecord, LiveSide, LostSpec};
use super::phase::RolloutPhase;
use super::sourced_flavor::{SourcedFlavorChange, SourcedFlavors};
use super::status::{self, DataPlaneStatusInput, RolloutInput};
use super::take_over::{self, LeftAlone, TakeOver, TakenOver};
use super::view::DataPlaneView;
use super::wanted::{self, ChildRole, ChildState};
use crate::api::kong::labels;
use crate::api::meta;
use crate::api::object::{ObjectKey, meta_str};
use crate::certificate::CertificateAnswer;
use crate::effect::{Effect, Note, Severity};
use crate::kinds::capabilities::DATA_PLANES;
use crate::kinds::data_plane::live_spec;
use crate::reconcile::{ReconcileInput, ReconcileStep, Reconciler};

/// Reconciles DataPlanes.
pub static RECONCILER: Reconciler = Reconciler { name: "dataplane", capability: &DATA_PLANES, reconcile };

/// Pause before traffic is looked at again that has not followed yet: no watch tells of EndpointSlices.
const TRAFFIC: Duration = Duration::from_secs(1);
/// Pause before pods are asked again that have no configuration yet: nothing tells when they get one.
const CONFIGURATION: Duration = Duration::from_secs(5);

fn reconcile(input: &ReconcileInput<'_>) -> ReconcileStep {
    let Some(of) = DataPlaneView::of(input.object) else { return ReconcileStep::Await(None) };
    if let Some(owner) = of.other_owner() {
        let message = format!("its owner is a {owner}: Kong's operator reconciles it");
        return left_alone(&of, LeftAlone::new("OwnedByAnother", message), input.now);
    }
    let taken = match take_over::decide(&of, input) {
        TakeOver::NotAsked => None,
        TakeOver::Done(taken) => Some(*taken),
        TakeOver::LeftAlone(why) => return left_alone(&of, why, input.now),
        TakeOver::Step(step) => return step,
    };
    let owner = match DataPlaneOwner::of(input.object, taken.as_ref().map(|taken| taken.kept.clone())) {
        Ok(owner) => owner,
        Err(error) => return left_alone(&of, LeftAlone::new("InvalidSpec", error.to_string()), input.now),
    };
    match live::record(&of, &owner, input.found) {
        LiveRecord::Need(keys) => ReconcileStep::Read(keys),
        LiveRecord::OfAnother { selector } => {
            let message = format!(
                "another operator made its live pods, those with selector {selector}: to have Interlock take it over, scale \
                 Kong's operator to 0, and set annotation {}",
                meta::TAKE_OVER
            );
            left_alone(&of, LeftAlone::new("AnotherOperator", message), input.now)
        }
        LiveRecord::Known(side) => Pass::begin(of, owner, input, side, None, taken),
        LiveRecord::Lost { selector, colour, why } => {
            let spec = Value::Null;
            let side = LiveSide { selector, colour, spec, sourced: None, is_stamped: false, refused: None };
            Pass::begin(of, owner, input, side, Some(why), taken)
        }
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

/// One pass over a DataPlane.
struct Pass<'p> {
    of: DataPlaneView<'p>,
    owner: DataPlaneOwner,
    input: &'p ReconcileInput<'p>,
    side: LiveSide,
    flavors: SourcedFlavors<'p>,
    /// Why the spec of the live side is not known.
    lost: Option<LostSpec>,
    /// What is kept of it, if it was taken over.
    taken: Option<TakenOver>,
}

/// Reason and message of what only a person can mend.
type Stall = (&'static str, String);

/// What a pass wants written, and what only a person can mend.
#[derive(Default)]
struct Wants {
    effects: Vec<Effect>,
    stalled: Option<Stall>,
}

impl Wants {
    fn stall(&mut self, reason: &'static str, message: String) {
        self.stalled.get_or_insert((reason, message));
    }
}

impl<'p> Pass<'p> {
    /// A pass, once it is known where the router flavors come from and the live side is recorded.
    fn begin(
        of: DataPlaneView<'p>,
        owner: DataPlaneOwner,
        input: &'p ReconcileInput<'p>,
        side: LiveSide,
        lost: Option<LostSpec>,
        taken: Option<TakenOver>,
    ) -> ReconcileStep {
        let flavors = match SourcedFlavors::read(&of, [&side.spec, of.spec()], input) {
            Ok(flavors) => flavors,
            Err(step) => return step,
        };
        let side = if lost.is_none() { flavors.of_live(&of, side) } else { side };
        match lost.is_none() && !side.is_stamped {
            true => ReconcileStep::Write(vec![commit(&of, &side, false)]),
            false => Pass { of, owner, input, side, flavors, lost, taken }.step(),
        }
    }
}

impl Pass<'_> {
    fn step(&self) -> ReconcileStep {
        let unread: Vec<ObjectKey> = ChildRole::ALL
            .iter()
            .map(|child| self.key(*child))
            .filter(|key| !self.input.found.contains_key(key))
            .collect();
        if !unread.is_empty() {
            return ReconcileStep::Read(unread);
        }
        if let Some(step) = self.taken.as_ref().and_then(|taken| self.own(taken)) {
            return step;
        }
        let mut wants = Wants::default();
        if self.lost.is_none() {
            self.live(&mut wants);
        }
        // The live side waits for no answer of a preview.
        if !wants.effects.is_empty() {
            return ReconcileStep::Write(wants.effects);
        }
        let (certificate, certificate_stalls) = match self.certificate() {
            Ok(certificate) => certificate,
            Err(step) => return step,
        };
        let phase = match self.phase(certificate) {
            Ok(phase) => phase,
            Err(step) => return step,
        };
        self.preview(phase.as_ref(), &mut wants);
        if let Some(why) = self.lost {
            wants.stall(why.reason(), self.lost_message(why));
        }
        if let Some(why) = &self.side.refused {
            wants.stall(meta::condition::SPEC_DRIFT, why.clone());
        }
        if let Some((reason, message)) = certificate_stalls {
            wants.stall(reason, message);
        }
        let (managed, of_secrets) = match self.managed(certificate) {
            Ok(managed) => managed,
            Err(step) => return step,
        };
        wants.effects.extend(of_secrets);
        wants.effects.extend(self.status(phase.as_ref(), certificate, wants.stalled.take(), managed));
        if wants.effects.is_empty() {
            match &phase {
                Some(RolloutPhase::Committing) => return self.promote(),
                phase => {
                    if let Some(step) = self.housekeeping(phase.as_ref()) {
                        return step;
                    }
                    let look = certificate::again(certificate, !self.waiting().is_empty(), self.input.now);
                    return ReconcileStep::Await(certificate::sooner(self.again(phase.as_ref()), look));
                }
            }
        }
        ReconcileStep::Write(wants.effects)
    }

    /// What follows a change of what is live, once it has the traffic.
    fn housekeeping(&self, phase: Option<&RolloutPhase>) -> Option<ReconcileStep> {
        let follows = matches!(phase, Some(RolloutPhase::Following(_)));
        if self.lost.is_some() || follows || !live::has_served(&self.of) {
            return None;
        }
        let ingress = [ChildRole::LiveIngress, ChildRole::PreviewIngress].map(|child| self.key(child).name);
        Housekeeping { of: &self.of, live: &self.side.spec, ingress }.step(self.input)
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
        self.input.found.get(&self.key(child))?.as_deref()
    }

    /// The children of the live side.
    fn live(&self, wants: &mut Wants) {
        let side = LiveSide { spec: self.live_spec(), ..self.side.clone() };
        for child in ChildRole::ALL.into_iter().filter(|child| child.is_live()) {
            let (key, found) = (self.key(child), self.found(child));
            let kept = self.kept_selector(child);
            let selector = kept.as_deref().unwrap_or(&self.side.selector);
            match wanted::live(&self.owner, child, &side, selector, found, self.reported()) {
                Err(error) => wants.stall("InvalidTemplate", error.to_string()),
                Ok(None) => wants.effects.extend(wanted::delete(&self.of, key.clone(), found)),
                Ok(Some(body)) => self.child(&key, &body, found, true, wants),
            }
            if kept.is_some() && self.found(ChildRole::LiveDeployment).is_none() {
                wants.effects.extend(found.and_then(|found| wanted::keep_with_former_side(key, found)));
            }
        }
    }

    /// The spec that the pods of the live side are made from. Those that were taken over keep their template, with
    /// the reference to a source of the flavor, until something else is staged.
    fn live_spec(&self) -> Value {
        if self.taken.as_ref().is_some_and(|taken| taken.kept.is_made_from(&self.side.spec)) {
            return self.side.spec.clone();
        }
        self.flavors.pinned(&self.of, &self.side.spec, self.side.sourced).into_owned()
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

    /// How many live pods the status says that there are.
    fn reported(&self) -> i32 {
        let replicas = self.of.object["status"]["replicas"].as_i64().unwrap_or_default();
        i32::try_from(replicas).unwrap_or_default()
    }

    /// The selector that a Service of the live side keeps although another is committed: that of the former side,
    /// as long as that has pods and the live side has none, as after a deletion of its Deployment.
    fn kept_selector(&self, child: ChildRole) -> Option<String> {
        if !matches!(child, ChildRole::LiveIngress | ChildRole::LiveAdmin) {
            return None;
        }
        let former = self.owner.selector(self.side.colour.other());
        let selected = &self.found(child)?["spec"]["selector"][labels::SELECTOR];
        // One that is being deleted loses its pods.
        let stays = |found: &Value| meta_str(found, "deletionTimestamp").is_none();
        let serves =
            |child| self.found(child).is_some_and(|found| stays(found) && status::is_available(found));
        (*selected == former && serves(ChildRole::PreviewDeployment) && !serves(ChildRole::LiveDeployment))
            .then_some(former)
    }

    /// Writes a child where it is not as it shall be.
    fn child(&self, key: &ObjectKey, body: &Value, found: Option<&Value>, is_live: bool, wants: &mut Wants) {
        let state = wanted::state(&self.of, body, found);
        if state == ChildState::Foreign {
            let message = format!(
                "{} {} is not one of this DataPlane and is in the way: rename or delete it",
                key.gvk.kind, key.name
            );
            wants.stall("NameTaken", message);
        }
        let heals = is_live && live::has_served(&self.of);
        if heals {
            wants.effects.extend(wanted::healed(&self.of, key, &state, found));
        }
        if let Some(write) = wanted::apply(body, &state, found) {
            wants.effects.push(write);
            wants.effects.extend(heals.then(|| healing::counted(key, &state)).flatten());
        }
    }

    /// The children of the preview.
    fn preview(&self, phase: Option<&RolloutPhase>, wants: &mut Wants) {
        let children = ChildRole::ALL.into_iter().filter(|child| !child.is_live());
        let Some(phase) = phase else {
            for child in children {
                wants.effects.extend(wanted::delete(&self.of, self.key(child), self.found(child)));
            }
            return;
        };
        // It is made beside a live side that serves.
        if !live::has_served(&self.of) {
            return;
        }
        let (spec, replicas) = match phase {
            RolloutPhase::Idle | RolloutPhase::Following(_) | RolloutPhase::Grace(_) => (self.live_spec(), 0),
            _ => {
                let spec = self.preview_spec();
                let replicas = self.preview_replicas(&spec);
                (spec, replicas)
            }
        };
        for child in children {
            let (key, found) = (self.key(child), self.found(child));
            if child == ChildRole::PreviewDeployment && phase.keeps_former_side() {
                wants.effects.extend(wanted::set_aside(&self.of, key, found));
                continue;
            }
            let made = wanted::preview(&self.owner, child, self.side.colour.other(), &spec, replicas);
            if let Ok(Some(body)) = made {
                self.child(&key, &body, found, false, wants);
            }
        }
    }

    fn status(
        &self,
        phase: Option<&RolloutPhase>,
        certificate: Option<&CertificateAnswer>,
        stalled: Option<Stall>,
        managed: Option<String>,
    ) -> Vec<Effect> {
        let certificate = certificate::note(&self.owner.certificate_name(), certificate);
        let input = DataPlaneStatusInput {
            certificate: &certificate,
            selector: &self.side.selector,
            live_spec: self.lost.is_none().then_some(&self.side.spec),
            sourced: self.side.sourced,
            staged_flavor: phase.and_then(|_| self.staged_flavor()),
            staged: phase.is_some() && live_spec::is_changed(&self.side.spec, self.of.spec()),
            deployment: self.found(ChildRole::LiveDeployment),
            ingress: self.found(ChildRole::LiveIngress),
            rollout: phase.filter(|_| live::has_served(&self.of)).map(|phase| RolloutInput {
                phase,
                selector: self.owner.selector(self.side.colour.other()),
                ingress: self.found(ChildRole::PreviewIngress),
                admin: self.found(ChildRole::PreviewAdmin),
            }),
            stalled,
            taken_over: managed,
        };
        status::write(&self.of, &input, self.input.now)
    }

    /// The promotion itself: one write.
    fn promote(&self) -> ReconcileStep {
        let colour = self.side.colour.other();
        let spec = self.of.wanted_spec();
        let side = LiveSide {
            selector: self.owner.selector(colour),
            colour,
            sourced: self.flavors.now(&self.of, &spec),
            spec,
            is_stamped: false,
            refused: None,
        };
        let message = format!(
            "the staged spec is live: its pods are those of Deployment {}",
            self.key(ChildRole::PreviewDeployment).name
        );
        let note = Note { severity: Severity::Normal, reason: meta::event::PROMOTED.to_owned(), message };
        ReconcileStep::Write(vec![
            commit(&self.of, &side, true),
            Effect::Event { key: self.of.key.clone(), uid: self.of.uid.to_owned(), note },
        ])
    }

    fn again(&self, phase: Option<&RolloutPhase>) -> Option<Duration> {
        match phase? {
            RolloutPhase::Following(_) => Some(TRAFFIC),
            RolloutPhase::Grace(until) => Some(left(*until, self.input.now)),
            RolloutPhase::Staging(_) if self.pods_are_ready() => Some(CONFIGURATION),
            _ => None,
        }
    }

    fn lost_message(&self, why: LostSpec) -> String {
        let what = match why {
            LostSpec::Missing => "the spec that the live pods are made from is not recorded any more",
            LostSpec::Mismatch => "the annotation interlock.dev/last-applied-spec is not what was recorded",
        };
        let name = self.of.name;
        format!(
            "{what}, so that the live side is not healed: promote what is staged, or write the spec of the live pods back; `interlock rollout status {name}` shows both"
        )
    }
}

fn left(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default()
}
