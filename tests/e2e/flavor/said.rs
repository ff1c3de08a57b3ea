//! What kubectl prints of a change, and what `interlock check` says of the same, as golden files
//! side by side: `tests/data/kubectl` and `tests/data/check`.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::Client;
use crate::support::interlock::interlock;
use crate::support::remedy;

/// What a change met.
pub struct Met {
    pub kubectl: String,
    pub check: String,
}

/// Applies a change of an object, or a new one, and tells what it met.
pub fn meets(user: &Client, namespace: &str, after: &Value) -> Met {
    let name = |at: &str| after.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let before = user.get(name("/kind"), name("/metadata/name"));
    let out = user.kubectl_in(&["apply", "-f", "-"], &after.to_string());
    let (allowed, check) = says(user, namespace, before.as_ref(), Some(after), &[], &out.stderr);
    assert_eq!(allowed, out.code == 0, "{check}\n{out}");
    if out.code != 0 {
        let named = remedy::commands(&out.stderr);
        // A refused creation has no object to show, and what writes is run by `rollouts_seen` and `flavor::change`.
        let works = |command: &&String| before.is_some() || command.starts_with("kubectl explain ");
        let writes = |command: &&String| command.starts_with("interlock rollout ");
        for command in named.iter().filter(works).filter(|command| !writes(command)) {
            remedy::run(user, command).ok();
        }
    }
    // Definitions of other tests come while this runs, and are said to be listed for a moment.
    let whole = format!("{}{}", out.stdout, out.stderr);
    let kept = whole.lines().filter(|line| !line.contains("not judged by what is not seen here"));
    Met { kubectl: kept.map(|line| format!("{line}\n")).collect(), check }
}

/// What `interlock check` says of a change among other objects, and whether it allows it: nothing
/// that is not among what was told of it on the cluster. Without an old object it is new, without a
/// new one it goes.
pub fn says(
    user: &Client,
    namespace: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    objects: &[Value],
    told: &str,
) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, objects: &[Value]| {
        let here = |object: &Value| {
            let mut object = object.clone();
            if object["metadata"]["namespace"].is_null() {
                object["metadata"]["namespace"] = json!(namespace);
            }
            object
        };
        let objects: Vec<Value> = objects.iter().map(here).collect();
        let text = match objects.as_slice() {
            [one] => one.to_string(),
            all => json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string(),
        };
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let named = |name: &str, object: &Value| file(name, std::slice::from_ref(object));
    let (old, new) = (old.map(|old| named("old.json", old)), new.map(|new| named("new.json", new)));
    let objects = (!objects.is_empty()).then(|| file("objects.json", objects));
    let mut arguments = match (&old, &new) {
        (Some(old), Some(new)) => vec!["check", "-f", new, "--old", old],
        (None, Some(new)) => vec!["check", "-f", new, "--operation", "create"],
        (Some(old), None) => vec!["check", "-f", old, "--operation", "delete"],
        (None, None) => panic!("no change"),
    };
    arguments.extend(objects.iter().flat_map(|file| ["--objects", file]));
    let out = interlock(user, &arguments, "");
    // The patch is the stamp, which tests of its own hold.
    let kept: Vec<&str> = out.stdout.lines().filter(|line| !line.starts_with("patch: ")).collect();
    assert!(!kept.is_empty(), "{out}");
    for line in &kept {
        let head = line.starts_with("allowed: ") || line.starts_with("refused (");
        let text = line.strip_prefix("Warning: ").unwrap_or(line);
        assert!(head || told.contains(text), "{text}\n--- is not in\n{told}");
    }
    (out.code == 0, kept.iter().map(|line| format!("{line}\n")).collect())
}

/// Two files of one name, one by kubectl and one by `interlock check`.
#[track_caller]
pub fn goldens(name: &str, namespace: &str, met: &[(String, Met)]) {
    let text = |of: fn(&Met) -> &str| -> String {
        let parts = met.iter().map(|(title, met)| format!("# {title}\n{}\n", of(met)));
        parts.collect::<String>().replace(namespace, "NAMESPACE")
    };
    golden(name, &text(|met| &met.kubectl));
    held("check", name, &text(|met| &met.check));
}

/// A file of what kubectl prints.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    held("kubectl", name, text);
}

/// A file of a folder of `tests/data`.
#[track_caller]
pub fn held(folder: &str, name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let path = folder.join(name);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    similar_asserts::assert_eq!(expected, text, "{name}; INTERLOCK_BLESS=1 writes what is printed now");
}
