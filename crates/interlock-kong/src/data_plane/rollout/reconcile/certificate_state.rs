//! The certificate that the pods of a DataPlane mount: what became of it, and who waits for it.

use interlock_core::certificate::{CertificateAnswer, CertificateRequest};
use interlock_core::reconcile::Needs;

use super::{Pass, certificate};
use crate::data_plane::rollout::refused_child::Stall;
use crate::data_plane::rollout::wanted::ChildRole;
use crate::data_plane::rollout::{children, gates};

impl Pass<'_> {
    /// What became of the certificate of the admin API, `None` where no pods mount the one that is made, and what
    /// only a person can mend about it.
    pub(super) fn certificate(&self) -> Result<(Option<&CertificateAnswer>, Option<Stall>), Needs> {
        let live = self.lost.is_none() && certificate::is_mounted(&self.side.spec);
        if !live && !certificate::is_mounted(self.of.spec()) {
            return Ok((None, None));
        }
        let is_awaited = !self.waiting().is_empty();
        let request = || CertificateRequest { is_awaited, ..children::certificate(&self.owner) };
        let answer = self.view.certificate(request)?;
        let mut lacks_a_volume = false;
        if matches!(answer, CertificateAnswer::Denied(_)) {
            for selector in self.waiting() {
                let pods = self.view.list(&gates::pods(&self.of, &selector))?;
                lacks_a_volume |= certificate::lacks_a_volume(pods, self.view.now());
            }
        }
        Ok((Some(answer), certificate::stalled(&self.owner.certificate_name(), answer, lacks_a_volume)))
    }

    /// The selectors of the sides that mount the certificate that is made and lack pods.
    pub(super) fn waiting(&self) -> Vec<String> {
        let preview = self.owner.selector(self.side.colour.other());
        let sides = [
            (ChildRole::LiveDeployment, &self.side.spec, self.side.selector.clone()),
            (ChildRole::PreviewDeployment, self.of.spec(), preview),
        ];
        let waits = |child| self.found(child).is_some_and(certificate::is_waiting);
        let sides =
            sides.into_iter().filter(|(child, spec, _)| certificate::is_mounted(spec) && waits(*child));
        sides.map(|(_, _, selector)| selector).collect()
    }
}
