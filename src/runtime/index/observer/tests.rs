//! Bursts of events and the resulting passes, and which events enqueue a gateway.

use interlock_core::api::meta;
use interlock_core::kinds::{Kinds, capabilities};
use interlock_core::reconcile::{ObjectList, ReconcileStep, Reconciler};
use interlock_kong::api as kong;
use interlock_kong::data_plane;
use interlock_kong::data_plane::flavor::gateway_ref::GatewayKind;
use interlock_kong::data_plane::names::DATA_PLANE;
use interlock_kong::data_plane::names::GUARDED_DEPLOYMENT;
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::runtime::index::settled;

/// Events of a burst.
const EVENTS: usize = 500;
const PASS: Duration = Duration::from_millis(5);

/// An observer with one settled Instance, and the start of each pass over it.
struct World {
    observer: Arc<Observer>,
    passes: Arc<Mutex<Vec<Instant>>>,
    version: u64,
}

impl World {
    fn new() -> Self {
        let (store, queue, passes) =
            (Store::new(crate::kinds::all(), true), Arc::<Queue<_>>::default(), Arc::default());
        store.set_reconciling(true);
        let metrics = Arc::new(Metrics::new());
        let observer = Observer::new(store.clone(), Arc::default(), Some(queue.clone()), metrics);
        let begun: Arc<Mutex<Vec<Instant>>> = Arc::clone(&passes);
        tokio::spawn(async move {
            loop {
                let key = queue.next().await;
                begun.lock().unwrap().push(Instant::now());
                tokio::time::sleep(PASS).await;
                store.unpin(&key);
                queue.done(&key);
            }
        });
        let world = Self { observer, passes, version: 0 };
        let reported = world.touched("none");
        let namespace: Arc<str> = "".into();
        world.tell(WatchChange::Listing(namespace.clone()));
        world.tell(WatchChange::Listed(reported));
        world.tell(WatchChange::Synced(namespace));
        world
    }

    fn tell(&self, change: WatchChange) {
        let kind =
            Gvk { group: INSTANCE.group.into(), version: "v1beta1".into(), kind: INSTANCE.kind.into() };
        self.observer.observe(&kind, Epoch(1), change);
    }

    /// The Instance with a change of one of our annotations, at its next version.
    fn touched(&self, how: &str) -> Arc<Value> {
        let mut object = settled();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["annotations"]["kudo.dev/touched"] = json!(how);
        Arc::new(object)
    }

    fn touch(&mut self) {
        self.version += 1;
        let object = self.touched(&self.version.to_string());
        self.tell(WatchChange::Applied(object));
    }

    /// Passes so far, once no more are due.
    async fn passes(&self) -> Vec<Instant> {
        tokio::time::sleep(Duration::from_secs(60)).await;
        std::mem::take(&mut *self.passes.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn many_events_of_an_instance_at_rest_become_few_passes() {
    let mut world = World::new();
    assert_eq!(world.passes().await, [], "it is at rest and well");

    for _ in 0..EVENTS {
        world.touch();
    }
    assert_eq!(world.passes().await.len(), 1, "all at once");

    for _ in 0..EVENTS {
        world.touch();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let last = Instant::now();
    let passes = world.passes().await;
    let most = EVENTS / usize::try_from(BURST.as_millis()).unwrap() + 1;
    assert!((1..=most).contains(&passes.len()), "{} passes over {EVENTS} events", passes.len());
    assert!(passes.last() >= Some(&last), "what came last is looked at");
}

#[tokio::test(start_paused = true)]
async fn a_single_event_is_not_held_up_by_what_may_follow() {
    let mut world = World::new();
    world.passes().await;
    world.touch();
    let reported = Instant::now();
    assert_eq!(world.passes().await, [reported + BURST]);
}

/// An observer with one gateway, which was checked.
struct Gateways {
    observer: Arc<Observer>,
    kind: Gvk,
    object: Value,
    version: u64,
}

impl Gateways {
    async fn new(kind: GatewayKind) -> Self {
        let (name, api_version, served) = match kind {
            GatewayKind::DataPlane => (DATA_PLANE, kong::API_VERSION, "DataPlane"),
            GatewayKind::Deployment => (GUARDED_DEPLOYMENT, "apps/v1", "Deployment"),
        };
        let metrics = Arc::new(Metrics::new());
        let observer = Observer::new(
            Store::new(crate::kinds::all(), true),
            Arc::default(),
            Some(Arc::<Queue<_>>::default()),
            metrics,
        );
        let object = json!({
            "apiVersion": api_version, "kind": served,
            "metadata": {
                "namespace": "kong", "name": "edge", "uid": "u", "resourceVersion": "1", "generation": 1,
                "labels": {"interlock.dev/guard": "kong-router-flavor"},
            },
            "spec": {"replicas": 2},
            "status": {"replicas": 2, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let kind = Gvk { group: name.group.into(), version, kind: name.kind.into() };
        let gateways = Self { observer, kind, object, version: 1 };
        gateways.list();
        assert_eq!(gateways.looks().await, 1, "it is there");
        gateways
    }

    fn tell(&self, change: WatchChange) {
        self.observer.observe(&self.kind, Epoch(1), change);
    }

    fn list(&self) {
        let namespace: Arc<str> = "".into();
        self.tell(WatchChange::Listing(namespace.clone()));
        self.tell(WatchChange::Listed(Arc::new(self.object.clone())));
        self.tell(WatchChange::Synced(namespace));
    }

    /// The gateway at its next version.
    fn write(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.object);
        self.version += 1;
        self.object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tell(WatchChange::Applied(Arc::new(self.object.clone())));
    }

    /// Number of due checks, once no more come.
    async fn looks(&self) -> usize {
        let queue = self.observer.gateways();
        let mut looks = 0;
        while let Ok(gateway) = tokio::time::timeout(Duration::from_secs(60), queue.next()).await {
            assert_eq!(gateway.name.to_string(), "kong/edge");
            queue.done(&gateway);
            looks += 1;
        }
        looks
    }
}

fn told_by_us(object: &mut Value, reason: &str) {
    let condition =
        json!({"type": meta::condition::ROUTER_FLAVOR_CONSISTENT, "status": "True", "reason": reason});
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|condition| condition["type"] == "Ready");
    conditions.push(condition);
}

#[rstest]
#[case::nothing(|_: &mut Value| {}, 0)]
#[case::whose_fields_they_are(|o: &mut Value| o["metadata"]["managedFields"] = json!([{"manager": "x"}]), 0)]
#[case::an_annotation_of_others(|o: &mut Value| o["metadata"]["annotations"] = json!({"team": "edge"}), 0)]
#[case::what_we_tell(|o: &mut Value| told_by_us(o, "Consistent"), 0)]
#[case::what_others_tell(|o: &mut Value| o["status"]["conditions"][0]["status"] = json!("False"), 1)]
#[case::both(|o: &mut Value| { told_by_us(o, "Mixed"); o["status"]["conditions"][0]["status"] = json!("False"); }, 1)]
#[case::a_pod_starts(|o: &mut Value| o["status"]["replicas"] = json!(3), 1)]
#[case::a_pod_turns_ready(|o: &mut Value| o["status"]["readyReplicas"] = json!(1), 1)]
#[case::a_spec_is_taken_up(|o: &mut Value| o["status"]["observedGeneration"] = json!(2), 1)]
#[case::the_live_set_is_another(|o: &mut Value| o["status"]["selector"] = json!("b"), 1)]
#[case::spec(|o: &mut Value| o["spec"]["replicas"] = json!(3), 1)]
#[case::who_configures_it(|o: &mut Value| o["metadata"]["annotations"] = json!({meta::CONFIG_PRODUCER: "kic"}), 1)]
#[tokio::test(start_paused = true)]
async fn a_gateway_is_looked_at_when_something_happens_to_it(
    #[case] change: fn(&mut Value),
    #[case] looks: usize,
    #[values(GatewayKind::DataPlane, GatewayKind::Deployment)] kind: GatewayKind,
) {
    let mut gateways = Gateways::new(kind).await;
    gateways.write(change);
    assert_eq!(gateways.looks().await, looks);
    gateways.list();
    assert_eq!(gateways.looks().await, 0, "a list says the same again");
    gateways.tell(WatchChange::Deleted(Arc::new(gateways.object.clone())));
    assert_eq!(gateways.looks().await, 1, "it is gone");
}

#[tokio::test(start_paused = true)]
async fn what_this_process_tells_again_concerns_nobody() {
    let mut gateways = Gateways::new(GatewayKind::DataPlane).await;
    gateways.write(|object| told_by_us(object, "Consistent"));
    gateways.write(|object| told_by_us(object, "Mixed"));
    assert_eq!(gateways.looks().await, 0);
}

#[test]
fn a_kind_that_only_rules_read_wakes_no_controller_of_gateways() {
    let store = Store::new(crate::kinds::all(), false);
    let changes = store.flavor_changes();
    for (api_version, kind) in [("v1", "Namespace"), ("kuadrant.io/v1", "AuthPolicy")] {
        let metadata = json!({"namespace": "shop", "name": "x", "uid": kind, "resourceVersion": "1"});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        store.observe(&Gvk::new(api_version, kind), Epoch(1), &WatchChange::Applied(Arc::new(object)));
    }
    assert!(!changes.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_a_plan_writes_is_looked_at_once() {
    let mut gateways = Gateways::new(GatewayKind::DataPlane).await;
    gateways.object["spec"]["replicas"] = json!(3);
    gateways.object["metadata"]["resourceVersion"] = json!("2");
    let mut changes = gateways.observer.store.flavor_changes();
    let reported = gateways.observer.store.answered(&WatchChange::Applied(Arc::new(gateways.object.clone())));
    gateways.observer.enqueue_gateways(&reported.unwrap().roots);
    assert!(changes.has_changed().unwrap(), "who follows gateways hears of it");
    changes.mark_unchanged();
    gateways.tell(WatchChange::Applied(Arc::new(gateways.object.clone())));
    assert!(!changes.has_changed().unwrap(), "the watch tells nothing new");
    assert_eq!(gateways.looks().await, 1);
}

/// The kinds of Interlock, where DataPlanes have a reconciler.
fn with_a_reconciler_of_data_planes() -> Kinds {
    static RECONCILER: Reconciler = Reconciler {
        name: "test",
        capability: &capabilities::DATA_PLANES,
        reconcile: |_| Ok(ReconcileStep::Await(None)),
    };
    let known = &data_plane::DATA_PLANE;
    let kind = Kind {
        watch: known.watch,
        schema: known.schema,
        reconciler: Some(&RECONCILER),
        ..Kind::new(known.resource)
    };
    let kind: &Kind = Box::leak(Box::new(kind));
    let is_data_plane = |other: &Kind| other.resource.kind == known.resource.kind;
    Vec::leak(
        crate::kinds::all().iter().map(|other| if is_data_plane(other) { kind } else { other }).collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_data_plane_wakes_its_reconciler() {
    let store = Store::new(with_a_reconciler_of_data_planes(), true);
    let observer = Observer::new(store, Arc::default(), None, Arc::new(Metrics::new()));
    let of_data_planes = |(kind, _): &&DescribedQueue| kind.resource.kind == "DataPlane";
    let (_, queue) = observer.described().iter().find(of_data_planes).unwrap();
    let tell = |group: &str, version: &str, kind: &str, change: WatchChange| {
        let kind = Gvk { group: group.into(), version: version.into(), kind: kind.into() };
        observer.observe(&kind, Epoch(1), change);
    };
    let woken = async || {
        let key = tokio::time::timeout(Duration::from_secs(60), queue.next()).await.ok();
        key.iter().for_each(|key| queue.done(key));
        key.map(|key| key.to_string())
    };
    let mut child = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": "kong", "name": "dataplane-edge-blue", "uid": "d", "resourceVersion": "1",
            "ownerReferences": [{
                "apiVersion": kong::API_VERSION, "kind": "DataPlane", "name": "edge", "uid": "e", "controller": true,
            }],
        },
    });
    let metadata = json!({"namespace": "kong", "name": "edge", "uid": "e", "resourceVersion": "1"});
    let mut edge = json!({"apiVersion": kong::API_VERSION, "kind": "DataPlane", "metadata": metadata});
    tell(kong::GROUP, kong::VERSION, "DataPlane", WatchChange::Applied(Arc::new(edge.clone())));
    assert_eq!(woken().await.as_deref(), Some("kong/edge"), "it is there");

    let deployment = |change: WatchChange| tell("apps", "v1", "DataPlaneDeployment", change);
    deployment(WatchChange::Applied(Arc::new(child.clone())));
    assert_eq!(woken().await.as_deref(), Some("kong/edge"), "a Deployment of it appears");

    child["metadata"]["resourceVersion"] = json!("2");
    child["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    deployment(WatchChange::Applied(Arc::new(child.clone())));
    assert_eq!(woken().await, None, "nothing else changes");

    edge["metadata"]["resourceVersion"] = json!("3");
    edge["metadata"]["annotations"] = json!({"team": "edge"});
    tell(kong::GROUP, kong::VERSION, "DataPlane", WatchChange::Applied(Arc::new(edge.clone())));
    assert_eq!(woken().await, None, "an annotation of others");

    edge["metadata"]["resourceVersion"] = json!("4");
    edge["metadata"]["annotations"] = json!({"gateway-operator.konghq.com/promote-when-ready": "true"});
    tell(kong::GROUP, kong::VERSION, "DataPlane", WatchChange::Applied(Arc::new(edge.clone())));
    assert_eq!(woken().await.as_deref(), Some("kong/edge"), "its promotion is requested");

    let read = ["take-over", "promotion-grace-period", "revision-history-limit"];
    let changes = read.iter().flat_map(|name| [(name, json!("1")), (name, Value::Null)]);
    for (version, (name, value)) in changes.enumerate() {
        edge["metadata"]["resourceVersion"] = json!((version + 5).to_string());
        edge["metadata"]["annotations"][format!("interlock.dev/{name}")] = value.clone();
        tell(kong::GROUP, kong::VERSION, "DataPlane", WatchChange::Applied(Arc::new(edge.clone())));
        assert_eq!(woken().await.as_deref(), Some("kong/edge"), "{name} is {value}");
    }

    deployment(WatchChange::Deleted(Arc::new(child)));
    assert_eq!(woken().await.as_deref(), Some("kong/edge"), "the Deployment is deleted");
}

/// The Instance of the other tests, as another that was created under its name.
fn recreated(world: &World) -> Arc<Value> {
    let mut object = world.touched("none").as_ref().clone();
    object["metadata"]["uid"] = json!("another");
    object["metadata"]["resourceVersion"] = json!("7");
    Arc::new(object)
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_came_since_outlives_the_one_that_was_missed() {
    let world = World::new();
    let (store, object) = (&world.observer.store, recreated(&world));
    let key = key_of(&object).unwrap();
    let known = store.uid_of(&key);
    assert!(known.is_some());
    world.tell(WatchChange::Applied(object.clone()));
    world.observer.missed(&key, known.as_deref());
    assert_ne!(store.uid_of(&key), known);
    assert!(!matches!(store.instance(&key), KeptInstance::Nothing), "it is another one");
    world.observer.missed(&key, Some("another"));
    assert!(matches!(store.instance(&key), KeptInstance::Nothing));
    world.tell(WatchChange::Applied(object));
    assert!(matches!(store.instance(&key), KeptInstance::Nothing), "a late word brings nothing back");
}

#[tokio::test(start_paused = true)]
async fn what_a_missed_instance_needed_is_given_up() {
    let world = World::new();
    let object = world.touched("none");
    let (key, package) = (key_of(&object).unwrap(), package_of(&object).unwrap());
    world.observer.instance_makes(&key, &package, &Gvk::new("example.dev/v1", "Widget"));
    assert_eq!(world.observer.kinds_of(&key, &package).len(), 1);
    world.passes().await;
    world.observer.missed(&key, world.observer.store.uid_of(&key).as_deref());
    assert_eq!(world.observer.kinds_of(&key, &package).len(), 0);
    assert_eq!(world.passes().await.len(), 1, "what is remembered of it is forgotten");
}

/// A read may be older than what the watch has reported since: the newer state stays, as no event repeats it.
#[tokio::test]
async fn a_read_never_replaces_what_the_watch_has_reported_since() {
    let mut world = World::new();
    world.touch();
    let read = world.touched("none");
    world.version += 1;
    let mut deleted = Value::clone(&world.touched("none"));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let key = key_of(&deleted).unwrap();
    world.tell(WatchChange::Applied(Arc::new(deleted.clone())));
    let store = &world.observer.store;
    let newest = store.pin(&key, read.clone());
    assert_eq!(*newest, deleted);
    assert!(matches!(store.instance(&key), KeptInstance::Whole(object) if *object == deleted));

    // One that the watch has yet to report is newer than what is known of it.
    world.version += 1;
    let read = world.touched("later");
    assert_eq!(store.pin(&key, read.clone()), read);
    assert!(matches!(store.instance(&key), KeptInstance::Whole(object) if object == read));
}

/// Labels are kept beside the budget of their namespace, so they have a limit of their own.
#[tokio::test]
async fn a_list_of_objects_with_large_labels_is_read_by_request() {
    let store = Store::new(with_a_reconciler_of_data_planes(), true);
    let observer = Observer::new(store.clone(), Arc::default(), None, Arc::new(Metrics::new()));
    let managed = (kong::labels::MANAGED_BY, "dataplane");
    let tell = |change: WatchChange| {
        let kind = Gvk { group: "apps".into(), version: "v1".into(), kind: "DataPlaneDeployment".into() };
        observer.observe(&kind, Epoch(1), change);
    };
    let namespace: Arc<str> = "".into();
    tell(WatchChange::Listing(namespace.clone()));
    tell(WatchChange::Synced(namespace));
    let listed = || {
        let labels = [(managed.0.to_owned(), managed.1.to_owned())].into();
        let gvk = interlock_core::api::object::Gvk::new("apps/v1", "Deployment");
        let list = ObjectList { gvk, namespace: "kong".to_owned(), labels };
        store.kept_list(&list).map(|found| found.len())
    };
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": "kong", "name": "d", "uid": "d", "resourceVersion": "1", "labels": {managed.0: managed.1},
        },
    });
    tell(WatchChange::Applied(Arc::new(object.clone())));
    assert_eq!(listed(), Some(1));
    for n in 0..100 {
        object["metadata"]["labels"][format!("label-{n}")] = json!("x".repeat(60));
    }
    object["metadata"]["resourceVersion"] = json!("2");
    tell(WatchChange::Applied(Arc::new(object.clone())));
    assert_eq!(listed(), None, "6 KiB of labels");
    tell(WatchChange::Deleted(Arc::new(object)));
    assert_eq!(listed(), Some(0));
}
