//! Envoy itself, in front of nothing.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The program, fetched on first use.
static ENVOY: LazyLock<PathBuf> = LazyLock::new(|| {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/envoy/build");
    let build = Command::new(&script).stderr(Stdio::inherit()).output();
    let build = build.unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    assert!(build.status.success(), "{} failed; why is printed above", script.display());
    Path::new(String::from_utf8_lossy(&build.stdout).trim()).join("envoy")
});

/// Envoys that are started at a time.
const AT_A_TIME: usize = 2;

fn envoy(configuration: &Value, folder: &Path) -> Command {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let file = folder.join(format!("{}.json", FILES.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&file, configuration.to_string()).unwrap();
    let mut command = Command::new(&*ENVOY);
    command.args(["--disable-hot-restart", "--concurrency", "1", "-l", "critical", "-c"]).arg(file);
    command
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("envoy");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn typed(message: &str, mut fields: Value) -> Value {
    fields["@type"] = format!("type.googleapis.com/envoy.extensions.{message}").into();
    fields
}

/// A listener with a route to a cluster without hosts, limits of the route, and filters before the router.
fn configuration(port: u16, rate_limits: &[Value], mut filters: Vec<Value>) -> Value {
    let router = typed("filters.http.router.v3.Router", json!({}));
    filters.push(json!({"name": "envoy.filters.http.router", "typed_config": router}));
    let route = json!({"name": "route", "match": {"prefix": "/"}, "route": {"cluster": "none"}});
    let host = json!({"name": "host", "domains": ["*"], "rate_limits": rate_limits, "routes": [route]});
    let manager = typed(
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        json!({"stat_prefix": "l", "route_config": {"virtual_hosts": [host]}, "http_filters": filters}),
    );
    let filter = json!({"name": "envoy.filters.network.http_connection_manager", "typed_config": manager});
    json!({"static_resources": {
        "clusters": [{"name": "none", "type": "STATIC"}],
        "listeners": [{
            "name": "l", "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
            "filter_chains": [{"filters": [filter]}],
        }],
    }})
}

/// An expression as a descriptor of a limit, as it is rendered.
fn descriptor(expression: &str) -> Value {
    let fields = json!({"descriptor_key": "own", "text": expression});
    let config = typed("rate_limit_descriptors.expr.v3.Descriptor", fields);
    json!({"actions": [{"extension": {"name": "envoy.rate_limit_descriptors.expr", "typed_config": config}}]})
}

/// The groups of expressions that Envoy refuses as limits of one route, with what it says.
pub fn refusals(groups: &[Vec<String>]) -> Vec<(Vec<String>, String)> {
    let (folder, next, refused) = (folder(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let validate = |group: &Vec<String>| {
        let limits: Vec<Value> = group.iter().map(|expression| descriptor(expression)).collect();
        let out = envoy(&configuration(0, &limits, Vec::new()), &folder)
            .args(["--mode", "validate"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success() || said.contains("error initializing configuration"), "{said}");
        if !out.status.success() {
            refused.lock().unwrap().push((group.clone(), said));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    validate(group);
                }
            });
        }
    });
    refused.into_inner().unwrap()
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The values that Envoy finds for expressions while it handles a request, before it forwards it; none where an
/// expression fails.
pub fn values(expressions: &[String]) -> Vec<Option<String>> {
    let header = |key: String, value: String| json!({"append": {"header": {"key": key, "value": value}}});
    let numbered =
        |(n, expression): (usize, &String)| header(format!("x-{n}"), format!("%CEL({expression})%"));
    let asked: Vec<Value> = expressions.iter().enumerate().map(numbered).collect();
    let answered: Vec<Value> =
        (0..expressions.len()).map(|n| header(format!("x-{n}"), format!("%REQ(x-{n})%"))).collect();
    let mutations = json!({"mutations": {"request_mutations": asked, "response_mutations": answered}});
    let config = typed("filters.http.header_mutation.v3.HeaderMutation", mutations);
    let filter = json!({"name": "mutation", "typed_config": config});

    let answer = (0..5).find_map(|_| {
        // Another process may take the port in between; then Envoy ends.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = envoy(&configuration(port, &[], vec![filter.clone()]), &folder()).spawn().unwrap();
        ask(port, &mut Running(child))
    });
    let answer = answer.expect("Envoy answers");
    let value = |n: usize| {
        let key = format!("x-{n}: ");
        answer.lines().find_map(|line| line.strip_prefix(&key)).map(|value| value.trim().to_owned())
    };
    // Without a value the header is absent, and formatted as a dash.
    (0..expressions.len()).map(|n| value(n).filter(|value| !["", "-"].contains(&value.as_str()))).collect()
}

/// What Envoy answers to the request, once it listens; none where it has ended.
fn ask(port: u16, envoy: &mut Running) -> Option<String> {
    let begun = Instant::now();
    loop {
        if envoy.0.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "Envoy does not listen");
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let request = "POST /a/b?q=1&r=2 HTTP/1.1\r\nhost: www.example.org\r\nuser-agent: test\r\nreferer: a\r\n\
            X-User: alice\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        return Some(answer);
    }
}
