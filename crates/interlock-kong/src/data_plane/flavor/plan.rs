//! The steps from one flavor to another: one hop at a time, each validated by the same rules as the
//! change itself, and the alternative through an outage.

use std::fmt;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use serde_json::{Value, json};

use super::Flavor;
use super::change::{Finding, Findings, FlavorChange};
use super::compatibility::ProducerConfiguration;
use super::environment::Unknown;
use super::gateway::Gateway;
use super::gateway_ref::{FlavorSpec, GatewayKind, GatewayRef};
use super::group::ProducerGroup;
use super::reading::{Effective, FlavorReading};
use super::routes::Inventory;
use super::validate::judge;
use super::version::KongVersion;

/// The input of a plan.
pub struct Question<'a> {
    pub subject: &'a GatewayRef,
    /// The flavor of its pods, and whether changes are staged.
    pub live: &'a FlavorSpec,
    /// The flavor that they shall run with.
    pub to: Flavor,
    /// The existing routes.
    pub routes: &'a Inventory,
    /// The configuration that the producer sends.
    pub configuration: ProducerConfiguration,
    /// The other gateways that the producer serves.
    pub group: Option<&'a ProducerGroup>,
    /// Whether to plan the way through an outage.
    pub outage: bool,
    /// Notes on how all this was observed.
    pub notes: &'a [String],
}

/// The steps to another flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorPlan {
    subject: GatewayRef,
    reading: FlavorReading,
    to: Flavor,
    before: Vec<String>,
    hops: Vec<Hop>,
    outage: Option<Hop>,
}

/// One change of flavor in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hop {
    from: Flavor,
    to: Flavor,
    way: Way,
    findings: Findings,
    /// The findings for a rolling change, if this one is staged.
    in_place: Vec<Finding>,
    steps: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A second set of pods takes it, and is promoted.
    Staged,
    /// The pods are replaced one by one.
    Rolling,
    /// No pod runs while it changes.
    Outage,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum NoPlan {
    /// The current flavor is unknown.
    #[error("{subject} runs with {effective}: {remedy}")]
    Start {
        subject: GatewayRef,
        /// The state of its flavor.
        effective: String,
        remedy: String,
    },
    /// It needs an upgrade of Kong first.
    #[error(
        "{subject} runs a Kong before 3.0, which has no router flavors: upgrade it with KONG_ROUTER_FLAVOR=traditional first"
    )]
    Legacy { subject: GatewayRef },
}

impl FlavorPlan {
    /// The steps from the current flavor to the wanted one.
    pub fn make(question: &Question<'_>) -> Result<Self, NoPlan> {
        let subject = question.subject.clone();
        let reading = &question.live.reading;
        let from = match &reading.effective {
            Effective::Known(flavor) => *flavor,
            Effective::Legacy => return Err(NoPlan::Legacy { subject }),
            other => {
                return Err(NoPlan::Start {
                    subject,
                    effective: other.to_string(),
                    remedy: remedy(other, &question.live.reading.container),
                });
            }
        };
        // A DataPlane can stage; a Deployment replaces its pods one by one, or stops.
        let way = if subject.kind == GatewayKind::DataPlane { Way::Staged } else { Way::Rolling };
        let stations = stations(from, question.to);
        let pairs = stations.iter().zip(stations.iter().skip(1));
        let hops = pairs.map(|(from, to)| hop(question, *from, *to, way)).collect();
        let outage =
            (question.outage && from != question.to).then(|| hop(question, from, question.to, Way::Outage));
        Ok(Self {
            before: before(question),
            reading: reading.clone(),
            to: question.to,
            hops,
            outage,
            subject,
        })
    }

    /// Whether every hop would be allowed, or the way through an outage, where that was asked for.
    pub fn works(&self) -> bool {
        self.refusal(false).is_none() || self.outage.is_some() && self.refusal(true).is_none()
    }

    /// Why the first hop that would be refused is, with `outage` the way through an outage; `None` where all are
    /// allowed.
    pub fn refusal(&self, outage: bool) -> Option<String> {
        let staged = self.hops.iter().filter(|_| !outage);
        staged.chain(self.outage.iter().filter(|_| outage)).find_map(|hop| {
            let denied = hop.findings.denied.first()?;
            Some(format!("{} -> {}: {denied}", hop.from, hop.to))
        })
    }

    /// The warnings of the hop between two flavors.
    pub fn warnings(&self, from: Flavor, to: Flavor) -> Vec<String> {
        let hop = self.hops.iter().find(|hop| (hop.from, hop.to) == (from, to));
        hop.into_iter().flat_map(|hop| &hop.findings.warned).map(ToString::to_string).collect()
    }

    /// The plan for programs.
    pub fn json(&self) -> Value {
        json!({
            "gateway": self.subject.to_string(),
            "from": self.reading.effective.to_string(),
            "to": self.to.to_string(),
            "kongVersion": self.reading.version.map(|version| version.to_string()),
            "allowed": self.works(),
            "before": if self.hops.is_empty() { &[][..] } else { &self.before },
            "hops": self.hops.iter().map(Hop::json).collect::<Vec<_>>(),
            "outage": self.outage.as_ref().map(Hop::json),
        })
    }
}

impl Hop {
    fn json(&self) -> Value {
        let findings = |findings: &[Finding]| {
            let found = findings.iter().map(|found| json!({"rule": found.rule.id(), "text": found.text}));
            found.collect::<Vec<_>>()
        };
        json!({
            "from": self.from.to_string(),
            "to": self.to.to_string(),
            "way": self.way.as_str(),
            "allowed": self.findings.denied.is_empty(),
            "refused": findings(&self.findings.denied),
            "warnings": findings(&self.findings.warned),
            "refusedInPlace": findings(&self.in_place),
            "steps": self.steps,
        })
    }
}

impl Way {
    fn as_str(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Rolling => "rolling",
            Self::Outage => "outage",
        }
    }
}

/// How to make a flavor known.
fn remedy(effective: &Effective, container: &str) -> String {
    let set = format!("set KONG_ROUTER_FLAVOR on container \"{container}\" to what its pods report first");
    match effective {
        Effective::Unknown(Unknown::Unseen(key)) => format!(
            "with -f give {} with --objects; of a gateway of the cluster get the right to read it",
            key.source
        ),
        Effective::Unknown(Unknown::NoProxy) => {
            "call the container that runs Kong so, or give another gateway".to_owned()
        }
        Effective::Unknown(Unknown::ManyProxies) => "leave one of that name".to_owned(),
        Effective::Unknown(Unknown::NoKong | Unknown::ManyKongs(_) | Unknown::NoContainer(_)) => {
            format!("name it in the annotation {}, or give another gateway", meta::KONG_CONTAINER)
        }
        // Kong's image does not start with both.
        Effective::Exclusive | Effective::Unknown(Unknown::File(_)) => {
            format!("take KONG_ROUTER_FLAVOR_FILE out, and {set}")
        }
        // Settings beside it would not count.
        Effective::Unknown(Unknown::Command) => format!("take it out there, and {set}"),
        _ => set,
    }
}

/// What comes before any hop, where a stored spec has another flavor than the pods run.
pub fn staged(stored: &FlavorReading, running: &Gateway) -> Option<String> {
    let GatewayRef { kind, name: NamespacedName { namespace, name } } = &running.subject;
    let differs = stored.effective != running.spec.reading.effective;
    (*kind == GatewayKind::DataPlane && running.spec.staged && differs).then(|| {
        format!(
            "router flavor {} is staged: first promote it (`interlock rollout promote {name} -n {namespace}`) or take it \
             back (`interlock rollout abort {name} -n {namespace}`)",
            stored.effective
        )
    })
}

/// The command that prints the plan for a gateway of the cluster.
pub fn command(subject: &GatewayRef, to: Flavor) -> String {
    format!("interlock flavor plan {} --to {to}", argument(subject))
}

/// The command, in quotes, that prints a gateway of the cluster.
pub fn show(subject: &GatewayRef) -> String {
    format!("`kubectl get {} -o yaml`", argument(subject))
}

fn argument(subject: &GatewayRef) -> String {
    let kind = match subject.kind {
        GatewayKind::DataPlane => "dataplane",
        GatewayKind::Deployment => "deployment",
    };
    format!("{kind}/{} -n {}", subject.name.name, subject.name.namespace)
}

/// The flavors of the plan, one step apart.
pub fn stations(from: Flavor, to: Flavor) -> Vec<Flavor> {
    let inside = |flavor: &Flavor| (from.min(to)..=from.max(to)).contains(flavor);
    let mut stations: Vec<Flavor> = Flavor::ALL.into_iter().filter(inside).collect();
    if from > to {
        stations.reverse();
    }
    stations
}

/// Preparations and notes before the first hop.
fn before(question: &Question<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mixed = KongVersion::new(3, 7, 0);
    match question.live.reading.version {
        None => lines.push(format!(
            "the image does not tell the version of Kong: judged as {}; name it in the tag",
            KongVersion::ASSUMED
        )),
        Some(version) if version < mixed => {
            lines.push(format!(
                "upgrade from Kong {version} to 3.7 or later, in a change of its own (recommended)"
            ));
        }
        Some(_) => {}
    }
    if question.subject.kind == GatewayKind::DataPlane && !question.live.staged {
        lines.push("set spec.deployment.rollout.strategy.blueGreen, in a change of its own".to_owned());
    }
    lines.push(format!(
        "let the readiness probe of container \"{}\" ask /status/ready: /status answers without a configuration",
        question.live.reading.container
    ));
    if *question.routes == Inventory::Unseen {
        lines.push(
            "not seen: routes (Ingress, HTTPRoute, GRPCRoute, TLSRoute); give them with --objects".to_owned(),
        );
    }
    lines.extend_from_slice(question.notes);
    lines
}

fn hop(question: &Question<'_>, from: Flavor, to: Flavor, way: Way) -> Hop {
    let judged = |staged: bool, stopped: bool| {
        let live = FlavorSpec { reading: question.live.reading.with(from), staged };
        let new = FlavorSpec { reading: question.live.reading.with(to), staged };
        judge(&FlavorChange {
            subject: question.subject,
            live: Some(&live.reading),
            stored: Some(&live),
            new: &new,
            stopped,
            routes: question.routes,
            configuration: question.configuration,
            group: question.group,
            allowance: None,
        })
    };
    let findings = judged(way == Way::Staged, way == Way::Outage);
    let in_place = if way == Way::Staged { judged(false, false).denied } else { Vec::new() };
    Hop { from, to, way, findings, in_place, steps: steps(question, from, to, way) }
}

fn steps(question: &Question<'_>, from: Flavor, to: Flavor, way: Way) -> Vec<String> {
    let container = &question.live.reading.container;
    let set = format!("set KONG_ROUTER_FLAVOR={to} on container \"{container}\", and change nothing else");
    let version = question.live.reading.version.map(|v| format!(" and version {v}")).unwrap_or_default();
    let reports = |pods: &str| {
        format!("check: GET / of the Admin API of every {pods} pod reports router_flavor={to}{version}")
    };
    let ready = |pods: &str| format!("check: GET /status/ready answers 200 on every {pods} pod");
    let same = "check: the preview has as many routes as the live pods, of the same names".to_owned();
    let switches = from.dialect() != to.dialect();
    let NamespacedName { namespace, name } = &question.subject.name;
    let promote = format!("interlock rollout promote {name} -n {namespace} --wait");
    match (way, switches) {
        (Way::Staged, false) => vec![
            set,
            reports("preview"),
            ready("preview"),
            same,
            format!("promote (`{promote}`); the configuration producer stays as it is"),
        ],
        (Way::Staged, true) => vec![
            set,
            reports("preview"),
            "start a second ingress controller against the preview's admin Service; it takes up the flavor that it \
             finds there"
                .to_owned(),
            ready("preview"),
            same,
            format!(
                "stop the live ingress controller, promote (`{promote}`), start it again, so that it takes up the new \
                 flavor"
            ),
            "check: its first push succeeded; then stop the second one".to_owned(),
        ],
        (Way::Rolling, switches) => {
            let mut steps = vec![set, ready("new"), reports("new")];
            if switches {
                steps.push("restart the ingress controller when all pods run it".to_owned());
            }
            steps
        }
        (Way::Outage, _) => vec![
            "stop the ingress controller".to_owned(),
            "scale the gateway to 0 and wait until no pod is left".to_owned(),
            set,
            "scale back".to_owned(),
            reports("new"),
            "start the ingress controller; it takes up the new flavor".to_owned(),
            ready("new"),
        ],
    }
}

impl fmt::Display for FlavorPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = if self.reading.said { "" } else { " (the image's default)" };
        let from = &self.reading.effective;
        let version = self.reading.version.map_or("of unknown version".to_owned(), |v| v.to_string());
        writeln!(f, "{}: {from}{default} -> {}, Kong {version}", self.subject, self.to)?;
        if self.hops.is_empty() {
            return writeln!(f, "\nnothing to do: it runs with {} already", self.to);
        }
        writeln!(f, "\nbefore")?;
        self.before.iter().try_for_each(|line| writeln!(f, "  - {line}"))?;
        for (number, hop) in self.hops.iter().enumerate() {
            writeln!(f, "\nhop {} of {}: {hop}", number + 1, self.hops.len())?;
        }
        match &self.outage {
            Some(hop) => writeln!(f, "\nthrough an outage: {hop}")?,
            None => writeln!(f, "\nthrough an outage: see --outage")?,
        }
        match self.subject.kind {
            GatewayKind::DataPlane => writeln!(
                f,
                "\nthe way back: before a promotion `interlock rollout abort {} -n {}`; after it, the hops in reverse",
                self.subject.name.name, self.subject.name.namespace
            ),
            GatewayKind::Deployment => writeln!(f, "\nthe way back: the hops in reverse"),
        }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Staged => "staged",
            Way::Rolling => "rolling",
            Way::Outage => "with no pod running",
        };
        let verdict = if self.findings.denied.is_empty() { "allowed" } else { "REFUSED" };
        write!(f, "{} -> {}, {way}: {verdict}", self.from, self.to)?;
        for denied in &self.findings.denied {
            write!(f, "\n  refused {denied}")?;
        }
        for warned in &self.findings.warned {
            write!(f, "\n  warning {warned}")?;
        }
        if self.findings.denied.is_empty() {
            for (number, step) in self.steps.iter().enumerate() {
                write!(f, "\n  {}. {step}", number + 1)?;
            }
        }
        for denied in &self.in_place {
            write!(f, "\n  without blueGreen: refused {denied}")?;
        }
        Ok(())
    }
}
