//! The process dies before any of the writes that a request leads to: it is carried out all the
//! same, and once.

use serde_json::{Value, json};

use super::{CAP, Ground, PACKAGE, history, run_of, text};
use crate::support::cut_off::{CutOff, before_each_write};
use crate::support::{Cluster, Interlock, announce, wait_until};

/// A request, from what comes before it to what it leads to.
struct Scenario {
    name: &'static str,
    /// Makes `demo`, and gives the request.
    before: fn(&Ground<'_>) -> String,
    /// Whether `demo` is as it must be in the end.
    holds: fn(&Value) -> bool,
    /// What the history says: result and what was asked, newest first.
    history: &'static [(&'static str, &'static [&'static str])],
}

const SCENARIOS: [Scenario; 6] = [
    Scenario {
        name: "abort",
        before: |ground| {
            ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
            format!(
                "abort/{}/nonce-0001",
                run_of(&ground.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy")
            )
        },
        holds: |found| found["status"]["planStatus"]["deploy"]["status"] == "FATAL_ERROR",
        history: &[("FATAL_ERROR", &["abort"])],
    },
    Scenario {
        name: "revert",
        before: |ground| {
            ground.deployed_with("demo", &json!({"SIZE": "small"}));
            ground.edit("demo", &json!({"GATED": "true", "SIZE": null}));
            let held = ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
            format!("abort-revert/{}/nonce-0001", run_of(&held, "deploy"))
        },
        holds: |found| {
            found["spec"]["parameters"] == json!({"SIZE": "small"})
                && found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE"
        },
        history: &[("COMPLETE", &[]), ("FATAL_ERROR", &["abort-revert"]), ("COMPLETE", &[])],
    },
    Scenario {
        name: "retry",
        before: |ground| {
            ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
            let run = run_of(&ground.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy");
            ground.ask("demo", &format!("abort/{run}/nonce-0001"), "not yet");
            ground.await_settled("demo", "deploy", "FATAL_ERROR");
            ground.open("demo");
            format!("retry/{run}/nonce-0002")
        },
        holds: |found| found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE",
        history: &[("COMPLETE", &["retry"]), ("FATAL_ERROR", &["abort"])],
    },
    Scenario {
        name: "restart",
        before: |ground| format!("restart/{}/nonce-0002", paused(ground)),
        holds: |found| found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE",
        history: &[("COMPLETE", &[]), ("FATAL_ERROR", &["pause", "restart"])],
    },
    Scenario {
        name: "resume",
        before: |ground| format!("resume/{}/nonce-0002", paused(ground)),
        holds: |found| found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE",
        history: &[("COMPLETE", &["pause", "resume"])],
    },
    Scenario {
        name: "pause",
        before: |ground| {
            ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
            let held = ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
            format!("pause/{}/nonce-0001", run_of(&held, "deploy"))
        },
        holds: |found| super::condition(found, "Reconciling")["reason"] == "Paused",
        history: &[("IN_PROGRESS", &["pause"])],
    },
];

/// A run that waits at an open gate as it is paused.
fn paused(ground: &Ground<'_>) -> String {
    let request = (SCENARIOS[5].before)(ground);
    ground.ask("demo", &request, "not yet");
    ground.await_that("demo", "it is paused", |found| {
        (SCENARIOS[5].holds)(found) && super::asks_nothing(found)
    });
    ground.open("demo");
    request.split('/').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_request_survives_the_death_of_the_process_before_any_write() {
    let cluster = Cluster::own(&[]);
    let way = CutOff::start(&cluster, &cluster.user("interlock", &[]));
    let process = Interlock::install(&cluster, &[&way.flag()]);
    process.await_requests_count(&cluster);
    for scenario in &SCENARIOS {
        let writes = before_each_write(|writes| dies(scenario, writes, &cluster, &way, &process));
        announce(&format!("{}: carried out once by {writes} writes", scenario.name));
        assert!(writes >= 2, "{}: {writes}", scenario.name);
    }
}

/// One request, with a process that gets through this many writes; whether it died.
fn dies(scenario: &Scenario, writes: usize, cluster: &Cluster, way: &CutOff, process: &Interlock) -> bool {
    let ground = Ground::new(cluster, scenario.name, PACKAGE);
    let request = (scenario.before)(&ground);
    let run = request.split('/').nth(1).unwrap_or_default().to_owned();
    let over = |found: &Value| {
        let rests = super::is_idle(found) && text(&found["spec"]["planExecution"]["uid"]).is_empty();
        super::asks_nothing(found) && (scenario.holds)(found) && (rests || scenario.name == "pause")
    };
    way.after(writes);
    ground.ask("demo", &request, "so that it ends");
    let died = wait_until("the request is carried out, or the process is cut off", CAP, || {
        let found = ground.get("demo");
        // Before the request is seen, what was asked for may hold already.
        match (way.is_cut(), over(&found)) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            _ => Err(format!("{found:#}")),
        }
    });
    if died {
        way.restart(process);
    }
    way.mend();
    let done = ground.await_that("demo", "the request is carried out", over);
    let told: Vec<(String, Vec<String>)> = history(&done)
        .iter()
        .map(|run| {
            let asked = run["asked"].as_array().cloned().unwrap_or_default();
            (text(&run["result"]).to_owned(), asked.iter().map(|a| text(&a["verb"]).to_owned()).collect())
        })
        .collect();
    let expected: Vec<(String, Vec<String>)> = scenario
        .history
        .iter()
        .map(|(result, asked)| ((*result).to_owned(), asked.iter().map(|a| (*a).to_owned()).collect()))
        .collect();
    assert_eq!(told, expected, "{} after {writes} writes: {done:#}", scenario.name);
    if scenario.name == "retry" {
        assert_eq!(ground.writer("demo-before"), run, "what was finished is not done again");
    }
    died
}

/// Between the end of a run and the way back somebody edits: the newer edit holds, and the history
/// and an Event say what became of the request.
#[test]
fn an_edit_before_the_way_back_is_carried_out_and_not_reverted() {
    let cluster = Cluster::own(&[]);
    let way = CutOff::start(&cluster, &cluster.user("interlock", &[]));
    let process = Interlock::install(&cluster, &[&way.flag()]);
    process.await_requests_count(&cluster);
    let ground = Ground::new(&cluster, "overtaken", PACKAGE);
    let request = (SCENARIOS[1].before)(&ground);
    way.after(1);
    ground.ask("demo", &request, "so that it ends");
    wait_until("the run has ended, and the next write is kept back", CAP, || {
        let found = ground.get("demo");
        let ended = found["status"]["planStatus"]["deploy"]["status"] == "FATAL_ERROR";
        if ended && way.is_cut() { Ok(()) } else { Err(format!("{found:#}")) }
    });
    // It still answers.
    ground.edit("demo", &json!({"GATED": "false", "SIZE": "large"}));
    process.kill();
    way.mend();
    process.start();
    process.await_ready();
    let done = ground.await_settled("demo", "deploy", "COMPLETE");
    assert_eq!(done["spec"]["parameters"], json!({"GATED": "false", "SIZE": "large"}), "{done:#}");
    let history = history(&done);
    let asked = &history[1]["asked"][0];
    assert_eq!(text(&history[1]["result"]), "FATAL_ERROR", "{history:#?}");
    assert_eq!(text(&asked["verb"]), "abort-revert");
    assert!(text(&asked["dropped"]).contains("the newer edit holds"), "{asked}");
    wait_until("an Event says so", CAP, || {
        let events = ground.events("RequestDropped");
        if events.iter().any(|e| e.contains("not reverted")) { Ok(()) } else { Err(format!("{events:?}")) }
    });
}
