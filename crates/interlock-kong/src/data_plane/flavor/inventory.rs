//! Inventory of the objects that affect flavors, reduced to the fields that the rules read: gateways,
//! their sources and producers, and the routes that not every flavor serves.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_core::api::stamp::SpecHash;
use interlock_core::kinds::capabilities::{FLAVORS, ROUTES};
use interlock_core::kinds::inventory;
use interlock_core::kinds::inventory::DomainInventory;
use jiff::Timestamp;
use serde_json::Value;

use super::deferred::{DeferredChecks, Now, Surroundings, Unread};
use super::gateway::{Gateway, referenced_spec, sources_of};
use super::gateway_ref::{FlavorSpec, GatewayKind, GatewayRef};
use super::group::ProducerGroup;
use super::guarded_sources;
use super::overview;
use super::overview::GatewayOverview;
use super::pattern;
use super::pattern::Pattern;
use super::projection::{pruned, template};
use super::reading::FlavorReading;
use super::routes::{Inventory, Route};
use super::running::rolled_out::is_rolled_out;
use super::serving::Serving;
use super::sources::{FlavorSource, GivenSources, KeyLookup, SourceKind, Sources};
use crate::data_plane::labelled::LABELLED;

/// Kind and name.
type Key = (String, NamespacedName);

#[derive(Clone, Debug)]
pub struct GatewayContext {
    /// ConfigMaps and Secrets.
    pub sources: GivenSources,
    /// The existing routes.
    pub routes: Arc<Inventory>,
    /// The gateways that share its configuration producer.
    pub group: Option<ProducerGroup>,
    /// What a Deployment ran with when all its pods last had one template.
    pub rolled_out: RolledOut,
}

/// What the pods of a Deployment ran with when all of them last had one template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RolledOut {
    /// They never had one, or there are no pods: only the stored template is known.
    #[default]
    Never,
    /// They ran with this.
    With(FlavorReading),
    /// A rollout began before the first observation; why the previous template is unknown.
    Untold(String),
}

/// A gateway that depends on a source.
#[derive(Clone, Debug)]
pub struct FlavorDependent {
    pub stored: Arc<Value>,
    /// The same; for a Deployment with the template of its pods.
    pub running: Arc<Value>,
}

impl Default for GatewayContext {
    fn default() -> Self {
        let routes = Arc::new(Inventory::Unseen);
        Self { sources: GivenSources::default(), routes, group: None, rolled_out: RolledOut::default() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct GatewayInventory {
    /// Gateways, ControlPlanes, ingress controllers, Services, and Gateways of the Gateway API with their
    /// classes.
    objects: BTreeMap<Key, Arc<Value>>,
    sources: GivenSources,
    /// Sources that the controller labelled.
    ours: BTreeSet<FlavorSource>,
    /// By namespace, kind and name.
    routes: BTreeMap<(String, String, String), Arc<Route>>,
    /// Templates of Deployments when all their pods last had one; why it is unknown, if a rollout was
    /// under way at the first observation.
    rolled_out: BTreeMap<GatewayRef, Result<Arc<Value>, String>>,
    /// Changes whose flavor could not be read at the time.
    unread: Unread,
    /// Namespaces whose patterns changed since [`Self::take_patterns`].
    uncompiled: BTreeSet<String>,
}

impl GatewayInventory {
    /// Whether flavors could depend on an object.
    pub fn reads(object: &Value) -> bool {
        Role::of(object).is_some()
    }

    /// Adds an object; ignores kinds that no flavor rule reads. `namespace` is the default for an
    /// absent one.
    pub fn take(&mut self, object: &Value, namespace: &str) {
        let Some(key) = key_of(object, namespace) else { return };
        match Role::of(object) {
            Some(Role::Source) => {
                self.sources.add(object, namespace);
                let ours = object["metadata"]["labels"][meta::FLAVOR_SOURCE] == meta::FLAVOR_SOURCE_OURS;
                match source_of(object, &key.1) {
                    Some(source) if ours => self.ours.insert(source),
                    Some(source) => self.ours.remove(&source),
                    None => false,
                };
            }
            Some(Role::Route) => self.take_route(Route::of(object, namespace), key),
            Some(Role::Party) => {
                let kept = Arc::new(pruned(object, &key.1));
                self.follow_flavor(&kept, &key);
                if object["kind"] == "Deployment" {
                    self.follow_rollout(object, &kept, &key);
                }
                self.objects.insert(key, kept);
            }
            None => {}
        }
    }

    fn take_route(&mut self, route: Option<Route>, (kind, name): Key) {
        let key = (name.namespace, kind, name.name);
        let earlier = self.routes.remove(&key);
        let Some(route) = route else { return };
        let route = match earlier {
            Some(earlier) => route.after(&earlier),
            None => route,
        };
        if route.patterns().any(|pattern| !pattern.is_compiled()) {
            self.uncompiled.insert(key.0.clone());
        }
        self.routes.insert(key, Arc::new(route));
    }

    /// The patterns of the namespaces whose patterns changed, for [`pattern::compile`]: of each only as many as
    /// its budget allows.
    pub fn take_patterns(&mut self) -> Vec<Vec<Arc<Pattern>>> {
        let namespaces = std::mem::take(&mut self.uncompiled);
        let of = |namespace: String| {
            let first = (namespace.clone(), String::new(), String::new());
            let routes = self.routes.range(first..).take_while(|((of, ..), _)| *of == namespace);
            routes.flat_map(|(_, route)| route.patterns()).take(pattern::MOST).cloned().collect()
        };
        namespaces.into_iter().map(of).collect()
    }

    fn follow_flavor(&mut self, kept: &Value, key: &Key) {
        let namespace = &key.1.namespace;
        let stored = |object: &Value| Gateway::read(object, namespace, &self.sources).ok().flatten();
        let (Some(before), true) = (self.objects.get(key), Gateway::is_guarded(kept)) else { return };
        let (Some(was), Some(written)) = (stored(before), stored(kept)) else { return };
        // A write of something else changes no flavor, whatever still runs.
        if was.spec.reading.effective == written.spec.reading.effective {
            return;
        }
        let running = self.shared_running(before);
        let before = ran(&running, namespace, &self.sources).map(|spec| (running, spec));
        self.unread.follow(&written, before);
    }

    /// Deferred checks: changes of flavor that were admitted because their source could not be read
    /// then, and would have been denied. Reports each once. `read` is what was read by request.
    pub fn take_deferred(&mut self, read: &GivenSources) -> Vec<DeferredChecks> {
        let mut unread = std::mem::take(&mut self.unread);
        let sources = KnownOrRead { known: &self.sources, read };
        let look = |subject: &GatewayRef, before: &Value| {
            let object = self.gateways().find(|object| subject.is(object))?.clone();
            let namespace = &subject.name.namespace;
            let gateway = Gateway::read(&object, namespace, &sources).ok().flatten()?;
            Some(Now { object, before: ran(before, namespace, &sources), gateway })
        };
        let found = unread.read_now(look, |subject| {
            let GatewayContext { routes, group, .. } = self.context_by(subject, &sources);
            Surroundings { routes, group }
        });
        self.unread = unread;
        found
    }

    /// The sources of such changes that no label will make known: at most eight of each change, a few times; and when to ask
    /// again. `is_guarding` says whether sources are labelled that a gateway lists.
    pub fn unread_sources(
        &mut self,
        now: Timestamp,
        is_guarding: bool,
    ) -> (BTreeSet<FlavorSource>, Option<Timestamp>) {
        let mut unread = std::mem::take(&mut self.unread);
        let found = unread.take_due(now, |subject, before| self.unlabelled(subject, before, is_guarding));
        self.unread = unread;
        found
    }

    /// Forgets such changes some time after they were seen, as the leader reads them.
    pub fn leave_unread(&mut self, now: Timestamp, is_guarding: bool) {
        let mut unread = std::mem::take(&mut self.unread);
        unread.leave(now, |subject, before| !self.unlabelled(subject, before, is_guarding).is_empty());
        self.unread = unread;
    }

    /// The sources of a gateway that are not known, and that no label will make known.
    fn unlabelled(&self, subject: &GatewayRef, before: &Value, is_guarding: bool) -> BTreeSet<FlavorSource> {
        let Some(stored) = self.gateways().find(|object| subject.is(object)) else { return BTreeSet::new() };
        let mut sources = sources_of(before);
        sources.extend(sources_of(stored));
        let is_to_be_labelled = |source: &FlavorSource| {
            is_guarding
                && guarded_sources::is_listed(stored, source)
                && !guarded_sources::is_of_cluster(source)
        };
        sources.retain(|source| !self.sources.holds(source) && !is_to_be_labelled(source));
        sources.into_iter().take(guarded_sources::MOST).collect()
    }

    /// An observer of a Deployment from its creation sees each of its rollouts end.
    fn follow_rollout(&mut self, object: &Value, kept: &Value, key: &Key) {
        let subject = deployment(&key.1);
        if is_rolled_out(object) {
            self.rolled_out.insert(subject, Ok(Arc::new(kept["spec"]["template"].clone())));
        } else if !self.objects.contains_key(key)
            && object["metadata"]["generation"].as_i64().is_some_and(|generation| generation > 1)
        {
            self.rolled_out.insert(subject, Err("its ReplicaSets were not looked at yet".to_owned()));
        }
    }

    /// Deployments with a rollout under way whose previous template is unknown.
    pub fn unresolved(&self) -> Vec<NamespacedName> {
        let unresolved = self.rolled_out.iter().filter(|(_, template)| template.is_err());
        unresolved.map(|(subject, _)| subject.name.clone()).collect()
    }

    /// Records the result for such a Deployment: the template of its pods, that there are none, or why
    /// it is unknown.
    pub fn tell(&mut self, name: &NamespacedName, found: Result<Option<&Value>, String>) {
        let subject = deployment(name);
        // The end of the rollout, meanwhile observed, is more accurate.
        if !self.rolled_out.get(&subject).is_some_and(Result::is_err) {
            return;
        }
        match found {
            Ok(Some(found)) => self.rolled_out.insert(subject, Ok(Arc::new(template(found)))),
            Ok(None) => self.rolled_out.remove(&subject),
            Err(why) => self.rolled_out.insert(subject, Err(why)),
        };
    }

    /// Removes a deleted object; `kind` is its kind, or the name of its labelled objects.
    pub fn drop(&mut self, kind: &str, name: &NamespacedName) {
        let key = (served_as(kind).to_owned(), name.clone());
        match key.0.as_str() {
            "ConfigMap" => {
                let source = FlavorSource { kind: SourceKind::ConfigMap, name: name.clone() };
                self.sources.remove(&source);
                self.ours.remove(&source);
            }
            "Deployment" => {
                self.rolled_out.remove(&deployment(name));
            }
            _ => {}
        }
        if let Some(gone) = self.objects.remove(&key) {
            self.unread.forget(|subject| subject.is(&gone));
        }
        let (kind, name) = key;
        self.routes.remove(&(name.namespace, kind, name.name));
    }

    /// Forgets the objects of a kind, given by its kind or the name of its labelled objects.
    pub fn forget(&mut self, kind: &str) {
        let kind = served_as(kind);
        self.objects.retain(|(known, _), _| known != kind);
        self.routes.retain(|(_, known, _), _| known != kind);
        match kind {
            "Deployment" => self.rolled_out.clear(),
            "ConfigMap" => (self.sources, self.ours) = Default::default(),
            _ => {}
        }
    }

    pub fn gateways(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.values().filter(|object| Gateway::is_guarded(object))
    }

    /// How the gateways are, those in trouble first; only as many as that are read.
    pub fn overviews(&self, limit: usize) -> Vec<GatewayOverview> {
        let mut all: Vec<&Arc<Value>> = self.gateways().collect();
        all.sort_by_key(|gateway| overview::trouble(gateway).is_none());
        let read = all.into_iter().take(limit);
        read.filter_map(|stored| GatewayOverview::of(stored, &self.running(stored), &self.sources)).collect()
    }

    /// The DataPlanes whose annotation only refers to the live spec: name, uid and hash.
    pub fn referenced_specs(&self) -> Vec<(NamespacedName, String, SpecHash)> {
        let planes = self.objects.iter().filter(|((kind, _), _)| kind == "DataPlane");
        let referenced = planes.filter_map(|((_, name), object)| {
            Some((name.clone(), meta_str(object, "uid")?.to_owned(), referenced_spec(object)?))
        });
        referenced.collect()
    }

    /// The known sources.
    pub fn sources(&self) -> &GivenSources {
        &self.sources
    }

    /// The gateways whose flavor may come from a source.
    pub fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        let here = |object: &&Arc<Value>| meta_str(object, "namespace") == Some(&source.name.namespace);
        let fed = self
            .gateways()
            .filter(here)
            .map(|stored| FlavorDependent { stored: stored.clone(), running: self.shared_running(stored) });
        fed.filter(|fed| [&fed.stored, &fed.running].iter().any(|it| sources_of(it).contains(source)))
            .collect()
    }

    /// All sources that the flavors of gateways may come from.
    pub fn referenced_sources(&self) -> BTreeSet<FlavorSource> {
        let both = self.gateways().flat_map(|stored| [Cow::Borrowed(stored.as_ref()), self.running(stored)]);
        both.flat_map(|object| sources_of(&object)).collect()
    }

    /// Those that a gateway lists, as its author may update them.
    pub fn guarded_sources(&self) -> BTreeSet<FlavorSource> {
        let of = |stored: &Arc<Value>| {
            let mut sources = sources_of(stored);
            sources.extend(sources_of(&self.running(stored)));
            sources.retain(|source| guarded_sources::is_listed(stored, source));
            sources
        };
        self.gateways().flat_map(of).collect()
    }

    /// An object with the template of its pods, if that is another one.
    fn running<'a>(&'a self, object: &'a Value) -> Cow<'a, Value> {
        let rolled_out = || {
            let name = meta_str(object, "name").unwrap_or_default();
            let namespace = meta_str(object, "namespace").unwrap_or_default();
            self.rolled_out.get(&deployment(&NamespacedName::new(namespace, name)))?.as_ref().ok()
        };
        let is_deployment = object["kind"] == "Deployment";
        match is_deployment.then(rolled_out).flatten() {
            Some(template) if **template != object["spec"]["template"] => {
                let mut running = object.clone();
                running["spec"]["template"] = Value::clone(template);
                Cow::Owned(running)
            }
            _ => Cow::Borrowed(object),
        }
    }

    fn shared_running(&self, object: &Arc<Value>) -> Arc<Value> {
        match self.running(object) {
            Cow::Borrowed(_) => object.clone(),
            Cow::Owned(running) => Arc::new(running),
        }
    }

    /// The known sources that the controller labelled.
    pub fn our_sources(&self) -> &BTreeSet<FlavorSource> {
        &self.ours
    }

    pub fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        self.context_by(gateway, &self.sources)
    }

    fn context_by(&self, gateway: &GatewayRef, sources: &dyn Sources) -> GatewayContext {
        let namespace = &gateway.name.namespace;
        let objects: Vec<Cow<'_, Value>> = self.objects.values().map(|object| self.running(object)).collect();
        let own = objects.iter().map(Cow::as_ref).find(|object| gateway.is(object));
        // An unreadable object among the others does not name its producer.
        let group = own.and_then(|own| ProducerGroup::of(own, &objects, namespace, sources).ok().flatten());
        let rolled_out = match (self.rolled_out.get(gateway), own) {
            (Some(Err(why)), _) => RolledOut::Untold(why.clone()),
            (Some(Ok(_)), Some(own)) => match Gateway::read(own, namespace, sources) {
                Ok(Some(own)) => RolledOut::With(own.spec.reading),
                _ => RolledOut::Never,
            },
            _ => RolledOut::Never,
        };
        let routes = Inventory::served(&Serving::of(own, &objects, namespace), self.routes.values().cloned());
        GatewayContext {
            sources: self.sources.within(namespace),
            routes: Arc::new(routes),
            group,
            rolled_out,
        }
    }
}

impl GatewayInventory {
    /// It is of the kinds that affect the flavors of gateways.
    pub const OF_DOMAIN: DomainInventory = DomainInventory {
        empty: || Box::new(Self::default()),
        capabilities: &[FLAVORS.name, ROUTES.name],
        is_followed: true,
        reads_settings: false,
    };
}

impl inventory::Inventory for GatewayInventory {
    fn take(&mut self, object: &Value) {
        self.take(object, "");
    }

    fn drop(&mut self, kind: &str, name: &NamespacedName) {
        self.drop(kind, name);
    }

    fn forget(&mut self, kind: &str) {
        self.forget(kind);
    }
}

/// What the live pods of a gateway run.
fn ran(running: &Value, namespace: &str, sources: &dyn Sources) -> Option<FlavorSpec> {
    let live = Gateway::live(running, namespace, sources).ok().flatten()?.spec;
    let effective = Gateway::runs(running, namespace, sources).ok().flatten()?;
    Some(FlavorSpec { reading: FlavorReading { effective, ..live.reading }, staged: live.staged })
}

/// The labelled sources, and others that were read by request.
struct KnownOrRead<'s> {
    known: &'s GivenSources,
    read: &'s GivenSources,
}

impl Sources for KnownOrRead<'_> {
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup {
        match self.known.holds(source) {
            true => self.known.ask(source, key),
            false => self.read.ask(source, key),
        }
    }
}

/// The role of an object in the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Route,
    Party,
}

impl Role {
    fn of(object: &Value) -> Option<Self> {
        let gvk = Gvk::of(object)?;
        match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("", "ConfigMap" | "Secret") => Some(Self::Source),
            ("networking.k8s.io", "Ingress") => Some(Self::Route),
            ("gateway.networking.k8s.io", "HTTPRoute" | "GRPCRoute" | "TLSRoute") => Some(Self::Route),
            ("gateway.networking.k8s.io", "Gateway" | "GatewayClass") => Some(Self::Party),
            (crate::api::GROUP, "DataPlane" | "ControlPlane") => Some(Self::Party),
            ("apps", "Deployment") | ("", "Service") => Some(Self::Party),
            _ => None,
        }
    }
}

fn key_of(object: &Value, namespace: &str) -> Option<Key> {
    let own = meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(namespace);
    let name = NamespacedName::new(own, meta_str(object, "name")?);
    Some((object["kind"].as_str()?.to_owned(), name))
}

/// The kind behind a name of labelled objects.
fn served_as(kind: &str) -> &str {
    LABELLED.iter().find(|labelled| labelled.name == kind).map_or(kind, |labelled| labelled.kind)
}

fn source_of(object: &Value, name: &NamespacedName) -> Option<FlavorSource> {
    let kind = match object["kind"].as_str()? {
        "ConfigMap" => SourceKind::ConfigMap,
        "Secret" => SourceKind::Secret,
        _ => return None,
    };
    Some(FlavorSource { kind, name: name.clone() })
}

fn deployment(name: &NamespacedName) -> GatewayRef {
    GatewayRef { kind: GatewayKind::Deployment, name: name.clone() }
}
