//! The reasons why a gateway is stuck: pods of two flavors behind one Service, pods that never become
//! ready, a configuration producer that keeps the previous flavor.
//!
//! The deadlock is that of Kong/kubernetes-ingress-controller#5018: a producer adopts the flavor of the
//! first pod that answers it and keeps it until its own restart.

use std::fmt;

use interlock_core::api::object::NamespacedName;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::gateway_ref::{GatewayKind, GatewayRef};
use super::running::{ByFlavor, Pod, Selector};

/// Pods that are not ready for longer than this are not merely starting.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// A pod of the gateway, with its readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodDiagnosis {
    /// The pod and its flavor.
    pub pod: Pod,
    /// Creation time.
    pub made: Timestamp,
    /// Since when it has not been ready; `None` if it is ready.
    pub unready_since: Option<Timestamp>,
}

/// The Deployment that sends the gateway its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Name of the Deployment.
    pub name: NamespacedName,
    /// Creation time of its oldest running pod; `None` if none runs or is visible.
    pub since: Option<Timestamp>,
}

/// All observations about a gateway.
pub struct Symptoms<'a> {
    pub subject: &'a GatewayRef,
    /// The flavor that it declares, or why none, for people.
    pub says: String,
    pub pods: &'a [PodDiagnosis],
    /// The Services of its namespace.
    pub services: &'a [Selector],
    /// The Deployment that configures it.
    pub producer: Option<&'a Producer>,
    /// Objects that could not be observed.
    pub unseen: Vec<String>,
    /// The time of the observation.
    pub now: Timestamp,
}

/// A reason why the gateway is stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hold {
    what: String,
    why: &'static str,
}

/// The reasons why a gateway is stuck, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    subject: GatewayRef,
    says: String,
    pods: Vec<String>,
    holds: Vec<Hold>,
    next: Vec<String>,
    unseen: Vec<String>,
}

impl Diagnosis {
    /// The diagnosis of these observations.
    pub fn of(symptoms: &Symptoms<'_>) -> Self {
        let stuck = stuck(symptoms);
        let mixed = mixed(symptoms);
        let latched = latched(symptoms, &stuck);
        let mut next = Vec::new();
        if latched.is_some()
            && let Some(producer) = symptoms.producer
        {
            let NamespacedName { namespace, name } = &producer.name;
            next.push(format!("kubectl -n {namespace} rollout restart deployment/{name}"));
        } else if mixed.is_some() || !stuck.is_empty() {
            next.extend(resolutions(symptoms, &stuck));
        }
        let never_ready = (!stuck.is_empty()).then(|| Hold {
            what: format!(
                "{} not become ready ({})",
                if stuck.len() == 1 { "a pod does" } else { "pods do" },
                ByFlavor::of(stuck.iter().map(|standing| &standing.pod))
            ),
            why: "a pod is ready only with a configuration that its flavor can read, and a rollout waits for it",
        });
        Self {
            subject: symptoms.subject.clone(),
            says: symptoms.says.clone(),
            pods: symptoms.pods.iter().map(|standing| line(standing, symptoms.now)).collect(),
            holds: [mixed, never_ready, latched].into_iter().flatten().collect(),
            next,
            unseen: symptoms.unseen.clone(),
        }
    }

    /// Whether the diagnosis found no reason.
    pub fn is_well(&self) -> bool {
        self.holds.is_empty()
    }

    /// The diagnosis for programs.
    pub fn json(&self) -> Value {
        let holds = self.holds.iter().map(|Hold { what, why }| json!({"what": what, "why": why}));
        json!({
            "gateway": self.subject.to_string(),
            "says": self.says,
            "pods": self.pods,
            "heldUp": holds.collect::<Vec<_>>(),
            "next": self.next,
            "notSeen": self.unseen,
        })
    }
}

fn line(standing: &PodDiagnosis, now: Timestamp) -> String {
    let Pod { name, reported, .. } = &standing.pod;
    let runs = reported.to_string();
    match standing.unready_since {
        None => format!("{name}: {runs}; ready"),
        Some(since) => format!("{name}: {runs}; not ready for {}", age(now, since)),
    }
}

/// The age in the coarsest unit, for people.
fn age(now: Timestamp, since: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

fn stuck<'a>(symptoms: &'a Symptoms<'_>) -> Vec<&'a PodDiagnosis> {
    let long = |since: Timestamp| symptoms.now.duration_since(since) > PATIENCE;
    symptoms.pods.iter().filter(|standing| standing.unready_since.is_some_and(long)).collect()
}

fn mixed(symptoms: &Symptoms<'_>) -> Option<Hold> {
    symptoms.services.iter().find_map(|service| {
        let pods = symptoms.pods.iter().map(|standing| &standing.pod);
        let behind = ByFlavor::of(pods.filter(|pod| service.selects(pod)));
        behind.is_mixed().then(|| Hold {
            what: format!("pods behind Service {} run different router flavors ({behind})", service.service),
            why: "a producer takes up the flavor of whichever answers it first, and the others get a \
                  configuration that they may not read",
        })
    })
}

/// All pods agree, some wait for a configuration, and the producer is older than all of them: it
/// adopted its flavor from earlier pods.
fn latched(symptoms: &Symptoms<'_>, stuck: &[&PodDiagnosis]) -> Option<Hold> {
    let producer = symptoms.producer?;
    let oldest = symptoms.pods.iter().map(|standing| standing.made).min()?;
    let flavors = ByFlavor::of(symptoms.pods.iter().map(|standing| &standing.pod));
    let older = producer.since.is_some_and(|since| since < oldest);
    (!stuck.is_empty() && !flavors.is_mixed() && older).then(|| Hold {
        what: format!(
            "the configuration producer {} has run since before every pod of the gateway: it keeps to the flavor \
             of pods that are gone",
            producer.name
        ),
        why: "an ingress controller takes up a flavor once, when it starts",
    })
}

/// First back to the flavor of the ready pods, then the steps that work.
fn resolutions(symptoms: &Symptoms<'_>, stuck: &[&PodDiagnosis]) -> Vec<String> {
    let GatewayRef { kind, name: NamespacedName { namespace, name } } = symptoms.subject;
    let ready = symptoms.pods.iter().filter(|standing| standing.unready_since.is_none());
    let live = ByFlavor::of(ready.map(|standing| &standing.pod));
    let new = ByFlavor::of(stuck.iter().map(|standing| &standing.pod));
    let (mut running, mut waiting) = (live.flavors(), new.flavors());
    let (live, wanted) = match (running.next(), running.next(), waiting.next()) {
        (Some(live), None, Some(new)) if live != new => (live, new),
        // There is no flavor to return to: ask a pod for the reason.
        _ => {
            let pod = stuck.first().map(|standing| standing.pod.name.as_str());
            let what = pod.map_or("get deployments,replicasets,pods".to_owned(), |pod| {
                format!("logs {pod} --all-containers")
            });
            return vec![format!("kubectl -n {namespace} {what}")];
        }
    };
    let back = match kind {
        GatewayKind::Deployment => format!("kubectl -n {namespace} rollout undo deployment/{name}"),
        GatewayKind::DataPlane => format!(
            "kubectl -n {namespace} edit dataplanes.gateway-operator.konghq.com {name}   # KONG_ROUTER_FLAVOR={live}"
        ),
    };
    let kind = match kind {
        GatewayKind::DataPlane => "dataplane",
        GatewayKind::Deployment => "deployment",
    };
    vec![back, format!("interlock flavor plan {kind}/{name} -n {namespace} --to {wanted} --outage")]
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.subject, self.says)?;
        match self.pods.is_empty() {
            true => writeln!(f, "  no pod runs")?,
            false => self.pods.iter().try_for_each(|line| writeln!(f, "  {line}"))?,
        }
        for Hold { what, why } in &self.holds {
            writeln!(f, "\nheld up: {what}\n  {why}")?;
        }
        if self.holds.is_empty() {
            writeln!(f, "\nnothing was found that holds it up")?;
        }
        if !self.next.is_empty() {
            writeln!(f, "\nnext")?;
            self.next.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        if !self.unseen.is_empty() {
            writeln!(f, "\nnot seen")?;
            self.unseen.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;

    use super::*;
    use crate::data_plane::flavor::running::RouterState;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
    }

    /// `name flavor MADE [UNREADY SINCE]`, in minutes.
    fn pods(lines: &[&str]) -> Vec<PodDiagnosis> {
        let pod = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let reported = RouterState::Reports(words[1].to_owned());
            let labels = BTreeMap::from([("app".to_owned(), "edge".to_owned())]);
            let unready_since = words.get(3).map(|minute| at(minute.parse().unwrap()));
            let pod = Pod { name: words[0].to_owned(), labels, reported };
            PodDiagnosis { pod, made: at(words[2].parse().unwrap()), unready_since }
        };
        lines.iter().map(pod).collect()
    }

    fn diagnose(kind: GatewayKind, lines: &[&str], producer_since: Option<i64>) -> Diagnosis {
        let subject = GatewayRef { kind, name: NamespacedName::new("kong", "edge") };
        let labels = BTreeMap::from([("app".to_owned(), "edge".to_owned())]);
        let producer = Producer { name: NamespacedName::new("kong", "kic"), since: producer_since.map(at) };
        Diagnosis::of(&Symptoms {
            subject: &subject,
            says: "says expressions".to_owned(),
            pods: &pods(lines),
            services: &[Selector { service: "edge-admin".to_owned(), labels }],
            producer: producer_since.map(|_| &producer),
            unseen: Vec::new(),
            now: at(100),
        })
    }

    #[rstest]
    #[case::well(&["a expressions 10", "b expressions 10"], Some(20), &[], &[])]
    #[case::just_started(&["a expressions 10", "b expressions 100 100"], Some(0), &[], &[])]
    #[case::rolling_in_place(
        &["a traditional 10", "b traditional 10", "c expressions 50 50"],
        Some(0),
        &["pods behind Service edge-admin run different router flavors (expressions: c; traditional: a, b)", "a pod does not become ready (expressions: c)"],
        &["kubectl -n kong rollout undo deployment/edge", "interlock flavor plan deployment/edge -n kong --to expressions --outage"]
    )]
    #[case::latched(
        &["a expressions 50 50", "b expressions 50 50"],
        Some(0),
        &["pods do not become ready (expressions: a, b)", "the configuration producer kong/kic has run since before every pod of the gateway: it keeps to the flavor of pods that are gone"],
        &["kubectl -n kong rollout restart deployment/kic"]
    )]
    #[case::producer_is_younger(
        &["a expressions 50 50"], Some(60), &["a pod does not become ready (expressions: a)"], &["kubectl -n kong logs a --all-containers"]
    )]
    #[case::no_producer(&["a expressions 50 50"], None, &["a pod does not become ready (expressions: a)"], &["kubectl -n kong logs a --all-containers"])]
    #[case::nothing_runs(&[], Some(0), &[], &[])]
    fn deployments(
        #[case] lines: &[&str],
        #[case] producer: Option<i64>,
        #[case] holds: &[&str],
        #[case] next: &[&str],
    ) {
        let found = diagnose(GatewayKind::Deployment, lines, producer);
        let what: Vec<&str> = found.holds.iter().map(|hold| hold.what.as_str()).collect();
        assert_eq!(what, holds);
        assert_eq!(found.next, next);
        assert_eq!(found.is_well(), holds.is_empty());
    }

    #[test]
    fn a_data_plane_is_set_back() {
        let found = diagnose(GatewayKind::DataPlane, &["a traditional 10", "c expressions 50 50"], None);
        assert_eq!(
            found.to_string(),
            "DataPlane kong/edge: says expressions
  a: reports traditional; ready
  c: reports expressions; not ready for 50 min

held up: pods behind Service edge-admin run different router flavors (expressions: c; traditional: a)
  a producer takes up the flavor of whichever answers it first, and the others get a configuration that they may not read

held up: a pod does not become ready (expressions: c)
  a pod is ready only with a configuration that its flavor can read, and a rollout waits for it

next
  kubectl -n kong edit dataplanes.gateway-operator.konghq.com edge   # KONG_ROUTER_FLAVOR=traditional
  interlock flavor plan dataplane/edge -n kong --to expressions --outage
"
        );
    }

    #[rstest]
    #[case(0, "0 s")]
    #[case(119, "119 s")]
    #[case(120, "2 min")]
    #[case(7200, "2 h")]
    #[case(-5, "0 s")]
    fn ages(#[case] seconds: i64, #[case] reported: &str) {
        let since = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(age(Timestamp::from_second(1_800_000_000 + seconds).unwrap(), since), reported);
    }
}
