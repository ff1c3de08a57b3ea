//! A DataPlane that was taken over from Kong's operator: its children become ours before anything else is done with
//! them, and Kong's operator's again when it is handed back.

use interlock_core::api::meta::condition;
use interlock_core::certificate::CertificateAnswer;
use interlock_core::effect::Effect;
use interlock_core::reconcile::{Needs, ReconcileStep};
use serde_json::Value;

use super::{Pass, left_alone};
use crate::data_plane::live_spec;
use crate::data_plane::rollout::take_over;
use crate::data_plane::rollout::take_over::TakenOver;
use crate::data_plane::rollout::wanted::ChildRole;

impl Pass<'_> {
    /// What has to be done before the children are looked at as ours.
    pub(super) fn own(&self, taken: &TakenOver) -> Result<Option<ReconcileStep>, Needs> {
        let children = || ChildRole::ALL.iter().filter_map(|child| self.found(*child));
        let ours = || children().filter(|child| self.is_ours(child));
        if taken.hands_back && self.lost.is_none() {
            let staged = live_spec::is_changed(&self.side.spec, self.of.spec());
            if take_over::is_at_rest(&self.of, staged) {
                let effects = take_over::hand_back(&self.of, &taken.kept, &taken.record, ours());
                return Ok(Some(ReconcileStep::InOrder(effects)));
            }
        }
        let managers = &taken.kept.managers;
        let held: Vec<&Value> = ours().filter(|child| take_over::is_held(child, managers)).collect();
        if held.is_empty() {
            return Ok(None);
        }
        let operator = match &taken.operator {
            Ok(operator) => operator.as_deref(),
            Err(why) => return Ok(Some(left_alone(&self.of, why.clone(), self.view.now()))),
        };
        let lease = match operator {
            None => None,
            Some(namespace) => {
                let lease = self.view.get(&take_over::lease_key(namespace))?;
                Some((namespace, lease.map(|lease| &**lease)))
            }
        };
        if let Err(why) = take_over::may_write(lease, held.iter().copied(), managers, self.view.now()) {
            return Ok(Some(left_alone(&self.of, why, self.view.now())));
        }
        let adopted = held.iter().filter_map(|child| take_over::adopt(child, managers)).collect();
        Ok(Some(ReconcileStep::Write(adopted)))
    }

    /// What `Managed` says, `None` for one that was never another operator's, and what has to be written before it is
    /// said: its Secrets without the finalizer, where Interlock may write Secrets.
    pub(super) fn managed(
        &self,
        certificate: Option<&CertificateAnswer>,
    ) -> Result<(Option<String>, Vec<Effect>), Needs> {
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
        self.view.have(secrets.iter().cloned())?;
        let mut patches = Vec::new();
        for key in &secrets {
            let ours = self.view.get(key)?.filter(|secret| self.is_ours(secret));
            patches.extend(ours.and_then(|secret| take_over::without_finalizer(secret)));
        }
        Ok((Some(message), patches))
    }

    fn is_ours(&self, object: &Value) -> bool {
        interlock_core::api::ownership::is_of(self.of.uid, object)
    }
}
