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

#[cfg(test)]
mod tests;

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
