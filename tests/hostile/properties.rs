//! The resolver against the second reading, over environments that are made rather than damaged.

use interlock_kong::data_plane::flavor::gateway::{Gateway, sources_of};
use interlock_kong::data_plane::flavor::projection::excerpt;
use interlock_kong::data_plane::flavor::sources::GivenSources;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::flavor::check;
use super::kubelet::{Fate, GUESSES, Pod};

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";
const BY_FILE: &str = "KONG_ROUTER_FLAVOR_FILE";

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "traditional",
            "traditional_compatible",
            "expressions",
            " expressions\n",
            "\u{a0}expressions",
            "x",
            "$(A)",
            "$(A)$(B)",
            "$$(A)",
            "$(KONG_ROUTER_FLAVOR)",
            "expre$(B)",
            "{vault://x}",
        ])
        .prop_map(str::to_owned),
        "[$()AB ]{0,6}",
    ]
}

fn named() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["one", "two", "three", "unseen"])
}

/// `valueFrom`, of every form.
fn reference() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["FLAVOR", "A", "lost"]);
    let kind = prop::sample::select(vec!["configMapKeyRef", "secretKeyRef"]);
    let field = prop::sample::select(vec![
        "metadata.labels['flavor']",
        "metadata.annotations['flavor']",
        "metadata.labels['lost']",
        "spec.nodeName",
    ]);
    prop_oneof![
        8 => (kind, named(), key, any::<bool>())
            .prop_map(|(kind, name, key, optional)| json!({kind: {"name": name, "key": key, "optional": optional}})),
        2 => field.prop_map(|path| json!({"fieldRef": {"fieldPath": path}})),
        1 => Just(json!({"resourceFieldRef": {"resource": "limits.cpu"}})),
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![FLAVOR, FLAVOR, FLAVOR, BY_FILE, "A", "B"]);
    (name, value(), prop::option::weighted(0.3, reference())).prop_map(|(name, value, from)| match from {
        None => json!({"name": name, "value": value}),
        Some(from) => json!({"name": name, "valueFrom": from}),
    })
}

fn import() -> impl Strategy<Value = Value> {
    let prefix = prop::sample::select(vec!["", "KONG_", "KONG_ROUTER_", "X_"]);
    let kind = prop::sample::select(vec!["configMapRef", "secretRef"]);
    (prefix, kind, named(), any::<bool>()).prop_map(|(prefix, kind, name, optional)| {
        json!({"prefix": prefix, kind: {"name": name, "optional": optional}})
    })
}

/// A ConfigMap and a Secret of each name but `unseen`, with keys that matter.
fn objects() -> impl Strategy<Value = Vec<Value>> {
    use base64::Engine;
    let key = prop::sample::select(vec!["FLAVOR", "ROUTER_FLAVOR", "FLAVOR_FILE", FLAVOR, "A", "B"]);
    let data = || prop::collection::btree_map(key.clone(), value(), 0..4);
    let encoded = |value: &String| base64::engine::general_purpose::STANDARD.encode(value);
    prop::collection::vec((data(), data()), 3).prop_map(move |all| {
        let each = ["one", "two", "three"].into_iter().zip(all);
        each.flat_map(|(name, (map, secret))| {
            let secret: std::collections::BTreeMap<_, _> =
                secret.iter().map(|(k, v)| (*k, encoded(v))).collect();
            [
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": map}),
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": secret}),
            ]
        })
        .collect()
    })
}

fn container() -> impl Strategy<Value = Value> {
    let image = prop::sample::select(vec![
        "kong:3.9",
        "kong:3.9",
        "kong:3.0.0",
        "kong:2.8.1",
        "kong",
        "kong@sha256:0",
    ]);
    let words = prop::sample::select(vec![
        json!({}),
        json!({}),
        json!({}),
        json!({"args": ["kong", "docker-start"]}),
        json!({"args": ["kong", "start", "-c", "/conf"]}),
        json!({"args": ["kong", "start", "-c"]}),
        json!({"command": ["kong", "start", "--conf=/conf"]}),
        json!({"command": ["sh", "-c", "kong start -c /conf"]}),
        json!({"command": ["sh", "-c", "kong start"]}),
        json!({"command": ["sh", "-c", "KONG_ROUTER_FLAVOR=expressions kong start"]}),
        json!({"volumeMounts": [{"mountPath": "/etc/kong"}]}),
        json!({"volumeMounts": [{"mountPath": "/etc/kong.conf"}]}),
        json!({"volumeMounts": [{"mountPath": "/etc/kong-plugins"}]}),
    ]);
    let env = prop::collection::vec(entry(), 0..6);
    let imports = prop::collection::vec(import(), 0..3);
    (image, words, env, imports).prop_map(|(image, words, env, imports)| {
        let mut container = words;
        container["name"] = json!("proxy");
        container["image"] = json!(image);
        container["env"] = json!(env);
        container["envFrom"] = json!(imports);
        container
    })
}

/// The same pods, as a DataPlane or as a Deployment.
fn gateway(container: &Value, plane: bool) -> (Value, Value) {
    let template = json!({
        "metadata": {"labels": {"flavor": "expressions"}, "annotations": {"flavor": "traditional"}},
        "spec": {"containers": [{"name": "sidecar", "env": [{"name": FLAVOR, "value": "traditional"}]}, container]},
    });
    let (version, kind, spec) = match plane {
        true => (
            "gateway-operator.konghq.com/v1beta1",
            "DataPlane",
            json!({"deployment": {"podTemplateSpec": template}}),
        ),
        false => ("apps/v1", "Deployment", json!({"template": template})),
    };
    (json!({"apiVersion": version, "kind": kind, "metadata": {"name": "edge"}, "spec": spec}), template)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a stamp holds of a spec that it only refers to reads as the whole spec does.
    #[test]
    fn an_excerpt_reads_as_the_whole(container in container(), objects in objects()) {
        let (mut plane, _) = gateway(&container, true);
        plane["spec"]["deployment"]["podTemplateSpec"]["metadata"]["annotations"]["filler"] = json!("x".repeat(40_000));
        let sources = GivenSources::of(&objects, "kong");
        let read = |plane: &Value| Gateway::read(plane, "kong", &sources).unwrap().unwrap().spec.reading;
        let mut short = plane.clone();
        let excerpt = excerpt(&plane["spec"]).expect("it fits");
        short["spec"] = serde_json::from_str(&excerpt).unwrap();
        prop_assert_eq!(read(&short), read(&plane));
        prop_assert_eq!(sources_of(&short), sources_of(&plane));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is said holds under every guess (`check` asserts it). The other way round: what all
    /// guesses agree on is not unknown, unless a pod cannot start or a variable cannot be followed.
    #[test]
    fn the_resolver_says_what_the_environment_gives(
        container in container(),
        objects in objects(),
        plane in any::<bool>(),
    ) {
        let (object, template) = gateway(&container, plane);
        let read = check(&object, &objects).unwrap();
        let all_seen = !container.to_string().contains("unseen");
        let fates = GUESSES.map(|guess| Pod { template: &template, objects: &objects, is_deployment: false }.fate(guess));
        let one = fates.iter().all(|fate| *fate == fates[0]);
        if let (true, true, Some(Fate::Runs(flavor))) = (all_seen, one, &fates[0]) {
            prop_assert_eq!(read.spec.reading.effective.to_string(), flavor.as_str());
        }
    }
}
