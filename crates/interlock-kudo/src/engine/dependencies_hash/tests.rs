//! Whether pods roll: hashes as KUDO asserts them, what counts, and what is read for it.

use std::sync::Arc;

use go_template::Never;
use interlock_core::api::interlock::CountedReferences;
use interlock_core::api::object::{Gvk, NamespacedName};
use interlock_core::api::values::Values;
use interlock_core::effect::Effect;
use interlock_core::reconcile::Lookup;
use interlock_core::rejection::RejectionKind;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::engine::advance::fixture;
use crate::engine::advance::fixture::config_map;
use crate::engine::advance::sim::{Did, Fixture, Process, Server, failure};
use crate::engine::render_cache::{Parameters, Rendered};
use crate::engine::run::{InstanceId, PipeHelper, Run};
use crate::package::Package;

/// The annotation of the pod template of an object.
fn hash(object: &Value) -> Option<&str> {
    object.pointer("/spec/template/metadata/annotations/kudo.dev~1dependencies-hash")?.as_str()
}

fn hex(digests: &[[u8; 16]]) -> String {
    Md5::digest(digests.concat()).iter().map(|byte| format!("{byte:02x}")).collect()
}

const ZEROS: [u8; 16] = [0; 16];

/// KUDO's `test/e2e/dependencies-hash`, with the values that it asserts.
mod kudo {
    use super::*;

    const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: configdata\ndata:\n  \
                              valueA: {{ .Params.CONFIG_MAP_VALUE }}\n  valueB: {{ .Params.OTHER_CONFIG_VALUE }}\n";
    const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: nginx-deployment\nspec:\n  \
                              replicas: {{ .Params.REPLICAS }}\n  template:\n    spec:\n      volumes:\n        \
                              - name: config\n          configMap:\n            name: configdata\n";

    /// One of its plans: the task that it runs.
    fn plan(task: &str) -> Fixture {
        let mut fixture = Fixture::new(json!({
            "operator": {"name": "dep-operator"}, "version": "0.1.0",
            "parameters": [
                {"name": "REPLICAS", "default": "2"}, {"name": "CONFIG_MAP_VALUE", "default": "FancyValue"},
                {"name": "OTHER_CONFIG_VALUE", "default": "OtherFancyValue"},
            ],
            "templates": {"configmap.yaml": CONFIG_MAP, "deployment.yaml": DEPLOYMENT},
            "tasks": [
                {"name": "full", "kind": "Apply", "spec": {"resources": ["configmap.yaml", "deployment.yaml"]}},
                {"name": "app", "kind": "Apply", "spec": {"resources": ["deployment.yaml"]}},
                {"name": "config", "kind": "Apply", "spec": {"resources": ["configmap.yaml"]}},
            ],
            "plans": {"deploy": fixture::phase(json!("parallel"), &[&[task]])},
        }));
        fixture.instance.name = "depop".to_owned();
        fixture
    }

    #[test]
    fn its_own_values_come_out() {
        let mut server = Server::default();
        let mut run = |fixture: Fixture| {
            let _ = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
            let deployment = &server.objects[&fixture::key("apps/v1", "Deployment", "nginx-deployment")];
            hash(deployment).map(str::to_owned)
        };
        let changed = |fixture: Fixture| fixture.with("CONFIG_MAP_VALUE", "ChangedValue");
        let first = Some("6fa812afe527bdb6c9a5fbfcba8193bb".to_owned());
        assert_eq!(run(plan("full")), first);
        assert_eq!(run(plan("app").with("REPLICAS", "3")), first, "nothing that the pods use has changed");
        assert_eq!(run(changed(plan("config"))), first, "the plan does not apply the Deployment");
        assert_eq!(run(changed(plan("app"))).as_deref(), Some("da9f56a62d3c4af2596bebace008d845"));
        let both = changed(plan("full")).with("OTHER_CONFIG_VALUE", "SecondChangedValue");
        assert_eq!(run(both).as_deref(), Some("1510654b540619228b477bdd56d44175"));
    }
}

/// Of a plan whose steps run at once, the pods wait until what they use is written: they are made once.
#[test]
fn a_config_map_of_another_step_is_written_before_the_pods() {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '{{ .Params.V }}'}\n";
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n\
                spec: {template: {spec: {volumes: [{configMap: {name: a}}]}}}\n";
    let package = || {
        Fixture::new(json!({
            "operator": {"name": "op"}, "version": "1.2.3",
            "parameters": [{"name": "V", "default": "one"}],
            "templates": {"config.yaml": config, "pods.yaml": pods},
            "tasks": [
                {"name": "config", "kind": "Apply", "spec": {"resources": ["config.yaml"]}},
                {"name": "pods", "kind": "Apply", "spec": {"resources": ["pods.yaml"]}},
            ],
            "plans": {"deploy": fixture::phase(json!("parallel"), &[&["config"], &["pods"]])},
        }))
    };
    let mut server = Server::default();
    let deployment = fixture::key("apps/v1", "Deployment", "d");
    for (fixture, did) in [
        (package(), [Did::Create(config_map("a")), Did::Create(deployment.clone())]),
        (package().with("V", "two"), [Did::Patch(config_map("a")), Did::Patch(deployment.clone())]),
    ] {
        let _ = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
        assert_eq!(std::mem::take(&mut server.ledger), did);
        let config = ConfigDigest::of_live(ConfigKind::ConfigMap, &server.objects[&config_map("a")]);
        assert_eq!(hash(&server.objects[&deployment]), Some(hex(&[config.md5]).as_str()));
    }
}

/// A task with these objects, and what is known.
struct Case {
    wanted: Vec<WantedObject>,
    observed: Observed,
    owners: TaskOwners,
}

impl Case {
    fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let wanted = objects.into_iter().map(|mut object| {
            object["metadata"]["namespace"] = "ns".into();
            WantedObject { key: ObjectKey::of(&object).unwrap(), object }
        });
        Self { wanted: wanted.collect(), observed: Observed::default(), owners: TaskOwners::default() }
    }

    /// With an object that a task of the pass knows.
    fn seen(mut self, object: Value) -> Self {
        let key = ObjectKey::of(&object).unwrap();
        self.observed.facts.objects.insert(key, Lookup::Found(Arc::new(object)));
        self
    }

    /// With the answer to a lookup.
    fn read(mut self, key: ObjectKey, answer: Result<ConfigDigest, ApiFailure>) -> Self {
        self.observed.facts.digests.insert(key, answer);
        self
    }

    /// With a write of another task.
    fn written(mut self, object: Value) -> Self {
        in_context("other", |context| self.owners.record(context, &[Effect::Create { object }]));
        self
    }

    /// The first object, with its hash.
    fn add(mut self) -> Result<Value, Unset> {
        in_context("app", |context| add(context, &mut self.wanted, &self.observed, &self.owners))?;
        Ok(self.wanted.remove(0).object)
    }
}

fn in_context<T>(task: &str, ask: impl FnOnce(&TaskContext<'_>) -> T) -> T {
    let spec = json!({"operator": {"name": "op"}, "version": "1.2.3"});
    let package = Package::new(NamespacedName::new("ns", "ov"), serde_json::from_value(spec).unwrap());
    let instance =
        InstanceId { namespace: "ns".to_owned(), name: "inst".to_owned(), uid: "uid-1".to_owned() };
    let run = Run {
        package: &package,
        instance: &instance,
        plan: "deploy",
        uid: "run-1",
        values: &Values::new(),
        transient: &[],
        helper: PipeHelper::kudo(),
        seed: None,
        rendered: &Rendered::default(),
        interrupt: &Never,
    };
    ask(&TaskContext { run: &run, params: &Parameters::default(), phase: "main", step: "first", task })
}

fn config(kind: ConfigKind, name: &str, data: &str) -> Value {
    let kind = kind.gvk().kind;
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "ns"}, "data": {"k": data}})
}

fn workload(api_version: &str, kind: &str, pods: Value) -> Value {
    let template = json!({"spec": pods});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": {"template": template}})
}

/// A Deployment whose pods mount these ConfigMaps.
fn mounts(names: &[&str]) -> Value {
    let volumes: Vec<Value> = names.iter().map(|name| json!({"configMap": {"name": name}})).collect();
    workload("apps/v1", "Deployment", json!({"volumes": volumes}))
}

fn of(object: &Value) -> [u8; 16] {
    let kind = ConfigKind::of(&Gvk::of(object).unwrap()).unwrap();
    ConfigDigest::of_live(kind, object).md5
}

#[rstest]
#[case::deployment("apps/v1", "Deployment", true)]
#[case::stateful_set("apps/v1", "StatefulSet", true)]
#[case::daemon_set("apps/v1", "DaemonSet", true)]
#[case::job("batch/v1", "Job", true)]
#[case::pod("v1", "Pod", false)]
#[case::deployment_of_another_group("example.com/v1", "Deployment", false)]
fn pod_templates_have_it(#[case] api_version: &str, #[case] kind: &str, #[case] has: bool) {
    let pods = json!({"imagePullSecrets": [{"name": "s"}]});
    let secret = config(ConfigKind::Secret, "s", "aGVsbG8=");
    let found = Case::new([workload(api_version, kind, pods)]).seen(secret.clone()).add().unwrap();
    assert_eq!(hash(&found), has.then(|| hex(&[of(&secret)])).as_deref());
}

#[test]
fn pods_of_a_cron_job_have_it() {
    let template = json!({"spec": {"volumes": [{"configMap": {"name": "a"}}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "w"},
        "spec": {"jobTemplate": {"spec": {"template": template}}}});
    let found = Case::new([job]).read(config_map("a"), Ok(ConfigDigest::default())).add().unwrap();
    let template = &found["spec"]["jobTemplate"]["spec"]["template"];
    assert_eq!(template["metadata"]["annotations"], json!({"kudo.dev/dependencies-hash": hex(&[ZEROS])}));
    assert_eq!(found["spec"].get("template"), None);
}

#[test]
fn kinds_and_names_are_in_the_order_of_kudo() {
    let volumes =
        json!([{"secret": {"secretName": "a"}}, {"configMap": {"name": "z"}}, {"configMap": {"name": "b"}}]);
    let configs = [
        config(ConfigKind::ConfigMap, "b", "1"),
        config(ConfigKind::ConfigMap, "z", "2"),
        config(ConfigKind::Secret, "a", "aGVsbG8="),
    ];
    let case = Case::new([workload("apps/v1", "Deployment", json!({"volumes": volumes}))]);
    let found = configs.iter().cloned().fold(case, Case::seen).add().unwrap();
    assert_eq!(hash(&found), Some(hex(&configs.each_ref().map(of)).as_str()));
}

#[test]
fn pods_that_use_nothing_have_none() {
    let pods = json!({"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]});
    let deployment = workload("apps/v1", "Deployment", pods);
    let found = Case::new([deployment.clone()]).add().unwrap();
    assert_eq!(found["spec"], deployment["spec"]);

    let mut case = Case::new([deployment]);
    case.observed.references = CountedReferences::All;
    assert_eq!(case.add(), Err(Unset::Needs(BTreeSet::from([config_map("a")]))));
}

/// What of several sources counts.
#[rstest]
#[case::of_the_task_before_all(true, true, "task")]
#[case::of_the_pass(false, true, "pass")]
#[case::read(false, false, "read")]
fn sources(#[case] task: bool, #[case] pass: bool, #[case] expected: &str) {
    let map = |data: &str| config(ConfigKind::ConfigMap, "a", data);
    let mut case = Case::new([mounts(&["a"])].into_iter().chain(task.then(|| map("task"))))
        .read(config_map("a"), Ok(ConfigDigest::of_live(ConfigKind::ConfigMap, &map("read"))));
    if pass {
        case = case.seen(map("pass"));
    }
    assert_eq!(hash(&case.add().unwrap()), Some(hex(&[of(&map(expected))]).as_str()));
}

/// As in KUDO, it may be made later, by others.
#[test]
fn what_does_not_exist_counts_as_zeros() {
    let mut case =
        Case::new([mounts(&["a", "b", "in/valid", ""])]).read(config_map("b"), Ok(ConfigDigest::default()));
    case.observed.facts.objects.insert(config_map("a"), Lookup::Absent);
    assert_eq!(hash(&case.add().unwrap()), Some(hex(&[ZEROS; 4]).as_str()));
}

#[test]
fn what_another_task_could_not_read_is_read() {
    let mut case = Case::new([mounts(&["a"])]);
    case.observed.facts.objects.insert(config_map("a"), Lookup::Absent);
    case.observed.facts.failures.insert(config_map("a"), failure(500, "try later"));
    assert_eq!(case.add(), Err(Unset::Needs(BTreeSet::from([config_map("a")]))));
}

#[test]
fn what_another_task_writes_is_waited_for() {
    let map = config(ConfigKind::ConfigMap, "a", "new");
    let case = Case::new([mounts(&["a"])]).read(config_map("a"), Ok(ConfigDigest::default())).written(map);
    let why = "ConfigMap ns/a is being changed by task deploy.main.first.other";
    assert_eq!(case.add(), Err(Unset::Waits(why.to_owned())));
}

#[test]
fn a_right_that_is_missing_is_told_with_the_text_of_the_server() {
    let text = "configmaps \"a\" is forbidden: User \"u\" cannot get resource \"configmaps\"";
    let case = Case::new([mounts(&["a"])]).read(config_map("a"), Err(failure(403, text)));
    let told =
        TaskError::Rejected(RejectionKind::MissingRight, format!("failed to add dependencies hash: {text}"));
    assert_eq!(case.add(), Err(Unset::Failed(told)));
}

/// The pods of a Job cannot change: another hash would be refused for ever.
#[rstest]
#[case::with_a_hash(json!({"kudo.dev/dependencies-hash": "old"}), Some("old"))]
#[case::without(json!({}), None)]
fn a_job_keeps_its_hash(#[case] annotations: Value, #[case] expected: Option<&str>) {
    let job = || workload("batch/v1", "Job", json!({"volumes": [{"configMap": {"name": "a"}}]}));
    let mut live = job();
    live["metadata"]["namespace"] = "ns".into();
    live["spec"]["template"]["metadata"] = json!({"annotations": annotations});
    let found = Case::new([job()]).seen(live).add().unwrap();
    assert_eq!(hash(&found), expected);
}

mod budgets {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|i| format!("c{i:03}")).collect()
    }

    fn case(names: &[String]) -> Case {
        Case::new([mounts(&names.iter().map(String::as_str).collect::<Vec<_>>())])
    }

    #[track_caller]
    fn fails(case: Case, text: &str) {
        match case.add() {
            Err(Unset::Failed(TaskError::Fatal { cause, .. })) => assert!(cause.contains(text), "{cause}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_few_are_read_at_a_time() {
        let names = names(20);
        let Err(Unset::Needs(needs)) = case(&names).add() else { panic!("nothing is read") };
        assert_eq!(needs, names.iter().take(BATCH).map(|name| config_map(name)).collect());
    }

    #[test]
    fn so_many() {
        assert!(matches!(case(&names(MAX_READ)).add(), Err(Unset::Needs(_))));
        fails(case(&names(MAX_READ + 1)), "name more than 128 ConfigMaps and Secrets");
    }

    #[test]
    fn those_of_the_task_are_in_the_budget_of_its_rendering() {
        let names = names(MAX_READ + 1);
        let mut case = case(&names);
        let maps = Case::new(names.iter().map(|name| config(ConfigKind::ConfigMap, name, "x")));
        case.wanted.extend(maps.wanted);
        assert!(case.add().is_ok());
    }

    #[test]
    fn so_large() {
        let large = || Ok(ConfigDigest { md5: ZEROS, bytes: MAX_BYTES / 2 });
        let names = names(3);
        let two = || case(&names).read(config_map("c000"), large()).read(config_map("c001"), large());
        assert!(two().read(config_map("c002"), Ok(ConfigDigest::default())).add().is_ok());
        let one = Ok(ConfigDigest { md5: ZEROS, bytes: 1 });
        fails(two().read(config_map("c002"), one), "have more than 16 MiB");
    }
}
