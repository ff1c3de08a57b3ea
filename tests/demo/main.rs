//! `make run` as a newcomer does it: the commands that it prints are tried, and what they say is
//! what the README shows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// It takes half a minute; a busy machine gets ten times that.
const CAP: Duration = Duration::from_secs(300);
const README: &str = include_str!("../../README.md");

fn demo(folder: &Path) -> Command {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/hack/demo"));
    command.arg("--once").env("INTERLOCK_RUN_DIR", folder);
    command.env("INTERLOCK_BIN", env!("CARGO_BIN_EXE_interlock"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut child: Child) -> Output {
    let pid = child.id().to_string();
    let watch = std::thread::spawn(move || {
        let began = Instant::now();
        while began.elapsed() < CAP && Path::new(&format!("/proc/{pid}/stat")).exists() {
            // Between two looks; how long the test takes does not hang on it.
            std::thread::sleep(Duration::from_millis(200));
            if std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z ")) {
                return;
            }
        }
        // It stops what it started.
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
    });
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            from.read_to_end(&mut text).unwrap();
            text
        })
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let status = child.wait().unwrap();
    watch.join().unwrap();
    Output { status, stdout, stderr }
}

/// Without what differs from run to run: times, ages and ids.
fn timeless(text: &str) -> String {
    let age = |word: &str| {
        let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        word.ends_with(['d', 'h', 'm', 's']) && word.split_terminator(['d', 'h', 'm', 's']).all(number)
    };
    let word = |word: &str| match word {
        _ if word.starts_with("202") && word.ends_with('Z') => "TIME".to_owned(),
        _ if age(word) => "AGE".to_owned(),
        // A request of a plan names the run, and itself.
        _ if word.contains("request=abort/") => "REQUEST".to_owned(),
        _ => word.to_owned(),
    };
    text.lines().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// What the README shows below a command, up to the next one.
fn shown(command: &str) -> String {
    let after =
        README.split_once(&format!("$ {command}")).unwrap_or_else(|| panic!("README: no {command}")).1;
    let (_, after) = after.split_once('\n').unwrap();
    let end = after.find("\n\n").into_iter().chain(after.find("\n```")).min().unwrap();
    after[..=end].to_owned()
}

#[test]
fn what_make_run_says_is_what_the_readme_shows() {
    if ["INTERLOCK_TEST_CLUSTER", "KUBEBUILDER_ASSETS"].iter().any(|name| std::env::var_os(name).is_some()) {
        eprintln!("skipped: the demo is tried on the testbed, and the tests use another control plane");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // Where nobody else has it: the demo takes the next port then, and says so.
    let _occupied = TcpListener::bind("127.0.0.1:9443");
    let child = demo(&run).spawn().unwrap();
    let began = Instant::now();
    while !run.join("pid").exists() {
        assert!(began.elapsed() < CAP, "the first does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = demo(&run).output().unwrap();
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{told}");
    assert!(told.contains("a testbed runs already: process ") && told.contains("-2 make run"), "{told}");

    let Output { status, stdout, stderr } = ended(child);
    let (told, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{told}\n{errors}");
    assert!(errors.contains("port 9443 is occupied: using "), "{errors}");
    // Something is seen before the control plane, which takes minutes to build.
    let offline = told.split("== building the testbed").next().unwrap();
    for part in ["$ interlock check -f examples/first/operator", "refused (422 Invalid)", "[plan-running]"] {
        assert!(offline.contains(part), "{part} is not in\n{offline}");
    }
    let said = timeless(&format!("{told}\n{errors}"));
    let found = [
        "kubectl apply -f ~/.cache/interlock/run/change-1.yaml",
        "kubectl apply -f ~/.cache/interlock/run/change-2.yaml",
        "curl 'http://127.0.0.1:8080/readyz?verbose'",
    ];
    for command in found {
        let shown = timeless(&shown(command));
        assert!(said.contains(&shown), "the README shows\n{shown}\nand this was said:\n{said}");
    }
}
