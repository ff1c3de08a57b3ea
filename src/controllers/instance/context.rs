//! What the Instance controller works with.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::admission::view::Lister;
use interlock_core::api::interlock::Account;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName};
use interlock_core::api::stamp::VersionRef;
use interlock_core::plan::next::ReferenceAccess;
use interlock_core::plan::package::Package;
use kube::Client;
use tokio::sync::watch;

use super::books::Books;
use super::references::References;
use super::requests::Requests;
use super::subject::InstanceView;
use crate::cluster::apply::{Bookkeeping, Objects};
use crate::cluster::events::EventPublisher;
use crate::cluster::kinds::Kinds;
use crate::cluster::lease::Leadership;
use crate::cluster::queue::Queue;
use crate::cluster::supervisor::{Assignment, Handle, WatchState, Watching};
use crate::cluster::watch::WatchChange;
use crate::controllers::observe::{Observer, Store};
use crate::controllers::pool::Pool;
use crate::telemetry::metrics::Metrics;

/// How long a plan waits for the first list of a kind before it reads single objects instead.
const PATIENCE: Duration = Duration::from_secs(2);

/// Collaborators of the controller, shared by its workers.
pub struct InstanceContext {
    /// What is watched.
    pub store: Arc<Store>,
    /// Which kinds are watched for whom.
    pub watches: Arc<Observer>,
    /// How kinds are seen.
    pub supervisor: Handle,
    /// What the controller is told to do.
    pub work: watch::Receiver<Assignment>,
    /// Instances that have something to do.
    pub queue: Arc<Queue<NamespacedName>>,
    /// Writes of the bookkeeping user.
    pub bookkeeping: Bookkeeping,
    /// Reads and writes as the service account that packages act as by default.
    pub objects: Objects,
    /// Which kinds are served.
    pub kinds: Arc<Kinds>,
    /// For look-ups of kinds.
    pub client: Client,
    /// Events on Instances.
    pub events: EventPublisher,
    /// Whether this process leads.
    pub leadership: watch::Receiver<Leadership>,
    /// What status was last known to say.
    pub books: Books,
    /// The namespace of the process.
    pub own_namespace: String,
    /// Whether the policy that guards requests is as it was installed, and since when.
    pub requests: Requests,
    /// Whether references into other namespaces may be followed.
    pub references: References,
    /// Threads for what costs by the content of a package.
    pub pool: Arc<Pool>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

impl InstanceContext {
    /// A package, as last seen.
    pub fn package(&self, version: &VersionRef<'_>) -> Option<Arc<Package>> {
        self.store.operator_version(&NamespacedName::new(version.namespace.as_ref(), version.name.as_ref()))
    }

    /// The package of what was carried out of an Instance, as last seen.
    pub fn package_of_basis(&self, subject: &InstanceView) -> Option<Arc<Package>> {
        let (basis, version) = (subject.basis.as_ref()?, &subject.spec.operator_version);
        if basis.is_of_version(version) {
            return self.package(version);
        }
        // Any other one is looked for among all.
        self.store.package_of_basis(basis)
    }

    /// The service account that packages act as in a namespace, or why there is none.
    pub fn account(&self, namespace: &str) -> Result<NamespacedName, String> {
        match self.store.account(namespace) {
            Account::Default => Ok(self.objects.account().clone()),
            Account::Named(account) => Ok(account),
            Account::Invalid(why) => Err(format!(
                "packages do nothing in namespace {namespace}, as the Interlock named default does not say as whom: {why}"
            )),
        }
    }

    /// Whether packages of a namespace may use an OperatorVersion, as last known.
    pub fn reference(&self, namespace: &str, version: &VersionRef<'_>) -> ReferenceAccess {
        let version = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
        self.references.known(namespace, self.account(namespace).as_ref(), &version)
    }

    /// What the controller is told to do now.
    pub fn assignment(&self) -> Assignment {
        *self.work.borrow()
    }

    /// Whether objects of a kind are in the store, so that an absent one is known to be absent.
    pub fn is_watched(&self, kind: &Gvk) -> bool {
        self.supervisor.watching(kind).is_some_and(|watching| watching.sight == WatchState::Synced)
    }

    /// Whether the kinds that an Instance may have made are in the store, as far as they matter.
    pub fn sees(&self, subject: &InstanceView, matters: impl Fn(&Gvk) -> bool) -> bool {
        let version = &subject.spec.operator_version;
        let package = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
        let kinds = self.watches.kinds_of(&subject.key, &package);
        kinds.iter().filter(|kind| matters(kind)).all(|kind| self.is_watched(kind))
    }

    /// The watch of a kind, if its objects are in the store or about to be; where the kind may not
    /// be watched, a plan reads what it needs.
    pub async fn watched_soon(&self, kind: &Gvk) -> Option<Watching> {
        self.supervisor
            .watching_soon(kind, PATIENCE)
            .await
            .filter(|watching| watching.sight == WatchState::Synced)
    }

    /// Whether the definition of Instances is being deleted: it waits for our finalizers.
    pub fn instances_leave(&self) -> bool {
        let kind = Gvk::new(meta::KUDO_API_VERSION, "Instance");
        self.supervisor.watching(&kind).is_some_and(|watching| watching.leaving)
    }

    /// Whether an Instance is being deleted, as last seen.
    pub fn is_deleted(&self, key: &NamespacedName) -> bool {
        self.store.is_deleted(key)
    }

    /// Takes in an object as it was answered in work on an Instance; whether that is news. Others
    /// that it concerns are looked at; the watch's echo of it will concern nobody.
    pub fn saw(&self, instance: &NamespacedName, change: &WatchChange) -> bool {
        let Some(mut told) = self.store.answered(change) else { return false };
        told.concerned.retain(|concerned| concerned.instance != *instance);
        self.watches.took(told);
        true
    }

    /// The stretch of leading in which this process is now. What is begun in one is not gone on with
    /// in another, nor outside of it: between them somebody else may have led.
    pub fn reign(&self) -> Option<u64> {
        self.leadership.borrow().reign()
    }
}
