//! The context of the Instance controller.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use go_template::KeyStore;
use interlock_core::api::interlock::{Account, Adoption, CountedReferences};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
use interlock_core::api::stamp::VersionRef;
use interlock_core::reconcile::{Facts, KindServed};
use interlock_kudo::engine::run::PipeHelper;
use interlock_kudo::engine::seed::SeedKey;
use interlock_kudo::instance::change::next::ReferenceAccess;
use interlock_kudo::operator_version::PackageLister as _;
use interlock_kudo::package::Package;
use interlock_kudo::package::dependencies;
use interlock_kudo::package::dependencies::DependencyProblem;
use kube::Client;
use tokio::sync::watch;
use tracing::debug;

use super::inventory_cache::InventoryCache;
use super::no_room_cache::NoRoomCache;
use super::pod_failures::PodFailures;
use super::references::References;
use super::request_guard::Requests;
use super::status_cache::StatusCache;
use super::view::InstanceView;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::discovery::{KindDiscovery, KindLookup};
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::lease::LeaseHolder;
use crate::cluster::requests::Fence;
use crate::cluster::supervisor::{Assignment, Handle, WatchState, Watching};
use crate::cluster::watch::WatchChange;
use crate::runtime::executor::{Executor, Written};
use crate::runtime::gate::LeaderEpoch;
use crate::runtime::index::{Observer, Store};
use crate::runtime::pool::Pool;
use crate::runtime::queue::Queue;
use crate::telemetry::metrics::Metrics;

/// How long a plan waits for the first list of a kind before it reads single objects instead.
const PATIENCE: Duration = Duration::from_secs(2);

/// Collaborators of the controller, shared by its workers.
#[derive(Clone)]
pub struct InstanceContext {
    /// The cache of watched objects.
    pub store: Arc<Store>,
    /// Requests watches for packages and Instances.
    pub watches: Arc<Observer>,
    /// The watch states of kinds.
    pub supervisor: Handle,
    /// The controller's assignment.
    pub work: watch::Receiver<Assignment>,
    /// Instances that need reconciling.
    pub queue: Arc<Queue<NamespacedName>>,
    /// Writes as the API user of the process.
    pub bookkeeping: Bookkeeping,
    /// Reads and writes as the service account that packages act as by default.
    pub objects: Executor,
    pub kinds: Arc<KindDiscovery>,
    /// For discovery requests.
    pub client: Client,
    /// Events on Instances.
    pub events: EventPublisher,
    /// Events about writes of Instances that failed.
    pub reports: Arc<FailureReports>,
    /// The stretch of leading in which it works. Work begun in one leader epoch never continues in another, nor outside
    /// of one: between them another process may have led.
    pub lead: Fence,
    /// Whether this process leads, asked of the API server.
    pub lease: LeaseHolder,
    pub status_cache: Arc<StatusCache>,
    /// Inventories of runs in progress.
    pub inventories: Arc<InventoryCache>,
    /// Instances that leave no room for a status.
    pub no_room: Arc<NoRoomCache>,
    /// The namespace of the process.
    pub own_namespace: String,
    /// Whether the policy that guards requests is intact, and since when.
    pub requests: Arc<Requests>,
    /// Whether references into other namespaces are permitted.
    pub references: Arc<References>,
    /// The helper of Pipe tasks.
    pub pipe_helper: Arc<PipeHelper>,
    /// Threads for work whose cost depends on the content of a package.
    pub pool: Arc<Pool>,
    /// The key of which what templates generate follows, once it is read.
    pub template_key: Arc<OnceLock<SeedKey>>,
    /// Why workloads lack pods.
    pub pod_failures: Arc<PodFailures>,
    /// Keys that templates have made.
    pub made_keys: Arc<KeyStore>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

impl InstanceContext {
    /// What templates draw from, and what they have made of it.
    pub fn draws(&self) -> (Option<&SeedKey>, &Arc<KeyStore>) {
        (self.template_key.get(), &self.made_keys)
    }

    /// A package, as last seen.
    pub fn package(&self, version: &VersionRef<'_>) -> Option<Arc<Package>> {
        self.store.operator_version(&NamespacedName::new(version.namespace.as_ref(), version.name.as_ref()))
    }

    /// The package of an Instance's baseline, as last seen.
    pub fn package_of_basis(&self, subject: &InstanceView) -> Option<Arc<Package>> {
        let (basis, version) = (subject.basis.as_ref()?, &subject.spec.operator_version);
        if basis.is_of_version(version) {
            return self.package(version);
        }
        // Otherwise search all packages.
        self.store.package_of_basis(basis)
    }

    /// What is wrong with the packages that a plan installs, as last seen.
    pub fn dependencies(&self, package: &Package, plan: &str) -> Option<DependencyProblem> {
        if !dependencies::in_plan(package, plan) {
            return None;
        }
        let NamespacedName { namespace, name } = &package.key;
        let lookup = |name: &str| self.store.operator_version(&NamespacedName::new(namespace, name));
        dependencies::problem(name, &package.spec, &lookup)
    }

    /// The service account that packages act as in a namespace, or why there is none.
    pub fn account(&self, namespace: &str) -> Result<NamespacedName, String> {
        match self.store.account(namespace) {
            Account::Default => Ok(self.objects.account().clone()),
            Account::Named(account) => Ok(account),
            Account::Invalid(why) => Err(format!(
                "packages do nothing in namespace {namespace}: the Interlock default names no service account that they may use: {why}"
            )),
        }
    }

    /// How plans of a namespace treat objects that no Instance made, and which references of pods count in their
    /// hash; `None` while the labels of the namespace matter and are not known.
    pub fn settings(&self, namespace: &str) -> Option<(Adoption, CountedReferences)> {
        self.store.adoption(namespace).zip(self.store.counted_references(namespace))
    }

    /// Whether packages of a namespace may use an OperatorVersion, as last known.
    pub fn reference(&self, namespace: &str, version: &VersionRef<'_>) -> ReferenceAccess {
        let version = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
        self.references.known(namespace, self.account(namespace).as_ref(), &version)
    }

    /// The controller's current assignment.
    pub fn assignment(&self) -> Assignment {
        *self.work.borrow()
    }

    /// Whether objects of a kind are cached, so that an absent one is known to be absent.
    pub fn is_watched(&self, kind: &Gvk) -> bool {
        self.supervisor.watching(kind).is_some_and(|watching| watching.watch_state == WatchState::Synced)
    }

    /// Whether the kinds that an Instance may have made are cached, as far as they matter.
    pub fn sees(&self, subject: &InstanceView, matters: impl Fn(&Gvk) -> bool) -> bool {
        let version = &subject.spec.operator_version;
        let package = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
        let kinds = self.watches.kinds_of(&subject.key, &package);
        kinds.iter().filter(|kind| matters(kind)).all(|kind| self.is_watched(kind))
    }

    /// How the API server serves a kind. A failed discovery never counts as "not served".
    pub async fn served(&self, gvk: &Gvk) -> KindServed {
        match self.kinds.get(&self.client, gvk).await {
            Ok(KindLookup::Served(kind)) if kind.namespaced => KindServed::Namespaced,
            Ok(KindLookup::Served(_)) => KindServed::Cluster,
            Ok(KindLookup::Undefined) => KindServed::Undefined,
            Ok(KindLookup::NotServed(_)) => KindServed::NotServed,
            Ok(KindLookup::NeverServed) => KindServed::NeverServed,
            Ok(KindLookup::Unknown) => KindServed::Unknown,
            Err(error) => {
                debug!(%gvk, %error, "a kind could not be looked up");
                KindServed::Unknown
            }
        }
    }

    /// The watch of a kind, if its objects are cached or about to be; where the kind may not be watched, a
    /// plan reads the objects it needs.
    pub async fn watched_soon(&self, kind: &Gvk) -> Option<Watching> {
        self.supervisor
            .watching_soon(kind, PATIENCE)
            .await
            .filter(|watching| watching.watch_state == WatchState::Synced)
    }

    /// Whether the definition of Instances is being deleted: it waits for our finalizers.
    pub fn instances_leave(&self) -> bool {
        let kind = Gvk::new(meta::KUDO_API_VERSION, "Instance");
        self.supervisor.watching(&kind).is_some_and(|watching| watching.terminating)
    }

    /// Whether an Instance is being deleted, as last seen.
    pub fn is_deleted(&self, key: &NamespacedName) -> bool {
        self.store.is_deleted(key)
    }

    /// Stores an object from an answer to a request for an Instance; returns whether it is new. Enqueues
    /// the other affected Instances, as the watch's echo is no change.
    pub fn saw(&self, instance: &NamespacedName, change: &WatchChange) -> bool {
        let Some(mut told) = self.store.answered(change) else { return false };
        told.concerned.retain(|concerned| concerned.instance != *instance);
        self.watches.took(told);
        true
    }

    /// Takes in what the API server answered a write for an Instance with; returns its warnings.
    pub fn wrote(
        &self,
        instance: &NamespacedName,
        facts: &mut Facts,
        key: &ObjectKey,
        answer: Written,
    ) -> Vec<String> {
        let (change, object, warnings) = match answer {
            Written::Now(object, warnings) => {
                (Some(WatchChange::Applied(object.clone())), Some(object), warnings)
            }
            Written::Gone => {
                let known = facts.get(key).ok().flatten().cloned();
                (known.map(WatchChange::Deleted), None, Vec::new())
            }
            Written::Published => return Vec::new(),
        };
        if let Some(change) = change {
            self.saw(instance, &change);
        }
        facts.wrote(key.clone(), object);
        warnings
    }

    /// The same for the work of one leader epoch, after which none of its writes is sent any more.
    #[must_use]
    pub fn within(&self, epoch: LeaderEpoch) -> Self {
        let lead = Fence { epoch: Some(epoch), ..self.lead.clone() };
        Self {
            bookkeeping: self.bookkeeping.within(lead.clone()),
            objects: self.objects.within(lead.clone()),
            lead,
            ..self.clone()
        }
    }
}
