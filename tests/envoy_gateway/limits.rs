//! RateLimitPolicies, as Interlock carries them out through a real Envoy that Envoy Gateway configures, with a Limitador.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::ground::{CAP, Ground, await_answer, condition, limit, policy};
use crate::site::{self, HOST, PORT};
use crate::support::envoy_gateway::{Envoy, EnvoyGateway};
use crate::support::interlock::interlock;
use crate::support::{service_path, wait_until};

const PATCH: &str = "interlock-limits-gw-0";

#[test]
fn limits_count_and_refuse_requests_of_a_real_envoy() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start(&cluster);
    let Some(ground) = Ground::new(&cluster) else { return };
    site::create(&cluster.admin());
    let envoy = gateway.proxy("app", "gw");
    envoy.await_status(PORT, HOST, "/limited", 200);

    // By rule: the other one is not limited.
    ground.put(&policy(
        "api",
        "HTTPRoute/api#rule-1",
        json!({"limits": {
            "own": limit(3, &["request.method == 'GET'"], &[]),
            "never": limit(1, &["request.method == 'PUT'"], &[]),
        }}),
    ));
    ground.await_enforced("api");
    envoy.await_status(PORT, HOST, "/limited", 429);
    assert_eq!(ground.counted("own"), 3, "requests before the first refusal");
    for _ in 0..5 {
        assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));
    }
    let proxies = |object: &str| {
        let said = interlock(&ground.admin, &["why", object, "-n", "app", "--proxy", "-o", "json"], "").ok();
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["unknown"], json!([]), "{said:#}");
        said["proxies"].as_array().expect("proxies").clone()
    };
    for object in ["ratelimitpolicy/api", "httproute/api", "gateway/gw"] {
        let own = proxies(object);
        assert_eq!(own.len(), 1, "{own:?}");
        assert_eq!((&own[0]["rules"], &own[0]["lacks"]), (&json!(["httproute/app/api/rule/0"]), &json!([])));
    }

    // By counter. Without the header nothing is counted.
    ground.put(&policy(
        "users",
        "HTTPRoute/api#rule-2",
        json!({"limits": {
            "user": limit(1, &[r#"request.headers['x-odd'] == 'a"b\'\\ é'"#], &["request.headers['x-user']"]),
        }}),
    ));
    ground.await_enforced("users");
    let by = |user: &str| format!("x-odd: a\"b'\\ é\r\nx-user: {user}\r\n");
    await_answer(&envoy, "/other", &by("alice"), 429);
    assert_eq!(envoy.get(PORT, HOST, "/other", &by("bob")), Some(200));
    await_answer(&envoy, "/other", &by("bob"), 429);
    assert_eq!(envoy.get(PORT, HOST, "/other", "x-user: alice\r\n"), Some(200));
    assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));

    // The death of Interlock changes nothing.
    ground.interlock.kill();
    await_answer(&envoy, "/limited", "", 429);
    assert_eq!(envoy.get(PORT, HOST, "/other", "x-user: alice\r\n"), Some(200));
    ground.interlock.start();
    ground.interlock.await_ready();

    // An override of the Gateway acts in place of the route's own limits, and the stricter of two wins.
    ground.put(&policy(
        "gw",
        "Gateway/gw",
        json!({"overrides": {"limits": {
            "wide": limit(100, &["'x-all' in request.headers"], &[]),
            "all": limit(2, &["'x-all' in request.headers"], &[]),
        }}}),
    ));
    ground.await_enforced("gw");
    await_answer(&envoy, "/limited", "", 200);
    await_answer(&envoy, "/other", "x-all: 1\r\n", 429);
    assert_eq!(ground.counted("all"), 2, "requests before the first refusal");
    let overridden = ground.admin.get("ratelimitpolicy", "api").expect("it is there");
    assert_eq!(condition(&overridden, "Enforced")["reason"], "Overridden", "{overridden:#}");

    // Without it the limits of the route are in force again; without these, nothing is.
    ground.admin.kubectl(&["delete", "ratelimitpolicy", "gw"]).ok();
    await_answer(&envoy, "/limited", "", 429);
    ground.admin.kubectl(&["delete", "ratelimitpolicy", "api", "users"]).ok();
    let began = Instant::now();
    await_answer(&envoy, "/limited", "", 200);
    crate::support::announce(&format!(
        "counted: a route was open {:?} after its policy was deleted",
        began.elapsed()
    ));
    wait_until("nothing is left", CAP, || match ground.admin.get("envoypatchpolicy", PATCH) {
        None => Ok(()),
        Some(left) => Err(format!("{left:#}")),
    });
}

/// Limits change under load: no request of another rule fails. What people do to the outputs is put right. Without its
/// Limitador, a limit refuses no request. Envoy Gateway names listeners by their ports.
#[test]
fn changes_and_faults_disturb_no_other_request() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start_with_names_by_port(&cluster);
    let Some(ground) = Ground::new(&cluster) else { return };
    let by_port = json!({"spec": {"policies": {"xdsNameSchemeV2": true}}}).to_string();
    ground.admin.kubectl(&["patch", "interlock", "default", "--type=merge", "-p", &by_port]).ok();
    site::create(&cluster.admin());
    let envoy = Arc::new(gateway.proxy("app", "gw"));
    ground.put(&policy("closed", "HTTPRoute/api#rule-1", json!({"limits": {"none": limit(0, &[], &[])}})));
    ground.await_enforced("closed");
    envoy.await_status(PORT, HOST, "/limited", 429);

    let load = Load::start(&envoy);
    for round in 0..5 {
        ground.put(&policy(
            "open",
            "HTTPRoute/api#rule-2",
            json!({"limits": {
                format!("round-{round}"): limit(1_000_000, &[], &["request.url_path"]),
            }}),
        ));
        ground.await_enforced("open");
    }
    // One tenant's worst: what Envoy lacks is left out, and the others go on.
    ground.put(&policy(
        "open",
        "HTTPRoute/api#rule-2",
        json!({"limits": {
            "lacks": limit(1, &["request.path.lowerAscii() == '/a'"], &[]),
            "good": limit(1_000_000, &[], &[]),
        }}),
    ));
    wait_until("what is not carried out is said", CAP, || {
        let policy = ground.admin.get("ratelimitpolicy", "open").ok_or("there is none")?;
        let enforced = condition(&policy, "Enforced");
        if enforced["reason"] == "Unsupported" { Ok(()) } else { Err(format!("{enforced:#}")) }
    });
    let (asked, wrong) = load.stop();
    assert!(wrong.is_empty(), "of {asked} requests: {wrong:?}");

    // By hand.
    let is_whole = || {
        let patch = ground.admin.get("envoypatchpolicy", PATCH);
        let patches = patch.and_then(|own| own["spec"]["jsonPatches"].as_array().map(Vec::len));
        if patches.is_some_and(|count| count > 3) { Ok(()) } else { Err(format!("{patches:?}")) }
    };
    let uid = || ground.admin.get("envoypatchpolicy", PATCH).map(|own| own["metadata"]["uid"].clone());
    let emptied = json!({"spec": {"jsonPatches": []}}).to_string();
    ground.admin.kubectl(&["patch", "envoypatchpolicy", PATCH, "--type=merge", "-p", &emptied]).ok();
    let began = Instant::now();
    wait_until("the patch is whole again", CAP, is_whole);
    let after_edit = began.elapsed();
    let before = uid();
    ground.admin.kubectl(&["delete", "envoypatchpolicy", PATCH, "--wait=false"]).ok();
    let began = Instant::now();
    wait_until("the patch is there again", CAP, || {
        let now = uid();
        if now.is_some() && now != before { is_whole() } else { Err(format!("{now:?}")) }
    });
    crate::support::announce(&format!("counted: edited {after_edit:?}, deleted {:?}", began.elapsed()));
    envoy.await_status(PORT, HOST, "/limited", 429);

    ground.limitador.lock().expect("no panic").kill();
    envoy.await_status(PORT, HOST, "/limited", 200);
    assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));
    ground.limitador.lock().expect("no panic").restart();
    envoy.await_status(PORT, HOST, "/limited", 429);
}

/// What the API server refuses is said where the author of the policy looks. A listener that Envoy Gateway leaves out takes
/// nothing from the others of its port, though the port had its name.
#[test]
fn what_is_in_the_way_is_said_and_takes_nothing_from_others() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start(&cluster);
    let Some(ground) = Ground::new(&cluster) else { return };
    site::create(&cluster.admin());
    let envoy = gateway.proxy("app", "gw");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/envoypatchpolicies.gateway.envoyproxy.io": "0"}},
    });
    ground.put(&quota);
    wait_until("the quota is known", CAP, || {
        let found = ground.admin.get("resourcequota", "none").ok_or("no quota")?;
        if found["status"]["hard"].is_null() { Err(format!("{found:#}")) } else { Ok(()) }
    });
    ground.put(&policy("closed", "HTTPRoute/api#rule-1", json!({"limits": {"none": limit(0, &[], &[])}})));
    wait_until("the policy says what is refused", CAP, || {
        let policy = ground.admin.get("ratelimitpolicy", "closed").ok_or("there is none")?;
        let enforced = condition(&policy, "Enforced");
        let message = enforced["message"].as_str().unwrap_or_default();
        // "exceeded quota", or "status unknown for quota" as long as kube-controller-manager has not counted the kind yet.
        let is_said = message.contains("which cannot be written") && message.contains("quota: none");
        if is_said { Ok(()) } else { Err(format!("{enforced:#}")) }
    });
    assert_eq!(envoy.get(PORT, HOST, "/limited", ""), Some(200));
    ground.admin.kubectl(&["delete", "resourcequota", "none"]).ok();
    ground.await_enforced("closed");
    envoy.await_status(PORT, HOST, "/limited", 429);

    let listeners = json!({"spec": {"listeners": [
        {"name": "broken", "port": PORT, "protocol": "HTTP", "hostname": "broken.example.org",
         "allowedRoutes": {"kinds": [{"kind": "TCPRoute"}]}},
        {"name": "http", "port": PORT, "protocol": "HTTP"},
    ]}});
    ground.admin.kubectl(&["patch", "gateway", "gw", "--type=merge", "-p", &listeners.to_string()]).ok();
    wait_until("Envoy Gateway leaves the first listener out", CAP, || {
        let own = ground.admin.get("gateway", "gw").ok_or("no Gateway")?;
        let mut listeners = own["status"]["listeners"].as_array().into_iter().flatten();
        let mut broken = listeners
            .find(|listener| listener["name"] == "broken")
            .into_iter()
            .flat_map(|listener| listener["conditions"].as_array().into_iter().flatten());
        let is_out = broken.any(|own| own["type"] == "Programmed" && own["status"] == "False");
        if is_out { Ok(()) } else { Err(format!("{:#}", own["status"])) }
    });
    wait_until("the patches are of the listener that is there, and programmed", CAP, || {
        let patch = ground.admin.get("envoypatchpolicy", PATCH).ok_or("no patch")?;
        let all = patch["spec"]["jsonPatches"].as_array().into_iter().flatten();
        let names: Vec<&str> = all.filter_map(|own| own["name"].as_str()).collect();
        let mut said = patch["status"]["ancestors"][0]["conditions"].as_array().into_iter().flatten();
        let is_programmed = said.any(|own| {
            own["type"] == "Programmed"
                && own["status"] == "True"
                && own["observedGeneration"] == patch["metadata"]["generation"]
        });
        let is_moved = names.contains(&"app/gw/http") && !names.contains(&"app/gw/broken");
        if is_moved && is_programmed { Ok(()) } else { Err(format!("{names:?} {:#}", patch["status"])) }
    });
    ground.await_enforced("closed");
    envoy.await_status(PORT, HOST, "/limited", 429);
}

/// Requests one after the other, until it is stopped.
struct Load {
    stop: Arc<std::sync::atomic::AtomicBool>,
    asking: std::thread::JoinHandle<(usize, Vec<Option<u16>>)>,
}

impl Load {
    fn start(envoy: &Arc<Envoy>) -> Self {
        let (envoy, stop) = (envoy.clone(), Arc::new(std::sync::atomic::AtomicBool::default()));
        let stopped = stop.clone();
        let asking = std::thread::spawn(move || {
            let (mut asked, mut wrong) = (0, Vec::new());
            while !stopped.load(std::sync::atomic::Ordering::SeqCst) {
                let answer = envoy.get(PORT, HOST, "/other", "");
                asked += 1;
                wrong.extend((answer != Some(200)).then_some(answer));
            }
            (asked, wrong)
        });
        Self { stop, asking }
    }

    fn stop(self) -> (usize, Vec<Option<u16>>) {
        self.stop.store(true, std::sync::atomic::Ordering::SeqCst);
        self.asking.join().expect("it ends")
    }
}
