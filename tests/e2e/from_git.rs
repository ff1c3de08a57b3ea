//! What is committed to a repository is applied from there by Helm, Flux and Argo CD, in their orders, and comes to the
//! same.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use go_template::yaml;
use serde_json::{Value, json};

use crate::support::instances::{await_run, condition, idle, run_of};
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, Output, peers, wait_until};

/// A package whose plans make a ConfigMap.
fn package(at: &Path, version: &str) -> PathBuf {
    let folder = at.join(version);
    fs::create_dir_all(folder.join("templates")).unwrap();
    let steps = "[{name: p, strategy: serial, steps: [{name: s, tasks: [t]}]}]";
    let plan = format!("{{strategy: serial, phases: {steps}}}");
    let operator = format!(
        "name: web\noperatorVersion: {version}\nkubernetesVersion: 1.20.0\n\
         tasks: [{{name: t, kind: Apply, spec: {{resources: [web.yaml, gate.yaml]}}}}]\n\
         plans: {{deploy: {plan}, update: {plan}, upgrade: {plan}}}\n"
    );
    fs::write(folder.join("operator.yaml"), operator).unwrap();
    let params = "parameters:\n- {name: SIZE, type: integer, default: 1}\n- {name: ZONE, immutable: true, default: a}\n\
                  - {name: GATED, type: boolean, default: false}\n";
    fs::write(folder.join("params.yaml"), params).unwrap();
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Name }}}}\ndata:\n  version: {version}\n  size: \"{{{{ .Params.SIZE }}}}\"\n"
    );
    fs::write(folder.join("templates/web.yaml"), template).unwrap();
    // A Service that nobody gives an address.
    let gate = "{{ if eq .Params.GATED \"true\" }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Name }}-gate\n\
                spec:\n  type: LoadBalancer\n  ports: [{port: 80}]\n{{ end }}\n";
    fs::write(folder.join("templates/gate.yaml"), gate).unwrap();
    folder
}

struct Repository<'a> {
    ns: Namespace<'a>,
    user: Client,
    folder: tempfile::TempDir,
}

impl Repository<'_> {
    fn new(base: &str) -> Self {
        let ns = Interlock::shared().0.namespace(base);
        let user = ns.user("alice");
        Self { ns, user, folder: tempfile::tempdir().unwrap() }
    }

    /// The manifests of a version of the package.
    #[track_caller]
    fn manifests(&self, version: &str, size: &str, flags: &[&str]) -> String {
        let package = package(self.folder.path(), version);
        let size = format!("SIZE={size}");
        let install = ["package", "install", package.to_str().unwrap(), "--instance=web", "-p", &size];
        interlock(&self.user, &[&install[..], &["--dry-run=client", "-o", "yaml"], flags].concat(), "").ok()
    }

    /// Gives the Service of a gated plan its address.
    fn open(&self) {
        let path = format!("{}/status", self.ns.path("v1", "services", "web-gate"));
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        wait_until("the gate is made", Duration::from_secs(60), || {
            let answer = self.ns.admin().merge_patch(&path, &status);
            if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    fn instance(&self) -> Value {
        self.user.get("instances.kudo.dev", "web").expect("the Instance")
    }

    fn data(&self, name: &str) -> Value {
        self.user.read(&self.ns.path("v1", "configmaps", "web")).ok()["data"][name].clone()
    }

    /// Specs of the Operators, OperatorVersions and Instances, without what Interlock writes.
    fn specs(&self) -> Vec<Value> {
        let kinds = "operators.kudo.dev,operatorversions.kudo.dev,instances.kudo.dev";
        let list = self.user.kubectl(&["get", kinds, "-o", "json"]).ok();
        let list: Value = serde_json::from_str(&list).unwrap();
        let spec = |object: &Value| {
            let mut spec = object["spec"].clone();
            spec.as_object_mut().unwrap().remove("planExecution");
            json!({"kind": object["kind"], "name": object["metadata"]["name"], "labels": object["metadata"]["labels"], "spec": spec})
        };
        list["items"].as_array().unwrap().iter().map(spec).collect()
    }
}

/// What is printed is what an installation makes.
#[test]
fn a_dry_run_prints_what_an_installation_makes() {
    let (applied, installed) = (Repository::new("printed"), Repository::new("installed"));
    let text = applied.manifests("1.0.0", "2", &[]);
    assert_eq!(text, applied.manifests("1.0.0", "2", &[]), "in a stable order and form");
    applied.user.kubectl_in(&["apply", "-f", "-"], &text).ok();
    await_run(&applied.user, "web", "deploy", "");
    let folder = package(installed.folder.path(), "1.0.0");
    let ns = installed.ns.name();
    let install =
        ["package", "install", folder.to_str().unwrap(), "--instance=web", "-p", "SIZE=2", "-n", ns];
    let asked =
        interlock(&installed.user, &[&install[..], &["--dry-run=server", "-o", "json"]].concat(), "").ok();
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["items"][2]["metadata"]["namespace"], installed.ns.name());
    assert!(installed.user.get("operators.kudo.dev", "web").is_none(), "nothing was written");
    interlock(&installed.user, &[&install[..], &["--wait"]].concat(), "").ok();
    // Parameters that KUDO's client writes as empty are left out of what is printed.
    let without_empty = |mut specs: Vec<Value>| {
        specs.iter_mut().for_each(without_nulls);
        specs
    };
    similar_asserts::assert_eq!(without_empty(applied.specs()), without_empty(installed.specs()));
    let refused =
        interlock(&installed.user, &[&install[..2], &["/nowhere", "--dry-run=server"]].concat(), "");
    assert_eq!(refused.code, 2, "{refused}");
}

fn without_nulls(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(without_nulls);
        members.retain(|_, member| !member.is_null());
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(without_nulls);
    }
}

/// Helm knows none of the kinds, and takes them in the order of their names: the Instance first.
#[test]
fn helm_installs_upgrades_and_is_told_what_is_refused() {
    let repository = Repository::new("helm-git");
    let chart = repository.folder.path().join("chart");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 0.1.0\n").unwrap();
    let helm = |verb: &[&str], manifests: &str| -> Output {
        fs::write(chart.join("templates/all.yaml"), manifests).unwrap();
        let arguments = [verb, &["web", chart.to_str().unwrap(), "-n", repository.ns.name()]].concat();
        repository.user.command(&peers::helm(), &arguments, "")
    };
    helm(&["install"], &repository.manifests("1.0.0", "2", &["--helm"])).ok();
    let found = await_run(&repository.user, "web", "deploy", "");
    assert_eq!((repository.data("version"), repository.data("size")), (json!("1.0.0"), json!("2")));
    assert_eq!(found["spec"]["parameters"]["ZONE"], "a");

    let next = versions_of(&repository.manifests("2.0.0", "2", &["--helm"]));
    let first = versions_of(&repository.manifests("1.0.0", "2", &["--helm"]));
    let all = [
        first["OperatorVersion"].clone(),
        next["Operator"].clone(),
        next["OperatorVersion"].clone(),
        next["Instance"].clone(),
    ];
    helm(&["upgrade"], &all.concat()).ok();
    await_run(&repository.user, "web", "upgrade", "");
    assert_eq!(repository.data("version"), json!("2.0.0"));
    let back =
        repository.user.command(&peers::helm(), &["rollback", "web", "1", "-n", repository.ns.name()], "");
    let said = back.refused();
    assert!(said.contains("[upgrade-path]"), "{said}");
    assert_eq!(condition(&repository.instance(), "Ready")["status"], "True");
}

#[track_caller]
fn await_idle(user: &Client) {
    wait_until("no plan runs", Duration::from_secs(60), || {
        let found = user.get("instances.kudo.dev", "web").ok_or("no Instance")?;
        // The status that observes the clear of planExecution is the last write.
        let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        if idle(&found) && observed { Ok(()) } else { Err(found.to_string()) }
    });
}

/// The documents of a text, by kind.
fn versions_of(text: &str) -> std::collections::BTreeMap<String, String> {
    let documents = text.split("---\n").filter(|document| !document.is_empty());
    let kind = |document: &str| {
        let line = document.lines().find_map(|line| line.strip_prefix("kind: "));
        line.unwrap_or_default().to_owned()
    };
    documents.map(|document| (kind(document), format!("---\n{document}"))).collect()
}

/// The Kustomization that the documentation shows.
fn kustomization() -> Value {
    let page = include_str!("../../docs/gitops.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut found = blocks.filter(|block| block.contains("\nkind: Kustomization\n"));
    yaml::documents(found.next().expect("a Kustomization")).expect("YAML").remove(0)
}

/// Flux asks for a dry-run of everything before it applies anything.
#[test]
#[ignore = "its library takes minutes to build; run by make soak"]
fn flux_installs_edits_upgrades_and_prunes() {
    let repository = Repository::new("flux-git");
    let ns = repository.ns.name();
    let health = format!("--health={}", kustomization()["spec"]["healthCheckExprs"]);
    let flux = |flags: &[&str], manifests: &str| {
        let kubeconfig = format!("--kubeconfig={}", repository.user.kubeconfig().display());
        let arguments = [&[kubeconfig.as_str(), &health, "--wait=60s"], flags].concat();
        repository.user.command(&peers::flux(), &arguments, manifests)
    };
    let in_namespace = ["-n", ns];
    let first = repository.manifests("1.0.0", "2", &in_namespace);
    let said = flux(&[], &first).ok();
    assert_eq!(said.matches(" created").count(), 3, "{said}");
    assert_eq!((repository.data("version"), repository.data("size")), (json!("1.0.0"), json!("2")));

    // At rest nothing is written.
    await_idle(&repository.user);
    let before = repository.instance()["metadata"]["resourceVersion"].clone();
    let said = flux(&["--rounds=10"], &first).ok();
    assert_eq!(said.matches(" unchanged").count(), 30, "{said}");
    assert_eq!(repository.instance()["metadata"]["resourceVersion"], before);

    flux(&[], &repository.manifests("1.0.0", "3", &in_namespace)).ok();
    assert_eq!(repository.data("size"), json!("3"));

    // While a plan runs nothing else is carried out; the next round does it.
    flux(
        &["--wait=0s"],
        &repository.manifests("1.0.0", "3", &[&in_namespace[..], &["-p", "GATED=true"]].concat()),
    )
    .ok();
    let edited = repository.manifests("1.0.0", "4", &[&in_namespace[..], &["-p", "GATED=true"]].concat());
    let refused = flux(&["--wait=0s"], &edited).refused();
    assert!(refused.contains("[plan-running]"), "{refused}");
    let before = run_of(&repository.instance(), "update");
    repository.open();
    await_idle(&repository.user);
    flux(&[], &edited).ok();
    assert_ne!(run_of(&repository.instance(), "update"), before);
    assert_eq!(repository.data("size"), json!("4"));

    // The new OperatorVersion comes in the same commit as the Instance that refers to it.
    let next = repository.manifests("2.0.0", "4", &in_namespace);
    flux(&[], &next).ok();
    assert_eq!(repository.data("version"), json!("2.0.0"));
    let refused = flux(&[], &first).refused();
    assert!(refused.contains("[upgrade-path]"), "{refused}");

    // Its cleanup is over a moment later, until which the OperatorVersion is needed: Flux tries again by itself.
    wait_until("all is pruned", Duration::from_secs(60), || {
        let said = flux(&["--delete"], &next);
        if said.code == 0 { Ok(()) } else { Err(said.to_string()) }
    });
    assert!(repository.user.get("instances.kudo.dev", "web").is_none());
}

/// Argo CD knows none of the kinds, takes them in the order of their names, and does not try a failed sync again by itself.
#[test]
#[ignore = "its engine takes minutes to build; run by make soak"]
fn argo_cd_syncs_edits_upgrades_and_prunes() {
    let repository = Repository::new("argo-git");
    let ns = repository.ns.name();
    let sync = |flags: &[&str], manifests: &str| {
        let kubeconfig = format!("--kubeconfig={}", repository.user.kubeconfig().display());
        let namespace = format!("--namespace={ns}");
        let arguments = [&[kubeconfig.as_str(), &namespace], flags].concat();
        repository.user.command(&peers::argo(), &arguments, manifests)
    };
    let in_namespace = ["-n", ns];
    let first = repository.manifests("1.0.0", "2", &in_namespace);
    let said = sync(&[], &first).ok();
    assert_eq!(said.matches(" Synced: ").count(), 3, "{said}");
    await_run(&repository.user, "web", "deploy", "");
    assert_eq!((repository.data("version"), repository.data("size")), (json!("1.0.0"), json!("2")));

    await_idle(&repository.user);

    // At rest nothing is written.
    let before = repository.instance()["metadata"]["resourceVersion"].clone();
    let said = sync(&["--rounds=10"], &first).ok();
    assert_eq!(said.matches(" unchanged").count(), 30, "{said}");
    assert_eq!(repository.instance()["metadata"]["resourceVersion"], before);

    sync(&[], &repository.manifests("1.0.0", "3", &in_namespace)).ok();
    await_run(&repository.user, "web", "update", "");
    assert_eq!(repository.data("size"), json!("3"));

    // While a plan runs nothing else is carried out; a later sync does it.
    let gated = |size: &str| {
        repository.manifests("1.0.0", size, &[&in_namespace[..], &["-p", "GATED=true"]].concat())
    };
    let before = run_of(&repository.instance(), "update");
    sync(&[], &gated("3")).ok();
    let refused = sync(&[], &gated("4")).refused();
    assert!(refused.contains("1 of 3 objects failed"), "{refused}");
    repository.open();
    await_run(&repository.user, "web", "update", &before);
    let before = run_of(&repository.instance(), "update");
    sync(&[], &gated("4")).ok();
    await_run(&repository.user, "web", "update", &before);
    assert_eq!(repository.data("size"), json!("4"));

    // The new OperatorVersion comes in the same commit as the Instance that refers to it; the old one is pruned last, as
    // docs/gitops.md says, since the upgrade from it needs it.
    let next = repository.manifests("2.0.0", "4", &in_namespace);
    sync(&[], &next).ok();
    await_run(&repository.user, "web", "upgrade", "");
    assert_eq!(repository.data("version"), json!("2.0.0"));
    sync(&["--prune"], &next).ok();
    assert!(repository.user.get("operatorversions.kudo.dev", "web-1.0.0").is_none());
    // The Instance comes before the OperatorVersion that it goes back to, so that the way back is refused on the object.
    sync(&[], &first);
    wait_until("the way back is refused", Duration::from_secs(60), || {
        let found = repository.instance();
        let drift = condition(&found, "SpecDrift");
        if drift.to_string().contains("UpgradePath") { Ok(()) } else { Err(drift.to_string()) }
    });
    assert_eq!(repository.data("version"), json!("2.0.0"));

    wait_until("all is pruned", Duration::from_secs(60), || {
        let said = sync(&["--prune"], "");
        if said.code == 0 { Ok(()) } else { Err(said.to_string()) }
    });
    wait_until("the Instance is gone", Duration::from_secs(60), || {
        repository
            .user
            .get("instances.kudo.dev", "web")
            .map_or(Ok(()), |found| Err(found["status"].to_string()))
    });
}
