//! The condition `Ready` of an idle Instance: whether what its package made is healthy, and
//! whether the kinds of it are served.

use std::collections::BTreeMap;

use super::context::Context;
use super::missing::MISSING_DEPENDENCY;
use super::subject::Subject;
use crate::api::condition::{self, Status, Wanted};
use crate::api::kudo::ExecutionStatus;
use crate::api::meta::{condition as types, plan};
use crate::api::object::Gvk;
use crate::cluster::kinds::Known;
use crate::controllers::observe::SPEAKING;
use crate::plan::drift;
use crate::plan::health::{self, Health};
use crate::plan::kinds;
use crate::plan::rendered::Rendered;
use crate::plan::run::{InstanceId, Run};

/// Plans that make what lasts; others come and go.
const LASTING: [&str; 3] = [plan::DEPLOY, plan::UPGRADE, plan::UPDATE];

/// The condition as it should be; `None` where it stays: a failed plan is said until one
/// completes, and an Instance that never ran says nothing.
pub async fn condition(ctx: &Context, subject: &Subject) -> Option<Wanted> {
    let conditions = subject.conditions();
    let found = condition::find(&conditions, types::READY);
    if found.is_some_and(|c| c.reason == "PlanInFatalError") {
        return None;
    }
    let basis = subject.basis.as_ref()?;
    let wanted = |status, reason: &str, message: String| {
        Some(Wanted { type_: types::READY, status, reason: reason.to_owned(), message })
    };
    let failed = drift::failed(basis);
    if !failed.is_empty() {
        return wanted(Status::False, "PlanOwed", format!("these plans failed: {}", failed.join(", ")));
    }
    // What cannot be seen now is not healthy and not unhealthy; whoever sees it again wakes us.
    if !ctx.sees(subject, |kind| kind.group == "apps" && SPEAKING.contains(&kind.kind.as_str())) {
        return None;
    }
    let unhealthy: Vec<String> = ctx
        .store
        .children_of(&subject.key, &SPEAKING)
        .iter()
        .filter_map(|object| match health::of(object) {
            Health::Healthy => None,
            Health::Waiting(why) | Health::Failed(why) => Some(why),
        })
        .collect();
    match (unhealthy.as_slice(), missing(ctx, subject).await.as_slice()) {
        ([], []) => wanted(Status::True, "ResourcesReady", String::new()),
        ([], missing) => wanted(Status::Unknown, MISSING_DEPENDENCY, missing.join("; ")),
        (why, _) => wanted(Status::False, "ResourceNotReady", why.join(", ")),
    }
}

/// The kinds that this Instance made objects of and that are not served, for people.
async fn missing(ctx: &Context, subject: &Subject) -> Vec<String> {
    let version = &subject.spec.operator_version;
    let Some(package) = ctx.package(version) else { return Vec::new() };
    let made = ctx.watches.kinds_of(&subject.key, &package.key);
    let mut absent = BTreeMap::new();
    for kind in made {
        let Some(why) = ctx.watches.absence(&kind) else { continue };
        // Without a definition an aggregated API server may have it.
        if !matches!(ctx.kinds.get(&ctx.client, &kind).await, Ok(Known::Served(_))) {
            absent.insert(kind, why);
        }
    }
    if absent.is_empty() {
        return Vec::new();
    }
    let instance = InstanceId {
        namespace: subject.key.namespace.clone(),
        name: subject.key.name.clone(),
        uid: subject.uid().to_owned(),
    };
    let among = absent.keys().cloned().collect();
    let entries = subject.entries();
    let carried_out = LASTING
        .iter()
        .filter_map(|plan| Some((*plan, entries.get(*plan)?)))
        .filter(|(_, entry)| entry.status == ExecutionStatus::Complete);
    let applied = carried_out.flat_map(|(plan, entry)| {
        let values = &subject.spec.parameters;
        let rendered = Rendered::default();
        let run = Run {
            package: &package,
            instance: &instance,
            plan,
            uid: &entry.uid,
            values,
            rendered: &rendered,
            interrupt: &crate::template::Never,
        };
        kinds::applied(&run, &among)
    });
    let applied: std::collections::BTreeSet<Gvk> = applied.collect();
    let told = absent.iter().filter(|(kind, _)| applied.contains(kind));
    told.map(|(kind, why)| format!("the CustomResourceDefinition of {kind} {why}")).collect()
}
