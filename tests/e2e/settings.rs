//! The Interlock object: rules that change while the process runs, what is told of it, and life
//! without it. It is cluster-wide, so each test has a control plane of its own.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::existing;
use crate::support::client::Answer;
use crate::support::peers::kstatus;
use crate::support::{Client, Cluster, Interlock, Namespace, ground, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// `gated-0.1.0`, whose plan deploy waits at a Service without an address where GATED is true.
const PACKAGE: &str = include_str!("bypass/operatorversion.yaml");

const INTERLOCKS: &str = "/apis/interlock.dev/v1alpha1/interlocks";

/// As a user writes it.
fn manifest(name: &str, spec: &str) -> String {
    format!("apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

/// A namespace whose Instance `demo` runs plan deploy, and waits at its gate.
struct Ground<'a> {
    ns: Namespace<'a>,
    user: Client,
}

impl<'a> Ground<'a> {
    fn new(cluster: &'a Cluster, tier: &str) -> Self {
        let ground = Self::prepare(cluster, tier);
        ground.create();
        ground.await_that("plan deploy waits at its gate", |found| {
            found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][1]["status"] == "IN_PROGRESS"
        });
        ground
    }

    /// Without the Instance.
    fn prepare(cluster: &'a Cluster, tier: &str) -> Self {
        let ns = cluster.namespace(tier);
        let labels = json!({"metadata": {"labels": {"tier": tier}}});
        cluster.admin().merge_patch(&format!("/api/v1/namespaces/{}", ns.name()), &labels).ok();
        let user = ns.user("alice");
        user.create_package(ns.name(), PACKAGE);
        Self { ns, user }
    }

    fn create(&self) {
        let instance = json!({
            "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": {"name": "demo"},
            "spec": {"operatorVersion": {"name": "gated-0.1.0"}, "parameters": {"GATED": "true"}},
        });
        self.user.post(&self.ns.path(meta::KUDO_API_VERSION, "instances", ""), &instance).ok();
    }

    /// Waits until `Stalled` says this; all that it says.
    #[track_caller]
    fn await_stalled(&self, text: &str) -> String {
        let found = self.await_that(&format!("Stalled says {text:?}"), |found| {
            condition(found, "Stalled")
                .is_some_and(|(status, _, said)| status == "True" && said.contains(text))
        });
        condition(&found, "Stalled").map(|(.., said)| said).unwrap_or_default()
    }

    /// A Role with one rule, in this namespace, bound to a service account.
    fn grant(&self, name: &str, rule: &str, (namespace, account): (&str, &str)) {
        let group = "rbac.authorization.k8s.io";
        let rule: Value = serde_json::from_str(rule).expect("JSON");
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": name}, "rules": [rule],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
        });
        for (plural, object) in [("roles", role), ("rolebindings", binding)] {
            self.ns.admin().post(&self.ns.path(&format!("{group}/v1"), plural, ""), &object).ok();
        }
    }

    fn path(&self) -> String {
        self.ns.path(meta::KUDO_API_VERSION, "instances", "demo")
    }

    #[track_caller]
    fn await_that(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, CAP, || {
            let found = self.user.read(&self.path());
            if found.code == 200 && holds(&found.body) { Ok(found.body) } else { Err(found.to_string()) }
        })
    }

    /// What becomes of an edit of the frozen Instance; nothing is stored.
    fn try_edit(&self) -> Answer {
        let edit = json!({"spec": {"parameters": {"SIZE": "tried"}}});
        self.user.merge_patch(&format!("{}?dryRun=All", self.path()), &edit)
    }

    #[track_caller]
    fn await_code(&self, what: &str, code: u16) {
        wait_until(what, CAP, || match self.try_edit() {
            answer if answer.code == code => Ok(()),
            answer => Err(answer.to_string()),
        });
    }

    fn open(&self) {
        let path = format!("{}/status", self.ns.path("v1", "services", "demo-gate"));
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        self.ns.admin().merge_patch(&path, &status).ok();
    }
}

/// Reason and message of a condition.
fn condition(object: &Value, type_: &str) -> Option<(String, String, String)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|c| c["type"] == type_)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

#[track_caller]
fn await_condition(admin: &Client, name: &str, type_: &str, want: (&str, &str)) -> String {
    wait_until(&format!("{name}: {type_} is {want:?}"), CAP, || {
        let found = admin.read(&format!("{INTERLOCKS}/{name}"));
        match condition(&found.body, type_) {
            Some((status, reason, message)) if (status.as_str(), reason.as_str()) == want => Ok(message),
            _ => Err(found.to_string()),
        }
    })
}

/// Waits until kstatus, which Flux, Argo CD and `helm --wait` ask, reads this of an Interlock.
#[track_caller]
fn await_kstatus(admin: &Client, name: &str, want: &str) {
    wait_until(&format!("kstatus reads {want} of {name}"), CAP, || {
        let found = admin.read(&format!("{INTERLOCKS}/{name}")).ok();
        if kstatus(&found) == want { Ok(()) } else { Err(format!("{found:#}")) }
    });
}

/// From Deny to Warn to Deny, in one namespace of two, without a restart and in both layers; what
/// was let through is carried out when the plan has ended.
#[test]
fn rules_change_while_the_process_runs() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let (admin, pid) = (cluster.admin(), process.pid());
    let (dev, prod) = (Ground::new(&cluster, "dev"), Ground::new(&cluster, "prod"));
    dev.try_edit().refused(422);

    let warn = "{rules: [{group: freeze, action: Warn, namespaceSelector: {matchLabels: {tier: dev}}}]}";
    admin.apply(&manifest("default", warn));
    dev.await_code("a frozen edit is let through by both layers", 200);
    prod.try_edit().refused(422);
    await_condition(&admin, "default", "RulesApplied", ("True", "Applied"));

    let before = dev.await_that("it still runs", |_| true);
    let edit = r#"{"spec": {"parameters": {"SIZE": "large"}}}"#;
    let out = dev.user.kubectl(&["patch", "instance", "demo", "--type=merge", "-p", edit]);
    assert!(out.stderr.contains("Warning: failed to update Instance"), "{out}");
    assert!(out.stderr.contains("[plan-running] (admitted: group freeze warns here)"), "{out}");
    out.ok();
    let after = dev.await_that("the edit is stored", |found| found["spec"]["parameters"]["SIZE"] == "large");
    assert_eq!(after["spec"]["planExecution"], before["spec"]["planExecution"], "the run goes on");
    let metrics = process.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
    let counted = r#"interlock_admission_admitted_total{door="validate",rule="plan-running"} "#;
    assert!(metrics.contains(counted), "{metrics}");
    dev.open();
    let done = dev.await_that("the edit is carried out after the plan", |found| {
        found["status"]["planStatus"]["update"]["status"] == "COMPLETE"
    });
    assert_eq!(done["status"]["planStatus"]["deploy"]["status"], "COMPLETE");

    let all = r#"{rules: [{group: freeze, action: "Off"}]}"#;
    admin.apply(&manifest("default", all));
    prod.await_code("a frozen edit is let through everywhere", 200);
    admin.kubectl(&["delete", "interlock", "default"]).ok();
    prod.await_code("without the object everything denies", 422);
    wait_until("an Event tells what goes on without the object", CAP, || {
        let found = admin.read("/apis/events.k8s.io/v1/namespaces/default/events").ok();
        let events = found["items"].as_array().cloned().unwrap_or_default();
        let of_it =
            events.iter().find(|e| e["reason"] == "SettingsDeleted" && e["regarding"]["name"] == "default");
        let note = of_it.and_then(|e| e["note"].as_str()).unwrap_or_default();
        if note.contains("2 Instances are still managed") { Ok(()) } else { Err(format!("{events:#?}")) }
    });
    wait_until("the policy guards every namespace again", CAP, || {
        let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/interlock-freeze";
        let found = admin.read(path).ok();
        let left_out = found.pointer("/spec/matchResources/namespaceSelector/matchExpressions");
        if left_out.is_none_or(|l| l == &json!([])) { Ok(()) } else { Err(found.to_string()) }
    });
    assert_eq!(process.pid(), pid, "nothing was started again");
}

/// What the schema cannot refuse is told in conditions; the rest is honoured.
#[test]
fn what_is_not_honoured_is_told() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    let refused = |spec: &str| admin.kubectl_in(&["apply", "-f", "-"], &manifest("default", spec)).refused();
    let said = refused("{rules: [{group: lock, action: Warn}]}");
    assert!(said.contains("always denies; the groups that can be set are freeze"), "{said}");
    assert!(refused("{rules: [{group: frost, action: Warn}]}").contains("is no group of rules"));
    assert!(refused("{rules: [{group: freeze, action: Allow}]}").contains("\"Deny\", \"Warn\", \"Off\""));
    let selector = "{matchExpressions: [{key: a, operator: In}]}";
    let said =
        refused(&format!("{{rules: [{{group: freeze, action: Warn, namespaceSelector: {selector}}}]}}"));
    assert!(said.contains("In and NotIn need values"), "{said}");
    // YAML 1.1, which kubectl reads, takes a bare Off for false.
    assert!(refused("{rules: [{group: freeze, action: Off}]}").contains("must be of type string"));

    admin.apply(&manifest("default", "{capabilities: {roots: {mode: auto}}}"));
    let told = await_condition(&admin, "default", "Accepted", ("False", "Invalid"));
    assert!(told.contains("spec.capabilities.roots: there is no such capability"), "{told}");
    await_kstatus(&admin, "default", "Failed");
    process.kill();
    admin.apply(&manifest("default", "{}"));
    await_kstatus(&admin, "default", "InProgress");
    process.start();
    await_condition(&admin, "default", "Accepted", ("True", "Accepted"));
    await_kstatus(&admin, "default", "Current");
    admin.apply(&manifest("mine", r#"{rules: [{group: freeze, action: "Off"}]}"#));
    let told = await_condition(&admin, "mine", "Ready", ("False", "NotHonoured"));
    await_kstatus(&admin, "mine", "Failed");
    assert!(told.contains("only the Interlock named default is honoured"), "{told}");
    let shown = admin.kubectl(&["get", "ilk"]).ok();
    assert!(shown.contains("NAME") && shown.contains("READY") && shown.contains("NotHonoured"), "{shown}");
}

/// A deletion is never refused. While the finalizer of another keeps the object, it says what goes on
/// with the defaults, which count already.
#[test]
fn an_object_that_is_being_deleted_tells_what_is_still_managed() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    admin.apply(&manifest("default", r#"{rules: [{group: freeze, action: "Off"}]}"#));
    let ground = Ground::new(&cluster, "dev");
    ground.await_code("a frozen edit is let through", 200);
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    let path = format!("{INTERLOCKS}/default");
    admin.merge_patch(&path, &held).ok();
    admin.delete(&path).ok();

    let told = await_condition(&admin, "default", "Deleting", ("True", "StillManaged"));
    assert!(told.starts_with("1 Instances are still managed"), "{told}");
    assert!(told.contains("go on with the defaults: every rule denies again"), "{told}");
    await_condition(&admin, "default", "Accepted", ("False", "Deleting"));
    ground.await_code("what is being deleted lets nothing through", 422);
    ground.open();
    ground
        .await_that("the plan ends", |found| found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE");
    ground.user.delete(&ground.path()).ok();
    await_condition(&admin, "default", "Deleting", ("True", "NothingManaged"));

    let told_uid = admin.read(&path).ok()["metadata"].get("uid").cloned();
    admin.merge_patch(&path, &json!({"metadata": {"finalizers": null}})).ok();
    await_another(&admin, told_uid.as_ref());
}

/// Waits until the leader has made the honoured object anew.
#[track_caller]
fn await_another(admin: &Client, deleted: Option<&Value>) {
    wait_until("the object is made anew, with nothing set", CAP, || {
        let found = admin.read(&format!("{INTERLOCKS}/default"));
        let metadata = &found.body["metadata"];
        let new = found.code == 200 && Some(&metadata["uid"]) != deleted && found.body["spec"] == json!({});
        if new { Ok(()) } else { Err(found.to_string()) }
    });
}

/// What the installation page says works after an installation, and after somebody deletes the object. A
/// start of the process makes nothing anew.
#[test]
fn the_object_is_there_after_an_installation() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    // kubectl knows `--for=create` from 1.31 on, as the page says.
    match admin.kubectl(&["wait", "--help"]).ok().contains("[create|") {
        true => drop(admin.kubectl(&["wait", "--for=create", "interlock/default", "--timeout=60s"]).ok()),
        false => wait_until("the object is made", CAP, || {
            admin.get("interlock", "default").map(drop).ok_or_else(|| "it is missing".to_owned())
        }),
    }
    admin.kubectl(&["wait", "--for=condition=Ready", "interlock/default", "--timeout=60s"]).ok();
    let uid = |admin: &Client| admin.read(&format!("{INTERLOCKS}/default")).ok()["metadata"]["uid"].clone();
    let first = uid(&admin);
    admin.apply(&manifest("default", r#"{rules: [{group: freeze, action: "Off"}]}"#));
    await_condition(&admin, "default", "RulesApplied", ("True", "Applied"));
    admin.kubectl(&["delete", "interlock", "default"]).ok();
    await_another(&admin, Some(&first));
    let second = uid(&admin);
    process.kill();
    process.start();
    process.await_ready();
    await_condition(&admin, "default", "Ready", ("True", "Running"));
    assert_eq!(uid(&admin), second, "a start makes nothing anew");
}

/// Instances are guarded, and can be written, where the kind Interlock is not installed.
#[test]
fn without_the_kind_everything_has_its_default() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    admin.apply(&manifest("default", r#"{rules: [{group: freeze, action: "Off"}]}"#));
    let ground = Ground::new(&cluster, "dev");
    ground.await_code("a frozen edit is let through", 200);
    admin.kubectl(&["delete", "crd", "interlocks.interlock.dev", "--timeout=60s"]).ok();
    ground.await_code("without the kind everything denies", 422);
    ground.open();
    ground.await_that("plans end", |found| found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE");
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    ground.user.merge_patch(&ground.path(), &edit).ok();
    process.kill();
    process.start();
    process.await_ready();
    ground.await_that("an edit is carried out", |found| {
        found["status"]["planStatus"]["update"]["status"] == "COMPLETE"
    });
    let crds = interlock::install::objects(interlock::install::Part::Crds, &process.options(&[])).unwrap();
    crate::support::interlock::apply(&admin, crds);
    wait_until("the kind is served again", CAP, || {
        let spec = manifest("default", "{}");
        let out = admin.kubectl_in(&["apply", "-f", "-"], &spec);
        if out.code == 0 { Ok(()) } else { Err(out.to_string()) }
    });
    await_condition(&admin, "default", "Accepted", ("True", "Accepted"));
}

/// Packages act as the service account that the settings name for a namespace, with its rights and
/// no others; the settings change while a plan waits. The name of a namespace chooses, and no label that
/// its users may change.
#[test]
fn packages_act_as_the_service_account_of_their_namespace() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let (admin, pid) = (cluster.admin(), process.pid());
    let accounts = |by: &str| {
        format!("{{instances: {{serviceAccounts: [{{name: deployer, namespaceSelector: {by}}}]}}}}")
    };
    let by_label = accounts("{matchLabels: {tier: dev}}");
    let said = admin.kubectl_in(&["apply", "-f", "-"], &manifest("default", &by_label)).refused();
    assert!(said.contains("select namespaces by kubernetes.io/metadata.name"), "{said}");
    let dev = Ground::prepare(&cluster, "dev");
    let by_name = format!("{{matchLabels: {{kubernetes.io/metadata.name: {}}}}}", dev.ns.name());
    admin.apply(&manifest("default", &accounts(&by_name)));
    await_condition(&admin, "default", "Accepted", ("True", "Accepted"));
    let prod = Ground::prepare(&cluster, "prod");
    let label = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": dev.ns.name()}}});
    let labelled = admin.merge_patch(&format!("/api/v1/namespaces/{}", prod.ns.name()), &label);
    assert!(
        labelled.code >= 400
            || labelled.body["metadata"]["labels"]["kubernetes.io/metadata.name"] == prod.ns.name(),
        "{labelled}"
    );
    prod.create();
    prod.await_that("it acts as the default account", |found| {
        found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][1]["status"] == "IN_PROGRESS"
    });
    dev.create();
    let said = dev.await_stalled("impersonate");
    assert!(said.contains("\"deployer\"") && said.contains(dev.ns.name()), "{said}");
    dev.grant("interlock-acts-as-deployer", IMPERSONATE, ("interlock-system", "interlock"));
    let account = format!("system:serviceaccount:{}:deployer", dev.ns.name());
    dev.await_stalled(&format!("User \"{account}\" cannot"));

    admin.apply(&manifest("default", "{}"));
    dev.await_that("the plan goes on as the default account", |found| {
        found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][1]["status"] == "IN_PROGRESS"
    });
    assert_eq!(process.pid(), pid, "nothing was started again");
    objects_of_others_are_written_where_the_settings_allow_it(&cluster);
}

/// They get no owner and outlive the Instance, also its plan cleanup, which names them.
fn objects_of_others_are_written_where_the_settings_allow_it(cluster: &Cluster) {
    let ground = ground::Ground::new(cluster, "adopts", existing::PACKAGE);
    let ns = ground.ns.name();
    let allow = format!(
        "{{instances: {{existingObjects: [{{adoption: Allow, namespaceSelector: {{matchLabels: \
         {{kubernetes.io/metadata.name: {ns}}}}}}}]}}}}"
    );
    let refused = allow.replace("Allow", "Sometimes");
    let said = cluster.admin().kubectl_in(&["apply", "-f", "-"], &manifest("default", &refused)).refused();
    assert!(said.contains("\"Deny\", \"Allow\""), "{said}");
    cluster.admin().apply(&manifest("default", &allow));
    wait_until("the settings count", CAP, || {
        let found = cluster.admin().read(&format!("{INTERLOCKS}/default")).ok();
        let observed = &found["status"]["observedGeneration"];
        if *observed == found["metadata"]["generation"] { Ok(()) } else { Err(found.to_string()) }
    });
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "yes"},
        "metadata": {"name": "settings", "annotations": {"example.com/mine": "yes"}},
    });
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &settings).ok();
    ground.create("demo", "settings-0.1.0", &json!({}));
    let demo = ground.await_plan("demo", "deploy", "COMPLETE");
    let path = ground.ns.path("v1", "configmaps", "settings");
    let adopted = ground.user.read(&path).ok();
    let metadata = &adopted["metadata"];
    assert_eq!(metadata["annotations"]["interlock.dev/adopted-by"], demo["metadata"]["uid"]);
    assert_eq!(metadata["annotations"]["example.com/mine"], "yes");
    assert_eq!(metadata["ownerReferences"], Value::Null);
    assert_eq!(adopted["data"], json!({"mine": "yes", "from": "demo"}));
    existing::delete_with_dependents(&ground, "demo");
    assert_eq!(ground.user.read(&path).ok(), adopted, "it stays as it was");
}

/// What lets the process act as a service account of a namespace.
const IMPERSONATE: &str = r#"{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"], "resourceNames": ["deployer"]}"#;
