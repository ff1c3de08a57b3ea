//! What the identities of Interlock and people may do, as rendered, and what people are warned of.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use interlock::install::{self, InstallOptions, Layout, Part};
use serde_json::json;

use crate::support::interlock::{apply, interlock};
use crate::support::{Client, Cluster, Interlock, Namespace, Output, wait_until};

const CAP: Duration = Duration::from_secs(60);
const SETTLED: Duration = Duration::from_secs(5);

/// Each `kubectl auth can-i --list` that the page names is run, and prints what the page says.
#[test]
fn the_documented_rights_are_those_of_the_rendered_roles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rights.md");
    let documented = std::fs::read_to_string(&path).unwrap();
    // Of its own, as others bind the account of packages to cluster-admin.
    let cluster = Cluster::own(&[]);
    let options = InstallOptions { layout: Layout::Split, ..InstallOptions::default() };
    let admin = cluster.admin();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace}});
    apply(&admin, vec![namespace]);
    apply(&admin, install::objects(Part::Rbac, &options).unwrap());

    // Of a service account that nobody has given anything. What it has differs between versions of Kubernetes.
    let everybody = ["auth", "can-i", "--list", "--as=system:serviceaccount:default:nobody"];
    let everybody = admin.kubectl(&everybody).ok();
    let everybody: BTreeSet<Vec<&str>> = everybody.lines().skip(1).map(words).collect();
    let (mut found, mut asked) = (String::new(), 0);
    let mut lines = documented.lines();
    while let Some(line) = lines.next() {
        found.push_str(&format!("{line}\n"));
        let Some(arguments) = line.strip_prefix("$ kubectl auth can-i --list ") else { continue };
        let arguments: Vec<&str> =
            ["auth", "can-i", "--list"].into_iter().chain(arguments.split(' ')).collect();
        let wanted: String =
            lines.by_ref().take_while(|line| *line != "```").map(|l| format!("{l}\n")).collect();
        found.push_str(&settled(&wanted, || rights(&admin.kubectl(&arguments).ok(), &everybody)));
        found.push_str("```\n");
        asked += 1;
    }
    assert!(asked >= 4, "docs/rights.md names the lists of both identities");
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let documented = std::fs::read_to_string(&path).unwrap();
    similar_asserts::assert_eq!(
        documented,
        found,
        "docs/rights.md; INTERLOCK_BLESS=1 writes what is printed now"
    );
}

/// What is wanted, or what is found when it has not changed for a while: the authorizer sees what was
/// bound a moment later.
fn settled(wanted: &str, find: impl Fn() -> String) -> String {
    let (mut found, mut since) = (find(), Instant::now());
    while found != wanted && since.elapsed() < SETTLED {
        let next = find();
        if next != found {
            (found, since) = (next, Instant::now());
        }
    }
    found
}

/// What kubectl prints, in an order that does not hang on that of the bindings.
fn rights(printed: &str, everybody: &BTreeSet<Vec<&str>>) -> String {
    let own = printed.lines().filter(|line| !everybody.contains(&words(line)));
    let mut lines: Vec<String> = own.map(sorted_verbs).collect();
    lines[1..].sort();
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A row whose last column, the verbs, is sorted.
fn sorted_verbs(line: &str) -> String {
    let verbs =
        line.rsplit_once('[').and_then(|(row, verbs)| Some((row, verbs.trim_end().strip_suffix(']')?)));
    let Some((row, verbs)) = verbs else { return line.to_owned() };
    let mut verbs: Vec<&str> = verbs.split(' ').collect();
    verbs.sort_unstable();
    format!("{row}[{}]", verbs.join(" "))
}

fn install_first(user: &Client, ns: &Namespace<'_>) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first/operator").display().to_string();
    interlock(user, &["package", "install", &folder, "--skip-instance", "-n", ns.name()], "")
}

/// A user with the right to do `verb` to `resource`, as soon as the bindings and aggregated roles count.
fn await_right(user: &Client, verb: &str, resource: &str) {
    wait_until("the role is whole", CAP, || {
        let out = user.kubectl(&["auth", "can-i", verb, resource]);
        if out.stdout.trim() == "yes" { Ok(()) } else { Err(out.to_string()) }
    });
}

/// Who writes a package has the rights of its service account, so that takes a role of its own.
#[test]
fn editors_write_instances_and_no_packages() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("rights");
    for (name, role) in [("ed", "edit"), ("ann", "admin")] {
        ns.bind(name, "ClusterRole", role);
        let user = ns.stranger(name);
        await_right(&user, "create", "instances.kudo.dev");
        let refusal = install_first(&user, &ns).refused();
        assert!(refusal.contains(r#"cannot create resource "operators""#), "{refusal}");
        let may = user.kubectl(&["auth", "can-i", "create", "operatorversions.kudo.dev"]);
        assert_eq!(may.stdout.trim(), "no", "{name}");
    }
    ns.bind("ed", "ClusterRole", "interlock-package-installer");
    let ed = ns.stranger("ed");
    await_right(&ed, "create", "operatorversions.kudo.dev");
    install_first(&ed, &ns).ok();
}

/// Here the account of packages is cluster-admin. Users learn that as far as they may ask.
#[test]
fn an_installation_says_what_packages_may_do() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("warned");
    let said = |user: &Client| {
        let out = install_first(user, &ns);
        out.clone().ok();
        out.stderr
    };
    assert_eq!(said(&ns.admin()), "", "who is cluster-admin learns nothing new");

    let acts = format!(
        "packages in namespace {} act as the service account interlock-system/interlock-packages",
        ns.name()
    );
    let bind = |name: &str, roles: &[&str]| {
        for role in roles {
            ns.bind(name, "ClusterRole", role);
        }
        let user = ns.stranger(name);
        await_right(&user, "create", "operatorversions.kudo.dev");
        user
    };
    let note = said(&bind("ina", &["edit", "interlock-package-installer"]));
    for part in [
        &format!("note: {acts}, unless the Interlock object names another, which is unknown (interlocks"),
        "; whether it is cluster-admin is unknown (localsubjectaccessreviews",
        "kubectl auth can-i '*' '*' --as=system:serviceaccount:interlock-system:interlock-packages",
    ] {
        assert!(note.contains(part), "{part:?} is not in: {note}");
    }

    let ann = bind("ann", &["admin", "interlock-package-installer"]);
    await_right(&ann, "create", "localsubjectaccessreviews.authorization.k8s.io");
    let warning = said(&ann);
    assert!(warning.starts_with(&format!("warning: {acts}, unless")), "{warning}");
    assert!(warning.contains("it may do everything in this namespace"), "{warning}");

    let asker = format!("asker-{}", ns.name());
    let user = bind(&asker, &["edit", "interlock-package-installer"]);
    for role in ["view", "system:auth-delegator"] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("test-{asker}-{}", role.replace(':', "-"))},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": asker}],
        });
        apply(&cluster.admin(), vec![binding]);
    }
    await_right(&user, "create", "subjectaccessreviews.authorization.k8s.io");
    await_right(&user, "get", "interlocks.interlock.dev");
    let warning = said(&user);
    assert!(
        warning.starts_with(&format!("warning: {acts}; it is cluster-admin, and you are not: ")),
        "{warning}"
    );
}
