//! Control planes: one for all tests of a binary, others for tests that break theirs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::testbed::{BIN, Ready, Testbed};
use super::{Client, Namespace, skipped, wait_until};

/// A control plane and its users.
pub struct Cluster {
    ground: Ground,
    dir: PathBuf,
    users: Mutex<HashMap<(String, String), Client>>,
    occupancy: Mutex<Occupancy>,
    rested: Condvar,
}

/// How many namespaces cases have, and when that was asked or changed last.
struct Occupancy {
    namespaces: usize,
    since: Instant,
}

impl Default for Occupancy {
    fn default() -> Self {
        Self { namespaces: 0, since: Instant::now() }
    }
}

enum Ground {
    /// Ours.
    Testbed(Box<Testbed>),
    /// Somebody's, by KUBECONFIG and INTERLOCK_TEST_CLUSTER=existing: users are impersonated.
    Existing { kubeconfig: String, _dir: tempfile::TempDir },
}

impl Cluster {
    /// The cluster that all tests of this binary share. Started on first use.
    pub fn shared() -> &'static Self {
        // Lazy, not once: where it cannot be had, every test fails at once.
        static SHARED: LazyLock<Cluster> =
            LazyLock::new(|| if existing() { Cluster::existing() } else { Cluster::own(&[]) });
        &SHARED
    }

    /// A control plane of the test's own, with further flags of `testbed up`.
    pub fn own(flags: &[&str]) -> Self {
        Self::of(Testbed::up(flags))
    }

    /// A control plane that is already up.
    pub fn of(testbed: Testbed) -> Self {
        let dir = testbed.ready.dir.clone();
        Self::on(Ground::Testbed(Box::new(testbed)), dir)
    }

    fn on(ground: Ground, dir: PathBuf) -> Self {
        Self { ground, dir, users: Mutex::default(), occupancy: Mutex::default(), rested: Condvar::new() }
    }

    fn existing() -> Self {
        let view = Command::new(BIN.join("kubectl"))
            .args(["config", "view", "--raw", "--flatten", "--minify", "-o", "json"])
            .output()
            .expect("kubectl runs");
        let kubeconfig = String::from_utf8_lossy(&view.stdout).into_owned();
        assert!(
            view.status.success() && !kubeconfig.is_empty(),
            "INTERLOCK_TEST_CLUSTER=existing needs KUBECONFIG to name a cluster: {}",
            String::from_utf8_lossy(&view.stderr)
        );
        let temporary = tempfile::tempdir().expect("a directory");
        let dir = temporary.path().to_owned();
        std::fs::create_dir_all(dir.join("logs")).expect("a directory");
        Self::on(Ground::Existing { kubeconfig, _dir: temporary }, dir)
    }

    /// The testbed's supervisor, for tests that stop components. `None` on an existing cluster:
    /// the test then is skipped, and says so.
    pub fn testbed(&self) -> Option<&Testbed> {
        match &self.ground {
            Ground::Testbed(testbed) => Some(testbed),
            Ground::Existing { .. } => {
                skipped(
                    "it stops components of the control plane, and an existing cluster is not ours to stop",
                );
                None
            }
        }
    }

    /// What the testbed said when it was ready.
    pub fn ready(&self) -> Option<&Ready> {
        match &self.ground {
            Ground::Testbed(testbed) => Some(&testbed.ready),
            Ground::Existing { .. } => None,
        }
    }

    /// Whether pods run here at all; where only etcd and kube-apiserver were given
    /// (KUBEBUILDER_ASSETS) they do not, and a test that needs them is skipped.
    pub fn has_workloads(&self) -> bool {
        let has = self.ready().is_none_or(|ready| ready.workloads);
        if !has {
            skipped("this control plane has no controller manager, scheduler and kwok");
        }
        has
    }

    /// Ends its processes, where they are ours.
    pub fn end(&self) {
        if let Ground::Testbed(testbed) = &self.ground {
            testbed.end();
        }
    }

    /// A case is about to use it.
    pub fn touch(&self) {
        self.occupy(|_| {});
    }

    /// A namespace on it is given back.
    pub(super) fn leave(&self) {
        self.occupy(|namespaces| *namespaces -= 1);
    }

    fn occupy(&self, change: impl FnOnce(&mut usize)) {
        let mut occupancy = self.occupancy();
        change(&mut occupancy.namespaces);
        occupancy.since = Instant::now();
        self.rested.notify_all();
    }

    fn occupancy(&self) -> MutexGuard<'_, Occupancy> {
        self.occupancy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when no case has a namespace on it; `None` while one has.
    pub fn rests_for(&self) -> Option<Duration> {
        let occupancy = self.occupancy();
        (occupancy.namespaces == 0).then(|| occupancy.since.elapsed())
    }

    /// Waits until no case has had a namespace on it for so long.
    pub fn await_rest(&self, rest: Duration) {
        let mut occupancy = self.occupancy();
        while occupancy.namespaces > 0 || occupancy.since.elapsed() < rest {
            let wait = self.rested.wait_timeout(occupancy, rest);
            occupancy = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Directory for logs and files of this cluster's tests.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// May do everything (system:masters).
    pub fn admin(&self) -> Client {
        self.user("admin", &["system:masters"])
    }

    /// A user of that name and those groups, with no rights but theirs; the fixed users of the
    /// testbed (`admin`, `newcomer`, `interlock`) keep their own groups.
    pub fn user(&self, name: &str, groups: &[&str]) -> Client {
        let key = (name.to_owned(), groups.join(","));
        let mut users = self.users.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        users.entry(key).or_insert_with(|| Client::new(name, self.kubeconfig(name, groups))).clone()
    }

    fn kubeconfig(&self, name: &str, groups: &[&str]) -> PathBuf {
        match &self.ground {
            Ground::Testbed(testbed) => match testbed.ready.kubeconfigs.get(name) {
                Some(fixed) => fixed.clone(),
                None => {
                    let answer = testbed.command(format!("user {name} {}", groups.join(",")).trim());
                    PathBuf::from(answer["kubeconfig"].as_str().expect("a kubeconfig"))
                }
            },
            Ground::Existing { kubeconfig, .. } => {
                let mut file: serde_json::Value = serde_json::from_str(kubeconfig).expect("JSON");
                let (name, groups) = match name {
                    "admin" => (None, groups),
                    "interlock" => (Some("system:serviceaccount:interlock-system:interlock"), groups),
                    other => (Some(other), groups),
                };
                if let Some(name) = name {
                    let user = &mut file["users"][0]["user"];
                    user["as"] = name.into();
                    user["as-groups"] =
                        groups.iter().chain(["system:authenticated"].iter()).copied().collect();
                }
                let path = self.dir.join(format!("user-{}.json", super::suffix()));
                std::fs::write(&path, file.to_string()).expect("a kubeconfig");
                path
            }
        }
    }

    /// A fresh namespace, ready for pods; deleted at the end of the test.
    pub fn namespace(&self, base: &str) -> Namespace<'_> {
        self.occupy(|namespaces| *namespaces += 1);
        let name = format!("{base}-{}", super::suffix());
        let admin = self.admin();
        // Without kubectl, whose start costs more than the request.
        let object = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        admin.post("/api/v1/namespaces", &object).ok();
        if self.ready().is_none_or(|ready| ready.workloads) {
            let path = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
            wait_until("the namespace has its service account", Duration::from_secs(60), || {
                let answer = admin.read(&path);
                if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
            });
        }
        Namespace::new(self, name)
    }
}

fn existing() -> bool {
    std::env::var("INTERLOCK_TEST_CLUSTER").is_ok_and(|v| v == "existing")
}
