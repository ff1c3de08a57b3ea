//! What the pods of a preview report of themselves, held against what is staged: the version of Kong, by the header of
//! their status API, and version and router flavor, by their admin API where its certificate is ours.

use std::collections::BTreeMap;

use interlock_core::api::object::meta_str;
use interlock_core::api::pod::PodTemplate;
use interlock_core::reconcile::{PodAnswer, PodRequest};
use serde::Deserialize as _;
use serde_json::Value;

use crate::api::proxy;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::environment::Surroundings;
use crate::data_plane::flavor::reading::FlavorReading;
use crate::data_plane::flavor::running::report::StatusReport;
use crate::data_plane::flavor::sources::Nothing;
use crate::data_plane::flavor::version::KongVersion;
use crate::data_plane::rollout::gates;
use crate::data_plane::rollout::gates::route_names::RouteNames;
use crate::data_plane::rollout::phase::PromotionGate;

/// The port of the admin API, as the generated pods have it, and what they listen with there.
const ADMIN_PORT: u16 = 8444;
const ADMIN_LISTEN: (&str, &str) = ("KONG_ADMIN_LISTEN", "0.0.0.0:8444 ssl");
/// The root has `version` and `configuration`.
const ROOT: &str = "/";
const ROUTES: &str = "/routes";
/// The longest version that a text shows.
const LONGEST: usize = 40;

/// What the pods of a Deployment have to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedReport {
    image: String,
    flavor: Option<Flavor>,
    /// Whether they listen as generated: on another port or without TLS nothing is asked.
    listens: bool,
}

impl ExpectedReport {
    /// From the body of the Deployment. A flavor that comes from another object is not known here.
    pub fn of(deployment: &Value) -> Self {
        let template = &deployment["spec"]["template"];
        let proxy = proxy(template).unwrap_or(&Value::Null);
        let mut entries = proxy["env"].as_array().into_iter().flatten();
        let listens = entries.rfind(|entry| entry["name"] == ADMIN_LISTEN.0);
        let listens = listens.and_then(|entry| entry["value"].as_str()).unwrap_or_default();
        let namespace = meta_str(deployment, "namespace").unwrap_or_default();
        let flavor = PodTemplate::deserialize(template).ok().and_then(|template| {
            let surroundings = Surroundings { namespace, template: &template.metadata, sources: &Nothing };
            FlavorReading::of(&template, surroundings).effective.known()
        });
        Self {
            image: proxy["image"].as_str().unwrap_or_default().to_owned(),
            flavor,
            listens: listens.starts_with(ADMIN_LISTEN.1),
        }
    }

    /// What to ask the admin API of a pod, whose certificate has the names of this admin Service; `None` where it
    /// cannot be asked, or there is nothing to compare.
    pub fn request(&self, pod: &Value, service: &str, namespace: &str) -> Option<PodRequest> {
        let status = gates::request(pod).ok().filter(|_| self.listens && self.flavor.is_some())?;
        let tls = Some(format!("pod.{service}.{namespace}.svc"));
        Some(PodRequest { port: ADMIN_PORT, tls, path: ROOT, ..status })
    }

    /// What to ask the admin API of a pod for its routes, where it can be asked.
    pub fn routes_request(&self, pod: &Value, service: &str, namespace: &str) -> Option<PodRequest> {
        Some(PodRequest { path: ROUTES, all_pages: true, ..self.request(pod, service, namespace)? })
    }

    /// Whether a configuration producer speaks another dialect to pods of this report than to those of another one.
    pub fn crosses_dialects(&self, other: &Self) -> bool {
        match (self.flavor, other.flavor) {
            (Some(one), Some(other)) => one.dialect() != other.dialect(),
            _ => false,
        }
    }

    /// Why the admin API of these pods is not asked, whatever certificate they have, and what to do.
    pub fn unasked(&self) -> Option<&'static str> {
        if !self.listens {
            return Some(
                "KONG_ADMIN_LISTEN of container proxy is not the generated one: leave it out of the template",
            );
        }
        let unknown =
            "the template does not tell it: set KONG_ROUTER_FLAVOR of container proxy to the flavor itself";
        self.flavor.is_none().then_some(unknown)
    }

    /// Whether the headers of the status API name the version of the image.
    pub fn versions(&self, pods: &[&Value], answered: &BTreeMap<PodRequest, PodAnswer>) -> PromotionGate {
        gates::gate(pods, |pod| {
            let answer = answered.get(&gates::request(pod).ok()?)?.as_ref().ok()?;
            self.other_version(answer.server.as_deref()?.strip_prefix("kong/")?)
        })
    }

    /// Whether the admin APIs report the flavor and the version.
    pub fn flavors(
        &self,
        pods: &[&Value],
        request: impl Fn(&Value) -> Option<PodRequest>,
        answered: &BTreeMap<PodRequest, PodAnswer>,
    ) -> PromotionGate {
        gates::gate(pods, |pod| match answered.get(&request(pod)?)? {
            // It wants a token of Kong's own, which Interlock has none of.
            Ok(answer) if matches!(answer.status, 401 | 403) => None,
            Ok(answer) if answer.status == 200 => match StatusReport::read(&answer.body) {
                Ok(report) => self.problem(&report),
                Err(why) => Some(why),
            },
            Ok(answer) => Some(format!("its admin API (port {ADMIN_PORT}) answers {}", answer.status)),
            Err(why) => Some(unanswered(why)),
        })
    }

    fn problem(&self, report: &StatusReport) -> Option<String> {
        let expected = self.flavor.filter(|expected| expected.as_str() != report.flavor);
        if let Some(expected) = expected {
            return Some(format!(
                "it runs with router flavor {}, and the staged spec gives {expected}: set KONG_ROUTER_FLAVOR of container \
                 proxy to the flavor that you mean",
                report.flavor
            ));
        }
        self.other_version(report.version.as_deref()?)
    }

    fn other_version(&self, reported: &str) -> Option<String> {
        if KongVersion::agrees(&self.image, reported)? {
            return None;
        }
        let reported: String = reported.chars().take(LONGEST).collect();
        Some(format!(
            "it runs Kong {reported}, and its image is {}: name the image by a tag of the version that it has",
            self.image
        ))
    }
}

/// The routes that a pod holds; `None` where its admin API wants a token of Kong's own, `Err` with why they are not
/// known.
pub fn routes(answer: &PodAnswer) -> Result<Option<RouteNames>, String> {
    match answer {
        Ok(answer) if matches!(answer.status, 401 | 403) => Ok(None),
        Ok(answer) if answer.status == 200 => match RouteNames::read(&answer.body) {
            Some(names) => Ok(Some(names)),
            None => {
                Err(format!("GET {ROUTES} of its admin API (port {ADMIN_PORT}) answers no list of routes"))
            }
        },
        Ok(answer) => {
            Err(format!("GET {ROUTES} of its admin API (port {ADMIN_PORT}) answers {}", answer.status))
        }
        Err(why) => Err(unanswered(why)),
    }
}

fn unanswered(why: &str) -> String {
    format!(
        "its admin API (port {ADMIN_PORT}) {why}; let Interlock reach that port, and start the pod again where its \
         certificate was made anew"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use interlock_core::reconcile::PodResponse;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn deployment(image: &str, env: &Value) -> Value {
        json!({
            "metadata": {"namespace": "kong"},
            "spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": image, "env": env}]}}},
        })
    }

    fn env(flavor: &str) -> Value {
        json!([
            {"name": "KONG_ADMIN_LISTEN", "value": "0.0.0.0:8444 ssl reuseport backlog=16384"},
            {"name": "KONG_ROUTER_FLAVOR", "value": flavor},
        ])
    }

    fn pod() -> Value {
        json!({"metadata": {"name": "p"}, "status": {"podIP": "10.0.0.1"}})
    }

    fn said(gate: PromotionGate) -> String {
        gate.err().unwrap_or_default()
    }

    fn answer(status: u16, server: Option<&str>, body: &str) -> PodAnswer {
        Ok(PodResponse { status, server: server.map(str::to_owned), body: Arc::from(body.as_bytes()) })
    }

    #[rstest]
    #[case::same("kong:3.9", Some("kong/3.9.1"), "")]
    #[case::another("kong:3.9", Some("kong/3.8.0"), "pod p: it runs Kong 3.8.0, and its image is kong:3.9")]
    #[case::none("kong:3.9", None, "")]
    #[case::of_a_proxy_between("kong:3.9", Some("envoy"), "")]
    #[case::own_image("shop/edge:1.0", Some("kong/3.8.0"), "")]
    fn the_header_tells_the_version(#[case] image: &str, #[case] server: Option<&str>, #[case] wanted: &str) {
        let pod = pod();
        let answered = [(gates::request(&pod).unwrap(), answer(200, server, ""))].into();
        let expected = ExpectedReport::of(&deployment(image, &env("expressions")));
        let said = said(expected.versions(&[&pod], &answered));
        assert!(said.starts_with(wanted) && said.is_empty() == wanted.is_empty(), "{said}");
    }

    #[rstest]
    #[case::same(
        answer(200, None, r#"{"version":"3.9.1","configuration":{"router_flavor":"expressions"}}"#),
        ""
    )]
    #[case::another_flavor(
        answer(200, None, r#"{"version":"3.9.1","configuration":{"router_flavor":"traditional"}}"#),
        "pod p: it runs with router flavor traditional, and the staged spec gives expressions"
    )]
    #[case::another_version(
        answer(200, None, r#"{"version":"3.4.0","configuration":{"router_flavor":"expressions"}}"#),
        "pod p: it runs Kong 3.4.0"
    )]
    #[case::garbage(answer(200, None, "<html>"), "pod p: its answer is not that of Kong's Admin API")]
    #[case::redirect(answer(301, None, ""), "pod p: its admin API (port 8444) answers 301")]
    #[case::wants_a_token(answer(401, None, ""), "")]
    #[case::silent(Err("does not answer within 2 s".to_owned()), "pod p: its admin API (port 8444) does not answer within 2 s;")]
    fn the_admin_api_tells_the_flavor(#[case] answer: PodAnswer, #[case] wanted: &str) {
        let pod = pod();
        let expected = ExpectedReport::of(&deployment("kong:3.9", &env("expressions")));
        let request = |pod: &Value| expected.request(pod, "dataplane-admin-edge-preview", "kong");
        let asked = request(&pod).unwrap();
        assert_eq!(asked.tls.as_deref(), Some("pod.dataplane-admin-edge-preview.kong.svc"));
        assert_eq!((asked.port, asked.path), (8444, "/"));
        let said = said(expected.flavors(&[&pod], request, &[(asked, answer)].into()));
        assert!(said.starts_with(wanted) && said.is_empty() == wanted.is_empty(), "{said}");
    }

    /// What cannot be compared, or does not listen as it was generated, is not asked.
    #[rstest]
    #[case::from_elsewhere(json!([
        {"name": "KONG_ADMIN_LISTEN", "value": "0.0.0.0:8444 ssl"},
        {"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
    ]))]
    #[case::another_port(json!([
        {"name": "KONG_ADMIN_LISTEN", "value": "127.0.0.1:8001"},
        {"name": "KONG_ROUTER_FLAVOR", "value": "expressions"},
    ]))]
    fn what_is_unknown_is_not_asked(#[case] env: Value) {
        let expected = ExpectedReport::of(&deployment("kong:3.9", &env));
        assert_eq!(expected.request(&pod(), "s", "kong"), None);
    }

    #[test]
    fn a_pod_with_the_address_of_its_node_is_not_asked() {
        let expected = ExpectedReport::of(&deployment("kong:3.9", &env("expressions")));
        let mut pod = pod();
        pod["spec"]["hostNetwork"] = json!(true);
        assert_eq!(expected.request(&pod, "s", "kong"), None);
    }
}
