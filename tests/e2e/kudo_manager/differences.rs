//! What is different between what KUDO's manager makes of a package and what Interlock makes of it, and why.

use std::collections::BTreeSet;

use super::snapshot::Snapshot;

/// A difference that is meant.
pub struct Difference {
    /// Kind and path of the field; `*` stands for anything.
    pub at: &'static str,
    /// After which act of which package it occurs.
    pub after: &'static str,
    /// Why ours is right; `docs/kudo.md` tells it to users.
    pub why: &'static str,
}

const fn always(at: &'static str, why: &'static str) -> Difference {
    Difference { at, after: "*", why }
}

const EMPTY: &str = "KUDO writes what Go's types of the objects hold, empty fields included";
const SAME_TEXT: &str =
    "KUDO's text ends with a line break where the object was patched; read as JSON it is the same";
const OWN: &str = "what Interlock records of the run";
const CHILD: &str = "a child Instance is an object of its parent like any other";

/// All of them. Each is in the table of `docs/kudo.md`, and has to occur.
pub const DIFFERENCES: &[Difference] = &[
    always("* metadata.annotations[kudo.dev/last-applied-configuration](end)", SAME_TEXT),
    always("* metadata.annotations[kudo.dev/last-applied-configuration]*.creationTimestamp", EMPTY),
    always("* metadata.annotations[kudo.dev/last-applied-configuration]*.status*", EMPTY),
    always("* metadata.annotations[kudo.dev/last-applied-configuration]*.resources", EMPTY),
    always("Deployment metadata.annotations[kudo.dev/last-applied-configuration].spec.strategy", EMPTY),
    always(
        "StatefulSet metadata.annotations[kudo.dev/last-applied-configuration].spec.updateStrategy",
        EMPTY,
    ),
    always(
        "Service metadata.annotations[kudo.dev/last-applied-configuration].spec.ports[*].targetPort",
        EMPTY,
    ),
    always(
        "* metadata.annotations[kudo.dev/last-applied-configuration]*.env[*].value",
        "KUDO drops a variable's empty value, which is the default",
    ),
    always(
        "* metadata.annotations[kudo.dev/last-applied-configuration]*.resources.requests.cpu",
        "KUDO writes quantities in Kubernetes' own form; the API server does so in the object itself",
    ),
    always(
        "CronJob metadata.annotations[kudo.dev/last-applied-configuration].spec.template*",
        "KUDO adds a Pod template where a CronJob has none; the API server drops it",
    ),
    always("Service *spec.internalTrafficPolicy", "KUDO drops fields that Kubernetes 1.19 did not have"),
    always("Instance metadata.annotations[interlock.dev/last-applied-spec]", OWN),
    always("Instance metadata.annotations[plan.interlock.dev/history]", OWN),
    always("Instance status.lastApplied.*", OWN),
    always("Instance status.observedGeneration", OWN),
    always("Instance status.conditions[*].observedGeneration", OWN),
    always("Instance metadata.annotations[kudo.dev/*", CHILD),
    always("Instance metadata.labels*", CHILD),
    always("Instance metadata.ownerReferences[*].controller", CHILD),
    always("Instance metadata.ownerReferences[*].blockOwnerDeletion", CHILD),
    Difference {
        at: "Instance status.conditions[Ready].*",
        after: "every, trigger job",
        why: "a Pod that has done its work is not unhealthy",
    },
    Difference {
        at: "Instance status.conditions[*",
        after: "every, trigger broken",
        why: "a plan that failed is to be seen after it has ended",
    },
];

/// A field that is not the same.
pub struct Found {
    object: String,
    kind: String,
    path: String,
    kudo: Option<String>,
    ours: Option<String>,
}

impl Found {
    /// Which of the differences it is.
    pub fn explained(&self, after: &str) -> impl Iterator<Item = usize> {
        let at = format!("{} {}", self.kind, self.path);
        let matching =
            move |difference: &Difference| matches(difference.at, &at) && matches(difference.after, after);
        DIFFERENCES.iter().enumerate().filter(move |(_, difference)| matching(difference)).map(|(i, _)| i)
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let Self { object, path, kudo, ours, .. } = self;
        write!(f, "{object} {path}: KUDO's manager {}, Interlock {}", text(kudo), text(ours))
    }
}

/// Every field that is not the same in both; an object that is in one alone is one field without a path.
pub fn between(kudo: &Snapshot, ours: &Snapshot) -> Vec<Found> {
    let mut found = Vec::new();
    let objects: BTreeSet<_> = kudo.0.keys().chain(ours.0.keys()).collect();
    for key in objects {
        let object = format!("{}/{}", key.0, key.1);
        let differs = |path: &str, kudo: Option<String>, ours: Option<String>| Found {
            object: object.clone(),
            kind: key.0.clone(),
            path: path.to_owned(),
            kudo,
            ours,
        };
        match (kudo.0.get(key), ours.0.get(key)) {
            (Some(kudo), Some(ours)) => {
                let paths: BTreeSet<&String> = kudo.keys().chain(ours.keys()).collect();
                let differing = paths.into_iter().filter(|path| kudo.get(*path) != ours.get(*path));
                found.extend(
                    differing.map(|path| differs(path, kudo.get(path).cloned(), ours.get(path).cloned())),
                );
            }
            (kudo, ours) => {
                let there = || "it".to_owned();
                found.push(differs("", kudo.map(|_| there()), ours.map(|_| there())));
            }
        }
    }
    found
}

/// Whether a pattern with `*` matches all of a text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len()).filter(|i| tail.is_char_boundary(*i)).any(|i| matches(rest, &tail[i..]))
        }),
    }
}

#[test]
fn patterns_match_from_end_to_end() {
    for (pattern, text, expected) in [
        ("a.b", "a.b", true),
        ("a.b", "a.b.c", false),
        ("a.*", "a.b.c", true),
        ("*.c", "a.b.c", true),
        ("*.b", "a.b.c", false),
        ("a*c*e", "a[b].cd.e", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}
