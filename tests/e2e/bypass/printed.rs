//! What people read when they are refused: the texts of `tests/data/kubectl/`, to the letter.

use serde_json::json;

use super::{Layers, instance};
use crate::support::Output;

/// Names and times that differ from run to run.
fn settled(out: &Output, namespace: &str) -> String {
    let mut text = out.stderr.replace(namespace, "NAMESPACE");
    for (before, end, name) in [
        ("IN_PROGRESS for ", " at phase", "TIME"),
        ("request=abort/", " plan.interlock.dev/reason", "RUN/NONCE"),
        ("kubectl-edit-", ".yaml", "FILE"),
        ("\"uid\":\"", "\"", "UID"),
        ("stored to \"", "kubectl-edit", ""),
        ("kubectl replace -f ", "kubectl-edit", ""),
    ] {
        let mut from = 0;
        while let Some(found) = text[from..].find(before) {
            let start = from + found + before.len();
            let Some(length) = text[start..].find(end) else { break };
            text.replace_range(start..start + length, name);
            from = start + name.len();
        }
    }
    format!("{text}(exit code {})\n", out.code)
}

#[track_caller]
fn compare(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kubectl").join(name);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    similar_asserts::assert_eq!(expected, text, "{name}; INTERLOCK_BLESS=1 writes what is printed now");
}

#[test]
fn kubectl_prints_the_refusal_of_a_frozen_edit() {
    let ground = Layers::Both.ground("printed");
    let user = &ground.user;
    user.apply(&instance("demo", &json!({"GATED": "true"})).to_string());
    ground.await_running("demo");
    let edit = instance("demo", &json!({"GATED": "true", "SIZE": "large"})).to_string();
    let patch = json!({"spec": {"parameters": {"SIZE": "large"}}}).to_string();
    let apply = user.kubectl_in(&["apply", "-f", "-"], &edit);
    let forced = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let said = [
        ("apply.txt", apply),
        ("apply-server-side.txt", user.kubectl_in(&forced, &edit)),
        ("diff.txt", user.kubectl_in(&["diff", "-f", "-"], &edit)),
        ("replace.txt", user.kubectl_in(&["replace", "-f", "-"], &edit)),
        ("patch.txt", user.kubectl(&["patch", "instance", "demo", "--type=merge", "-p", &patch])),
    ];
    for (name, out) in &said {
        assert_ne!(out.code, 0, "{out}");
        compare(name, &settled(out, ground.ns.name()));
    }
    // What the editor is shown: nothing of ours at first, the refusal when kubectl opens it again.
    let (script, shown) =
        (user.kubeconfig().with_extension("editor"), user.kubeconfig().with_extension("shown"));
    let edit = "sed -i 's/GATED: \"true\"/GATED: \"false\"/' \"$1\"";
    let text = format!("#!/bin/sh\ngrep '^#' \"$1\" >> {}\n{edit}\n", shown.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let editor = format!("KUBE_EDITOR={}", script.display());
    let kubectl = crate::support::testbed::BIN.join("kubectl");
    let arguments = [&editor, kubectl.to_str().unwrap(), "-n", ground.ns.name(), "edit", "instance", "demo"];
    let mut out = user.command(std::path::Path::new("/usr/bin/env"), &arguments, "");
    assert_ne!(out.code, 0, "{out}");
    let shown = std::fs::read_to_string(&shown).unwrap();
    out.stderr.insert_str(0, &format!("(in the editor)\n{shown}(then)\n"));
    compare("edit.txt", &settled(&out, ground.ns.name()));
}

/// The mutating webhook is asked before the API server holds an object to its schema.
#[test]
fn kubectl_prints_what_to_write_where_quotes_are_missing() {
    let ground = Layers::Both.ground("printed");
    let unquoted = instance("demo", &json!({"GATED": true, "SIZE": 3})).to_string();
    let out = ground.user.kubectl_in(&["apply", "-f", "-"], &unquoted);
    assert_ne!(out.code, 0, "{out}");
    compare("apply-unquoted.txt", &settled(&out, ground.ns.name()));
}
