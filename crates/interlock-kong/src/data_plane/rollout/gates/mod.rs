//! What must hold before a promotion, and before the former side goes: the pods of the preview answer, and the
//! traffic goes to the live side alone.

pub mod pod_reports;
pub mod route_names;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::reconcile::{ObjectList, PodAnswer, PodRequest};
use serde_json::Value;

use crate::api::labels;
use crate::data_plane::flavor::running::pod;
use crate::data_plane::rollout::phase::PromotionGate;
use crate::data_plane::rollout::view::DataPlaneView;

/// The port of Kong's status API, as the generated pods have it.
const STATUS_PORT: u16 = 8100;
/// 200 only after a configuration was received; `/status` is 200 without one.
const READY: &str = "/status/ready";
/// Pods that a text names.
const NAMED: usize = 3;

/// The list of the pods with a selector.
pub fn pods(of: &DataPlaneView<'_>, selector: &str) -> ObjectList {
    let labels =
        [(labels::APP.to_owned(), of.name.to_owned()), (labels::SELECTOR.to_owned(), selector.to_owned())];
    list(of, Gvk::new("v1", "Pod"), labels.into())
}

/// The list of the endpoints of a Service.
pub fn endpoints(of: &DataPlaneView<'_>, service: &str) -> ObjectList {
    let labels = [
        ("kubernetes.io/service-name".to_owned(), service.to_owned()),
        // Kubernetes copies it from the Service.
        (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_DATA_PLANE.to_owned()),
    ];
    list(of, Gvk::new("discovery.k8s.io/v1", "EndpointSlice"), labels.into())
}

fn list(of: &DataPlaneView<'_>, gvk: Gvk, labels: BTreeMap<String, String>) -> ObjectList {
    ObjectList { gvk, namespace: of.namespace.to_owned(), labels }
}

/// The pods of a Deployment's present ReplicaSet: pods of another owner with the same labels do not count.
pub fn of_deployment<'p>(pods: &'p [Arc<Value>], deployment: &str) -> impl Iterator<Item = &'p Value> {
    let made = move |pod: &&Value| {
        let references = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let hash = pod["metadata"]["labels"]["pod-template-hash"].as_str().unwrap_or_default();
        let name = format!("{deployment}-{hash}");
        references.filter(|owner| owner["kind"] == "ReplicaSet").any(|owner| owner["name"] == name.as_str())
    };
    pods.iter().map(|pod| &**pod).filter(|pod| pod::is_alive(pod)).filter(made)
}

/// What to ask a pod; `Err` with the reason where it cannot be asked.
pub fn request(pod: &Value) -> Result<PodRequest, String> {
    if pod["spec"]["hostNetwork"] == true {
        return Err("it has the address of its node".to_owned());
    }
    let address = pod["status"]["podIP"].as_str().filter(|address| !address.is_empty());
    let address = address.ok_or("it has no address yet")?;
    Ok(PodRequest {
        address: address.to_owned(),
        port: STATUS_PORT,
        tls: None,
        path: READY,
        all_pages: false,
    })
}

/// The gate that these pods are, each with what is wrong with it.
pub fn gate(pods: &[&Value], problem: impl Fn(&Value) -> Option<String>) -> PromotionGate {
    let named = |pod: &&Value| {
        let name = meta_str(pod, "name").unwrap_or_default();
        problem(pod).map(|problem| format!("pod {name}: {problem}"))
    };
    let problems: Vec<String> = pods.iter().filter_map(named).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let more = problems.len().saturating_sub(NAMED);
    let mut text = problems[..problems.len().min(NAMED)].join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    Err(text)
}

/// Whether all of these pods have a configuration.
pub fn answers(pods: &[&Value], answered: &BTreeMap<PodRequest, PodAnswer>) -> PromotionGate {
    gate(pods, |pod| match request(pod) {
        Err(why) => Some(why),
        Ok(request) => match answered.get(&request)? {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer) => Some(format!(
                "GET {READY} answers {}: it has received no configuration; point its ingress controller at the \
                 preview's admin Service",
                answer.status
            )),
            Err(why) => Some(format!("its status API (port {STATUS_PORT}) {why}")),
        },
    })
}

/// Whether the endpoints of a Service are ready pods of one side alone. `wanted` = how many pods that side has.
pub fn traffic(slices: &[Arc<Value>], side: &BTreeSet<&str>, wanted: i64) -> PromotionGate {
    let all = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let serving = all.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let (mut new, mut former) = (0_i64, 0_i64);
    for endpoint in serving {
        let pod = endpoint["targetRef"]["name"].as_str().unwrap_or_default();
        if side.contains(pod) { new += 1 } else { former += 1 }
    }
    if former > 0 {
        return Err(format!("{former} endpoints of the former side still have traffic"));
    }
    if new == 0 && wanted > 0 {
        return Err("no pod of the new side has traffic yet".to_owned());
    }
    Ok(())
}
