//! Tells the binary its commit and compiler; both can be given by the environment.

use std::env;
use std::process::Command;

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=INTERLOCK_COMMIT");
    // Following HEAD would rebuild the library at every commit, which only a release is worth.
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let head = || {
        let head = first_line(Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"]))?;
        println!("cargo::rerun-if-changed={head}");
        first_line(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]))
    };
    let commit = env::var("INTERLOCK_COMMIT").ok().filter(|c| !c.is_empty());
    let commit = commit.or_else(|| if release { head() } else { Some("dev".to_owned()) });
    println!("cargo::rustc-env=INTERLOCK_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = first_line(Command::new(rustc).arg("--version"));
    println!("cargo::rustc-env=INTERLOCK_RUSTC={}", rustc.unwrap_or_else(|| "rustc unknown".to_owned()));
}
