//! KUDO's own suites, v0.19, with its client against our server. Its cases are folders of numbered steps (kuttl's
//! format): what a step applies and runs, what is there then, and what is not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::resources::{collection_of, path_of};
use crate::support::{Client, Cluster, Interlock, Namespace, announce, peers, testbed};

/// A suite of KUDO's.
struct Suite {
    folder: &'static str,
    /// Whether pods are made: where the suite runs for KUDO, there are no controllers of Kubernetes.
    pods: bool,
    /// How long what a step says may take.
    cap: Duration,
}

const INTEGRATION: Suite = Suite { folder: "integration", pods: false, cap: Duration::from_secs(60) };
/// One of its Jobs runs for a minute.
const END_TO_END: Suite = Suite { folder: "e2e", pods: true, cap: Duration::from_secs(180) };

/// Cases at once.
const BESIDE: usize = 4;

/// Cases of the integration suite that Interlock does not pass, and why.
const NOT_PASSED: [(&str, &str); 2] = [
    // Our step waits until somebody installs the definition that is missing.
    ("invalid-crd-install", "status is \"IN_PROGRESS\", not \"FATAL_ERROR\""),
    // It reads its CustomResourceDefinition as apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 removed.
    ("operator-with-custom-crd", "apiextensions.k8s.io/v1beta1"),
];

#[test]
fn the_integration_suite_passes_but_for_what_is_explained() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    // It edits Instances while a plan runs, which ends with no pods: KUDO begins that plan anew.
    let _process = Interlock::install(&cluster, &["--freeze=same-plan"]);
    let manifests = peers::kudo_cases().join("manifests");
    // A webhook of KUDO's manager is among them.
    for file in ["configmap-operator.yaml", "test-operator.yaml", "toy-operator.yaml"] {
        for object in documents(&manifests.join(file)) {
            apply(&cluster.admin(), "default", object).expect("a manifest of the suite");
        }
    }
    let failed = run(&cluster, &INTEGRATION);
    for (case, why) in NOT_PASSED {
        let said = failed.get(case).unwrap_or_else(|| panic!("{case} passes now: take it off"));
        assert!(said.contains(why), "{case}: {said}");
    }
    let unexplained: Vec<_> =
        failed.iter().filter(|(case, _)| NOT_PASSED.iter().all(|(known, _)| known != case)).collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}

#[test]
fn the_end_to_end_suite_passes() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    let _process = Interlock::install(&cluster, &[]);
    let failed = run(&cluster, &END_TO_END);
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Runs a suite; what went wrong in each case that failed.
fn run(cluster: &Cluster, suite: &Suite) -> BTreeMap<String, String> {
    let folder = peers::kudo_cases().join(suite.folder);
    let entries = std::fs::read_dir(&folder).expect("the suite").map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    let (count, left, failed) = (cases.len(), Mutex::new(cases), Mutex::new(BTreeMap::new()));
    std::thread::scope(|threads| {
        for _ in 0..BESIDE {
            threads.spawn(|| {
                while let Some(case) = { left.lock().expect("the cases").pop() } {
                    let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    if let Err(why) = Case::new(cluster, &name, &case, suite).run() {
                        announce(&format!("counted: {} {name}: {why}", suite.folder));
                        failed.lock().expect("the failures").insert(name, why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("the failures");
    let passed = count - failed.len();
    announce(&format!("counted: KUDO's suite {}: {passed} of {count} cases pass", suite.folder));
    failed
}

/// A case in a namespace, with a copy of its folder, as the client writes into it.
struct Case<'a> {
    ns: Namespace<'a>,
    user: Client,
    folder: tempfile::TempDir,
    cap: Duration,
}

/// What a step does and expects.
#[derive(Default)]
struct Step {
    applied: Vec<Value>,
    commands: Vec<Value>,
    there: Vec<Value>,
    absent: Vec<Value>,
}

impl<'a> Case<'a> {
    fn new(cluster: &'a Cluster, name: &str, from: &Path, suite: &Suite) -> Self {
        let ns = cluster.namespace(&name[..name.len().min(40)]);
        if !suite.pods {
            ns.forbid("pods");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let copied =
            std::process::Command::new("cp").arg("-r").arg(from.join(".")).arg(folder.path()).status();
        assert!(copied.expect("cp runs").success());
        Self { user: ns.admin(), ns, folder, cap: suite.cap }
    }

    fn run(&self) -> Result<(), String> {
        for (number, step) in self.steps() {
            self.step(&step).map_err(|why| format!("step {number}: {why}"))?;
        }
        Ok(())
    }

    /// By their numbers: `NN-assert.yaml`, `NN-errors.yaml`, and `NN-` anything else.
    fn steps(&self) -> BTreeMap<String, Step> {
        let mut steps: BTreeMap<String, Step> = BTreeMap::new();
        for entry in std::fs::read_dir(self.folder.path()).expect("the case") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((number, rest)) = file.strip_suffix(".yaml").and_then(|stem| stem.split_once('-'))
            else {
                continue;
            };
            let step = steps.entry(number.to_owned()).or_default();
            match rest {
                "assert" => step.there.extend(documents(&path)),
                "errors" => step.absent.extend(documents(&path)),
                _ => {
                    let (commands, applied): (Vec<_>, Vec<_>) =
                        documents(&path).into_iter().partition(|object| object["kind"] == "TestStep");
                    step.applied.extend(applied);
                    step.commands.extend(
                        commands.iter().flat_map(|step| step["commands"].as_array()).flatten().cloned(),
                    );
                }
            }
        }
        steps
    }

    fn step(&self, step: &Step) -> Result<(), String> {
        for object in &step.applied {
            apply(&self.user, self.ns.name(), object.clone())?;
        }
        step.commands.iter().try_for_each(|command| self.command(command))?;
        let began = Instant::now();
        loop {
            match self.look(step) {
                Err(why) if began.elapsed() > self.cap => return Err(why),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// `kubectl` and its plugins in the folder of the case; `script` is for a shell as it is.
    fn command(&self, command: &Value) -> Result<(), String> {
        let text = command["script"].as_str().or(command["command"].as_str()).unwrap_or_default();
        let within = if command["namespaced"] == true { " --namespace $NAMESPACE" } else { "" };
        let folders = [peers::kubectl_kudo(), testbed::BIN.join("kubectl")]
            .map(|file| file.parent().expect("a folder").display().to_string());
        let line = format!(
            "cd '{}'; export NAMESPACE={} PATH={}:$PATH; {text}{within}",
            self.folder.path().display(),
            self.ns.name(),
            folders.join(":"),
        );
        let out = self.user.command(Path::new("/bin/sh"), &["-c", &line], "");
        if out.code == 0 { Ok(()) } else { Err(out.to_string()) }
    }

    fn look(&self, step: &Step) -> Result<(), String> {
        for object in &step.there {
            self.find(object)?;
        }
        for object in &step.absent {
            if self.find(object).is_ok() {
                return Err(format!("it must not be there: {object}"));
            }
        }
        Ok(())
    }

    /// Whether an object is there that holds all of this one; one without a name is any of its kind and labels.
    fn find(&self, wanted: &Value) -> Result<(), String> {
        let mut wanted = wanted.clone();
        if wanted["kind"] != "CustomResourceDefinition" {
            wanted["metadata"]["namespace"] = self.ns.name().into();
        }
        let found = if wanted["metadata"]["name"].is_string() {
            let answer = self.user.read(&path_of(&wanted));
            if answer.code != 200 {
                return Err(answer.to_string());
            }
            vec![answer.body]
        } else {
            let labels = wanted["metadata"]["labels"].as_object().into_iter().flatten();
            let labels: Vec<String> = labels
                .map(|(key, value)| format!("{key}%3D{}", value.as_str().unwrap_or_default()))
                .collect();
            let path = format!("{}?labelSelector={}", collection_of(&wanted), labels.join(","));
            self.user.read(&path).body["items"].as_array().cloned().unwrap_or_default()
        };
        let mut why = format!("there is no {}", wanted["kind"]);
        for found in found {
            match holds(&found, &wanted, "") {
                // What a list holds has no kind.
                None => return Ok(()),
                Some(differs) => why = format!("{}: {differs}", found["metadata"]["name"]),
            }
        }
        Err(why)
    }
}

/// As kuttl applies: creates an object, or patches the one that is there.
fn apply(user: &Client, namespace: &str, mut object: Value) -> Result<(), String> {
    object["metadata"]["namespace"] = namespace.into();
    let path = path_of(&object);
    let answer = match user.read(&path).code {
        404 => user.post(&collection_of(&object), &object),
        _ => user.merge_patch(&path, &object),
    };
    if (200..300).contains(&answer.code) { Ok(()) } else { Err(answer.to_string()) }
}

/// Where an object does not hold all of another, as kuttl compares: lists are as long, and hold the same in order.
fn holds(found: &Value, wanted: &Value, at: &str) -> Option<String> {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().find_map(|(key, wanted)| {
            let own = matches!(at, "") && matches!(key.as_str(), "apiVersion" | "kind");
            let found = found.get(key).unwrap_or(&Value::Null);
            (!own).then(|| holds(found, wanted, &format!("{at}.{key}"))).flatten()
        }),
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            let mut pairs = found.iter().zip(wanted).enumerate();
            pairs.find_map(|(i, (found, wanted))| holds(found, wanted, &format!("{at}[{i}]")))
        }
        _ => (found != wanted).then(|| format!("{at} is {found}, not {wanted}")),
    }
}

fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a file of the suite");
    let all =
        go_template::yaml::documents(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    all.into_iter().filter(|object| !object.is_null()).collect()
}
