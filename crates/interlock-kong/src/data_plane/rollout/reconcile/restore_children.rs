//! The children of both sides: what is written of each, and what the API server refused of it.

use interlock_core::api::object::{ObjectKey, meta_str};
use serde_json::Value;

use super::{Pass, Wants};
use crate::api::labels;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::live_record;
use crate::data_plane::rollout::live_record::LiveSide;
use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::status;
use crate::data_plane::rollout::wanted;
use crate::data_plane::rollout::wanted::{ChildRole, ChildState};

impl Pass<'_> {
    /// Recreates the missing children of the live side, and heals the others ([`wanted::apply`] writes them). While not
    /// all of them are as the spec asks for, a missing one is made as the previous spec asked for.
    pub(super) fn restore_live(&self, wants: &mut Wants) {
        let side = LiveSide { spec: self.live_spec(&self.side.spec), ..self.side.clone() };
        // How many pods there are is no matter of what was refused.
        let previous = self.side.previous.as_ref().map(|spec| live_spec::scaled_as(spec, &self.side.spec));
        let previous = previous.map(|spec| self.live_spec(&spec));
        let previous = previous.map(|spec| LiveSide { spec, ..self.side.clone() });
        for child in ChildRole::ALL.into_iter().filter(|child| child.is_live()) {
            let (key, found) = (self.key(child), self.found(child));
            let kept = self.kept_selector(child);
            let selector = kept.as_deref().unwrap_or(&self.side.selector);
            let body = |side| wanted::live(&self.owner, child, side, selector, found, self.reported());
            let earlier =
                previous.as_ref().filter(|_| found.is_none()).and_then(|side| body(side).ok().flatten());
            // Under another name it is another child.
            let earlier = earlier.filter(|body| ObjectKey::of(body).as_ref() == Some(&key));
            match (body(&side), earlier) {
                // One that the spec does not ask for is not made again.
                (Ok(None), _) => self.delete(key.clone(), wants),
                (_, Some(earlier)) => {
                    wants.untaken = true;
                    self.child(&key, &earlier, found, true, wants);
                }
                (Err(error), None) => wants.stall(Some(("InvalidTemplate", error.to_string()))),
                (Ok(Some(body)), None) => self.child(&key, &body, found, true, wants),
            }
            if kept.is_some() && self.found(ChildRole::LiveDeployment).is_none() {
                let kept = found.and_then(|found| wanted::keep_with_former_side(key, found));
                self.want_all(kept, true, wants);
            }
        }
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

    /// Writes a child where it is not as it shall be. A write that the API server refused is reported until it is tried
    /// again.
    fn child(&self, key: &ObjectKey, body: &Value, found: Option<&Value>, is_live: bool, wants: &mut Wants) {
        let state = wanted::state(&self.of, body, found);
        wants.untaken |= is_live && state != ChildState::AsWanted;
        if state == ChildState::Foreign {
            let message = format!(
                "{} {} is not one of this DataPlane and is in the way: rename or delete it",
                key.gvk.kind, key.name
            );
            wants.stall(Some(("NameTaken", message)));
        }
        let Some(write) = wanted::apply(body, &state, found) else { return };
        if self.want(write, is_live, wants) && is_live && live_record::has_served(&self.of) {
            wants.effects.extend(wanted::healed(&self.of, key, &state, found));
            wants.effects.extend(wanted::counted(key, &state));
        }
    }

    fn delete(&self, key: ObjectKey, wants: &mut Wants) {
        let found = self.view.get(&key).ok().flatten().map(|found| &**found);
        self.want_all(wanted::delete(&self.of, key, found), false, wants);
    }

    /// The children of the preview.
    pub(super) fn preview(&self, phase: Option<RolloutPhase>, wants: &mut Wants) {
        let children = ChildRole::ALL.into_iter().filter(|child| !child.is_live());
        let Some(phase) = phase else {
            children.for_each(|child| self.delete(self.key(child), wants));
            return;
        };
        // It is made beside a live side that serves.
        if !live_record::has_served(&self.of) {
            return;
        }
        let (spec, replicas) = match phase {
            RolloutPhase::Idle | RolloutPhase::Following | RolloutPhase::Grace => {
                (self.live_spec(&self.side.spec), 0)
            }
            _ => {
                let spec = self.preview_spec();
                let replicas = self.preview_replicas(&spec);
                (spec, replicas)
            }
        };
        for child in children {
            let (key, found) = (self.key(child), self.found(child));
            if child == ChildRole::PreviewDeployment && phase.keeps_former_side() {
                let aside = wanted::set_aside(&self.of, key, found);
                self.want_all(aside, false, wants);
                continue;
            }
            let made = wanted::preview(&self.owner, child, self.side.colour.other(), &spec, replicas);
            if let Ok(Some(body)) = made {
                self.child(&key, &body, found, false, wants);
            }
        }
    }
}
