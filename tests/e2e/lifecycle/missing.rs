//! What Instances say while a definition is missing.

use std::time::{Duration, Instant};

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::changes::{path_of_role, without};
use super::world::{CAP, World};
use crate::support::audit::await_rest;
use crate::support::instances::condition;
use crate::support::{Client, Namespace, instances, wait_until};

struct Ground<'a> {
    world: &'a World,
    ns: &'a Namespace<'a>,
    user: Client,
}

impl Ground<'_> {
    /// Waits until `Ready` of an Instance has a reason; its message.
    #[track_caller]
    fn await_ready(&self, name: &str, status: &str, reason: &str, text: &str) -> String {
        wait_until(&format!("{name}: Ready is {status}/{reason}: {text}"), CAP, || {
            let found = self.user.get("instances.kudo.dev", name).ok_or("no Instance")?;
            let ready = condition(&found, "Ready");
            let message = ready["message"].as_str().unwrap_or_default().to_owned();
            // The status that observes the clear of planExecution is the last write.
            let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
            let last = observed || status != "True";
            let holds =
                last && ready["status"] == status && ready["reason"] == reason && message.contains(text);
            if holds { Ok(message) } else { Err(format!("{:#}", found["status"]["conditions"])) }
        })
    }

    /// Waits until `Stalled` of an Instance is True and says this.
    #[track_caller]
    fn await_stalled(&self, name: &str, text: &str) -> Value {
        wait_until(&format!("{name}: Stalled is True: {text}"), CAP, || {
            let found = self.user.get("instances.kudo.dev", name).ok_or("no Instance")?;
            let stalled = condition(&found, "Stalled");
            let says = stalled["message"].as_str().is_some_and(|message| message.contains(text));
            if stalled["status"] == "True" && says {
                Ok(found)
            } else {
                Err(format!("{:#}", found["status"]))
            }
        })
    }

    /// Writes to the Instances that the audit log holds.
    fn writes(&self) -> Vec<String> {
        self.world.settle_audit();
        let mut requests = self.world.requests(self.ns.name());
        requests.retain(|request| request.contains("/instances/") && !request.starts_with("get "));
        requests
    }

    fn version(&self, name: &str) -> Value {
        self.user.get("instances.kudo.dev", name).expect("it is there")["metadata"]["resourceVersion"].clone()
    }
}

/// Of two Instances of one package, the one that made an object of the kind says that it is not
/// served, in each way in which it may not be; the other is ready all the time.
#[test]
fn an_instance_says_that_the_definition_of_what_it_made_is_missing() {
    let world = World::new();
    world.install("envoyfilters");
    world.grant_filters();
    let ns = world.cluster.namespace("bereft");
    world.create_package(&ns);
    world.create_instance(&ns, "demo", "filtered");
    world.create_instance(&ns, "other", "plain");
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    for name in ["demo", "other"] {
        instances::await_run(&ground.user, name, "deploy", "");
        ground.await_ready(name, "True", "ResourcesReady", "");
    }
    let other = ground.version("other");
    let kind = "CustomResourceDefinition of networking.istio.io/v1alpha3, Kind=EnvoyFilter";
    world.serve("envoyfilters", false);
    ground.await_ready("demo", "Unknown", "MissingDependency", &format!("{kind} serves v1alpha9"));
    world.serve("envoyfilters", true);
    ground.await_ready("demo", "True", "ResourcesReady", "");
    world.remove("envoyfilters");
    ground.await_ready("demo", "Unknown", "MissingDependency", &format!("{kind} is not installed"));

    // Another process finds it said, and writes nothing.
    let version = ground.version("demo");
    world.interlock.kill();
    world.interlock.start();
    world.interlock.await_ready();
    world.await_state("instances", "Running");
    world.create_instance(&ns, "late", "plain");
    instances::await_run(&ground.user, "late", "deploy", "");
    ground.await_ready("late", "True", "ResourcesReady", "");
    assert_eq!(ground.version("demo"), version);
    assert_eq!(ground.version("other"), other, "it made no such object");

    world.install("envoyfilters");
    ground.await_ready("demo", "True", "ResourcesReady", "");
}

/// A definition that every plan needs goes and comes: every Instance says so once.
#[test]
fn every_instance_says_that_a_definition_is_missing_that_plans_need() {
    let world = World::new();
    let ns = world.cluster.namespace("bereft");
    world.create_package(&ns);
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    let names = ["demo-0", "demo-1", "demo-2"];
    for name in names {
        world.create_instance(&ns, name, "plain");
        instances::await_run(&ground.user, name, "deploy", "");
    }
    for name in names {
        ground.await_ready(name, "True", "ResourcesReady", "");
    }
    let before = ground.writes().len();
    let began = Instant::now();
    world.remove("operatorversions");
    let took = began.elapsed();
    let said = "CustomResourceDefinition operatorversions.kudo.dev is not installed";
    for name in names {
        ground.await_ready(name, "Unknown", "MissingDependency", said);
    }
    let writes = ground.writes().split_off(before);
    // And one more where it took so long to go that they have said that.
    let most = if took < Duration::from_secs(9) { names.len() } else { 2 * names.len() };
    assert!((names.len()..=most).contains(&writes.len()), "one each in {took:?}: {writes:#?}");
    // One that is made meanwhile says so too.
    world.create_instance(&ns, "late", "plain");
    ground.await_ready("late", "Unknown", "MissingDependency", said);

    world.install("operatorversions");
    for name in names {
        ground.await_ready(name, "True", "ResourcesReady", "");
    }
    world.create_package(&ns);
    instances::await_run(&ground.user, "late", "deploy", "");
    ground.await_ready("late", "True", "ResourcesReady", "");
    world.assert_same_process();
    await_rest(&world.cluster, "a definition that every plan needs came and went");
}

/// Somebody's finalizer keeps a definition that every plan needs from going: every Instance says
/// so until it has gone, whether the process ran before or has just started.
#[test]
fn every_instance_says_that_a_definition_does_not_go() {
    let world = World::new();
    let ns = world.cluster.namespace("held");
    world.create_package(&ns);
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    let names = ["demo-0", "demo-1"];
    for name in names {
        world.create_instance(&ns, name, "plain");
        instances::await_run(&ground.user, name, "deploy", "");
    }
    let await_all = |status: &str, reason: &str, text: &str| {
        for name in names {
            ground.await_ready(name, status, reason, text);
        }
    };
    await_all("True", "ResourcesReady", "");
    let (admin, path) = (world.cluster.admin(), World::path("operatorversions"));
    let finalizers = |change: fn(&mut Vec<Value>)| {
        let edited = admin.put_edited(&path, |object| {
            let mut all = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            change(&mut all);
            object["metadata"]["finalizers"] = Value::from(all);
        });
        edited.ok();
    };
    finalizers(|all| all.push(json!("example.com/held")));
    admin.delete(&path).ok();
    let said = "CustomResourceDefinition operatorversions.kudo.dev is being deleted and does not go";
    await_all("Unknown", "MissingDependency", said);
    world.interlock.kill();
    world.interlock.start();
    world.interlock.await_ready();
    world.create_instance(&ns, "late", "plain");
    ground.await_ready("late", "Unknown", "MissingDependency", said);

    finalizers(|all| all.retain(|finalizer| finalizer != "example.com/held"));
    await_all("Unknown", "MissingDependency", "operatorversions.kudo.dev is not installed");
    world.install("operatorversions");
    await_all("True", "ResourcesReady", "");
    world.create_package(&ns);
    instances::await_run(&ground.user, "late", "deploy", "");
    ground.await_ready("late", "True", "ResourcesReady", "");
}

/// Unavailable is not empty: what is of a kind that is not served now may be there, and a cleanup
/// that deletes it waits; once it is seen, it is deleted.
#[test]
fn a_cleanup_waits_for_a_kind_that_is_not_served_now() {
    let world = World::new();
    world.install("envoyfilters");
    world.grant_filters();
    let ns = world.cluster.namespace("withheld");
    world.create_package(&ns);
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    world.create_instance(&ns, "demo", "filtered");
    instances::await_run(&ground.user, "demo", "deploy", "");
    ground.await_ready("demo", "True", "ResourcesReady", "");
    world.serve("envoyfilters", false);
    ground.await_ready("demo", "Unknown", "MissingDependency", "serves v1alpha9");

    ground.user.kubectl(&["delete", "instance", "demo", "--wait=false"]).ok();
    let kind = "waiting for the CustomResourceDefinition of networking.istio.io/v1alpha3, Kind=EnvoyFilter";
    let found = ground.await_stalled("demo", &format!("{kind}, which serves v1alpha9, not v1alpha3"));
    assert_eq!(found["metadata"]["finalizers"], json!([meta::FINALIZER]));
    assert_eq!(found["status"]["planStatus"]["cleanup"]["status"], "IN_PROGRESS", "{found:#}");
    assert!(ground.user.get("configmap", "demo-config").is_none(), "the rest of the task is done");

    world.serve("envoyfilters", true);
    wait_until("the Instance and what it made are gone", CAP, || {
        let filter = ns.path("networking.istio.io/v1alpha3", "envoyfilters", "demo-filter");
        let codes = [
            ground.user.read(&filter).code,
            ground.user.read(&ns.path(meta::KUDO_API_VERSION, "instances", "demo")).code,
        ];
        if codes == [404, 404] { Ok(()) } else { Err(format!("{codes:?}")) }
    });
    let events = ground.user.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"]).ok();
    assert!(events.contains("Execution of plan cleanup finished with status COMPLETE"), "{events}");
    world.assert_same_process();
}

/// A definition that every plan needs goes while a plan waits for another: `Stalled` names it,
/// and then again what the plan waits for.
#[test]
fn a_plan_in_progress_says_which_definition_it_waits_for() {
    let world = World::new();
    let ns = world.cluster.namespace("midway");
    world.create_package(&ns);
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    world.create_instance(&ns, "demo", "filtered");
    let filter = "Kind=EnvoyFilter, which is not installed";
    ground.await_stalled("demo", filter);
    world.remove("operatorversions");
    let said = "CustomResourceDefinition operatorversions.kudo.dev is not installed";
    ground.await_stalled("demo", said);
    ground.await_ready("demo", "Unknown", "MissingDependency", said);

    world.install("operatorversions");
    world.create_package(&ns);
    ground.await_stalled("demo", filter);
    world.install("envoyfilters");
    instances::await_run(&ground.user, "demo", "deploy", "");
    ground.await_ready("demo", "True", "ResourcesReady", "");
    world.assert_same_process();
}

/// Switched off, not started, without a right: every Instance says what keeps its plans from being
/// carried out, and none of it stays.
#[test]
fn every_instance_says_why_its_plans_are_not_carried_out() {
    let world = World::new();
    let ns = world.cluster.namespace("at-rest");
    world.create_package(&ns);
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    let names = ["demo-0", "demo-1"];
    let await_all = |status: &str, reason: &str, text: &str| {
        for name in names {
            ground.await_ready(name, status, reason, text);
        }
    };
    for name in names {
        world.create_instance(&ns, name, "plain");
        instances::await_run(&ground.user, name, "deploy", "");
    }
    await_all("True", "ResourcesReady", "");

    world.set(r#"{capabilities: {instances: {mode: "off"}}}"#);
    await_all("Unknown", "MissingDependency", "instances is switched off");
    world.set("{capabilities: {instances: {mode: manual}}}");
    await_all("True", "ResourcesReady", "");
    world.remove("operatorversions");
    await_all("Unknown", "MissingDependency", "operatorversions.kudo.dev is not installed");
    world.install("operatorversions");
    await_all("Unknown", "MissingDependency", "the mode is manual");
    world.set("{capabilities: {instances: {mode: auto}}}");
    await_all("True", "ResourcesReady", "");

    // An open watch is not authorised again; the list of a new process is.
    let (admin, role) = (world.cluster.admin(), path_of_role("operatorversions"));
    let rules = admin.read(&role).ok()["rules"].clone();
    world.interlock.kill();
    admin.merge_patch(&role, &json!({"rules": without(&rules, "operatorversions")})).ok();
    world.interlock.start();
    await_all("Unknown", "MissingDependency", "may not list operatorversions.kudo.dev");
    admin.merge_patch(&role, &json!({"rules": rules})).ok();
    await_all("True", "ResourcesReady", "");
}

/// Objects that nobody can convert keep a kind from being listed: a process that has just started
/// says so, once that is no slow start, and says it once.
#[test]
fn every_instance_says_that_packages_cannot_be_listed() {
    let world = World::new();
    let ns = world.cluster.namespace("unlisted");
    let (admin, definition) = (world.cluster.admin(), World::path("operatorversions"));
    let kept_as = |conversion: Value| admin.merge_patch(&definition, &json!({"spec": conversion})).ok();
    let mut versions = admin.read(&definition).ok()["spec"]["versions"].clone();
    versions[0]["storage"] = json!(false);
    let mut other = versions[0].clone();
    other["name"] = json!("v1alpha9");
    other["storage"] = json!(true);
    versions.as_array_mut().expect("versions").push(other);
    kept_as(json!({"versions": versions}));
    wait_until("the other version is served", CAP, || {
        let answer = admin.read("/apis/kudo.dev/v1alpha9/operatorversions");
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
    world.create_package(&ns);
    let ground = Ground { world: &world, ns: &ns, user: ns.user("alice") };
    world.create_instance(&ns, "demo", "plain");
    instances::await_run(&ground.user, "demo", "deploy", "");
    ground.await_ready("demo", "True", "ResourcesReady", "");

    let nobody = json!({"url": "https://127.0.0.1:1/convert"});
    kept_as(json!({"conversion": {
        "strategy": "Webhook",
        "webhook": { "clientConfig": nobody, "conversionReviewVersions": ["v1"] },
    }}));
    world.interlock.kill();
    world.interlock.start();
    wait_until("instances are Degraded", 2 * CAP, || {
        let found = world.state("instances");
        if found == "Degraded" { Ok(()) } else { Err(found) }
    });
    let before = ground.writes().len();
    let said = "operatorversions.kudo.dev cannot be listed: condition InstancesReady of Interlock default";
    ground.await_ready("demo", "Unknown", "MissingDependency", said);
    await_rest(&world.cluster, "packages cannot be listed");
    let writes = ground.writes().split_off(before);
    assert!(writes.len() <= 1, "said once: {writes:#?}");

    kept_as(json!({"conversion": { "strategy": "None", "webhook": null }}));
    ground.await_ready("demo", "True", "ResourcesReady", "");
}
