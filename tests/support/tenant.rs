//! A hostile tenant, who may do everything in one namespace and tries to harm the process that guards
//! all of them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use interlock_core::api::meta;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::ground::instance;
use super::port::WebhookPort;
use super::{Cluster, Interlock, Namespace};

/// What the tenant does; each can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingredient {
    /// Templates that compile regular expressions of a size that multiplies.
    Regex,
    /// Templates whose output is a YAML document of aliases.
    OutputAliases,
    /// Templates whose output has 8 MB: one object.
    LargeOutput,
    /// Templates whose output has 8 MB: forty objects, which an API server refuses.
    ManyObjects,
    /// OperatorVersions whose defaults of array parameters are documents of aliases, tried without storing them.
    ParameterAliases,
    /// Connections to the webhook port that have carried one request.
    IdleConnections,
    /// Instances of 1.4 MB that refer to OperatorVersions which are not there.
    WaitingReviews,
}

impl Ingredient {
    /// Everything.
    pub const ALL: [Self; 7] = [
        Self::Regex,
        Self::OutputAliases,
        Self::LargeOutput,
        Self::ManyObjects,
        Self::ParameterAliases,
        Self::IdleConnections,
        Self::WaitingReviews,
    ];

    /// The one of a name such as `output-aliases`.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ingredient| ingredient.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Regex => "regex",
            Self::OutputAliases => "output-aliases",
            Self::LargeOutput => "large-output",
            Self::ManyObjects => "many-objects",
            Self::ParameterAliases => "parameter-aliases",
            Self::IdleConnections => "idle-connections",
            Self::WaitingReviews => "waiting-reviews",
        }
    }

    /// What a template of its package says; `None` = it is no package.
    fn template(self) -> Option<&'static str> {
        match self {
            Self::Regex => Some(REGEX),
            Self::OutputAliases => Some(OUTPUT_ALIASES),
            Self::LargeOutput => Some(LARGE_OUTPUT),
            Self::ManyObjects => Some(MANY_OBJECTS),
            Self::ParameterAliases | Self::IdleConnections | Self::WaitingReviews => None,
        }
    }
}

const REGEX: &str = r#"{{ range until 40000 }}{{ $x := regexMatch `(\pL{60}){60}` "x" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
"#;

const OUTPUT_ALIASES: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {text: &a "{{ repeat 300000 "x" }}"}
all: [{{ range until 6000 }}*a, {{ end }}]
"#;

const LARGE_OUTPUT: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {text: "{{ repeat 8000000 "x" }}"}
"#;

const MANY_OBJECTS: &str = r#"{{ range $i := until 40 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $.Name }}-{{ $i }}"}
data: {"no key": "{{ repeat 200000 "x" }}"}
{{ end }}
"#;

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    pub instances: usize,
    pub connections: usize,
    pub reviews: usize,
}

/// From where the tenant connects: not from where the API server does.
const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 66));

/// A guard that is held up answers nothing, and is measured all the same.
const SETTLED: Duration = Duration::from_secs(10);

/// One at work; it stops when dropped.
pub struct Tenant {
    /// Of its own, so that it does not hold up whoever measures; `None` once it stops.
    runtime: Option<Runtime>,
    tried: Arc<AtomicUsize>,
}

impl Tenant {
    /// Begins, and comes back when as many requests were answered as there are Instances, or after
    /// [`SETTLED`].
    pub fn start(
        cluster: &Cluster,
        interlock: &Interlock,
        ns: &Namespace<'_>,
        ingredients: &[Ingredient],
        measure: Measure,
    ) -> Self {
        let user = ns.user("mallory");
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let client = runtime.block_on(user.another_kube());
        let tenant = Self { runtime: Some(runtime), tried: Arc::default() };
        let packages: Vec<(&str, &str)> =
            ingredients.iter().filter_map(|i| Some((i.name(), i.template()?))).collect();
        for (name, template) in &packages {
            let path = ns.path(meta::KUDO_API_VERSION, "operatorversions", "");
            user.post(&path, &operator_version(name, template)).ok();
        }
        let instances = if packages.is_empty() { 0 } else { measure.instances };
        for number in 0..instances {
            let (package, _) = packages[number % packages.len()];
            let path = ns.path(meta::KUDO_API_VERSION, "instances", "");
            let name = format!("{package}-{number}");
            let object = instance(&name, &format!("{package}-0.1.0"), &json!({}));
            tenant.keep_busy(&client, path, name, object);
        }
        for ingredient in ingredients {
            match ingredient {
                Ingredient::ParameterAliases => {
                    let path = ns.path(meta::KUDO_API_VERSION, "operatorversions", "");
                    let told =
                        user.kubectl_in(&["create", "--dry-run=server", "-f", "-"], &aliased().to_string());
                    assert!(told.stderr.contains("uses a YAML alias"), "the default is read: {told}");
                    tenant.repeat(&client, &path, &aliased());
                }
                Ingredient::WaitingReviews => {
                    let path = ns.path(meta::KUDO_API_VERSION, "instances", "");
                    let object =
                        instance("waiting", "not-there-0.1.0", &json!({"TEXT": "x".repeat(1_400_000)}));
                    for _ in 0..measure.reviews {
                        tenant.repeat(&client, &path, &object);
                    }
                }
                Ingredient::IdleConnections => {
                    let port = WebhookPort::of(cluster, interlock);
                    (0..measure.connections).for_each(|_| tenant.spawn(stay_connected(port.clone())));
                }
                Ingredient::Regex
                | Ingredient::OutputAliases
                | Ingredient::LargeOutput
                | Ingredient::ManyObjects => {}
            }
        }
        let began = Instant::now();
        while tenant.tried() < instances && began.elapsed() < SETTLED {
            std::thread::sleep(Duration::from_millis(50));
        }
        tenant
    }

    /// Requests that were answered, in whatever way.
    pub fn tried(&self) -> usize {
        self.tried.load(Ordering::Relaxed)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(task));
        }
    }

    /// Creates an Instance and edits it every few seconds, so that it never is at rest for long: what is
    /// refused meanwhile is refused.
    fn keep_busy(&self, client: &kube::Client, path: String, name: String, object: Value) {
        let (client, tried) = (client.clone(), self.tried.clone());
        self.spawn(async move {
            let create = Request::post(&path).header("Content-Type", "application/json");
            let create = create.body(object.to_string().into_bytes()).expect("a request");
            let _ = client.request::<Value>(create).await;
            tried.fetch_add(1, Ordering::Relaxed);
            for number in 0_u64.. {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let patch = json!({"spec": {"parameters": {"NUMBER": number.to_string()}}});
                let edit = Request::patch(format!("{path}/{name}"));
                let edit = edit.header("Content-Type", "application/merge-patch+json");
                let edit = edit.body(patch.to_string().into_bytes()).expect("a request");
                let _ = client.request::<Value>(edit).await;
                tried.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// Creates an object as a dry run, again as soon as it is answered.
    fn repeat(&self, client: &kube::Client, path: &str, object: &Value) {
        let (client, tried) = (client.clone(), self.tried.clone());
        let (path, body) = (format!("{path}?dryRun=All"), object.to_string().into_bytes());
        self.spawn(async move {
            loop {
                let request = Request::post(&path).header("Content-Type", "application/json");
                let _ = client.request::<Value>(request.body(body.clone()).expect("a request")).await;
                tried.fetch_add(1, Ordering::Relaxed);
                // An error of the connection comes back at once.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection that carries one request and then none; another one, after a while, where it is closed.
async fn stay_connected(port: WebhookPort) {
    loop {
        if let Ok(mut connection) = port.connect(FROM).await {
            let _ = connection.get("/livez").await;
            connection.closed().await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

fn operator_version(name: &str, template: &str) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": {"name": format!("{name}-0.1.0")},
        "spec": {
            "operator": {"kind": "Operator", "name": name}, "version": "0.1.0",
            "parameters": [{"name": "NUMBER", "default": "0"}],
            "tasks": [{"name": "all", "kind": "Apply", "spec": {"resources": ["all.yaml"]}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "only", "strategy": "serial", "steps": [{"name": "only", "tasks": ["all"]}]},
            ]}},
            "templates": {"all.yaml": template},
        },
    })
}

/// 300 KB, of which each alias is a copy where aliases are copied.
fn aliased() -> Value {
    let mut version = operator_version("aliased", "apiVersion: v1");
    let default = format!("[&a \"{}\", {}]", "x".repeat(300_000), vec!["*a"; 6000].join(", "));
    version["spec"]["parameters"] = json!([{"name": "LIST", "value-type": "array", "default": default}]);
    version
}
