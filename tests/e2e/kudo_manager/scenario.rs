//! A package in a namespace, installed and changed with KUDO's client, whichever controller carries it out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::manager::kudo;
use super::snapshot::Snapshot;
use crate::support::instances::{idle, run_of};
use crate::support::{Client, Cluster, Namespace, shared, wait_until};

const CAP: Duration = Duration::from_secs(150);
/// How long nothing changes before it counts as done: KUDO's manager looks again each second.
const QUIET: Duration = Duration::from_secs(2);

/// A package, and what is done with it.
pub struct Case {
    pub operator: &'static str,
    pub package: PathBuf,
    pub acts: &'static [Act],
}

/// Something that a user does; each starts a plan.
#[derive(Clone, Copy)]
pub enum Act {
    Install,
    /// A parameter, as `NAME=VALUE`; which plan runs.
    Update(&'static str, &'static str),
    Trigger(&'static str),
    /// To the same package with a higher version; which plan runs.
    Upgrade(&'static str),
}

impl Act {
    /// How it is called in what is printed.
    pub fn name(self) -> String {
        match self {
            Self::Install => "install".to_owned(),
            Self::Update(value, _) => format!("update {value}"),
            Self::Trigger(plan) => format!("trigger {plan}"),
            Self::Upgrade(_) => "upgrade".to_owned(),
        }
    }

    /// How its plan ends; the plan `broken` fails on purpose.
    fn end(self) -> &'static str {
        if self.plan() == "broken" { "FATAL_ERROR" } else { "COMPLETE" }
    }

    fn plan(self) -> &'static str {
        match self {
            Self::Install => "deploy",
            Self::Update(_, plan) | Self::Trigger(plan) | Self::Upgrade(plan) => plan,
        }
    }
}

/// One package at work.
pub struct Scenario<'a> {
    pub ns: Namespace<'a>,
    pub user: Client,
    pub instance: String,
    package: PathBuf,
    newer: Option<tempfile::TempDir>,
}

impl<'a> Scenario<'a> {
    pub fn new(cluster: &'a Cluster, operator: &str, package: &Path) -> Self {
        let ns = cluster.namespace(operator);
        let user = ns.admin();
        let instance = format!("{operator}-instance");
        Self { ns, user, instance, package: package.to_owned(), newer: None }
    }

    pub fn get(&self) -> Value {
        self.user.get("instances.kudo.dev", &self.instance).expect("the Instance")
    }

    /// Runs KUDO's client here.
    #[track_caller]
    pub fn kudo(&self, arguments: &[&str]) -> String {
        kudo(&self.user, self.ns.name(), arguments).ok()
    }

    /// Does it, and waits until its plan has ended; how.
    #[track_caller]
    pub fn act(&mut self, act: Act) -> String {
        let before = self.user.get("instances.kudo.dev", &self.instance).unwrap_or_default();
        let name = self.instance.clone();
        match act {
            Act::Install => self.kudo(&["install", &self.package.display().to_string()]),
            Act::Update(value, _) => self.kudo(&["update", "--instance", &name, "-p", value]),
            Act::Trigger(plan) => self.kudo(&["plan", "trigger", "--name", plan, "--instance", &name]),
            Act::Upgrade(_) => {
                let newer = newer(&self.package);
                let path = newer.path().display().to_string();
                self.newer = Some(newer);
                self.kudo(&["upgrade", &path, "--instance", &name])
            }
        };
        let plan = act.plan();
        self.await_end(plan, &run_of(&before, plan))
    }

    /// Waits until another run of a plan has ended, and nothing is scheduled; how it ended.
    #[track_caller]
    pub fn await_end(&self, plan: &str, before: &str) -> String {
        wait_until(&format!("{}: plan {plan} has run", self.instance), CAP, || {
            let found = self.get();
            let status = found["status"]["planStatus"][plan]["status"].as_str().unwrap_or_default();
            let ended = matches!(status, "COMPLETE" | "FATAL_ERROR") && run_of(&found, plan) != before;
            if ended && idle(&found) { Ok(status.to_owned()) } else { Err(format!("{found:#}")) }
        })
    }

    /// Waits until no Instance changes any more.
    #[track_caller]
    pub fn settle(&self) {
        let path = self.ns.path("kudo.dev/v1beta1", "instances", "");
        let (mut seen, mut since) = (Value::Null, Instant::now());
        wait_until(&format!("the Instances of {} rest", self.ns.name()), CAP, || {
            let found = self.user.read(&path).ok()["items"].take();
            if found != seen {
                (seen, since) = (found, Instant::now());
            }
            if since.elapsed() >= QUIET { Ok(()) } else { Err(format!("{seen:#}")) }
        });
    }
}

/// All of a case: what is there after each act.
pub fn run<'a>(cluster: &'a Cluster, case: &Case) -> (Namespace<'a>, Vec<(String, Snapshot)>) {
    let mut scenario = Scenario::new(cluster, case.operator, &case.package);
    let mut seen = Vec::new();
    for act in case.acts {
        assert_eq!(scenario.act(*act), act.end(), "{}, {}", case.operator, act.name());
        scenario.settle();
        seen.push((act.name(), Snapshot::of(&scenario.ns)));
    }
    (scenario.ns, seen)
}

/// A package of the tests.
pub fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/kudo_manager/packages").join(name)
}

/// A package of KUDO's users; `None` = skipped.
pub fn real(name: &str) -> Option<PathBuf> {
    shared::find(&format!("packages/{name}/operator"))
}

/// A copy of a package with a higher version.
fn newer(folder: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copied = std::process::Command::new("cp").arg("-r").arg(folder.join(".")).arg(dir.path()).status();
    assert!(copied.unwrap().success());
    let file = dir.path().join("operator.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let raised: String = text
        .lines()
        .map(|line| if line.starts_with("operatorVersion:") { "operatorVersion: \"9.0.0\"" } else { line })
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_ne!(raised, text);
    std::fs::write(file, raised).unwrap();
    dir
}
