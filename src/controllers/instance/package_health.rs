//! The condition `Ready` of an idle Instance: whether its package's objects are healthy, and whether their
//! kinds are served.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use interlock_core::api::meta::plan;
use interlock_core::api::object::{Gvk, NamespacedName};
use interlock_core::health;
use interlock_core::health::Health;
use interlock_core::kinds::row::SPEAKING;
use interlock_kudo::api::ExecutionStatus;
use interlock_kudo::engine::errors::TaskError;
use interlock_kudo::engine::rendered_kinds;
use interlock_kudo::instance::change::readiness::Readiness;

use super::context::InstanceContext;
use super::engine::Engine;
use super::view::InstanceView;
use crate::cluster::discovery::KindLookup;
use crate::runtime::index::Store;
use crate::runtime::pool::{Deadline, NotDone};

/// Plans whose objects last; the objects of others come and go.
const LASTING: [&str; 3] = [plan::DEPLOY, plan::UPGRADE, plan::UPDATE];

/// Pause before an Instance is reconciled again for which no thread was free.
const AGAIN: Duration = Duration::from_secs(5);

/// The wanted condition where no plan has failed; `None` where it stays: an Instance that never ran has none.
pub async fn condition(ctx: &InstanceContext, subject: &InstanceView) -> Option<Readiness> {
    subject.basis.as_ref()?;
    // Without a watch health is unknown; the watch enqueues the Instance when it is open again.
    if !ctx.sees(subject, |kind| kind.group == "apps" && SPEAKING.contains(&kind.kind.as_str())) {
        return None;
    }
    let (store, key) = (ctx.store.clone(), subject.key.clone());
    let judged = ctx.pool.run(&subject.key.namespace, move |_| unhealthy(&store, &key)).await;
    let (Ok(unhealthy), Ok(missing)) = (judged, missing(ctx, subject).await) else {
        // No thread was free, or not for long enough: the condition stays until the next reconcile.
        ctx.queue.add_after(subject.key.clone(), AGAIN);
        return None;
    };
    Some(match (unhealthy.is_empty(), missing.is_empty()) {
        (false, _) => Readiness::Unhealthy(unhealthy),
        (true, false) => Readiness::Unserved(missing.join("; ")),
        (true, true) => Readiness::Healthy,
    })
}

/// The unhealthy objects of its package, for people.
fn unhealthy(store: &Store, instance: &NamespacedName) -> Vec<String> {
    let (made, unread) = store.children_of(instance, &SPEAKING);
    let why = made.iter().filter_map(|object| match health::of(object) {
        Health::Healthy => None,
        Health::Waiting(why) | Health::Failed(why) => Some(why),
    });
    why.chain(unread.into_iter().map(|name| format!("{name} is not healthy"))).collect()
}

/// The unserved kinds of which this Instance made objects, for people.
async fn missing(ctx: &InstanceContext, subject: &InstanceView) -> Result<Vec<String>, NotDone> {
    let version = &subject.spec.operator_version;
    let Some(package) = ctx.package(version) else { return Ok(Vec::new()) };
    let made = ctx.watches.kinds_of(&subject.key, &package.key);
    let mut absent = BTreeMap::new();
    for kind in made {
        let Some(why) = ctx.watches.absence(&kind) else { continue };
        // An aggregated API server may serve a kind without a definition.
        if !matches!(ctx.kinds.get(&ctx.client, &kind).await, Ok(KindLookup::Served(_))) {
            absent.insert(kind, why);
        }
    }
    if absent.is_empty() {
        return Ok(Vec::new());
    }
    let among = absent.keys().cloned().collect();
    let entries = subject.entries();
    let carried_out = LASTING.iter().filter_map(|plan| Some((*plan, entries.get(*plan)?)));
    let complete = carried_out.filter(|(_, entry)| entry.status == ExecutionStatus::Complete);
    let engines: Vec<Engine> = complete
        .map(|(plan, entry)| Engine::new(subject, &subject.spec, &package, (plan, &entry.uid), ctx.draws()))
        .collect();
    let helper = ctx.pipe_helper.clone();
    let applied = move |deadline: &Deadline| -> Result<Vec<BTreeSet<Gvk>>, TaskError> {
        engines.iter().map(|engine| rendered_kinds::applied(&engine.run(deadline, &helper), &among)).collect()
    };
    let applied = ctx.pool.run(&subject.key.namespace, applied).await?.map_err(|_| NotDone::Ended)?;
    let applied: BTreeSet<Gvk> = applied.into_iter().flatten().collect();
    let told = absent.iter().filter(|(kind, _)| applied.contains(kind));
    Ok(told.map(|(kind, why)| format!("the CustomResourceDefinition of {kind} {why}")).collect())
}
