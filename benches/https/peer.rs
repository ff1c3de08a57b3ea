//! The same decision written the usual Go way, when its source and Go are there.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::child::Child;

const SOURCE: &str = "peers/controller-runtime-webhook";
/// Its program has the port in its source.
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9444);

/// Builds it once, into a cache outside the work tree, and starts it on one core.
pub fn start(folder: &Path, core: &str) -> Result<(Child, SocketAddr), String> {
    let program = program()?;
    let address = SocketAddr::from(ADDRESS);
    if TcpStream::connect(address).is_ok() {
        return Err(format!("somebody else listens on {address}; stop that and start again"));
    }
    let mut child = Child::pinned(core, &program, &[folder]);
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_err() {
        if child.ended() || Instant::now() > until {
            return Err(format!("it does not listen on {address} after 10 s"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok((child, address))
}

fn program() -> Result<PathBuf, String> {
    let shared = std::env::var_os("INTERLOCK_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let source = shared.join(SOURCE);
    if !source.is_dir() {
        return Err(format!(
            "{} is not there; INTERLOCK_SHARED names the folder that holds it",
            source.display()
        ));
    }
    let cache = cache()?.join(SOURCE);
    let program = cache.join("webhook");
    let same = |from: &str, to: &str| {
        let read = |path: PathBuf| std::fs::read(path).ok();
        read(source.join(from)) == read(cache.join(to))
    };
    // `go mod tidy` writes into go.mod, so what was copied is kept beside it.
    if program.is_file() && same("main.go", "main.go") && same("go.mod.txt", "go.mod.txt") {
        return Ok(program);
    }
    println!("https: building {} once (some minutes)", source.display());
    build(&source, &cache).map(|()| program)
}

fn build(source: &Path, cache: &Path) -> Result<(), String> {
    let copy = |from: &str, to: &str| {
        std::fs::read(source.join(from))
            .and_then(|bytes| std::fs::write(cache.join(to), bytes))
            .map_err(|error| format!("{from} cannot be copied to {}: {error}", cache.display()))
    };
    std::fs::create_dir_all(cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    copy("main.go", "main.go")?;
    copy("go.mod.txt", "go.mod")?;
    for arguments in [&["mod", "tidy"][..], &["build", "-buildvcs=false", "-o", "webhook", "."]] {
        let go = Command::new("go").args(arguments).current_dir(cache).env("GOFLAGS", "-mod=mod").output();
        let output = go.map_err(|error| format!("go is needed to build it: {error}"))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`go {}` failed: {}", arguments.join(" "), error.trim()));
        }
    }
    copy("go.mod.txt", "go.mod.txt")
}

/// Where the testbed is built, too.
fn cache() -> Result<PathBuf, String> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("INTERLOCK_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|path| path.join("interlock")))
        .or_else(|| variable("HOME").map(|path| path.join(".cache/interlock")))
        .ok_or_else(|| "HOME is not set; INTERLOCK_CACHE names a folder to build in".to_owned())
}
