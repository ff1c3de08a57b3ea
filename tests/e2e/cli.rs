//! What every command has in common: errors in one shape, exit codes, flags for cluster and user.

use std::path::{Path, PathBuf};

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::flavor::define_data_planes;
use crate::support::ground::Ground;
use crate::support::interlock::{binary, interlock};
use crate::support::{Client, Cluster, Interlock, Output};

const PACKAGE: &str = include_str!("verbs/operatorversion.yaml");

/// No error shows what only its authors can read.
#[track_caller]
fn refused(out: &Output, code: i32) -> String {
    assert_eq!(out.code, code, "{out}");
    let text = out.stderr.clone();
    // What could not be listed is named before.
    let before = ["not seen", "to see more", "warning: "];
    let mut lines = text.lines().skip_while(|line| before.iter().any(|word| line.starts_with(word)));
    assert!(lines.next().is_some_and(|line| line.starts_with("error: ")), "{out}");
    for raw in ["ApiError", "Status {", "ServiceError", "(os error", "Error {", "strconv", "\u{1b}"] {
        assert!(!text.contains(raw), "{raw}: {out}");
    }
    text
}

/// What was printed, as it stands in `tests/data/cli/`.
#[derive(Default)]
struct Transcript(String);

impl Transcript {
    fn add(&mut self, arguments: &[&str], out: &Output) {
        self.0 += &format!("$ interlock {}\n{}(exit code {})\n\n", arguments.join(" "), out.stderr, out.code);
    }

    #[track_caller]
    fn compare(self, name: &str, replaced: &[(&str, &str)]) {
        let text = replaced.iter().fold(self.0, |text, (from, to)| text.replace(from, to));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cli").join(name);
        if std::env::var_os("INTERLOCK_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        similar_asserts::assert_eq!(expected, text, "{name}; INTERLOCK_BLESS=1 writes what is printed now");
    }
}

/// The kubeconfig of a user, changed.
fn kubeconfig(user: &Client, folder: &Path, change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = std::fs::read_to_string(user.kubeconfig()).unwrap();
    let mut file = go_template::yaml::read(&text).unwrap();
    change(&mut file);
    let path = folder.join("kubeconfig");
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

#[test]
fn what_is_not_reached_or_not_let_in_is_told_in_one_shape() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let folder = tempfile::tempdir().unwrap();
    let with = |path: &Path, arguments: &[&str]| {
        let flag = format!("--kubeconfig={}", path.display());
        interlock(&admin, &[arguments, &[&flag]].concat(), "")
    };
    let commands: [&[&str]; 6] = [
        &["plan", "status", "demo"],
        &["plan", "list", "-A"],
        &["why", "instance/demo"],
        &["topology"],
        &["flavor", "diagnose"],
        &["version"],
    ];
    let mut printed = Transcript::default();
    for (i, command) in commands.into_iter().enumerate() {
        let mut note = |how: &str, out: &Output| {
            if i == 0 {
                printed.add(&[command, &[how]].concat(), out);
            }
        };
        let closed = kubeconfig(&admin, folder.path(), |file| {
            file["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
        });
        let out = with(&closed, command);
        note("(nobody listens)", &out);
        let text = refused(&out, 3);
        assert!(
            text.contains("  where: https://127.0.0.1:1\n  why:   the connection was refused\n"),
            "{text}"
        );

        let other_ca = kubeconfig(&admin, folder.path(), |file| {
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
            let path = folder.path().join("ca.crt");
            std::fs::write(&path, pem).unwrap();
            let cluster = &mut file["clusters"][0]["cluster"];
            cluster.as_object_mut().unwrap().remove("certificate-authority-data");
            cluster["certificate-authority"] = path.display().to_string().into();
        });
        let out = with(&other_ca, command);
        note("(another CA)", &out);
        let text = refused(&out, 3);
        assert!(text.contains("why:   the certificate of the API server is "), "{text}");

        let token = kubeconfig(&admin, folder.path(), |file| {
            file["users"][0]["user"] = json!({"token": "s3cret"});
        });
        let out = with(&token, command);
        note("(a wrong token)", &out);
        let text = refused(&out, 1);
        assert!(text.contains("  why:   Unauthorized\n  next:  log in again"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");

        let out = with(Path::new("/no/such/file"), command);
        note("--kubeconfig=/no/such/file", &out);
        let text = refused(&out, 2);
        assert!(text.contains("  why:   /no/such/file does not exist\n"), "{text}");

        let broken = folder.path().join("broken");
        std::fs::write(&broken, "users: [{name: a, user: {token: s3cret}\n").unwrap();
        let out = with(&broken, command);
        note("(a kubeconfig that is none)", &out);
        let text = refused(&out, 2);
        assert!(text.contains("it is no kubeconfig") && !text.contains("s3cret"), "{text}");

        let out = interlock(&admin, &[command, &["--context=nowhere"]].concat(), "");
        note("--context=nowhere", &out);
        let text = refused(&out, 2);
        assert!(text.starts_with("error: context \"nowhere\" cannot be used\n"), "{text}");

        let out = interlock(&admin, &[command, &["--no-such-flag"]].concat(), "");
        assert_eq!(out.code, 2, "{out}");
    }
    let mut server = String::new();
    kubeconfig(&admin, folder.path(), |file| {
        server = file["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
    });
    let replaced = [(folder.path().to_str().unwrap(), "FOLDER"), (server.as_str(), "https://SERVER")];
    printed.compare("connection.txt", &replaced);
}

#[test]
fn what_is_not_found_is_3_everywhere_and_names_what_there_is() {
    let cluster = Interlock::shared().0;
    // Other cases define them in the same cluster.
    define_data_planes(cluster);
    let ground = Ground::new(cluster, "cli", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({}));
    let package = folder_of_a_package();
    let package = package.path().to_str().unwrap();
    let run =
        |arguments: &[&str]| interlock(&ground.user, &[arguments, &["-n", ground.ns.name()]].concat(), "");
    let reason = ["--reason", "x"];
    let missing: [&[&str]; 15] = [
        &["plan", "status", "dmo"],
        &["plan", "status", "dmo", "--watch"],
        &["plan", "list", "dmo"],
        &["plan", "history", "dmo"],
        &["plan", "wait", "dmo"],
        &["plan", "trigger", "dmo", "--plan", "deploy"],
        &["plan", "abort", "dmo", reason[0], reason[1]],
        &["plan", "retry", "dmo", reason[0], reason[1]],
        &["plan", "adopt", "dmo", reason[0], reason[1]],
        &["plan", "restart", "dmo", reason[0], reason[1]],
        &["plan", "pause", "dmo", reason[0], reason[1]],
        &["plan", "resume", "dmo", reason[0], reason[1]],
        &["package", "upgrade", package, "--instance", "dmo"],
        &["package", "uninstall", "--instance", "dmo"],
        &["why", "instance/dmo"],
    ];
    for command in missing {
        let text = refused(&run(command), 3);
        let first = format!("error: Instance {}/dmo does not exist\n", ground.ns.name());
        assert!(text.ends_with(&format!("{first}  next:  did you mean demo?\n")), "{command:?}: {text}");
    }
    let mut printed = Transcript::default();
    for (command, expected) in [
        (&["why", "instnce/demo"][..], "did you mean instance"),
        (&["why", "gizmo/demo"], "Interlock knows "),
        (&["topology", "--root", "gizmo/x/demo"], "Interlock knows "),
        (&["topology", "--root", "configmap/x/nothing"], "without it everything is printed"),
        (&["flavor", "plan", "nothing", "--to", "expressions"], "choose another namespace"),
        (&["flavor", "diagnose", "nothing"], "choose another namespace"),
        (&["plan", "trigger", "demo", "--plan", "depoly"], "did you mean deploy?"),
    ] {
        let out = run(command);
        let text = refused(&out, 3);
        assert!(text.contains(expected), "{command:?}: {text}");
        // What a cluster serves beside is no part of the text.
        if !text.contains("Interlock knows") && command[0] != "topology" {
            printed.add(command, &out);
        }
    }
    for command in [&["why", "instance"][..], &["plan", "list", "-A"], &["package", "install", "/no/such"]] {
        let out = run(command);
        let text = refused(&out, 2);
        assert!(text.contains("  next:  "), "{command:?}: {text}");
        printed.add(command, &out);
    }
    printed.compare("not-found.txt", &[(ground.ns.name(), "NAMESPACE")]);
}

fn folder_of_a_package() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("operator.yaml"), "name: shop\noperatorVersion: 1.0.0\n").unwrap();
    std::fs::write(
        folder.path().join("params.yaml"),
        "parameters:\n- {name: REPLICAS, type: integer, default: 1}\n",
    )
    .unwrap();
    folder
}

/// Nothing of a package is written when a value cannot be meant.
#[test]
fn a_value_that_cannot_be_meant_is_refused_before_anything_is_written() {
    let ground = Ground::new(Interlock::shared().0, "cli", PACKAGE);
    let package = folder_of_a_package();
    let package = package.path().to_str().unwrap();
    let install = |parameter: &str| {
        let command = ["package", "install", package, "-p", parameter, "-n", ground.ns.name()];
        interlock(&ground.user, &command, "")
    };
    let text = refused(&install("REPLICAS=three"), 2);
    assert!(text.starts_with("error: parameter REPLICAS must be an integer, not \"three\"\n"), "{text}");
    let text = refused(&install("REPLICS=3"), 2);
    assert!(text.contains("has no parameter REPLICS\n  next:  did you mean REPLICAS?\n"), "{text}");
    let written = ground.user.read(&ground.ns.path(meta::KUDO_API_VERSION, "operators", "shop"));
    assert_eq!(written.code, 404, "{written}");
}

#[test]
fn who_may_not_is_told_which_right_is_missing() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("cli");
    let stranger = ns.stranger("mallory");
    let text = refused(&interlock(&stranger, &["plan", "status", "demo", "-n", ns.name()], ""), 1);
    let remedy = format!(
        "next:  ask an administrator for the verb get on instances.kudo.dev in namespace {}",
        ns.name()
    );
    assert!(text.contains("mallory") && text.contains(&remedy), "{text}");

    let out = interlock(&stranger, &["topology"], "");
    let text = refused(&out, 1);
    assert_eq!(out.stdout, "");
    assert!(text.starts_with("error: no objects could be read\n"), "{text}");
    let kinds = text.lines().find(|line| line.contains("you may not list them: ")).unwrap_or_default();
    assert!(kinds.contains("instances.kudo.dev, ") && kinds.ends_with(" more"), "{text}");
    for internal in ["GuardedDeployment", "GuardedService", "FlavorSource"] {
        assert!(!text.contains(internal), "{internal}: {text}");
    }

    // Who may read the namespace of her kubeconfig sees that one, and is told so.
    let alice = ns.user("alice");
    let folder = tempfile::tempdir().unwrap();
    let home = kubeconfig(&alice, folder.path(), |file| {
        file["contexts"][0]["context"]["namespace"] = ns.name().into();
    });
    let out = interlock(&alice, &["topology", &format!("--kubeconfig={}", home.display())], "");
    assert_eq!(out.code, 0, "{out}");
    assert!(out.stdout.contains(&format!("Namespace/{}", ns.name())), "{out}");
    let only =
        format!("not seen, seen in namespace {} only, as you may not list all namespaces: ", ns.name());
    assert!(
        out.stderr.lines().any(|line| line.starts_with(&only) && line.contains("instances.kudo.dev")),
        "{out}"
    );
    assert!(out.stderr.ends_with("--clusterrole=view --user=USER -n NAMESPACE`\n"), "{out}");

    // An administrator acts as somebody else with --as.
    let admin = cluster.admin();
    let list = ["plan", "list", "-n", ns.name(), "--as", "mallory", "--as-group", "system:authenticated"];
    let text = refused(&interlock(&admin, &list, ""), 1);
    assert!(text.contains("User \"mallory\" cannot list resource \"instances\""), "{text}");
    assert_eq!(interlock(&admin, &["plan", "list", "-A"], "").code, 0);
}

/// An API server that knows no Instances answers as if the one that is named did not exist.
#[test]
fn a_cluster_without_the_definitions_is_told_so() {
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    for command in [
        &["plan", "status", "demo"][..],
        &["plan", "wait", "demo"],
        &["package", "uninstall", "--instance", "demo"],
        &["plan", "list", "-A"],
    ] {
        let text = refused(&interlock(&admin, command, ""), 3);
        assert!(text.contains("interlock render crds"), "{command:?}: {text}");
    }
    let text = refused(&interlock(&admin, &["why", "instance/demo"], ""), 3);
    assert!(text.starts_with("error: the API server serves no kind \"instance\"\n"), "{text}");
    // The kinds that are there are printed, and those that are not are named.
    let out = interlock(&admin, &["topology"], "");
    assert!(out.code == 0 && out.stderr.contains("not served by this cluster: "), "{out}");
    assert!(out.stderr.contains("instances.kudo.dev"), "{out}");
}

/// krew reads it once the placeholders are filled in.
#[test]
fn the_manifest_of_the_plugin_is_one() {
    let text = include_str!("../../manifests/krew/interlock.yaml");
    let plugin: Value = serde_saphyr::from_str(text).unwrap();
    assert_eq!((&plugin["kind"], &plugin["metadata"]["name"]), (&json!("Plugin"), &json!("interlock")));
    let platforms = plugin["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for platform in platforms {
        let arch = platform["selector"]["matchLabels"]["arch"].as_str().unwrap();
        assert_eq!(platform["uri"], format!("BASE_URL/interlock-VERSION-linux-{arch}.tar.gz"));
        assert_eq!((&platform["bin"], &platform["sha256"]), (&json!("interlock"), &json!("SHA256")));
    }
    assert!(plugin["spec"]["shortDescription"].as_str().is_some_and(|text| text.len() < 80));
}

#[test]
fn versions_of_both_sides() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let json = interlock(&admin, &["version", "-o", "json"], "").ok();
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["client"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(found["kubernetes"].as_str().is_some_and(|version| version.starts_with("v1.")), "{found:#}");
    // The process of the tests runs outside of the cluster.
    assert!(found["interlock"].is_array(), "{found:#}");
    let offline = interlock(&admin, &["version", "--client", "--kubeconfig=/no/such"], "").ok();
    assert!(offline.starts_with(&format!("client:     {}", env!("CARGO_PKG_VERSION"))), "{offline}");
}

#[test]
fn it_is_a_plugin_of_kubectl() {
    let user = Cluster::shared().admin();
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-interlock");
    std::os::unix::fs::symlink(binary(), &plugin).unwrap();
    let help = user.command(&plugin, &["plan", "--help"], "").ok();
    assert!(help.contains("Usage: kubectl interlock plan "), "{help}");
    let missing = user.command(&plugin, &["plan", "wait", "nobody", "--no-such-flag"], "");
    assert!(missing.stderr.contains("Usage: kubectl interlock plan wait"), "{missing}");
    let unknown = user.command(&plugin, &["plan", "status", "nobody", "-n", "default"], "");
    assert_eq!(unknown.code, 3, "{unknown}");
}

/// Made of the same texts as --help.
#[test]
fn completions_and_manual_pages() {
    let user = Cluster::shared().admin();
    for (shell, part) in
        [("bash", "_interlock()"), ("zsh", "#compdef interlock"), ("fish", "complete -c interlock")]
    {
        let script = interlock(&user, &["completion", shell], "").ok();
        assert!(script.contains(part) && script.contains("topology"), "{shell}: {script}");
    }
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("man1");
    interlock(&user, &["man", "--into", into.to_str().unwrap()], "").ok();
    let page = std::fs::read_to_string(into.join("interlock-plan-status.1")).unwrap();
    assert!(page.contains("\\-\\-watch"), "{page}");
    let top = interlock(&user, &["man"], "").ok();
    assert!(top.contains(".TH interlock 1"), "{top}");
}
