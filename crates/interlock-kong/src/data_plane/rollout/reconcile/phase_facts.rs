//! Where the rollout of a DataPlane stands: what is staged, its gates, and the traffic.

use std::collections::BTreeSet;

use interlock_core::api::object::meta_str;
use interlock_core::certificate::CertificateAnswer;
use interlock_core::reconcile::{Needs, PodAnswer, PodRequest, both};
use serde_json::Value;

use super::{Pass, certificate};
use crate::data_plane::flavor::running::pod;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::gates;
use crate::data_plane::rollout::gates::pod_reports;
use crate::data_plane::rollout::gates::pod_reports::ExpectedReport;
use crate::data_plane::rollout::phase::{PromotionGate, Recorded, RolloutFacts, RolloutState, phase};
use crate::data_plane::rollout::promotion;
use crate::data_plane::rollout::refused_child::replica_failure;
use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::report::gate_report::NOT_READY;
use crate::data_plane::rollout::view::since;
use crate::data_plane::rollout::wanted;
use crate::data_plane::rollout::wanted::{ChildRole, ChildState};

impl Pass<'_> {
    /// Where the rollout stands; `None` without one.
    pub(super) fn phase(
        &self,
        certificate: Option<&CertificateAnswer>,
    ) -> Result<Option<RolloutState>, Needs> {
        if !self.of.is_blue_green() {
            return Ok(None);
        }
        let spec = self.preview_spec();
        let staged = self.lost.is_some()
            || live_spec::is_changed(&self.side.spec, self.of.spec())
            || self.staged_flavor().is_some();
        let recorded = self.recorded();
        let (template, preview) = if staged { self.preview_gates(&spec) } else { (Ok(()), Ok(())) };
        let (answers, unasked) = match staged && template.is_ok() && preview.is_ok() {
            true => self.answers(certificate)?,
            false => (Ok(()), String::new()),
        };
        let follows = !staged && recorded.is_some_and(|recorded| recorded.phase == RolloutPhase::Promoting);
        let traffic = if follows { self.traffic()? } else { Ok(()) };
        Ok(Some(phase(&RolloutFacts {
            staged,
            template,
            preview,
            answers,
            unasked,
            promotion: promotion::of(self.of.object),
            automatic: self.of.promotes_automatically(),
            recorded,
            traffic,
            grace_period: self.of.grace_period(),
            now: self.view.now(),
        })))
    }

    fn recorded(&self) -> Option<Recorded> {
        let condition = self.of.rolled_out()?;
        Some(Recorded { phase: RolloutPhase::of_reason(&condition.reason), since: since(&condition) })
    }

    /// Whether the preview can be made, and whether it is as it shall be with all pods ready.
    pub(super) fn preview_gates(&self, spec: &Value) -> (PromotionGate, PromotionGate) {
        let replicas = self.preview_replicas(spec);
        let made = wanted::preview(
            &self.owner,
            ChildRole::PreviewDeployment,
            self.side.colour.other(),
            spec,
            replicas,
        );
        let body = match made {
            Err(error) => return (Err(error.to_string()), Ok(())),
            Ok(body) => body.unwrap_or_default(),
        };
        if let Some(why) = self.preview_refused() {
            return (Err(why), Ok(()));
        }
        let found = self.found(ChildRole::PreviewDeployment);
        let preview = match (wanted::state(&self.of, &body, found), found) {
            (ChildState::AsWanted, Some(found)) => match replica_failure(found) {
                Some(why) => Err(format!("{NOT_READY}: {why}")),
                None => has_all_pods(found, replicas),
            },
            _ => Err(NOT_READY.to_owned()),
        };
        (Ok(()), preview)
    }

    pub(super) fn preview_replicas(&self, spec: &Value) -> i32 {
        wanted::preview_replicas(spec, self.found(ChildRole::LiveDeployment))
    }

    /// Whether the pods of the preview answer that they have a configuration, and are what is staged; and what they were
    /// not asked, for people.
    fn answers(&self, certificate: Option<&CertificateAnswer>) -> Result<(PromotionGate, String), Needs> {
        let list = gates::pods(&self.of, &self.owner.selector(self.side.colour.other()));
        let pods = self.view.list(&list)?;
        let deployment = self.key(ChildRole::PreviewDeployment).name;
        let pods: Vec<&Value> = gates::of_deployment(pods, &deployment).collect();
        let answered = self.view.answers();
        self.view.ask_all(pods.iter().filter_map(|pod| gates::request(pod).ok()))?;
        let expected = ExpectedReport::of(self.found(ChildRole::PreviewDeployment).unwrap_or(&Value::Null));
        let told = [gates::answers(&pods, answered), expected.versions(&pods, answered)];
        if let Some(closed) = told.into_iter().find(Result::is_err) {
            return Ok((closed, String::new()));
        }
        let unasked = certificate::unasked(&self.owner.certificate_name(), certificate, self.of.spec());
        let certified = unasked.is_none();
        let unasked = expected.unasked().map(str::to_owned).or(unasked);
        let unasked = unasked.map(|why| format!("the pods were not asked for their router flavor, as {why}"));
        let unasked = unasked.unwrap_or_default();
        let service = self.key(ChildRole::PreviewAdmin).name;
        let request = |pod: &Value| expected.request(pod, &service, self.of.namespace).filter(|_| certified);
        self.view.ask_all(pods.iter().filter_map(|pod| request(pod)))?;
        match expected.flavors(&pods, request, answered) {
            Ok(()) if certified => Ok((self.routes(&pods, &expected, certificate)?, unasked)),
            gate => Ok((gate, unasked)),
        }
    }

    /// Whether the endpoints of the live Service are pods of the live side alone.
    fn traffic(&self) -> Result<PromotionGate, Needs> {
        let service = self.key(ChildRole::LiveIngress).name;
        let pods = self.view.list(&gates::pods(&self.of, &self.side.selector));
        let (pods, slices) = both(pods, self.view.list(&gates::endpoints(&self.of, &service)))?;
        let names: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        let wanted = self.found(ChildRole::LiveDeployment).and_then(|live| live["spec"]["replicas"].as_i64());
        Ok(gates::traffic(slices, &names, wanted.unwrap_or(1)))
    }
}

/// Whether a Deployment has that many pods of its present template, all available.
fn has_all_pods(deployment: &Value, replicas: i32) -> PromotionGate {
    let status = |name: &str| deployment["status"][name].as_i64().unwrap_or_default();
    let replicas = i64::from(replicas);
    let is_current =
        status("observedGeneration") >= deployment["metadata"]["generation"].as_i64().unwrap_or_default();
    if is_current && status("updatedReplicas") >= replicas && status("availableReplicas") >= replicas {
        return Ok(());
    }
    Err(NOT_READY.to_owned())
}

/// Live pods that are asked whether they hold a configuration: the first one that does is compared with.
const LIVE_PODS: usize = 3;

impl Pass<'_> {
    /// Whether these pods of the preview hold the routes of a live pod. A live side whose pods hold no configuration has
    /// none to lose.
    fn routes(
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
