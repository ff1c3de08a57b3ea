//! The override of a rule: exact, for one change, by somebody with the right to.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::{TC, data_plane, define_data_planes, deployment, env, golden};
use crate::support::{Client, Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// Somebody who may write gateways, and the verbs beside it.
fn editor(ns: &Namespace<'_>, name: &str, more: &[&str]) -> Client {
    let verbs = [&["get", "list", "create", "update", "patch"], more].concat();
    let rules = json!([{
        "apiGroups": ["gateway-operator.konghq.com", "apps"],
        "resources": ["dataplanes", "deployments"],
        "verbs": verbs,
    }]);
    let user = ns.user_with(name, &rules);
    let path = ns.path("apps/v1", "deployments", "");
    wait_until("the binding counts", CAP, || match user.read(&path) {
        answer if answer.code == 200 => Ok(()),
        answer => Err(answer.to_string()),
    });
    user
}

fn allowed(mut object: Value, text: &str) -> Value {
    object["metadata"]["annotations"] = json!({meta::ALLOW_FLAVOR: text});
    object
}

/// What somebody meets, and whether it was accepted.
fn write(user: &Client, object: &Value) -> (bool, String) {
    let out = user.kubectl_in(&["apply", "-f", "-"], &object.to_string());
    (out.code == 0, format!("{}{}", out.stdout, out.stderr))
}

/// The text that a refusal says to write.
fn exact(said: &str) -> String {
    let hint = said.split("write \"").nth(1).and_then(|rest| rest.split('"').next());
    hint.unwrap_or_else(|| panic!("nothing to write in {said}")).to_owned()
}

fn masked(said: &str, exact: &str) -> String {
    let change = exact.split('@').nth(1).expect("a change");
    said.replace(change, "CHANGE")
}

fn an_override_holds_once(ns: &Namespace<'_>, gateway: impl Fn(&str) -> Value) -> String {
    let with = editor(ns, "with", &[meta::ALLOW_FLAVOR_VERB]);
    let without = editor(ns, "without", &[]);
    let (from, to) = (gateway("expressions"), gateway("traditional"));
    with.apply(&from.to_string());
    // The policy takes effect about a second after it was installed.
    let probe = allowed(from.clone(), "expressions->traditional").to_string();
    wait_until("the policy is in force", CAP, || {
        let out = without.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &probe);
        if out.stderr.contains(meta::ALLOW_FLAVOR_VERB) { Ok(()) } else { Err(out.to_string()) }
    });
    let (accepted, incomplete) = write(&with, &allowed(to.clone(), "expressions->traditional"));
    assert!(!accepted, "{incomplete}");
    let exact = exact(&incomplete);
    let change = allowed(to.clone(), &exact);
    let (accepted, no_right) = write(&without, &change);
    assert!(!accepted && no_right.contains("[RF19]"), "{no_right}");
    let (accepted, used) = write(&with, &change);
    assert!(accepted, "{used}");
    // Back in two hops: the annotation goes with the first, as it is not in the manifest.
    for flavor in [TC, "expressions"] {
        with.apply(&gateway(flavor).to_string());
    }
    let (accepted, again) = write(&with, &change);
    assert!(!accepted && again.contains("is for another change"), "{again}");
    let parts = [
        ("without the change", incomplete),
        ("without the verb", no_right),
        ("exact", used),
        ("a second time", again.replace(&self::exact(&again), &exact)),
    ];
    parts.map(|(title, said)| format!("# {title}\n{}\n", masked(&said, &exact))).concat()
}

#[test]
fn of_a_data_plane() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("override");
    let text = an_override_holds_once(&ns, |flavor| data_plane("edge", &env("kong:3.9", flavor), false));
    golden("flavor-override-dataplane.txt", &text.replace(ns.name(), "NAMESPACE"));
}

#[test]
fn of_a_deployment() {
    let (cluster, _) = Interlock::shared();
    // Another case may define them meanwhile, and what is not established yet is warned of.
    super::define_data_planes(cluster);
    let ns = cluster.namespace("override");
    // Without pods, what is stored is all that there is to compare with.
    let text = an_override_holds_once(&ns, |flavor| {
        let mut deployment = deployment("edge", &env("kong:3.9", flavor));
        deployment["spec"]["paused"] = json!(true);
        deployment
    });
    golden("flavor-override-deployment.txt", &text.replace(ns.name(), "NAMESPACE"));
}

/// Whoever answers for a namespace has the verb; who edits in it has not.
#[test]
fn admins_have_the_verb_and_editors_have_not() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("override");
    for (name, role, may) in [("ann", "admin", true), ("ed", "edit", false)] {
        ns.bind(name, "ClusterRole", role);
        let user = ns.stranger(name);
        // A right that both have tells that the binding counts; roles are aggregated by and by.
        for (verb, wanted) in [("get", true), (meta::ALLOW_FLAVOR_VERB, may)] {
            wait_until("the role is whole", CAP, || {
                let out = user.kubectl(&["auth", "can-i", verb, "configmaps"]);
                if (out.stdout.trim() == "yes") == wanted { Ok(()) } else { Err(out.to_string()) }
            });
        }
    }
}
