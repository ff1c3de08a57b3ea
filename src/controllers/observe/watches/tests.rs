//! Bursts of events and the passes that come of them.

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::plan::rest::tests::settled;

/// Events of a burst.
const EVENTS: usize = 500;
/// What a pass takes.
const PASS: Duration = Duration::from_millis(5);

/// An observer with one Instance at rest, and when each pass over it began.
struct World {
    observer: Arc<Observer>,
    passes: Arc<Mutex<Vec<Instant>>>,
    version: u64,
}

impl World {
    fn new() -> Self {
        let (store, queue, passes) = (Store::new(true), Arc::<Queue<_>>::default(), Arc::default());
        store.looked_at(true);
        let metrics = Arc::new(Metrics::new());
        let observer = Observer::new(store.clone(), Arc::default(), Some(queue.clone()), metrics);
        let begun: Arc<Mutex<Vec<Instant>>> = Arc::clone(&passes);
        tokio::spawn(async move {
            loop {
                let key = queue.next().await;
                begun.lock().unwrap().push(Instant::now());
                tokio::time::sleep(PASS).await;
                store.let_go(&key);
                queue.done(&key);
            }
        });
        let world = Self { observer, passes, version: 0 };
        let told = world.touched("none");
        let namespace: Arc<str> = "".into();
        world.tell(Change::Listing(namespace.clone()));
        world.tell(Change::Listed(told));
        world.tell(Change::Synced(namespace));
        world
    }

    fn tell(&self, change: Change) {
        let kind =
            Gvk { group: INSTANCE.group.into(), version: "v1beta1".into(), kind: INSTANCE.kind.into() };
        self.observer.observe(&kind, Epoch(1), change);
    }

    /// The Instance with something in an annotation of ours, at its next version.
    fn touched(&self, how: &str) -> Arc<Value> {
        let mut object = settled();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["annotations"]["kudo.dev/touched"] = json!(how);
        Arc::new(object)
    }

    fn touch(&mut self) {
        self.version += 1;
        let object = self.touched(&self.version.to_string());
        self.tell(Change::Applied(object));
    }

    /// Passes so far, once nothing more is due.
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
    let told = Instant::now();
    assert_eq!(world.passes().await, [told + BURST]);
}
