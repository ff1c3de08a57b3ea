//! Lives of packages with KUDO's own client, v0.19, untouched, against our server: what it
//! prints is what its users know.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::instances::{await_names, await_run, idle, instance, names, run_of};
use crate::support::{Client, Cluster, Interlock, Namespace, Output, peers, shared, wait_for};

const MYSQL: &str = "mysql-instance";
const LEDGER: &str = "ledger-instance";

/// The client at work in a namespace.
pub struct Kudo<'a> {
    binary: PathBuf,
    pub user: Client,
    pub ns: Namespace<'a>,
}

impl<'a> Kudo<'a> {
    /// `None` = skipped: no pods here.
    pub fn new(base: &str) -> Option<Self> {
        let (cluster, _) = Interlock::shared();
        if !cluster.has_workloads() {
            return None;
        }
        let ns = cluster.namespace(base);
        let user = ns.user("kudo-user");
        let_see_definitions(cluster, "kudo-user");
        Some(Self { binary: peers::kubectl_kudo(), user, ns })
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_as(&self.user, arguments)
    }

    /// The same as another user.
    pub fn run_as(&self, user: &Client, arguments: &[&str]) -> Output {
        user.command(&self.binary, &[arguments, &["-n", self.ns.name()]].concat(), "")
    }

    /// What is printed of the plans of an Instance.
    fn status(&self, name: &str) -> String {
        self.run(&["plan", "status", "--instance", name]).ok()
    }

    fn history(&self, name: &str) -> String {
        self.run(&["plan", "history", "--instance", name]).ok()
    }
}

/// The client looks at the definitions before anything else.
fn let_see_definitions(cluster: &Cluster, user: &str) {
    let rbac = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "test-see-definitions"},
            "rules": [{
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "verbs": ["get"],
            }],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("test-see-definitions-{user}")},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-see-definitions",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        },
    ]});
    let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    cluster.admin().kubectl_in(&arguments, &rbac.to_string()).ok();
}

/// A printed tree without the times in it, and with plain spaces.
fn untimed(printed: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d").unwrap();
    time.replace_all(printed, "TIME").replace('\u{a0}', " ")
}

#[track_caller]
pub fn assert_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// A copy of a package with a higher version.
fn raised(folder: &Path, from: &str, to: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copied =
        std::process::Command::new("cp").arg("-r").arg(folder.join(".")).arg(dir.path()).status().unwrap();
    assert!(copied.success());
    let file = dir.path().join("operator.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let line = format!("operatorVersion: \"{from}\"");
    assert!(text.contains(&line), "{text}");
    std::fs::write(file, text.replace(&line, &format!("operatorVersion: \"{to}\""))).unwrap();
    dir
}

const DEPLOYED: &str = r#".
└── mysql-instance (Operator-Version: "mysql-5.7-0.3.0" Active-Plan: "deploy")
    ├── Plan backup (serial strategy) [NOT ACTIVE]
    │   └── Phase backup (serial strategy) [NOT ACTIVE]
    │       ├── Step pv [NOT ACTIVE]
    │       ├── Step backup [NOT ACTIVE]
    │       └── Step cleanup [NOT ACTIVE]
    ├── Plan deploy (serial strategy) [COMPLETE], last updated TIME
    │   └── Phase deploy (serial strategy) [COMPLETE]
    │       ├── Step deploy [COMPLETE]
    │       ├── Step init [COMPLETE]
    │       └── Step cleanup [COMPLETE]
    └── Plan restore (serial strategy) [NOT ACTIVE]
        └── Phase restore (serial strategy) [NOT ACTIVE]
            ├── Step restore [NOT ACTIVE]
            └── Step cleanup [NOT ACTIVE]
"#;

#[test]
fn mysql_lives_with_kubectl_kudo() {
    let Some(folder) = shared::find("packages/mysql/operator") else { return };
    let Some(kudo) = Kudo::new("kudo-mysql") else { return };
    let namespace = kudo.ns.name();
    let out = kudo.run(&["install", &folder.display().to_string(), "--wait", "--wait-time=90"]).ok();
    let said = [
        format!("operator {namespace}/mysql created"),
        format!("operatorversion {namespace}/mysql-5.7-0.3.0 created"),
        format!("instance {namespace}/mysql-instance created"),
        format!("instance {namespace}/mysql-instance ready"),
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), said);
    assert_all(&untimed(&kudo.status(MYSQL)), &[DEPLOYED]);
    let installed = await_run(&kudo.user, MYSQL, "deploy", "");
    let printed = kudo.run(&["plan", "status", "--instance", MYSQL, "-o", "json"]).ok();
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(printed["planStatus"], installed["status"]["planStatus"]);
    let history = "├── backup (NEVER_RUN)\n├── deploy (last finished run at TIME (COMPLETE))\n└── restore (NEVER_RUN)\n";
    assert_all(&untimed(&kudo.history(MYSQL)), &[history]);

    a_second_change_is_refused(&kudo, &installed);
    nothing_changes_where_nothing_is_new(&kudo);
    plans_are_triggered(&kudo);

    let newer = raised(&folder, "0.3.0", "0.4.0");
    let newer = newer.path().display().to_string();
    let before = run_of(&instance(&kudo.user, MYSQL), "deploy");
    let out = kudo.run(&["upgrade", &newer, "--instance", MYSQL]).ok();
    let said = [
        format!("operatorversion {namespace}/mysql-5.7-0.4.0 created"),
        format!("instance {namespace}/mysql-instance updated"),
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), said);
    // KUDO's client waits for the plan that the status names: what is scheduled and not begun is none to it.
    wait_for("the plan has begun", Duration::from_secs(60), || {
        run_of(&instance(&kudo.user, MYSQL), "deploy") != before
    });
    let out = kudo.run(&["plan", "status", "--instance", MYSQL, "--wait"]).ok();
    assert_all(&out, &["Plan deploy (serial strategy) [COMPLETE]"]);
    await_run(&kudo.user, MYSQL, "deploy", &before);
    assert_all(&kudo.status(MYSQL), &[r#"(Operator-Version: "mysql-5.7-0.4.0" Active-Plan: "deploy")"#]);
    let again = kudo.run(&["upgrade", &newer, "--instance", MYSQL]).refused();
    assert_all(&again, &["upgraded version 0.4.0 is the same or smaller as current version 0.4.0"]);
    let all = untimed(&kudo.run(&["get", "all"]).ok());
    let tree = ".\n└── mysql\n    ├── mysql-5.7-0.3.0\n    └── mysql-5.7-0.4.0\n        └── mysql-instance\n";
    assert_all(&all, &[tree]);

    let out = kudo.run(&["uninstall", "--instance", MYSQL, "--wait"]).ok();
    assert_eq!(out.trim(), "instance.kudo.dev/v1beta1/mysql-instance deleted");
    assert_eq!(kudo.user.get("instances.kudo.dev", MYSQL), None);
    await_names(&kudo.user, "deployments,services,jobs,pods,persistentvolumeclaims", &[]);
}

/// Update runs `deploy`, and until that has ended the client is told why it must wait. It does not
/// end while no pod can be made.
fn a_second_change_is_refused(kudo: &Kudo<'_>, installed: &Value) {
    let before = run_of(installed, "deploy");
    kudo.ns.forbid("pods");
    let out = kudo.run(&["update", "--instance", MYSQL, "-p", "PASSWORD=tiger"]).ok();
    assert_eq!(out.trim(), "Instance mysql-instance was updated.");
    let refusal = kudo.run(&["update", "--instance", MYSQL, "-p", "PASSWORD=lion"]).refused();
    let parts = [
        "updating instance mysql-instance admission webhook",
        "the spec is frozen while plan 'deploy' is scheduled (or running) [plan-running]",
        "spec.parameters.PASSWORD",
        "Next: wait until it has ended (`kubectl wait --for=condition=Ready instance/mysql-instance -n ",
    ];
    assert_all(&refusal, &parts);
    assert!(!refusal.contains("lion") && !refusal.contains("tiger"), "values are not shown: {refusal}");
    let refusal = kudo.run(&["plan", "trigger", "--name", "backup", "--instance", MYSQL]).refused();
    assert_all(
        &refusal,
        &["overriding currently scheduled (or running) plan 'deploy' with 'backup' is not supported"],
    );
    let tree = kudo.status(MYSQL);
    assert_all(&tree, &["Plan deploy (serial strategy) [IN_PROGRESS]", "Step deploy [IN_PROGRESS]"]);
    let history = untimed(&kudo.history(MYSQL));
    assert_all(&history, &["├── deploy (last finished run at TIME (IN_PROGRESS))"]);
    kudo.ns.allow("pods");
    let updated = await_run(&kudo.user, MYSQL, "deploy", &before);
    assert_eq!(updated["spec"]["parameters"], json!({"PASSWORD": "tiger"}));
    let deployment = kudo.user.get("deployment", MYSQL).unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "tiger");
    kudo.run(&["update", "--instance", MYSQL, "-p", "BACKUP_FILE=noon.sql", "--wait"]).ok();
    let saved = await_run(&kudo.user, MYSQL, "backup", "");
    assert_eq!(run_of(&saved, "deploy"), run_of(&updated, "deploy"), "only backup has run");
    assert_all(
        &kudo.status(MYSQL),
        &[r#"Active-Plan: "backup""#, "Plan backup (serial strategy) [COMPLETE]"],
    );
}

/// The client's patches carry `operatorVersion: {}` and `planExecution: {}`, which say nothing.
fn nothing_changes_where_nothing_is_new(kudo: &Kudo<'_>) {
    let before = instance(&kudo.user, MYSQL);
    let out = kudo.run(&["update", "--instance", MYSQL, "-p", "PASSWORD=tiger"]).ok();
    assert_eq!(out.trim(), "Instance mysql-instance was updated.");
    let after = instance(&kudo.user, MYSQL);
    assert_eq!(after["spec"]["operatorVersion"], json!({"name": "mysql-5.7-0.3.0"}));
    assert!(idle(&after), "{after:#}");
    assert_eq!(after["spec"]["parameters"], before["spec"]["parameters"]);
    assert_eq!(after["status"]["planStatus"], before["status"]["planStatus"]);
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
}

fn plans_are_triggered(kudo: &Kudo<'_>) {
    let trigger = |plan| kudo.run(&["plan", "trigger", "--name", plan, "--instance", MYSQL, "--wait"]);
    let said = format!("Triggered restore plan for {}/mysql-instance instance", kudo.ns.name());
    assert_eq!(trigger("restore").ok().trim(), said);
    let first = await_run(&kudo.user, MYSQL, "restore", "");
    assert_eq!(trigger("restore").ok().trim(), said);
    await_run(&kudo.user, MYSQL, "restore", &run_of(&first, "restore"));
    let history = "├── backup (last finished run at TIME (COMPLETE))\n├── deploy (last finished run at TIME (COMPLETE))\n└── restore (last finished run at TIME (COMPLETE))\n";
    assert_all(&untimed(&kudo.history(MYSQL)), &[history]);
    let refusal = trigger("nothing").refused();
    assert_all(&refusal, &["nothing"]);
}

#[test]
fn the_ledger_lives_with_kubectl_kudo() {
    let Some(kudo) = Kudo::new("kudo-ledger") else { return };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ledger");
    let [v1, v2] = ["v1", "v2"].map(|version| examples.join(version).display().to_string());
    let install = ["install", &v1, "-p", "ACCOUNT_BOOK=main", "--wait", "--wait-time=90"];
    kudo.run(&install).ok();
    let finalizers = &instance(&kudo.user, LEDGER)["metadata"]["finalizers"];
    assert_eq!(finalizers, &json!(["kudo.dev.instance.cleanup"]));

    let update = |parameter| kudo.run(&["update", "--instance", LEDGER, "-p", parameter, "--wait"]);
    update("WRITERS=3").ok();
    await_run(&kudo.user, LEDGER, "update", "");
    assert_eq!(kudo.user.get("deployment", "ledger-instance-writers").unwrap()["spec"]["replicas"], 3);
    let why = r#"parameter "WRITERS" has an invalid value "many""#;
    assert_all(&update("WRITERS=many").refused(), &[why]);
    assert_all(&update("ACCOUNT_BOOK=other").refused(), &["parameter 'ACCOUNT_BOOK' is immutable"]);
    assert_all(
        &update("NOBODY=1").refused(),
        &[r#"failed to find parameter "NOBODY" in the OperatorVersion"#],
    );

    kudo.run(&["upgrade", &v2, "--instance", LEDGER, "-p", "ROUNDING=half-up"]).ok();
    await_run(&kudo.user, LEDGER, "upgrade", "");
    let tree = kudo.status(LEDGER);
    let parts = [
        r#"(Operator-Version: "ledger-4.2-1.1.0" Active-Plan: "upgrade")"#,
        "Plan upgrade (serial strategy) [COMPLETE], last updated ",
        "Phase migrate (serial strategy) [COMPLETE]",
        "Phase roll-out (serial strategy) [COMPLETE]",
        "Plan cleanup (serial strategy) [NOT ACTIVE]",
    ];
    assert_all(&tree, &parts);
    let finished = "├── deploy (last finished run at TIME (COMPLETE))\n├── update (last finished run at TIME (COMPLETE))\n└── upgrade (last finished run at TIME (COMPLETE))\n";
    assert_all(&untimed(&kudo.history(LEDGER)), &[finished]);
    kudo.run(&["plan", "trigger", "--name", "backup", "--instance", LEDGER, "--wait"]).ok();

    kudo.run(&["uninstall", "--instance", LEDGER, "--wait", "--wait-time=90"]).ok();
    assert_eq!(kudo.user.get("instances.kudo.dev", LEDGER), None);
    wait_for("the cleanup is told of", Duration::from_secs(60), || {
        let events = kudo.user.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"]).ok();
        events.contains("Execution of plan cleanup finished with status COMPLETE")
    });
}

/// Package and Instance by two hands at once: the Instance waits for its OperatorVersion.
#[test]
fn an_instance_is_created_while_its_package_is_installed() {
    let Some(kudo) = Kudo::new("kudo-beside") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first/operator");
    let object = json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": {"name": "beside", "labels": {"kudo.dev/operator": "first"}},
        "spec": {"operatorVersion": {"name": version_of(&folder)}},
    });
    std::thread::scope(|scope| {
        let install =
            scope.spawn(|| kudo.run(&["install", &folder.display().to_string(), "--skip-instance"]).ok());
        wait_for("the client has begun", Duration::from_secs(60), || {
            !names(&kudo.user, "operators.kudo.dev").is_empty()
        });
        kudo.user.apply(&object.to_string());
        let out = install.join().unwrap();
        assert!(!out.contains("instance "), "{out}");
    });
    await_run(&kudo.user, "beside", "deploy", "");
    assert_all(&kudo.status("beside"), &[r#"Active-Plan: "deploy""#, "[COMPLETE], last updated"]);
    assert_all(&untimed(&kudo.run(&["get", "instances"]).ok()), &["└── beside"]);
    kudo.run(&["uninstall", "--instance", "beside", "--wait"]).ok();
}

/// Name of the OperatorVersion that a package becomes.
fn version_of(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("operator.yaml")).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let parts = [field("name"), field("appVersion"), field("operatorVersion")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}
