//! Real packages of KUDO's users, untouched: installed, updated and uninstalled.

use interlock_kudo::engine::removed_apis;
use serde_json::{Value, json};

use crate::support::instances::{
    await_event, await_names, await_run, completed_jobs, instance, names, run_of,
};
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, Output, shared};

/// Everything that these packages make.
const KINDS: &str = "deployments,statefulsets,services,jobs,pods,persistentvolumeclaims,configmaps";

fn package(user: &Client, ns: &Namespace<'_>, arguments: &[&str]) -> Output {
    interlock(user, &[&["package"], arguments, &["-n", ns.name()]].concat(), "")
}

/// A user's ordinary edit.
fn change(user: &Client, name: &str, parameters: &Value) -> Output {
    let patch = json!({ "spec": { "parameters": parameters } }).to_string();
    user.kubectl(&["patch", "instance", name, "--type=merge", "-p", &patch])
}

/// What every object of a package carries, told by one of them.
#[track_caller]
fn assert_made_by(object: &Value, instance: &Value, operator: &str, version: &str, at: [&str; 3]) {
    let meta = &object["metadata"];
    let name = instance["metadata"]["name"].as_str().unwrap();
    assert_eq!(meta["labels"]["heritage"], "kudo", "{object:#}");
    assert_eq!(meta["labels"]["kudo.dev/operator"], operator);
    assert_eq!(meta["labels"]["kudo.dev/instance"], name);
    if let Some(template) = object["spec"].get("template") {
        assert_eq!(template["metadata"]["annotations"]["kudo.dev/operator-version"], version);
        assert_eq!(template["metadata"]["labels"]["kudo.dev/instance"], name);
    }
    let [plan, phase, step] = at;
    assert_eq!(meta["annotations"]["kudo.dev/plan"], plan);
    assert_eq!(meta["annotations"]["kudo.dev/phase"], phase);
    assert_eq!(meta["annotations"]["kudo.dev/step"], step);
    assert_eq!(meta["annotations"]["kudo.dev/last-plan-execution-uid"], run_of(instance, plan));
    assert_eq!(meta["ownerReferences"][0]["uid"], instance["metadata"]["uid"]);
}

fn password(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]
}

/// What a fresh mysql consists of; gives its Instance.
fn mysql_as_installed(user: &Client, name: &str) -> Value {
    let installed = await_run(user, name, "deploy", "");
    assert_eq!(installed["metadata"]["finalizers"], Value::Null, "it has no cleanup plan");
    assert_eq!(names(user, "jobs"), [""; 0], "its init Job is deleted by its own plan");
    assert_eq!(completed_jobs(user, "deploy-job"), 1);
    let deployment = user.get("deployment", name).unwrap();
    assert_eq!(deployment["status"]["availableReplicas"], 1);
    assert_eq!(password(&deployment), "password");
    assert_made_by(&deployment, &installed, "mysql", "0.3.0", ["deploy", "deploy", "deploy"]);
    assert_eq!(user.get("service", "mysql-instance-svc").unwrap()["spec"]["clusterIP"], "None");
    let claim = user.get("persistentvolumeclaim", "mysql-instance-pv").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_made_by(&claim, &installed, "mysql", "0.3.0", ["deploy", "deploy", "deploy"]);
    assert_eq!(user.get("persistentvolumeclaim", "mysql-instance-backup-pv"), None);
    installed
}

#[test]
fn mysql_lives() {
    let Some(folder) = shared::find("packages/mysql/operator") else { return };
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let (folder, name) = (folder.display().to_string(), "mysql-instance");
    let ns = cluster.namespace("mysql");
    let user = ns.user("alice");
    let before = names(&user, KINDS);
    let out = package(&user, &ns, &["install", &folder, "--wait"]).ok();
    for line in ["deploy/deploy COMPLETE", "deploy/init COMPLETE", "ready: plan deploy is COMPLETE"] {
        assert!(out.contains(line), "{line} in {out}");
    }
    let installed = mysql_as_installed(&user, name);

    change(&user, name, &json!({"PASSWORD": "tiger"})).ok();
    let updated = await_run(&user, name, "deploy", &run_of(&installed, "deploy"));
    assert_eq!(run_of(&updated, "backup"), "");
    let deployment = user.get("deployment", name).unwrap();
    assert_eq!(password(&deployment), "tiger");
    assert_eq!(deployment["status"]["availableReplicas"], 1);
    assert_made_by(&deployment, &updated, "mysql", "0.3.0", ["deploy", "deploy", "deploy"]);
    assert_eq!(completed_jobs(&user, "deploy-job"), 2);

    let both = json!({"BACKUP_FILE": "noon.sql", "RESTORE_FILE": "noon.sql"});
    let refusal = change(&user, name, &both).refused();
    assert!(refusal.contains("triggering multiple plans: [[backup restore]] at once"), "{refusal}");
    change(&user, name, &json!({"BACKUP_FILE": "evening.sql"})).ok();
    let saved = await_run(&user, name, "backup", "");
    assert_eq!(run_of(&saved, "deploy"), run_of(&updated, "deploy"), "deploy has not run again");
    assert_eq!(completed_jobs(&user, "backup-job"), 1);
    let claim = user.get("persistentvolumeclaim", "mysql-instance-backup-pv").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_made_by(&claim, &saved, "mysql", "0.3.0", ["backup", "backup", "pv"]);

    let kept = ["operator.kudo.dev/mysql", "operatorversion.kudo.dev/mysql-5.7-0.3.0"];
    let refusal = user.kubectl(&["delete", kept[1]]).refused();
    assert!(refusal.contains("is used by 1 Instance and cannot be deleted"), "{refusal}");
    let out = package(&user, &ns, &["uninstall", "--instance", name, "--wait"]).ok();
    assert!(out.contains(&format!("instance {}/{name} deleted", ns.name())), "{out}");
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    await_names(&user, KINDS, &before);
    await_names(&user, "instances.kudo.dev,operatorversions.kudo.dev,operators.kudo.dev", &kept);
    user.kubectl(&["delete", kept[1]]).ok();
}

/// Names of claims that a StatefulSet's pods got.
fn claims(set: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("persistentvolumeclaim/data-elastic-instance-{set}-{i}")).collect()
}

#[test]
fn elastic_lives() {
    let Some(folder) = shared::find("packages/elastic/operator") else { return };
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let (folder, name) = (folder.display().to_string(), "elastic-instance");
    let ns = cluster.namespace("elastic");
    let user = ns.user("alice");
    let before = names(&user, KINDS);
    let out = package(&user, &ns, &["install", &folder, "--wait"]).ok();
    let phases = ["master", "data", "coordinator", "ingest"];
    let ended: Vec<usize> = phases
        .iter()
        .map(|set| out.find(&format!("plan deploy deploy-{set}/deploy-{set} COMPLETE")).expect(set))
        .collect();
    assert!(ended.is_sorted(), "a serial plan: {out}");
    let installed = await_run(&user, name, "deploy", "");
    for (set, replicas) in [("master", 3), ("data", 2), ("coordinator", 1), ("ingest", 0)] {
        let object = user.get("statefulset", &format!("{name}-{set}")).expect(set);
        assert_eq!(object["spec"]["replicas"], replicas, "{set}");
        assert_eq!(object["status"]["readyReplicas"].as_i64().unwrap_or(0), replicas, "{set}");
        let phase = format!("deploy-{set}");
        assert_made_by(&object, &installed, "elastic", "0.2.2", ["deploy", &phase, &phase]);
        let service = user.get("service", &format!("{name}-{set}-hs")).expect(set);
        assert_eq!(service["spec"]["clusterIP"], "None");
    }
    let master = user.get("statefulset", "elastic-instance-master").unwrap();

    change(&user, name, &json!({"DATA_NODE_COUNT": "3", "COORDINATOR_MEM": "1536Mi"})).ok();
    let updated = await_run(&user, name, "deploy", &run_of(&installed, "deploy"));
    assert_eq!(updated["spec"]["parameters"]["DATA_NODE_COUNT"], "3");
    let data = user.get("statefulset", "elastic-instance-data").unwrap();
    assert_eq!(data["status"]["readyReplicas"], 3, "the plan ended when the new pod was ready");
    let coordinator = user.get("pod", "elastic-instance-coordinator-0").unwrap();
    assert_eq!(
        coordinator["spec"]["containers"][0]["resources"]["requests"]["memory"], "1536Mi",
        "the plan ended when the pod was replaced"
    );
    let untouched = user.get("statefulset", "elastic-instance-master").unwrap();
    assert_eq!(untouched["metadata"]["generation"], master["metadata"]["generation"]);
    assert_eq!(instance(&user, name)["status"]["planStatus"].as_object().unwrap().len(), 1);

    package(&user, &ns, &["uninstall", "--instance", name, "--wait"]).ok();
    // Claims that a StatefulSet makes for its pods are kept by Kubernetes.
    let mut left = before.clone();
    left.extend([claims("master", 3), claims("data", 3), claims("coordinator", 1)].concat());
    left.sort();
    let left: Vec<&str> = left.iter().map(String::as_str).collect();
    await_names(&user, KINDS, &left);
    let kept = ["operator.kudo.dev/elastic", "operatorversion.kudo.dev/elastic-7.0.0-0.2.2"];
    await_names(&user, "instances.kudo.dev,operatorversions.kudo.dev,operators.kudo.dev", &kept);
}

/// Packages whose only fault is their age: each has a PodDisruptionBudget of policy/v1beta1.
#[test]
fn packages_of_removed_apis_are_installed() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    for operator in ["zookeeper", "redis"] {
        let Some(folder) = shared::find(&format!("packages/{operator}/operator")) else { return };
        let ns = cluster.namespace(operator);
        let user = ns.user("alice");
        let folder = folder.display().to_string();
        let out = package(&user, &ns, &["install", &folder, "--instance", "demo", "--wait"]).ok();
        assert!(out.contains("ready: plan deploy is COMPLETE"), "{out}");
        let budgets = names(&user, "poddisruptionbudgets");
        assert_eq!(budgets.len(), 1, "{budgets:?}");
        let converted = await_event(&ns, removed_apis::CONVERTED);
        assert!(converted.contains("policy/v1beta1"), "{converted}");
    }
}

/// A package that installs zookeeper as it is, and waits for it, as the demo of flink in KUDO's repository does.
#[test]
fn a_package_that_installs_zookeeper_is_installed() {
    let Some(folder) = shared::find("packages/zookeeper/operator") else { return };
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("templates")).unwrap();
    let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
    write(
        "operator.yaml",
        &format!(
            "name: demo\noperatorVersion: 0.1.0\nkubernetesVersion: 1.15.0\n\
             tasks:\n- name: zookeeper\n  kind: KudoOperator\n  \
             spec: {{package: {}, parameterFile: zk.yaml, instanceName: zk}}\n\
             plans: {{deploy: {{strategy: serial, phases: [{{name: dependencies, strategy: serial, steps: \
             [{{name: zookeeper, tasks: [zookeeper]}}]}}]}}}}\n",
            folder.display()
        ),
    );
    write("params.yaml", "parameters: [{name: NODES, default: '1'}]\n");
    write("templates/zk.yaml", "NODE_COUNT: {{ .Params.NODES }}\nMEMORY: 512Mi\n");
    let ns = cluster.namespace("demo");
    let user = ns.user("alice");
    let demo = dir.path().display().to_string();
    let out = package(&user, &ns, &["install", &demo, "--instance", "demo", "--wait"]).ok();
    assert!(out.contains("ready: plan deploy is COMPLETE"), "{out}");
    let zookeeper = instance(&user, "zk");
    assert_eq!(zookeeper["status"]["planStatus"]["deploy"]["status"], "COMPLETE");
    assert_eq!(zookeeper["spec"]["parameters"], json!({"NODE_COUNT": "1", "MEMORY": "512Mi"}));
    assert_eq!(user.get("statefulset", "zk-zookeeper").unwrap()["status"]["readyReplicas"], 1);

    change(&user, "demo", &json!({"NODES": "3"})).ok();
    let before = run_of(&instance(&user, "demo"), "deploy");
    await_run(&user, "demo", "deploy", &before);
    assert_eq!(user.get("statefulset", "zk-zookeeper").unwrap()["spec"]["replicas"], 3);
    package(&user, &ns, &["uninstall", "--instance", "demo", "--wait"]).ok();
    await_names(&user, "instances.kudo.dev,statefulsets", &[]);
}

/// Installs a package with a Pipe task. A Pod on a fake node runs what is executed in it on this machine, so the files
/// that its init container would make are made here.
fn install_with_files(operator: &str, files: &[&str], assert: impl FnOnce(&Client)) {
    let Some(folder) = shared::find(&format!("packages/{operator}/operator")) else { return };
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace(operator);
    let user = ns.user("alice");
    files.iter().for_each(|file| std::fs::write(file, "moo").unwrap());
    let out =
        package(&user, &ns, &["install", &folder.display().to_string(), "--instance", "demo", "--wait"]);
    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let out = out.ok();
    assert!(out.contains("ready: plan deploy is COMPLETE"), "{out}");
    assert(&user);
}

#[test]
fn cowsay_is_installed() {
    install_with_files("cowsay", &["/tmp/index.html"], |user| {
        let deployment = user.get("deployment", "demo-deployment").unwrap();
        let page = "demo.deploy.main.genfiles.genwww.indexhtml";
        assert_eq!(deployment["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"], page);
        assert_eq!(user.get("configmap", page).unwrap()["binaryData"]["index.html"], "bW9v");
    });
}

#[test]
fn kafka_is_installed() {
    install_with_files("kafka", &["/tmp/tls.key", "/tmp/tls.crt"], |user| {
        let kafka = user.get("statefulset", "demo-kafka").unwrap();
        assert_eq!(kafka["status"]["readyReplicas"], kafka["spec"]["replicas"]);
        let step = "demo.deploy.deploykafka.generatetlscertificates.generatetlscertificates";
        for (key, file) in [("privatekey", "tls.key"), ("certificate", "tls.crt")] {
            let secret = user.get("secret", &format!("{step}.{key}")).unwrap();
            assert_eq!(secret["data"][file], "bW9v");
        }
    });
}
