//! Gateways: router flavors change only in steps that work, and DataPlanes carry a last-applied
//! annotation with their live spec.
//!
//! The new spec is compared with the live one: for a DataPlane that of its last-applied annotation, for
//! a Deployment the template of its pods. Mutation sets only the annotation.

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::endpoint::WebhookEndpoint;
use interlock_core::admission::ids::REQUEST_UNKNOWN;
use interlock_core::admission::lister::CacheState;
use interlock_core::admission::request::{Operation, Request};
use interlock_core::admission::review::ReviewObject;
use interlock_core::api::canonical;
use interlock_core::api::interlock::RuleAction;
use interlock_core::api::json;
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::rule::RuleGroup;
use interlock_core::api::stamp::SpecHash;
use interlock_core::kinds::capabilities::DATA_PLANES;

use self::last_applied::{Live, WantedStamp, text_of};
use self::rollout::RolloutChange;
use super::flavor::change::{Finding, Findings, FlavorChange};
use super::flavor::compatibility::ProducerConfiguration;
use super::flavor::environment::Unknown;
use super::flavor::flavor_override::{ChangeId, FlavorOverride};
use super::flavor::gateway::Gateway;
use super::flavor::gateway_ref::{GatewayKind, GatewayRef};
use super::flavor::inventory::{GatewayContext, RolledOut};
use super::flavor::reading::{Effective, FILE_VARIABLE, FlavorReading, VARIABLE};
use super::flavor::validate::judge as judge_change;
use super::flavor::{Flavor, plan};
use super::validation;
use super::validation::children;
use crate::api::{DataPlaneSpec, PROXY};
use crate::data_plane::gateways;
use crate::data_plane::rules::ids::{
    DATA_PLANE_DATABASE, DATA_PLANE_PORTS, DATA_PLANE_STAGED, FLAVOR_REGEX, FLAVOR_ROUTES, FLAVOR_STAGED,
    FLAVOR_UNKNOWN, FLAVOR_UNSTAGED, FLAVOR_VERSION,
};

mod guarded_sources;
pub mod ids;
mod last_applied;
mod rollout;

/// Decides on a DataPlane.
pub fn decide_data_plane(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    decide(GatewayKind::DataPlane, request, context)
}

/// Decides on a Deployment that runs Kong.
pub fn decide_deployment(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    decide(GatewayKind::Deployment, request, context)
}

fn decide(kind: GatewayKind, request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let (object, old) = match &request.operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return Decision::allow(),
    };
    if context.endpoint == WebhookEndpoint::Sources {
        return guarded_sources::patch(kind, object, old);
    }
    let mutates = context.endpoint == WebhookEndpoint::Mutate;
    if mutates && kind == GatewayKind::Deployment {
        return Decision::allow();
    }
    let subject = GatewayRef { kind, name: NamespacedName::new(request.namespace, request.name) };
    let gateway_context = gateways(context).context_of(&subject);
    let flavors = context.lister.actions(request.namespace).group(RuleGroup::Flavors);
    let evaluation =
        Evaluation { subject, gateway_context, flavors, guarded: gateways(context).overrides_guarded() };
    if kind == GatewayKind::Deployment {
        return evaluation.flavors(object, old, None);
    }
    let text = old.and_then(|old| old.metadata.annotations.stamp_text());
    let kept = |uid: &str, hash: &SpecHash| gateways(context).live_spec(&evaluation.subject.name, uid, hash);
    let live = old.map(|old| Live::of(old, text.as_deref(), kept));
    // Knowledge of a flavor may change between the calls: only mutation writes it.
    let flavor_of = |spec: &str| mutates.then(|| evaluation.flavor_of(spec, live.as_ref())).flatten();
    let literal = live.as_ref().and_then(|live| live.literal_flavor(&evaluation.subject));
    let wanted = WantedStamp::of(request, object, old.zip(live.as_ref()), flavor_of, literal);
    if mutates {
        return wanted.patch(object, old);
    }
    if let Some(refusal) = wanted.refusal(&evaluation.subject, object, live.as_ref()) {
        return refusal.into();
    }
    let mut problems = match evaluation.shape(object, old) {
        Ok(problems) => problems,
        Err(unreadable) => return (*unreadable).into(),
    };
    let change = RolloutChange::of(&evaluation.subject, object, old, live.as_ref());
    let is_on = !matches!(context.lister.cache(DATA_PLANES.name), CacheState::Unavailable(_));
    let made = change.of_spec(is_on).problems();
    let named = || old.is_none().then(|| children::name_refusal(&evaluation.subject)).flatten();
    let misshapen = named().or_else(|| evaluation.misshapen(&mut problems));
    let mut verdict = match misshapen.or_else(|| children::refusal(&evaluation.subject, made.denied)) {
        Some(refusal) => refusal.into(),
        None => evaluation.flavors(object, old, live.as_ref()),
    };
    let mut rollout = change.findings();
    if verdict.refusal().is_none()
        && let Some(denial) = evaluation.rollout(&mut rollout, live.as_ref(), old)
    {
        verdict.outcome = Outcome::Refuse(Box::new(denial));
    }
    let warned = problems.warned.iter().chain(&made.warned).chain(&rollout.warned);
    warned.for_each(|finding| verdict.warn_in_full(finding.rule, &finding.text));
    verdict
}

/// Path of the ports of the Service.
const INGRESS_PORTS: &str = "spec.network.services.ingress.ports";

/// The gateway of a request, and its context.
struct Evaluation {
    subject: GatewayRef,
    gateway_context: GatewayContext,
    /// The action of the flavor rules in this namespace.
    flavors: RuleAction,
    /// Whether the policy for overrides is in force; why not.
    guarded: Result<(), String>,
}

impl Evaluation {
    /// The decision of the flavor rules.
    fn flavors(
        &self,
        object: &ReviewObject<'_>,
        old: Option<&ReviewObject<'_>>,
        live: Option<&Live<'_>>,
    ) -> Decision {
        if self.flavors == RuleAction::Off {
            return Decision::allow();
        }
        let new = match self.read(text_of(object), object) {
            Ok(gateway) => gateway,
            Err(refusal) => return (*refusal).into(),
        };
        // An unreadable stored spec does not restrict the change.
        let stored = old.and_then(|old| self.read(text_of(old), old).ok());
        let allowance = old.and_then(|old| allowance(object, old));
        let allowance = allowance.map(|allowance| allowance.guarded(self.guarded.clone()));
        let stamped = live.zip(old).and_then(|(live, old)| self.reading(live, old));
        // Pods of an earlier template may run beside those of the stored one, or instead of them.
        let rolled_out = match &self.gateway_context.rolled_out {
            RolledOut::With(reading) => stored.as_ref().and(Some(reading)),
            RolledOut::Never | RolledOut::Untold(_) => None,
        };
        let runs = stamped.as_ref().or(rolled_out).or(stored.as_ref().map(|stored| &stored.spec.reading));
        let mut findings = judge_change(&FlavorChange {
            subject: &self.subject,
            live: runs,
            stored: stored.as_ref().map(|stored| &stored.spec),
            new: &new.spec,
            stopped: new.stopped && stored.as_ref().is_some_and(|stored| stored.stopped),
            routes: &self.gateway_context.routes,
            configuration: ProducerConfiguration::Usual,
            group: self.gateway_context.group.as_ref(),
            allowance: allowance.as_ref(),
        });
        if let (RolledOut::Untold(why), Some(stored)) = (&self.gateway_context.rolled_out, &stored)
            && stored.spec.reading.effective != new.spec.reading.effective
        {
            findings.warned.push(Finding::new(
                FLAVOR_UNKNOWN,
                format!(
                    "cannot determine what the pods of {} run with, so judged by what is stored: a rollout is under way, and \
                     {why}",
                    self.subject
                ),
            ));
        }
        if let (Some(Effective::Unknown(why @ Unknown::Revision(_))), Some(stored)) =
            (stamped.as_ref().map(|stamped| &stamped.effective), &stored)
            && stored.spec.reading.effective != new.spec.reading.effective
        {
            findings.warned.push(Finding::new(
                FLAVOR_UNKNOWN,
                format!(
                    "cannot determine what the pods of {} run with: {why}; ask them (`interlock flavor diagnose`)",
                    self.subject
                ),
            ));
        }
        self.verdict(findings, runs, &new)
    }

    /// The flavor of the live pods according to the last-applied annotation.
    fn reading(&self, live: &Live<'_>, old: &ReviewObject<'_>) -> Option<FlavorReading> {
        let Some(spec) = live.spec() else { return live.referenced(&self.subject) };
        let reading = self.read(spec, old).ok()?.spec.reading;
        if let Some(flavor) = live.literal_flavor(&self.subject) {
            return Some(reading.with(flavor));
        }
        // A flavor that cannot be read now may have been recorded when it became live.
        Some(match (&reading.effective, live.flavor()) {
            (Effective::Unknown(_), Some(flavor)) => reading.with(flavor),
            _ => reading,
        })
    }

    /// The flavor of a spec, if it is known or was when it became live.
    fn flavor_of(&self, spec: &str, live: Option<&Live<'_>>) -> Option<Flavor> {
        let gateway = Gateway::parse(self.subject.clone(), spec, "{}", &self.gateway_context.sources).ok()?;
        let before = || live.filter(|live| live.is_of(spec))?.flavor();
        gateway.spec.reading.effective.known().or_else(before)
    }

    fn read(&self, spec: &str, object: &ReviewObject<'_>) -> Result<Gateway, Box<Denial>> {
        let status = object.status.map_or("{}", |status| status.get());
        Gateway::parse(self.subject.clone(), spec, status, &self.gateway_context.sources)
            .map_err(|error| self.unreadable(spec, &error))
    }

    fn unreadable(&self, spec: &str, error: &serde_json::Error) -> Box<Denial> {
        let field = json::of_error(spec, error).field("spec");
        let sentence = format!("{} cannot be read", self.subject);
        let refusal = Denial::invalid(REQUEST_UNKNOWN, sentence, vec![field]);
        Box::new(refusal.next(format!("write it as its schema says ({})", self.explain())))
    }

    /// Violations of DataPlane validation, whatever the flavor; those of the old object may stay.
    fn shape(
        &self,
        object: &ReviewObject<'_>,
        old: Option<&ReviewObject<'_>>,
    ) -> Result<Findings, Box<Denial>> {
        let problems = |object: &ReviewObject<'_>| {
            serde_json::from_str::<Option<DataPlaneSpec>>(text_of(object)).map(|spec| {
                validation::problems(
                    &spec.unwrap_or_default(),
                    &self.subject.name.namespace,
                    &self.gateway_context.sources,
                )
            })
        };
        let mut found = problems(object).map_err(|error| self.unreadable(text_of(object), &error))?;
        if found != Findings::default() {
            let before = old.and_then(|old| problems(old).ok()).unwrap_or_default();
            // Of several ports, one that is put right leaves another to be named.
            let was =
                |finding: &Finding| before.denied.iter().any(|old| old.sentence() == finding.sentence());
            found.denied.retain(|finding| !was(finding));
            found.warned.retain(|finding| !before.warned.contains(finding));
        }
        Ok(found)
    }

    /// A denial for the first of these problems, if there is one.
    fn misshapen(&self, problems: &mut Findings) -> Option<Denial> {
        let first = (!problems.denied.is_empty()).then(|| problems.denied.remove(0))?;
        let template = self.subject.kind.template();
        let container = format!("container \"{PROXY}\"");
        let (path, detail, next) = match first.rule {
            DATA_PLANE_PORTS => (
                INGRESS_PORTS,
                format!("{container} of {template} does not listen there"),
                match first.text.ends_with(validation::BY_DEFAULT) {
                    true => {
                        "let each targetPort be a port that Kong listens on, or set KONG_PROXY_LISTEN to more"
                    }
                    false => {
                        "let each targetPort be a port that the variable names, or leave the variable out"
                    }
                },
            ),
            DATA_PLANE_DATABASE => {
                (template, container, "set KONG_DATABASE of this container to \"off\", or leave it out")
            }
            _ => (template, container, "name the image of this container, such as kong:3.9"),
        };
        let more: Vec<String> = problems.denied.drain(..).map(|finding| finding.to_string()).collect();
        let refusal = Denial::invalid(
            first.rule,
            first.text,
            vec![ViolationField::new(path, FieldReason::Invalid, detail)],
        )
        .next(format!("{next} ({})", self.explain()));
        Some(if more.is_empty() { refusal } else { refusal.why(more.join("; ")) })
    }

    /// A denial for the first of the findings about a rollout, if there is one.
    fn rollout(
        &self,
        findings: &mut Findings,
        live: Option<&Live<'_>>,
        old: Option<&ReviewObject<'_>>,
    ) -> Option<Denial> {
        let first = (!findings.denied.is_empty()).then(|| findings.denied.remove(0))?;
        let (path, detail, next) = match first.rule {
            DATA_PLANE_STAGED => {
                ("spec.deployment.rollout", "something is staged".to_owned(), rollout::settle(&self.subject))
            }
            _ => (
                "metadata.annotations",
                meta::SERVICE_SELECTOR_OVERRIDE.to_owned(),
                rollout::without_override(&self.subject),
            ),
        };
        let staged = live.zip(old).filter(|_| first.rule == DATA_PLANE_STAGED);
        let staged = staged.and_then(|(live, old)| rollout::staged_fields(live, old));
        let refusal = Denial::invalid(
            first.rule,
            first.text,
            vec![ViolationField::new(path, FieldReason::Forbidden, detail)],
        )
        .next(next);
        Some(match staged {
            Some(fields) => refusal.why(format!("staged: {fields}")),
            None => refusal,
        })
    }

    /// The command that prints the fields of this kind.
    fn explain(&self) -> String {
        let kind = match self.subject.kind {
            GatewayKind::DataPlane => "dataplanes",
            GatewayKind::Deployment => "deployments",
        };
        format!("`kubectl explain {kind}.spec` tells what its fields take")
    }

    /// The remedy for a flavor that this gateway must not change to.
    fn remedy(&self, to: &Effective) -> String {
        let show = plan::show(&self.subject);
        match to {
            Effective::Known(to) => format!(
                "keep the flavor that {show} shows, or take the steps that `{} --outage` prints",
                plan::command(&self.subject, *to)
            ),
            Effective::Exclusive => format!("leave {VARIABLE} or {FILE_VARIABLE} out ({show} shows both)"),
            Effective::Invalid(_) => format!("set {VARIABLE} to one of these flavors ({show} shows it)"),
            Effective::Unknown(_) => format!(
                "create what it comes from first, or set {VARIABLE} to the flavor itself ({show} shows where it comes from)"
            ),
            Effective::Legacy => format!("name an image of Kong 3.0 or later ({show} shows the image)"),
        }
    }

    /// The remedy for routes that the other flavor cannot serve: no outage helps them.
    fn mend_routes(&self, runs: Option<&FlavorReading>) -> String {
        let show = plan::show(&self.subject);
        let keep = match runs.map(|runs| &runs.effective) {
            Some(Effective::Legacy) => format!("set {VARIABLE} to traditional ({show} shows the image)"),
            _ => format!("keep the flavor that {show} shows"),
        };
        format!("correct or remove these routes, then send the change again, or {keep}")
    }

    /// The remedy for a Kong that the flavor is too new for.
    fn newer_kong(&self) -> String {
        let show = plan::show(&self.subject);
        format!("name an image of Kong 3.4 or later, in a change of its own, or keep what {show} shows")
    }

    /// The remedy where another flavor is staged.
    fn settle_flavor(&self) -> String {
        let arguments = rollout::arguments(&self.subject);
        format!(
            "look at both flavors ({}), then promote the staged one (`interlock rollout promote {arguments}`) or take \
             it back (`interlock rollout abort {arguments}`), and send the change again",
            plan::show(&self.subject)
        )
    }

    fn verdict(&self, findings: Findings, runs: Option<&FlavorReading>, new: &Gateway) -> Decision {
        let mut verdict = Decision::allow();
        let mut denied = findings.denied.into_iter();
        if self.flavors == RuleAction::Deny
            && let Some(first) = denied.next()
        {
            let to = &new.spec.reading.effective;
            let detail = match runs {
                Some(runs) => format!("router flavor {} -> {to}", runs.effective),
                None => format!("router flavor {to}"),
            };
            let mut refusal = Denial::invalid(
                first.rule,
                first.text,
                vec![ViolationField::new(self.subject.kind.template(), FieldReason::Forbidden, detail)],
            );
            let others: Vec<String> = denied.map(|finding| finding.to_string()).collect();
            if !others.is_empty() {
                refusal = refusal.why(others.join("; "));
            }
            let is_staged = [FLAVOR_STAGED, FLAVOR_UNSTAGED].contains(&refusal.rule);
            let is_of_routes = [FLAVOR_ROUTES, FLAVOR_REGEX].contains(&refusal.rule);
            let next = match () {
                () if is_staged => self.settle_flavor(),
                () if is_of_routes => self.mend_routes(runs),
                () if refusal.rule == FLAVOR_VERSION => self.newer_kong(),
                () => self.remedy(to),
            };
            verdict = refusal.next(next).into();
        } else {
            for finding in denied {
                verdict.admit(finding.rule, &finding.text);
            }
        }
        for finding in findings.warned {
            verdict.warn_in_full(finding.rule, &finding.text);
        }
        verdict
    }
}

/// The override in the annotation of an object for this change; the API server's policy checks the
/// right of its writer.
fn allowance(new: &ReviewObject<'_>, old: &ReviewObject<'_>) -> Option<FlavorOverride> {
    let text = new.metadata.annotations.own_text(meta::ALLOW_FLAVOR)?;
    let uid = old.metadata.uid.as_deref().unwrap_or_default();
    let generation = old.metadata.generation.map_or("0", |raw| raw.get());
    FlavorOverride::read(Some(&text), || ChangeId::of(uid, generation, &canonical::hash(text_of(new))))
}
