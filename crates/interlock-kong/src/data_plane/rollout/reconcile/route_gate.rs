//! Where a promotion changes the dialect of routes, whether each pod of the preview holds the routes of the live side.

use interlock_core::api::object::meta_str;
use interlock_core::certificate::CertificateAnswer;
use interlock_core::reconcile::{Needs, PodAnswer, PodRequest};
use serde_json::Value;

use super::{Pass, certificate};
use crate::data_plane::flavor::running::pod;
use crate::data_plane::rollout::gates;
use crate::data_plane::rollout::gates::pod_reports;
use crate::data_plane::rollout::gates::pod_reports::ExpectedReport;
use crate::data_plane::rollout::phase::PromotionGate;
use crate::data_plane::rollout::wanted::ChildRole;

/// Live pods that are asked whether they hold a configuration: the first one that does is compared with.
const LIVE_PODS: usize = 3;

impl Pass<'_> {
    /// Whether these pods of the preview hold the routes of a live pod. A live side whose pods hold no configuration has
    /// none to lose.
    pub(super) fn routes(
        &self,
        pods: &[&Value],
        expected: &ExpectedReport,
        certificate: Option<&CertificateAnswer>,
    ) -> Result<PromotionGate, Needs> {
        let live = ExpectedReport::of(self.found(ChildRole::LiveDeployment).unwrap_or(&Value::Null));
        if !live.crosses_dialects(expected) || !certificate::is_ours(certificate, &self.side.spec) {
            return Ok(Ok(()));
        }
        let Some((live_pod, of_live)) = self.live_pod(&live)? else { return Ok(Ok(())) };
        let service = self.key(ChildRole::PreviewAdmin).name;
        let request = |pod: &Value| expected.routes_request(pod, &service, self.of.namespace);
        self.view
            .ask_all(std::iter::once(of_live.clone()).chain(pods.iter().filter_map(|pod| request(pod))))?;
        let wanted = match self.answer(&of_live).map(pod_reports::routes) {
            Some(Ok(Some(routes))) => routes,
            Some(Err(why)) => return Ok(Err(format!("live pod {live_pod}: {why}"))),
            Some(Ok(None)) | None => return Ok(Ok(())),
        };
        Ok(gates::gate(pods, |pod| {
            match pod_reports::routes(self.answer(&request(pod)?)?) {
            Err(why) => Some(why),
            Ok(None) => None,
            Ok(Some(routes)) => routes.difference(&wanted, &live_pod).map(|differs| {
                format!("{differs}; see in the log of its configuration producer what that sends, and what Kong rejects")
            }),
        }
        }))
    }

    /// The name of a live pod that holds a configuration, and what to ask it for its routes; `None` where there is none,
    /// or it cannot be asked.
    fn live_pod(&self, live: &ExpectedReport) -> Result<Option<(String, PodRequest)>, Needs> {
        let list = gates::pods(&self.of, &self.side.selector);
        let found = self.view.list(&list)?;
        let deployment = self.key(ChildRole::LiveDeployment).name;
        let ready = gates::of_deployment(found, &deployment).filter(|found| pod::is_ready(found));
        let ready: Vec<&Value> = ready.take(LIVE_PODS).collect();
        self.view.ask_all(ready.iter().filter_map(|pod| gates::request(pod).ok()))?;
        let holds = |pod: &&&Value| {
            let answer = gates::request(pod).ok().and_then(|request| self.answer(&request)?.as_ref().ok());
            answer.is_some_and(|answer| answer.status == 200)
        };
        let Some(found) = ready.iter().find(holds) else { return Ok(None) };
        let service = self.key(ChildRole::LiveAdmin).name;
        let name = meta_str(found, "name").unwrap_or_default().to_owned();
        Ok(live.routes_request(found, &service, self.of.namespace).map(|request| (name, request)))
    }

    fn answer(&self, request: &PodRequest) -> Option<&PodAnswer> {
        self.view.answers().get(request)
    }
}
