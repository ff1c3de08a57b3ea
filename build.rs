//! Tells the binary its commit and compiler, both of which can be given by the environment, and the pages about
//! refusals, which `interlock explain` prints.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// `DENIALS`: the id of each rule with a page of its own, and the page.
fn denials() -> Result<String, Box<dyn std::error::Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("docs/denials");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages =
        fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    pages.retain(|page| page.extension().is_some_and(|name| name == "md") && !page.ends_with("README.md"));
    pages.sort();
    let mut source =
        "/// The pages about refusals, by rule.\nstatic DENIALS: &[(&str, &str)] = &[\n".to_owned();
    for page in pages {
        let rule = page.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(source, "({rule:?}, include_str!({page:?})),")?;
    }
    source.push_str("];\n");
    Ok(source)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fs::write(Path::new(&env::var("OUT_DIR")?).join("denials.rs"), denials()?)?;
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
    Ok(())
}
