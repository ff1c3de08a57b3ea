//! What the API server refuses of the preview, and of the pods of either side.

use interlock_core::api::meta::condition::PODS_REFUSED;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::reconcile::RefusedWrite;

use super::{Pass, Wants};
use crate::data_plane::rollout::refused_child::{RefusedChild, Stall, replica_failure};
use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::wanted::ChildRole;

impl Pass<'_> {
    /// Wants a write, unless the API server refused it and it is not tried again yet; then it is reported. Whether it is
    /// wanted now.
    pub(super) fn want(&self, write: Effect, is_live: bool, wants: &mut Wants) -> bool {
        if let Some((key, refused)) = self.view.refused_write(&write) {
            wants.refused.push(RefusedChild::of(&key, refused, is_live));
            if refused.retry > self.view.now() {
                return false;
            }
        }
        wants.effects.push(write);
        true
    }

    /// The same of several writes.
    pub(super) fn want_all(
        &self,
        writes: impl IntoIterator<Item = Effect>,
        is_live: bool,
        wants: &mut Wants,
    ) {
        for write in writes {
            self.want(write, is_live, wants);
        }
    }

    /// What the API server refused beside the children that are wanted now: the proof of a promotion, and what is no
    /// child of either side, such as the history.
    pub(super) fn others_refused(&self, phase: Option<RolloutPhase>, wants: &mut Wants) {
        let of_children: Vec<ObjectKey> = ChildRole::ALL.iter().map(|child| self.key(*child)).collect();
        let others = self.view.all_refused().filter(|(key, _)| !of_children.contains(key));
        wants.refused.extend(others.map(|(key, refused)| RefusedChild::of(key, refused, false)));
        let proof =
            (phase == Some(RolloutPhase::Committing)).then(|| self.proof(ChildRole::PreviewDeployment));
        let refused = proof.and_then(|proof| self.view.refused_write(&proof));
        wants.refused.extend(refused.map(|(key, refused)| RefusedChild::of(&key, refused, false)));
    }

    /// Why what is staged cannot be made: the API server refused the Deployment of the preview.
    pub(super) fn preview_refused(&self) -> Option<String> {
        let key = self.key(ChildRole::PreviewDeployment);
        // That of the proof of a promotion leaves the preview as it is.
        let is_of_spec = |refused: &&RefusedWrite| matches!(refused.effect, Effect::Apply { .. });
        let refused = RefusedChild::of(&key, self.view.refused(&key).filter(is_of_spec)?, false);
        refused
            .stalls(self.view.now())
            .then(|| format!("failed to ensure preview Deployment: {}", refused.rejection.message))
    }

    /// Reason and message of `Stalled` where the API server refuses the pods of a Deployment.
    pub(super) fn pods_refused(&self) -> Option<Stall> {
        let deployments = [ChildRole::LiveDeployment, ChildRole::PreviewDeployment];
        let found = deployments.into_iter().filter_map(|child| self.found(child));
        let refused = found.filter_map(|found| Some((meta_str(found, "name")?, replica_failure(found)?)));
        refused.map(|(name, why)| (PODS_REFUSED, format!("the pods of Deployment {name}: {why}"))).next()
    }
}
