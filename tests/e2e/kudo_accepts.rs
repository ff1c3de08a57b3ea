//! What KUDO accepts and carries out, Interlock does: what is wrong with a package elsewhere is said when it is
//! installed, and fails where it is used.

use std::path::Path;

use serde_json::{Value, json};

use crate::kudo_client::{Kudo, assert_all};
use crate::support::instances::{await_event, await_run, instance, run_of};
use crate::support::interlock::interlock;

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-made'}\n\
                      data: {color: '{{ .Params.COLOR }}', size: '{{ .Params.SIZE }}'}\n";

fn operator(version: &str, tasks: &str, plans: &str) -> String {
    let phases = |steps: &str| {
        format!("{{strategy: serial, phases: [{{name: main, strategy: serial, steps: [{steps}]}}]}}")
    };
    let deploy = phases("{name: make, tasks: [make]}");
    let backup = phases("{name: save, tasks: [save]}, {name: keep, tasks: [lost]}");
    let plans = if plans.is_empty() {
        format!("deploy: {deploy}")
    } else {
        format!("deploy: {deploy}, {plans}: {backup}")
    };
    format!(
        "name: gaps\noperatorVersion: {version}\nkubernetesVersion: 1.15.0\n\
         tasks: [{{name: make, kind: Apply, spec: {{resources: [made.yaml]}}}}{tasks}]\nplans: {{{plans}}}\n"
    )
}

fn write(folder: &Path, operator: &str, params: &str) -> String {
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    let files =
        [("templates/made.yaml", CONFIG), ("templates/broken.yaml", "{{ if }}"), ("operator.yaml", operator)];
    for (file, text) in [files.as_slice(), &[("params.yaml", params)]].concat() {
        std::fs::write(folder.join(file), text).unwrap();
    }
    folder.display().to_string()
}

/// What is wrong with the second version, as admission and `package verify` say it.
const WARNINGS: [&str; 4] = [
    "spec.templates[broken.yaml]: line 1, syntax: template: broken.yaml:1: missing value for if; correct the template at that line",
    "spec.parameters[1].default: \"big\" is not a whole number, such as 3; set a default of the parameter's type and enum",
    "spec.parameters[2].trigger: there is no plan \"lost\"; add the plan to spec.plans, or name another",
    "spec.plans[backup].phases[0].steps[1].tasks[0]: there is no task \"lost\"; add the task to spec.tasks, or name another",
];

#[test]
fn an_installed_operator_is_upgraded_to_a_version_with_gaps() {
    let Some(kudo) = Kudo::new("kudo-gaps") else { return };
    let dir = tempfile::tempdir().unwrap();
    let whole = "parameters: [{name: COLOR, default: red}, {name: SIZE, default: '1'}]\n";
    let first = write(&dir.path().join("v1"), &operator("1.0.0", "", ""), whole);
    let save = ", {name: save, kind: Apply, spec: {resources: [broken.yaml]}}";
    let gaps = "parameters:\n- {name: COLOR, default: red}\n- {name: SIZE, type: integer, default: big}\n\
                - {name: KEEP, default: 'yes', trigger: lost}\n";
    let second = write(&dir.path().join("v2"), &operator("2.0.0", save, "backup"), gaps);
    kudo.run(&["install", &first, "--instance", "demo", "--wait", "--wait-time=90"]).ok();
    let installed = await_run(&kudo.user, "demo", "deploy", "");

    kudo.run(&["upgrade", &second, "--instance", "demo"]).ok();
    let upgraded = await_run(&kudo.user, "demo", "deploy", &run_of(&installed, "deploy"));
    let made = kudo.user.get("configmap", "demo-made").unwrap();
    assert_eq!(made["data"], json!({"color": "red", "size": "big"}), "KUDO does not look at defaults");

    // Whoever installs it is told, with the lines of `package verify`.
    let version = kudo.user.get("operatorversions.kudo.dev", "gaps-2.0.0").unwrap();
    let again = json!({"apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion",
                       "metadata": {"name": "gaps-again"}, "spec": version["spec"]});
    let told = kudo.user.kubectl_in(&["create", "--dry-run=server", "-f", "-"], &again.to_string());
    let verified = interlock(&kudo.user, &["package", "verify", &second], "").ok();
    for warning in WARNINGS {
        assert_all(&told.stderr, &[&format!("Warning: {warning} [version-invalid]\n")]);
        assert_all(&verified, &[&format!("warning: {warning}\n")]);
    }
    assert_eq!(told.stderr.matches("Warning: ").count(), WARNINGS.len(), "{told}");
    assert_all(&verified, &["package gaps 2.0.0 is valid: 0 errors, 4 warnings\n"]);
    told.ok();

    // What needs none of it works.
    kudo.run(&["update", "--instance", "demo", "-p", "COLOR=blue"]).ok();
    let updated = await_run(&kudo.user, "demo", "deploy", &run_of(&upgraded, "deploy"));
    // The change that would trigger the plan is refused, as KUDO refuses it, and says where to mend it.
    let refusal = kudo.run(&["update", "--instance", "demo", "-p", "KEEP=no"]).refused();
    let parts = [
        "param KEEP defined trigger plan lost, but plan not defined in operatorversion [plan-unknown]",
        "Next: correct the OperatorVersion: a trigger must name one of its plans",
    ];
    assert_all(&refusal, &parts);
    assert_eq!(instance(&kudo.user, "demo")["spec"], updated["spec"]);
    // The plan that cannot be carried out fails when it is run.
    kudo.run(&["plan", "trigger", "--name", "backup", "--instance", "demo"]).ok();
    let said = await_event(&kudo.ns, "TaskRenderingError");
    assert_all(&said, &["broken.yaml"]);
}

/// What every Instance would fail on is refused, as KUDO could not carry it out either.
#[test]
fn a_version_that_no_instance_could_have_is_refused() {
    let Some(kudo) = Kudo::new("kudo-lost") else { return };
    let task =
        |name: &str| json!({"phases": [{"name": "main", "steps": [{"name": "make", "tasks": [name]}]}]});
    let version = |plans: Value| {
        json!({"apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "lost-1"},
               "spec": {"version": "1", "plans": plans, "tasks": [{"name": "fine", "kind": "Dummy", "spec": {"done": true}}]}})
    };
    let path = kudo.ns.path("kudo.dev/v1beta1", "operatorversions", "");
    let refused = kudo.user.post(&path, &version(json!({"deploy": task("lost")}))).refused(422);
    let said = refused["message"].as_str().unwrap_or_default();
    assert_all(
        said,
        &["there is no task \"lost\"", "no Instance could be created with it, or upgraded to it"],
    );
    // An Instance that is there can be upgraded to this one.
    kudo.user.post(&path, &version(json!({"deploy": task("lost"), "upgrade": task("fine")}))).ok();
}
