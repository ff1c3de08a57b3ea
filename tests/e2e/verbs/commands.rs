//! `interlock plan`, as its users type it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

use super::{CAP, Ground, PACKAGE, run_of, text};
use crate::support::interlock::{binary, interlock};
use crate::support::{Client, Interlock, Output, wait_until};

fn plan(user: &Client, ground: &Ground<'_>, arguments: &[&str]) -> Output {
    let out = interlock(user, &[&["plan", "-n", ground.ns.name()], arguments].concat(), "");
    println!(
        "$ interlock plan {}\n{}{}(exit code {})",
        arguments.join(" "),
        out.stdout,
        out.stderr,
        out.code
    );
    out
}

fn json_of(out: Output) -> Value {
    serde_json::from_str(&out.ok()).expect("JSON")
}

#[test]
fn without_a_plan_there_is_nothing_to_ask() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    let ask = |arguments: &[&str]| plan(&ground.user, &ground, arguments);
    assert!(ask(&["status", "demo"]).stderr.contains("does not exist"));
    ground.deployed_with("demo", &json!({"SIZE": "small"}));
    assert_eq!(ask(&["wait", "demo"]).code, 0);
    assert!(ask(&["abort", "demo", "--reason", "x"]).stderr.contains("no plan runs"));
    assert!(ask(&["retry", "demo", "--reason", "x"]).stderr.contains("no plan has failed"));
    assert_eq!(ask(&["abort", "demo"]).code, 2, "a reason is required");
}

#[test]
fn a_plan_is_looked_at_ended_and_retried() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    let ask = |arguments: &[&str]| plan(&ground.user, &ground, arguments);
    ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
    let held = ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    let run = run_of(&held, "deploy");
    ground.await_that("demo", "what it waits for is told", |found| {
        text(&super::condition(found, "Reconciling")["message"]).contains("demo-gate")
    });
    let status = ask(&["status", "--instance", "demo"]).ok();
    for line in [
        format!("plan deploy (run {run}): IN_PROGRESS"),
        "    step gate: IN_PROGRESS".to_owned(),
        format!("Reconciling True (Waiting): Service {}/demo-gate: ", ground.ns.name()),
    ] {
        assert!(status.contains(&line), "want {line:?} in:\n{status}");
    }
    let report = json_of(ask(&["status", "demo", "-o", "json"]));
    assert_eq!(report["current"], json!({"plan": "deploy", "run": run}));
    assert!(ask(&["status", "instance/demo", "-o", "yaml"]).ok().contains("operatorVersion: held-0.1.0"));
    assert!(!status.contains("is queued"), "what runs is not queued: {status}");
    assert_eq!(ask(&["wait", "demo", "--timeout", "1s"]).code, 3);

    let refused =
        ask(&["abort", "demo", "--run", "00000000-0000-4000-8000-000000000000", "--reason", "wrong"]);
    assert!(refused.stderr.contains("[verb-request]"), "{}", refused.stderr);
    let said = ask(&["abort", "demo", "--reason", "no address is left", "--wait"]).ok();
    assert!(
        said.contains(&format!(
            "plan deploy (run {run}) is FATAL_ERROR: aborted by alice: no address is left"
        )),
        "{said}"
    );
    assert_eq!(ask(&["wait", "demo"]).code, 1);

    ground.open("demo");
    let said = ask(&["retry", "demo", "--reason", "there are addresses again", "--wait"]).ok();
    assert!(said.contains("is to be retried"), "{said}");
    assert_eq!(ask(&["wait", "demo"]).code, 0);
    ground.await_settled("demo", "deploy", "COMPLETE");
    let table = ask(&["history", "demo"]).ok();
    for line in ["  retry by alice: there are addresses again", "  abort by alice: no address is left"] {
        assert!(table.contains(line), "want {line:?} in:\n{table}");
    }
    let runs = json_of(ask(&["history", "demo", "-o", "json"]));
    assert_eq!((&runs[1]["uid"], &runs[1]["asked"][0]["who"]), (&json!(run), &json!("alice")));
}

#[test]
fn a_plan_that_never_ends_is_ended_and_the_spec_goes_back() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    let ask = |arguments: &[&str]| plan(&ground.user, &ground, arguments);
    ground.deployed_with("demo", &json!({"SIZE": "small"}));
    ground.edit("demo", &json!({"DISK": "slow"}));
    let held = ground.await_step("demo", "not-allowed", 0, "IN_PROGRESS");
    let never = ground.await_that("demo", "it is told that nothing will end it", |found| {
        super::condition(found, "Stalled")["reason"] == "NeverDone"
    });
    assert_eq!(super::condition(&never, "Stalled")["status"], "True", "{held:#}");
    let said = ask(&["abort", "demo", "--revert", "--reason", "that disk stays", "--wait"]).ok();
    assert!(said.contains("reverts the spec"), "{said}");
    assert!(ground.get("demo")["spec"]["parameters"]["DISK"].is_null());
}

/// A wait takes more than the request does: it says so at once, and the request is carried out.
#[test]
fn who_may_not_watch_is_told_and_the_request_is_carried_out() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
    ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    let bob = ground.ns.user_with("bob", &rights(&["get", "patch", "abort"]));
    let refused_at_once = |arguments: &[&str], code: i32| {
        let began = Instant::now();
        let out = plan(&bob, &ground, &[arguments, &["--timeout", "1h"]].concat());
        assert_eq!(out.code, code, "{out}");
        assert!(out.stderr.contains("the verbs list and watch on instances.kudo.dev"), "{out}");
        assert!(began.elapsed() < CAP, "{:?}", began.elapsed());
    };
    refused_at_once(&["wait", "demo"], 1);
    refused_at_once(&["abort", "demo", "--reason", "it takes too long", "--wait"], 1);
    let ended = ground.await_settled("demo", "deploy", "FATAL_ERROR");
    let entry = &ended["status"]["planStatus"]["deploy"];
    assert_eq!(entry["message"], "aborted by bob: it takes too long", "{entry:#}");
}

#[test]
fn who_may_not_watch_a_deletion_is_told_and_it_goes_on() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    ground.create("demo", "lingering-0.1.0", &json!({}));
    ground.await_settled("demo", "deploy", "COMPLETE");
    let carol = ground.ns.user_with("carol", &rights(&["get", "delete"]));
    let began = Instant::now();
    let uninstall = ["package", "-n", ground.ns.name(), "uninstall", "--instance", "demo"];
    let out = interlock(&carol, &[&uninstall[..], &["--wait", "--timeout", "1h"]].concat(), "");
    assert_eq!(out.code, 1, "{out}");
    assert!(out.stderr.contains("the verbs list and watch on instances.kudo.dev"), "{out}");
    assert!(began.elapsed() < CAP, "{:?}", began.elapsed());
    let held = ground.await_step("demo", "cleanup", 0, "IN_PROGRESS");
    ground.ask("demo", &format!("abort/{}/nonce-0001", run_of(&held, "cleanup")), "nothing is left to clean");
    wait_until("the Instance is gone", CAP, || match ground.user.read(&ground.path("demo")) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.to_string()),
    });
}

#[test]
fn a_plan_is_triggered_listed_and_watched_to_its_end() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    let ask = |arguments: &[&str]| plan(&ground.user, &ground, arguments);
    let before = run_of(&ground.deployed_with("demo", &json!({})), "deploy");
    let said = ask(&["trigger", "demo", "--plan", "deploy", "--wait"]).ok();
    let again = run_of(&ground.await_settled("demo", "deploy", "COMPLETE"), "deploy");
    assert_ne!(before, again);
    let key = format!("instance {}/demo", ground.ns.name());
    assert!(said.starts_with(&format!("{key}: plan deploy (run {again}) is scheduled\n")), "{said}");
    assert!(said.ends_with(&format!("{key}: plan deploy is COMPLETE\n")), "{said}");
    assert_eq!(ask(&["status", "demo", "--watch"]).code, 0, "it ended well before");

    ground.edit("demo", &json!({"GATED": "true"}));
    ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    let refused = ask(&["trigger", "demo", "--plan", "not-allowed"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("is scheduled or runs\n  next:  wait with "),
        "{refused}"
    );
    let rows = ask(&["list"]).ok();
    assert!(rows.lines().any(|row| row.starts_with("demo ") && row.contains("IN_PROGRESS")), "{rows}");
    let all = json_of(interlock(&ground.user, &["plan", "list", "-n", ground.ns.name(), "-o", "json"], ""));
    assert_eq!(
        (&all[0]["name"], &all[0]["plan"], &all[0]["status"]),
        (&json!("demo"), &json!("deploy"), &json!("IN_PROGRESS"))
    );
    let plans = ask(&["list", "demo"]).ok();
    assert!(plans.lines().any(|row| row.starts_with("not-allowed ") && row.contains("NEVER_RUN")), "{plans}");

    // The end comes while it is watched.
    let (text, _, code) = watched(&ground, || ground.open("demo"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("plan deploy main/gate COMPLETE\n"), "{text}");
    assert!(text.ends_with(&format!("{key}: plan deploy is COMPLETE\n")), "{text}");

    ground.edit("demo", &json!({"DISK": "slow"}));
    ground.await_step("demo", "not-allowed", 0, "IN_PROGRESS");
    let (_, error, code) = watched(&ground, || {
        ask(&["abort", "demo", "--reason", "that disk stays"]).ok();
    });
    assert_eq!(code, Some(1), "{error}");
    assert!(error.starts_with("error: plan not-allowed ended in FATAL_ERROR: "), "{error}");
    assert!(error.contains("aborted by alice: that disk stays"), "{error}");
}

/// On a terminal the tree is drawn over itself until the plan ends.
#[test]
fn a_plan_is_drawn_on_a_terminal() {
    let ground = Ground::new(Interlock::shared().0, "commands", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
    ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal");
    let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("its size");
    let name = ptsname(&terminal, Vec::new()).expect("its name").into_string().expect("UTF-8");
    let open = || File::options().read(true).write(true).open(&name).expect("the terminal");
    let mut child = Command::new(binary())
        .args(["plan", "status", "demo", "--watch", "-n", ground.ns.name()])
        .env("KUBECONFIG", ground.user.kubeconfig())
        .stdin(open())
        .stdout(open())
        .stderr(open())
        .spawn()
        .expect("it starts");
    let mut drawn = String::new();
    let mut screen = File::from(terminal);
    let mut opened = false;
    let mut buffer = [0; 4096];
    // Reading fails when the last end of the terminal is closed.
    while let Ok(read @ 1..) = screen.read(&mut buffer) {
        drawn += &String::from_utf8_lossy(&buffer[..read]);
        if !opened && drawn.contains("waits for: ") {
            ground.open("demo");
            opened = true;
        }
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{drawn}");
    for part in [
        "\u{1b}[2Kplan deploy: IN_PROGRESS for ",
        "\u{1b}[2K└─ phase main: IN_PROGRESS\r\n",
        "\u{1b}[2K   ├─ step before: COMPLETE\r\n",
        "\u{1b}[2K   ├─ step gate: IN_PROGRESS",
        "\u{1b}[2K   ├─ step gate: COMPLETE\r\n",
        "\u{1b}[2Kplan deploy: COMPLETE, ",
        "\u{1b}[7A",
    ] {
        assert!(drawn.contains(part), "{part:?}: {drawn:?}");
    }
    assert!(
        drawn.ends_with(&format!("instance {}/demo: plan deploy is COMPLETE\r\n", ground.ns.name())),
        "{drawn:?}"
    );
}

/// Output and exit code of `plan status demo --watch`; this is done once its first line is there.
fn watched(ground: &Ground<'_>, then: impl FnOnce()) -> (String, String, Option<i32>) {
    let mut child = Command::new(binary())
        .args(["plan", "status", "demo", "--watch", "-n", ground.ns.name()])
        .env("KUBECONFIG", ground.user.kubeconfig())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut text = String::new();
    lines.read_line(&mut text).expect("a line");
    then();
    lines.read_to_string(&mut text).expect("the rest");
    let out = child.wait_with_output().expect("it ends");
    (text, String::from_utf8_lossy(&out.stderr).into_owned(), out.status.code())
}

fn rights(verbs: &[&str]) -> Value {
    json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": verbs}])
}
