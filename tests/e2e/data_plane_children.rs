//! What admission refuses of a DataPlane, since no child could be made of it, the API server refuses of the child; and
//! what the API server takes is admitted. `interlock check` says the same.

use interlock_core::api::meta;
use interlock_kong::data_plane::rollout::children::{
    DataPlaneOwner, autoscaler, brings_certificate, deployment, ingress_service,
};
use interlock_kong::data_plane::rollout::side::{Colour, SideState};
use serde_json::{Value, json};

use crate::flavor::{goldens, meets};
use crate::rollouts_seen::switch_on;
use crate::support::interlock::interlock;
use crate::support::{Client, Cluster, Interlock, Namespace};

const CASES: &str = include_str!("data_plane_children.yaml");

struct Ground<'g> {
    ns: Namespace<'g>,
    user: Client,
}

/// What is said of a DataPlane: whether it is taken, and with which warnings or which text it is not.
struct Said {
    is_admitted: bool,
    text: String,
}

impl Ground<'_> {
    fn admission(&self, object: &Value) -> Said {
        let out = self.user.kubectl_in(&["create", "--dry-run=server", "-f", "-"], &object.to_string());
        Said { is_admitted: out.code == 0, text: out.stderr }
    }

    fn offline(&self, object: &Value) -> Said {
        let out = interlock(&self.user, &["check", "-n", self.ns.name(), "-f", "-"], &object.to_string());
        Said { is_admitted: out.code == 0, text: out.stdout }
    }

    /// What the API server says of the first child that it refuses, or of which Interlock makes none.
    fn refused_child(&self, object: &Value) -> Option<String> {
        let admin = self.ns.admin();
        children(object, self.ns.name()).into_iter().find_map(|child| {
            let child = match child {
                Ok(child) => child,
                Err(error) => return Some(error),
            };
            let text = |field: &str| child[field].as_str().unwrap_or_default().to_owned();
            let plural = format!("{}s", text("kind").to_lowercase());
            let name = child["metadata"]["name"].as_str().unwrap_or_default();
            let path = self.ns.path(&text("apiVersion"), &plural, name);
            let answer =
                admin.server_side_apply(&format!("{path}?dryRun=All&fieldManager=test&force=true"), &child);
            (answer.code >= 300).then(|| answer.to_string())
        })
    }
}

/// The Deployment, the Service and the autoscaler.
fn children(object: &Value, namespace: &str) -> Vec<Result<Value, String>> {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["uid"] = json!("0a1b2c3d-1111-4222-8333-444455556666");
    let spec = &object["spec"];
    let owner = DataPlaneOwner::of(&object, None).unwrap();
    let identity = owner.identity(Colour::Blue);
    let certificate = (!brings_certificate(spec)).then_some("certificate");
    let made = [
        deployment(&owner, spec, &identity, SideState::Live, Some(1), certificate).map(Some),
        ingress_service(&owner, spec, SideState::Live, &identity.selector).map(Some),
        autoscaler(&owner, spec, &identity.name),
    ];
    made.into_iter().filter_map(|child| child.map_err(|error| error.to_string()).transpose()).collect()
}

fn merged(base: &Value, patch: &Value) -> Value {
    let mut object = base.clone();
    json_patch::merge(&mut object["spec"], patch);
    set_nulls(&mut object);
    object
}

fn set_nulls(value: &mut Value) {
    match value {
        Value::String(text) if text == "NULL" => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(set_nulls),
        Value::Object(members) => members.values_mut().for_each(set_nulls),
        _ => {}
    }
}

#[test]
fn what_can_never_be_made_is_refused_and_nothing_else() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    switch_on(&cluster, &process);
    let ns = cluster.namespace("children");
    let ground = Ground { user: ns.user("alice"), ns };
    let cases = go_template::yaml::read(CASES).unwrap();
    let mut differences = Vec::new();
    for group in ["refused", "warned", "accepted"] {
        for (title, patch) in cases[group].as_object().unwrap() {
            let object = merged(&cases["base"], patch);
            let (online, offline) = (ground.admission(&object), ground.offline(&object));
            let child = ground.refused_child(&object);
            let is_as_wanted = online.is_admitted == (group != "refused")
                && online.text.contains("Warning:") == (group == "warned")
                && offline.is_admitted == online.is_admitted
                && offline.text.contains("[dataplane-template]")
                    == online.text.contains("[dataplane-template]")
                && child.is_some() == (group != "accepted");
            if !is_as_wanted {
                differences.push(format!(
                    "{group}: {title}\n  admission: {}offline: {}  child: {child:?}",
                    online.text, offline.text
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    as_people_read_it(&ground, &cases);
    what_is_stored_stays_editable(&ground, &cases);
}

/// What kubectl and `interlock check` print.
fn as_people_read_it(ground: &Ground<'_>, cases: &Value) {
    let titles = [
        "two ports of one name",
        "two ports of one node port",
        "a Service of no name",
        "fewer at most than at least",
        "no handler of a sidecar",
        "a mount of no volume",
        "two volumes of one name",
        "a text for a boolean",
    ];
    let mut objects: Vec<(&str, Value)> =
        titles.into_iter().map(|title| (title, merged(&cases["base"], &cases["refused"][title]))).collect();
    let mut long = cases["base"].clone();
    long["metadata"]["name"] = json!("e".repeat(64));
    objects.push(("a long name", long));
    let mut kept = cases["base"].clone();
    kept["spec"]["pluginsToInstall"] = json!([{"name": "p"}]);
    kept["spec"]["network"] = json!({"konnectCertificate": {"issuer": {"name": "i"}}});
    objects.push(("what is not carried out", kept));
    let unknown = &cases["warned"]["an unknown field of a container"];
    objects.push(("an unknown field of a container", merged(&cases["base"], unknown)));
    let met = objects
        .into_iter()
        .map(|(title, object)| (title.to_owned(), meets(&ground.user, ground.ns.name(), &object)));
    goldens("dataplane-children.txt", ground.ns.name(), &met.collect::<Vec<_>>());
}

/// Stored while the webhook was not asked: by the controller's user, which admission skips.
fn what_is_stored_stays_editable(ground: &Ground<'_>, cases: &Value) {
    ground.ns.bind(meta::CONTROLLER_USER, "ClusterRole", "cluster-admin");
    let faults = [
        "two ports of one name",
        "fewer at most than at least",
        "no handler of a sidecar",
        "a text for a number",
    ];
    let long = "e".repeat(64);
    for (i, fault) in faults.into_iter().enumerate() {
        let mut object = merged(&cases["base"], &cases["refused"][fault]);
        let name = if i == 0 { long.clone() } else { format!("stored-{i}") };
        object["metadata"]["name"] = json!(name);
        let controller = format!("--as={}", meta::CONTROLLER_USER);
        let admin = ground.ns.admin();
        admin.kubectl_in(&["create", &controller, "-f", "-"], &object.to_string()).ok();
        ground.user.kubectl(&["annotate", "dataplane", &name, "a=b"]).ok();
        let edit = json!({"spec": {"deployment": {"labels": {"a": "b"}}}}).to_string();
        let out = ground.user.kubectl(&["patch", "dataplane", &name, "--type=merge", "-p", &edit]);
        assert!(out.code == 0 && !out.stderr.contains("Warning"), "{fault}: {out}");
        let wrong = json!({"spec": {"network": {"services": {"ingress": {"ports": [
            {"name": "b", "port": 1, "targetPort": 8000}, {"name": "b", "port": 2, "targetPort": 8000},
        ]}}}}});
        let out =
            ground.user.kubectl(&["patch", "dataplane", &name, "--type=merge", "-p", &wrong.to_string()]);
        assert!(out.code != 0 && out.stderr.contains("two ports have the name \"b\""), "{fault}: {out}");
    }
}
