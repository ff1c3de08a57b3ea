//! Removes the cluster-scoped objects of a deleted Instance, before our finalizer comes off it: as the service account of
//! packages, and for a bounded time. What is left then is named in Events.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::api::inventory::ListedObject;
use interlock_core::api::meta::INSTANCE_UID;
use interlock_core::api::meta::plan::CLEANUP;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
use interlock_core::effect::{Effect, Note, Severity};
use interlock_core::kinds::namespace::NamespaceLister as _;
use interlock_core::reconcile::{KindServed, Needs};
use interlock_kudo::engine::cluster_scoped;
use interlock_kudo::engine::cluster_scoped::Release;
use interlock_kudo::engine::errors::reason;
use interlock_kudo::engine::lookup::Observed;
use jiff::Timestamp;
use tracing::warn;

use super::context::InstanceContext;
use super::inventory;
use super::view::InstanceView;
use crate::runtime::executor::Executor;
use crate::runtime::gathered;
use crate::runtime::rounds::{self, Decided, Decision, Flow, Rounds};

/// How long requests that fail hold up a deletion, after its cleanup.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_secs(2);

/// How long an attempt may take: a package decides how many objects there are.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Rounds of an attempt; each conflict takes two.
const ROUNDS: usize = 12;

/// What became of the objects, and Events about those that could not be listed.
type Outcome = Result<(Release, Vec<Note>), String>;

/// Removes what the Instance has made in the cluster; returns the pause before the next attempt, or `None` when nothing
/// holds up the deletion any more.
pub(super) async fn remove(ctx: &InstanceContext, subject: &InstanceView) -> Option<Duration> {
    let attempted = tokio::time::timeout(ATTEMPT, attempt(ctx, subject)).await;
    let outcome = attempted.unwrap_or_else(|_| Err(format!("it took longer than {} s", ATTEMPT.as_secs())));
    let waits = outcome.as_ref().map_or(true, |(release, _)| !release.waits.is_empty());
    // The next leader ends a deletion that this process began as one.
    if !ctx.lead.holds() || waits && !is_last(ctx, subject, Timestamp::now()) {
        return Some(PAUSE);
    }
    tell(ctx, subject, outcome).await;
    None
}

/// Whether no other attempt follows.
fn is_last(ctx: &InstanceContext, subject: &InstanceView, now: Timestamp) -> bool {
    let cleanup =
        subject.entries().get(CLEANUP).and_then(|entry| entry.last_updated_timestamp.as_ref()).map(|at| at.0);
    let since = subject.deleted_at().into_iter().chain(cleanup).max();
    ctx.instances_leave() || since.is_none_or(|since| now.duration_since(since).unsigned_abs() >= PATIENCE)
}

async fn attempt(ctx: &InstanceContext, subject: &InstanceView) -> Outcome {
    let kept = inventory::read(ctx, subject).await;
    let kept = kept.map_err(|failure| format!("its inventory cannot be read: {}", failure.message))?;
    let account = ctx.account(&subject.key.namespace);
    let objects = account.map(|account| ctx.objects.under(account));
    let (listed, unlisted) = match kept.is_absent() {
        false => (kept.inventory.all().into_iter().cloned().collect(), Vec::new()),
        true => by_label(ctx, subject, &objects).await?,
    };
    if listed.is_empty() {
        return Ok((Release::default(), unlisted));
    }
    let mut removal = Removal { ctx, subject, objects: objects?, listed, observed: Observed::default() };
    let released = rounds::drive(&mut removal, ROUNDS).await?;
    released.map(|release| (release, unlisted)).ok_or_else(|| "others change them all the time".to_owned())
}

/// One attempt to remove objects.
struct Removal<'a> {
    ctx: &'a InstanceContext,
    subject: &'a InstanceView,
    objects: Executor,
    listed: BTreeSet<ListedObject>,
    observed: Observed,
}

impl Rounds for Removal<'_> {
    type Lacks = Needs;
    type Writes = Vec<Vec<Effect>>;
    type End = Release;
    type Stop = String;

    fn leads(&self) -> Result<(), String> {
        if self.ctx.lead.holds() { Ok(()) } else { Err("another process leads".to_owned()) }
    }

    async fn decide(&mut self) -> Decided<Self> {
        let (uid, rules) = (self.subject.uid(), crate::kinds::transient_rules());
        let release = cluster_scoped::release(uid, &self.listed, &self.observed, rules);
        Ok(match (release.needs.is_empty(), release.effects.is_empty()) {
            (false, _) => Decision::Lacks(release.needs),
            (true, false) => Decision::Write(release.effects),
            (true, true) => Decision::End(release),
        })
    }

    async fn read(&mut self, needs: Needs) -> Result<Flow<Release>, String> {
        gathered::serves_all(&["kinds"], &needs).map_err(|failure| failure.message)?;
        let facts = &mut self.observed.facts;
        for gvk in &needs.kinds {
            facts.kinds.insert(gvk.clone(), self.ctx.served(gvk).await);
        }
        for (key, failure) in gathered::look_up(&self.objects, facts, &needs).await.failed {
            facts.objects.remove(&key);
            facts.failures.insert(key, failure);
        }
        Ok(Flow::Again)
    }

    async fn write(&mut self, effects: Self::Writes) -> Result<Flow<Release>, String> {
        let facts = &mut self.observed.facts;
        for (key, answer) in self.objects.run(effects).await {
            match answer {
                Ok(answer) => drop(self.ctx.wrote(&self.subject.key, facts, &key, answer)),
                Err(failure) => drop(facts.failures.insert(key, failure)),
            }
        }
        Ok(Flow::Again)
    }
}

/// Where there is no inventory: it was never written, or deleted before the Instance, with the namespace or in the
/// foreground. Objects name the Instance that has made them in a label; their kinds are those of the package.
async fn by_label(
    ctx: &InstanceContext,
    subject: &InstanceView,
    objects: &Result<Executor, String>,
) -> Result<(BTreeSet<ListedObject>, Vec<Note>), String> {
    let version = &subject.spec.operator_version;
    let package = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
    let (mut listed, mut unlisted) = (BTreeSet::new(), Vec::new());
    let seen = ctx.store.cluster_scoped_of(&subject.key);
    for gvk in ctx.watches.kinds_of(&subject.key, &package) {
        if !cluster_scoped::may_go(&gvk) || ctx.served(&gvk).await != KindServed::Cluster {
            continue;
        }
        let is_of_kind = |[group, kind, _]: &&[String; 3]| *group == gvk.group && *kind == gvk.kind;
        let names = match ctx.is_watched(&gvk) {
            true => Ok(seen.iter().filter(is_of_kind).map(|[.., name]| name.clone()).collect()),
            false => {
                objects.as_ref().map_err(Clone::clone)?.labelled(&gvk, (INSTANCE_UID, subject.uid())).await
            }
        };
        match names {
            Ok(names) => {
                let named = |name: String| ListedObject { gvk: gvk.clone(), name };
                listed.extend(names.into_iter().map(named));
            }
            Err(failure) if matches!(failure.code, 401 | 403) => {
                let named = (subject.key.to_string(), subject.uid());
                unlisted.push(cluster_scoped::unlisted(&gvk, &failure.message, (&named.0, named.1)));
            }
            Err(failure) => return Err(format!("objects of {gvk} cannot be listed: {}", failure.message)),
        }
    }
    Ok((listed, unlisted))
}

/// Names what is left.
async fn tell(ctx: &InstanceContext, subject: &InstanceView, outcome: Outcome) {
    let name = subject.key.to_string();
    let notes = match outcome {
        Ok((Release { left, waits, .. }, unlisted)) => {
            let left = [left, waits].concat();
            [cluster_scoped::told(&left, &name), unlisted].concat()
        }
        Err(why) => {
            let label = format!("{INSTANCE_UID}={}", subject.uid());
            let message = format!(
                "cluster-scoped objects of Instance {name} may be left: {why}; they have the label {label}"
            );
            vec![Note { severity: Severity::Warning, reason: reason::KEPT.to_owned(), message }]
        }
    };
    let namespace = &subject.key.namespace;
    let terminating = ctx.store.namespace_terminating(namespace);
    for note in notes {
        warn!(instance = %name, why = note.message, "a deletion ends with objects left");
        if terminating {
            // The namespace takes no Events any more.
            let gvk = Gvk::new("v1", "Namespace");
            let key = ObjectKey { gvk, namespace: None, name: namespace.clone() };
            ctx.events.publish_on(&key, "", note).await;
        } else {
            ctx.events.publish(&subject.key, subject.uid(), note).await;
        }
    }
}
