//! Holds the house to its rules: that imports run downwards, that no modules rest on each other, and that what
//! decides depends on nothing that acts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod circles;
mod commands;
mod documents;
mod house;
mod imports;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use house::Module;

/// A crate, and the floors of its house from the bottom; a room imports only from floors below it, or from
/// itself.
struct Crate {
    sources: &'static str,
    floors: &'static [&'static [&'static str]],
}

const CORE: Crate = Crate {
    sources: "crates/interlock-core/src",
    floors: &[
        &["api"],
        &["certificate", "config_digest", "effect", "strategic_merge"],
        &["rejection"],
        &["health", "reconcile", "topology"],
        &["admission"],
        &["last_applied"],
        &["kinds"],
        &["testing"],
    ],
};

const KUDO: Crate = Crate {
    sources: "crates/interlock-kudo/src",
    floors: &[
        &["api"],
        &["names", "package"],
        &["time_limits"],
        &["engine"],
        &["operator_version"],
        &["instance", "operator"],
    ],
};

const KONG: Crate =
    Crate { sources: "crates/interlock-kong/src", floors: &[&["api"], &["data_plane"], &["flavor_source"]] };

/// Policies of the Gateway API, without Interlock.
const GATEWAY_POLICIES: Crate = Crate { sources: "crates/gateway-policies/src", floors: &[] };

/// The kinds of a domain that is small have one floor.
const GATEWAY: Crate = Crate { sources: "crates/interlock-gateway/src", floors: &[] };

const INTERLOCK: Crate = Crate {
    sources: "src",
    floors: &[
        &["telemetry", "kinds"],
        &["cluster", "install"],
        &["runtime"],
        &["controllers", "server"],
        &["run"],
        &["cli"],
    ],
};

/// The crates for strangers have one floor.
const GO_TEMPLATE: Crate = Crate { sources: "crates/go-template/src", floors: &[] };
const CRD_SCHEMA: Crate = Crate { sources: "crates/crd-schema/src", floors: &[] };

impl Crate {
    fn modules(&self) -> Vec<Module> {
        house::modules(&house::files(Path::new(self.sources)), "lib.rs")
    }
}

#[test]
fn imports_run_downwards() {
    let mut wrong = Vec::new();
    for house in [CORE, KUDO, KONG, INTERLOCK] {
        let floors = house.floors.iter().enumerate();
        let floor: BTreeMap<&str, usize> =
            floors.flat_map(|(i, rooms)| rooms.iter().map(move |room| (*room, i))).collect();
        for module in house.modules().iter().filter(|module| !module.path.is_empty()) {
            let own = module.room();
            let own_floor = floor.get(own).unwrap_or_else(|| panic!("no floor for the room {own}"));
            for (number, line) in &module.lines {
                for start in line.match_indices("crate::").map(|(at, word)| at + word.len()) {
                    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
                    let named: String = line[start..].chars().take_while(is_name).collect();
                    let Some(other) = floor.get(named.as_str()) else { continue };
                    if named != own && other >= own_floor {
                        let file = module.file.display();
                        wrong.push(format!("{}/{file}:{number}: {own} -> {named}", house.sources));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports that do not run downwards:\n{}", wrong.join("\n"));
}

/// The crates of what decides.
const DECISIONS: [&str; 8] = [
    "crd-schema",
    "gateway-policies",
    "go-template",
    "interlock-core",
    "interlock-gateway",
    "interlock-guard",
    "interlock-kong",
    "interlock-kudo",
];

/// A domain knows the core and no other domain, and the core none.
#[test]
fn a_domain_knows_no_other() {
    for name in DECISIONS.into_iter().filter(|name| name.starts_with("interlock-")) {
        let manifest = std::fs::read_to_string(format!("crates/{name}/Cargo.toml")).unwrap();
        let known: BTreeSet<&str> = manifest
            .lines()
            .filter_map(|line| line.split_once(" = ")?.0.strip_prefix("interlock-"))
            .collect();
        let core = BTreeSet::from(["core"]);
        assert_eq!(known, if name == "interlock-core" { BTreeSet::new() } else { core }, "{name}");
    }
}

/// What decides can reach nothing that acts: no crate of a runtime or a client is among its dependencies.
/// What of the standard library has effects, `clippy.toml` of each crate refuses.
#[test]
fn what_decides_depends_on_nothing_that_acts() {
    for name in DECISIONS {
        let arguments = ["tree", "--locked", "--offline", "-e", "normal", "--prefix", "none", "-p", name];
        let out = Command::new(env!("CARGO")).args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let tree = String::from_utf8(out.stdout).unwrap();
        assert!(tree.starts_with(name), "{tree}");
        let acts = ["tokio", "hyper", "kube-client", "kube-runtime", "mio", "rustls", "rand", "getrandom"];
        let found: Vec<&str> = tree
            .lines()
            .filter(|line| acts.iter().any(|acts| line.split(' ').next() == Some(*acts)))
            .collect();
        assert!(found.is_empty(), "{name} depends on {found:?}");
    }
}

/// `cluster` knows effects and wire types, and no rule.
#[test]
fn the_cluster_knows_no_rule() {
    let mut wrong = Vec::new();
    for module in INTERLOCK.modules().iter().filter(|module| module.room() == "cluster") {
        for (number, line) in &module.lines {
            if [
                "interlock_kudo::engine",
                "interlock_kong::data_plane",
                "interlock_core::admission",
                "go_template",
            ]
            .iter()
            .any(|word| line.contains(word))
            {
                wrong.push(format!("src/{}:{number}: {}", module.file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where a domain has a place of its own: a new one touches these, its crate, and nothing else.
const PLACES_OF_DOMAINS: [&str; 6] =
    ["cli/gateway/", "cli/guard/", "cli/kong/", "cli/kudo/", "controllers/", "kinds.rs"];

/// Files elsewhere that name a domain. The list only shrinks: ask the descriptor of the kind in place of a new line.
const NAMING_DOMAINS: [&str; 17] = [
    "cli/check/checker.rs",
    "cli/override_object/create.rs",
    "cli/override_object/mod.rs",
    "cli/run.rs",
    "cli/uninstall/plan.rs",
    "cli/verify/answers.rs",
    "cluster/api_writer.rs",
    "cluster/pods.rs",
    "install/crds.rs",
    "install/policies.rs",
    "run/guards.rs",
    "run/options.rs",
    "runtime/index/gateways.rs",
    "runtime/index/lister.rs",
    "runtime/index/operator_versions.rs",
    "runtime/index/packages.rs",
    "runtime/pool/deadline.rs",
];

#[test]
fn no_other_room_names_a_domain() {
    let domains = DECISIONS.iter().filter_map(|name| name.strip_prefix("interlock-"));
    let domains: Vec<String> =
        domains.filter(|name| *name != "core").map(|name| format!("interlock_{name}")).collect();
    let names_one = |module: &Module| {
        module.lines.iter().any(|(_, line)| domains.iter().any(|domain| line.contains(domain.as_str())))
    };
    let naming = INTERLOCK.modules().into_iter().filter(names_one);
    let naming: BTreeSet<String> = naming.map(|module| module.file.display().to_string()).collect();
    let elsewhere: BTreeSet<&str> = naming
        .iter()
        .map(String::as_str)
        .filter(|file| !PLACES_OF_DOMAINS.iter().any(|place| file.starts_with(place)))
        .collect();
    assert_eq!(elsewhere, BTreeSet::from(NAMING_DOMAINS), "files that name a domain, and those that may");
}

/// Controllers that ask or write by themselves, beside the loop under all reconcilers (`runtime/rounds.rs`). The list only
/// shrinks.
const ASKING: [&str; 24] = [
    "controllers/consistency/list.rs",
    "controllers/consistency/mod.rs",
    "controllers/flavor_sources.rs",
    "controllers/instance/api_calls.rs",
    "controllers/instance/cluster_objects.rs",
    "controllers/instance/context.rs",
    "controllers/instance/enforcement.rs",
    "controllers/instance/execute.rs",
    "controllers/instance/inventory.rs",
    "controllers/instance/no_room.rs",
    "controllers/instance/package_health.rs",
    "controllers/instance/pass/mod.rs",
    "controllers/instance/pass/proof.rs",
    "controllers/instance/pass/read_set.rs",
    "controllers/instance/pod_failures.rs",
    "controllers/instance/reconcile.rs",
    "controllers/instance/references.rs",
    "controllers/instance/spec_archive.rs",
    "controllers/interlock/mod.rs",
    "controllers/live_specs.rs",
    "controllers/mod.rs",
    "controllers/revisions.rs",
    "controllers/rollout_backfill.rs",
    "controllers/template_key.rs",
];

#[test]
fn no_other_controller_asks_by_itself() {
    let words = [
        "Bookkeeping",
        ".bookkeeping",
        "cluster::read",
        "Client,",
        "Client}",
        "Client>",
        "Client;",
        ".client",
        "Api<",
        "Executor",
    ];
    let asks =
        |module: &Module| module.lines.iter().any(|(_, line)| words.iter().any(|word| line.contains(word)));
    let asking = INTERLOCK.modules().into_iter().filter(|module| module.room() == "controllers");
    let asking = asking.filter(asks).map(|module| module.file.display().to_string());
    let asking: BTreeSet<String> = asking.collect();
    assert_eq!(asking, ASKING.map(str::to_owned).into(), "files that ask or write, and those that may");
}

#[test]
fn the_program_takes_each_command_that_it_prints() {
    let modules = [CORE, KUDO, KONG, INTERLOCK].into_iter().flat_map(|house| house.modules());
    let sources = modules.map(|module| {
        let source: String = module.lines.iter().map(|(_, line)| format!("{line}\n")).collect();
        (module.file.display().to_string(), source)
    });
    // What the chart says: the alerts, and the values.
    let chart = ["templates/monitoring.yaml", "values.yaml"].map(|name| {
        let file = format!("manifests/helm/interlock/{name}");
        let text = std::fs::read_to_string(&file).unwrap();
        (file, text)
    });
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, text) in sources.chain(chart) {
        for command in commands::printed(&text) {
            count += 1;
            let refusal = commands::refusal(&command);
            wrong.extend(refusal.map(|why| format!("{file}: `{command}`: {why}")));
        }
    }
    assert!(count > 100, "{count} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (command, is_taken) in [
        ("interlock plan adopt c2 -n ex", false),
        ("interlock plan adopt c2 -n ex --reason WHY", true),
        ("interlock plan adopt", true),
        ("interlock plan adept", false),
    ] {
        assert_eq!(commands::refusal(command).is_none(), is_taken, "{command}");
    }
}

#[test]
fn the_threat_model_names_tests_that_exist() {
    let missing = documents::missing(Path::new("docs/threat-model.md"));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_recipes_name_files_that_exist() {
    for (document, section) in [("CONTRIBUTING.md", "Recipes"), ("docs/architecture.md", "Where is")] {
        let missing = documents::missing_files(Path::new(document), section);
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }
}

/// "Under 200 lines, one folder and one line": the tutorial shows the example as it is.
#[test]
fn the_example_of_a_kind_is_small_and_shown_as_it_is() {
    let folder = "examples/add-a-kind/backup";
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let code = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let lines: usize = code.map(|file| std::fs::read_to_string(file).unwrap().lines().count()).sum();
    assert!(lines < 200, "{lines} lines");
    let line = std::fs::read_to_string("examples/add-a-kind/main.rs").unwrap();
    assert_eq!(line.matches("backup::KIND").count(), 1);
    let sources = [&format!("{folder}/mod.rs"), "examples/add-a-kind/main.rs"];
    let differs = documents::not_shown(Path::new("docs/add-a-kind.md"), &sources);
    assert!(differs.is_empty(), "not in the example:\n{}", differs.join("\n"));
}
