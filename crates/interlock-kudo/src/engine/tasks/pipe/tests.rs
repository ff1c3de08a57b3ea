//! Pipe tasks: which Pods are valid, what becomes of their files, and a process that dies at each write.

use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::{ApiFailure, FileRead};
use rstest::rstest;
use serde_json::{Value, json};

use super::env_file;
use crate::api::ExecutionStatus;
use crate::engine::advance::fixture::key;
use crate::engine::advance::sim::{Did, Fixture, Process, Server};
use crate::engine::lookup::EngineStep;

const POD: &str = "apiVersion: v1\nkind: Pod\nspec:\n  volumes: [{name: data, emptyDir: {}}]\n  initContainers:\n  \
                   - {name: init, image: tools, volumeMounts: [{name: data, mountPath: /tmp}]}\n";
const USER: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: user}\ndata: {page: '{{ .Pipes.indexHtml }}'}\n";

/// A plan that takes two files out of a Pod, and then names one of them.
fn package(pod: &str, pipe: Value) -> Value {
    json!({
        "operator": {"name": "op"}, "version": "1.0.0",
        "templates": {"pod.yaml": pod, "user.yaml": USER},
        "tasks": [
            {"name": "gen-www", "kind": "Pipe", "spec": {"pod": "pod.yaml", "pipe": pipe}},
            {"name": "use", "kind": "Apply", "spec": {"resources": ["user.yaml"]}},
        ],
        "plans": {"deploy": {"strategy": "serial", "phases": [{"name": "Main", "strategy": "serial", "steps": [
            {"name": "files", "tasks": ["gen-www"]}, {"name": "app", "tasks": ["use"]},
        ]}]}},
    })
}

fn both() -> Value {
    json!([
        {"file": "/tmp/index.html", "kind": "ConfigMap", "key": "indexHtml"},
        {"envFile": "/tmp/sub/vars", "kind": "Secret", "key": "vars"},
    ])
}

fn content(text: &str) -> FileRead {
    FileRead::Content(Arc::from(text.as_bytes()))
}

fn server() -> Server {
    let mut server = Server::default();
    server.files.insert("/tmp/index.html", content("<h1>moo</h1>"));
    server.files.insert("/tmp/sub/vars", content("# two\nA=1\n  B=x=y\n"));
    server
}

fn pod() -> ObjectKey {
    key("v1", "Pod", "inst.deploy.main.files.genwww.pipepod")
}

fn page() -> ObjectKey {
    key("v1", "ConfigMap", "inst.deploy.main.files.genwww.indexhtml")
}

fn variables() -> ObjectKey {
    key("v1", "Secret", "inst.deploy.main.files.genwww.vars")
}

fn ended(package: Value, server: &mut Server) -> EngineStep {
    let fixture = Fixture::new(package);
    Process::new(fixture.run(), fixture.start()).finish(server).unwrap()
}

#[test]
fn files_become_a_config_map_and_a_secret() {
    let mut server = server();
    let step = ended(package(POD, both()), &mut server);
    assert_eq!(step.state.status.status, ExecutionStatus::Complete, "{:?}", step.fatal);
    let user = key("v1", "ConfigMap", "user");
    assert_eq!(
        server.ledger,
        [
            Did::Create(pod()),
            Did::Create(page()),
            Did::Create(variables()),
            Did::Delete(pod()),
            Did::Create(user.clone())
        ]
    );
    assert_eq!(server.objects[&page()]["binaryData"], json!({"index.html": "PGgxPm1vbzwvaDE+"}));
    let secret = &server.objects[&variables()];
    assert_eq!((&secret["type"], &secret["data"]), (&json!("Opaque"), &json!({"A": "MQ==", "B": "eD15"})));
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "uid-1");
    assert_eq!(server.objects[&user]["data"]["page"], page().name);
}

#[test]
fn the_pod_waits_until_its_files_are_read() {
    let mut server = server();
    let fixture = Fixture::new(package(POD, both()));
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    let made = &server.objects[&pod()];
    assert_eq!(made["metadata"]["annotations"][meta::PIPE_POD], "true");
    assert_eq!(made["spec"]["restartPolicy"], "OnFailure");
    let helper = &made["spec"]["containers"][0];
    assert_eq!((&helper["name"], &helper["image"]), (&json!("waiter"), &json!("busybox")));
    assert_eq!(helper["volumeMounts"], json!([{"name": "data", "mountPath": "/tmp"}]));
    assert!(step.waiting.iter().any(|why| why.contains("is not running yet")), "{:?}", step.waiting);
}

/// The run ends as it does without a death: each artifact is made once, and no Pod is left.
#[test]
fn a_process_that_dies_at_a_write_leaves_nothing_undone() {
    let mut deaths = 0;
    for lives in 1.. {
        let mut server = server();
        let fixture = Fixture::new(package(POD, both()));
        let mut process = Process::new(fixture.run(), fixture.start());
        process.lives = lives;
        if process.finish(&mut server).is_ok() {
            break;
        }
        deaths += 1;
        let mut next = Process::new(fixture.run(), process.saved.clone());
        server.tick();
        let step = next.finish(&mut server).unwrap();
        assert_eq!(step.state.status.status, ExecutionStatus::Complete, "after {lives} writes");
        server.tick();
        assert!(!server.objects.contains_key(&pod()), "after {lives} writes");
        let count = |did: &Did| server.ledger.iter().filter(|done| *done == did).count();
        for artifact in [page(), variables()] {
            assert_eq!(count(&Did::Create(artifact)), 1, "after {lives} writes: {:?}", server.ledger);
        }
    }
    assert!(deaths >= 5, "{deaths}");
}

#[test]
fn the_next_run_reads_the_files_of_its_own_pod() {
    let mut server = server();
    let _ = ended(package(POD, both()), &mut server);
    server.tick();
    // A Pod of that run that was left behind.
    let fixture = Fixture::new(package(POD, both()));
    let mut first = Process::new(fixture.run(), fixture.start());
    server.objects.retain(|key, _| *key != page());
    let _ = first.pass(&mut server).unwrap();
    assert!(server.objects.contains_key(&pod()));

    server.files.insert("/tmp/index.html", content("new"));
    server.ledger.clear();
    let again = crate::engine::run::Run { uid: "run-2", ..fixture.run() };
    let start = crate::engine::lookup::PlanState::start(&fixture.package, "deploy", "run-2");
    let step = Process::new(again, start).finish(&mut server).unwrap();
    assert_eq!(step.state.status.status, ExecutionStatus::Complete, "{:?}", step.fatal);
    assert_eq!(server.ledger[..2], [Did::Delete(pod()), Did::Create(pod())]);
    assert_eq!(server.objects[&page()]["binaryData"]["index.html"], "bmV3");
}

#[rstest]
#[case::too_large(FileRead::TooLarge, "has more than 1048576 bytes")]
#[case::missing(FileRead::Ended { code: 1, said: "cat: no such file".to_owned() }, "exit code 1: cat: no such file")]
#[case::no_env_file(content("A=1\n1B=2\n"), "line 2 names no variable")]
fn a_file_that_cannot_be_taken_ends_the_plan(#[case] read: FileRead, #[case] said: &str) {
    let mut server = server();
    server.files.insert("/tmp/sub/vars", read);
    let step = ended(package(POD, both()), &mut server);
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, super::file::PIPE_TASK_ERROR);
    assert!(fatal.message.contains(said), "{}", fatal.message);
}

#[rstest]
#[case::right(403, "pods \"x\" is forbidden", Some("RequestRefused"))]
#[case::kubelet(500, "error dialing backend", None)]
fn a_file_that_is_not_read_is_tried_again(
    #[case] code: u16,
    #[case] message: &str,
    #[case] stalls: Option<&str>,
) {
    let mut server = server();
    let failure =
        ApiFailure { code, reason: String::new(), message: message.to_owned(), namespace_terminating: false };
    server.files.insert("/tmp/index.html", FileRead::Failed(failure));
    let fixture = Fixture::new(package(POD, both()));
    let mut process = Process::new(fixture.run(), fixture.start());
    let _ = process.pass(&mut server).unwrap();
    server.tick();
    let failed = process.pass(&mut server).unwrap().failure.unwrap();
    assert!(failed.message.contains(message), "{}", failed.message);
    assert_eq!(failed.kind.stalls(), stalls);
    server.files.insert("/tmp/index.html", content("x"));
    let step = process.finish(&mut server).unwrap();
    assert_eq!(step.state.status.status, ExecutionStatus::Complete);
}

#[rstest]
#[case::no_pod(POD.replace("kind: Pod", "kind: Job"), "ResourceUnmarshalError", "is no Pod of v1")]
#[case::two(format!("{POD}---\n{POD}"), "TaskRenderingError", "has 2 objects; it needs one")]
#[case::containers(format!("{POD}  containers: [{{name: c}}]\n"), "ResourceValidationError", "it has containers")]
#[case::no_init(POD.replace("initContainers", "others"), "ResourceValidationError", "it has 0 init containers")]
#[case::restarts(format!("{POD}  restartPolicy: Never\n"), "ResourceValidationError", "restartPolicy is \"Never\"")]
#[case::no_volume(POD.replace("volumes", "others"), "ResourceValidationError", "it has 0 volumes")]
#[case::host_path(POD.replace("emptyDir", "hostPath"), "ResourceValidationError", "no emptyDir")]
#[case::not_mounted(POD.replace("{name: data, mountPath", "{name: other, mountPath"), "ResourceValidationError", "does not mount volume \"data\"")]
#[case::elsewhere(POD.replace("/tmp}", "/var}"), "ResourceValidationError", "file /tmp/index.html is not below the mount path /var")]
fn a_pod_that_cannot_be_piped_ends_the_plan(#[case] pod: String, #[case] reason: &str, #[case] said: &str) {
    let step = ended(package(&pod, both()), &mut server());
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, reason);
    assert!(fatal.message.contains(said), "{}", fatal.message);
}

#[rstest]
#[case::above("/tmp/../etc/passwd")]
#[case::around("/tmp/a/../../etc/passwd")]
#[case::hidden("/tmp/.secret")]
#[case::the_folder("/tmp")]
#[case::a_like_name("/tmpx/y")]
#[case::relative("tmp/x")]
#[case::odd("/tmp/a b")]
fn a_file_outside_of_its_volume_is_not_read(#[case] path: &str) {
    let pipe = json!([{"file": path, "kind": "ConfigMap", "key": "indexHtml"}]);
    let step = ended(package(POD, pipe), &mut server());
    assert_eq!(step.fatal.unwrap().reason, "ResourceValidationError");
}

#[test]
fn a_key_of_two_files_ends_the_plan() {
    let one = json!({"file": "/tmp/index.html", "kind": "ConfigMap", "key": "indexHtml"});
    let step = ended(package(POD, json!([one, one])), &mut server());
    assert!(step.fatal.unwrap().message.contains("duplicated pipe key indexHtml"));
}

#[rstest]
#[case::variables(b"A=1\nb.c-d_e=2\n", Ok(json!({"A": "1", "b.c-d_e": "2"})))]
#[case::comments(b"# a\n\n   # b\n  A = 1 \n", Err("line 4"))]
#[case::windows(b"\xef\xbb\xbfA=1\r\nB=\r\n", Ok(json!({"A": "1", "B": ""})))]
#[case::without_a_value(b"A", Ok(json!({"A": ""})))]
#[case::twice(b"A=1\nA=2", Ok(json!({"A": "2"})))]
#[case::digits(b"1A=2", Err("line 1 names no variable"))]
#[case::dots(b"..=2", Err("line 1 names no variable"))]
#[case::binary(b"A=1\n\xff=2", Err("line 2 is not UTF-8"))]
fn env_files(#[case] content: &[u8], #[case] expected: Result<Value, &str>) {
    match (env_file::parse(content), expected) {
        (Ok(found), Ok(expected)) => assert_eq!(json!(found), expected),
        (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{why}"),
        (found, expected) => panic!("{found:?} is not {expected:?}"),
    }
}
