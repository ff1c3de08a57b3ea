//! Gateways: a change of router flavor goes in steps that work.
//!
//! Live is what a Deployment ran with when last all its pods were of one template, else what is
//! stored. Nothing is mutated.

use crate::admission::Context;
use crate::admission::door::Door;
use crate::admission::refusal::{Field, FieldReason, Refusal};
use crate::admission::request::{Operation, Request};
use crate::admission::review::Object;
use crate::admission::verdict::Verdict;
use crate::api::canonical;
use crate::api::interlock::Action;
use crate::api::object::NamespacedName;
use crate::api::rule::{Group, Rule};
use crate::rollout::flavor::allowance::{Allowance, ChangeId};
use crate::rollout::flavor::change::Change;
use crate::rollout::flavor::finding::Findings;
use crate::rollout::flavor::gateway::Gateway;
use crate::rollout::flavor::judge::judge as judge_change;
use crate::rollout::flavor::matrix::Configuration;
use crate::rollout::flavor::sources::Sources;
use crate::rollout::flavor::subject::{Subject, SubjectKind};

/// Decides on a gateway.
pub(super) fn judge(
    kind: SubjectKind,
    request: &Request<'_>,
    operation: &Operation<'_>,
    context: &Context<'_>,
) -> Verdict {
    let actions = context.view.actions(request.namespace);
    if context.door == Door::Mutate || actions.group(Group::Flavors) == Action::Off {
        return Verdict::allow();
    }
    let (new_object, old_object) = match operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return Verdict::allow(),
    };
    let subject = Subject { kind, name: NamespacedName::new(request.namespace, request.name) };
    let around = context.view.around(&subject);
    let new = match read(&subject, new_object, &around.sources) {
        Ok(gateway) => gateway,
        Err(refusal) => return (*refusal).into(),
    };
    // What is stored already and cannot be read is nothing to hold on to.
    let old = old_object.and_then(|old| read(&subject, old, &around.sources).ok());
    let allowance = old_object.and_then(|old| allowance(new_object, old));
    // Pods of an earlier template may run beside those of the stored one, or instead of them.
    let stored = old.as_ref().map(|old| &old.spec.reading);
    let live = stored.map(|stored| around.rolled_out.as_ref().unwrap_or(stored));
    let findings = judge_change(&Change {
        subject: &subject,
        live,
        stored: old.as_ref().map(|old| &old.spec),
        new: &new.spec,
        stopped: new.stopped && old.as_ref().is_some_and(|old| old.stopped),
        routes: &around.routes,
        configuration: Configuration::Usual,
        group: around.group.as_ref(),
        allowance: allowance.as_ref(),
    });
    verdict(&subject, findings, old.as_ref(), &new, actions.group(Group::Flavors))
}

/// What the annotation of an object says about this change of it. It is part of what the API
/// server's policy lets somebody write.
fn allowance(new: &Object<'_>, old: &Object<'_>) -> Option<Allowance> {
    let text = new.metadata.annotations.allow_flavor?.text().ok()?;
    let spec = canonical::hash(new.spec.map_or("{}", |raw| raw.get()));
    let uid = old.metadata.uid.as_deref().unwrap_or_default();
    let generation = old.metadata.generation.map_or("0", |raw| raw.get());
    Allowance::read(Some(&text), || ChangeId::of(uid, generation, &spec))
}

fn read(subject: &Subject, object: &Object<'_>, sources: &dyn Sources) -> Result<Gateway, Box<Refusal>> {
    let spec = object.spec.map_or("{}", |raw| raw.get());
    let status = object.status.map_or("{}", |raw| raw.get());
    Gateway::parse(subject.clone(), spec, status, sources).map_err(|error| {
        let field = Field::new("spec", FieldReason::Invalid, error.to_string());
        Box::new(Refusal::invalid(Rule::RequestUnknown, format!("{subject} cannot be read"), vec![field]))
    })
}

fn verdict(
    subject: &Subject,
    findings: Findings,
    old: Option<&Gateway>,
    new: &Gateway,
    action: Action,
) -> Verdict {
    let mut verdict = Verdict::allow();
    let mut denied = findings.denied.into_iter();
    if action == Action::Deny
        && let Some(first) = denied.next()
    {
        let to = &new.spec.reading.effective;
        let detail = match old {
            Some(old) => format!("router flavor {} -> {to}", old.spec.reading.effective),
            None => format!("router flavor {to}"),
        };
        let mut refusal = Refusal::invalid(
            first.rule,
            first.text,
            vec![Field::new(subject.kind.template(), FieldReason::Forbidden, detail)],
        );
        let others: Vec<String> = denied.map(|finding| finding.to_string()).collect();
        if !others.is_empty() {
            refusal = refusal.why(others.join("; "));
        }
        if let Some(to) = to.known() {
            refusal = refusal.next(format!(
                "`interlock flavor plan -f FILE --to {to} --outage` prints the steps that work, FILE being the \
                 object as it runs"
            ));
        }
        verdict = refusal.into();
    } else {
        for finding in denied {
            verdict.admit(finding.rule, &finding.text);
        }
    }
    for finding in findings.warned {
        verdict.tell(finding.rule, &finding.text);
    }
    verdict
}
