//! How many pods are live, by `replicas` and by an autoscaler.

use super::*;

const HPA: &str = "edge";

/// Follows how many endpoints of the live Service are ready, and keeps the fewest.
struct Fewest {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(usize, usize)>,
}

impl Fewest {
    fn start(ground: &Ground) -> Self {
        let (admin, stop) = (ground.admin.clone(), Arc::new(AtomicBool::new(false)));
        let path = live_slices(ground);
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut fewest, mut looks) = (usize::MAX, 0);
            while !stopped.load(Ordering::SeqCst) {
                let list = admin.read(&path);
                if list.code == 200 {
                    fewest = fewest.min(ready_endpoints(&list.body));
                    looks += 1;
                }
            }
            (fewest, looks)
        });
        Self { stop, thread }
    }

    #[track_caller]
    fn end(self, what: &str, least: usize) {
        self.stop.store(true, Ordering::SeqCst);
        let (fewest, looks) = self.thread.join().expect("the probe does not panic");
        announce(&format!("{what}: never fewer than {fewest} ready endpoints in {looks} looks"));
        assert!(looks > 10, "{looks}");
        assert!(fewest >= least, "{what}: {fewest} ready endpoints, not {least}");
    }
}

fn scale(replicas: Option<u32>) -> Value {
    let horizontal = json!({"minReplicas": 2, "maxReplicas": 20});
    match replicas {
        Some(replicas) => json!({"spec": {"deployment": {"replicas": replicas, "scaling": null}}}),
        None => json!({"spec": {"deployment": {"replicas": null, "scaling": {"horizontal": horizontal}}}}),
    }
}

impl Ground {
    fn patch(&self, patch: &Value) {
        self.admin.merge_patch(&self.path("dataplanes", "edge"), patch).ok();
    }

    #[track_caller]
    fn await_pods(&self, deployment: &str, pods: u32) {
        self.await_child("deployments", deployment, &format!("has {pods} ready pods"), |found| {
            found["spec"]["replicas"] == pods && found["status"]["readyReplicas"] == pods
        });
    }

    #[track_caller]
    fn await_target(&self, deployment: &str) {
        self.await_child("horizontalpodautoscalers", HPA, "scales the live side", |found| {
            found["spec"]["scaleTargetRef"]["name"] == deployment
        });
    }

    #[track_caller]
    fn await_endpoints(&self, count: usize) {
        wait_until(&format!("{count} endpoints are ready"), CAP, || {
            let list = self.admin.read(&live_slices(self)).ok();
            let found = ready_endpoints(&list);
            if found == count { Ok(()) } else { Err(format!("{found}")) }
        });
    }
}

fn autoscaled() -> Value {
    let mut spec = spec("kong:3.8");
    spec["deployment"].as_object_mut().expect("an object").remove("replicas");
    spec["deployment"]["scaling"] = json!({"horizontal": {"minReplicas": 2, "maxReplicas": 20}});
    spec
}

/// The preview starts with as many pods as an autoscaler has given the live side.
#[test]
fn an_autoscaled_side_is_replaced_by_one_of_its_size() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    ground.create(autoscaled());
    ground.await_rolled_out("WaitingForChange");
    ground.await_target(BLUE);
    // As the autoscaler does.
    ground.admin.kubectl(&["scale", "deployment", BLUE, "-n", NAMESPACE, "--replicas=6"]).ok();
    ground.await_pods(BLUE, 6);
    ground.await_endpoints(6);

    let probe = Fewest::start(&ground);
    ground.stage("kong:3.9");
    ground.await_rolled_out("AwaitingPromotion");
    ground.await_pods(GREEN, 6);
    ground.await_target(BLUE);
    ground.rollout(&["promote", "edge", "--wait"]);
    ground.await_rolled_out("WaitingForChange");
    ground.await_target(GREEN);
    ground.await_pods(GREEN, 6);
    probe.end("a promotion of an autoscaled side", 6);
}

/// A change between `replicas` and `scaling` takes no pod away, whatever is staged.
#[test]
fn a_change_of_who_scales_takes_no_pod_away() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    let mut wanted = spec("kong:3.8");
    wanted["deployment"]["replicas"] = json!(10);
    ground.create(wanted);
    ground.await_rolled_out("WaitingForChange");
    ground.await_endpoints(10);
    let probe = Fewest::start(&ground);
    let back_and_forth = |live: &str| {
        ground.patch(&scale(None));
        ground.await_target(live);
        ground.await_pods(live, 10);
        ground.patch(&scale(Some(10)));
        wait_until("the autoscaler is gone", CAP, || {
            let found = ground.admin.read(&ground.path("horizontalpodautoscalers", HPA));
            if found.code == 404 { Ok(()) } else { Err(found.to_string()) }
        });
        ground.await_child("deployments", live, "is Interlock's to scale", |found| {
            let managers = found["metadata"]["managedFields"].as_array().into_iter().flatten();
            let mut owners = managers.filter(|entry| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null());
            found["spec"]["replicas"] == 10 && owners.any(|entry| entry["manager"] == "interlock")
        });
    };
    back_and_forth(BLUE);
    ground.stage("kong:3.9");
    ground.await_rolled_out("Progressing");
    back_and_forth(BLUE);
    ground.produce();
    ground.await_rolled_out("AwaitingPromotion");
    back_and_forth(BLUE);
    ground.await_rolled_out("AwaitingPromotion");
    ground.rollout(&["promote", "edge", "--wait"]);
    back_and_forth(GREEN);
    probe.end("replicas and scaling in each phase", 10);
}
