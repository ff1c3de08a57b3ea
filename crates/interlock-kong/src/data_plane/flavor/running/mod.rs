//! The flavors of a gateway's running pods, and whether the pods behind one Service agree.
//!
//! A producer adopts the flavor of the first pod that answers it, so pods of two flavors behind one
//! Service leave one of them without a configuration (Kong/kubernetes-ingress-controller#5004).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use interlock_core::api::condition::{ConditionStatus, WantedCondition};
use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use serde_json::Value;

use super::Flavor;

pub mod pod;
pub mod report;
pub mod rolled_out;

/// How many pods a text names; further ones are counted.
const NAMED: usize = 3;

/// Known state of a pod's router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterState {
    /// Its Admin API reports this flavor.
    Reports(String),
    /// Its environment declares this flavor; the Admin API was not available, for this reason.
    Declares(Flavor, String),
    /// Neither names a flavor, for this reason.
    Nothing(String),
}

impl RouterState {
    /// The flavor, if one is known.
    pub fn flavor(&self) -> Option<&str> {
        match self {
            Self::Reports(flavor) => Some(flavor),
            Self::Declares(flavor, _) => Some(flavor.as_str()),
            Self::Nothing(_) => None,
        }
    }
}

impl fmt::Display for RouterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reports(flavor) => write!(f, "reports {flavor}"),
            Self::Declares(flavor, why) => write!(f, "{flavor} by its environment ({why})"),
            Self::Nothing(why) => write!(f, "flavor unknown ({why})"),
        }
    }
}

/// A pod of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub reported: RouterState,
}

/// A Service of the gateway's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Name of the Service.
    pub service: String,
    /// Labels of its selector; it selects nothing if they are empty.
    pub labels: BTreeMap<String, String>,
}

impl Selector {
    /// Reads a Service.
    pub fn of(service: &Value) -> Self {
        Self {
            service: meta_str(service, "name").unwrap_or_default().to_owned(),
            labels: pod::texts(&service["spec"]["selector"]),
        }
    }

    /// Whether a pod is behind the Service.
    pub fn selects(&self, pod: &Pod) -> bool {
        !self.labels.is_empty() && self.labels.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
    }
}

/// Pods by flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByFlavor(BTreeMap<String, Vec<String>>);

impl ByFlavor {
    /// The pods whose flavor is known.
    pub fn of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pod in pods {
            if let Some(flavor) = pod.reported.flavor() {
                all.entry(flavor.to_owned()).or_default().push(pod.name.clone());
            }
        }
        all.values_mut().for_each(|names| names.sort());
        Self(all)
    }

    pub fn flavors(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there are several.
    pub fn is_mixed(&self) -> bool {
        self.0.len() > 1
    }
}

impl fmt::Display for ByFlavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(flavor, pods)| format!("{flavor}: {}", named(pods)));
        f.write_str(&each.collect::<Vec<_>>().join("; "))
    }
}

/// The first of these names, and the number of further ones.
pub fn named(names: &[String]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Whether the pods of a gateway agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlavorConsistency {
    /// No pod runs.
    NoPods,
    /// All run this flavor.
    Same {
        flavor: String,
        /// How many pods there are.
        pods: usize,
        /// How many of them reported it themselves.
        asked: usize,
    },
    /// Flavors differ, and no Service has pods of two: a change is staged.
    Apart(ByFlavor),
    /// Pods behind one Service run different flavors.
    Mixed { service: String, pods: ByFlavor },
    /// All agree, but not with the gateway's spec.
    Unexpected {
        /// The actual flavor.
        runs: String,
        /// The flavor of the spec.
        wanted: Flavor,
    },
    /// The flavor of some is unknown; the others agree.
    Untold {
        /// Their names.
        pods: Vec<String>,
        /// The reason for the first of them.
        why: String,
    },
}

/// Compares pods by the Services of their namespace; `wanted` is the flavor of the spec, if it is known
/// and nothing is staged.
pub fn consistency(pods: &[Pod], services: &[Selector], wanted: Option<Flavor>) -> FlavorConsistency {
    if pods.is_empty() {
        return FlavorConsistency::NoPods;
    }
    for service in services {
        let behind = ByFlavor::of(pods.iter().filter(|pod| service.selects(pod)));
        if behind.is_mixed() {
            return FlavorConsistency::Mixed { service: service.service.clone(), pods: behind };
        }
    }
    let silent = |pod: &Pod| match &pod.reported {
        RouterState::Nothing(why) => Some((pod.name.clone(), why.clone())),
        RouterState::Reports(_) | RouterState::Declares(..) => None,
    };
    let untold: BTreeSet<(String, String)> = pods.iter().filter_map(silent).collect();
    if let Some((_, why)) = untold.first() {
        let why = why.clone();
        return FlavorConsistency::Untold { pods: untold.into_iter().map(|(name, _)| name).collect(), why };
    }
    let all = ByFlavor::of(pods);
    let asked = pods.iter().filter(|pod| matches!(pod.reported, RouterState::Reports(_))).count();
    let mut flavors = all.flavors();
    match (flavors.next(), flavors.next(), wanted) {
        (Some(runs), None, Some(wanted)) if runs != wanted.as_str() => {
            FlavorConsistency::Unexpected { runs: runs.to_owned(), wanted }
        }
        (Some(flavor), None, _) => {
            FlavorConsistency::Same { flavor: flavor.to_owned(), pods: pods.len(), asked }
        }
        _ => FlavorConsistency::Apart(all.clone()),
    }
}

impl FlavorConsistency {
    /// Whether this is settled until the next event.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::NoPods | Self::Same { .. } | Self::Apart(_))
    }

    /// The condition `RouterFlavorConsistent`.
    pub fn condition(&self) -> WantedCondition {
        let (status, reason) = match self {
            Self::NoPods => (ConditionStatus::Unknown, "NoPods"),
            Self::Same { .. } => (ConditionStatus::True, "Consistent"),
            Self::Apart(_) => (ConditionStatus::True, "Staged"),
            Self::Mixed { .. } => (ConditionStatus::False, "Mixed"),
            Self::Unexpected { .. } => (ConditionStatus::False, "Unexpected"),
            Self::Untold { .. } => (ConditionStatus::Unknown, "Untold"),
        };
        WantedCondition {
            type_: meta::condition::ROUTER_FLAVOR_CONSISTENT,
            status,
            reason: reason.to_owned(),
            message: self.to_string(),
        }
    }

    /// The warning for users.
    pub fn warning(&self) -> Option<String> {
        matches!(self, Self::Mixed { .. }).then(|| {
            format!(
                "{self}; one of them gets a configuration that it cannot read. `interlock flavor diagnose` says \
                 what to do"
            )
        })
    }
}

impl fmt::Display for FlavorConsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPods => write!(f, "no pod runs"),
            Self::Same { flavor, pods, asked } if pods == asked => {
                write!(f, "{pods} of {pods} pods report {flavor}")
            }
            Self::Same { flavor, pods, asked } => {
                write!(
                    f,
                    "{pods} pods run {flavor}: {asked} report it, the others have it in their environment"
                )
            }
            Self::Apart(pods) => write!(f, "no Service has pods of two flavors ({pods})"),
            Self::Mixed { service, pods } => {
                write!(f, "pods behind Service {service} run different router flavors ({pods})")
            }
            Self::Unexpected { runs, wanted } => {
                write!(f, "all pods run {runs}, the gateway says {wanted}: they started with something else")
            }
            Self::Untold { pods, why } => {
                write!(f, "the router flavor of {} cannot be told: {why}", named(pods))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::pod::{AdminEndpoint, declared, endpoint, is_alive, is_of};
    use super::report::StatusReport;
    use super::*;
    use crate::data_plane::flavor::sources::Nothing;

    /// `name set flavor`; a flavor in brackets is from the environment, `?` is none.
    fn pods(lines: &[&str]) -> Vec<Pod> {
        let pod = |line: &&str| {
            let mut words = line.split(' ');
            let (name, set, flavor) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let reported = match flavor.strip_prefix('(').and_then(|f| f.strip_suffix(')')) {
                Some(declared) => RouterState::Declares(Flavor::named(declared).unwrap(), "no port".into()),
                None if flavor == "?" => RouterState::Nothing("no answer".into()),
                None => RouterState::Reports(flavor.into()),
            };
            let labels =
                BTreeMap::from([("app".to_owned(), "edge".to_owned()), ("set".to_owned(), set.to_owned())]);
            Pod { name: name.to_owned(), labels, reported }
        };
        lines.iter().map(pod).collect()
    }

    fn service(name: &str, selector: Value) -> Selector {
        Selector { service: name.to_owned(), labels: pod::texts(&selector) }
    }

    #[rstest]
    #[case::none(&[], None, "Unknown NoPods: no pod runs")]
    #[case::same(&["a x expressions", "b x expressions"], None, "True Consistent: 2 of 2 pods report expressions")]
    #[case::by_environment(&["a x (expressions)", "b x expressions"], None, "True Consistent: 2 pods run expressions: 1 report it, the others have it in their environment")]
    #[case::as_wanted(&["a x expressions"], Some(Flavor::Expressions), "True Consistent: 1 of 1 pods report expressions")]
    #[case::unexpected(&["a x expressions"], Some(Flavor::Traditional), "False Unexpected: all pods run expressions, the gateway says traditional: they started with something else")]
    #[case::untold(&["a x expressions", "b x ?"], None, "Unknown Untold: the router flavor of b cannot be told: no answer")]
    #[case::mixed(
        &["a x expressions", "b x traditional", "c x expressions"],
        None,
        "False Mixed: pods behind Service edge run different router flavors (expressions: a, c; traditional: b)"
    )]
    #[case::mixed_by_environment(&["a x expressions", "b x (traditional)"], None, "False Mixed: pods behind Service edge run different router flavors (expressions: a; traditional: b)")]
    #[case::mixed_beside_untold(&["a x expressions", "b x traditional", "c x ?"], None, "False Mixed: pods behind Service edge run different router flavors (expressions: a; traditional: b)")]
    #[case::many(
        &["a x expressions", "b x expressions", "c x expressions", "d x expressions", "e x expressions", "f x traditional"],
        None,
        "False Mixed: pods behind Service edge run different router flavors (expressions: a, b, c and 2 more; traditional: f)"
    )]
    #[case::not_behind_it(&["a x expressions", "b y traditional"], None, "True Staged: no Service has pods of two flavors (expressions: a; traditional: b)")]
    fn conditions(#[case] lines: &[&str], #[case] wanted: Option<Flavor>, #[case] reported: &str) {
        let services = [service("all", json!({})), service("edge", json!({"set": "x"}))];
        let found = consistency(&pods(lines), &services, wanted);
        let condition = found.condition();
        assert_eq!(
            format!("{} {}: {}", condition.status.as_str(), condition.reason, condition.message),
            reported
        );
        assert_eq!(found.warning().is_some(), condition.reason == "Mixed");
    }

    #[rstest]
    #[case::kong(json!({"version": "3.9.1", "configuration": {"router_flavor": "expressions", "database": "off"}}), Ok(("expressions", Some("3.9.1"))))]
    #[case::before_3_0(json!({"version": "2.8.4", "configuration": {"database": "off"}}), Err("it reports no router flavor"))]
    #[case::other(json!({"message": "no Route matched"}), Err("its answer is not that of Kong's Admin API"))]
    #[case::no_object(json!([]), Err("its answer is not that of Kong's Admin API"))]
    #[case::text(json!({"configuration": {"router_flavor": "a\nb"}}), Err("it reports a router flavor that is none"))]
    #[case::long(json!({"configuration": {"router_flavor": "x".repeat(65)}}), Err("it reports a router flavor that is none"))]
    #[case::version_is_text(json!({"version": "<b>", "configuration": {"router_flavor": "traditional"}}), Ok(("traditional", None)))]
    fn reports(#[case] body: Value, #[case] read: Result<(&str, Option<&str>), &str>) {
        let found = StatusReport::read(body.to_string().as_bytes());
        let found = found.as_ref().map(|r| (r.flavor.as_str(), r.version.as_deref())).map_err(String::as_str);
        assert_eq!(found, read);
    }

    fn pod(spec: Value, status: Value) -> Value {
        json!({"metadata": {"namespace": "kong", "name": "a"}, "spec": spec, "status": status})
    }

    fn proxy(port: Value) -> Value {
        json!({"containers": [
            {"name": "sidecar", "ports": [{"name": "admin", "containerPort": 1}]},
            {"name": "proxy", "image": "kong:3.9", "ports": [{"name": "http", "containerPort": 8000}, port]},
        ]})
    }

    fn on_the_host(mut spec: Value) -> Value {
        spec["hostNetwork"] = json!(true);
        spec
    }

    #[rstest]
    #[case::admin(proxy(json!({"name": "admin", "containerPort": 8001})), json!({"podIP": "10.1.2.3"}), Ok(8001))]
    #[case::tls(proxy(json!({"name": "admin-ssl", "containerPort": 8444})), json!({"podIP": "10.1.2.3"}), Err("container \"proxy\" has no port named \"admin\""))]
    #[case::no_address(proxy(json!({"name": "admin", "containerPort": 8001})), json!({}), Err("it has no address yet"))]
    #[case::no_port(proxy(json!({"name": "admin", "containerPort": 70_000})), json!({"podIP": "10.1.2.3"}), Err("container \"proxy\" has no port named \"admin\""))]
    #[case::host(on_the_host(proxy(json!({"name": "admin", "containerPort": 8001}))), json!({"podIP": "10.1.2.3"}), Err("it has the address of its node"))]
    fn who_is_asked(#[case] spec: Value, #[case] status: Value, #[case] asked: Result<u16, &str>) {
        let found = endpoint(&pod(spec, status));
        let asked =
            asked.map(|port| AdminEndpoint { address: "10.1.2.3".to_owned(), port }).map_err(str::to_owned);
        assert_eq!(found, asked);
    }

    #[rstest]
    #[case::default(json!([]), Ok(Flavor::TraditionalCompatible))]
    #[case::value(json!([{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}]), Ok(Flavor::Expressions))]
    #[case::source(
        json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}]),
        Err("it comes from ConfigMap kong/router key \"flavor\", which cannot be read here")
    )]
    #[case::invalid(json!([{"name": "KONG_ROUTER_FLAVOR", "value": "x"}]), Err("its environment gives \"x\", which is no flavor"))]
    fn environments(#[case] env: Value, #[case] says: Result<Flavor, &str>) {
        let pod = pod(json!({"containers": [{"name": "proxy", "image": "kong:3.9", "env": env}]}), json!({}));
        assert_eq!(declared(&pod, &Nothing), says.map_err(str::to_owned));
    }

    #[rstest]
    #[case::controller(json!([{"uid": "set-1", "controller": true}]), true)]
    #[case::owner(json!([{"uid": "set-1"}]), false)]
    #[case::other(json!([{"uid": "set-2", "controller": true}]), false)]
    #[case::none(Value::Null, false)]
    fn whose_pods(#[case] owners: Value, #[case] ours: bool) {
        let pod = json!({"metadata": {"ownerReferences": owners}});
        assert_eq!(is_of(&pod, &BTreeSet::from(["set-1".to_owned()])), ours);
    }

    #[rstest]
    #[case::runs(json!({}), json!({"phase": "Running"}), true)]
    #[case::waits(json!({}), json!({"phase": "Pending"}), true)]
    #[case::evicted(json!({}), json!({"phase": "Failed"}), false)]
    #[case::goes(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({"phase": "Running"}), false)]
    fn who_is_alive(#[case] metadata: Value, #[case] status: Value, #[case] alive: bool) {
        assert_eq!(is_alive(&json!({"metadata": metadata, "status": status})), alive);
    }
}
