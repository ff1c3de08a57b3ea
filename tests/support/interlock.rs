//! The real binary against a cluster: installed as it would be, started, killed, started again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use interlock::install::{self, Endpoint, InstallOptions, Part};
use interlock_core::api::meta;
use serde_json::Value;

use super::{Client, Cluster, free_port, process, resources, testbed, wait_until};

/// The binary under test: the one that cargo has built, or the one that `INTERLOCK_BINARY` names, which can be compiled
/// in another way.
pub fn binary() -> PathBuf {
    let named = std::env::var_os("INTERLOCK_BINARY").filter(|path| !path.is_empty());
    named.map_or_else(|| env!("CARGO_BIN_EXE_interlock").into(), PathBuf::from)
}

/// The program of an earlier version: the one that `INTERLOCK_PREVIOUS` names, or one that is built of an earlier commit.
pub fn previous() -> PathBuf {
    let named = std::env::var_os("INTERLOCK_PREVIOUS").filter(|path| !path.is_empty());
    named.map_or_else(|| process::built("tests/previous/build").join("interlock"), PathBuf::from)
}

/// Flags that every test process gets: short leases, and no long goodbye.
const TEST_FLAGS: [&str; 4] =
    ["--lease-duration=3s", "--renew-deadline=2s", "--retry-period=500ms", "--shutdown-delay=500ms"];

/// One process of Interlock; killed when dropped.
pub struct Interlock {
    program: PathBuf,
    arguments: Vec<String>,
    webhook_port: u16,
    ops_port: u16,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Interlock {
    /// The one that is installed on the shared cluster, for every namespace, with default
    /// flags. Started on first use.
    pub fn shared() -> (&'static Cluster, &'static Self) {
        static SHARED: LazyLock<Interlock> = LazyLock::new(|| {
            let process = Interlock::install(Cluster::shared(), &[]);
            process.await_requests_count(Cluster::shared());
            process
        });
        (Cluster::shared(), &SHARED)
    }

    /// Installs everything on a cluster that has nothing of ours yet, starts one process with
    /// further flags, and waits until it guards.
    pub fn install(cluster: &Cluster, flags: &[&str]) -> Self {
        let process = Self::prepare(cluster, flags);
        apply_installation(cluster, &process.options(flags));
        process.start();
        process.await_ready();
        process.await_guarding(cluster);
        process.await_settings(cluster);
        process
    }

    /// A further process on the same cluster, not started yet; registered by URL.
    pub fn prepare(cluster: &Cluster, flags: &[&str]) -> Self {
        let port = free_port();
        let url = format!("--webhook-url=https://127.0.0.1:{port}");
        let place = ["--webhook-bind-address=127.0.0.1", &url];
        Self::place(cluster, port, &[&place, flags].concat())
    }

    /// A replica behind the rendered Service, at an address of its own; not started yet.
    pub fn replica(cluster: &Cluster, address: &str, flags: &[&str]) -> Self {
        let bind = format!("--webhook-bind-address={address}");
        Self::place(cluster, meta::install::WEBHOOK_PORT, &[&[bind.as_str()], flags].concat())
    }

    fn place(cluster: &Cluster, webhook_port: u16, flags: &[&str]) -> Self {
        let ops_port = free_port();
        let log = cluster.dir().join("logs").join(format!("interlock-{ops_port}.log"));
        let mut arguments: Vec<String> = vec![
            "run".to_owned(),
            format!("--kubeconfig={}", cluster.user("interlock", &[]).kubeconfig().display()),
            format!("--webhook-port={webhook_port}"),
            format!("--ops-bind-address=127.0.0.1:{ops_port}"),
        ];
        arguments.extend(TEST_FLAGS.iter().chain(flags).map(|flag| (*flag).to_owned()));
        Self {
            program: binary(),
            arguments: once_each(arguments),
            webhook_port,
            ops_port,
            log,
            child: Mutex::new(None),
        }
    }

    /// The same with another program.
    pub fn running(mut self, program: PathBuf) -> Self {
        self.program = program;
        self
    }

    /// Options of the rendered installation that fit this process's flags.
    pub fn options(&self, flags: &[&str]) -> InstallOptions {
        let mut options = InstallOptions {
            endpoint: Endpoint::Url {
                base: format!("https://127.0.0.1:{}", self.webhook_port),
                ca_bundle: Vec::new(),
            },
            ..InstallOptions::default()
        };
        if flags.contains(&"--freeze=same-plan") {
            options.freeze = interlock_core::admission::Freeze::SamePlan;
        }
        let docs = flags.iter().find_map(|flag| flag.strip_prefix("--docs-url="));
        options.docs = docs.map(|url| url.parse().expect("an address"));
        if let Some(names) = flags.iter().find_map(|flag| flag.strip_prefix("--watch-namespaces=")) {
            options.watch_namespaces = names.split(',').map(str::to_owned).collect();
        }
        options
    }

    /// Starts the process; it must not run.
    #[track_caller]
    pub fn start(&self) {
        self.start_by(process::tethered(&testbed::BIN.join("testbed"), &self.program));
    }

    /// The same for measuring from the exec on: the tether is a program of its own, which takes a
    /// tenth of a second to begin. The process may outlive a test process that is killed.
    #[track_caller]
    pub fn start_untethered(&self) {
        self.start_by(Command::new(&self.program));
    }

    #[track_caller]
    fn start_by(&self, mut command: Command) {
        let mut child = self.child();
        assert!(child.is_none(), "it runs already");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).expect("its log");
        command
            .args(&self.arguments)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("its log"))
            .stderr(log);
        *child = Some(process::spawn(command).expect("interlock starts"));
    }

    /// `kill -9`.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, then waits for the end, and gives the exit code.
    #[track_caller]
    pub fn terminate(&self) -> Option<i32> {
        let mut child = self.child().take().expect("it runs");
        process::signal(child.id(), "TERM");
        let status = wait_until("interlock ends after SIGTERM", Duration::from_secs(60), || {
            child.try_wait().map_err(|e| e.to_string())?.ok_or_else(|| "it still runs".to_owned())
        });
        status.code()
    }

    /// SIGSTOP (`true`) or SIGCONT.
    pub fn freeze(&self, frozen: bool) {
        let child = self.child();
        process::signal(child.as_ref().expect("it runs").id(), if frozen { "STOP" } else { "CONT" });
    }

    pub fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    pub fn webhook_port(&self) -> u16 {
        self.webhook_port
    }

    pub fn ops_port(&self) -> u16 {
        self.ops_port
    }

    /// GET on the plain port of health and metrics; `None` = no answer.
    pub fn ops(&self, path: &str) -> Option<(u16, String)> {
        http_get(self.ops_port, path)
    }

    /// Whether it holds the lease of the controllers, as it says.
    pub fn leads(&self) -> bool {
        let metrics = self.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
        metrics.contains("leader_election_master_status{name=\"interlock\"} 1")
    }

    /// Waits until `/readyz` says 200.
    #[track_caller]
    pub fn await_ready(&self) {
        wait_until("interlock is ready", Duration::from_secs(60), || {
            if let Some(child) = self.child().as_mut()
                && let Ok(Some(status)) = child.try_wait()
            {
                panic!("interlock ended ({status}):\n{}", tail(&self.log, 40));
            }
            match self.ops("/readyz?verbose") {
                Some((200, _)) => Ok(()),
                answer => Err(format!("/readyz: {answer:?}; its log ends:\n{}", tail(&self.log, 20))),
            }
        });
    }

    /// Waits until every entry of the webhook configurations has a CA bundle.
    #[track_caller]
    pub fn await_guarding(&self, cluster: &Cluster) {
        let admin = cluster.admin();
        wait_until("the webhook configurations have their CA bundles", Duration::from_secs(60), || {
            for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
                let list = admin.read(&format!("/apis/admissionregistration.k8s.io/v1/{kind}")).ok();
                for entry in list["items"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .flat_map(|c| c["webhooks"].as_array())
                    .flatten()
                {
                    let bundle = entry["clientConfig"]["caBundle"].as_str().unwrap_or_default();
                    if bundle.is_empty() {
                        return Err(format!("{} has none", entry["name"]));
                    }
                }
            }
            Ok(())
        });
    }

    /// Waits until the leader has made the settings: `kubectl apply` that finds none, and is overtaken by the
    /// leader, fails.
    #[track_caller]
    pub fn await_settings(&self, cluster: &Cluster) {
        let path = "/apis/interlock.dev/v1alpha1/interlocks/default";
        wait_until("the settings are made", Duration::from_secs(60), || match cluster.admin().read(path) {
            answer if answer.code == 200 => Ok(()),
            answer => Err(answer.to_string()),
        });
    }

    /// Waits until what people ask of a run counts: not before the policy that says who may has been
    /// seen to be in force for a while.
    #[track_caller]
    pub fn await_requests_count(&self, cluster: &Cluster) {
        let path = format!("/api/v1/namespaces/interlock-system/configmaps/{}", meta::install::ENFORCED);
        wait_until("requests about runs count", Duration::from_secs(60), || {
            match cluster.admin().read(&path) {
                answer if answer.code == 200 => Ok(()),
                answer => Err(answer.to_string()),
            }
        });
    }

    /// Everything that the process has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Prints the ends of the logs of all processes on a cluster.
    pub fn print_logs(cluster_dir: &Path) {
        for entry in std::fs::read_dir(cluster_dir.join("logs")).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("interlock-") {
                eprintln!("--- {}\n{}", entry.path().display(), tail(&entry.path(), 40));
            }
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Interlock {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs the binary to its end as a user, for example `interlock(&user, &["package", ...])`.
pub fn interlock(user: &Client, arguments: &[&str], input: &str) -> super::Output {
    user.command(&binary(), arguments, input)
}

/// Applies what `interlock render` prints, for a process outside the cluster, with packages
/// bound to cluster-admin.
#[track_caller]
pub fn apply_installation(cluster: &Cluster, options: &InstallOptions) {
    apply_installation_without(cluster, options, &[]);
}

/// The same without the definitions of these plurals.
#[track_caller]
pub fn apply_installation_without(cluster: &Cluster, options: &InstallOptions, plurals: &[&str]) {
    let admin = cluster.admin();
    let options = InstallOptions { packages_cluster_admin: true, ..options.clone() };
    let mut objects = install::objects(Part::All, &options).unwrap();
    // Its pods would be fake ones: what the Deployment would run is started by the test.
    objects.retain(|object| object["kind"] != "Deployment");
    let left_out = |object: &Value| {
        object["spec"]["names"]["plural"].as_str().is_some_and(|plural| plurals.contains(&plural))
    };
    objects.retain(|object| !left_out(object));
    apply(&admin, objects);
    await_definitions(&admin);
}

/// The rights that are opt-in, which options add to those of the default ones.
pub fn opt_in_rights(options: &InstallOptions) -> Vec<Value> {
    let plain = install::objects(Part::Rbac, &InstallOptions::default()).unwrap();
    let mut all = install::objects(Part::Rbac, options).unwrap();
    all.retain(|object| !plain.contains(object));
    all
}

/// Waits until every CustomResourceDefinition that is there to stay is established. `kubectl wait`
/// ends with an error where one has no conditions yet.
#[track_caller]
pub fn await_definitions(admin: &Client) {
    wait_until("every definition is established", Duration::from_secs(120), || {
        let found = admin.read("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        let items = found.body["items"].as_array().ok_or_else(|| found.to_string())?;
        let established = |crd: &Value| {
            let conditions = crd["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
            conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
        };
        let open =
            items.iter().find(|crd| crd["metadata"]["deletionTimestamp"].is_null() && !established(crd));
        open.map_or(Ok(()), |crd| Err(crd["metadata"]["name"].to_string()))
    });
}

/// Server-side apply of objects, in their order, as `kubectl apply --server-side --force-conflicts` does it.
#[track_caller]
pub fn apply(client: &Client, objects: Vec<Value>) {
    for object in objects {
        let path = format!("{}?fieldManager=kubectl&force=true", resources::path_of(&object));
        client.server_side_apply(&path, &object).ok();
    }
}

/// A flag that is given again replaces the earlier one.
fn once_each(arguments: Vec<String>) -> Vec<String> {
    let name = |a: &String| a.split('=').next().unwrap_or_default().to_owned();
    let mut kept: Vec<String> = Vec::new();
    for argument in arguments {
        kept.retain(|k| name(k) != name(&argument));
        kept.push(argument);
    }
    kept
}

/// A plain HTTP/1.0 GET.
pub fn http_get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split_whitespace().nth(1)?.parse().ok()?, body.to_owned()))
}

fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
