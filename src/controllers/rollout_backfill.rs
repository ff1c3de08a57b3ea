//! Finds the previous pod templates of Deployments whose rollout was in progress when this process first
//! saw them: it observes later rollouts itself.
//!
//! Event of a gateway -> rollouts without an observed start -> their ReplicaSets -> the template, or why it
//! is unknown. Every process with admission does this for itself; nothing is written.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use interlock_core::effect::ApiFailure;
use interlock_kong::data_plane::flavor::running::rolled_out::{RolloutEvidence, find, is_rolled_out};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cluster::{path, read};
use crate::runtime::index::Store;

/// Collects a burst of changes into one pass.
const BURST: Duration = Duration::from_millis(100);
/// Pause before another attempt for a rollout whose ReplicaSets were inconclusive.
const AGAIN: Duration = Duration::from_secs(10);

/// Reads ReplicaSets.
#[derive(Clone)]
pub struct Finder {
    /// The cache of gateways.
    pub store: Arc<Store>,
    /// Reads.
    pub client: Client,
}

impl Finder {
    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.store.flavor_changes();
        loop {
            let again = if self.pass().await { Duration::MAX } else { AGAIN };
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep(again) => {}
            }
            tokio::time::sleep(BURST).await;
            changes.mark_unchanged();
        }
    }

    /// Returns whether all rollouts were resolved.
    async fn pass(&self) -> bool {
        let mut told = true;
        for name in self.store.unresolved_rollouts() {
            let found = self.look(&name).await;
            match &found {
                Ok(_) => tracing::debug!(deployment = %name, "what it ran before its rollout was found"),
                Err(why) => {
                    told = false;
                    tracing::warn!(deployment = %name, why, "what it ran before its rollout was not found");
                }
            }
            self.store.resolve_rollout(&name, found);
        }
        told
    }

    /// The template of its pods; `None` without pods.
    async fn look(&self, name: &NamespacedName) -> Result<Option<Value>, String> {
        let NamespacedName { namespace, name } = name;
        let at = |plural: &str, below: &[&str]| path::of("apps/v1", Some(namespace), plural, below);
        let unread = |what: &'static str| {
            move |failure: ApiFailure| format!("{what} cannot be read: {}", failure.message)
        };
        let deployment = at("deployments", &[name]).map_err(unread("it"))?;
        let deployment = read::get(&self.client, &deployment).await.map_err(unread("it"))?;
        let Some(mut deployment) = deployment else { return Ok(None) };
        if is_rolled_out(&deployment) {
            return Ok(Some(deployment["spec"]["template"].take()));
        }
        // Its selector may hold expressions, so filter ReplicaSets by owner.
        let sets = at("replicasets", &[]).map_err(unread("its ReplicaSets"))?;
        let sets = read::list(&self.client, &sets, "").await.map_err(unread("its ReplicaSets"))?;
        match find(&deployment, &sets) {
            RolloutEvidence::Earlier(set) => Ok(Some(set["spec"]["template"].clone())),
            RolloutEvidence::Current { ready: true } => Ok(Some(deployment["spec"]["template"].take())),
            RolloutEvidence::Current { ready: false } => Ok(None),
            RolloutEvidence::Untold => Err("no ReplicaSet before it has all its pods ready".to_owned()),
        }
    }
}
