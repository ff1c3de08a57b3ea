//! A DataPlane that was taken over from Kong's operator: its children become ours before anything else is done with
//! them, and Kong's operator's again when it is handed back.

use serde_json::Value;

use super::{Pass, left_alone};
use crate::api::meta::condition;
use crate::api::object::ObjectKey;
use crate::certificate::CertificateAnswer;
use crate::effect::Effect;
use crate::kinds::data_plane::live_spec;
use crate::kinds::data_plane::rollout::take_over::{self, TakenOver};
use crate::kinds::data_plane::rollout::wanted::ChildRole;
use crate::reconcile::ReconcileStep;

impl Pass<'_> {
    /// What has to be done before the children are looked at as ours.
    pub(super) fn own(&self, taken: &TakenOver) -> Option<ReconcileStep> {
        let children = || ChildRole::ALL.iter().filter_map(|child| self.found(*child));
        let ours = || children().filter(|child| self.is_ours(child));
        if taken.hands_back && self.lost.is_none() {
            let staged = live_spec::is_changed(&self.side.spec, self.of.spec());
            if take_over::is_at_rest(&self.of, staged) {
                let effects = take_over::hand_back(&self.of, &taken.kept, &taken.record, ours());
                return Some(ReconcileStep::Write(effects));
            }
        }
        let managers = &taken.kept.managers;
        let held: Vec<&Value> = ours().filter(|child| take_over::is_held(child, managers)).collect();
        if held.is_empty() {
            return None;
        }
        let operator = match &taken.operator {
            Ok(operator) => operator.as_deref(),
            Err(why) => return Some(left_alone(&self.of, why.clone(), self.input.now)),
        };
        let lease = operator.map(|namespace| (namespace, take_over::lease_key(namespace)));
        let found = match &lease {
            None => None,
            Some((namespace, key)) => match self.input.found.get(key) {
                None => return Some(ReconcileStep::Read(vec![key.clone()])),
                Some(lease) => Some((*namespace, lease.as_deref())),
            },
        };
        if let Err(why) = take_over::may_write(found, held.iter().copied(), managers, self.input.now) {
            return Some(left_alone(&self.of, why, self.input.now));
        }
        Some(ReconcileStep::Write(
            held.iter().filter_map(|child| take_over::adopt(child, managers)).collect(),
        ))
    }

    /// What `Managed` says, `None` for one that was never another operator's, and what has to be written before it is
    /// said: its Secrets without the finalizer, where Interlock may write Secrets. `Err` with what has to be seen first.
    pub(super) fn managed(
        &self,
        certificate: Option<&CertificateAnswer>,
    ) -> Result<(Option<String>, Vec<Effect>), ReconcileStep> {
        let Some(taken) = &self.taken else { return Ok((None, Vec::new())) };
        let secrets = taken.secrets(&self.of);
        let may_write =
            matches!(certificate, Some(CertificateAnswer::InPlace(_) | CertificateAnswer::OfAnother(_)));
        let message = taken.message(&self.of, !may_write);
        let is_said = take_over::managed(&self.of)
            .is_some_and(|said| said.reason == condition::TAKEN_OVER && said.message == message);
        if secrets.is_empty() || !may_write || is_said {
            return Ok((Some(message), Vec::new()));
        }
        let unread: Vec<ObjectKey> =
            secrets.iter().filter(|key| !self.input.found.contains_key(*key)).cloned().collect();
        if !unread.is_empty() {
            return Err(ReconcileStep::Read(unread));
        }
        let found = secrets.iter().filter_map(|key| self.input.found.get(key)?.as_deref());
        let ours = found.filter(|secret| self.is_ours(secret));
        Ok((Some(message), ours.filter_map(take_over::without_finalizer).collect()))
    }

    fn is_ours(&self, object: &Value) -> bool {
        crate::api::ownership::is_of(self.of.uid, object)
    }
}
