//! ConfigMaps and Secrets that the flavors of gateways come from: RF18.
//!
//! Pods pick up such a change one by one, whenever they start, so it is validated as an in-place change
//! of every gateway whose live pods it reaches, whatever is staged there. If only the staged template,
//! or the one being rolled out, uses the source, it is validated as a change of that template.
//!
//! A label selects the sources whose changes admission sees. Its removal is validated like a deletion,
//! as later changes would go unseen: the label stays as long as a gateway refers to the source.

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::endpoint::WebhookEndpoint;
use interlock_core::admission::request::{Operation, Request};
use interlock_core::admission::review::ReviewObject;
use interlock_core::api::canonical;
use interlock_core::api::interlock::RuleAction;
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::rule::RuleGroup;
use interlock_core::kinds::namespace::is_terminating;
use serde_json::{Value, json};

use crate::data_plane::flavor::change::{Finding, Findings, FlavorChange};
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::flavor_override::{ChangeId, FlavorOverride};
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::gateway_ref::{FlavorSpec, GatewayRef};
use crate::data_plane::flavor::guarded_sources;
use crate::data_plane::flavor::inventory::FlavorDependent;
use crate::data_plane::flavor::plan;
use crate::data_plane::flavor::reading::{Effective, FlavorReading};
use crate::data_plane::flavor::sources::{FlavorSource, GivenSources, KeyLookup, SourceKind, Sources};
use crate::data_plane::flavor::validate::judge as judge_change;
use crate::data_plane::gateways;
use crate::data_plane::rules::ids::FLAVOR_SOURCE;

/// How many gateways a text names; further ones are counted.
const NAMED: usize = 5;

/// Decides on a ConfigMap.
pub fn decide_config_map(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    decide(SourceKind::ConfigMap, request, context)
}

/// Decides on a Secret.
pub fn decide_secret(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    decide(SourceKind::Secret, request, context)
}

fn decide(kind: SourceKind, request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let action = context.lister.actions(request.namespace).group(RuleGroup::Flavors);
    let (new, old) = match &request.operation {
        Operation::Create(_) => return Decision::allow(),
        Operation::Update(change) => (Some(change.object), change.old),
        Operation::Delete(old) => (None, *old),
    };
    // A terminating namespace deletes its contents.
    let goes = new.is_none() && is_terminating(context, request.namespace);
    if context.endpoint == WebhookEndpoint::Mutate || action == RuleAction::Off || goes {
        return Decision::allow();
    }
    let source = FlavorSource { kind, name: NamespacedName::new(request.namespace, request.name) };
    let edit = Edit {
        before: data(&source, old),
        after: new.map(|new| data(&source, new)),
        allowance: new
            .and_then(|new| Some(allowance(new, old)?.guarded(gateways(context).overrides_guarded()))),
        source,
    };
    let mut fed = gateways(context).dependents(&edit.source);
    // Under our label only those gateways count whose author may update the object; its owner's label asks for all.
    if label(old).as_deref() == Some(meta::FLAVOR_SOURCE_OURS) {
        fed.retain(|fed| guarded_sources::is_listed(&fed.stored, &edit.source));
    }
    let reached: Vec<Reached> = fed.iter().filter_map(|fed| edit.reaches(fed, context)).collect();
    let verdict = verdict(&edit, reached, action);
    let unlabelled = new.is_some_and(|new| label(old).is_some() && label(new).is_none());
    match unlabelled.then(|| label_denial(&edit.source, &fed)).flatten() {
        Some(denial) => beside(verdict, denial, action),
        None => verdict,
    }
}

/// The value of the label that makes changes of the object visible.
fn label(object: &ReviewObject<'_>) -> Option<String> {
    let mut found = None;
    object
        .metadata
        .labels?
        .members(|name, value| {
            let value = value.value()?;
            if name.as_str() == meta::FLAVOR_SOURCE {
                found = Some(value.get().trim_matches('"').to_owned());
            }
            Ok(())
        })
        .ok()?;
    found
}

/// Why the label of a source must stay: the gateways that refer to it.
fn label_denial(source: &FlavorSource, fed: &[FlavorDependent]) -> Option<Denial> {
    let gateways = fed.iter().filter_map(|fed| Gateway::subject_of(&fed.stored, &source.name.namespace));
    let gateways: Vec<String> = gateways.map(|gateway| gateway.to_string()).collect();
    let first = gateways.first()?;
    let others = match gateways.len() - 1 {
        0 => String::new(),
        more => format!(" and of {more} more"),
    };
    let field = ViolationField::new(
        format!("metadata.labels[{}]", meta::FLAVOR_SOURCE),
        FieldReason::Forbidden,
        "without it no later change would be judged",
    );
    let denial = Denial::invalid(
        FLAVOR_SOURCE,
        format!(
            "label {} of {source} stays: the router flavor of {first}{others} may come from there",
            meta::FLAVOR_SOURCE
        ),
        vec![field],
    );
    Some(denial.next(format!(
        "leave the label; it can be taken away when no gateway refers to the source any more ({})",
        source.show()
    )))
}

/// Adds a violation to the decision about the data of a source.
fn beside(verdict: Decision, denial: Denial, action: RuleAction) -> Decision {
    match (verdict.outcome, action) {
        (Outcome::Refuse(mut first), _) => {
            first.join(denial);
            Decision { outcome: Outcome::Refuse(first), ..verdict }
        }
        (_, RuleAction::Deny) => {
            Decision { warnings: verdict.warnings, noted: verdict.noted, ..Decision::from(denial) }
        }
        (outcome, RuleAction::Warn | RuleAction::Off) => {
            let mut verdict = Decision { outcome, ..verdict };
            verdict.admit(denial.rule, &denial.sentence);
            verdict
        }
    }
}

/// A change of a source.
struct Edit {
    source: FlavorSource,
    before: GivenSources,
    /// Absent on deletion.
    after: Option<GivenSources>,
    allowance: Option<FlavorOverride>,
}

/// A gateway whose flavor an edit changes.
struct Reached {
    subject: GatewayRef,
    which: Which,
    /// The flavor of its live pods.
    live: Effective,
    before: FlavorReading,
    after: FlavorReading,
    findings: Findings,
}

/// The pods whose flavor the edit changes.
#[derive(Clone, Copy)]
enum Which {
    /// The live pods.
    Live,
    /// The pods of a template that is staged or being rolled out.
    Next,
}

impl Which {
    fn flavor(self) -> &'static str {
        match self {
            Self::Live => "the router flavor",
            Self::Next => "the next router flavor",
        }
    }
}

impl Edit {
    fn reaches(&self, fed: &FlavorDependent, context: &RuleContext<'_>) -> Option<Reached> {
        let namespace = &self.source.name.namespace;
        let subject = Gateway::subject_of(&fed.stored, namespace)?;
        let gateway_context = gateways(context).context_of(&subject);
        // Before and after the edit.
        let both = |read: &dyn Fn(&dyn Sources) -> Option<Gateway>| {
            let with = |data| With { others: &gateway_context.sources, source: &self.source, data };
            let (before, after) = (read(&with(Some(&self.before)))?, read(&with(self.after.as_ref()))?);
            Some((before.spec, after.spec, before.stopped))
        };
        let live = both(&|sources| Gateway::live(&fed.running, namespace, sources).ok().flatten())?;
        let differs = |(before, after, _): &(FlavorSpec, FlavorSpec, bool)| {
            before.reading.effective != after.reading.effective
        };
        let in_place = |spec: &FlavorSpec| FlavorSpec { staged: false, ..spec.clone() };
        let (which, (before, after, stopped)) = if differs(&live) {
            let (before, after, stopped) = &live;
            (Which::Live, (in_place(before), in_place(after), *stopped))
        } else {
            let stored = both(&|sources| Gateway::read(&fed.stored, namespace, sources).ok().flatten())?;
            (Which::Next, Some(stored).filter(differs)?)
        };
        let live = live.0.reading;
        let findings = judge_change(&FlavorChange {
            subject: &subject,
            live: Some(&live),
            stored: Some(&before),
            new: &after,
            stopped,
            routes: &gateway_context.routes,
            configuration: ProducerConfiguration::Usual,
            group: gateway_context.group.as_ref(),
            allowance: self.allowance.as_ref(),
        });
        let live = live.effective;
        Some(Reached { subject, which, live, before: before.reading, after: after.reading, findings })
    }

    /// The keys that decide, as the start of the sentence.
    fn keys(&self, reached: &Reached) -> String {
        let keys = reached.before.keys.iter().chain(&reached.after.keys);
        let mut keys: Vec<&str> =
            keys.filter(|key| key.source == self.source).map(|key| key.key.as_str()).collect();
        keys.dedup();
        match keys.first() {
            Some(key) => format!("{}: key \"{key}\"", self.source),
            None => self.source.to_string(),
        }
    }
}

/// The other sources as known, and this one as in the review.
struct With<'a> {
    others: &'a GivenSources,
    source: &'a FlavorSource,
    data: Option<&'a GivenSources>,
}

impl Sources for With<'_> {
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup {
        match (source == self.source, self.data) {
            (false, _) => self.others.ask(source, key),
            (true, Some(data)) => data.ask(source, key),
            (true, None) => KeyLookup::NoObject,
        }
    }
}

fn data(source: &FlavorSource, object: &ReviewObject<'_>) -> GivenSources {
    let data: Value = object.data.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let (kind, _) = source.kind();
    let metadata = json!({"namespace": source.name.namespace, "name": source.name.name});
    GivenSources::of([&json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data})], "")
}

/// The override in the annotation of a source for this change; a source has no generation.
fn allowance(new: &ReviewObject<'_>, old: &ReviewObject<'_>) -> Option<FlavorOverride> {
    let text = new.metadata.annotations.own_text(meta::ALLOW_FLAVOR)?;
    let content = canonical::hash(new.data.map_or("{}", |raw| raw.get()));
    let uid = old.metadata.uid.as_deref().unwrap_or_default();
    let version = old.metadata.resource_version.as_deref().unwrap_or_default();
    FlavorOverride::read(Some(&text), || ChangeId::of(uid, version, &content))
}

fn verdict(edit: &Edit, reached: Vec<Reached>, action: RuleAction) -> Decision {
    let refused: Vec<&Reached> = reached.iter().filter(|one| !one.findings.denied.is_empty()).collect();
    let mut verdict = match refused.first() {
        Some(first) if action == RuleAction::Deny => refusal(edit, first, &refused).into(),
        _ => Decision::allow(),
    };
    for one in &reached {
        let Reached { subject, which, before, after, findings, .. } = one;
        let what = format!("{} is {} of {subject}", edit.keys(one), which.flavor());
        if verdict.refusal().is_none() {
            let (before, after) = (&before.effective, &after.effective);
            verdict.warn_in_full(
                FLAVOR_SOURCE,
                &format!("{what}: {before} -> {after} as each of its pods starts"),
            );
            findings.denied.iter().for_each(|finding| verdict.admit(finding.rule, &finding.text));
        }
        findings.warned.iter().for_each(|finding| verdict.warn_in_full(finding.rule, &finding.text));
    }
    verdict
}

fn refusal(edit: &Edit, first: &Reached, refused: &[&Reached]) -> Denial {
    let Reached { subject, which, live, before, after, findings } = first;
    let (before, after) = (&before.effective, &after.effective);
    let mut denied = findings.denied.iter();
    let why = denied.next().map(Finding::to_string).unwrap_or_default();
    let detail = format!("router flavor of {subject}: {before} -> {after}");
    let mut refusal = Denial::invalid(
        FLAVOR_SOURCE,
        format!("{} is {} of {subject} (live: {live}); {why}", edit.keys(first), which.flavor()),
        vec![ViolationField::new("data", FieldReason::Forbidden, detail)],
    );
    let mut more: Vec<String> = denied.map(Finding::to_string).collect();
    let others: Vec<String> =
        refused.iter().skip(1).take(NAMED - 1).map(|one| one.subject.to_string()).collect();
    if !others.is_empty() {
        let rest = match refused.len().saturating_sub(NAMED) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        more.push(format!("so it is of {}{rest}", others.join(", ")));
    }
    if !more.is_empty() {
        refusal = refusal.why(more.join("; "));
    }
    match after.known() {
        Some(to) => refusal.next(format!(
            "keep the flavor of {}, or take the steps that `{}` prints",
            plan::show(subject),
            plan::command(subject, to)
        )),
        None => refusal.next(format!(
            "set KONG_ROUTER_FLAVOR in {subject} itself first ({} shows where it comes from), then change its source",
            plan::show(subject)
        )),
    }
}
