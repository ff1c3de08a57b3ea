//! What can never be made of a DataPlane is refused where it is written, and what is stored stays editable.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::testing::Said;
use rstest::rstest;
use serde_json::{Value, json};

use super::data_plane::{EX, ask, ask_with, edit, plane};

fn patched(patch: &Value) -> Value {
    let mut object = plane(EX, false);
    json_patch::merge(&mut object["spec"], patch);
    object
}

/// What validation says of a creation, or of a change of what is stored.
fn said(view: &StaticLister, object: &Value, old: &Value) -> Said {
    let mutated = ask_with(view.clone(), WebhookEndpoint::Mutate, object, old);
    ask_with(view.clone(), WebhookEndpoint::Validate, &mutated.object, old)
}

/// The lines that name fields, or the warnings.
fn lines(said: &Said) -> Vec<String> {
    match said.allowed() {
        true => said.warnings().into_iter().map(|warning| format!("warned: {warning}")).collect(),
        false => {
            let fields = said.message().lines().filter_map(|line| line.strip_prefix("  "));
            fields.map(|line| format!("[{}] {line}", said.rule())).collect()
        }
    }
}

fn ports(ports: Value) -> Value {
    json!({"network": {"services": {"ingress": {"ports": ports}}}})
}

fn pod(spec: Value) -> Value {
    json!({"deployment": {"podTemplateSpec": {"spec": spec}}})
}

/// A sidecar, and the container `proxy`.
fn with_sidecar(sidecar: Value) -> Value {
    let mut both = [json!({"name": "logs", "image": "x"}), json!({"name": "proxy", "image": "kong:3.9"})];
    json_patch::merge(&mut both[0], &sidecar);
    pod(json!({"containers": both}))
}

fn with_proxy(more: Value) -> Value {
    let mut proxy = json!({"name": "proxy", "image": "kong:3.9"});
    json_patch::merge(&mut proxy, &more);
    pod(json!({"containers": [proxy]}))
}

fn scaling(least: Value, most: i32) -> Value {
    json!({"deployment": {"replicas": null, "scaling": {"horizontal": {"minReplicas": least, "maxReplicas": most}}}})
}

const IN: &str = "spec.deployment.podTemplateSpec.spec";

#[rstest]
#[case::two_names(
    ports(json!([{"name": "http", "port": 80, "targetPort": 8000}, {"name": "http", "port": 443, "targetPort": 8443}])),
    &["[dataplane-ports] spec.network.services.ingress.ports: two ports have the name \"http\""]
)]
#[case::two_names_of_one_number(
    ports(json!([{"name": "dns", "port": 80, "targetPort": 8000}, {"name": "dns", "port": 80, "protocol": "UDP", "targetPort": 8000}])),
    &["[dataplane-ports] spec.network.services.ingress.ports: two ports have the name \"dns\""]
)]
#[case::two_node_ports(
    ports(json!([{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 81, "nodePort": 30080}])),
    &["[dataplane-ports] spec.network.services.ingress.ports: two ports have the nodePort 30080"]
)]
#[case::a_node_port_of_each_protocol(
    ports(json!([{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 80, "protocol": "UDP", "nodePort": 30080}])), &[]
)]
#[case::a_port_twice(
    ports(json!([{"name": "a", "port": 80}, {"name": "a", "port": 80}])),
    &["warned: spec.network.services.ingress.ports: 80/TCP is listed twice, and only the first one is taken [dataplane-ports]"]
)]
#[case::without_names(ports(json!([{"port": 80}, {"port": 81}])), &[])]
#[case::no_number(
    ports(json!([{"port": 70000}])),
    &["[dataplane-ports] spec.network.services.ingress.ports[0].port: must be a number from 1 to 65535"]
)]
#[case::no_name_of_a_service(
    json!({"network": {"services": {"ingress": {"name": "My.Service"}}}}),
    &["[dataplane-service-name] spec.network.services.ingress.name: \"My.Service\" must be at most 63 lowercase letters, digits and dashes, with a letter first and no dash last"]
)]
#[case::fewer_than_the_least(
    scaling(json!(5), 2),
    &["[dataplane-scaling] spec.deployment.scaling.horizontal.maxReplicas: 2 is less than minReplicas, which is 5"]
)]
#[case::none_at_most(
    scaling(Value::Null, 0),
    &["[dataplane-scaling] spec.deployment.scaling.horizontal.maxReplicas: 0 is less than minReplicas, which is 1"]
)]
#[case::as_many(scaling(json!(2), 2), &[])]
#[case::no_handler(
    with_sidecar(json!({"readinessProbe": {"initialDelaySeconds": 1}})),
    &["[dataplane-template] IN.containers[name=logs].readinessProbe: has no handler"]
)]
#[case::a_handler_that_is_null(
    with_sidecar(json!({"livenessProbe": {"exec": "NULL", "periodSeconds": 1}})),
    &["[dataplane-template] IN.containers[name=logs].livenessProbe: has no handler"]
)]
#[case::a_handler_that_is_generated(with_proxy(json!({"readinessProbe": {"initialDelaySeconds": 1}})), &[])]
#[case::none_is_generated(
    with_proxy(json!({"livenessProbe": {"initialDelaySeconds": 1}})),
    &["[dataplane-template] IN.containers[name=proxy].livenessProbe: has no handler"]
)]
#[case::no_probe(with_sidecar(json!({"readinessProbe": {}})), &[])]
#[case::a_handler_of_a_newer_version(
    with_sidecar(json!({"readinessProbe": {"wasm": {}}})),
    &["warned: IN.containers[name=logs].readinessProbe.wasm is no field of Kubernetes 1.36, and the API server refuses the Deployment where it does not know it [dataplane-template]"]
)]
#[case::no_hook(
    with_sidecar(json!({"lifecycle": {"postStart": {}}})),
    &["[dataplane-template] IN.containers[name=logs].lifecycle.postStart: has no handler"]
)]
#[case::a_mount_of_no_volume(
    with_sidecar(json!({"volumeMounts": [{"name": "cache", "mountPath": "/c"}]})),
    &["[dataplane-template] IN.containers[name=logs].volumeMounts[mountPath=/c]: names volume \"cache\", which the template does not have"]
)]
#[case::a_mount_of_a_generated_volume(
    with_sidecar(json!({"volumeMounts": [{"name": "cluster-certificate", "mountPath": "/c"}]})), &[]
)]
#[case::a_mount_of_a_removed_volume(
    json!({"deployment": {"podTemplateSpec": {"spec": {
        "volumes": [{"name": "cluster-certificate", "$patch": "delete"}],
        "containers": [{"name": "proxy", "image": "kong:3.9"}],
    }}}}),
    &["[dataplane-template] IN.containers[name=proxy].volumeMounts[mountPath=/var/cluster-certificate]: names volume \"cluster-certificate\", which the template does not have"]
)]
#[case::two_containers(
    pod(json!({"containers": [{"name": "proxy", "image": "kong:3.9"}, {"name": "proxy", "image": "kong:3.9"}]})),
    &["[dataplane-template] IN.containers[name=proxy]: is listed twice: keep one of the two"]
)]
#[case::an_init_container_of_the_same_name(
    pod(json!({"initContainers": [{"name": "proxy", "image": "x"}], "containers": [{"name": "proxy", "image": "kong:3.9"}]})),
    &["[dataplane-template] IN.containers[name=proxy]: a container before it has the same name"]
)]
#[case::two_volumes(
    pod(json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]})),
    &["[dataplane-template] IN.volumes[name=a]: is listed twice: keep one of the two"]
)]
#[case::two_ports_of_a_container(
    with_sidecar(json!({"ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]})),
    &["[dataplane-template] IN.containers[name=logs].ports: two ports have the name \"a\""]
)]
#[case::no_image(
    with_sidecar(json!({"image": null})), &["[dataplane-template] IN.containers[name=logs].image: is not set"]
)]
#[case::a_variable_without_a_name(
    with_sidecar(json!({"env": [{"value": "x"}]})),
    &["[dataplane-template] IN.containers[name=logs].env[0]: has no name: set it"]
)]
#[case::a_text_for_a_boolean(
    with_sidecar(json!({"tty": "true"})), &["[dataplane-template] IN.containers[name=logs].tty: must be true or false, and is a string"]
)]
#[case::a_text_for_a_number(
    pod(json!({"terminationGracePeriodSeconds": "30"})),
    &["[dataplane-template] IN.terminationGracePeriodSeconds: must be a number, and is a string"]
)]
#[case::numbers_for_texts(
    pod(json!({"nodeSelector": {"zone": 1}, "hostname": 1})),
    &["[dataplane-template] IN.hostname: must be a string, and is a number", "[dataplane-template] IN.nodeSelector[zone]: must be a string, and is a number"]
)]
#[case::an_object_for_a_list(
    pod(json!({"tolerations": {"key": "a"}})), &["[dataplane-template] IN.tolerations: must be a list, and is an object"]
)]
#[case::a_list_for_an_object(
    pod(json!({"affinity": []})), &["[dataplane-template] IN.affinity: must be an object, and is a list"]
)]
#[case::numbers_and_texts_where_both_are_taken(
    with_sidecar(json!({"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "readinessProbe": {"tcpSocket": {"port": "http"}}})), &[]
)]
#[case::nulls(with_sidecar(json!({"args": "NULL", "tty": "NULL", "resources": "NULL"})), &[])]
#[case::an_unknown_field(
    with_sidecar(json!({"imagePolicy": "Always"})),
    &["warned: IN.containers[name=logs].imagePolicy is no field of Kubernetes 1.36, and the API server refuses the Deployment where it does not know it; did you mean imagePullPolicy? [dataplane-template]"]
)]
#[case::what_is_not_carried_out(
    json!({
        "pluginsToInstall": [{"name": "p"}],
        "extensions": [],
        "network": {"konnectCertificate": {"issuer": {"name": "i"}}},
    }),
    &[
        "warned: spec.pluginsToInstall is kept, and not carried out by Interlock: bring the plugins in the image or in a volume of podTemplateSpec [dataplane-not-carried-out]",
        "warned: spec.network.konnectCertificate is kept, and not carried out by Interlock: mount the certificate by a volume of podTemplateSpec [dataplane-not-carried-out]",
    ]
)]
fn what_can_never_be_made(#[case] patch: Value, #[case] expected: &[&str]) {
    let mut object = patched(&patch);
    set_nulls(&mut object);
    let found = said(&StaticLister::of(crate::all()), &object, &Value::Null);
    let found: Vec<String> = lines(&found).iter().map(|line| line.replace(IN, "IN")).collect();
    assert_eq!(found, expected);
}

/// A null of a patch removes the field, so that the text NULL stands for one.
fn set_nulls(value: &mut Value) {
    match value {
        Value::String(text) if text == "NULL" => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(set_nulls),
        Value::Object(members) => members.values_mut().for_each(set_nulls),
        _ => {}
    }
}

/// An object from before the rules, or of a time without the webhook.
#[rstest]
#[case::ports(ports(json!([{"name": "a", "port": 80}, {"name": "a", "port": 81}])), "dataplane-ports")]
#[case::scaling(scaling(json!(5), 2), "dataplane-scaling")]
#[case::template(with_sidecar(json!({"readinessProbe": {"periodSeconds": 1}, "tty": "yes"})), "dataplane-template")]
#[case::unknown(with_sidecar(json!({"imagePolicy": "x"})), "dataplane-template")]
#[case::not_carried_out(json!({"pluginsToInstall": [{"name": "p"}]}), "dataplane-not-carried-out")]
fn what_is_stored_stays_editable(#[case] patch: Value, #[case] rule: &str) {
    let view = StaticLister::of(crate::all());
    let fresh = said(&view, &patched(&patch), &Value::Null);
    assert!(fresh.record.rules.contains(&rule), "{fresh:?}");
    let mut old = patched(&patch);
    old["metadata"]["uid"] = json!("uid-1");
    let elsewhere = edit(&old, |object| object["metadata"]["annotations"] = json!({"a": "b"})).unwrap();
    // Beside it, in the same list.
    let mut beside = elsewhere.clone();
    beside["spec"]["network"]["services"]["ingress"]["annotations"] = json!({"a": "b"});
    let containers = &mut beside["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
    containers.as_array_mut().unwrap().insert(0, json!({"name": "more", "image": "x"}));
    let found = said(&view, &beside, &elsewhere);
    assert!(found.allowed() && !found.record.rules.contains(&rule), "{found:?}");
}

#[test]
fn a_second_fault_is_new() {
    let stored = edit(&patched(&with_sidecar(json!({"readinessProbe": {"periodSeconds": 1}}))), |object| {
        object["metadata"]["annotations"] = json!({"a": "b"})
    })
    .unwrap();
    let mut object = stored.clone();
    object["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["livenessProbe"] =
        json!({"periodSeconds": 1});
    let found = said(&StaticLister::of(crate::all()), &object, &stored);
    assert_eq!(
        lines(&found),
        [format!("[dataplane-template] {IN}.containers[name=logs].livenessProbe: has no handler")]
    );
}

/// Whoever mends one fault of what is stored need not mend the others.
#[test]
fn one_fault_is_mended() {
    let sidecar = json!({"readinessProbe": {"periodSeconds": 1}, "tty": "yes"});
    let mut old = patched(&with_sidecar(sidecar));
    json_patch::merge(
        &mut old["spec"],
        &ports(json!([{"name": "a", "port": 80}, {"name": "a", "port": 81}])),
    );
    old["metadata"]["uid"] = json!("uid-1");
    let mends: [fn(&mut Value); 2] = [
        |spec| spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["tty"] = json!(true),
        |spec| spec["network"]["services"]["ingress"]["ports"][1]["name"] = json!("b"),
    ];
    for mend in mends {
        let mut object = old.clone();
        mend(&mut object["spec"]);
        let containers = &mut object["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
        containers.as_array_mut().unwrap().push(json!({"name": "more", "image": "x"}));
        let found = said(&StaticLister::of(crate::all()), &object, &old);
        assert_eq!(lines(&found), Vec::<String>::new());
    }
}

/// A tenant says how many there are.
#[test]
fn many_faults_are_told_in_part() {
    let mounts: Vec<Value> =
        (0..5_000).map(|i| json!({"name": format!("v{i}"), "mountPath": format!("/{i}")})).collect();
    let unknown: Value =
        (0..5_000).map(|i| (format!("f{i}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let mut sidecar = unknown;
    sidecar["volumeMounts"] = json!(mounts);
    let found = said(&StaticLister::of(crate::all()), &patched(&with_sidecar(sidecar)), &Value::Null);
    assert_eq!(found.response["status"]["details"]["causes"].as_array().map(Vec::len), Some(16));
    assert_eq!(found.warnings().len(), 16);
}

/// What Kong's operator makes of a template, and of ports that have one number, is not what Interlock makes of it.
#[rstest]
#[case::of_the_cluster(false, json!({}))]
#[case::of_this_one(true, json!({"conditions": [{"type": "Managed", "status": "False", "reason": "AnotherOperator"}]}))]
fn what_another_operator_carries_out_is_its_own(#[case] is_on: bool, #[case] status: Value) {
    let mut view = StaticLister::of(crate::all());
    if !is_on {
        view.switch_off("dataplanes", "another operator carries them out");
    }
    let mut old = patched(&json!({}));
    old["metadata"]["uid"] = json!("uid-1");
    old["status"] = status;
    let mut containers = old["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"].clone();
    json_patch::merge(
        &mut containers[0],
        &json!({"imagePolicy": "x", "volumeMounts": [{"name": "plugin", "mountPath": "/p"}]}),
    );
    let others = pod(json!({"containers": containers}));
    let same_number = ports(json!([{"name": "a", "port": 80}, {"name": "a", "port": 80, "protocol": "UDP"}]));
    for patch in [others, json!({"pluginsToInstall": [{"name": "p"}]}), same_number] {
        let mut object = old.clone();
        json_patch::merge(&mut object["spec"], &patch);
        assert_eq!(lines(&said(&view, &object, &old)), Vec::<String>::new(), "{patch}");
    }
    let mut object = old.clone();
    json_patch::merge(
        &mut object["spec"],
        &ports(json!([{"name": "a", "port": 80}, {"name": "a", "port": 81}])),
    );
    assert_eq!(said(&view, &object, &old).rule(), "dataplane-ports");
}

#[test]
fn a_name_has_room_in_a_label() {
    let named = |length: usize| {
        let mut object = plane(EX, false);
        object["metadata"]["name"] = json!("e".repeat(length));
        ask(
            WebhookEndpoint::Validate,
            &ask(WebhookEndpoint::Mutate, &object, &Value::Null).object,
            &Value::Null,
        )
    };
    assert!(named(63).allowed());
    let refused = named(64);
    assert_eq!(lines(&refused), ["[dataplane-name] metadata.name: has 64 characters, and at most 63 fit"]);
    let mut stored = plane(EX, false);
    stored["metadata"]["name"] = json!("e".repeat(64));
    stored["metadata"]["uid"] = json!("uid-1");
    edit(&stored, |object| object["spec"]["deployment"]["replicas"] = json!(1)).unwrap();
}
