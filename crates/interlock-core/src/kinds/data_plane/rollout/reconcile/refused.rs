//! What the API server refuses of the preview, and of the pods of either side.

use super::Pass;
use crate::api::meta::condition::PODS_REFUSED;
use crate::api::object::meta_str;
use crate::kinds::data_plane::rollout::refused_child::{RefusedChild, Stall, replica_failure};
use crate::kinds::data_plane::rollout::wanted::ChildRole;

impl Pass<'_> {
    /// Why what is staged cannot be made: the API server refused the Deployment of the preview.
    pub(super) fn preview_refused(&self) -> Option<String> {
        let key = self.key(ChildRole::PreviewDeployment);
        let refused = RefusedChild::of(&key, self.view.refused(&key)?, false);
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
