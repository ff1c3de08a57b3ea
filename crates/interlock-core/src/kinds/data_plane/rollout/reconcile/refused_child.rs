//! What the API server refused of the children of a DataPlane, and of their pods, as its conditions say it.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Pass, Stall};
use crate::api::display::display;
use crate::api::meta::condition::PODS_REFUSED;
use crate::api::object::{ObjectKey, meta_str};
use crate::kinds::data_plane::rollout::wanted::ChildRole;
use crate::reconcile::RefusedWrite;
use crate::rejection::{MAX_MESSAGE, Rejection};

/// How long a write is retried before the DataPlane is stalled, where it may succeed by itself.
const RETRIED: SignedDuration = SignedDuration::from_mins(2);

/// A child whose write the API server refused.
#[derive(Clone, Debug)]
pub(super) struct RefusedChild {
    /// `Deployment dataplane-edge-blue`.
    name: String,
    is_live: bool,
    rejection: Rejection,
    since: Timestamp,
}

impl RefusedChild {
    /// Of a refused write.
    pub(super) fn of(key: &ObjectKey, refused: &RefusedWrite, is_live: bool) -> Self {
        let name = format!("{} {}", key.gvk.kind, key.name);
        Self { name, is_live, rejection: Rejection::of(&refused.failure), since: refused.since }
    }

    /// Whether the write will hardly succeed by itself.
    fn stalls(&self, now: Timestamp) -> bool {
        self.rejection.kind.needs_person() || now.duration_since(self.since) >= RETRIED
    }

    /// What was refused, for people.
    fn message(&self) -> String {
        format!("{} is not applied: {}", self.name, self.rejection.message)
    }
}

/// Reason and message of `Stalled` for refused children: of the first, with how many more there are.
pub(super) fn stall(refused: &[RefusedChild], now: Timestamp) -> Option<Stall> {
    reason_and_message(refused.iter().filter(|child| child.stalls(now)))
}

/// The same of the live side, for `Ready`, from the first try on.
pub(super) fn of_live(refused: &[RefusedChild]) -> Option<Stall> {
    reason_and_message(refused.iter().filter(|child| child.is_live))
}

fn reason_and_message<'r>(mut refused: impl Iterator<Item = &'r RefusedChild>) -> Option<Stall> {
    let first = refused.next()?;
    let others: Vec<&str> = refused.map(|child| child.name.as_str()).collect();
    let more = match others.as_slice() {
        [] => String::new(),
        others => format!("; nor is {}", others.join(", ")),
    };
    Some((first.rejection.kind.reason(), format!("{}{more}", first.message())))
}

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

/// The text of the condition `ReplicaFailure` of a Deployment: its ReplicaSet could not create or delete pods.
pub(super) fn replica_failure(deployment: &Value) -> Option<String> {
    let conditions = deployment["status"]["conditions"].as_array()?;
    let found =
        conditions.iter().find(|found| found["type"] == "ReplicaFailure" && found["status"] == "True")?;
    Some(display(found["message"].as_str().unwrap_or_default(), MAX_MESSAGE))
}
