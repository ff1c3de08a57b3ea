//! Settings: every replica honours the Interlock object named `default`, and the leader reports on it.
//!
//! Event -> [`Interlocks`] -> modes of the capabilities, rules of the store (every replica, at once)
//! -> status of the objects ([`status`]), binding of the freeze ([`policy_binding`]) (leader, when they
//! differ from what is there).
//!
//! The leader creates the honoured object where none exists, as people wait for its conditions. Its spec is
//! empty: a deletion brings the defaults back, and so does the object that replaces the deleted one.

pub mod policy_binding;
mod stalled;
pub mod status;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::interlock;
use interlock_core::api::interlock::{Interlock, InterlockStatus, SettingProblem, Settings};
use interlock_core::api::meta;
use interlock_core::api::meta::event;
use interlock_core::api::meta::install::FREEZE_BINDING;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_core::kinds::Kinds;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::binding::{BindingState, ExcludedNamespaces};
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, Modes};
use crate::controllers::capabilities;
use crate::runtime::index::Store;
use crate::runtime::index::interlocks::{Interlocks, KnownInterlock};
use crate::runtime::queue::Queue;

/// Collects a burst of changes into one report.
const BURST: Duration = Duration::from_millis(200);
/// Pause after a write that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long the binding may stay unread before that is reported.
const UNREAD: Duration = Duration::from_secs(10);

pub struct SettingsContext {
    /// The objects; a watch fills it.
    pub objects: Arc<Interlocks>,
    /// Applies the rules.
    pub store: Arc<Store>,
    /// Instances, where controllers run: changed settings may unblock one.
    pub queue: Option<Arc<Queue<NamespacedName>>>,
    /// The modes of the capabilities; unset until the objects are listed.
    pub modes: watch::Sender<Modes>,
    /// The state of every capability, that of the settings included.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
}

impl SettingsContext {
    /// Follows the honoured object, for ever.
    pub async fn follow(self) {
        let mut snapshot = self.snapshot.clone();
        // Both senders live as long as the process.
        if snapshot.wait_for(|snapshot| are_known(snapshot)).await.is_err() {
            return;
        }
        let mut changes = self.objects.changes();
        loop {
            self.honour();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn honour(&self) {
        let settings = read(self.objects.honoured().as_ref(), self.store.kinds());
        let modes = Modes(Some(settings.modes));
        self.modes.send_if_modified(|old| {
            let changed = *old != modes;
            *old = modes;
            changed
        });
        let rules = self.store.set_rules(settings.rules);
        let accounts = self.store.set_accounts(settings.accounts);
        let adoptions = self.store.set_adoptions(settings.adoptions);
        let hashes = self.store.set_dependencies_hashes(settings.dependencies_hashes);
        if rules || accounts || adoptions || hashes {
            tracing::info!(rules, accounts, adoptions, hashes, "the settings have changed");
            let queue = self.queue.iter();
            queue.for_each(|queue| self.store.to_reconcile().into_iter().for_each(|key| queue.add(key)));
        }
    }
}

/// Whether the objects are listed, or cannot be: where the kind is absent or may not be read, the defaults
/// apply.
fn are_known(snapshot: &CapabilitySnapshot) -> bool {
    let standing = snapshot.get(capabilities::SETTINGS);
    standing.is_some_and(|standing| {
        !matches!(standing.state, CapabilityPhase::Starting(_) | CapabilityPhase::Unknown(None))
    })
}

/// Whether all objects are known, so that one that is not among them is absent.
fn is_listed(snapshot: &CapabilitySnapshot) -> bool {
    let standing = snapshot.get(capabilities::SETTINGS);
    standing.is_some_and(|standing| matches!(standing.state, CapabilityPhase::Running(_)))
}

/// The settings of the honoured object; the defaults without one, or while it is being deleted: a deletion
/// takes effect at once, whatever finalizers others hold.
fn read(honoured: Option<&KnownInterlock>, kinds: Kinds) -> Settings {
    match honoured.filter(|seen| !status::is_deleting(seen.object())) {
        None => Settings::default(),
        Some(KnownInterlock::Read(object)) => {
            Settings::read(&object.spec, &capabilities::settable(&capabilities::of(kinds)))
        }
        Some(KnownInterlock::Unreadable { why, .. }) => Settings {
            problems: vec![SettingProblem {
                field: "spec".to_owned(),
                problem: format!("{why}; correct it as `kubectl explain interlock.spec` says"),
            }],
            ..Settings::default()
        },
    }
}

/// Reports on the settings; only the leader writes.
#[derive(Clone)]
pub struct Reporter {
    pub objects: Arc<Interlocks>,
    /// Knows all namespaces.
    pub store: Arc<Store>,
    /// The state of every capability.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    /// The binding of the freeze.
    pub binding: watch::Receiver<BindingState>,
    /// Whether this process may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Writes.
    pub bookkeeping: Bookkeeping,
    /// Publishes deletions.
    pub events: EventPublisher,
    /// Events about statuses that could not be written.
    pub reports: Arc<FailureReports>,
}

impl Reporter {
    /// Writes changed statuses, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let began = Instant::now();
        let (mut objects, mut namespaces) = (self.objects.changes(), self.store.namespace_changes());
        let (mut snapshot, mut binding) = (self.snapshot.clone(), self.binding.clone());
        let (mut leadership, mut instances) = (self.leadership.clone(), self.store.changes());
        let mut known: Option<KnownInterlock> = None;
        let mut refused = None;
        loop {
            let leads = self.leadership.borrow().holds();
            let honoured = self.objects.honoured();
            if let (true, Some(gone), None) = (leads, &known, &honoured) {
                self.tell_deleted(gone.object()).await;
            }
            known = honoured;
            let counts = known.as_ref().is_some_and(|seen| status::is_deleting(seen.object()));
            let again = if leads {
                let created = self.create_default(&mut refused).await;
                [created, self.write(began).await].into_iter().flatten().min()
            } else {
                None
            };
            let timer = tokio::time::sleep(again.unwrap_or(Duration::MAX));
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = objects.changed() => {}
                Ok(()) = namespaces.changed() => {}
                Ok(()) = snapshot.changed() => {}
                Ok(()) = binding.changed() => {}
                Ok(()) = instances.changed(), if counts => {}
                Ok(()) = leadership.changed() => {}
                () = timer => {}
            }
            tokio::time::sleep(BURST).await;
        }
    }

    /// Creates the honoured object where none exists; returns when to try again. An object that was not
    /// listed yet is not absent, and one whose kind is not served, or which may not be created, is left to
    /// the next event. `refused` is the last refusal, which is logged once.
    async fn create_default(&self, refused: &mut Option<String>) -> Option<Duration> {
        if self.objects.honoured().is_some() || !is_listed(&self.snapshot.borrow()) {
            return None;
        }
        let failure = self.bookkeeping.create_interlock(interlock::DEFAULT).await.err();
        let Some(failure) = failure else {
            tracing::info!(interlock = interlock::DEFAULT, "created, as none existed");
            *refused = None;
            return None;
        };
        let again = !matches!(failure.code, 400..=428);
        if refused.as_ref() != Some(&failure.message) {
            tracing::warn!(interlock = interlock::DEFAULT, error = failure.message, "it was not created");
            *refused = Some(failure.message);
        }
        again.then_some(AFTER_FAILURE)
    }

    /// Writes changed statuses; returns when to check again, if nothing happens before.
    async fn write(&self, began: Instant) -> Option<Duration> {
        let honoured = self.objects.honoured();
        let settings = read(honoured.as_ref(), self.store.kinds());
        let lagging = self.write_binding(&settings, began).await.err();
        let mut again = lagging.as_ref().map(|_| AFTER_FAILURE);
        let now = Timestamp::now();
        let snapshot = self.snapshot.borrow().clone();
        let settable = capabilities::settable(&capabilities::of(self.store.kinds()));
        let managed = status::Managed {
            instances: self.store.instances().len(),
            to_reconcile: self.store.to_reconcile().len(),
        };
        for seen in self.objects.all() {
            let object = seen.object();
            let (status, later) = match object.metadata.name.as_deref() {
                Some(interlock::DEFAULT) => {
                    let look = status::honoured(
                        object,
                        &status::StatusInput {
                            snapshot: &snapshot,
                            essential: capabilities::ESSENTIAL,
                            settable: &settable,
                            finalizes: capabilities::INSTANCES,
                            instances: self.store.count_instances(),
                            problems: &settings.problems,
                            lagging: lagging.as_deref(),
                            managed,
                            now,
                        },
                    );
                    (look.status, look.again)
                }
                _ => (status::ignored(object, now), None),
            };
            let later = later.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
            let retry = self.write_status(object, status).await.err().map(|()| AFTER_FAILURE);
            again = [again, later, retry].into_iter().flatten().min();
        }
        again
    }

    /// Without the object, only an Event can report what continues.
    async fn tell_deleted(&self, object: &Interlock) {
        let message =
            format!("{}; {} Instances are still managed", status::DEFAULTS, self.store.instances().len());
        tracing::warn!(message, "the Interlock object was deleted");
        let note = Note { severity: Severity::Warning, reason: event::SETTINGS_DELETED.to_owned(), message };
        self.events.publish_on_interlock(interlock::DEFAULT, object.metadata.uid.as_deref(), note).await;
    }

    async fn write_status(&self, object: &Interlock, status: InterlockStatus) -> Result<(), ()> {
        if object.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let (Some(name), Some(version)) = (&object.metadata.name, &object.metadata.resource_version) else {
            return Ok(());
        };
        match self.bookkeeping.patch_interlock_status(name, version, json!(status)).await {
            Ok(()) => Ok(()),
            // The watch delivers the newer version, or the deletion.
            Err(ApiFailure { code: 404 | 409, .. }) => Ok(()),
            Err(failure) => {
                tracing::warn!(interlock = name, error = failure.message, "a status was not written");
                let gvk = Gvk::new(meta::INTERLOCK_API_VERSION, "Interlock");
                let key = ObjectKey { gvk, namespace: None, name: name.clone() };
                let uid = object.metadata.uid.as_deref().unwrap_or_default();
                self.reports.failed(&key, uid, "its status was not written", &failure).await;
                Err(())
            }
        }
    }

    /// Excludes the namespaces in which the freeze does not deny; an error names the reason.
    async fn write_binding(&self, settings: &Settings, began: Instant) -> Result<(), String> {
        let namespaces = self.store.namespaces();
        let left_out = policy_binding::left_out(&settings.rules, namespaces.iter());
        let remedy = format!(
            "this process needs get, list, watch and patch on ValidatingAdmissionPolicyBinding {FREEZE_BINDING} \
             (`interlock render rbac`); until then the policy refuses frozen edits everywhere"
        );
        let patch = match &*self.binding.borrow() {
            BindingState::Present(found) => found.patch(&left_out),
            BindingState::Unknown
                if left_out != ExcludedNamespaces::default() && began.elapsed() > UNREAD =>
            {
                return Err(format!("the binding of the freeze cannot be read: {remedy}"));
            }
            BindingState::Unknown | BindingState::Absent => None,
        };
        let Some(patch) = patch else { return Ok(()) };
        match self.bookkeeping.patch_binding(FREEZE_BINDING, &patch).await {
            Ok(()) => {
                tracing::info!(
                    binding = FREEZE_BINDING,
                    ?left_out,
                    "the policy of the freeze follows the settings"
                );
                Ok(())
            }
            Err(ApiFailure { code: 404 | 409, .. }) => Ok(()),
            Err(failure) => {
                Err(format!("the binding of the freeze was not written: {}; {remedy}", failure.message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
