//! What a package may cost: memory while it is reviewed, work and memory while it is rendered.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::process::Peak;
use crate::support::{Cluster, Interlock};

/// Bytes of parameter default that a client sends easily.
const SIZE: usize = 324_000;

/// Resident memory that the worst review of that size may add: nearly all of it is the values of one
/// document, which 8 MiB are the budget of.
const REVIEW_KIB: u64 = 64 * 1024;

/// What a rendering may add: its values, its text, and what is decoded of it.
const RENDERING_KIB: u64 = 160 * 1024;

fn version(name: &str, more: &Value) -> Value {
    let mut version = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": format!("{name}-0.1.0")},
        "spec": {
            "operator": {"kind": "Operator", "name": name}, "version": "0.1.0",
            "tasks": [{"name": "all", "kind": "Apply", "spec": {"resources": ["all.yaml"]}}],
            "plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["all"]}]}]}},
            "templates": {"all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
        },
    });
    json_patch::merge(&mut version["spec"], more);
    version
}

/// A default of that many bytes.
fn default(head: &str, piece: &str, tail: &str) -> Value {
    let count = (SIZE - head.len() - tail.len()) / piece.len();
    let text = format!("{head}{}{tail}", piece.repeat(count));
    json!({"parameters": [{"name": "LIST", "value-type": "array", "default": text}]})
}

struct Reviewed<'a> {
    interlock: &'a Interlock,
    ground: &'a Ground<'a>,
}

impl Reviewed<'_> {
    /// Has a package reviewed, of which the review tells; the peak of resident memory grows little.
    #[track_caller]
    fn tells(&self, name: &str, spec: &Value, admitted: bool, why: &str) {
        let peak = Peak::of(self.interlock.pid().expect("it runs"));
        let answer = self
            .ground
            .user
            .kubectl_in(&["create", "--dry-run=server", "-f", "-"], &version(name, spec).to_string());
        assert_eq!(answer.code == 0, admitted, "{name}: {answer}");
        let text = answer.stderr;
        assert!(text.contains(why), "{name}: {text}");
        assert!(!text.contains("xxxxx"), "{name}: the value is shown: {text}");
        let added = peak.added_kib();
        println!("{name}: {added} KiB");
        assert!(added < REVIEW_KIB, "{name}: resident memory grew by {added} KiB");
    }
}

#[test]
fn a_package_costs_what_its_budgets_allow() {
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "budgets", &version("fine", &json!({})).to_string());

    let reviewed = Reviewed { interlock: &interlock, ground: &ground };
    let head = format!("[&a \"{}\"", "x".repeat(300_000));
    let large = "more than 8388608 bytes when it is decoded";
    // An Instance may give another value.
    reviewed.tells("aliases", &default(&head, ", *a", "]"), true, "uses a YAML alias");
    reviewed.tells("maps", &default("[", "{a},", "]"), true, large);
    reviewed.tells("lists", &default("[", "[a],", "]"), true, large);
    let actions = json!({"templates": {"all.yaml": "{{.}}".repeat(SIZE / 5)}});
    reviewed.tells("actions", &actions, false, "more than 100000 actions");

    let texts = [
        (
            "regex",
            "\n{{ range until 40000 }}{{ $x := regexMatch `(\\pL{60}){60}` \"x\" }}{{ end }}".to_owned(),
            "template: all.yaml:2:",
            "the budget of 1048576 bytes when it is compiled",
        ),
        (
            "bomb",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: &a {{ repeat 300000 \"x\" }}\n  \
             b: [{{ range 6000 }}*a, {{ end }}]\n"
                .to_owned(),
            "parsing YAML from all.yaml failed: yaml: line 6:",
            "the budget of 8388608 bytes",
        ),
        (
            "large",
            "{{ range 9 }}{{ repeat 1000000 \"x\" }}{{ end }}".to_owned(),
            "template: all.yaml:1:",
            "rendered more than 8388608 bytes",
        ),
        (
            "object",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ repeat 300000 \"x\" }}}\n".to_owned(),
            "parsing YAML from all.yaml failed: object 1, ConfigMap \"a\", has 3000",
            "at most 262144 bytes of annotations",
        ),
    ];
    for (name, text, place, budget) in texts {
        let path = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "");
        let package = version(name, &json!({"templates": {"all.yaml": text}}));
        ground.user.post(&path, &package).ok();
        let peak = Peak::of(interlock.pid().expect("it runs"));
        for i in 0..2 {
            ground.create(&format!("{name}-{i}"), &format!("{name}-0.1.0"), &json!({}));
        }
        let asked = Instant::now();
        let health = interlock.ops("/livez");
        assert_eq!(health.map(|(code, _)| code), Some(200));
        assert!(asked.elapsed() < Duration::from_secs(2), "{name}: /livez took {:?}", asked.elapsed());
        for i in 0..2 {
            let found = ground.await_plan(&format!("{name}-{i}"), "deploy", "FATAL_ERROR");
            let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0];
            let message = step["message"].as_str().expect("a message");
            assert!(message.contains(place) && message.contains(budget), "{name}: {message}");
        }
        let added = peak.added_kib();
        println!("{name}: {added} KiB");
        assert!(added < RENDERING_KIB, "{name}: resident memory grew by {added} KiB");
    }
}

/// What the bound of an object's size stands on.
#[test]
fn an_api_server_takes_256_kib_of_annotations() {
    let cluster = Cluster::shared();
    let ns = cluster.namespace("annotations");
    let key = "kudo.dev/last-applied-configuration";
    let create = |bytes: usize| {
        let value = "x".repeat(bytes - key.len());
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {key: value}},
        });
        cluster.admin().post(&format!("{}?dryRun=All", ns.path("v1", "configmaps", "")), &object)
    };
    create(262_144).ok();
    let refused = create(262_145);
    assert!(refused.message().contains("may not be more than 262144 bytes"), "{refused}");
}
