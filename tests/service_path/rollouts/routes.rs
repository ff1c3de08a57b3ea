//! A change of router flavor to and from `expressions` is promoted when each pod of the preview holds the routes of the
//! live side.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_kong::data_plane::rollout::side::Colour;
use serde_json::{Value, json};

use super::{CAP, Ground, NAMESPACE, definition, spec};
use crate::rollout_certificates::{await_secret, grant};
use crate::support::{Output, interlock, service_path, wait_until};

/// What a producer sends to pods with a flavor.
type Sent = Arc<Mutex<[&'static [&'static str]; 2]>>;

const FIELDS: usize = 0;
const EXPRESSIONS: usize = 1;

impl Ground {
    /// Configures the pods of each dialect by a producer of its own.
    fn produce_each(&self, routes: [&'static [&'static str]; 2]) -> Sent {
        let (admin, kong, stop) = (self.admin.clone(), self.kong.clone(), self.stop.clone());
        let sent: Sent = Arc::new(Mutex::new(routes));
        let sends = sent.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let list = admin.read(&format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app=edge"));
                for pod in list.body["items"].as_array().into_iter().flatten() {
                    let speaks = usize::from(pod["spec"].to_string().contains("\"expressions\""));
                    let names = sends.lock().expect("nobody panics with it")[speaks];
                    let routes: Vec<Value> = names.iter().map(|name| route(speaks, name)).collect();
                    if let Some(address) = pod["status"]["podIP"].as_str() {
                        kong.offer(address, &json!(routes));
                    }
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        sent
    }

    fn change_to(&self, flavor: &'static str, flags: &[&'static str]) -> Output {
        let line = ["flavor", "change", "edge", "--to", flavor, "-n", NAMESPACE];
        self.admin.command(&interlock::binary(), &[&line[..], flags].concat(), "")
    }

    #[track_caller]
    fn await_message(&self, parts: &[&str]) {
        wait_until(&format!("the rollout says {parts:?}"), CAP, || {
            let rolled_out = &self.data_plane()["status"]["rollout"]["conditions"][0];
            let message = rolled_out["message"].as_str().unwrap_or_default();
            if parts.iter().all(|part| message.contains(part)) { Ok(()) } else { Err(rolled_out.to_string()) }
        });
    }
}

fn route(speaks: usize, name: &str) -> Value {
    match speaks {
        EXPRESSIONS => json!({"name": name, "expression": "http.path == \"/a\"", "priority": 1}),
        _ => json!({"name": name, "paths": ["/a"]}),
    }
}

/// With routes in pages of two.
fn of_flavor(flavor: &str) -> Value {
    let mut spec = spec("kong:3.9");
    let template = &mut spec["deployment"]["podTemplateSpec"];
    template["spec"]["containers"][0]["env"] = json!([{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]);
    template["metadata"] = json!({"annotations": {"testbed.interlock.dev/kong-page": "2"}});
    spec
}

#[test]
fn a_preview_without_the_routes_of_the_live_side_is_not_promoted() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    grant(&ground);
    let all: &[&str] = &["shop.a", "shop.b", "shop.c", "shop.d", "shop.e"];
    let sent = ground.produce_each([all, &all[..1]]);
    ground.create(of_flavor("traditional_compatible"));
    ground.await_rolled_out("WaitingForChange");
    await_secret(&ground, "is made", |_| true);

    let staged = ground.change_to("expressions", &[]);
    assert!(staged.stdout.contains("traditional_compatible -> expressions is staged"), "{staged}");
    let lacks = "it lacks 4 routes of the 5 of live pod dataplane-edge-blue-";
    ground.await_message(&["pod dataplane-edge-green-", lacks, ": shop.b, shop.c, shop.d and 1 more"]);
    let waits = ground.change_to("expressions", &[]);
    assert!(waits.code == 0 && waits.stdout.contains(lacks), "{waits}");
    // Neither does a request move it, for more than one look.
    ground.rollout(&["promote", "edge"]);
    sent.lock().expect("nobody panics with it")[EXPRESSIONS] =
        &["shop.a", "shop.b", "shop.c", "shop.d", "shop.x"];
    ground.await_message(&["it lacks 1 route of the 5", ": shop.e;", "it has 1 route beside", ": shop.x;"]);
    let found = ground.data_plane();
    assert_eq!(found["status"]["selector"], ground.selector(Colour::Blue), "{found}");
    let gate = &found["status"]["rollout"]["conditions"][1];
    assert_eq!((&gate["type"], &gate["reason"]), (&json!("GatesPassed"), &json!("Answers")), "{found}");
    let why = ground.admin.command(&interlock::binary(), &["why", "dataplane/edge", "-n", NAMESPACE], "");
    assert!(
        why.stdout.contains("gate pods: passed") && why.stdout.contains("gate answers: waits for: "),
        "{why}"
    );

    sent.lock().expect("nobody panics with it")[EXPRESSIONS] = all;
    let done = ground.change_to("expressions", &["--wait"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.contains("router flavor expressions is live"), "{done}");

    // There and back, with no route at all.
    *sent.lock().expect("nobody panics with it") = [&["shop.a"], &[]];
    ground.await_rolled_out("WaitingForChange");
    ground.change_to("traditional_compatible", &[]).ok();
    ground.await_message(&["it has 1 route beside the 0 of live pod dataplane-edge-green-"]);
    sent.lock().expect("nobody panics with it")[FIELDS] = &[];
    let back = ground.change_to("traditional_compatible", &["--wait"]);
    assert_eq!(back.code, 0, "{back}");
    assert!(back.stdout.contains("router flavor traditional_compatible is live"), "{back}");
}
