//! The gateways, their sources and their routes, as rules and controllers ask for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;
use interlock_core::topology::NodeId;
use interlock_kong::data_plane::GatewayLister;
use interlock_kong::data_plane::flavor::deferred::DeferredChecks;
use interlock_kong::data_plane::flavor::gateway_ref::GatewayRef;
use interlock_kong::data_plane::flavor::inventory::{FlavorDependent, GatewayContext, GatewayInventory};
use interlock_kong::data_plane::flavor::pattern::Pattern;
use interlock_kong::data_plane::flavor::sources::{FlavorSource, GivenSources};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use super::store::Store;
use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, WatchState};
use crate::cluster::tamper::GuardState;
use crate::runtime::queue::Queue;

/// Events of a gateway's pods come in bursts.
pub const GATEWAY_BURST: Duration = Duration::from_millis(500);

/// Gateways with new events.
pub type GatewayQueue = Queue<GatewayRef>;

/// Enqueues the gateways among objects.
pub(super) fn enqueue(queue: &GatewayQueue, roots: &[NodeId]) {
    let gateways = roots.iter().filter_map(GatewayRef::of_node);
    gateways.for_each(|gateway| queue.add_after(gateway, GATEWAY_BURST));
}

impl GatewayLister for Store {
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        self.flavors(|flavors| flavors.context_of(gateway))
    }

    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.flavors(|flavors| flavors.dependents(source))
    }

    fn overrides_guarded(&self) -> Result<(), String> {
        match &self.read().overrides {
            GuardState::Intact => Ok(()),
            GuardState::Broken(why) => Err(why.clone()),
            GuardState::Unknown => {
                Err("whether its policy is in force is not known yet; try again".to_owned())
            }
        }
    }
}

impl Store {
    fn flavors<T: Default>(&self, read: impl FnOnce(&GatewayInventory) -> T) -> T {
        self.read().inventories.get::<GatewayInventory>().map(read).unwrap_or_default()
    }

    fn change_flavors<T: Default>(&self, change: impl FnOnce(&mut GatewayInventory, bool) -> T) -> T {
        let mut tables = self.write();
        let are_guarded = tables.guarded_sources == GuardState::Intact;
        let flavors = tables.inventories.get_mut::<GatewayInventory>();
        flavors.map(|flavors| change(flavors, are_guarded)).unwrap_or_default()
    }

    /// The sources of the gateways' flavors; of these, the unlabelled ones (Secrets, which have no watch,
    /// unless `known`); and labelled objects that no gateway references, or lists.
    pub fn sources_due(
        &self,
        known: &BTreeSet<FlavorSource>,
    ) -> (BTreeSet<FlavorSource>, Vec<FlavorSource>, Vec<FlavorSource>) {
        let tables = self.read();
        let Some(flavors) = tables.inventories.get::<GatewayInventory>() else { return Default::default() };
        let wanted = flavors.referenced_sources();
        let labelled = |source: &FlavorSource| flavors.sources().holds(source) || known.contains(source);
        let due = wanted.iter().filter(|source| !labelled(source)).cloned().collect();
        // Without the policy anybody may list a source, or take it out.
        let kept = match tables.guarded_sources {
            GuardState::Intact => flavors.guarded_sources(),
            GuardState::Broken(_) | GuardState::Unknown => wanted.clone(),
        };
        let unused = flavors.our_sources().difference(&kept).cloned().collect();
        (wanted, due, unused)
    }

    /// The DataPlanes whose stamp only refers to the live spec: name, uid and hash.
    pub fn referenced_specs(&self) -> Vec<(NamespacedName, String, SpecHash)> {
        self.flavors(GatewayInventory::referenced_specs)
    }

    /// Deployments with a rollout in progress whose previous template is unknown.
    pub fn unresolved_rollouts(&self) -> Vec<NamespacedName> {
        self.flavors(GatewayInventory::unresolved)
    }

    /// Sets the result for one: its previous pod template, `None` without pods, or why it is unknown.
    pub fn resolve_rollout(&self, deployment: &NamespacedName, found: Result<Option<Value>, String>) {
        let found = found.as_ref().map(Option::as_ref).map_err(String::clone);
        self.change_flavors(|flavors, _| flavors.tell(deployment, found));
    }

    /// The patterns of the namespaces whose routes changed since the last call.
    pub fn take_route_patterns(&self) -> Vec<Vec<Arc<Pattern>>> {
        self.change_flavors(|flavors, _| flavors.take_patterns())
    }

    /// Changes of flavor that admission allowed unread, and would have denied; each once. `read` are sources that were read
    /// by request.
    pub fn take_deferred_checks(&self, read: &GivenSources) -> Vec<DeferredChecks> {
        self.change_flavors(|flavors, _| flavors.take_deferred(read))
    }

    /// Sources to be read by request, as nothing says what changes of flavor came from there; and when to ask again.
    pub fn unread_sources(&self, now: Timestamp) -> (BTreeSet<FlavorSource>, Option<Timestamp>) {
        self.change_flavors(|flavors, are_guarded| flavors.unread_sources(now, are_guarded))
    }

    /// Forgets changes that the leader reads, some time after they were seen.
    pub fn leave_unread(&self, now: Timestamp) {
        self.change_flavors(|flavors, are_guarded| flavors.leave_unread(now, are_guarded));
    }

    /// Every gateway.
    pub fn gateways(&self) -> Vec<GatewayRef> {
        let tables = self.read();
        let kinds = GatewayRef::KINDS.map(|kind| tables.graph.find_kind(kind.group, kind.kind));
        let rows = kinds.into_iter().flatten().flat_map(|kind| tables.graph.rows(kind));
        rows.filter_map(|row| GatewayRef::of_node(&row.id())).collect()
    }
}

/// The capabilities of the kinds that affect the flavors of gateways.
const INVENTORY: [&str; 2] = ["flavors", "routes"];

/// The gateways of the cache, and the kinds that it lacks.
pub struct CurrentGateways {
    /// The cache.
    pub gateways: Arc<dyn GatewayLister>,
    /// The watch states of the kinds.
    pub capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
}

impl CurrentGateways {
    /// Kinds that affect flavors and are not cached, with the reason. Unserved kinds have no objects; the
    /// contents of unlisted kinds are unknown.
    fn unlisted(&self) -> Vec<String> {
        let snapshot = self.capabilities.borrow();
        let mut unlisted = Vec::new();
        for status in INVENTORY.iter().filter_map(|name| snapshot.get(name)) {
            match status.state {
                CapabilityPhase::Running(_)
                | CapabilityPhase::Degraded(..)
                | CapabilityPhase::Outdated(..)
                | CapabilityPhase::Draining(_)
                | CapabilityPhase::Unknown(Some(_)) => {
                    let hidden = status.kinds.iter().filter(|kind| !is_cached(&kind.watch_state));
                    unlisted.extend(hidden.map(|kind| format!("{} ({})", kind.name, kind.watch_state)));
                }
                _ => unlisted.push(format!("{} ({})", status.name, status.state.message())),
            }
        }
        unlisted
    }
}

fn is_cached(watch_state: &WatchState) -> bool {
    matches!(watch_state, WatchState::Synced | WatchState::Absent(Absence::Missing))
}

impl GatewayLister for CurrentGateways {
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        // Check for uncached kinds first: a kind that is listed in between would otherwise count as empty.
        let unlisted = self.unlisted();
        let gateway_context = self.gateways.context_of(gateway);
        if unlisted.is_empty() {
            return gateway_context;
        }
        GatewayContext { routes: Arc::new(gateway_context.routes.with_unlisted(unlisted)), ..gateway_context }
    }

    fn live_spec(&self, data_plane: &NamespacedName, uid: &str, hash: &SpecHash) -> Option<String> {
        self.gateways.live_spec(data_plane, uid, hash)
    }

    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.gateways.dependents(source)
    }

    fn overrides_guarded(&self) -> Result<(), String> {
        self.gateways.overrides_guarded()
    }
}
